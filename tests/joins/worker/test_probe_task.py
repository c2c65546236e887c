"""The worker's half of a batch: pinned index in, staged files and one report out."""

import pickle
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from joins.kernels.probe.files import SharedTable
from joins.plan.errors import IndexBuildError
from joins.worker.probe_task import DEAD_LETTERS, OUTPUT, stage_delta
from joins.worker.staging import merge_reports
from tests.support.probe import PIN, clicks, probe_task


@pytest.fixture
def task(tmp_path):
    return probe_task(tmp_path)


GOOD = clicks(b'{"user_id":1}', b'{"user_id":2}', b'{"user_id":3}')
MIXED = clicks(b"{", b'{"user_id":1}', None, first=103)


def run(task, output, *batches, pin=PIN):
    (answer,) = stage_delta(iter(batches), task=task, pin=pin, output=SharedTable(output))
    return merge_reports(answer.column(0).to_pylist())


def rows_of(root, report, name):
    (file,) = report.files[name]
    assert file.path.startswith("part-00002-0000000007-")
    return pq.read_table(root / file.path)


def test_rows_and_dead_letters_are_staged_and_counted(task, tmp_path):
    report = run(task, tmp_path / "out", GOOD, MIXED)
    rows = rows_of(tmp_path / "out", report, OUTPUT).to_pylist()
    assert [(r["user_id"], r["name"], r["_offset"]) for r in rows] == [
        (1, "r5", 100),
        (2, "r5", 101),
        (3, None, 102),
        (1, "r5", 104),
    ]
    assert {(r["_batch"], r["_dimension_versions"]) for r in rows} == {(7, "users=1")}
    dead = rows_of(tmp_path / "dead", report, DEAD_LETTERS).to_pylist()
    assert [(d["topic"], d["offset"], d["value"]) for d in dead] == [
        ("clicks", 103, b"{"),
        ("clicks", 105, None),
    ]
    joined = {"joined": 4, "matched": 3, "unmatched": 1, "dead_letters": 2}
    assert report.counts == {**joined, "records": 6, "bytes": 53}


def test_the_pinned_version_is_joined_whatever_is_newest(task, tmp_path):
    later = replace(PIN, versions={"users": 2})
    for pin, names in ((PIN, ["r5", "r5", None]), (later, ["u9", None, None]), (PIN, ["r5"] * 2)):
        report = run(task, tmp_path / "out", GOOD, pin=pin)
        found = rows_of(tmp_path / "out", report, OUTPUT).column("name").to_pylist()
        assert found[: len(names)] == names


def test_a_retry_stages_the_same_rows_in_another_file(task, tmp_path):
    first, second = (run(task, tmp_path / "out", GOOD, MIXED) for _ in range(2))
    tables = [rows_of(tmp_path / "out", report, OUTPUT) for report in (first, second)]
    assert tables[0].equals(tables[1])
    assert first.files[OUTPUT][0].path != second.files[OUTPUT][0].path


def test_a_task_without_records_reports_zeros_and_no_files(task, tmp_path):
    report = run(task, tmp_path / "out")
    assert (report.files, set(report.counts.values())) == ({}, {0})
    assert not (tmp_path / "out").exists()


def test_a_task_of_dead_letters_only_has_no_output_file(task, tmp_path):
    assert set(run(task, tmp_path / "out", clicks(b"x")).files) == {DEAD_LETTERS}


def test_a_failing_source_of_records_leaves_no_files(task, tmp_path):
    def failing():
        yield GOOD
        yield MIXED
        raise OSError("fetch failed")

    with pytest.raises(OSError, match="fetch failed"):
        list(stage_delta(failing(), task=task, pin=PIN, output=SharedTable(tmp_path / "out")))
    assert list((tmp_path / "out").iterdir()) == list((tmp_path / "dead").iterdir()) == []


def test_a_version_without_an_index_is_refused(task, tmp_path):
    with pytest.raises(IndexBuildError):
        run(task, tmp_path / "out", GOOD, pin=replace(PIN, versions={"users": 9}))


def test_a_task_travels_to_workers(task):
    travelled = pickle.loads(pickle.dumps(task))
    assert replace(travelled, failpoints=task.failpoints) == task
