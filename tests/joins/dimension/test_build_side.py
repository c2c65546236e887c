"""The build side: changelog records staged by a task, and the state read back from the table."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joins.adapters.delta.log import DeltaLog, create_table
from joins.dimension.build_side import BuildTask, read_changelog_state, stage_changes
from joins.kernels.changelog.digest import ChangelogDigest, ChangelogState
from joins.kernels.changelog.envelope import BinlogPosition, encode_watermark
from joins.plan.errors import SourceError
from joins.worker.staging import merge_reports
from tests.support.changelog import COLUMNS, SCHEMA, Changelog, record, watermark

HIGH = encode_watermark(BinlogPosition(0, 1, 50), 1)


def envelope(op, id_, pos, *, row=0, generation=1):
    after = None if op == "d" else {"id": id_, "name": f"{op}{pos}"}
    before = {"id": id_, "name": "old"} if op in "ud" else None
    source = {"epoch": 0, "file": 1, "pos": pos, "row": row, "gen": generation, "ts_ms": pos}
    value = {"before": before, "after": after, "op": op, "source": source, "ts_ms": 1}
    return json.dumps({"id": id_}).encode(), json.dumps(value).encode()


def kafka(*records, partition=0, first=0):
    count = len(records)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([key for key, _ in records], pa.binary()),
            pa.array([value for _, value in records], pa.binary()),
            pa.array([partition] * count, pa.int32()),
            pa.array(range(first, first + count), pa.int64()),
        ],
        names=["key", "value", "partition", "offset"],
    )


@pytest.fixture
def task(tmp_path):
    create_table(tmp_path / "changelog", SCHEMA)
    return BuildTask("sluice.job.users", tmp_path / "changelog", COLUMNS, epoch=2)


def staged(task, *batches, state=None):
    (answer,) = stage_changes(iter(batches), task=task, batch=4, state=state or ChangelogState())
    return merge_reports(answer.column(0).to_pylist())


def rows_in(task, report):
    (file,) = report.files["changelog"]
    return pq.read_table(task.table / file.path).to_pylist()


def test_changes_are_staged_in_their_order_with_their_coordinates(task):
    records = kafka(
        envelope("r", 1, 5, row=-1),
        envelope("u", 1, 7),
        envelope("d", 2, 9),
        (None, HIGH),
        first=70,
    )
    report = staged(task, records)
    rows = rows_in(task, report)
    assert [(r["_op"], r["id"], r["name"], r["_pos"], r["_offset"]) for r in rows] == [
        ("r", 1, "r5", 5, 70),
        ("u", 1, "u7", 7, 71),
        ("d", 2, None, 9, 72),
        ("w", None, None, 50, 73),
    ]
    assert report.files["changelog"][0].path.startswith("part-00002-0000000004-")
    assert DeltaLog(task.table, "app").version() == 0


def test_a_task_without_records_stages_nothing(task):
    report = staged(task)
    assert report.files == {}
    assert report.details[0]["records"] == 0
    assert [path.name for path in task.table.iterdir()] == ["_delta_log"]


def test_a_task_that_gets_repeats_only_stages_nothing_but_tells_its_offsets(task):
    before = ChangelogState(high_water={0: (0, 1, 9, 0)}, next_offsets={0: 30})
    report = staged(task, kafka(envelope("c", 1, 8), envelope("u", 1, 9), first=30), state=before)
    assert report.files == {}
    digest = ChangelogDigest(before.high_water)
    digest.merge(report.details[0])
    assert digest.state_after(before) == replace(before, next_offsets={0: 32})


def test_repeats_are_dropped_over_the_batches_of_a_task(task):
    first = kafka(envelope("c", 1, 8), envelope("u", 1, 9))
    again = kafka(envelope("c", 1, 8), envelope("u", 1, 9), envelope("u", 1, 10), first=2)
    rows = rows_in(task, staged(task, first, again))
    assert [(r["_pos"], r["_offset"]) for r in rows] == [(8, 0), (9, 1), (10, 4)]


def test_the_rows_of_one_transaction_are_no_repeats_of_each_other(task):
    rows = rows_in(task, staged(task, kafka(envelope("d", 1, 8), envelope("c", 1, 8, row=1))))
    assert [r["_op"] for r in rows] == ["d", "c"]


def test_partitions_do_not_hide_each_others_changes(task):
    late, early = kafka(envelope("u", 1, 90)), kafka(envelope("u", 2, 8), partition=1)
    assert len(rows_in(task, staged(task, late, early))) == 2


def test_a_foreign_record_is_named_and_leaves_no_file(task):
    good = kafka(envelope("c", 1, 8))
    with pytest.raises(SourceError, match="record 0/40 of changelog topic"):
        staged(task, good, kafka((b"{}", b'{"hello":1}'), first=40))
    assert [path.name for path in task.table.iterdir()] == ["_delta_log"]


def test_the_state_of_an_empty_table_is_empty(tmp_path):
    changelog = Changelog(tmp_path)
    changelog.log.commit_epoch(3)
    assert read_changelog_state(changelog.log, changelog.log.version()) == ChangelogState()


def test_the_state_is_read_back_at_any_version(tmp_path):
    changelog = Changelog(tmp_path)
    first = changelog.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1))
    empty = changelog.commit()
    second = changelog.commit(record("u", 1, 9, 2), watermark(3), record("c", 3, 4, 0, partition=1))
    third = changelog.commit(watermark(9), watermark(1, partition=1), record("d", 1, 12, 10))
    states = [read_changelog_state(changelog.log, v) for v in (first, empty, second, third)]
    assert (
        states[0] == states[1] == ChangelogState(next_offsets={0: 2}, snapshot_rows=2, generation=1)
    )
    assert states[2] == ChangelogState(
        marks={0: (1, 3)},
        high_water={0: (0, 1, 9, 0), 1: (0, 1, 4, 0)},
        next_offsets={0: 4, 1: 1},
        snapshot_rows=2,
        generation=1,
        source_ts_ms=1009,
    )
    assert states[3] == ChangelogState(
        marks={0: (1, 3), 1: (1, 1)},
        high_water={0: (0, 1, 12, 0), 1: (0, 1, 4, 0)},
        next_offsets={0: 11, 1: 2},
        snapshot_rows=2,
        generation=1,
        source_ts_ms=1012,
    )
