"""Encoders: columns as the keys or the values of records."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from joins.kernels.avro.derived import schema_to_write
from joins.kernels.avro.encode import encode_rows as avro_rows
from joins.kernels.changelog.change_encode import debezium_values
from joins.kernels.csv.dialect import CsvDialect, dialect_of
from joins.kernels.csv.encode import encode_rows as csv_rows
from joins.kernels.formats.raw import RawForm
from joins.kernels.json.encode import JsonStyle, encode_objects
from joins.kernels.json.render import with_text_times
from joins.plan.formats import (
    IGNORE_NULL_FIELDS,
    ISO_8601,
    TIMESTAMP_FORMAT,
    KafkaFormat,
    RecordFormat,
)
from joins.plan.plan import Field


class ValueEncoder(Protocol):
    """Writes the keys, or the values, of a topic; picklable."""

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> pa.Array:
        """One text or binary value a row; `kinds` tells those of the rows, None: all are `+I`."""


@dataclass(frozen=True, slots=True)
class JsonEncoder:
    """Writes JSON objects, or what Debezium makes of them.

    Attributes:
        format: with its options.
        columns: what the rows have.
    """

    format: RecordFormat
    columns: tuple[Field, ...]

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> pa.StringArray:
        """An object, or an envelope, a row."""
        style = JsonStyle(
            is_iso=self.format.text(TIMESTAMP_FORMAT) == ISO_8601,
            omits_nulls=self.format.flag(IGNORE_NULL_FIELDS),
        )
        texts = with_text_times(rows, [item.type for item in self.columns])
        objects = encode_objects(texts, style=style)
        if self.format.name is KafkaFormat.DEBEZIUM_JSON:
            return debezium_values(objects, kinds)
        return objects


@dataclass(frozen=True, slots=True)
class CsvEncoder:
    """Writes CSV.

    Attributes:
        columns: what the rows have.
    """

    dialect: CsvDialect
    columns: tuple[Field, ...]

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> pa.StringArray:
        return csv_rows(rows, [item.type for item in self.columns], self.dialect)


@dataclass(frozen=True, slots=True)
class AvroEncoder:
    """Writes Avro of the schema that the columns have.

    Attributes:
        number: of the schema, which stands in front of each value then; None for none.
    """

    columns: tuple[Field, ...]
    number: int | None = None

    def encode(self, rows: pa.RecordBatch, _: pa.Array | None) -> pa.BinaryArray:
        before = b"" if self.number is None else struct.pack(">bI", 0, self.number)
        return avro_rows(rows, self.columns, before)


NumberOf = Callable[[RecordFormat, str], int]
"""The number of a schema in the registry of a format."""


def encoder_of(
    form: RecordFormat, columns: tuple[Field, ...], number_of: NumberOf | None = None
) -> ValueEncoder:
    """What writes `columns` as keys or values of the format `form`."""
    if form.name is KafkaFormat.AVRO:
        return AvroEncoder(columns)
    if form.name is KafkaFormat.AVRO_CONFLUENT:
        assert number_of is not None, "its schema has a number"
        return AvroEncoder(columns, number_of(form, schema_to_write(form, columns)))
    if form.name is KafkaFormat.CSV:
        return CsvEncoder(dialect_of(form), columns)
    if form.name is KafkaFormat.RAW:
        return RawForm.of(form, columns[0])
    return JsonEncoder(form, columns)
