"""Rows as Avro: a binary array a column, joined row by row; `joins.kernels.avro.rows` reads them.

Source: Avro 1.12, "Binary encoding"; decimals are bytes, lists one block as Java's encoder has it.
"""

from collections.abc import Sequence
from decimal import Context

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.nested import parts_of
from joins.kernels.texts import text_array
from joins.plan.plan import Field
from joins.plan.types import Member, SqlType, TypeName

_NULL, _THERE = (pa.scalar(each, pa.binary()) for each in (b"\x00", b"\x02"))
_NOTHING = pa.scalar(b"", pa.binary())
_MILLIS_DIGITS = 3
_LONGEST = 10  # bytes of a long
_DIGITS = Context(prec=76)


def encode_rows(rows: pa.RecordBatch, columns: Sequence[Field], before: bytes) -> pa.BinaryArray:
    """The rows as records of the schema that `columns` have; `before` stands in front of each."""
    members = [Member(item.name, item.type, item.nullable) for item in columns]
    parts = [_member(column, member) for column, member in zip(rows.columns, members, strict=True)]
    head = pa.scalar(before, pa.binary())
    whole = [pa.repeat(head, rows.num_rows), *parts]
    return pc.binary_join_element_wise(*whole, _NOTHING)


def _member(column: pa.Array, member: Member) -> pa.Array:
    """What may be NULL is a union of NULL and its type."""
    values = _values(column, member.type)
    if not member.nullable:
        return values
    if column.null_count == 0:
        return pc.binary_join_element_wise(_THERE, values, _NOTHING)
    filled = pc.fill_null(values, b"")
    there = pc.binary_join_element_wise(_THERE, filled, _NOTHING)
    return pc.if_else(column.is_valid(), there, _NULL)


def _values(column: pa.Array, kind: SqlType) -> pa.Array:
    """The values of a column, whatever of a NULL."""
    if kind.is_nested:
        return _nested(column, kind)
    if kind.name is TypeName.BOOLEAN:
        return pc.if_else(pc.fill_null(column, False), b"\x01", b"\x00")
    if kind.name in (TypeName.FLOAT, TypeName.DOUBLE):
        return _floats(column)
    if kind.name in (TypeName.STRING, TypeName.BYTES, TypeName.DECIMAL):
        data = _unscaled(column, kind) if kind.name is TypeName.DECIMAL else column
        sizes = pc.fill_null(pc.binary_length(data), 0).to_numpy(zero_copy_only=False)
        return pc.binary_join_element_wise(_longs(sizes), data.cast(pa.binary()), _NOTHING)
    return _longs(_counts(column, kind))


def _counts(column: pa.Array, kind: SqlType) -> npt.NDArray[np.int64]:
    """Numbers, days, milliseconds or microseconds."""
    if kind.name is TypeName.DATE:
        column = column.cast(pa.int32())
    numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    in_millis = kind.name is TypeName.TIME or kind.precision <= _MILLIS_DIGITS
    if kind.name in (TypeName.TIME, TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ) and in_millis:
        numbers = numbers // 1_000
    return np.asarray(numbers, np.int64)


def _longs(numbers: npt.NDArray[np.integer]) -> pa.BinaryArray:
    """Of each number seven bits a byte, those of the least value first, its sign before them."""
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


def _floats(column: pa.Array) -> pa.BinaryArray:
    numbers = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
    little = numbers.astype(numbers.dtype.newbyteorder("<"))
    offsets = np.arange(len(column) + 1, dtype=np.int64) * little.dtype.itemsize
    data = np.frombuffer(little.tobytes(), np.uint8)
    return text_array(data, offsets, np.ones(len(column), np.bool_), pa.binary())


def _unscaled(column: pa.Array, kind: SqlType) -> pa.Array:
    """The number without its point in as few bytes as it takes, the highest first."""
    values: list[bytes | None] = []
    for value in column.to_pylist():
        if value is None:
            values.append(None)
            continue
        number = int(value.scaleb(kind.scale, _DIGITS))
        size = (number if number >= 0 else -number - 1).bit_length() // 8 + 1
        values.append(number.to_bytes(size, "big", signed=True))
    return pa.array(values, pa.binary())


def _nested(column: pa.Array, kind: SqlType) -> pa.Array:
    parts = parts_of(column)
    children = [
        _member(child, member) for child, member in zip(parts.children, kind.members, strict=True)
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
