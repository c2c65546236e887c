"""Kafka values that are JSON objects, as columns; each row is proved to come from its own record.

Three readers share the work: one compiled pass for plain values (`joins.kernels.json.plain`),
Arrow's reader for other valid objects, and `joins.kernels.json.each` for the rest, which alone
decides on errors. All three read a value alike.

Arrow's reader parses many values as one block of lines. First `joins.kernels.json.lines` removes
values that could produce no row, or take part in their neighbour's. The remaining ones yield at
least one row a value, because `}`, line break, `{` continues nothing in JSON. So a block with as
many rows as values has one row of each value. A block that fails is read again without the lines
that do not look plain, and bisected if it still fails.
"""
# reads better long: the proof that rows are of their own records goes through all of it.

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

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
from joins.kernels.formats.parsed import BadRow, ParsedRows, batch_of
from joins.kernels.json.each import OF_TEXT, STRICT, JsonRules, read_each
from joins.kernels.json.lines import (
    has_decimal,
    has_map,
    lines_of,
    with_bearable_decimals,
    with_entries,
)
from joins.plan.plan import Field
from joins.plan.types import TypeName, arrow_type

Rows = npt.NDArray[np.int64]
_OF_TIME = {b"sql": b"TIME"}

_PIECE_BYTES = 32 << 20
_PIECE_CELLS = 2 << 20  # rows times columns
_BLOCK_BYTES = 512 << 10
_FEWEST = 8  # lines of a block that are bisected no further


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


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines with line breaks: line `i`, `data[bounds[i]:bounds[i + 1]]`, is value `rows[i]`."""

    data: pa.Buffer
    bounds: Rows
    rows: Rows

    @classmethod
    def of(cls, lines: pa.StringArray, rows: Rows) -> Self:
        lengths = pc.binary_length(lines).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        ended = pa.concat_arrays([lines, pa.array([""], pa.string())])
        whole = pa.ListArray.from_arrays(pa.array([0, len(ended)], pa.int32()), ended)
        return cls(pc.binary_join(whole, "\n")[0].as_buffer(), _bounds(lengths), rows)

    def parts(self) -> list[Self]:
        steps = np.arange(0, int(self.bounds[-1]), _BLOCK_BYTES)
        starts = [int(row) for row in np.unique(np.searchsorted(self.bounds, steps))]
        ends = [*starts[1:], len(self.rows)]
        return [self.part(low, high) for low, high in zip(starts, ends, strict=True)]

    def part(self, low: int, high: int) -> Self:
        return type(self)(self.data, self.bounds[low : high + 1], self.rows[low:high])

    def picked(self, at: Sequence[int] | Rows) -> Self:
        chosen = np.asarray(at, dtype=np.int64)
        breaks = np.flatnonzero(chosen[1:] != chosen[:-1] + 1) + 1
        runs = np.split(chosen, breaks) if len(chosen) else []
        data = memoryview(self.data)
        pieces = [data[self.bounds[run[0]] : self.bounds[run[-1] + 1]] for run in runs]
        lengths = (self.bounds[1:] - self.bounds[:-1])[chosen]
        return type(self)(pa.py_buffer(b"".join(pieces)), _bounds(lengths), self.rows[chosen])

    def text(self) -> pa.Buffer:
        start, end = int(self.bounds[0]), int(self.bounds[-1])
        return self.data.slice(start, end - start)

    def lines(self) -> pa.StringArray:
        offsets = pa.py_buffer(self.bounds.astype(np.int32))
        return pa.StringArray.from_buffers(len(self.rows), offsets, self.data)


def _bounds(lengths: Rows) -> Rows:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


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

    rest = np.arange(len(piece))
    left: list[Rows] = []
    plain = read_plain(piece, _read_schema(target.schema))
    if plain is not None:
        left.append(_convert(plain.batch, plain.rows, start, target))
        rest = np.delete(rest, plain.rows)
    if len(rest):
        left.append(_read_lines(piece, rest, start, target))
    _read_left(piece, np.concatenate(left) if left else rest, start, target)


def _read_lines(piece: pa.Array, rows: Rows, start: int, target: _RowCollector) -> Rows:
    read_schema = _read_schema(target.schema)
    lines = lines_of(piece if len(rows) == len(piece) else piece.take(pa.array(rows)))
    if any(has_map(item.type) for item in target.schema):
        lines = with_entries(lines, target.schema)
    if any(has_decimal(item.type) for item in read_schema):
        lines = with_bearable_decimals(lines, read_schema)
    is_line = mask_of(lines.is_valid())
    left: list[Rows] = [rows[~is_line]]
    if is_line.any():
        block = _Block.of(lines.drop_null(), rows[is_line])
        for good, batch in _good_rows(block, read_schema, left):
            left.append(_convert(batch, good, start, target))
    return np.concatenate(left)


def _read_left(piece: pa.Array, left: Rows, start: int, target: _RowCollector) -> None:
    if not len(left):
        return
    left = np.sort(left)
    read = read_each(piece.take(pa.array(left)).to_pylist(), target.schema, target.rules)
    target.batches.append(read.batch)
    target.indexes.append(start + left[np.array(read.records, np.int64)])
    for at, reason in read.reasons.items():
        target.reasons[int(start + left[at])] = reason


def _read_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_read_field(item) for item in schema])


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
        pair = pa.struct([("key", kind.key_type), ("value", _read_type(kind.item_type))])
        return pa.list_(pair)
    if pa.types.is_list(kind):
        return pa.list_(_read_type(kind.value_type))
    textual = pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_binary(kind)
    return pa.string() if textual else kind


def _is_time(item: pa.Field) -> bool:
    return bool(item.metadata) and item.metadata.get(b"sql") == b"TIME"


def _good_rows(
    block: _Block, schema: pa.Schema, left: list[Rows]
) -> Iterator[tuple[Rows, pa.RecordBatch]]:
    """Lines that parse into one row each, in any order; `left` receives the rows of the others."""
    from joins.kernels.json.plain import plain_rows

    for part in block.parts():
        outcome = _read(part, schema)
        if outcome is not None:
            yield part.rows, outcome
            continue
        right = plain_rows(part.lines(), schema)
        left.append(np.delete(part.rows, right))
        pending = [part.picked(right)]
        while pending:
            some = pending.pop()
            count = len(some.rows)
            outcome = _read(some, schema) if count else None
            if outcome is not None:
                yield some.rows, outcome
            elif count <= _FEWEST:
                left.append(some.rows)
            else:
                pending += [some.part(count // 2, count), some.part(0, count // 2)]


def _read(block: _Block, schema: pa.Schema) -> pa.RecordBatch | None:
    """One row a line; None if the block has an error."""
    text = block.text()
    count = len(block.rows)
    try:
        table = pj.open_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=text.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior="ignore",
            ),
        ).read_all()
    except pa.ArrowInvalid:
        return None
    if table.num_rows != count:
        return None
    columns = [table.column(name).combine_chunks() for name in schema.names]
    return batch_of(columns, schema, count)


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
    if pa.types.is_decimal(item.type):
        return Checked(source, _too_large(source))
    if source.type.equals(item.type):
        return sound(source)
    return from_text(source, item.type)


def _too_large(numbers: pa.Array) -> Mask:
    """Mask of DECIMALs beyond their precision: Arrow's reader adds the digits of the scale."""
    if not len(numbers):
        return np.zeros(0, dtype=np.bool_)
    extremes = pc.min_max(numbers).as_py()
    kind = numbers.type
    bound = Decimal(10) ** (kind.precision - kind.scale)
    if all(value is None or value.copy_abs() < bound for value in extremes.values()):
        return np.zeros(len(numbers), dtype=np.bool_)
    beyond = (value is not None and value.copy_abs() >= bound for value in numbers.to_pylist())
    return np.fromiter(beyond, dtype=np.bool_, count=len(numbers))


def _child(kind: pa.DataType, at: int) -> pa.Field:
    if pa.types.is_map(kind):
        return kind.item_field if at else kind.key_field
    return kind.field(at)


def _is_read_as_is(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
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
