"""Kafka values that are JSON objects, as columns; each row is proved to come from its own record.

What is plain is read by one compiled pass (`joins.kernels.json.plain`), the rest by Arrow's reader.

There many values are parsed as one block of lines. Before that, whatever could produce no row, or
take part in its neighbour's, leaves (`joins.kernels.json.lines`). What remains yields at least one
row a value, because `}`, line break, `{` continues nothing in JSON. So a block with as many rows as
values has one row of each value. A block that fails is read again without the lines that look wrong
(`joins.kernels.json.screen`), which are read apart, and bisected if it still fails.
"""
# reads better long: the proof that rows are of their own records goes through all of it.

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from joins.kernels.expressions.casts import Checked, Mask, from_text, mask_of, time_from_text
from joins.kernels.expressions.nested import mapped, parts_of
from joins.kernels.formats.parsed import BadRow, ParsedRows
from joins.kernels.json.decimals import has_decimal, with_bearable_decimals
from joins.kernels.json.lines import lines_of
from joins.kernels.json.maps import has_map, with_entries
from joins.kernels.json.screen import Screen
from joins.plan.plan import Field
from joins.plan.types import TypeName, arrow_type

Rows = npt.NDArray[np.int64]
_OF_TIME = {b"sql": b"TIME"}

_PIECE_BYTES = 32 << 20
_PIECE_CELLS = 2 << 20  # rows times columns
_BLOCK_BYTES = 512 << 10
_SHOWN_CHARACTERS = 60
_NUMBER_TEXT = re.compile(r"(?:parse:|JSON to \w+\([^)]*\): |string ')([^' ]*)")
_ROW = re.compile(r" in row (\d+)$")
_CHANGED = re.compile(r"Column\(/(.+)\) changed from (\w+) to (\w+)")
_TWICE = re.compile(r"Column\(/(.+)\) was specified twice")


def parse(values: pa.Array, schema: pa.Schema) -> ParsedRows:
    """Parse `values` (binary or large binary, nullable), one object each; never raises for data.

    Missing members are NULL and unknown ones are ignored. Numbers are read exactly (DECIMAL from a
    number or a string), dates and timestamps from their SQL or ISO text, binary from base64, and at
    the top level int64 with the metadata `{b"sql": b"TIME"}` from `HH:MM:SS[.f]`. Structs are read
    from objects, lists from arrays, maps from objects with any members.
    """
    target = _RowCollector(schema)
    for start, piece in _pieces(values, max(1, _PIECE_CELLS // max(1, len(schema)))):
        _parse_piece(start, piece, target)
    return target.finish()


def json_schema(fields: Sequence[Field]) -> pa.Schema:
    """What `parse` takes for declared columns."""
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
    batches: list[pa.RecordBatch] = field(default_factory=list)
    indexes: list[Rows] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)

    def finish(self) -> ParsedRows:
        table = pa.Table.from_batches(self.batches, self.schema).combine_chunks()
        batches = table.to_batches()
        batch = batches[0] if batches else _empty(self.schema)
        index = np.concatenate(self.indexes) if self.indexes else np.zeros(0, dtype=np.int64)
        if (index[1:] < index[:-1]).any():
            order = np.argsort(index)
            batch, index = batch.take(pa.array(order)), index[order]
        bad = tuple(BadRow(row, self.reasons[row]) for row in sorted(self.reasons))
        return ParsedRows(batch, pa.array(index, pa.int64()), bad)


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines, each with its line break: line `i` is `data[bounds[i]:bounds[i + 1]]`.

    Attributes:
        rows: which value each line is.
    """

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
        """Parts of about `_BLOCK_BYTES`."""
        steps = np.arange(0, int(self.bounds[-1]), _BLOCK_BYTES)
        starts = [int(row) for row in np.unique(np.searchsorted(self.bounds, steps))]
        ends = [*starts[1:], len(self.rows)]
        return [self.part(low, high) for low, high in zip(starts, ends, strict=True)]

    def part(self, low: int, high: int) -> Self:
        """The lines from `low` up to `high`."""
        return type(self)(self.data, self.bounds[low : high + 1], self.rows[low:high])

    def picked(self, at: Sequence[int] | Rows) -> Self:
        """The lines at the positions `at`, which ascend; runs of them are copied at once."""
        chosen = np.asarray(at, dtype=np.int64)
        breaks = np.flatnonzero(chosen[1:] != chosen[:-1] + 1) + 1
        runs = np.split(chosen, breaks) if len(chosen) else []
        data = memoryview(self.data)
        pieces = [data[self.bounds[run[0]] : self.bounds[run[-1] + 1]] for run in runs]
        lengths = (self.bounds[1:] - self.bounds[:-1])[chosen]
        return type(self)(pa.py_buffer(b"".join(pieces)), _bounds(lengths), self.rows[chosen])

    def text(self) -> pa.Buffer:
        """All lines."""
        start, end = int(self.bounds[0]), int(self.bounds[-1])
        return self.data.slice(start, end - start)

    def lines(self) -> pa.StringArray:
        """Each line with its line break."""
        offsets = pa.py_buffer(self.bounds.astype(np.int32))
        return pa.StringArray.from_buffers(len(self.rows), offsets, self.data)


def _bounds(lengths: Rows) -> Rows:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def _pieces(values: pa.Array, rows: int) -> Iterator[tuple[int, pa.Array]]:
    """Slices of at most `rows` and `_PIECE_BYTES`, or of one value."""
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
    """Read what is plain in one pass, and what is left by the reader."""
    # numba is 60 MB: whoever plans or sends, and parses nothing, does without
    from joins.kernels.json.plain import read_plain

    rows = np.arange(len(piece))
    plain = read_plain(piece, _read_schema(target.schema))
    if plain is not None:
        _convert(plain.batch, start + plain.rows, target)
        if len(plain.rows) == len(piece):
            return
        rows = np.delete(rows, plain.rows)
        piece = piece.take(pa.array(rows))
    _read_values(piece, start + rows, target)


def _read_values(values: pa.Array, rows: Rows, target: _RowCollector) -> None:
    """Read `values`, which have the positions `rows`, by Arrow's reader."""
    reasons: dict[int, str] = {}
    lines = lines_of(values, reasons)
    read_schema = _read_schema(target.schema)
    if any(has_map(item.type) for item in target.schema):
        lines = with_entries(lines, target.schema, reasons)
    if any(has_decimal(item.type) for item in read_schema):
        lines = with_bearable_decimals(lines, read_schema, reasons)
    for at, reason in reasons.items():
        target.reasons[int(rows[at])] = reason
    if len(reasons) == len(lines):
        return
    if reasons:
        rows = np.delete(rows, list(reasons))
        lines = lines.drop_null()
    for good, batch in _good_rows(_Block.of(lines, rows), read_schema, target.reasons):
        _convert(batch, good, target)


def _read_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_read_field(item) for item in schema])


def _read_field(item: pa.Field) -> pa.Field:
    """What the JSON reader is asked for: text where we read the text ourselves."""
    return pa.field(item.name, pa.string() if _is_time(item) else _read_type(item.type))


def _read_type(kind: pa.DataType) -> pa.DataType:
    """Of a map the list of its entries, as `with_entries` has written them."""
    if pa.types.is_struct(kind):
        return pa.struct([(item.name, _read_type(item.type)) for item in kind])
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
    block: _Block, schema: pa.Schema, reasons: dict[int, str]
) -> Iterator[tuple[Rows, pa.RecordBatch]]:
    """Lines that parse into one row a line, in any order; the other lines get a reason."""
    screen = Screen(schema)
    for part in block.parts():
        outcome = _read(part, schema)
        if isinstance(outcome, pa.RecordBatch):
            yield part.rows, outcome
            continue
        pieces = screen.screened(part.lines())
        for at, reason in pieces.wrong.items():
            reasons[int(part.rows[at])] = reason
        readable = [at for at in pieces.alone if _is_readable(part, at, schema, reasons)]
        for chosen in (pieces.right, pieces.doubtful, readable):
            yield from _bisected(part.picked(chosen), schema, reasons)


def _is_readable(block: _Block, at: int, schema: pa.Schema, reasons: dict[int, str]) -> bool:
    """Whether line `at` gives a row when it is read alone; if not, it gets a reason."""
    line = block.part(at, at + 1)
    outcome = _read(line, schema)
    if isinstance(outcome, str):
        reasons[int(line.rows[0])] = _reason(outcome, line.text().to_pybytes())
        return False
    return True


def _bisected(
    block: _Block, schema: pa.Schema, reasons: dict[int, str]
) -> Iterator[tuple[Rows, pa.RecordBatch]]:
    pending = [block]
    while pending:
        part = pending.pop()
        if len(part.rows) == 0:
            continue
        outcome = _read(part, schema)
        if isinstance(outcome, pa.RecordBatch):
            yield part.rows, outcome
        elif len(part.rows) == 1:
            reasons[int(part.rows[0])] = _reason(outcome, part.text().to_pybytes())
        else:
            pending += _split(part, outcome)


def _split(block: _Block, message: str) -> list[_Block]:
    """Smaller blocks: without the rows that the message may mean, else halves."""
    count = len(block.rows)
    named = _ROW.search(message)
    row = int(named.group(1)) if named else count
    if row >= count:
        return [block.part(count // 2, count), block.part(0, count // 2)]
    return [block.part(row + 1, count), block.part(row, row + 1), block.part(0, row)]


def _read(block: _Block, schema: pa.Schema) -> pa.RecordBatch | str:
    """One row a line, or what is wrong with the block."""
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
    except pa.ArrowInvalid as error:
        return str(error)
    if table.num_rows != count:
        return f"{table.num_rows} JSON documents in place of {count}"
    columns = [table.column(name).combine_chunks() for name in schema.names]
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _reason(message: str, line: bytes) -> str:
    changed = _CHANGED.search(message)
    if changed:
        column, expected, actual = changed.groups()
        return f'field "{_dotted(column)}": expected {expected.replace("_", " ")}, found {actual}'
    twice = _TWICE.search(message)
    if twice:
        return f'field "{_dotted(twice.group(1))}" appears twice'
    if message.startswith("JSON parse error: "):
        detail = _ROW.sub("", message.removeprefix("JSON parse error: ")).rstrip(".")
        return f"invalid JSON: {detail[:1].lower()}{detail[1:]}"
    return _field_with_number(message, line) + message[:200]


def _dotted(path: str) -> str:
    """A place as users write it; `[]` is any element of a list."""
    return path.replace("/[]", "[]").replace("/", ".")


def _field_with_number(message: str, line: bytes) -> str:
    """The prefix that names the first member with the number that `message` complains about."""
    named = _NUMBER_TEXT.search(message)
    try:
        members = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return ""
    if named is None or not isinstance(members, dict):
        return ""
    place = _place_of(members, named.group(1))
    return "" if place is None else f'field "{place}": '


def _place_of(value: object, number: str) -> str | None:
    """Where in a document a number is first, written as text."""
    pending: list[tuple[str, object]] = [("", value)]
    while pending:
        place, member = pending.pop()
        if member == number:
            return place
        if isinstance(member, dict):
            within = [(f"{place}.{name}".lstrip("."), item) for name, item in member.items()]
            pending += reversed(within)
        elif isinstance(member, list):
            pending += [(f"{place}[]", item) for item in reversed(member)]
    return None


def _convert(batch: pa.RecordBatch, rows: Rows, target: _RowCollector) -> None:
    """Read our own types from their text; rows with a value that cannot be read become bad."""
    columns: list[pa.Array] = []
    bad = np.zeros(len(rows), dtype=np.bool_)
    for item, source in zip(target.schema, batch.columns, strict=True):
        checked = _typed(source, item)
        columns.append(checked.values)
        for row in np.flatnonzero(checked.failed & ~bad):
            place, value, expected = _unfit(source.slice(int(row), 1), item)
            shown = str(value)[:_SHOWN_CHARACTERS]
            target.reasons[int(rows[row])] = f'field "{place}": "{shown}" is not {expected}'
        bad |= checked.failed
    if not columns:
        target.batches.append(batch)
        target.indexes.append(rows)
        return
    converted = pa.RecordBatch.from_arrays(columns, schema=target.schema)
    if bad.any():
        converted, rows = converted.filter(pa.array(~bad)), rows[~bad]
    target.batches.append(converted)
    target.indexes.append(rows)


def _typed(source: pa.Array, item: pa.Field) -> Checked:
    if _is_time(item):
        return time_from_text(source)
    if pa.types.is_floating(item.type):
        return Checked(source, ~mask_of(pc.fill_null(pc.is_finite(source), True)))
    if pa.types.is_nested(item.type) and not _is_read_as_is(item.type):
        return mapped(source, item.type, lambda at, child: _typed(child, _child(item, at)))
    if pa.types.is_decimal(item.type):
        return Checked(source, _too_large(source))
    if source.type.equals(item.type):
        return Checked(source, np.zeros(len(source), dtype=np.bool_))
    return from_text(source, item.type)


def _too_large(numbers: pa.Array) -> Mask:
    """Where a DECIMAL has more digits than its precision: the reader adds those of the scale."""
    if not len(numbers):
        return np.zeros(0, dtype=np.bool_)
    extremes = pc.min_max(numbers).as_py()
    kind = numbers.type
    bound = Decimal(10) ** (kind.precision - kind.scale)
    if all(value is None or value.copy_abs() < bound for value in extremes.values()):
        return np.zeros(len(numbers), dtype=np.bool_)
    beyond = (value is not None and value.copy_abs() >= bound for value in numbers.to_pylist())
    return np.fromiter(beyond, dtype=np.bool_, count=len(numbers))


def _child(item: pa.Field, at: int) -> pa.Field:
    """The field of a child, with its name as in messages."""
    kind = item.type
    if pa.types.is_struct(kind):
        return pa.field(f"{item.name}.{kind.field(at).name}", kind.field(at).type)
    if pa.types.is_map(kind):
        return pa.field(f"{item.name}[].value", kind.item_type if at else kind.key_type)
    return pa.field(f"{item.name}[]", kind.value_type)


def _is_read_as_is(kind: pa.DataType) -> bool:
    """Whether the reader gives these values, and nothing of them has to be looked at."""
    if pa.types.is_map(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return False
    if pa.types.is_nested(kind):
        return all(_is_read_as_is(kind.field(at).type) for at in range(kind.num_fields))
    return bool(_read_type(kind).equals(kind))


def _unfit(source: pa.Array, item: pa.Field) -> tuple[str, object, str]:
    """Of a column whose only row fails: the place of the first such value, it, what it is not."""
    if pa.types.is_nested(item.type):
        parts = parts_of(source, entries=pa.types.is_map(item.type))
        for at, child in enumerate(parts.children):
            failed = np.flatnonzero(_typed(child, _child(item, at)).failed)
            if len(failed):
                return _unfit(child.slice(int(failed[0]), 1), _child(item, at))
    return item.name, source[0].as_py(), _kind(item)


def _kind(item: pa.Field) -> str:
    if _is_time(item):
        return "a time"
    if pa.types.is_floating(item.type):
        return "a finite number"
    if pa.types.is_decimal(item.type):
        return f"a DECIMAL({item.type.precision}, {item.type.scale})"
    if pa.types.is_binary(item.type):
        return "base64"
    if pa.types.is_date(item.type):
        return "a date"
    return "a timestamp" if item.type.tz is None else "a timestamp with Z or an offset"


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, item.type) for item in schema], schema=schema)
