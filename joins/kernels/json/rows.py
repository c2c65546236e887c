"""Kafka values that are JSON objects, as columns.

One compiled pass reads plain values (`joins.kernels.json.plain`). `joins.kernels.json.each` reads
the rest, and alone decides on errors. Both read a value alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import (
    Checked,
    Mask,
    from_text,
    mask_of,
    sound,
    time_from_text,
    whole_batch,
)
from joins.kernels.expressions.nested import mapped, parts_of
from joins.kernels.formats.parsed import BadRow, ParsedRows
from joins.kernels.json.each import OF_TEXT, STRICT, JsonRules, read_each
from joins.plan.plan import Field
from joins.plan.types import TypeName, arrow_type

Rows = npt.NDArray[np.int64]
_OF_TIME = {b"sql": b"TIME"}

_PIECE_BYTES = 32 << 20
_PIECE_CELLS = 2 << 20  # rows times columns


def parse(values: pa.Array, schema: pa.Schema, rules: JsonRules = STRICT) -> ParsedRows:
    """Parses `values` (binary or large binary, nullable), one object each; never raises for data.

    Missing members are NULL and unknown ones are ignored. Dates and timestamps are read from their
    SQL or ISO text, binary from base64, and at the top level int64 with the metadata `{b"sql":
    b"TIME"}` from `HH:MM:SS[.f]`. Structs are read from objects, lists from arrays, maps from
    objects with any members. `joins.kernels.json.each` has the other rules.
    """
    target = _RowCollector(schema, rules)
    for start, piece in _pieces(values, max(1, _PIECE_CELLS // max(1, len(schema)))):
        _parse_piece(start, piece, target)
    return target.finish()


def json_schema(fields: Sequence[Field]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(
                item.name,
                arrow_type(item.type),
                metadata=_OF_TIME if item.type.name is TypeName.TIME else None,
            )
            for item in fields
        ]
    )


@dataclass(slots=True)
class _RowCollector:
    schema: pa.Schema
    rules: JsonRules = STRICT
    batches: list[pa.RecordBatch] = field(default_factory=list)
    indexes: list[Rows] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)

    def finish(self) -> ParsedRows:
        if self.batches:
            batch = whole_batch(self.batches)
        else:
            nothing = [pa.nulls(0, item.type) for item in self.schema]
            batch = pa.RecordBatch.from_arrays(nothing, schema=self.schema)
        index = np.concatenate(self.indexes) if self.indexes else np.zeros(0, dtype=np.int64)
        if (index[1:] < index[:-1]).any():
            order = np.argsort(index, kind="stable")
            batch, index = batch.take(pa.array(order)), index[order]
        bad = tuple(BadRow(row, self.reasons[row]) for row in sorted(self.reasons))
        return ParsedRows(batch, pa.array(index, pa.int64()), bad)


def _pieces(values: pa.Array, rows: int) -> Iterator[tuple[int, pa.Array]]:
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(values):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _PIECE_BYTES, side="right"))
        stop = max(min(stop, start + rows), start + 1)
        yield start, values.slice(start, stop - start)
        start = stop


def _parse_piece(start: int, piece: pa.Array, target: _RowCollector) -> None:
    # numba is 60 MB: processes that plan or send, and parse nothing, do not load it
    from joins.kernels.json.plain import read_plain

    plain = read_plain(piece, pa.schema([_read_field(item) for item in target.schema]))
    rest = np.delete(np.arange(len(piece)), plain.rows)
    left = _convert(plain.batch, plain.rows, start, target)
    _read_left(piece, np.concatenate([rest, left]), start, target)


def _read_left(piece: pa.Array, left: Rows, start: int, target: _RowCollector) -> None:
    if not len(left):
        return
    left = np.sort(left)
    read = read_each(piece.take(pa.array(left)).to_pylist(), target.schema, target.rules)
    target.batches.append(read.batch)
    target.indexes.append(start + left[np.array(read.records, np.int64)])
    for at, reason in read.reasons.items():
        target.reasons[int(start + left[at])] = reason


def _read_field(item: pa.Field) -> pa.Field:
    if _is_time(item):
        return pa.field(item.name, pa.string(), metadata=OF_TEXT)
    kind = _read_type(item.type)
    is_own = pa.types.is_string(kind) and not pa.types.is_string(item.type)
    return pa.field(item.name, kind, metadata=OF_TEXT if is_own else None)


def _read_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_read_field(item) for item in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _read_field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_read_field(kind.value_field))
    textual = pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_binary(kind)
    return pa.string() if textual else kind


def _is_time(item: pa.Field) -> bool:
    return bool(item.metadata) and item.metadata.get(b"sql") == b"TIME"


def _convert(batch: pa.RecordBatch, rows: Rows, start: int, target: _RowCollector) -> Rows:
    columns: list[pa.Array] = []
    bad = np.zeros(len(rows), dtype=np.bool_)
    for item, source in zip(target.schema, batch.columns, strict=True):
        checked = _typed(source, item)
        columns.append(checked.values)
        bad |= checked.failed
        if target.rules.needs_all:
            bad |= _with_null(checked.values)
    converted = pa.RecordBatch.from_arrays(columns, schema=target.schema) if columns else batch
    left = rows[bad]
    if len(left):
        converted, rows = converted.filter(pa.array(~bad)), rows[~bad]
    target.batches.append(converted)
    target.indexes.append(start + rows)
    return left


def _typed(source: pa.Array, item: pa.Field) -> Checked:
    if _is_time(item):
        return time_from_text(source)
    if pa.types.is_floating(item.type):
        return Checked(source, ~mask_of(pc.fill_null(pc.is_finite(source), True)))
    if pa.types.is_nested(item.type) and not _is_read_as_is(item.type):
        return mapped(source, item.type, lambda at, child: _typed(child, _child(item.type, at)))
    if source.type.equals(item.type):
        return sound(source)
    return from_text(source, item.type)


def _child(kind: pa.DataType, at: int) -> pa.Field:
    if pa.types.is_map(kind):
        return kind.item_field if at else kind.key_field
    return kind.field(at)


def _is_read_as_is(kind: pa.DataType) -> bool:
    if pa.types.is_floating(kind):
        return False
    if pa.types.is_nested(kind):
        return all(_is_read_as_is(kind.field(at).type) for at in range(kind.num_fields))
    return bool(_read_type(kind).equals(kind))


def _with_null(column: pa.Array) -> Mask:
    rows = mask_of(column.is_null())
    if pa.types.is_nested(column.type):
        parts = parts_of(column)
        for child in parts.children:
            rows |= parts.of_rows(_with_null(child), len(column))
    return rows
