"""Joins in event time in the kernel: the version of each record's time, and the rest of ON."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from joins.kernels.index.index import DimensionIndex, build
from joins.kernels.probe.probe import (
    BatchContext,
    ParsedRecords,
    index_spec,
    join_arrivals,
    join_batch,
    kernel_spec,
    parse_records,
)
from joins.plan.plan import (
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
    WatermarkSpec,
)
from joins.plan.types import Cast, Column, SqlType, TypeName

BIGINT, STRING = SqlType(TypeName.BIGINT), SqlType(TypeName.STRING)
TIME = SqlType(TypeName.TIMESTAMP, 3)
CONTEXT = BatchContext(proctime_ms=1_000, batch_id=0, versions=(("rates", 1),))
FIELDS = (Field("id", BIGINT), Field("at", TIME), Field("unit", STRING), Field("rate", BIGINT))
RATES = Dimension(
    "rates",
    MysqlCdcSource("localhost", 3306, "cdc", "${secret:shop}", "shop", "rates"),
    FIELDS,
    ("id",),
    watermark=WatermarkSpec("at", Column("", "at", TIME)),
)
ORDERS = ProbeSource(
    "o",
    "orders",
    KafkaSource(KafkaOptions("localhost:9092", "orders")),
    (Field("id", BIGINT), Field("ts", TIME), Field("unit", STRING)),
    watermark=WatermarkSpec("ts", Column("o", "ts", TIME)),
)
BY_ID = KeyPair(Column("o", "id", BIGINT), "id")
BY_UNIT = KeyPair(Column("o", "unit", STRING), "unit")
HISTORY = [  # id, at, unit, rate, op
    (1, 10, "kg", 100, "c"),
    (1, 20, "lb", 200, "u"),
    (1, 30, None, 300, "u"),
    (2, 10, "kg", 400, "c"),
    (2, 15, None, None, "d"),
]


def plan(*pairs, join_type=JoinType.LEFT, time=True):
    at = Column("o", "ts", TIME) if time else None
    join = DimensionJoin("r", "rates", join_type, pairs or (BY_ID,), time=at)
    output = (
        OutputColumn("id", Column("o", "id", BIGINT)),
        OutputColumn("rate", Column("r", "rate", BIGINT)),
    )
    sink = DeltaSink("out", row_metadata=False)
    return JoinPlan("job", "", ORDERS, (RATES,), (join,), None, output, "out", sink)


def changelog():
    rows = []
    for pos, (id_, at, unit, rate, op) in enumerate(HISTORY):
        place = {"_epoch": 0, "_file": 1, "_pos": pos, "_row": 0, "_partition": 0, "_offset": pos}
        row = {"id": id_, "at": at * 1_000, "unit": unit, "rate": rate, "_op": op}
        rows.append({**row, **place, "_generation": 1})
    meta = [("_op", pa.string())]
    meta += [(name, pa.int64()) for name in ("_file", "_pos", "_row", "_offset")]
    meta += [(name, pa.int32()) for name in ("_epoch", "_partition", "_generation")]
    kinds = [pa.int64(), pa.timestamp("us"), pa.string(), pa.int64()]
    declared = [(item.name, kind) for item, kind in zip(FIELDS, kinds, strict=True)]
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema([*declared, *meta]))


def orders(*rows):
    values = []
    for id_, ms, unit in rows:
        ts = None if ms is None else f"1970-01-01 00:00:00.{ms:03}"
        values.append(json.dumps({"id": id_, "ts": ts, "unit": unit}).encode())
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(values, pa.binary()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([0] * count, pa.int64()),
        }
    )


def arrivals(spec, records):
    parsed: ParsedRecords = parse_records(spec, records, CONTEXT)
    times = parsed.columns["ts"].cast(pa.int64()).to_numpy() // 1_000
    event_time = (pa.array(times), pa.array([0] * len(times), pa.int64()))
    return parsed.as_arrivals(parsed.living(), *event_time)


@pytest.fixture
def joined(tmp_path):
    def join(the_plan, *rows, stages=2):
        spec, role = kernel_spec(the_plan), the_plan.joins[0]
        told = index_spec(the_plan, role, 1)
        build(tmp_path / told.digest, 1, told, [changelog()])
        indexes = {"r": DimensionIndex.attach(tmp_path / told.digest, 1, told)}
        if stages == 1:
            answer = join_batch(spec, orders(*rows), indexes, CONTEXT)
        else:
            answer = join_arrivals(spec, arrivals(spec, orders(*rows)), indexes, CONTEXT)
        return [tuple(row.values()) for row in answer.rows.to_pylist()]

    return join


ROWS = [(1, 9, None), (1, 10, None), (1, 29, None), (1, 30, None), (2, 14, None), (2, 15, None)]


@pytest.mark.parametrize("stages", [1, 2])
def test_each_record_sees_the_version_of_its_time(joined, stages):
    expected = [(1, None), (1, 100), (1, 200), (1, 300), (2, 400), (2, None)]
    assert joined(plan(), *ROWS, stages=stages) == expected
    inner = [row for row in expected if row[1] is not None]
    assert joined(plan(join_type=JoinType.INNER), *ROWS, stages=stages) == inner


def test_a_join_by_the_clock_sees_the_newest_row(joined):
    assert index_spec(plan(time=False), plan(time=False).joins[0], 1).versioned is None
    assert joined(plan(time=False), (1, 10, None), (2, 12, None), stages=1) == [(1, 300), (2, None)]


def test_a_dimension_without_event_time_is_joined_with_its_newest_row(joined):
    the_plan = plan()
    mixed = replace(the_plan, dimensions=(replace(RATES, watermark=None),))
    assert joined(mixed, (1, 10, None), (2, 12, None)) == [(1, 300), (2, None)]


def test_the_rest_of_on_is_judged_on_the_version_of_the_time(joined):
    rows = [
        (1, 12, "kg"),
        (1, 22, "kg"),
        (1, 22, "lb"),
        (1, 32, "lb"),
        (1, 32, None),
        (1, 12, None),
    ]
    found = [100, None, 200, None, None, None]
    assert joined(plan(BY_UNIT, BY_ID), *rows) == [(1, rate) for rate in found]
    safe = plan(replace(BY_UNIT, null_safe=True), BY_ID)
    assert joined(safe, *rows) == [(1, r) for r in [100, None, 200, None, 300, None]]


def test_a_second_equality_on_the_key_is_judged_too(joined):
    twice = plan(BY_ID, replace(BY_ID, probe=Cast(Column("o", "unit", STRING), BIGINT, safe=True)))
    assert joined(twice, (1, 12, "1"), (1, 12, "2"), (1, 12, None)) == [
        (1, 100),
        (1, None),
        (1, None),
    ]


def test_a_record_without_a_time_or_a_key_has_no_match(joined):
    assert joined(plan(), (1, None, None), (None, 12, None), stages=1) == [(1, None), (None, None)]
