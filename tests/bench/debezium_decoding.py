"""How many of a connector's records one core decodes.

The records are a shop's, eight columns of all kinds, as MariaDB's connector writes them: without
and with the schema in front, as flat rows, and as Avro. Times are CPU seconds of this process.
"""

import io
import json
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import fastavro
import pyarrow as pa

from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.debezium.options import CapturedName, DebeziumOptions, ValueLayout
from joins.kernels.formats.avro_payloads import AvroMemory
from joins.plan.plan import Field
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.support import debezium_values as model
from tests.support.expressions import sql_type

RECORDS = 500_000
BATCH_ROWS = 65_536
DIFFERENT = 20_000  # records are made once and come again
_BARS = {"without schema": 400_000, "with schema": 200_000, "flat": 400_000, "Avro": 150_000}
_COLUMNS = {
    "id": "BIGINT",
    "name": "STRING",
    "price": "DECIMAL(10, 2)",
    "created": "TIMESTAMP(3)",
    "updated": "TIMESTAMP_LTZ(3)",
    "is_active": "BOOLEAN",
    "category": "INT",
    "description": "STRING",
}
_SOURCE = {
    "version": "3.5.0.Final",
    "connector": "mariadb",
    "name": "shop",
    "ts_ms": 1_700_000_000_000,
    "snapshot": "true",
    "db": "shop",
    "sequence": None,
    "ts_us": 1_700_000_000_000_000,
    "ts_ns": 1_700_000_000_000_000_000,
    "table": "items",
    "server_id": 0,
    "gtid": None,
    "file": "binlog.000002",
    "pos": 1234,
    "row": 0,
    "thread": None,
    "query": None,
}
_AVRO_ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {
            "name": "price",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            ],
        },
        {
            "name": "created",
            "type": ["null", {"type": "long", "connect.name": "io.debezium.time.Timestamp"}],
        },
        {
            "name": "updated",
            "type": ["null", {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}],
        },
        {"name": "is_active", "type": ["null", {"type": "int", "connect.type": "int16"}]},
        {"name": "category", "type": ["null", "int"]},
        {"name": "description", "type": ["null", "string"]},
    ],
}
_AVRO_KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}


@dataclass(frozen=True, slots=True)
class Work:
    """Records of one kind, and how they are decoded."""

    batch: pa.RecordBatch
    decoder: Callable[[], DebeziumDecoder]

    def rate(self, records: int) -> float:
        """Records a CPU second, in batches; the first one only warms up."""
        decoder = self.decoder()
        decoded = decoder.decode(self.batch)
        assert decoded.bad == (), decoded.bad[:1]
        rounds = max(1, records // self.batch.num_rows)
        started = time.process_time()
        for _ in range(rounds):
            decoder.decode(self.batch)
        return rounds * self.batch.num_rows / (time.process_time() - started)


def decoding(place: Place, sizes: Sizes) -> list[Measure]:
    """Each kind of records."""
    records = sizes.records or RECORDS
    measures = []
    for name, work in works().items():
        values = [work.rate(records) for _ in range(sizes.runs)]
        value_bytes = work.batch.column("value").nbytes // work.batch.num_rows
        size = f"{records:,} records of {value_bytes} bytes, {len(_COLUMNS)} columns"
        place.say(f"{name}: {max(values):,.0f} records/s, {value_bytes} bytes each")
        bar = Bar(Sense.VALUE_AT_LEAST, _BARS[name])
        full = records >= RECORDS
        measures.append(Measure(f"decode {name}", "records/s", size, full, values, (), bar))
    return measures


def works() -> Mapping[str, Work]:
    """All kinds of records."""
    rows = [row(at) for at in range(DIFFERENT)]
    table = DebeziumOptions(table=CapturedName("items", database="shop"))
    bare, wrapped = (_json(rows, wrapped=each) for each in (False, True))
    flat_options = DebeziumOptions(layout=ValueLayout.FLAT)
    flat = _batch(
        [model.text_of(model.key_of(each, ["id"])).encode() for each in rows],
        [_flat(each) for each in rows],
    )
    schemas = {1: json.dumps(_AVRO_KEY), 2: json.dumps(_envelope())}
    return {
        "without schema": Work(bare, lambda: _decoder(table)),
        "with schema": Work(wrapped, lambda: _decoder(table)),
        "flat": Work(flat, lambda: _decoder(flat_options)),
        "Avro": Work(_avro(rows), lambda: _decoder(table, schemas)),
    }


def row(number: int) -> dict[str, model.Written]:
    moment = model.EPOCH.replace(year=2024, microsecond=number % 1000 * 1000)
    return {
        "id": model.integer(number),
        "name": model.string(f"item {number}"),
        "price": model.decimal(Decimal(number % 100_000).scaleb(-2), 2),
        "created": model.moment(moment, "adaptive", 3),
        "updated": model.instant(moment, "adaptive"),
        "is_active": model.boolean(True, as_number=True),
        "category": model.integer(number % 100, 32),
        "description": model.string("some longer text of the item"),
    }


def _decoder(options: DebeziumOptions, schemas: Mapping[int, str] | None = None) -> DebeziumDecoder:
    fields = [Field(name, sql_type(kind)) for name, kind in _COLUMNS.items()]
    payloads = None if schemas is None else (AvroMemory(schemas.get), AvroMemory(schemas.get))
    return DebeziumDecoder(fields, ["id"], options, payloads=payloads)


def _batch(keys: Sequence[bytes], values: Sequence[bytes]) -> pa.RecordBatch:
    times = -(-BATCH_ROWS // len(keys))
    arrays = [pa.array(list(each) * times, pa.binary())[:BATCH_ROWS] for each in (keys, values)]
    return pa.RecordBatch.from_arrays(arrays, names=["key", "value"])


def _json(rows: Sequence[dict[str, model.Written]], *, wrapped: bool) -> pa.RecordBatch:
    return _batch(
        [model.text_of(model.key_of(each, ["id"], wrapped=wrapped)).encode() for each in rows],
        [
            model.text_of(model.envelope(each, op="r", wrapped=wrapped, source=_SOURCE)).encode()
            for each in rows
        ],
    )


def _flat(whole: dict[str, model.Written]) -> bytes:
    values = {name: each.value for name, each in whole.items()}
    return model.text_of(values | {"__op": "r", "__deleted": "false"}).encode()


def _envelope() -> dict[str, object]:
    kinds: Mapping[type, str] = {str: "string", int: "long"}
    fields = [
        {"name": name, "type": ["null", kinds.get(type(value), "string")]}
        for name, value in _SOURCE.items()
    ]
    source = {"type": "record", "name": "Source", "fields": fields}
    return {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", _AVRO_ROW]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"]},
        ],
    }


def _avro(rows: Sequence[dict[str, model.Written]]) -> pa.RecordBatch:
    key, value = (
        fastavro.parse_schema(json.loads(json.dumps(each))) for each in (_AVRO_KEY, _envelope())
    )
    keys, values = [], []
    for whole in rows:
        after = {name: each.value for name, each in whole.items()}
        after["price"] = Decimal(int(str(after["id"])) % 100_000).scaleb(-2)
        change = {"before": None, "after": after, "source": _SOURCE, "op": "r", "ts_ms": 6}
        keys.append(_written(1, key, {"id": after["id"]}))
        values.append(_written(2, value, change))
    return _batch(keys, values)


def _written(number: int, parsed: object, record: object) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, parsed, record)
    return struct.pack(">bI", 0, number) + body.getvalue()
