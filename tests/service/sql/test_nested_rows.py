"""Nested columns from SQL and records to joined rows, dead letters and a Delta table."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, create_table
from joins.kernels.index.index import DimensionIndex, build
from joins.kernels.probe.probe import BatchContext, JoinedBatch, index_spec, join_batch, kernel_spec
from joins.plan.errors import SinkError
from joins.plan.plan import SinkWriter
from service.jobs.store import plan_codec
from service.sql.planner.planner import plan
from tests.support.changelog import batch_of, record, stage
from tests.support.event_batches import EventJob

SCRIPT = """
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (
    payload ROW<`user` ROW<id BIGINT NOT NULL, mail STRING>, paid DECIMAL(6, 2)>,
    items ARRAY<ROW<sku STRING, n INT>>, labels MAP<STRING, STRING>, unread ROW<x INT>,
    p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (
    name STRING, mail STRING, first STRING, size INT, label STRING,
    items ARRAY<ROW<what STRING, n BIGINT NOT NULL>>, labels MAP<STRING, STRING>
) WITH ('connector' = 'delta', 'path' = 'o', 'row-metadata' = 'false');
INSERT INTO o SELECT d.name, payload.`user`.mail, items[1].sku, CARDINALITY(items), s.labels['a'],
    items, labels
FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p ON s.payload.`user`.id = d.id
WHERE payload IS NULL OR payload.paid > 1;
"""
USER = {"user": {"id": 1, "mail": "a@b"}, "paid": "1.50"}
RECORDS = [
    {"payload": USER, "items": [{"sku": "x", "n": 1}, {"sku": "y", "n": 2}], "labels": {"a": "b"}},
    {"payload": {"user": {"id": 2}, "paid": 0.5}},
    {"items": [], "labels": {}, "unread": "not asked for"},
    {"payload": {"user": {"mail": "no id"}, "paid": 2}},
    {"payload": {"user": {"id": "x"}}},
    {"payload": {"user": {"id": 1}, "paid": 5}, "items": [{"sku": "z"}]},
    {"payload": {"user": None, "paid": 5}, "items": None},
]
ROWS = [
    {
        "name": "r4",
        "mail": "a@b",
        "first": "x",
        "size": 2,
        "label": "b",
        "items": [{"what": "x", "n": 1}, {"what": "y", "n": 2}],
        "labels": [("a", "b")],
    },
    dict.fromkeys(("name", "mail", "first", "label")) | {"size": 0, "items": [], "labels": []},
    dict.fromkeys(("name", "mail", "first", "size", "label", "items", "labels")),
]
LETTERS = {
    3: 'field "payload.user.id" is missing or null and NOT NULL',
    4: 'field "payload.user.id": expected number, found string',
    5: 'column "items[].n" of the sink is NOT NULL and would be NULL',
}


@pytest.fixture
def joined(tmp_path: Path) -> JoinedBatch:
    made = plan_codec.load(plan_codec.dump(plan(SCRIPT)))
    (join,) = made.joins
    spec = index_spec(made, join, 1)
    build(tmp_path / "d", 0, spec, [batch_of([record("r", 1, 4, 0)])])
    records = pa.RecordBatch.from_pydict(
        {
            "value": pa.array([json.dumps(item).encode() for item in RECORDS], pa.binary()),
            "partition": pa.array([0] * len(RECORDS), pa.int32()),
            "offset": pa.array(range(len(RECORDS)), pa.int64()),
        }
    )
    kernel = kernel_spec(made)
    assert [item.name for item in kernel.fields] == ["payload", "items", "labels"]
    indexes = {join.alias: DimensionIndex.attach(tmp_path / "d", 0, spec)}
    return join_batch(kernel, records, indexes, BatchContext(0, 0, (("d", 0),)))


def test_parts_are_keys_conditions_and_output_and_what_does_not_fit_is_a_dead_letter(joined):
    assert joined.rows.to_pylist() == ROWS
    letters = joined.dead_letters
    reasons = zip(letters["offset"].to_pylist(), letters["reason"].to_pylist(), strict=True)
    assert dict(reasons) == LETTERS


def test_nested_rows_are_appended_to_a_delta_table_and_read_back(joined, tmp_path):
    path = tmp_path / "o"
    rows = joined.rows
    create_table(path, rows.schema)
    log = DeltaLog(path, "app")
    for batch in range(2):
        log.commit(batch, 1, [stage(path, rows, number=batch)], {})
    assert log.choose_writer(Appends(rows.schema)).writer is SinkWriter.COLUMNAR
    log.upkeep.make_checkpoint(log.version())
    read = DeltaTable(str(path)).to_pyarrow_table()
    assert read.num_rows == 2 * len(ROWS)
    again = log.files.table_rows().where({"size": 2}, rows.schema)
    assert again.to_pylist() == [ROWS[0]] * 2
    assert pc.list_value_length(read["items"].combine_chunks()).null_count == 2


def test_a_table_with_other_parts_is_refused(joined, tmp_path):
    create_table(tmp_path / "o", joined.rows.schema)
    items = pa.list_(pa.struct([("what", pa.string()), ("n", pa.int32())]))
    other = joined.rows.schema.set(5, pa.field("items", items))
    with pytest.raises(SinkError, match=r"items list<item: struct<what: string, n: int32>>"):
        DeltaLog(tmp_path / "o", "app").choose_writer(Appends(other))


WINDOWS = """
CREATE TABLE s (payload ROW<id BIGINT, ts TIMESTAMP(3)>, tags ARRAY<STRING>, ts AS payload.ts,
    WATERMARK FOR ts AS ts) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:9092',
    'format' = 'json'
);
CREATE TABLE o (a ROW<id BIGINT, found BIGINT>, b ARRAY<INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT ROW(payload.id, COUNT(tags[2])), ARRAY[MAX(CARDINALITY(tags)), 7]
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end, payload.id;
"""


def test_windows_read_parts_of_nested_values_and_make_others(tmp_path):
    def event(id_, second, *tags):
        return {"payload": {"id": id_, "ts": f"1970-01-01 00:00:{second:02}"}, "tags": tags}

    running = EventJob(plan(WINDOWS), tmp_path)
    events = [event(1, 1, "a"), event(1, 2, "a", "b"), event(2, 3), event(9, 30)]
    rows = running.run({0: events, 1: [event(9, 30)]}).rows
    assert sorted(rows, key=str) == [
        ({"id": 1, "found": 1}, [2, 7]),
        ({"id": 2, "found": 0}, [0, 7]),
    ]
