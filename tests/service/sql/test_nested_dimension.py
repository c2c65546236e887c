"""Nested columns of a dimension: from a Delta table to joined rows."""

import json
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.source import captured_columns
from joins.dimension.changelog_scan import DimensionStates, PageLimit
from joins.dimension.changes import changes_between
from joins.durable.checkpoint import Checkpoint
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.envelope import changelog_schema, decode
from joins.kernels.changelog.fold_rows import CompactionTask, compact
from joins.kernels.index import segment
from joins.kernels.index.dimension_index import DimensionIndex
from joins.kernels.index.index import build
from joins.kernels.probe.probe import BatchContext, index_spec, join_batch, kernel_spec
from joins.lookback.history import HistoryPlaces
from joins.lookback.past_indexes import PastIndexes
from joins.lookback.row_matches import RowMatches
from joins.plan.plan import JoinPlan
from joins.plan.types import arrow_type
from joins.worker.index_source import IndexSource
from joins.worker.probe_task import IndexPlace
from service.jobs.store import plan_codec
from service.sql.planner.planner import plan
from tests.support.changelog import stage
from tests.support.feeds import PARTITIONS, feed
from tests.support.probe import PIN

SCRIPT = """
CREATE TABLE d (
    id BIGINT, part INT, address ROW<city STRING, geo ROW<lat DOUBLE, on_ DATE>>,
    tags ARRAY<STRING>, prices MAP<STRING, DECIMAL(6, 2)>, unread MAP<STRING, STRING>,
    PRIMARY KEY (id, part) NOT ENFORCED
) WITH ('connector' = 'delta', 'path' = 'd');
CREATE TABLE s (id BIGINT, part INT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (
    id BIGINT, city STRING, lat DOUBLE, tag STRING, tags ARRAY<STRING>, size INT,
    price DECIMAL(6, 2), address ROW<city STRING, geo ROW<lat DOUBLE, on_ DATE>>,
    prices MAP<STRING, DECIMAL(6, 2)>
) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.id, d.address.city, address.geo.lat, d.tags[1], d.tags, CARDINALITY(d.tags),
    d.prices['EUR'], d.address, d.prices
FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p ON s.id = d.id AND s.part = d.part
WHERE d.tags[2] IS NULL OR d.tags[2] <> 'hidden';
"""
MANY = 17_000  # so many rows are a segment of their own beside the later ones


def row(id_, city="Ulm", tags=("a", "b"), euros="1.50"):
    return {
        "id": id_,
        "part": id_ % 3,
        "address": {"city": city, "geo": {"lat": id_ / 8, "on_": None}},
        "tags": list(tags),
        "prices": [("EUR", Decimal(euros)), ("USD", None)],
        "unread": [("x", "y")],
    }


EMPTY = dict.fromkeys(("address", "tags", "prices", "unread"))


@dataclass(frozen=True)
class Made:
    """A dimension's changelog of several versions, made of a Delta table's commits.

    Attributes:
        truths: of each version, the rows of the table by id.
    """

    plan: JoinPlan
    log: DeltaLog
    root: Path
    truths: dict[int, dict[int, dict]]

    @property
    def spec(self):
        return index_spec(self.plan, self.plan.joins[0], PARTITIONS)

    def batches(self):
        return [
            b
            for t in self.log.files.read_files(self.log.files.files_at(self.log.version()))
            for b in t.to_batches()
        ]

    def answers(self, index, ids):
        """What each of `ids` is joined with, and the dead letters."""
        values = [json.dumps({"id": at, "part": at % 3}).encode() for at in ids]
        records = pa.RecordBatch.from_pydict(
            {
                "value": pa.array(values, pa.binary()),
                "partition": pa.array([0] * len(ids), pa.int32()),
                "offset": pa.array(range(len(ids)), pa.int64()),
            }
        )
        context = BatchContext(0, 0, (("d", 0),))
        joined = join_batch(kernel_spec(self.plan), records, {"d": index}, context)
        assert joined.dead_letters.num_rows == 0
        return joined.rows.to_pylist()

    def expected(self, version, ids):
        found = []
        for at in ids:
            of = self.truths[version].get(at, EMPTY)
            address, tags, prices = of["address"] or {}, of["tags"] or [], of["prices"] or []
            if tags[1:2] == ["hidden"]:
                continue
            found.append(
                {
                    "id": at,
                    "city": address.get("city"),
                    "lat": (address.get("geo") or {}).get("lat"),
                    "tag": next(iter(tags), None),
                    "tags": of["tags"],
                    "size": None if of["tags"] is None else len(tags),
                    "price": dict(prices).get("EUR"),
                    "address": of["address"],
                    "prices": of["prices"],
                }
            )
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("nested")
    planned = plan_codec.load(plan_codec.dump(plan(SCRIPT)))
    (dimension,) = planned.dimensions
    schema = pa.schema([(f.name, arrow_type(f.type)) for f in dimension.fields])
    source = feed(root / "d", root, dimension.fields, dimension.primary_key)
    columns = captured_columns(dimension.fields)
    create_table(root / "d-tables" / "changelog", changelog_schema(columns))
    log = DeltaLog(root / "d-tables" / "changelog", "app")
    result = Made(planned, log, root, {})

    def commit(*more):
        write_deltalake(root / "d", pa.Table.from_pylist(list(more), schema), mode="append")

    def follow(session=None):
        sent = len(source.topic.records)
        session = source.run(session)
        decoded = decode(source.topic.batch().slice(sent), columns, topic="t").batch
        number = len(result.truths)
        version = log.commit(number, 1, [stage(log.path, decoded, number=number)], {})
        found = DeltaTable(root / "d").to_pyarrow_table().cast(schema)
        result.truths[version] = {r["id"]: r for r in found.to_pylist()}
        return session

    commit(*(row(at) for at in range(MANY)))
    session = follow()
    DeltaTable(root / "d").update(updates={"tags": "make_array('x', 'hidden')"}, predicate="id = 5")
    DeltaTable(root / "d").update(updates={"address": "NULL", "prices": "NULL"}, predicate="id = 6")
    DeltaTable(root / "d").delete("id = 7")
    follow(session)
    commit(row(MANY, "Bonn", (), "9.99"), {**EMPTY, "id": MANY + 1, "part": (MANY + 1) % 3})
    follow(session)
    return result


IDS = [3, 5, 6, 7, MANY, MANY + 1, MANY + 2, 3, 12_345]


def test_a_lookup_gives_the_nested_values_of_its_version(made):
    source = IndexSource(made.log, None)
    assert [item.name for item in made.spec.fields if item.type.is_nested] == [
        "address",
        "tags",
        "prices",
    ]
    for version in made.truths:
        source.make(made.root / "index", version, made.spec)
        on_disk = DimensionIndex.attach(made.root / "index", version, made.spec)
        assert made.answers(on_disk, IDS) == made.expected(version, IDS)
    assert len(on_disk._segments) > 1


def test_columns_that_need_wide_offsets_hold_the_same_values(made, monkeypatch):
    source = IndexSource(made.log, None)
    for version, limit in zip(made.truths, (0, 0, 1 << 31), strict=True):
        monkeypatch.setattr(segment, "_LARGE_BYTES", limit)
        source.make(made.root / "wide", version, made.spec)
        index = DimensionIndex.attach(made.root / "wide", version, made.spec)
        assert made.answers(index, IDS) == made.expected(version, IDS)
    first, merged = (each.rows.schema for each in index._segments)
    assert first.field("tags").type == pa.large_list(pa.field("element", pa.large_string()))
    assert first.field("prices").type == pa.map_(pa.large_string(), pa.decimal128(6, 2))
    assert merged.field("tags").type == first.field("tags").type  # of wide rows and a narrow one


def test_a_compacted_changelog_gives_the_same_values(made):
    task = CompactionTask(("id", "part"), Progress(), 1, is_whole=False)
    left = compact(pa.Table.from_batches(made.batches()), task).rows
    build(made.root / "compacted", 1, made.spec, left.to_batches())
    index = DimensionIndex.attach(made.root / "compacted", 1, made.spec)
    assert made.answers(index, IDS) == made.expected(made.log.version(), IDS)


def test_states_and_changes_of_a_dimension_show_nested_values(made):
    (dimension,) = made.plan.dimensions
    states = DimensionStates(made.log, dimension, PARTITIONS)
    first, second, third = made.truths
    page = states.page(states.at(third), None, PageLimit(8))
    names = [item.name for item in dimension.fields]
    assert page.rows.select(names).to_pylist() == [
        made.truths[third][at] for at in (0, 1, 2, 3, 4, 5, 6, 8)
    ]
    limit = PageLimit(10)
    told = changes_between(states, (states.at(first), states.at(second)), None, limit).as_table()
    kinds = [(r["_change_type"], r["id"], r["tags"]) for r in told.to_pylist()]
    assert kinds == [
        ("update_preimage", 5, ["a", "b"]),
        ("update_postimage", 5, ["x", "hidden"]),
        ("update_preimage", 6, ["a", "b"]),
        ("update_postimage", 6, ["a", "b"]),
        ("delete", 7, ["a", "b"]),
    ]


def test_the_rows_that_a_record_has_met_are_shown_with_their_nested_values(made):
    version = made.log.version()
    index = IndexPlace("d", made.root / "past", made.spec)
    places = HistoryPlaces(
        app_id="app",
        checkpoint=Checkpoint(made.root / "checkpoint"),
        kernel=kernel_spec(made.plan),
        roles={"d": index},
        tables={"d": made.log.path.parent},
        dimensions={"d": made.plan.dimensions[0]},
        dead_letters=made.root / "dead_letters",
        replays=made.root / "replays",
        output=None,
        probe_kafka=made.plan.probe.source.kafka,
        sink=made.plan.sink,
    )
    pin = replace(PIN, versions={"d": version})
    record = pa.record_batch(
        {"value": [b'{"id": 3, "part": 0}'], "partition": pa.array([0], pa.int32()), "offset": [0]}
    )
    record = record.set_column(0, "value", record.column(0).cast(pa.binary()))
    with PastIndexes(places) as indexes:
        (role,) = RowMatches(places, indexes).of(record, indexes.of(pin.versions), pin)
    (met,) = role["rows"]
    assert met["address"] == {"city": "Ulm", "geo": {"lat": 0.375, "on_": None}}
    assert (met["tags"], met["prices"]) == (["a", "b"], {"EUR": 1.5, "USD": None})
