"""Commits to a table in an object store: what holds in a directory holds there."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from werkzeug.wrappers import Response

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, FileActions, create_table
from joins.adapters.delta.merge import MergedOutput, MergeSource, change_schema
from joins.adapters.delta.removal import remove_table
from joins.adapters.store_path import StorePath
from joins.kernels.changelog.row_kinds import DELETE, INSERT, UPDATE_AFTER
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.plan.errors import FencedError, JoinError, SinkError, StoreUnavailableError
from joins.plan.plan import SinkWriter
from tests.support.beside import at_once
from tests.support.object_store import ObjectStore

APP = "sluice:job:life"
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


@pytest.fixture
def table(store: ObjectStore, request: pytest.FixtureRequest) -> StorePath:
    path = store.path(f"warehouse/{request.node.name}")
    create_table(path, SCHEMA, creator=APP)
    return path


def stage(log: DeltaLog, batch: int, *ids: int):
    with log.shared.stage(SCHEMA, FileOrigin(1, batch, 0, 0)) as file:
        file.write(pa.record_batch([list(ids), [f"{i}" for i in ids]], schema=SCHEMA))
        return file.finish()


def ids_in(table: StorePath) -> list[int]:
    log = DeltaLog(table, "reader")
    found = log.files.read_files(log.files.files_at(log.version()))
    return sorted(i for rows in found for i in rows.column("id").to_pylist())


def test_a_batch_is_committed_once_whoever_repeats_it(table):
    log = DeltaLog(table, APP)
    log.commit_epoch(1)
    files = [stage(log, 0, 1, 2)]
    assert log.commit(0, 1, files, {"n": 1}) == log.commit(0, 1, files, {"n": 2})
    assert (ids_in(table), log.batches.batch_metadata(0)) == ([1, 2], {"n": 1})


def test_a_newer_runner_keeps_an_older_one_out(table):
    old, new = DeltaLog(table, APP), DeltaLog(table, APP)
    old.commit_epoch(1)
    late = stage(old, 0, 1)
    new.commit_epoch(2)
    with pytest.raises(FencedError):
        old.commit(0, 1, [late], {})
    new.commit(0, 2, [stage(new, 0, 2)], {})
    assert ids_in(table) == [2]


def test_two_runners_of_one_epoch_commit_each_batch_once(table):
    logs = [DeltaLog(table, APP) for _ in range(2)]
    logs[0].commit_epoch(1)

    def run(log: DeltaLog) -> None:
        batch = 0
        while batch < 8:
            try:
                log.commit(batch, 1, [stage(log, batch, batch)], {})
                batch += 1
            except JoinError:
                batch = (log.batches.last_batch() or -1) + 1

    at_once(run, logs)
    assert ids_in(table) == list(range(8))


def test_a_commit_whose_answer_was_lost_is_there_once(table, store):
    log = DeltaLog(table, APP)
    log.commit_epoch(1)
    file = stage(log, 0, 1)
    store.answers_to_lose = 1
    log.commit(0, 1, [file], {})
    assert ids_in(table) == [1]


def test_a_store_that_goes_away_is_waited_for(table, store):
    log = DeltaLog(table, APP)
    log.commit_epoch(1)
    file = stage(log, 0, 1)
    store.fault = lambda _: Response(status=400)
    try:
        with pytest.raises(StoreUnavailableError):
            log.commit(0, 1, [file], {})
    finally:
        store.fault = lambda _: None
    log.commit(0, 1, [file], {})
    assert ids_in(table) == [1]


def test_a_store_that_delta_rs_cannot_read_is_waited_for(table, store):
    store.fault = lambda _: Response(status=400)
    try:
        with pytest.raises(StoreUnavailableError, match=r"does not serve delta table \"s3://"):
            DeltaLog(table, APP).version()
    finally:
        store.fault = lambda _: None
    assert DeltaLog(table, APP).version() == 0


def test_a_staged_file_that_is_gone_is_found_out(table):
    log = DeltaLog(table, APP)
    file = stage(log, 0, 1)
    (table / file.path).unlink()
    with pytest.raises(SinkError, match="has None bytes"):
        log.commit(0, 1, [file], {})
    with pytest.raises(SinkError, match="rows, its task counted 7"):
        log.commit(0, 1, [replace(stage(log, 0, 1), rows=7)], {})


def test_a_log_is_shortened_and_a_batch_is_taken_back(table):
    log = DeltaLog(table, APP)
    log.commit_epoch(1)
    for batch in range(3):
        log.commit(batch, 1, [stage(log, batch, batch)], {})
    log.retract(2, 1)
    assert ids_in(table) == [0, 1]
    log.upkeep.make_checkpoint(log.version())
    assert log.upkeep.remove_log_before(log.version()) == 5
    assert (DeltaLog(table, APP).batches.last_batch(), ids_in(table)) == (2, [0, 1])
    log.commit(3, 1, [stage(log, 3, 3)], {})
    assert ids_in(table) == [0, 1, 3]


def test_files_are_replaced_and_vacuumed(table):
    log = DeltaLog(table, APP)
    log.commit(0, 1, [stage(log, 0, 1)], {})
    (gone,) = log.files.rows_at(log.version())
    log.commit_change(1, 1, FileActions([stage(log, 1, 2)], [gone]), {})
    assert ids_in(table) == [2]
    assert log.upkeep.vacuum(0) == 1
    assert not (table / gone).exists()


def test_a_table_is_removed_if_all_of_it_is_the_jobs(table, store):
    log = DeltaLog(table, APP)
    log.commit(0, 1, [stage(log, 0, 1)], {})
    stage(log, 1, 2)
    log.upkeep.make_checkpoint(log.version())
    (table / "notes.txt").put(b"mine")
    assert "notes.txt" in str(remove_table(table, APP, [APP]))
    assert store.keys(table.key) == [f"{table.key}/notes.txt"]
    assert "has not created it" in str(remove_table(table, APP, [APP]))


def test_a_table_of_somebody_elses_stays(table, store):
    DeltaLog(table, "another").commit(0, 1, [stage(DeltaLog(table, "another"), 0, 1)], {})
    before = store.keys(table.key)
    assert "committed by somebody else" in str(remove_table(table, APP, [APP]))
    assert store.keys(table.key) == before
    assert "has not created it" in str(remove_table(table, "sluice:other:life", []))


REFUSED = {
    "spark's_writer": (Appends(SCHEMA, SinkWriter.SPARK), "'sink.writer' is 'spark'"),
    "other_columns": (Appends(pa.schema([("id", pa.int32())])), "has columns"),
}


@pytest.mark.parametrize(("appends", "why"), REFUSED.values(), ids=REFUSED)
def test_what_spark_would_commit_is_refused(table, appends, why):
    with pytest.raises(SinkError, match=why):
        DeltaLog(table, APP).choose_writer(appends)


def test_partitions_and_inexact_keys_are_refused_for_new_tables_too_but_not_in_a_directory(store):
    path = store.path("warehouse/new")
    assert Appends(SCHEMA, partition_by=("text",)).choose_new(Path("new")).is_spark
    assert not Appends(SCHEMA).choose_new(path).is_spark
    Appends(pa.schema([("x", pa.float64())]), merge_key=("x",)).choose_new(Path("new"))
    with pytest.raises(SinkError, match=r"does not commit to object stores.*partition"):
        Appends(SCHEMA, partition_by=("text",)).choose_new(path)
    with pytest.raises(SinkError, match="is not exact"):
        Appends(pa.schema([("x", pa.float64())]), merge_key=("x",)).choose_new(path)
    assert not Appends(SCHEMA, merge_key=("id",)).choose_new(path).is_spark


# Rows that replace others
# ------------------------------------------------------------------------------------------------

WINDOWS = pa.schema(
    [
        pa.field("start", pa.timestamp("us"), nullable=False),
        pa.field("item", pa.string()),
        ("n", pa.int64()),
    ]
)
TEN, ELEVEN = (datetime(2026, 1, 1, hour, tzinfo=UTC).replace(tzinfo=None) for hour in (10, 11))


class NoSession:
    """Stands where Spark's session is: whoever asks it for anything but a new one fails."""

    def newSession(self) -> "NoSession":  # noqa: N802 (Spark's name)
        return self


@pytest.fixture
def windows(store, request, tmp_path):
    path = store.path(f"warehouse/{request.node.name}")
    create_table(path, WINDOWS)
    appends = Appends(WINDOWS, merge_key=("start", "item"))
    output = MergedOutput(path, APP, appends, NoSession())
    output.log.commit_epoch(1)

    def merge(batch: int, *changes: tuple[int, datetime, str | None, int], epoch: int = 1) -> int:
        kinds, *columns = zip(*changes, strict=True)
        schema = change_schema(WINDOWS)
        arrays = [
            pa.array(values, kind)
            for values, kind in zip([*columns, kinds], schema.types, strict=True)
        ]
        with ParquetStage(tmp_path, schema, FileOrigin(epoch, batch, 0, 0), kept=False) as file:
            file.write(pa.record_batch(arrays, schema=schema))
            name = file.finish().path
        return output.merge(batch, epoch, MergeSource([str(tmp_path / name)]))

    def rows() -> list[tuple[int, str | None, int]]:
        log = DeltaLog(path, "reader")
        found = log.files.read_files(log.files.files_at(log.version()))
        read = [row for each in found for row in each.to_pylist()]
        return sorted(((r["start"].hour, r["item"], r["n"]) for r in read), key=str)

    return output, merge, rows


def test_rows_replace_those_of_their_key_and_others_stay(windows):
    _, merge, rows = windows
    merge(0, (INSERT, TEN, "a", 1), (INSERT, TEN, None, 2))
    merge(1, (INSERT, ELEVEN, "a", 3))
    merge(2, (UPDATE_AFTER, TEN, "a", 4), (INSERT, TEN, "b", 5), (UPDATE_AFTER, TEN, None, 6))
    assert rows() == [(10, "a", 4), (10, "b", 5), (10, None, 6), (11, "a", 3)]
    merge(3, (DELETE, TEN, None, 0), (DELETE, ELEVEN, "a", 0), (INSERT, ELEVEN, "a", 7))
    assert rows() == [(10, "a", 4), (10, "b", 5), (11, "a", 7)]
    merge(4, (DELETE, TEN, "a", 0), (DELETE, TEN, "b", 0), (DELETE, ELEVEN, "a", 0))
    assert rows() == []


def test_a_batch_of_replacing_rows_is_committed_once_and_fenced(windows):
    output, merge, rows = windows
    merge(0, (INSERT, TEN, "a", 1))
    version = merge(1, (UPDATE_AFTER, TEN, "a", 2))
    assert merge(1, (UPDATE_AFTER, TEN, "a", 3)) == version
    DeltaLog(output.log.path, APP).commit_epoch(2)
    with pytest.raises(FencedError):
        merge(2, (UPDATE_AFTER, TEN, "a", 4))
    assert rows() == [(10, "a", 2)]
