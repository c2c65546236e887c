"""Event time of a dimension's changelog: staged, committed, read back, and its versions kept."""

import json
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joins.adapters.delta.log import FileActions
from joins.dimension.build_side import (
    BuildTask,
    CommittedBatch,
    read_changelog_state,
    read_event_state,
    stage_changes,
)
from joins.dimension.dimension import DimensionPlaces, DimensionRuntime
from joins.dimension.maintenance import UpkeepSettings
from joins.durable.checkpoint import Checkpoint
from joins.job.upkeep import JobLogs, Maintenance
from joins.kernels.changelog.digest import ChangelogDigest
from joins.kernels.changelog.envelope import BinlogPosition, CapturedColumn, encode_watermark
from joins.kernels.index.index import DimensionIndex, IndexSpec
from joins.kernels.json.wire import Encoding
from joins.kernels.probe.probe import index_spec, kernel_spec
from joins.lookback.history import HistoryPlaces
from joins.lookback.past_indexes import PastIndexes
from joins.lookback.row_matches import RowMatches
from joins.plan.formats import JSON_FORMAT
from joins.plan.plan import (
    BoundedMode,
    DeltaSink,
    Dimension,
    DimensionJoin,
    Field,
    JoinPlan,
    JoinType,
    KafkaOptions,
    KafkaSource,
    KeyPair,
    MysqlCdcSource,
    OutputColumn,
    ProbeSource,
    TopicSource,
    WatermarkSpec,
)
from joins.plan.types import Call, Column, Constant, SqlType, TypeName
from joins.worker.index_source import DimensionTables, IndexSource, fold_metadata
from joins.worker.probe_task import IndexPlace
from joins.worker.staging import merge_reports
from tests.support.probe import PIN, clicks
from watermark.model import END_OF_TIME

BIGINT, TIME = SqlType(TypeName.BIGINT), SqlType(TypeName.TIMESTAMP, 3)
COLUMNS = (
    CapturedColumn("id", BIGINT, Encoding.INTEGER),
    CapturedColumn("at", TIME, Encoding.DATETIME),
    CapturedColumn("rate", BIGINT, Encoding.INTEGER),
)
FIELDS = tuple(Field(item.name, item.sql_type) for item in COLUMNS)
LATE_BY_TEN = Call("-", (Column("", "at", TIME), Constant("10", BIGINT)), TIME)
RATES = Dimension(
    "rates",
    MysqlCdcSource("localhost", 3306, "cdc", "${secret:shop}", "shop", "rates"),
    FIELDS,
    ("id",),
    watermark=WatermarkSpec("at", Column("", "at", TIME)),
)
VERSIONS = IndexSpec(("id",), ("id",), FIELDS, 1, versioned="at")
DONE = (None, encode_watermark(BinlogPosition(0, 1, 50), 1))


def row(id_, at_ms, rate):
    return {"id": id_, "at": at_ms * 1_000, "rate": rate}


def record(op, pos, *, after=None, before=None):
    source = {"epoch": 0, "file": 1, "pos": pos, "row": 0, "gen": 1, "ts_ms": pos}
    key = json.dumps({"id": (after or before)["id"]}).encode()
    value = {"before": before, "after": after, "op": op, "source": source, "ts_ms": 1}
    return key, json.dumps(value).encode()


def kafka(*records, first):
    keys, values = zip(*records, strict=True)
    count = len(records)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array([0] * count, pa.int32()),
            pa.array(range(first, first + count), pa.int64()),
        ],
        names=["key", "value", "partition", "offset"],
    )


class Side:
    """A build side without Spark: what its batches do, one after the other."""

    def __init__(self, root):
        self.root = root
        self.task = BuildTask("topic", root / "changelog", COLUMNS, 1, RATES.watermark)
        self.places = DimensionPlaces(
            "topic",
            1,
            root / "changelog",
            root / "current",
            root / "index",
            (VERSIONS,),
            root / "spark",
        )
        self.offset, self.batch = 0, 0
        self.restart()

    def restart(self):
        self.dimension = DimensionRuntime(
            RATES, self.places, self.task, app_id="app", on_watermark=lambda *told: None
        )
        self.dimension.open()

    def commit(self, *records):
        """Stage and commit `records`; returns the version."""
        before = self.dimension.state
        rows = kafka(*records, first=self.offset)
        self.offset += len(records)
        (told,) = stage_changes(iter([rows]), task=self.task, batch=self.batch, state=before)
        report = merge_reports(told.column(0).to_pylist())
        digest = ChangelogDigest(before.high_water)
        digest.merge(report.details[0])
        state = digest.state_after(before)
        change = FileActions(report.files["changelog"], counters=state.events.counters())
        version = self.dimension.changelog.commit_change(self.batch, 1, change, {})
        self.batch += 1
        self.dimension._committed(CommittedBatch(version, state, (), digest.streamed, 0))
        return version

    def watermark(self, version):
        return self.dimension.event_watermarks(version)[0][0]

    def seen(self, version, times=range(100)):
        """time → rate of id 1 at `version`."""
        index = DimensionIndex.attach(self.root / "index", version, VERSIONS)
        at, rows = index.lookup_at([pa.array([1] * len(times))], np.array(times))
        rates = index.take(rows, ["rate"]).column(0).to_pylist()
        return {times[one]: rate for one, rate in zip(at.tolist(), rates, strict=True)}


@pytest.fixture
def side(tmp_path):
    return Side(tmp_path)


def test_a_deletion_keeps_the_rowtime_of_its_row(side):
    version = side.commit(
        record("c", 1, after=row(1, 40, 7)),
        record("u", 2, after=row(1, 60, 8), before=row(1, 40, 7)),
        record("d", 3, before=row(1, 60, 8)),
    )
    (file,) = side.dimension.changelog.files.files_at(version)
    rows = pq.read_table(file, columns=["_op", "id", "at", "rate"])
    assert rows.column("at").cast(pa.int64()).to_pylist() == [40_000, 60_000, 60_000]
    assert rows.to_pylist()[2]["rate"] is None
    side.dimension.keeper.prepare(version)
    assert side.seen(version) == dict.fromkeys(range(40, 60), 7)


def test_watermarks_are_those_of_the_version_that_is_asked_for(side):
    versions = [
        side.commit(record("r", 0, after=row(1, 30, 1))),
        side.commit(DONE),
        side.commit(record("u", 5, after=row(1, 50, 2), before=row(1, 30, 1))),
        side.commit(record("u", 6, after=row(1, 20, 3), before=row(1, 50, 2))),
        side.commit(record("u", 7, after=row(1, 90, 4), before=row(1, 20, 3))),
    ]
    expected = [None, 30, 50, 50, 90]
    assert [side.watermark(each) for each in versions] == expected
    assert side.watermark(0) is None
    side.restart()
    assert [side.watermark(each) for each in versions] == expected
    assert side.dimension.state == read_changelog_state(side.dimension.changelog, versions[-1])
    side.commit(record("c", 8, after=row(2, 70, 5)))
    assert side.watermark(side.dimension.version) == 90


def test_activity_is_known_once_records_come(side):
    version = side.commit(DONE)
    before_ms = time.time_ns() // 1_000_000
    side.restart()
    assert side.dimension.event_watermarks(version) == {0: (None, None)}
    version = side.commit(record("c", 3, after=row(1, 5, 1)))
    ((watermark, active_at_ms),) = side.dimension.event_watermarks(version).values()
    assert watermark == 5
    assert active_at_ms >= before_ms


def test_a_topic_with_an_end_has_nothing_to_come(side):
    version = side.commit(record("r", 1, after=row(1, 5, 1)), DONE)
    topic = TopicSource(KafkaOptions("b:1", "rates"), JSON_FORMAT, bounded_mode=BoundedMode.LATEST)
    side.dimension.dimension = replace(RATES, source=topic)
    assert side.dimension.event_watermarks(version) == {0: (END_OF_TIME.timestamp_ms, None)}


def test_an_expression_of_the_columns_gives_the_watermark(tmp_path):
    side = Side(tmp_path)
    spec = WatermarkSpec("at", LATE_BY_TEN)
    side.task = BuildTask("topic", tmp_path / "changelog", COLUMNS, 1, spec)
    assert side.watermark(side.commit(DONE, record("c", 3, after=row(1, 35, 1)))) == 25


# Versions that are kept
# ----------------------------------------------------------------------------------------------


def updated(side, count=12):
    """Rates 1, 2, … from 10, 20, … on; each version of the changelog has one more."""
    side.commit(DONE)
    for n in range(1, count + 1):
        before = row(1, 10 * n - 10, n - 1)
        side.commit(record("u", n, after=row(1, 10 * n, n), before=before))
    return side.dimension.version


def keep_up(side, leased):
    settings = UpkeepSettings(checkpoint_every=3, min_files=2)
    fold(side)
    maintenance = Maintenance([side.dimension], JobLogs(), 1, settings)
    for step in maintenance.steps({"rates": leased}):
        step.work()


def fold(side):
    told = fold_metadata(side.dimension.version, side.dimension.state)
    side.dimension.current.commit(side.dimension.version, 1, [], told)


def test_maintenance_drops_what_has_ended_and_leased_versions_keep_it(side):
    version = updated(side)
    side.dimension.keeper.trim_to(75)
    side.dimension.keeper.trim_to(30)  # it is never taken back
    keep_up(side, version - 2)
    log = side.dimension.changelog
    newest = log.version()
    assert newest > version
    rows = sum(log.files.rows_at(newest).values())
    source = IndexSource.of(DimensionTables(log.path, side.places.current, "app:rates"))
    source.make(side.places.index, newest, VERSIONS)
    assert side.seen(newest, range(75, 130)) == {
        t: t // 10 if t < 120 else 12 for t in range(75, 130)
    }
    assert rows == 1 + 6  # the watermark record, and the versions from 70 on
    source.remake(side.places.index, version - 2, VERSIONS)
    assert side.seen(version - 2) == {t: t // 10 for t in range(10, 100)}
    assert read_event_state(log, newest, [0]).watermarks == {0: 120}


def test_without_a_trim_all_versions_stay(side):
    version = updated(side)
    keep_up(side, version)
    log = side.dimension.changelog
    assert sum(log.files.rows_at(log.version()).values()) == 13


def test_the_index_is_made_of_the_changelog_although_there_is_a_fold(side):
    version = updated(side, 4)
    fold(side)
    source = IndexSource.of(
        DimensionTables(side.places.changelog, side.places.current, "app:rates")
    )
    source.make(side.places.index, version, VERSIONS)
    assert side.seen(version, range(45)) == {t: t // 10 for t in range(10, 45)}


def test_the_keeper_leaves_out_what_nobody_asks_for(side):
    version = updated(side, 5)
    side.dimension.keeper.trim_to(35)
    side.dimension.keeper.prepare(version)
    index = DimensionIndex.attach(side.root / "index", version, VERSIONS)
    assert index.num_rows == 3
    version = side.commit(record("u", 9, after=row(1, 60, 6), before=row(1, 50, 5)))
    side.dimension.keeper.trim_to(55)
    side.dimension.keeper.prepare(version)
    assert side.seen(version, range(55, 70)) == {t: t // 10 for t in range(55, 70)}


# Looking back
# ----------------------------------------------------------------------------------------------


def test_the_row_that_a_record_has_met_is_the_version_of_its_time(side):
    version = updated(side, 4)
    ts, id_ = Column("o", "ts", TIME), Column("o", "id", BIGINT)
    probe = ProbeSource(
        "o",
        "orders",
        KafkaSource(KafkaOptions("localhost:9092", "orders")),
        (Field("id", BIGINT), Field("ts", TIME)),
        watermark=WatermarkSpec("ts", ts),
    )
    join = DimensionJoin("r", "rates", JoinType.INNER, (KeyPair(id_, "id"),), time=ts)
    output = (OutputColumn("id", id_),)
    plan = JoinPlan("job", "", probe, (RATES,), (join,), None, output, "out", DeltaSink("out"))
    places = HistoryPlaces(
        app_id="app",
        checkpoint=Checkpoint(side.root / "checkpoint"),
        kernel=kernel_spec(plan),
        roles={"r": IndexPlace("rates", side.root / "index", index_spec(plan, join, 1))},
        tables={"rates": side.root},
        dimensions={"rates": RATES},
        dead_letters=side.root / "dead_letters",
        replays=side.root / "replays",
        output=None,
        probe_kafka=probe.source.kafka,
        sink=plan.sink,
    )
    pin = replace(PIN, versions={"rates": version})
    with PastIndexes(places) as indexes:
        order = clicks(b'{"id": 1, "ts": "1970-01-01 00:00:00.025"}')
        (role,) = RowMatches(places, indexes).of(order, indexes.of(pin.versions), pin)
    assert [(row["id"], row["rate"]) for row in role["rows"]] == [(1, 2)]
