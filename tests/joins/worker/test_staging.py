"""Reports of tasks: what one task says is what the driver reads."""

import errno
import gc
import os
import sys
import threading
import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.durable.failpoints import Failpoints
from joins.kernels.index.room import Room
from joins.kernels.probe.files import StagedFile
from joins.plan.errors import IndexDirectoryError, IndexLockedError, StoppingError
from joins.worker.staging import (
    ARROW_BATCH_BYTES,
    ARROW_BYTES,
    ARROW_RECORDS,
    OWN_ARROW_LIMITS,
    BatchTurns,
    QueryGuards,
    TaskReport,
    current_origin,
    in_few_tasks,
    limit_arrow_batches,
    merge_reports,
    no_room,
)

FILES = st.builds(
    StagedFile, path=st.text(), size_bytes=st.integers(0), rows=st.integers(0), stats=st.text()
)
REPORTS = st.builds(
    TaskReport,
    files=st.dictionaries(st.sampled_from(["output", "dead_letters"]), FILES),
    counts=st.dictionaries(st.sampled_from(["joined", "matched"]), st.integers(0, 2**62)),
    detail=st.dictionaries(st.text(), st.lists(st.integers())),
)


def text_of(report):
    (text,) = report.to_batch().column(0).to_pylist()
    return text


@given(report=REPORTS)
def test_a_report_arrives_as_it_was_sent(report):
    assert TaskReport.from_json(text_of(report)) == report


@given(reports=st.lists(REPORTS, max_size=6))
def test_merging_sums_counts_and_loses_no_file(reports):
    merged = merge_reports(map(text_of, reports))
    for name in ("joined", "matched"):
        assert merged.counts.get(name, 0) == sum(r.counts.get(name, 0) for r in reports)
    for name in ("output", "dead_letters"):
        expected = tuple(r.files[name] for r in reports if name in r.files)
        assert merged.files.get(name, ()) == expected
    assert merged.details == tuple(r.detail for r in reports)


def test_outside_a_task_the_origin_is_the_driver():
    origin = current_origin(3, 17)
    assert (origin.epoch, origin.batch, origin.task, origin.attempt) == (3, 17, 0, 0)


def guards(told, turns=None):
    return QueryGuards(Failpoints(), turns or BatchTurns(), told.append)


def test_a_failing_batch_tells_its_own_exception_and_still_fails():
    told = []

    def run(frame, batch):
        raise ValueError(f"batch {batch}")

    turns = BatchTurns()
    with pytest.raises(ValueError, match="batch 4"):
        guards(told, turns).guarded(run)(None, 4)
    assert [str(error) for error in told] == ["batch 4"]
    assert turns.stop(timeout_s=0)


def test_a_batch_that_succeeds_tells_nothing():
    told = []
    guards(told).guarded(lambda frame, batch: None)(None, 4)
    assert told == []


def test_a_stop_waits_for_the_running_batch_and_lets_no_other_begin():
    ran, begun, go_on = [], threading.Event(), threading.Event()

    def run(frame, batch):
        begun.set()
        go_on.wait(10)
        ran.append(batch)

    turns = BatchTurns()
    batch = guards([], turns).guarded(run)
    running = threading.Thread(target=batch, args=(None, 4))
    running.start()
    assert begun.wait(10)
    assert not turns.stop(timeout_s=0.01)
    with pytest.raises(StoppingError):
        batch(None, 5)
    go_on.set()
    assert turns.stop(timeout_s=10)
    running.join()
    assert ran == [4]


def test_inside_a_task_the_origin_names_task_and_attempt(spark):
    def names(batches):
        for _ in batches:
            pass
        origin = current_origin(3, 17)
        yield TaskReport(detail={"task": origin.task, "attempt": origin.attempt}).to_batch()

    frame = spark.range(0, 3, 1, 3).mapInArrow(names, "report string")
    details = merge_reports(row.report for row in frame.collect()).details
    assert [detail["task"] for detail in details] == [0, 1, 2]
    assert len({detail["attempt"] for detail in details}) == 3


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_node_that_cannot_write_its_index_is_found_in_what_spark_says(number):
    try:
        raise Room(Path("index/users")).error(OSError(number, os.strerror(number)))
    except IndexDirectoryError as error:
        expected = error
        told = f"Job aborted: {traceback.format_exc()}\n\tat org.apache.spark.Task.run(Task.scala)"
    found = no_room(RuntimeError(told))
    assert found is not None
    assert (found.message, found.hint) == (expected.message, IndexDirectoryError.HINT)
    assert no_room(RuntimeError("Job aborted: something else")) is None


def test_a_node_whose_index_is_locked_is_found_in_what_spark_says():
    told = 'Job aborted: joins.plan.errors.IndexLockedError: process 7 on node "a"\n\tat org.apache'
    found = no_room(RuntimeError(told))
    assert isinstance(found, IndexLockedError)
    assert (found.message, found.hint) == ('process 7 on node "a"', IndexLockedError.HINT)


def _rows_of_batches(batches):
    for batch in batches:
        yield pa.record_batch([[batch.num_rows]], names=["rows"])


@pytest.mark.parametrize("by_bytes", [True, False])
def test_spark_cuts_arrow_batches_by_their_bytes_where_it_is_told_to(spark, by_bytes):
    session = spark.newSession()
    large = "cast(repeat('x', 2048) as binary) as value"
    frame = session.range(0, 50_000, 1, 1).selectExpr(large)
    limit_arrow_batches(frame, by_bytes=by_bytes)
    rows = [row.rows for row in frame.mapInArrow(_rows_of_batches, "rows long").collect()]
    assert sum(rows) == 50_000
    assert (len(rows) > 1) == by_bytes


def test_with_a_number_of_records_of_the_users_own_arrow_batches_are_cut_by_bytes_too(spark):
    session = spark.newSession()
    session.conf.set(OWN_ARROW_LIMITS, ARROW_RECORDS)
    limit_arrow_batches(session.range(1), by_bytes=False)
    assert session.conf.get(ARROW_BYTES) == str(ARROW_BATCH_BYTES)


@pytest.mark.parametrize(("records", "tasks"), [(0, 1), (5_000, 1), (5_001, 2), (500_000, 4)])
def test_a_small_batch_has_few_tasks(spark, records, tasks):
    frame = spark.newSession().range(0, 100, 1, 4)
    rows = in_few_tasks(frame, records).mapInArrow(_rows_of_batches, "rows long").collect()
    assert sum(row.rows for row in rows) == 100
    assert in_few_tasks(frame, records).rdd.getNumPartitions() == tasks


def _spared(batches):
    loaded = "joins.dimension.build_side" in sys.modules
    for _ in batches:
        yield pa.record_batch([[loaded], [gc.get_freeze_count()]], names=["loaded", "objects"])


def test_a_worker_is_forked_with_its_modules_and_does_not_collect_them_after_each_task(spark):
    frame = spark.range(0, 1, 1, 1).mapInArrow(_spared, "loaded boolean, objects long")
    (row,) = frame.collect()
    assert row.loaded
    assert row.objects > 20_000
