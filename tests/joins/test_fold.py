"""`current` after each fold, on real Spark and Delta, against a fold record by record."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from structlog.testing import capture_logs

from joins.adapters.delta_log import DeltaLog, create_table
from joins.adapters.delta_source import captured_columns
from joins.build_side import read_changelog_state
from joins.fold import Fold, folded_version
from joins.fold_commits import newest_fold
from joins.index_source import IndexSource
from joins.kernels.changes import Progress
from joins.kernels.envelope import changelog_schema
from joins.kernels.index import DimensionIndex, IndexSpec
from joins.maintenance import (
    ChangelogMaintenance,
    CurrentMaintenance,
    DimensionKey,
    Upkeep,
    UpkeepSettings,
)
from joins.plan import Field
from joins.types import Member, SqlType, TypeName, array_type, map_type, row_type
from tests.support.changelog import SCHEMA, Changelog, record, stage, watermark

pytestmark = pytest.mark.integration
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
        self.fold = Fold(spark, self.changelog.log, self.current, ("id",))

    def commit(self, *rows):
        return self.changelog.commit(*rows)

    def run(self, version=None):
        at = self.changelog.log.version() if version is None else version
        state = read_changelog_state(self.changelog.log, at)
        return self.fold.run(at, state)

    def setting(self, name):
        """A setting of the session that merges."""
        return self.fold._spark.conf.get(f"spark.databricks.delta.{name}", None)

    def rows(self, version=None):
        """id → name in `current`."""
        table = DeltaTable(str(self.current.path), version=version)
        batches = [pq.read_table(uri) for uri in table.file_uris()]
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: row["name"] for row in rows}


@pytest.fixture
def folded(tmp_path, spark):
    return Folded(tmp_path, spark)


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
    restarted = Fold(folded.fold._spark, folded.changelog.log, folded.current, ("id",))
    state = read_changelog_state(folded.changelog.log, again)
    assert restarted.run(again, state) == again
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


def test_an_index_is_made_from_what_spark_has_folded(folded, tmp_path):
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


def test_nested_values_are_folded_and_indexed_as_they_are(spark, tmp_path):
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
    fold = Fold(spark, changelog, current, ("id",))
    fold.run(1, read_changelog_state(changelog, 1))
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
    (table,) = log.read_files(log.files_at(0))
    found = table.column("at").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    assert sorted(found.to_pylist()) == [-62_135_596_800_000_000, -1, 253_402_300_799_000_000]


def test_a_fold_is_known_when_its_entry_is_gone_and_goes_on_across_maintenance(folded):
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
    assert folded.current.oldest_entry() > 1
    assert (folded.rows(), folded_version(folded.current)) == (before, 4)
    assert folded.run() == 5  # the compaction; nothing to merge
    assert folded_version(folded.current) == 4
    last = folded.commit(record("d", 2, 50, 50), record("c", 3, 51, 51))
    assert folded.run() == folded_version(folded.current) == last
    assert folded.rows() == {1: "u11", 3: "c51"}
    unset = [n for n in ("txnAppId", "txnVersion") if folded.setting(f"write.{n}") is None]
    assert unset == ["txnAppId", "txnVersion"]


def test_a_fold_of_a_table_from_before_is_found_in_its_metadata(folded, spark):
    version = folded.commit(record("r", 1, 5, 0, row=-1), watermark(1))
    folded.run()
    other = DeltaLog(folded.current.path, "other:current")
    assert (other.last_batch(), folded_version(other)) == (None, version)


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
    assert folded.changelog.log.oldest_version() == 5
    for version in range(5, 11):
        reader = spark.read.format("delta").option("versionAsOf", version)
        found = sorted(row["_offset"] for row in reader.load(str(path)).collect())
        whole = list(folded.changelog.log.read_files(folded.changelog.log.files_at(version)))
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


def test_random_changes_folded_in_steps_are_the_fold_of_all_records(folded):
    choose = random.Random(326)
    rows = [record("r", id_, 5, id_, row=-1) for id_ in range(40)] + [watermark(40)]
    folded.commit(*rows)
    position, offset = 6, 41
    for _ in range(3):
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
        folded.run()
        assert folded.rows() == newest(rows)
