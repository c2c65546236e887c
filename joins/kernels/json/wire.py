"""Encodings of database values in JSON, their Arrow types, and their declared types."""

from collections.abc import Callable
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, from_base64, mask_of, sound, try_each
from joins.kernels.expressions.nested import mapped
from joins.kernels.json.encode import decimal_text
from joins.plan.types import SqlType, TypeName, array_type, arrow_type, row_type

_MICROSECOND_DIGITS = 6


class Encoding(StrEnum):
    """Form of a database type in JSON; see the table in docs/reference/contracts.md."""

    INTEGER = "integer"
    UNSIGNED = "unsigned"
    BOOLEAN = "boolean"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    DATETIME = "datetime"
    TIMESTAMP = "timestamp"
    NESTED = "nested"


WIRE_TYPES: dict[Encoding, pa.DataType] = {
    Encoding.INTEGER: pa.int64(),
    Encoding.UNSIGNED: pa.uint64(),
    Encoding.BOOLEAN: pa.bool_(),
    Encoding.FLOAT: pa.float32(),
    Encoding.DOUBLE: pa.float64(),
    Encoding.DECIMAL: pa.string(),
    Encoding.STRING: pa.string(),
    Encoding.BYTES: pa.string(),
    Encoding.DATE: pa.int64(),
    Encoding.TIME: pa.int64(),
    Encoding.DATETIME: pa.int64(),
    Encoding.TIMESTAMP: pa.string(),
}
_DECLARED_ENCODINGS = {
    **dict.fromkeys(
        (TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT), Encoding.INTEGER
    ),
    TypeName.BOOLEAN: Encoding.BOOLEAN,
    TypeName.FLOAT: Encoding.FLOAT,
    TypeName.DOUBLE: Encoding.DOUBLE,
    TypeName.DECIMAL: Encoding.DECIMAL,
    TypeName.STRING: Encoding.STRING,
    TypeName.BYTES: Encoding.BYTES,
    TypeName.DATE: Encoding.DATE,
    TypeName.TIME: Encoding.TIME,
    TypeName.TIMESTAMP: Encoding.DATETIME,
    TypeName.TIMESTAMP_LTZ: Encoding.DATETIME,
    **dict.fromkeys((TypeName.ROW, TypeName.ARRAY, TypeName.MAP), Encoding.NESTED),
}


def wire_type(encoding: Encoding, sql_type: SqlType) -> pa.DataType:
    """Arrow type of values when they are read from JSON.

    Parts of nested values are written by their declared types, a MAP as the list of its entries.
    """
    if encoding is not Encoding.NESTED:
        return WIRE_TYPES[encoding]
    return _shape(sql_type, lambda part: WIRE_TYPES[declared_encoding(part)])


def _shape(sql_type: SqlType, leaf: Callable[[SqlType], pa.DataType]) -> pa.DataType:
    """Wire form of a type; `leaf` gives that of its scalar parts."""
    if not sql_type.members:
        return leaf(sql_type)
    parts = [pa.field(part.name, _shape(part.type, leaf)) for part in sql_type.members]
    if sql_type.name is TypeName.ARRAY:
        return pa.list_(parts[0])
    row = pa.struct(parts)
    return row if sql_type.name is TypeName.ROW else pa.list_(row)


def to_declared(wire: pa.Array, encoding: Encoding, sql_type: SqlType) -> Checked:
    """A wire column as its declared type; marks values that do not fit."""
    target = arrow_type(sql_type)
    if encoding is Encoding.NESTED:
        kinds = [part.type for part in sql_type.members]
        return mapped(
            wire,
            target,
            lambda at, child: to_declared(child, declared_encoding(kinds[at]), kinds[at]),
        )
    if encoding in (Encoding.DATETIME, Encoding.TIMESTAMP):
        return _instants(wire, encoding, sql_type)
    if encoding is Encoding.BYTES:
        return from_base64(wire)
    if encoding is Encoding.TIME:
        return sound(_truncated(wire, sql_type.precision, towards_zero=True))
    if encoding is Encoding.DATE:
        return try_each(wire, lambda part: part.cast(pa.int32()).cast(target), target)
    if sql_type.name is TypeName.BOOLEAN and encoding is Encoding.INTEGER:
        return sound(pc.not_equal(wire, 0))
    if sql_type.name is TypeName.DECIMAL:
        return try_each(wire, lambda part: part.cast(pa.string()).cast(target), target)
    return try_each(wire, lambda part: part.cast(target), target)


def _instants(wire: pa.Array, encoding: Encoding, sql_type: SqlType) -> Checked:
    instant = pa.timestamp("us", tz="UTC")
    checked = sound(wire)
    if encoding is Encoding.TIMESTAMP:
        checked = try_each(wire, lambda part: part.cast(instant).cast(pa.int64()), pa.int64())
    micros = _truncated(checked.values, sql_type.precision, towards_zero=False)
    return Checked(micros.cast(arrow_type(sql_type)), checked.failed)


def _truncated(micros: pa.Array, digits: int, *, towards_zero: bool) -> pa.Array:
    if digits >= _MICROSECOND_DIGITS:
        return micros
    unit = 10 ** (_MICROSECOND_DIGITS - digits)
    numbers = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False)
    rest = np.fmod(numbers, unit) if towards_zero else np.mod(numbers, unit)
    return pa.array(numbers - rest, pa.int64(), mask=~mask_of(micros.is_valid()))


def declared_encoding(sql_type: SqlType) -> Encoding:
    return _DECLARED_ENCODINGS[sql_type.name]


def to_wire(values: pa.Array, sql_type: SqlType) -> pa.Array:
    """Arrow values that fit `sql_type` as a wire column of its `declared_encoding`.

    BYTES stay binary, as `encode_records` takes them. A timestamp may have any unit; without a zone
    it counts as UTC. Raises pa.ArrowInvalid if a value does not fit the declared type.
    """
    encoding = declared_encoding(sql_type)
    if encoding is Encoding.NESTED:
        return _nested_wire(values, sql_type)
    if encoding is Encoding.DATETIME:
        zone = values.type.tz if pa.types.is_timestamp(values.type) else None
        return values.cast(pa.timestamp("us", tz=zone), safe=False).cast(pa.int64())
    typed = values.cast(arrow_type(sql_type))
    if encoding is Encoding.DECIMAL:
        return decimal_text(typed)
    if encoding is Encoding.DATE:
        return typed.cast(pa.int32()).cast(pa.int64())
    return typed if encoding is Encoding.BYTES else typed.cast(WIRE_TYPES[encoding])


def _nested_wire(values: pa.Array, sql_type: SqlType) -> pa.Array:
    if sql_type.name is TypeName.MAP:
        pair = pa.struct([values.type.key_field, values.type.item_field])
        entries = array_type(row_type(*sql_type.members))
        return _nested_wire(values.cast(pa.list_(pair)), entries)
    kinds = [part.type for part in sql_type.members]
    shape = _shape(sql_type, _sent_type)
    return mapped(values, shape, lambda at, child: sound(to_wire(child, kinds[at]))).values


def _sent_type(sql_type: SqlType) -> pa.DataType:
    encoding = declared_encoding(sql_type)
    return pa.binary() if encoding is Encoding.BYTES else WIRE_TYPES[encoding]
