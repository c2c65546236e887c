"""Reports of tasks: what one task says is what the driver reads."""

import errno
import gc
import os
import sys
import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.kernels.index.lock import Room
from joins.kernels.probe.files import StagedFile
from joins.plan.causes import fault_in
from joins.plan.errors import (
    IndexLockedError,
    JoinError,
    RecordsExpiredError,
    SourceUnavailableError,
)
from joins.worker.staging import (
    TaskReport,
    current_origin,
    merge_reports,
    telling_cause,
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


OURS = {
    "no_room": Room(Path("index/users")).error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))),
    "locked": IndexLockedError('process 7 on node "a"', hint=IndexLockedError.HINT),
    "expired": RecordsExpiredError('topic "t" begins later', hint="Lengthen it."),
    "gone": SourceUnavailableError('kafka "k" is away', hint="Start it.", detail="a\nb"),
}


@pytest.mark.parametrize("error", OURS.values(), ids=OURS)
def test_an_error_of_ours_is_found_in_what_spark_says(error):
    try:
        with telling_cause(), telling_cause():
            raise error
    except JoinError:
        told = f"Job aborted: {traceback.format_exc()}\n\tat org.apache.spark.Task.run(Task.scala)"
    found = fault_in(told)
    assert type(found) is type(error)
    assert (found.message, found.hint) == (error.message, error.hint)
    assert found.detail == error.detail
    assert told.count("sluice-fault") == 1
    assert fault_in("Job aborted: something else") is None


def _spared(batches):
    loaded = "joins.dimension.build_side" in sys.modules
    for _ in batches:
        yield pa.record_batch([[loaded], [gc.get_freeze_count()]], names=["loaded", "objects"])


def test_a_worker_is_forked_with_its_modules_and_does_not_collect_them_after_each_task(spark):
    frame = spark.range(0, 1, 1, 1).mapInArrow(_spared, "loaded boolean, objects long")
    (row,) = frame.collect()
    assert row.loaded
    assert row.objects > 20_000
