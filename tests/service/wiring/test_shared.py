"""What a job says of a shared table that it waits for, from the report of the table's job."""

import time

import pytest

from joins.durable.checkpoint import write_json_atomically
from joins.plan.errors import SourceUnavailableError
from joins.plan.plan import SharedSource
from service.connectors.shared import look, shared_meta
from service.jobs.store.layout import JobLayout

SOURCE = SharedSource("0199", "users", 4)


@pytest.fixture
def layout(tmp_path):
    (tmp_path / "0199").mkdir()
    return JobLayout(tmp_path / "reader")


def _report(layout, *, done=3, evidence=None, **more):
    total = 8
    copy = {"rows_total": 80, "chunks_done": done, "chunks_total": total, "rows_done": 30}
    table = {
        "name": "users",
        "generation": 1,
        "snapshot": {**copy, "is_copied": done == total},
        "low": {"epoch": 0, "file": 1, "pos": 4, "row": -1},
        "high": None,
        "source_version": None,
        "evidence": evidence,
    }
    report = {
        "pid": 1,
        "state": "SNAPSHOT",
        "phase": "LOAD",
        "reason": "as it is",
        "updated_at_ms": time.time_ns() // 1_000_000,
        "dimensions": [table],
        **more,
    }
    write_json_atomically(layout.of_shared(SOURCE).status, report)


WAITS = {
    "it_is_copied": ({}, 'shared table "users" is in LOAD, chunk 3 of 8'),
    "it_follows": ({"done": 8}, "is in LOAD, its watermark follows the last chunk"),
    "it_is_copied_again": ({"phase": "JOIN"}, "is copied again, chunk 3 of 8"),
    "it_is_whole": ({"phase": "JOIN", "evidence": "in-band-watermark"}, None),
}


@pytest.mark.parametrize(("report", "text"), WAITS.values(), ids=WAITS)
def test_a_reader_says_how_far_the_table_is(layout, report, text):
    _report(layout, **report)
    found = look(layout, SOURCE)
    assert found.fault is None
    assert (found.view.waits_for is None) if text is None else (text in found.view.waits_for)
    assert found.view.evidence == report.get("evidence")


ERROR = {"type": "definition", "message": 'column "name" is gone', "hint": "Restore it."}
FAULTS = {
    "it_is_stalled": (
        {"state": "STALLED", "error": ERROR},
        'shared table "users" is STALLED: column "name" is gone',
        "Restore it.",
    ),
    "it_has_failed": ({"state": "FAILED", "error": ERROR}, "is FAILED", "Restore it."),
    "it_is_paused_or_stopped": ({"state": "STOPPED"}, "does not run", "sluice jobs resume 0199"),
    "it_is_silent": ({"updated_at_ms": 1}, "has not reported", "sluice jobs get 0199"),
}


@pytest.mark.parametrize(("report", "text", "hint"), FAULTS.values(), ids=FAULTS)
def test_a_reader_stalls_with_the_reason_of_the_table(layout, report, text, hint):
    _report(layout, **report)
    fault = look(layout, SOURCE).fault
    assert text in fault.message
    assert hint in fault.hint


def test_a_table_that_has_not_begun_is_waited_for(layout):
    assert look(layout, SOURCE).view is None
    assert look(layout, SOURCE).fault is None
    with pytest.raises(SourceUnavailableError, match='shared table "users" has not begun'):
        shared_meta(layout, SOURCE)


def test_a_table_whose_directory_is_gone_is_told(layout):
    layout.of_shared(SOURCE).job_dir.rmdir()
    assert "is gone" in look(layout, SOURCE).fault.message
