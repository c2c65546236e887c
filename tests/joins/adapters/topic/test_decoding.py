"""Options of a format as a script has them are the kernel's; rows have the times of records."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from joins.adapters.topic.decoding import decoder_of
from joins.adapters.topic.feed_state import TopicFeedConfig
from joins.durable.codec import as_json, from_json
from joins.kernels.debezium.options import (
    BigintUnsignedHandling,
    DebeziumOptions,
    debezium_options,
)
from joins.plan.formats import KafkaFormat, RecordFormat
from joins.plan.plan import (
    COORDINATES,
    ComputedField,
    Field,
    KafkaOptions,
    MetadataField,
    TopicSource,
)
from joins.plan.types import Cast, Column, SqlType, TypeName
from service.sql.catalog.topic_options import (
    AVRO_OPTIONS,
    DEBEZIUM_AVRO,
    DEBEZIUM_JSON,
    JSON_OPTIONS,
)

PREFIXES = {DEBEZIUM_JSON: JSON_OPTIONS, DEBEZIUM_AVRO: AVRO_OPTIONS}


@pytest.mark.parametrize(("prefix", "options"), PREFIXES.items(), ids=PREFIXES)
def test_defaults_of_a_script_are_those_of_the_kernel(prefix, options):
    defaults = {option.key.removeprefix(prefix): option.default for option in options}
    written = {key: value for key, value in defaults.items() if value is not None}
    assert debezium_options(written) == debezium_options({}) == DebeziumOptions()


def test_what_a_script_says_is_what_is_decoded_by():
    made = debezium_options(
        {"bit.columns": "a;b", "bigint.unsigned.handling.mode": "long", "schema-include": "false"}
    )
    assert made.bit_columns == {"a", "b"}
    assert made.bigint_unsigned is BigintUnsignedHandling.LONG
    assert made.schema_include is False


AT_MS = 1_700_000_000_000
TIMES = (
    MetadataField("written", "timestamp", SqlType(TypeName.TIMESTAMP_LTZ, 3)),
    MetadataField("changed", "value.source.timestamp", SqlType(TypeName.TIMESTAMP, 3)),
)
CHANGE = b'{"op":"c","before":null,"after":{"id":1},"source":{"ts_ms":%d}}' % (AT_MS - 5)
ROWS = {
    "row_by_key": (KafkaFormat.JSON, TIMES[:1], [b'{"id":1}'], True),
    "row_without_key": (KafkaFormat.JSON, TIMES[:1], [b'{"id":1}'], False),
    "change_and_tombstone": (KafkaFormat.DEBEZIUM_JSON, TIMES, [CHANGE, None], True),
}


@pytest.mark.parametrize(("form", "metadata", "values", "has_key"), ROWS.values(), ids=ROWS)
def test_the_times_of_records_are_columns_of_their_rows(form, metadata, values, has_key):
    columns = (Field("id", SqlType(TypeName.BIGINT)), *(Field(m.name, m.type) for m in metadata))
    source = TopicSource(KafkaOptions("b:1", "t"), RecordFormat(form), metadata=metadata)
    fields = columns if has_key else (*columns, *COORDINATES)
    key = ("id",) if has_key else tuple(item.name for item in COORDINATES)
    records = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b'{"id":1}'] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "timestamp": pa.array([AT_MS * 1000] * len(values), pa.timestamp("us", "UTC")),
        }
    )
    changes = decoder_of(source, fields, key, None).decode(records)
    assert changes.after.schema.names == [item.name for item in fields]
    written = changes.after.column("written").cast(pa.int64()).to_pylist()
    assert written == [AT_MS * 1000] * len(values), "deletions have it, too"
    if len(metadata) > 1:
        told = changes.after.column("changed").cast(pa.int64()).to_pylist()
        assert told == [(AT_MS - 5) * 1000, None], "a tombstone does not tell"


def test_a_computed_time_is_a_column_of_the_rows_and_a_row_without_it_is_bad():
    at = SqlType(TypeName.TIMESTAMP, 3)
    computed = ComputedField("at", Cast(Column("", "text", SqlType(TypeName.STRING)), at))
    source = TopicSource(
        KafkaOptions("b:1", "t"), RecordFormat(KafkaFormat.JSON), computed=(computed,)
    )
    columns = {"id": SqlType(TypeName.BIGINT), "text": SqlType(TypeName.STRING), "at": at}
    fields = tuple(Field(name, kind) for name, kind in columns.items())
    values = [b'{"id":1,"text":"2026-01-01 00:00:00"}', b'{"id":2,"text":"x"}', b'{"id":3}']
    records = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b'{"id":1}'] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )
    config = TopicFeedConfig(
        source, fields, ("id",), KafkaOptions("b:1", "i"), Path("s"), Path("d"), rowtime="at"
    )
    stored = from_json(TopicFeedConfig, json.loads(json.dumps(as_json(config))))
    changes = decoder_of(stored.source, fields, ("id",), None).decode(records)
    times = changes.after.column("at").cast(pa.string()).to_pylist()
    assert times == ["2026-01-01 00:00:00.000000", None, None]
    assert [(one.row, one.reason) for one in changes.bad] == [(1, changes.bad[0].reason)]
    assert 'column "at"' in changes.bad[0].reason
    assert changes.kind.to_pylist() == ["u", "bad", "u"]
