"""Plain JSON objects straight into columns, by one compiled pass over their bytes.

It reads numbers that fit, booleans, strings, `null`, and objects and lists of these, level by
level. It leaves all else, including errors, to `joins.kernels.json.each`.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.compiled import compiled, inlined, one_at_a_time
from joins.kernels.expressions.nested import Parts, assembled, equal_keys
from joins.kernels.formats.parsed import batch_of
from joins.kernels.json.each import OF_TEXT
from joins.kernels.json.scan import (
    CLOSED_OBJECT,
    COMMA,
    FRACTION,
    NULL_WORD,
    OPEN_LIST,
    OPEN_OBJECT,
    POINT,
    POWER,
    QUOTE,
    SMALL_N,
    SMALL_T,
    WHOLE,
    are_same,
    behind_blanks,
    behind_colon,
    behind_mark,
    behind_word,
    boolean_end,
    byte_at,
    counts_of,
    hashed,
    integer,
    number,
    parts_into,
    scalar_end,
    string_end,
    unescape,
    unsigned,
    value_end,
    whole_integer,
)
from joins.kernels.texts import bytes_of, text_array, texts_at, validity

Rows = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_INTEGER, _UNSIGNED, _BOOLEAN, _STRING, _NUMBER, _DECIMAL, _NESTED = range(7)
ABSENT, NULL = -1, -2
_PATH = 64  # so many members of a record are foretold
_UNKNOWN = 1 << 40  # is longer than a name


class PlainRows(NamedTuple):
    """Rows that the pass has read, and their positions."""

    batch: pa.RecordBatch
    rows: Rows


class _Columns(NamedTuple):
    """Members to read."""

    names: Bytes  # all names, concatenated; keeps the memory of `bounds` alive
    bounds: Rows  # addresses of their starts, and of the end
    heads: Rows  # by hash of a name the first column with it, -1 for none
    nexts: Rows  # by column the next column with the same hash
    kinds: Rows  # by column
    # by column the range of an integer, the most digits of a number before and after the point, or
    # the opening bracket of a nested value (0 for any); for a text 1 if it must be in quotes
    limits: Rows

    @classmethod
    def of(cls, schema: pa.Schema) -> Self:
        described = []
        for item in schema:
            kind, low, high = _described(item.type)
            is_quoted = kind == _STRING and item.metadata == OF_TEXT
            described.append((kind, 1 if is_quoted else low, high))
        return cls._named(schema.names, described)

    @classmethod
    def raw(cls, names: Sequence[str]) -> Self:
        return cls._named(names, [(_NESTED, 0, 0)] * len(names))

    @classmethod
    def _named(cls, columns: Sequence[str], described: Sequence[tuple[int, int, int]]) -> Self:
        names = [name.encode() for name in columns]
        text = np.frombuffer(b"".join(names), np.uint8)
        bounds = np.cumsum([0, *map(len, names)]) + text.ctypes.data
        heads = np.full(1 << (2 * len(names)).bit_length(), -1)
        nexts = np.full(len(names), -1)
        for column in range(len(names)):
            bucket = hashed(bounds[column], bounds[column + 1]) & (len(heads) - 1)
            heads[bucket], nexts[column] = column, heads[bucket]
        kinds = np.array([kind for kind, *_ in described], np.int64)
        limits = np.array([each[1:] for each in described], np.int64).reshape(-1, 2)
        return cls(text, bounds, heads, nexts, kinds, limits)


class _Cells(NamedTuple):
    """Values by column and row: an integer or a text's bounds, `ABSENT` or `NULL`.

    `escaped` has the columns with escapes in a text.
    """

    firsts: npt.NDArray[np.int64]
    lasts: npt.NDArray[np.int64]
    escaped: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, columns: int, rows: int) -> Self:
        shape = (columns, rows)
        return cls(
            np.empty(shape, np.int64), np.empty(shape, np.int64), np.zeros(columns, np.bool_)
        )

    def column(self, at: int, count: int, kind: pa.DataType, data: Bytes) -> pa.Array:
        firsts, lasts = self.firsts[at, :count], self.lasts[at, :count]
        valid = lasts >= 0
        if pa.types.is_boolean(kind):
            bits = pa.py_buffer(np.packbits(firsts == 1, bitorder="little"))
            return pa.Array.from_buffers(kind, count, [validity(valid), bits])
        if pa.types.is_integer(kind):
            numbers = pa.py_buffer(firsts.astype(kind.to_pandas_dtype()))
            return pa.Array.from_buffers(kind, count, [validity(valid), numbers])
        if self.escaped[at]:
            out = np.empty(int((lasts - firsts)[valid].sum()), np.uint8)
            offsets = np.zeros(count + 1, np.int64)
            unescape(out, offsets, firsts, lasts)
            return text_array(out, offsets, valid, kind)
        start = data.ctypes.data
        starts = np.where(valid, firsts - start, NULL)
        return texts_at(data, starts, lasts - start, pa.string()).cast(kind)


class _Path(NamedTuple):
    """Names in the previous record, in order: most records are alike."""

    starts: Rows
    lengths: Rows
    columns: Rows


def read_plain(values: pa.Array, schema: pa.Schema) -> PlainRows:
    """The plain rows of `values`, in order."""
    data, bounds = bytes_of(pc.fill_null(values, b"") if values.null_count else values)
    bounds += data.ctypes.data
    return _objects((bounds[:-1], bounds[1:]), schema, data)


def _objects(texts: tuple[Rows, Rows], schema: pa.Schema, data: Bytes) -> PlainRows:
    rows, cells = _passed(texts, _Columns.of(schema))
    is_plain = np.ones(len(rows), np.bool_)
    arrays = [_column_of(cells, at, item.type, data, is_plain) for at, item in enumerate(schema)]
    batch = batch_of(arrays, schema, len(rows))
    if is_plain.all():
        return PlainRows(batch, rows)
    return PlainRows(batch.filter(pa.array(is_plain)), rows[is_plain])


def _column_of(
    cells: _Cells, at: int, kind: pa.DataType, data: Bytes, is_plain: npt.NDArray[np.bool_]
) -> pa.Array:
    """Column `at` of as many rows as `is_plain` has; marks rows with a part that is not plain."""
    count = len(is_plain)
    if not pa.types.is_nested(kind):
        return cells.column(at, count, kind, data)
    spans = cells.firsts[at, :count], cells.lasts[at, :count]
    return (_structs if pa.types.is_struct(kind) else _lists)(spans, kind, data, is_plain)


def _lists(
    cells: tuple[Rows, Rows], kind: pa.DataType, data: Bytes, is_plain: npt.NDArray[np.bool_]
) -> pa.Array:
    """A list or a map for each cell; marks rows with a part that is not plain, or a name twice."""
    firsts, lasts = cells
    is_map = pa.types.is_map(kind)
    lengths = np.empty(len(firsts), np.int64)
    counts_of(firsts, lasts, lengths)
    spans = np.empty((4, int(lengths.sum())), np.int64)
    parts_into(firsts, lasts, (spans[0], spans[1]), (spans[2], spans[3]))
    fields = [kind.key_field, kind.item_field] if is_map else [kind.value_field]
    parts = Parts([], lengths)
    for at, item in enumerate(fields, 2 - len(fields)):
        first, last = spans[2 * at : 2 * at + 2]
        inner, is_right = _Cells.of(1, len(first)), np.ones(len(first), np.bool_)
        _read_parts(first, last, _Columns.of(pa.schema([item])), inner, is_right)
        parts.children.append(_column_of(inner, 0, item.type, data, is_right))
        is_plain &= ~parts.of_rows(~is_right, len(firsts))
    if is_map:
        is_plain &= ~equal_keys(parts)
    return assembled(parts, kind, lasts < 0)


def _structs(
    cells: tuple[Rows, Rows], kind: pa.StructType, data: Bytes, is_plain: npt.NDArray[np.bool_]
) -> pa.Array:
    """A value for each cell with an object; marks rows whose object is not plain."""
    firsts, lasts = cells
    there = np.flatnonzero(lasts >= 0)
    inner = _objects((firsts[there], lasts[there]), pa.schema(list(kind)), data)
    read = there[inner.rows]
    is_right = lasts < 0
    is_right[read] = True
    is_plain &= is_right
    values = inner.batch.to_struct_array()
    if len(read) == len(lasts):
        return values
    places = np.full(len(lasts), -1)
    places[read] = np.arange(len(read))
    return values.take(pa.array(places, mask=places < 0))


def raw_members(firsts: Rows, lasts: Rows, names: Sequence[str]) -> tuple[Rows, Rows, Rows]:
    """Positions of plain objects; by name and object the raw value's start and end.

    The end is `NULL`, or `ABSENT` without such a member.
    """
    rows, cells = _passed((firsts, lasts), _Columns.raw(names))
    return rows, cells.firsts[:, : len(rows)], cells.lasts[:, : len(rows)]


def _passed(texts: tuple[Rows, Rows], columns: _Columns) -> tuple[Rows, _Cells]:
    firsts, lasts = texts
    cells = _Cells.of(len(columns.kinds), len(firsts))
    rows = np.empty(len(firsts), np.int64)
    path = _Path(*(np.full(_PATH, _UNKNOWN) for _ in range(3)))
    return rows[: _read_rows(firsts, lasts, columns, cells, (path, rows))], cells


def _described(kind: pa.DataType) -> tuple[int, int, int]:
    if pa.types.is_uint64(kind):
        return _UNSIGNED, 0, 0
    if pa.types.is_signed_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return _INTEGER, -limit, limit - 1
    if pa.types.is_boolean(kind):
        return _BOOLEAN, 0, 0
    if pa.types.is_string(kind):
        return _STRING, 0, 0
    if pa.types.is_floating(kind):
        return _NUMBER, WHOLE, FRACTION
    if pa.types.is_decimal128(kind):
        return _DECIMAL, kind.precision - kind.scale, kind.scale
    return _NESTED, OPEN_LIST if pa.types.is_list(kind) else OPEN_OBJECT, 0


@compiled
def _read_rows(
    firsts: Rows, lasts: Rows, columns: _Columns, cells: _Cells, more: tuple[_Path, Rows]
) -> int:
    """Reads each value; returns the number of plain ones, whose positions `more[1]` receives."""
    path, rows = more
    count = 0
    for row in range(len(firsts)):
        for column in range(len(columns.kinds)):
            cells.firsts[column, count] = 0
            cells.lasts[column, count] = ABSENT
        if _is_read((firsts[row], lasts[row]), columns, cells, path, count):
            rows[count] = row
            count += 1
    return count


@inlined
def _is_read(
    text: tuple[int, int], columns: _Columns, cells: _Cells, path: _Path, row: int
) -> bool:
    at, end = text
    at = behind_blanks(at, end)
    if at >= end or byte_at(at) != OPEN_OBJECT:
        at = behind_mark(text[0], end)
        if at >= end or byte_at(at) != OPEN_OBJECT:
            return False
    at = behind_blanks(at + 1, end)
    if at < end and byte_at(at) == CLOSED_OBJECT:
        return behind_blanks(at + 1, end) == end
    place = 0
    while at < end and byte_at(at) == QUOTE:
        column, at = _column(at + 1, end, columns, path, place)
        at = behind_colon(at, end)
        if at < 0:
            return False
        at = value_end(at, end) if column < 0 else _cell((at, end), columns, cells, column, row)
        at = behind_blanks(at, end) if at >= 0 else end
        if at >= end:
            return False
        if byte_at(at) == CLOSED_OBJECT:
            return behind_blanks(at + 1, end) == end
        if byte_at(at) != COMMA:
            return False
        at = behind_blanks(at + 1, end)
        place += 1
    return False


@inlined
def _column(at: int, end: int, columns: _Columns, path: _Path, place: int) -> tuple[int, int]:
    """Column of the member at `at`, or -1; address after its name, negative if not plain."""
    length = path.lengths[place] if place < _PATH else end
    is_so_long = length < end - at and byte_at(at + length) == QUOTE
    if is_so_long and are_same(at, path.starts[place], length):
        return path.columns[place], at + length + 1
    stop, is_escaped = string_end(at, end)
    if stop < 0 or is_escaped:
        return -1, -1
    column = columns.heads[hashed(at, stop) & (len(columns.heads) - 1)]
    while column >= 0:
        first, last = columns.bounds[column], columns.bounds[column + 1]
        if last - first == stop - at and are_same(at, first, stop - at):
            break
        column = columns.nexts[column]
    if place < _PATH:
        path.starts[place], path.lengths[place], path.columns[place] = at, stop - at, column
    return column, stop + 1


@inlined
def _cell(text: tuple[int, int], columns: _Columns, cells: _Cells, column: int, row: int) -> int:
    """Reads the value at the address; returns the address after it, or -1."""
    at, end = text
    if at >= end or cells.lasts[column, row] != ABSENT:
        return -1
    kind = columns.kinds[column]
    low, high = columns.limits[column, 0], columns.limits[column, 1]
    last = 0
    if byte_at(at) == SMALL_N:
        stop, first, last = behind_word(at, end, NULL_WORD), 0, NULL
    elif kind == _INTEGER:
        stop, first = integer(at, end)
        if stop < 0 or (stop < end and byte_at(stop) == POINT):
            stop, first = whole_integer(at, end)
        if first < low or first > high:
            return -1
    elif kind == _UNSIGNED:
        stop, first = unsigned(at, end)
    elif kind == _BOOLEAN:
        first = 1 if byte_at(at) == SMALL_T else 0
        stop = boolean_end(at, end)
    elif kind == _STRING:
        if byte_at(at) == QUOTE:
            first = at + 1
            last, is_escaped = string_end(first, end)
            cells.escaped[column] |= is_escaped
            stop = last + 1 if last >= 0 else -1
        else:  # the text of a number or a boolean
            first = at
            stop = last = scalar_end(at, end) if low == 0 else -1
    elif kind == _NESTED:
        first = at
        stop = last = value_end(at, end) if low in (0, byte_at(at)) else -1
    else:
        first, last, stop = number(at, end, low, high, 0 if kind == _DECIMAL else POWER)
    cells.firsts[column, row], cells.lasts[column, row] = first, last
    return stop


@compiled
def _read_parts(
    firsts: Rows,
    lasts: Rows,
    columns: _Columns,
    cells: _Cells,
    is_right: npt.NDArray[np.bool_],
) -> None:
    """Reads the values; one that is not plain is NULL, and is marked."""
    for row in range(len(firsts)):
        cells.lasts[0, row] = ABSENT
        stop = lasts[row]
        if stop >= 0:
            stop = _cell((firsts[row], lasts[row]), columns, cells, 0, row)
        if stop < 0 or stop != lasts[row]:
            cells.firsts[0, row], cells.lasts[0, row] = 0, NULL
            is_right[row] = lasts[row] == NULL


def warm_up() -> None:
    with one_at_a_time():
        read_plain(pa.array([b'{"a":"\\n"}'], pa.binary()), pa.schema([("a", pa.string())]))
