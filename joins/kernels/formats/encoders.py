"""Encoders: columns as the keys or the values of records, in JSON, CSV, Avro or as raw bytes.

Source: Avro 1.12, "Binary encoding"; decimals are bytes, lists one block as in Java's encoder.
"""

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, Context
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.row_kinds import DELETE, UPDATE_BEFORE, is_any
from joins.kernels.expressions.casts import mask_of
from joins.kernels.expressions.nested import parts_of
from joins.kernels.expressions.time_casts import shown_time
from joins.kernels.formats.avro_schema import schema_to_write
from joins.kernels.formats.parsed import CsvDialect, dialect_of
from joins.kernels.formats.raw import RawForm
from joins.kernels.json.encode import (
    JsonStyle,
    base64_text,
    decimal_text,
    encode_objects,
    join_text,
    with_text_times,
)
from joins.kernels.records.layout import ROW
from joins.kernels.texts import text_array
from joins.plan.formats import (
    IGNORE_NULL_FIELDS,
    ISO_8601,
    JSON_FORMAT,
    TIMESTAMP_FORMAT,
    KafkaFormat,
    RecordFormat,
)
from joins.plan.plan import Field
from joins.plan.types import Member, SqlType, TypeName

_OF_NUMBERS = frozenset("+-.:/= ")
"""Characters in cells of other types than STRING, beside letters and digits."""
_NORMALIZED = Context(prec=76, Emax=MAX_EMAX)
_NULL, _THERE = (pa.scalar(each, pa.binary()) for each in (b"\x00", b"\x02"))
_NOTHING = pa.scalar(b"", pa.binary())
_MILLIS_DIGITS = 3
_LONGEST = 10  # bytes of a long
_UNSCALED = Context(prec=76)
NumberOf = Callable[[RecordFormat, str], int]
"""The number of a schema in the registry of a format."""


def debezium_values(objects: pa.StringArray, kinds: pa.Array | None) -> pa.StringArray:
    """Rows as JSON objects in the envelopes of Flink's debezium-json.

    `+I` and `+U` are `c`, `-U` and `-D` are `d`: an update is both.
    """
    if kinds is None:
        return join_text([pa.scalar('{"before":null,"after":'), objects, pa.scalar(',"op":"c"}')])
    goes = is_any(kinds, (UPDATE_BEFORE, DELETE))
    opening = pc.if_else(goes, '{"before":', '{"before":null,"after":')
    closing = pc.if_else(goes, ',"after":null,"op":"d"}', ',"op":"c"}')
    return join_text([opening, objects, closing])


def without_gone(values: pa.Array, kinds: pa.Array | None) -> pa.Array:
    if kinds is None:
        return values
    return pc.if_else(is_any(kinds, (DELETE,)), pa.scalar(None, values.type), values)


_AT_FIRST = "#\ufeff"  # begin a comment, and a record with a byte order mark


def csv_rows(rows: pa.RecordBatch, kinds: Sequence[SqlType], dialect: CsvDialect) -> pa.StringArray:
    is_alone = rows.num_columns == 1
    marks = {dialect.delimiter, dialect.quote, dialect.escape}
    cells = []
    for column, kind in zip(rows.columns, kinds, strict=True):
        text = _csv_texts(column, kind, dialect)
        if kind.is_nested or kind.name is TypeName.STRING or marks & _OF_NUMBERS:
            text = _protected(text, dialect, is_alone=is_alone)
        cells.append(pc.fill_null(text, dialect.null or ""))
    return pc.binary_join_element_wise(*cells, dialect.delimiter)


def _csv_texts(column: pa.Array, kind: SqlType, dialect: CsvDialect) -> pa.StringArray:
    if kind.is_nested:
        return _csv_nested(column, kind, dialect)
    if kind.name is TypeName.TIME:
        return shown_time(column, kind.precision)
    if kind.name is TypeName.BYTES:
        return base64_text(column)
    if kind.name is TypeName.DECIMAL:
        if not dialect.is_scientific:
            return decimal_text(column)
        texts = [None if v is None else str(v.normalize(_NORMALIZED)) for v in column.to_pylist()]
        return pa.array(texts, pa.string())
    text = column.cast(pa.string())
    if pa.types.is_floating(column.type):
        text = pc.replace_substring_regex(text, r"^(-?)inf$", r"\1Infinity")
        text = pc.replace_substring_regex(text, r"^-?nan$", "NaN")
    return text


def _csv_nested(column: pa.Array, kind: SqlType, dialect: CsvDialect) -> pa.StringArray:
    parts = parts_of(column)
    nothing = dialect.null or ""
    texts = [
        pc.fill_null(_csv_texts(child, member.type, dialect), nothing)
        for child, member in zip(parts.children, kind.members, strict=True)
    ]
    if parts.lengths is None:
        joined = pc.binary_join_element_wise(*texts, dialect.elements)
    else:
        ends = pa.array([0, *np.cumsum(parts.lengths)], pa.int32())
        joined = pc.binary_join(pa.ListArray.from_arrays(ends, texts[0]), dialect.elements)
    return pc.if_else(column.is_valid(), joined, pa.scalar(None, pa.string()))


def _protected(text: pa.StringArray, dialect: CsvDialect, *, is_alone: bool) -> pa.StringArray:
    marks = (dialect.delimiter, dialect.quote, dialect.escape)
    special = re.escape("".join(mark for mark in marks if mark is not None))
    needs = mask_of(pc.match_substring_regex(text, rf"^[{_AT_FIRST}]|[{special}\n\r]"))
    if is_alone:
        needs |= mask_of(pc.equal(text, ""))
    if not needs.any():
        return text
    chosen = pa.array(needs)
    cells = text.filter(chosen)
    changed = _escaped(cells, dialect) if dialect.quote is None else _quoted(cells, dialect)
    return pc.replace_with_mask(text, chosen, changed)


def _quoted(cells: pa.StringArray, dialect: CsvDialect) -> pa.StringArray:
    quote = dialect.quote
    assert quote is not None, "cells are quoted"
    if dialect.escape is not None:
        cells = pc.replace_substring(cells, dialect.escape, dialect.escape * 2)
    cells = pc.replace_substring(cells, quote, (dialect.escape or quote) + quote)
    return join_text([pa.scalar(quote), cells, pa.scalar(quote)])


def _escaped(cells: pa.StringArray, dialect: CsvDialect) -> pa.StringArray:
    """Cells without quotes; DDL without an escape character is refused if a cell could need one."""
    escape = dialect.escape
    if escape is None:
        return cells
    for mark, meant in ((escape, escape), (dialect.delimiter,) * 2, ("\n", "n"), ("\r", "r")):
        cells = pc.replace_substring(cells, mark, escape + meant)
    first = escape.replace("\\", "\\\\")
    return pc.replace_substring_regex(cells, f"^([{_AT_FIRST}])", rf"{first}\1")


def avro_rows(rows: pa.RecordBatch, columns: Sequence[Field], before: bytes) -> pa.BinaryArray:
    """Records in the schema of `columns`, each after the bytes `before`."""
    members = [Member(item.name, item.type, item.nullable) for item in columns]
    parts = [
        _avro_member(column, member) for column, member in zip(rows.columns, members, strict=True)
    ]
    head = pa.scalar(before, pa.binary())
    whole = [pa.repeat(head, rows.num_rows), *parts]
    return pc.binary_join_element_wise(*whole, _NOTHING)


def _avro_member(column: pa.Array, member: Member) -> pa.Array:
    values = _avro_values(column, member.type)
    if not member.nullable:
        return values
    if column.null_count == 0:
        return pc.binary_join_element_wise(_THERE, values, _NOTHING)
    filled = pc.fill_null(values, b"")
    there = pc.binary_join_element_wise(_THERE, filled, _NOTHING)
    return pc.if_else(column.is_valid(), there, _NULL)


def _avro_values(column: pa.Array, kind: SqlType) -> pa.Array:
    if kind.is_nested:
        return _avro_nested(column, kind)
    if kind.name is TypeName.BOOLEAN:
        return pc.if_else(pc.fill_null(column, False), b"\x01", b"\x00")
    if kind.name in (TypeName.FLOAT, TypeName.DOUBLE):
        return _avro_floats(column)
    if kind.name in (TypeName.STRING, TypeName.BYTES, TypeName.DECIMAL):
        data = _unscaled(column, kind) if kind.name is TypeName.DECIMAL else column
        sizes = pc.fill_null(pc.binary_length(data), 0).to_numpy(zero_copy_only=False)
        return pc.binary_join_element_wise(_longs(sizes), data.cast(pa.binary()), _NOTHING)
    return _longs(_counts(column, kind))


def _counts(column: pa.Array, kind: SqlType) -> npt.NDArray[np.int64]:
    if kind.name is TypeName.DATE:
        column = column.cast(pa.int32())
    numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    in_millis = kind.name is TypeName.TIME or kind.precision <= _MILLIS_DIGITS
    if kind.name in (TypeName.TIME, TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ) and in_millis:
        numbers = numbers // 1_000
    return np.asarray(numbers, np.int64)


def _longs(numbers: npt.NDArray[np.integer]) -> pa.BinaryArray:
    """Zigzag numbers with seven bits a byte, the least significant first."""
    signed = np.asarray(numbers, np.int64)
    rest = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    digits = np.zeros((len(rest), _LONGEST), np.uint8)
    sizes = np.ones(len(rest), np.int64)
    for place in range(_LONGEST):
        more = rest >= 128
        digits[:, place] = (rest & np.uint64(127)).astype(np.uint8) | (more * 128).astype(np.uint8)
        sizes += more
        rest = rest >> np.uint64(7)
    kept = np.arange(_LONGEST) < sizes[:, None]
    offsets = np.zeros(len(signed) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return text_array(digits[kept], offsets, np.ones(len(signed), np.bool_), pa.binary())


def _avro_floats(column: pa.Array) -> pa.BinaryArray:
    numbers = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
    little = numbers.astype(numbers.dtype.newbyteorder("<"))
    offsets = np.arange(len(column) + 1, dtype=np.int64) * little.dtype.itemsize
    data = np.frombuffer(little.tobytes(), np.uint8)
    return text_array(data, offsets, np.ones(len(column), np.bool_), pa.binary())


def _unscaled(column: pa.Array, kind: SqlType) -> pa.Array:
    """Unscaled values in as few bytes as possible, big-endian."""
    values: list[bytes | None] = []
    for value in column.to_pylist():
        if value is None:
            values.append(None)
            continue
        number = int(value.scaleb(kind.scale, _UNSCALED))
        size = (number if number >= 0 else -number - 1).bit_length() // 8 + 1
        values.append(number.to_bytes(size, "big", signed=True))
    return pa.array(values, pa.binary())


def _avro_nested(column: pa.Array, kind: SqlType) -> pa.Array:
    parts = parts_of(column)
    children = [
        _avro_member(child, member)
        for child, member in zip(parts.children, kind.members, strict=True)
    ]
    if parts.lengths is None:
        return pc.binary_join_element_wise(*children, _NOTHING)
    is_map = kind.name is TypeName.MAP
    elements = pc.binary_join_element_wise(*children, _NOTHING) if is_map else children[0]
    ends = pa.array([0, *np.cumsum(parts.lengths)], pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, elements), _NOTHING)
    counts, end = _longs(parts.lengths), pa.scalar(b"\x00", pa.binary())
    block = pc.binary_join_element_wise(counts, joined, end, _NOTHING)
    return pc.if_else(pa.array(parts.lengths > 0, pa.bool_()), block, end)


class ValueEncoder(Protocol):
    """Writes the keys, or the values, of a topic; picklable."""

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> pa.Array:
        """One text or binary value a row; `kinds` are row kinds, None if all are `+I`."""


@dataclass(frozen=True, slots=True)
class JsonEncoder:
    """Writes rows of `columns` as JSON objects, or as Debezium's envelopes."""

    format: RecordFormat
    columns: tuple[Field, ...]

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> pa.StringArray:
        style = JsonStyle(
            is_iso=self.format.text(TIMESTAMP_FORMAT) == ISO_8601,
            omits_nulls=self.format.flag(IGNORE_NULL_FIELDS),
        )
        texts = with_text_times(rows, [item.type for item in self.columns])
        objects = encode_objects(texts, style=style)
        if self.format.name is KafkaFormat.DEBEZIUM_JSON:
            return debezium_values(objects, kinds)
        return objects


def values_of(records: pa.RecordBatch, form: RecordFormat, fields: Sequence[Field]) -> pa.Array:
    """The values of records, as bytes; rows of files have the values that JSON of `form` gives."""
    if ROW not in records.schema.names:
        return records.column("value")
    rows = records.column(ROW)
    read = tuple(each for each in fields if rows.type.get_field_index(each.name) >= 0)
    columns = [pc.struct_field(rows, [rows.type.get_field_index(each.name)]) for each in read]
    batch = pa.RecordBatch.from_arrays(columns, names=[each.name for each in read])
    own = form if form.name is KafkaFormat.JSON else JSON_FORMAT
    return JsonEncoder(own, read).encode(batch, None).cast(pa.binary())


@dataclass(frozen=True, slots=True)
class CsvEncoder:
    """Writes rows of `columns` as CSV."""

    dialect: CsvDialect
    columns: tuple[Field, ...]

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array | None) -> pa.StringArray:
        return csv_rows(rows, [item.type for item in self.columns], self.dialect)


@dataclass(frozen=True, slots=True)
class AvroEncoder:
    """Writes Avro; with the schema's id `number`, in Confluent's wire format."""

    columns: tuple[Field, ...]
    number: int | None = None

    def encode(self, rows: pa.RecordBatch, _: pa.Array | None) -> pa.BinaryArray:
        before = b"" if self.number is None else struct.pack(">bI", 0, self.number)
        return avro_rows(rows, self.columns, before)


def encoder_of(
    form: RecordFormat, columns: tuple[Field, ...], number_of: NumberOf | None = None
) -> ValueEncoder:
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
