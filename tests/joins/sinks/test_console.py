"""The print and blackhole sinks on real Spark: lines in order, after the join has succeeded."""

import io
import json

import pytest

from joins.plan.plan import BlackholeSink, PrintSink
from joins.sinks.console import ConsoleSinkWriter
from joins.worker.probe_task import DEAD_LETTERS
from tests.support.probe import PIN, clicks, probe_task
from tests.support.topic_work import work_of

VALUES = [b'{"user_id":1}', b'{"user_id":3}', b"{", b'{"user_id":2}']


@pytest.fixture
def work(spark):
    records = clicks(*VALUES)
    return work_of(spark, records.slice(0, 2), records.slice(2))


def test_rows_are_printed_when_the_batch_is_committed(tmp_path, work):
    out = io.StringIO()
    writer = ConsoleSinkWriter(out, "here")
    report = writer.run(work, probe_task(tmp_path, PrintSink("here")), PIN)
    joined = {"joined": 3, "matched": 2, "unmatched": 1, "dead_letters": 1}
    assert report.counts == {**joined, "records": 4, "bytes": 40}
    assert len(report.files[DEAD_LETTERS]) == 1
    assert out.getvalue() == ""
    assert writer.committed_counts(PIN) is None
    writer.commit(report, PIN, 2)
    lines = ["here> +I[1, r5]", "here> +I[3, null]", "here> +I[2, r5]"]
    assert out.getvalue().splitlines() == lines
    writer.commit(report, PIN, 2)
    assert out.getvalue().splitlines() == lines


def test_a_blackhole_counts_and_prints_nothing(tmp_path, work):
    out = io.StringIO()
    writer = ConsoleSinkWriter(out, None)
    report = writer.run(work, probe_task(tmp_path, BlackholeSink()), PIN)
    writer.commit(report, PIN, 2)
    assert (report.counts["joined"], out.getvalue()) == (3, "")


def test_a_preview_prints_its_first_rows_over_all_batches(tmp_path, work):
    out = io.StringIO()
    writer = ConsoleSinkWriter(out, "", row_limit=4)
    task = probe_task(tmp_path, PrintSink(row_limit=4))
    for _ in range(2):
        report = writer.run(work, task, PIN)
        assert report.counts["joined"] == 3
        writer.commit(report, PIN, 2)
    rows = [{"user_id": "1", "name": "r5"}, {"user_id": "3", "name": None}]
    rows = [f"+I{json.dumps(row)}" for row in (*rows, {"user_id": "2", "name": "r5"})]
    assert out.getvalue().splitlines() == [*rows, rows[0]]
