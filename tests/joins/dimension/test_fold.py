"""`current` after each fold, on real Spark and Delta, against a fold record by record."""

import random
import threading
import time
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from structlog.testing import capture_logs

from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.source import captured_columns
from joins.dimension import fold_files
from joins.dimension.build_side import read_changelog_state
from joins.dimension.fold import Fold, folded_version
from joins.dimension.fold_files import FoldFiles
from joins.dimension.maintenance import (
    ChangelogMaintenance,
    CurrentMaintenance,
    DimensionKey,
    Upkeep,
    UpkeepSettings,
)
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.envelope import changelog_schema
from joins.kernels.index.index import DimensionIndex, IndexSpec
from joins.plan.errors import SinkError
from joins.plan.plan import Field
from joins.plan.types import Member, SqlType, TypeName, array_type, map_type, row_type
from joins.worker.index_source import IndexSource, newest_fold
from tests.support.changelog import SCHEMA, Changelog, record, stage, watermark
from tests.support.lanes import some_of
from tests.support.wait import wait_until

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("name", SqlType(TypeName.STRING)))
STRING = SqlType(TypeName.STRING)
PRICES = map_type(row_type(Member("n", SqlType(TypeName.INT))))
BY_ID = IndexSpec(("id",), ("id",), FIELDS, 1)


class Folded:
    """A changelog and its `current`."""

    def __init__(self, directory, spark):
        self.changelog = Changelog(directory / "changelog")
        Fold.create(directory / "current", SCHEMA)
        self.current = DeltaLog(directory / "current", "app:current")
        self.fold = Fold(spark, self.changelog.log, self.current, ("id",), 1)

    def commit(self, *rows):
        return self.changelog.commit(*rows)

    def other(self, epoch=1):
        return Fold(self.fold._spark, self.changelog.log, self.current, ("id",), epoch)

    def run(self, version=None):
        at = self.changelog.log.version() if version is None else version
        state = read_changelog_state(self.changelog.log, at)
        return self.fold.run(at, state)

    def setting(self, name):
        return self.fold._spark.conf.get(f"spark.databricks.delta.{name}", None)

    def rows(self, version=None):
        """id → name in `current`."""
        table = DeltaTable(str(self.current.path), version=version)
        batches = [pq.read_table(uri) for uri in table.file_uris()]
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: row["name"] for row in rows}

    def engines(self):
        history = DeltaTable(str(self.current.path)).history()[::-1]
        made = [one for one in history if one["operation"] in ("MERGE", "WRITE")]
        return ["sluice" if one["engineInfo"] == "Sluice" else "spark" for one in made]

    def feed(self, spark, first):
        reader = spark.read.format("delta").option("readChangeFeed", True)
        rows = reader.option("startingVersion", first).load(str(self.current.path)).collect()
        return sorted((r._commit_version, r._change_type, r.id, r.name) for r in rows)


@pytest.fixture
def folded(tmp_path, spark):
    return Folded(tmp_path, spark)


@pytest.fixture
def by_spark(monkeypatch):
    monkeypatch.setattr(fold_files, "HERE_ROWS", 0)
    monkeypatch.setattr(fold_files, "MAX_CHANGES", 0)


def test_each_fold_names_the_changelog_version_that_it_equals(folded):
    assert folded.fold.folded_version() is None
    first = folded.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
    assert folded.run() == folded.fold.folded_version() == first
    second = folded.commit(
        record("u", 1, 9, 3),
        record("d", 2, 10, 4),
        record("c", 3, 11, 5),
        record("u", 3, 11, 6, row=1),
        record("d", 8, 12, 7),
    )
    assert folded.run() == folded.fold.folded_version() == second
    assert folded.rows() == {1: "u9", 3: "u11"}
    assert folded.rows(version=1) == {1: "r5", 2: "r5"}
    before = folded.current.version()
    assert folded.run() == folded.run(first) == second
    assert folded.current.version() == before
    again = folded.commit(record("c", 2, 20, 8))
    state = read_changelog_state(folded.changelog.log, again)
    assert folded.other().run(again, state) == again
    assert folded.rows() == {1: "u9", 2: "c20", 3: "u11"}


def test_a_source_that_says_again_that_it_is_complete_is_not_folded(folded):
    first = folded.commit(record("r", 1, 5, 0, row=-1), watermark(1))
    folded.run()
    table_version = folded.current.version()
    again = folded.commit(watermark(2))
    assert folded.run() == again
    assert (folded.current.version(), folded.fold.folded_version()) == (table_version, first)
    last = folded.commit(record("d", 1, 9, 3))
    assert folded.run() == folded.fold.folded_version() == last
    assert folded.rows() == {}


def test_the_watermark_of_a_newer_generation_alone_is_folded(folded):
    folded.commit(record("r", 1, 5, 0, row=-1), watermark(1))
    folded.run()
    folded.commit(watermark(2, generation=2))
    folded.run()
    assert folded.rows() == {}, "the table was empty when it was copied anew"


def test_an_index_is_made_from_what_spark_has_folded(folded, tmp_path, by_spark):
    folded.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
    first = folded.commit(record("d", 2, 9, 3))
    folded.run()
    fold = newest_fold(folded.current, first)
    assert (fold.changelog_version, fold.progress) == (
        first,
        Progress({(0, 1): 2}, {0: (0, 1, 9, 0)}),
    )
    version = folded.commit(record("u", 1, 11, 4), record("c", 3, 12, 5))
    source = IndexSource(folded.changelog.log, folded.current)
    with capture_logs() as logs:
        source.make(tmp_path / "index", version, BY_ID)
    assert [log["made_from"] for log in logs] == ["fold"]
    index = DimensionIndex.attach(tmp_path / "index", version, BY_ID)
    found, rows = index.lookup([pa.array([1, 2, 3])])
    taken = index.take(rows, ["name"]).column(0).to_pylist()
    assert (found.tolist(), taken) == ([0, 2], ["u11", "c12"])


@pytest.mark.parametrize("engine", ["sluice", "spark"])
def test_nested_values_are_folded_and_indexed_as_they_are(spark, tmp_path, request, engine):
    fields = (
        *FIELDS,
        Field("v", row_type(Member("tags", array_type(STRING)), Member("m", PRICES))),
    )
    schema = changelog_schema(captured_columns(fields))
    create_table(tmp_path / "changelog", schema)
    changelog = DeltaLog(tmp_path / "changelog", "app")
    Fold.create(tmp_path / "current", schema)
    current = DeltaLog(tmp_path / "current", "app:current")
    value = {"tags": ["a", None], "m": [("EUR", {"n": 1}), ("USD", None)]}
    other = {"tags": [], "m": None}

    def commit(*rows):
        number = changelog.version()
        batch = pa.RecordBatch.from_pylist([{"v": None, **row} for row in rows], schema=schema)
        return changelog.commit(number, 1, [stage(changelog.path, batch, number=number)], {})

    commit(
        *({**record("r", at, 5, at, row=-1), "v": value} for at in (1, 2, 3)),
        record("r", 4, 5, 4, row=-1),
        watermark(5),
    )
    fold = Fold(spark, changelog, current, ("id",), 1)
    fold.run(1, read_changelog_state(changelog, 1))
    if engine == "spark":
        request.getfixturevalue("by_spark")
    last = commit({**record("u", 1, 9, 6), "v": other}, record("u", 2, 9, 7), record("d", 3, 9, 8))
    fold.run(last, read_changelog_state(changelog, last))
    with capture_logs() as logs:
        spec = IndexSpec(("id",), ("id",), fields, 1)
        IndexSource(changelog, current).make(tmp_path / "index", last, spec)
    assert [log["made_from"] for log in logs] == ["fold"]
    index = DimensionIndex.attach(tmp_path / "index", last, spec)
    found, rows = index.lookup([pa.array([1, 2, 3, 4])])
    taken = index.take(rows, ["v"]).column(0).to_pylist()
    assert (found.tolist(), taken) == ([0, 1, 3], [other, None, None])
    before = DeltaTable(str(current.path), version=current.version() - 1)
    kept = [row for uri in before.file_uris() for row in pq.read_table(uri).to_pylist()]
    assert {row["id"]: row["v"] for row in kept} == {1: value, 2: value, 3: value, 4: None}


def test_instants_that_spark_has_written_are_read_back_whatever_the_year(spark, tmp_path):
    """Spark writes them as INT96, which other readers take for nanoseconds of 64 bits."""
    instants = ["0001-01-01 00:00:00Z", "1969-12-31 23:59:59.999999Z", "9999-12-31 23:59:59Z"]
    values = ", ".join(f"timestamp'{each}'" for each in instants)
    frame = spark.range(1).selectExpr(f"explode(array({values})) AS at").coalesce(1)
    frame.write.format("delta").save(str(tmp_path / "t"))
    log = DeltaLog(tmp_path / "t", "app")
    (table,) = log.files.read_files(log.files.files_at(0))
    found = table.column("at").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    assert sorted(found.to_pylist()) == [-62_135_596_800_000_000, -1, 253_402_300_799_000_000]


def test_a_fold_is_known_when_its_entry_is_gone_and_goes_on_across_maintenance(folded, request):
    folded.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
    for at in range(3):
        folded.commit(record("u", 1, 9 + at, 3 + at))
        folded.run()
    eager = UpkeepSettings(checkpoint_every=1, min_files=2, current_retention_hours=0)
    upkeep = ChangelogMaintenance(
        Upkeep(folded.changelog.log, 1, eager), DimensionKey(("id",), partitions=1)
    )
    before = folded.rows()
    upkeep.run(4, folded_version(folded.current))
    CurrentMaintenance(Upkeep(folded.current, 1, eager)).run()
    assert folded.current.versions.oldest_entry() > 1
    assert (folded.rows(), folded_version(folded.current)) == (before, 4)
    assert folded.run() == 5  # the compaction; nothing to merge
    assert folded_version(folded.current) == 4
    last = folded.commit(record("d", 2, 50, 50), record("c", 3, 51, 51))
    assert folded.run() == folded_version(folded.current) == last
    assert folded.rows() == {1: "u11", 3: "c51"}
    request.getfixturevalue("by_spark")
    last = folded.commit(record("d", 3, 60, 60))
    assert folded.run() == folded_version(folded.current) == last
    assert (folded.rows(), folded.engines()[-1]) == ({1: "u11"}, "spark")
    unset = [n for n in ("txnAppId", "txnVersion") if folded.setting(f"write.{n}") is None]
    assert unset == ["txnAppId", "txnVersion"]


def test_change_data_stays_as_long_as_the_files_that_were_replaced(folded, spark):
    folded.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
    folded.run()
    folded.commit(record("u", 1, 9, 3), record("d", 2, 9, 4))
    folded.run()
    version = folded.current.version()
    changes = [("delete", 2, "r5"), ("update_postimage", 1, "u9"), ("update_preimage", 1, "r5")]
    for hours, left in ((168, 1), (0, 0)):
        assert folded.feed(spark, version)[:3] == [(version, *change) for change in changes]
        settings = UpkeepSettings(current_retention_hours=hours)
        CurrentMaintenance(Upkeep(folded.current, 1, settings)).run()
        assert len(list((folded.current.path / "_change_data").iterdir())) == left
    assert folded.rows() == {1: "u9"}


def test_a_fold_of_a_table_from_before_is_found_in_its_metadata(folded, spark):
    version = folded.commit(record("r", 1, 5, 0, row=-1), watermark(1))
    folded.run()
    other = DeltaLog(folded.current.path, "other:current")
    assert (other.batches.last_batch(), folded_version(other)) == (None, version)


@pytest.mark.experiment
def test_spark_reads_every_version_that_maintenance_left(folded, spark):
    folded.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
    for at in range(8):
        folded.commit(record("u", 1, 9 + at, 3 + at))
    folded.run()
    path = folded.changelog.log.path
    settings = UpkeepSettings(checkpoint_every=3, min_files=2)
    upkeep = ChangelogMaintenance(
        Upkeep(folded.changelog.log, 1, settings), DimensionKey(("id",), 1)
    )
    upkeep.run(5, 5)
    assert folded.changelog.log.versions.oldest_version() == 5
    for version in range(5, 11):
        reader = spark.read.format("delta").option("versionAsOf", version)
        found = sorted(row["_offset"] for row in reader.load(str(path)).collect())
        whole = list(
            folded.changelog.log.files.read_files(folded.changelog.log.files.files_at(version))
        )
        assert found == sorted(at for t in whole for at in t.column("_offset").to_pylist())
    upkeep.run(10, 10)
    log = DeltaTable(str(path))
    assert log.version() == 11
    assert spark.read.format("delta").load(str(path)).count() == log.to_pyarrow_table().num_rows


def test_a_snapshot_row_behind_the_watermark_does_not_bring_a_deleted_row_back(folded):
    folded.commit(record("r", 1, 5, 0, row=-1), record("d", 2, 9, 1), watermark(2))
    folded.run()
    folded.commit(record("r", 2, 5, 3, row=-1), record("r", 3, 5, 0, row=-1, partition=1))
    folded.commit(watermark(1, partition=1))
    folded.run()
    assert folded.rows() == {1: "r5", 3: "r5"}


def test_rows_that_only_an_abandoned_generation_saw_are_not_there(folded):
    """Deleted between two attempts to copy: no record says so, the missing copy does."""
    folded.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1))
    new = {"generation": 2}
    folded.commit(record("r", 1, 50, 2, row=-1, **new), watermark(3, **new))
    folded.run()
    assert folded.rows() == {1: "r50"}


def test_a_later_generation_replaces_the_earlier_one_when_it_is_complete(folded):
    first = folded.commit(
        record("r", 1, 5, 0, row=-1),
        record("r", 2, 5, 1, row=-1),
        record("r", 3, 5, 2, row=-1),
        watermark(3),
    )
    assert folded.run() == first
    new = {"generation": 2}
    folded.commit(record("d", 3, 60, 4, **new))
    # The copy of row 3 was read before it was deleted and arrives after that.
    folded.commit(record("r", 1, 50, 5, row=-1, **new), record("r", 3, 50, 6, row=-1, **new))
    assert folded.run() == first
    assert folded.rows() == {1: "r5", 2: "r5", 3: "r5"}
    last = folded.commit(watermark(7, **new))
    assert folded.run() == last
    assert folded.rows() == {1: "r50"}


def place(row):
    return (row["_epoch"], row["_file"], row["_pos"], row["_row"], row["_offset"])


def newest(rows):
    """id → name, record by record."""
    found = {}
    for row in rows:
        held = found.get(row["id"])
        if row["_op"] != "w" and (held is None or place(row) > place(held)):
            found[row["id"]] = row
    return {id_: row["name"] for id_, row in found.items() if row["_op"] != "d"}


ENGINES = {
    "here": ["sluice"] * 4,
    "aside": ["sluice"] * 4,
    "spark": ["spark"] * 4,
    "by_turns": ["sluice", "spark", "sluice", "spark"],
}


@pytest.fixture(params=some_of(ENGINES.keys(), "here", "by_turns"))
def engines(request, monkeypatch):
    """Who makes each of the folds, whatever its size; called before the fold."""

    def choose(number):
        is_spark = ENGINES[request.param][number] == "spark"
        monkeypatch.setattr(fold_files, "HERE_ROWS", 50_000 if request.param == "here" else 0)
        monkeypatch.setattr(fold_files, "MAX_CHANGES", 0 if is_spark else 50_000)
        return ENGINES[request.param][: number + 1]

    return choose


def test_random_changes_folded_in_steps_are_the_fold_of_all_records(folded, engines, spark):
    choose = random.Random(326)
    rows = [record("r", id_, 5, id_, row=-1) for id_ in range(40)] + [watermark(40)]
    folded.commit(*rows)
    position, offset = 6, 41
    states = [{}]
    for number in range(4):
        for _ in range(2):
            changes = []
            for _ in range(30):
                position += choose.choice((0, 1, 7))
                op = choose.choice("cuud")
                row = offset
                changes.append(record(op, choose.randrange(60), position, offset, row=row))
                offset += 1
            choose.shuffle(changes)  # files of one commit come in no order
            folded.commit(*changes)
            rows += changes
        made_by = engines(number)
        folded.run()
        states.append(newest(rows))
        assert (folded.rows(), folded.engines()) == (states[-1], made_by)
    first = folded.current.version() - 3
    assert folded.feed(spark, first) == sorted(
        (first + number, *change)
        for number, (before, after) in enumerate(pairwise(states))
        for change in differences(before, after)
    )


def differences(before, after):
    """What Delta's feed says of two states of a table whose rows all change their name."""
    for id_ in before.keys() | after.keys():
        old, new = before.get(id_), after.get(id_)
        if old != new:
            is_update = id_ in before and id_ in after
            if id_ in before:
                yield ("update_preimage" if is_update else "delete"), id_, old
            if id_ in after:
                yield ("update_postimage" if is_update else "insert"), id_, new


def test_the_first_fold_of_two_runners_is_made_once(folded):
    folded.commit(record("r", 1, 5, 0, row=-1), watermark(1))
    late = folded.other(epoch=1)
    state = read_changelog_state(folded.changelog.log, 1)
    again = folded.commit(record("u", 1, 9, 2))
    fold = folded.other(epoch=2)

    def meanwhile(_):
        late.run(1, state)
        return written(_)

    written = FoldFiles.write_aside
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FoldFiles, "write_aside", lambda files: (patch.undo(), meanwhile(files))[1])
        with pytest.raises(SinkError, match="was made of version"):
            fold.run(again, read_changelog_state(folded.changelog.log, again))
    assert fold.run(again, read_changelog_state(folded.changelog.log, again)) == again
    assert folded.rows() == {1: "u9"}


def test_spark_folds_when_the_process_fails(folded, monkeypatch):
    monkeypatch.setattr(fold_files, "HERE_ROWS", 0)
    monkeypatch.setattr(fold_files.sys, "executable", "/bin/false")
    folded.commit(record("r", 1, 5, 0, row=-1), watermark(1))
    with capture_logs() as logs:
        assert folded.run() == 1
    assert folded.rows() == {1: "r5"}
    assert [(one["log_level"], one["status"]) for one in logs] == [("warning", 1)]


# A runner that does not know yet that another one has taken over
# ------------------------------------------------------------------------------------------------


class _Interrupted(Fold):
    """A fold of a stale runner: `meanwhile` is done between its reading and its merge."""

    def __init__(self, of, meanwhile):
        super().__init__(of.fold._spark, of.changelog.log, of.current, ("id",), 1)
        self._meanwhile = meanwhile

    def _newest(self, files, marks):
        self._meanwhile()
        return super()._newest(files, marks)


class _Halted(Fold):
    """A fold of a stale runner: its merge has begun and waits in a task until it may go on."""

    def __init__(self, of, directory):
        super().__init__(of.fold._spark, of.changelog.log, of.current, ("id",), 1)
        self._reached, self.go_on = str(directory / "reached"), directory / "go_on"

    def _newest(self, files, marks):
        found = super()._newest(files, marks)
        reached, go_on = self._reached, str(self.go_on)

        def wait(batches):
            Path(reached).touch()
            while not Path(go_on).exists():
                time.sleep(0.01)
            yield from batches

        return found.mapInArrow(wait, found.schema)

    def begins(self):
        wait_until(Path(self._reached).exists, what="the merge has begun", deadline_s=60)


def changed_behind(folded):
    """Folded once; behind that row 2 is changed, row 3 comes, and later both are deleted.

    The version up to which a stale runner knows the changelog, its state there, and the newest.
    """
    folded.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
    folded.run()
    known = folded.commit(record("u", 2, 9, 3), record("c", 3, 10, 4))
    state = read_changelog_state(folded.changelog.log, known)
    last = folded.commit(record("d", 2, 20, 5), record("d", 3, 21, 6), record("c", 4, 22, 7))
    return known, state, last


def once_files_are_written(monkeypatch, act):
    """Another fold commits between the files of the next one and its commit."""
    written = FoldFiles.write_aside

    def overtaken(files):
        staged = written(files)
        monkeypatch.undo()
        act()
        return staged

    monkeypatch.setattr(FoldFiles, "write_aside", overtaken)


@pytest.fixture
def taken_over(folded, by_spark):
    known, state, _ = changed_behind(folded)
    return folded, known, state


def test_a_stale_fold_that_merges_behind_the_newer_one_changes_nothing(taken_over):
    folded, known, state = taken_over
    stale = _Interrupted(folded, folded.run)
    stale.run(known, state)
    assert folded.rows() == {1: "r5", 4: "c22"}
    assert folded_version(folded.current) == folded.changelog.log.version()


def test_a_stale_fold_that_merges_beside_the_newer_one_fails(taken_over, tmp_path):
    folded, known, state = taken_over
    stale = _Halted(folded, tmp_path)
    failed = []

    def run():
        try:
            stale.run(known, state)
        except Exception as error:
            failed.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        stale.begins()
        folded.run()
    finally:
        stale.go_on.touch()
        thread.join()
    assert len(failed) == 1
    assert "Concurrent" in failed[0]
    assert folded.rows() == {1: "r5", 4: "c22"}
    assert folded_version(folded.current) == folded.changelog.log.version()


def test_a_newer_fold_that_a_stale_one_overtakes_is_repeated_and_right(taken_over):
    folded, known, state = taken_over
    stale = Fold(folded.fold._spark.newSession(), folded.changelog.log, folded.current, ("id",), 1)
    newer = _Interrupted(folded, lambda: stale.run(known, state))
    at = folded.changelog.log.version()
    newer.run(at, read_changelog_state(folded.changelog.log, at))
    folded.run()
    assert folded.rows() == {1: "r5", 4: "c22"}
    assert folded_version(folded.current) == at


def test_a_stale_fold_that_commits_behind_the_newer_one_changes_nothing(folded, monkeypatch):
    """Files that it has written of an older version of the table are in no version."""
    known, state, last = changed_behind(folded)
    stale = folded.other()
    once_files_are_written(monkeypatch, folded.run)
    before = folded.current.version()
    stale.run(known, state)
    assert folded.rows() == {1: "r5", 4: "c22"}
    assert (folded_version(folded.current), folded.current.version()) == (last, before + 1)


def test_a_newer_fold_that_a_stale_one_overtakes_is_made_again(folded, monkeypatch):
    known, state, last = changed_behind(folded)
    stale = folded.other()
    once_files_are_written(monkeypatch, lambda: stale.run(known, state))
    with pytest.raises(SinkError, match="was made of version"):
        folded.run()
    assert folded.rows() == {1: "r5", 2: "u9", 3: "c10"}
    assert folded.run() == folded_version(folded.current) == last
    assert folded.rows() == {1: "r5", 4: "c22"}
