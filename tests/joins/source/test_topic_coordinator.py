"""The coordinator of a topic's source and its process: kills, faults, and what operators decide."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from joins.durable.requests import Fault, Request, Stalls
from joins.plan.errors import NothingToAcknowledgeError, RequestError
from joins.source.coordinator import SourceView
from joins.source.feed_coordinator import TopicCoordinator
from tests.support.foreign_topics import Connector, TopicFeed, heard, topic_feed
from tests.support.rig import descendants
from tests.support.wait import wait_until

USERS = {n: f"user {n}" for n in range(2_000)}
FEED = "joins.adapters.topic.feed"


@contextmanager
def running(source: TopicFeed, directory: Path) -> Iterator[tuple[TopicCoordinator, Stalls]]:
    stalls = Stalls()
    decisions = directory / "acknowledgements.jsonl"
    coordinator = TopicCoordinator("users", source.config, stalls, decisions)
    coordinator.start()
    try:
        yield coordinator, stalls
    finally:
        coordinator.stop()


def view_of(coordinator: TopicCoordinator) -> SourceView:
    return wait_until(coordinator.view, what="the view")


def fault_of(stalls: Stalls, kind: str) -> Fault:
    def fault() -> Fault | None:
        return next((f for _, f in stalls.all() if f.type == kind), None)

    return wait_until(fault, what=kind)


def asked(number: int, cause: str, reason: str | None = "I looked") -> Request:
    body = {"cause": cause, "choice": "any", "reason": reason}
    return Request(f"id-{number}", "acknowledge", body, 1, "somebody")


def test_a_process_that_is_killed_goes_on_and_opens_once_all_is_there(
    connector: Connector, tmp_path: Path
) -> None:
    connector.notify("STARTED")
    connector.snapshot({n: USERS[n] for n in range(500)}, is_whole=False)
    source = topic_feed(connector, tmp_path, heard(connector, settle_ms=3_600_000))
    with running(source, tmp_path) as (coordinator, _):
        wait_until(lambda: view_of(coordinator).rows_total == 500, what="the first rows")
        for _ in range(2):
            (process,) = descendants(psutil.Process(), FEED)
            process.kill()
            process.wait(120)
            connector.incremental(1, "again")
            wait_until(lambda: descendants(psutil.Process(), FEED), what="the next process")
        waits = "500 snapshot rows, and no sign of its end"
        wait_until(lambda: view_of(coordinator).waits_for == waits, what=waits)
        connector.scanned(500)
        for key in (0, 1):
            connector.change(key, "changed")
        wait_until(lambda: view_of(coordinator).is_copied, what="the copy is complete")
        proofs = ("table_scan_completed", "first_streamed_change")  # either may be heard first
        assert view_of(coordinator).evidence in proofs
    rows = source.rows()
    assert (rows[0], rows[1], len(rows)) == ("changed", "changed", 500)
    assert not descendants(psutil.Process(), FEED)


def test_an_operators_word_and_a_skipped_record_are_kept(
    connector: Connector, tmp_path: Path
) -> None:
    connector.notify("STARTED")
    connector.snapshot({1: "a", 2: "b"}, is_whole=False)
    connector.send({"id": 3}, b"{broken")
    connector.notify("ABORTED")
    source = topic_feed(connector, tmp_path, heard(connector))
    with running(source, tmp_path) as (coordinator, stalls):
        fault = fault_of(stalls, "foreign-record")
        assert fault.choices == ("skip",)
        with pytest.raises(RequestError, match="no reason"):
            coordinator.acknowledge(asked(0, "foreign-record", " "))
        skipped = coordinator.acknowledge(asked(1, "foreign-record"))
        assert "record 1/" in skipped["message"]
        fault = fault_of(stalls, "snapshot-unproven")
        assert "has given up its snapshot" in fault.message
        word = coordinator.acknowledge(asked(2, "snapshot-unproven"))
        assert coordinator.acknowledge(asked(2, "snapshot-unproven")) == word
        wait_until(lambda: view_of(coordinator).is_copied, what="the copy is complete")
        assert view_of(coordinator).evidence == "operator_override"
        with pytest.raises(NothingToAcknowledgeError):
            coordinator.acknowledge(asked(3, "snapshot-unproven"))
        assert [each["id"] for each in coordinator.acknowledgements()] == ["id-1", "id-2"]
    assert (tmp_path / "acknowledgements.jsonl").read_text().count("\n") == 2
    assert source.rows() == {1: "a", 2: "b"}
