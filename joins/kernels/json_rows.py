"""Kafka values that are JSON objects, as columns; each row is proved to come from its own record.

Many values are parsed as one block of lines. Before that, whatever could produce no row, or take
part in its neighbour's, leaves: nulls, values that do not begin with `{` and end with `}`, values
with a NUL byte or invalid UTF-8. A line break inside a value becomes a tab, which is a blank
outside strings and an error inside them, as the line break itself is. What remains yields at least
one row a value, because `}`, line break, `{` continues nothing in JSON. So a block with as many
rows as values has one row of each value. A block that fails is read again without the lines that
look wrong, which are read one by one, and bisected if it still fails.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from joins.kernels.casts import Checked, Mask, from_text, mask_of, time_from_text, try_each

Rows = npt.NDArray[np.int64]

_PIECE_BYTES = 32 << 20
_BLOCK_BYTES = 512 << 10
_SHOWN_CHARACTERS = 60
_NUMBER_TEXT = re.compile(r"(?:parse:|JSON to \w+\([^)]*\): |string ')([^' ]*)")
_ROW = re.compile(r" in row (\d+)$")
_CHANGED = re.compile(r"Column\(/(.+)\) changed from (\w+) to (\w+)")
_TWICE = re.compile(r"Column\(/(.+)\) was specified twice")


_FOUND = {
    int: "number",
    float: "number",
    str: "string",
    bool: "boolean",
    dict: "object",
    list: "array",
}


@dataclass(frozen=True, slots=True)
class BadRow:
    """A value that gave no row.

    Attributes:
        row: its position in the input.
        reason: what is wrong with it, naming the field where that is known.
    """

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The good rows in input order, and the bad ones.

    Attributes:
        batch: the good rows, with exactly the schema asked for.
        row_index: the position of each good row in the input.
        bad: in input order.
    """

    batch: pa.RecordBatch
    row_index: pa.Int64Array
    bad: tuple[BadRow, ...]


def parse(values: pa.Array, schema: pa.Schema) -> ParsedRows:
    """Parse `values` (binary or large binary, nullable), one object each; never raises for data.

    Missing members are NULL and unknown ones are ignored. At the top level numbers are read exactly
    (DECIMAL from a number or a string), dates and timestamps from their SQL or ISO text, binary
    from base64, and int64 with the metadata `{b"sql": b"TIME"}` from `HH:MM:SS[.f]`. Inside structs
    the types are pyarrow's own: dates are numbers of days, binary is the bytes of the text.
    """
    target = _Rows(schema)
    for start, piece in _pieces(values):
        _parse_piece(start, piece, target)
    return target.finish()


@dataclass(slots=True)
class _Rows:
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
class _Check:
    """What a value must be.

    Attributes:
        types: Python's types of a value of the right kind.
        numbers: those that fit, None for no such limit.
        fitting: what a number is that fits.
    """

    expected: str
    types: tuple[type, ...]
    numbers: range | None = None
    fitting: str = ""


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines joined by line breaks: line `i` is `data[bounds[i]:bounds[i + 1]]`, value `rows[i]`."""

    data: pa.Buffer
    bounds: Rows
    rows: Rows

    def ranges(self) -> list[tuple[int, int]]:
        """Ranges of about `_BLOCK_BYTES`."""
        steps = np.arange(0, int(self.bounds[-1]), _BLOCK_BYTES)
        starts = [int(row) for row in np.unique(np.searchsorted(self.bounds, steps))]
        ends = [*starts[1:], len(self.rows)]
        return list(zip(starts, ends, strict=True))

    def lines(self, low: int, high: int) -> pa.Buffer:
        start = int(self.bounds[low])
        return self.data.slice(start, int(self.bounds[high]) - start)

    def split(self, low: int, high: int) -> list[bytes]:
        """The lines of a range, without their line breaks."""
        lines: list[bytes] = self.lines(low, high).to_pybytes().split(b"\n")
        return lines[:-1]


def _pieces(values: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """Slices of at most `_PIECE_BYTES`, or of one value."""
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(values):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _PIECE_BYTES, side="right"))
        stop = max(stop, start + 1)
        yield start, values.slice(start, stop - start)
        start = stop


def _parse_piece(start: int, piece: pa.Array, target: _Rows) -> None:
    reasons: dict[int, str] = {}
    lines = _lines(piece, reasons)
    for row, reason in reasons.items():
        target.reasons[start + row] = reason
    rows = np.flatnonzero(mask_of(pc.is_valid(lines)))
    if len(rows) == 0:
        return
    block = _joined(lines.drop_null(), rows + start)
    read_schema = pa.schema([_read_field(item) for item in target.schema])
    for good, batch in _good_rows(block, read_schema, target.reasons):
        _convert(batch, good, target)


def _lines(piece: pa.Array, reasons: dict[int, str]) -> pa.Array:
    """The values that may enter a block as strings without line breaks; the others are NULL."""
    decoded = try_each(piece, lambda part: part.cast(pa.string()), pa.string())
    text = decoded.values
    if not decoded.failed.any() and _are_plain_objects(text):
        return text
    _exclude(decoded.failed, "the value is not UTF-8", reasons)
    _exclude(mask_of(pc.is_null(piece)), "the value is null", reasons)
    if not _all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))):
        text = pc.ascii_trim_whitespace(text)
    _exclude(mask_of(pc.equal(text, "")), "the value is empty", reasons)
    object_like = mask_of(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}")))
    _exclude(~object_like, "the value is not one JSON object", reasons)
    _exclude(mask_of(pc.match_substring(text, "\0")), "the value has a NUL byte", reasons)
    for line_break in ("\n", "\r"):
        if _any(pc.match_substring(text, line_break)):
            text = pc.replace_substring(text, line_break, "\t")
    if not reasons:
        return text
    excluded = np.zeros(len(text), dtype=np.bool_)
    excluded[list(reasons)] = True
    return pc.if_else(pa.array(excluded), pa.scalar(None, pa.string()), text)


def _are_plain_objects(text: pa.Array) -> bool:
    """Whether all values begin with `{`, end with `}` and have no NUL or line break between."""
    if text.null_count or len(text) == 0:
        return False
    _, offset_buffer, data_buffer = text.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[text.offset :][: len(text) + 1]
    if (offsets[1:] - offsets[:-1]).min() == 0:
        return False
    data = np.frombuffer(data_buffer, dtype=np.uint8)
    edges = (data[offsets[:-1]] == ord("{")) & (data[offsets[1:] - 1] == ord("}"))
    return bool(edges.all()) and data[offsets[0] : offsets[-1]].min() > ord("\r")


def _exclude(mask: Mask, reason: str, reasons: dict[int, str]) -> None:
    for row in np.flatnonzero(mask):
        reasons.setdefault(int(row), reason)


def _all(mask: pa.Array) -> bool:
    return bool(pc.all(mask, min_count=0).as_py())


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask, min_count=0).as_py())


def _block(lines: Sequence[bytes], rows: Rows) -> _Block:
    """A block of single lines."""
    bounds = np.cumsum([0, *(len(line) + 1 for line in lines)], dtype=np.int64)
    return _Block(pa.py_buffer(b"".join(line + b"\n" for line in lines)), bounds, rows)


def _joined(lines: pa.Array, rows: Rows) -> _Block:
    lengths = pc.binary_length(lines).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    ended = pa.concat_arrays([lines, pa.array([""], pa.string())])
    whole = pa.ListArray.from_arrays(pa.array([0, len(ended)], pa.int32()), ended)
    data = pc.binary_join(whole, "\n")[0].as_buffer()
    return _Block(data, bounds, rows)


def _read_field(item: pa.Field) -> pa.Field:
    """What the JSON reader is asked for: text where we read the text ourselves."""
    kind = item.type
    textual = pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_binary(kind)
    return pa.field(item.name, pa.string() if textual or _is_time(item) else kind)


def _is_time(item: pa.Field) -> bool:
    return bool(item.metadata) and item.metadata.get(b"sql") == b"TIME"


def _good_rows(
    block: _Block, schema: pa.Schema, reasons: dict[int, str]
) -> Iterator[tuple[Rows, pa.RecordBatch]]:
    """Lines that parse into one row a line, in any order; the other lines get a reason."""
    for low, high in block.ranges():
        outcome = _read(block.lines(low, high), high - low, schema)
        if isinstance(outcome, pa.RecordBatch):
            yield block.rows[low:high], outcome
            continue
        rows = block.rows[low:high]
        likely, broken = _screened(block.split(low, high), rows, schema, reasons)
        yield from _bisected(likely, schema, reasons)
        for single in broken:
            yield from _bisected(single, schema, reasons)


def _bisected(
    block: _Block, schema: pa.Schema, reasons: dict[int, str]
) -> Iterator[tuple[Rows, pa.RecordBatch]]:
    pending = [(0, len(block.rows))]
    while pending:
        low, high = pending.pop()
        if low == high:
            continue
        outcome = _read(block.lines(low, high), high - low, schema)
        if isinstance(outcome, pa.RecordBatch):
            yield block.rows[low:high], outcome
        elif high - low == 1:
            line = block.lines(low, high).to_pybytes()
            reasons[int(block.rows[low])] = _reason(outcome, line)
        else:
            pending += _split(low, high, outcome)


def _screened(
    lines: Sequence[bytes], rows: Rows, schema: pa.Schema, reasons: dict[int, str]
) -> tuple[_Block, list[_Block]]:
    """The lines that are probably right, and each that is probably not JSON; others get a reason.

    A value of the wrong type is final; all else is a guess for speed, proved by the next read.
    """
    checks = [(item.name, check) for item in schema if (check := _check(item.type)) is not None]
    likely: list[int] = []
    broken: list[_Block] = []
    for at, line in enumerate(lines):
        try:
            members = orjson.loads(line)
        except orjson.JSONDecodeError:
            broken.append(_block([line], rows[at : at + 1]))
            continue
        reason = _wrong_type(members, checks)
        if reason is None:
            likely.append(at)
        else:
            reasons[int(rows[at])] = reason
    return _block([lines[at] for at in likely], rows[likely]), broken


def _wrong_type(members: dict[str, object], checks: Sequence[tuple[str, _Check]]) -> str | None:
    for name, check in checks:
        value = members.get(name)
        if value is None:
            continue
        if type(value) not in check.types:
            return f'field "{name}": expected {check.expected}, found {_FOUND[type(value)]}'
        # A float that is looked for in a range is compared with each of its numbers.
        if check.numbers is not None and (type(value) is float or value not in check.numbers):
            return f'field "{name}": {str(value)[:_SHOWN_CHARACTERS]} is not {check.fitting}'
    return None


def _check(kind: pa.DataType) -> _Check | None:
    """What a JSON value must be so that the reader may accept it as `kind`."""
    if pa.types.is_signed_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return _Check("number", (int, float), range(-limit, limit), f"an {kind}")
    if pa.types.is_floating(kind):
        return _Check("number", (int, float))
    if pa.types.is_decimal(kind):
        return _Check("number or string", (int, float, str))
    if pa.types.is_boolean(kind):
        return _Check("boolean", (bool,))
    if pa.types.is_string(kind):
        return _Check("string", (str,))
    return _Check("object", (dict,)) if pa.types.is_struct(kind) else None


def _split(low: int, high: int, message: str) -> list[tuple[int, int]]:
    """Smaller ranges, the first one last: around the row that the message names, else halves."""
    named = _ROW.search(message)
    row = low + int(named.group(1)) if named else high
    if row >= high:
        middle = (low + high) // 2
        return [(middle, high), (low, middle)]
    return [(row + 1, high), (row, row + 1), (low, row)]


def _read(lines: pa.Buffer, count: int, schema: pa.Schema) -> pa.RecordBatch | str:
    """One row a line, or what is wrong with the block."""
    try:
        table = pj.read_json(
            pa.BufferReader(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=lines.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior="ignore",
            ),
        )
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
        column, expected, found = changed.groups()
        return f'field "{column}": expected {expected.replace("_", " ")}, found {found}'
    twice = _TWICE.search(message)
    if twice:
        return f'field "{twice.group(1)}" appears twice'
    if message.startswith("JSON parse error: "):
        detail = _ROW.sub("", message.removeprefix("JSON parse error: ")).rstrip(".")
        return f"invalid JSON: {detail[:1].lower()}{detail[1:]}"
    return _field_with_number(message, line) + message[:200]


def _field_with_number(message: str, line: bytes) -> str:
    """The prefix that names the first member with the number that `message` complains about."""
    named = _NUMBER_TEXT.search(message)
    try:
        members = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return ""
    if named is None or not isinstance(members, dict):
        return ""
    names = [name for name, value in members.items() if value == named.group(1)]
    return f'field "{names[0]}": ' if names else ""


def _convert(batch: pa.RecordBatch, rows: Rows, target: _Rows) -> None:
    """Read our own types from their text; rows with a value that cannot be read become bad."""
    columns: list[pa.Array] = []
    bad = np.zeros(len(rows), dtype=np.bool_)
    for item, source in zip(target.schema, batch.columns, strict=True):
        checked = _typed(source, item)
        columns.append(checked.values)
        for row in np.flatnonzero(checked.failed & ~bad):
            shown = str(source[int(row)].as_py())[:_SHOWN_CHARACTERS]
            target.reasons[int(rows[row])] = f'field "{item.name}": "{shown}" is not {_kind(item)}'
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
    if source.type.equals(item.type):
        return Checked(source, np.zeros(len(source), dtype=np.bool_))
    return from_text(source, item.type)


def _kind(item: pa.Field) -> str:
    if _is_time(item):
        return "a time"
    if pa.types.is_floating(item.type):
        return "a finite number"
    if pa.types.is_binary(item.type):
        return "base64"
    if pa.types.is_date(item.type):
        return "a date"
    return "a timestamp" if item.type.tz is None else "a timestamp with Z or an offset"


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, item.type) for item in schema], schema=schema)
