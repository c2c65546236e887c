"""HEAD is answered wherever GET is: the same head, and no body; over a real server."""

import re

import pytest

from service.api.routes.program import asset_names
from tests.support.wait import wait_until

CHANGING = {"date", "content-length"}
"""Headers that may differ from one request to the next; the length where a page counts itself."""


def paths(plane):
    """Every address that GET is declared for, with an id that no job has, and the page's files."""
    rules = plane._open_parts().server.config.app.state.guard.rules.rules
    declared = {rule.path for rule in rules if "GET" in rule.methods}
    named = {
        re.sub(r"\{[^}]*\}", "01234567-89ab-7def-8123-456789abcdef", each) for each in declared
    }
    return sorted(named | {f"/ui/{name}" for name in asset_names()})


def test_head_is_answered_as_get_is(plane, http):
    assert len(paths(plane)) > 25
    for path in paths(plane):
        got, headed = http.get(path), http.head(path)
        assert (headed.status_code, headed.content) == (got.status_code, b""), path
        kept = [
            {k: v for k, v in each.headers.items() if k not in CHANGING} for each in (got, headed)
        ]
        assert kept[0] == kept[1], path


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/", "/ui/dom.js", "/openapi.json"])
def test_head_says_how_long_the_body_would_be(http, path):
    headed, got = http.head(path), http.get(path)
    assert headed.status_code == 200
    assert headed.headers["content-length"] == str(len(got.content))


def test_the_head_of_a_stream_ends(plane, http):
    for _ in range(3):  # and gives its seat back
        headed = http.head("/v1/events", headers={"Accept": "text/event-stream"})
        assert headed.status_code == 200
        assert headed.headers["content-type"].startswith("text/event-stream")
    hub = plane._open_parts().server.config.app.state.events
    wait_until(lambda: hub._seats.total() == 0, what="the seats are given back")


def test_head_is_named_where_a_method_is_refused_and_counted_by_its_route(http):
    refused = http.request("PUT", "/livez")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
    http.head("/livez")
    counted = 'sluice_http_requests_total{method="HEAD",route="/livez",status="200"}'
    assert counted in http.get("/metrics").text
