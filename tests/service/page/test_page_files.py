"""The files of the status page: served with strict headers, no markup from data, packaged."""

import re
import zipfile
from html.parser import HTMLParser

import httpx
import pytest
from hatchling.builders.wheel import WheelBuilder

from service.api.routes.program import DIRECTORY, asset_names
from tests.support.browser import REQUIRED
from tests.support.control_plane import ROOT, control_plane

SCRIPTS = sorted(path.name for path in DIRECTORY.glob("*.js"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in DIRECTORY.iterdir()}
MAKES_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment"
    r"|setHTML|\beval\b|new Function|srcdoc|javascript:"
)
ELSEWHERE = re.compile(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", re.IGNORECASE)
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, nothing is fetched from there


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with (
        control_plane(tmp_path_factory.mktemp("data")) as plane,
        httpx.Client(base_url=plane.url, trust_env=False, timeout=60) as client,
    ):
        yield client


@pytest.mark.parametrize("path", ["/", *(f"/ui/{name}" for name in sorted(TEXTS))])
def test_each_file_comes_with_its_type_and_a_strict_policy(http, path):
    answer = http.get(path)
    if path == "/ui/index.html":  # it has one address
        assert answer.status_code == 404
        return
    assert answer.status_code == 200
    kinds = {"/": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    assert answer.headers["content-type"].startswith(kinds[path.rpartition(".")[2]])
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert http.head(path).status_code == 200


OUTSIDE = ["..%2f..%2fpyproject.toml", "%2e%2e%2fconfig.py", "x.js", "__init__.py"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_else_is_served(http, name):
    answer = http.get(f"/ui/{name}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_page_is_not_part_of_the_api(http):
    paths = http.get("/openapi.json").json()["paths"]
    assert [path for path in paths if path == "/" or path.startswith("/ui")] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_never_make_markup_of_text(name):
    assert MAKES_MARKUP.search(TEXTS[name]) is None


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_nothing_comes_from_elsewhere(name):
    assert ELSEWHERE.search(TEXTS[name].replace(NAMESPACE, "")) is None


class Inline(HTMLParser):
    """Collects what a strict policy would refuse, and what the document refers to."""

    def __init__(self):
        super().__init__()
        self.refused, self.referred = [], []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.refused += [name for name in found if name.startswith("on") or name == "style"]
        self.refused += [tag] if tag == "style" or (tag == "script" and "src" not in found) else []
        self.referred += [found[name] for name in ("src", "href") if name in found]


def test_the_document_has_nothing_inline_and_refers_to_files_that_there_are():
    page = Inline()
    page.feed(TEXTS["index.html"])
    assert page.refused == []
    assets = {path.removeprefix("/ui/") for path in page.referred if path.startswith("/ui/")}
    assert {"main.js", "page.css", "icon.svg"} <= assets <= asset_names()
    assert [path for path in page.referred if not path.startswith(("/ui/", "#"))] == []


def test_the_document_names_all_modules_that_are_imported_so_that_none_waits_for_another():
    preloaded = re.findall(r'<link rel="modulepreload" href="/ui/([^"]+)">', TEXTS["index.html"])
    assert sorted([*preloaded, "main.js"]) == sorted(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_modules_import_files_that_there_are(name):
    imported = re.findall(r'^import .* from "([^"]+)";$', TEXTS[name], re.MULTILINE)
    assert imported == [path for path in imported if path.startswith("./")]
    assert {path.removeprefix("./") for path in imported} <= asset_names()


def test_the_page_is_small():
    assert sum(len(text.encode()) for text in TEXTS.values()) <= 300_000


def test_ci_installs_a_browser_and_does_without_skips():
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert f"export {REQUIRED}=1" in run
    assert {"missing+=(chromium)", "missing+=(chromium-driver)"} <= set(re.findall(r"m\S+\)", run))


def test_the_wheel_has_every_file_of_the_page(tmp_path):
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {f"service/page/{name}" for name in TEXTS} <= packed
