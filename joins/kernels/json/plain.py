"""Plain JSON objects straight into columns, by one compiled pass over their bytes.

The pass takes what it is certain of: an object in UTF-8 whose members that are read are numbers
that fit, booleans, strings, `null` or such objects; other members may be any JSON. Whatever else
there is, and all that is wrong, it leaves to the reader of `joins.kernels.json.rows`, which says
what it means.

Places are addresses: a call with an array costs more than most of these functions do.
"""
# reads better long: compiled functions call those of their own module only.

from collections.abc import Callable
from typing import Any, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import types
from numba.extending import intrinsic

from joins.kernels.compiled import compiled, inlined, one_at_a_time
from joins.kernels.texts import bytes_of, text_array, texts_at, validity

Rows = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_INTEGER, _BOOLEAN, _STRING, _NUMBER, _DECIMAL, _NESTED = range(6)
_ABSENT, _NULL = -1, -2
_DEEPEST = 1 << 60
_PATH = 64  # so many members of a record are foretold
_UNKNOWN = 1 << 40  # is longer than a name
_WHOLE, _FRACTION, _POWER = 19, 40, 2  # so many digits make no number too big for the reader

_TAB, _FEED, _RETURN, _BLANK, _QUOTE, _BACKSLASH = b'\t\n\r "\\'
_COMMA, _COLON, _MINUS, _PLUS, _POINT, _ZERO, _NINE = b",:-+.09"
_OPEN_OBJECT, _OPEN_LIST, _CLOSED_OBJECT, _CLOSED_LIST = b"{[}]"
_SMALL_E, _LARGE_E, _SMALL_N, _SMALL_T, _SMALL_U = b"eEntu"
_TRUE, _FALSE, _NULL_WORD = (
    int.from_bytes(word, "little") for word in (b"true", b"false", b"null")
)
_PLAIN = np.array([byte >= _BLANK and byte not in b'"\\' and byte < 0x80 for byte in range(256)])
_ONES, _HIGHEST = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES, _BLANKS = (_ONES * np.uint64(byte) for byte in (_QUOTE, _BACKSLASH, _BLANK))
_ESCAPED = np.zeros(256, np.uint8)  # what stands for what, behind a backslash
_ESCAPED[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
_HEX = np.full(256, -1, np.int64)
_HEX[list(b"0123456789abcdef")] = range(16)
_HEX[list(b"ABCDEF")] = range(10, 16)


class PlainRows(NamedTuple):
    """What the pass has read.

    Attributes:
        batch: of the read schema.
        rows: the position of each.
    """

    batch: pa.RecordBatch
    rows: Rows


class _Columns(NamedTuple):
    """The members to be read.

    Attributes:
        names: of all, one after the other; it keeps what `bounds` names.
        bounds: where each begins, and the end.
        heads: by the hash of a name the first column that may be it, -1 for none.
        nexts: by column the next one of its hash.
        kinds: by column.
        limits: by column the least and the greatest integer, or the digits of a number before and
            behind its point, or the bracket with which a nested value begins, 0 for any.
    """

    names: Bytes
    bounds: Rows
    heads: Rows
    nexts: Rows
    kinds: Rows
    limits: Rows

    @classmethod
    def of(cls, schema: pa.Schema) -> Self:
        described = [_described(item.type) for item in schema]
        names = [item.name.encode() for item in schema]
        text = np.frombuffer(b"".join(names), np.uint8)
        bounds = np.cumsum([0, *map(len, names)]) + text.ctypes.data
        heads = np.full(1 << (2 * len(names)).bit_length(), -1)
        nexts = np.full(len(names), -1)
        for column in range(len(names)):
            bucket = _hashed(bounds[column], bounds[column + 1]) & (len(heads) - 1)
            heads[bucket], nexts[column] = column, heads[bucket]
        kinds = np.array([kind for kind, *_ in described], np.int64)
        limits = np.array([each[1:] for each in described], np.int64).reshape(-1, 2)
        return cls(text, bounds, heads, nexts, kinds, limits)


class _Cells(NamedTuple):
    """What was read, by column and row.

    Attributes:
        firsts: the integer, or where the text begins.
        lasts: where the text ends, or what is not negative; else `_ABSENT` or `_NULL`.
        escaped: the columns with a text that has escapes.
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
        """The first values of a column, whose texts lie in `data`."""
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
            _unescape(out, offsets, firsts, lasts)
            return text_array(out, offsets, valid, kind)
        start = data.ctypes.data
        starts = np.where(valid, firsts - start, _NULL)
        return texts_at(data, starts, lasts - start, pa.string()).cast(kind)


class _Path(NamedTuple):
    """The members of the record before, in their order: most records are like it.

    Attributes:
        starts: of their names, which are followed by a quotation mark.
        lengths: of these.
        columns: that they are, or -1.
    """

    starts: Rows
    lengths: Rows
    columns: Rows


def read_plain(values: pa.Array, schema: pa.Schema) -> PlainRows | None:
    """The rows of `values` (binary or large binary) that are plain, in their order.

    None if there is a column that is not read here.
    """
    if not all(_is_read_here(item.type) for item in schema):
        return None
    data, bounds = bytes_of(pc.fill_null(values, b"") if values.null_count else values)
    places = bounds + data.ctypes.data
    return _objects(places[:-1], places[1:], schema, data)


def plain_rows(lines: pa.StringArray, schema: pa.Schema) -> Rows:
    """Which of `lines` would be plain if nested columns were read as any nested value."""
    data, bounds = bytes_of(lines)
    places = bounds + data.ctypes.data
    return _passed(places[:-1], places[1:], schema)[0]


def _is_read_here(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind) and kind.num_fields:
        return all(_is_read_here(child.type) for child in kind)
    return _described(kind)[0] != _NESTED


def _objects(firsts: Rows, lasts: Rows, schema: pa.Schema, data: Bytes) -> PlainRows:
    """The objects at these places in `data` that are plain, with the objects in them."""
    rows, cells = _passed(firsts, lasts, schema)
    if not len(schema):
        nothing = pa.array([{}] * len(rows), pa.struct([]))
        return PlainRows(pa.RecordBatch.from_struct_array(nothing), rows)
    arrays: list[pa.Array] = []
    is_plain = np.ones(len(rows), np.bool_)
    for at, item in enumerate(schema):
        if pa.types.is_struct(item.type):
            inner = (cells.firsts[at, : len(rows)], cells.lasts[at, : len(rows)])
            arrays.append(_structs(inner, item.type, data, is_plain))
        else:
            arrays.append(cells.column(at, len(rows), item.type, data))
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    if is_plain.all():
        return PlainRows(batch, rows)
    return PlainRows(batch.filter(pa.array(is_plain)), rows[is_plain])


def _structs(
    cells: tuple[Rows, Rows], kind: pa.StructType, data: Bytes, is_plain: npt.NDArray[np.bool_]
) -> pa.Array:
    """A value for each cell with an object; the rows of those that are not plain are marked."""
    firsts, lasts = cells
    there = np.flatnonzero(lasts >= 0)
    inner = _objects(firsts[there], lasts[there], pa.schema(list(kind)), data)
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


def _passed(firsts: Rows, lasts: Rows, schema: pa.Schema) -> tuple[Rows, _Cells]:
    """Which of the values at these places are plain, and what is in them."""
    cells = _Cells.of(len(schema), len(firsts))
    rows = np.empty(len(firsts), np.int64)
    path = _Path(*(np.full(_PATH, _UNKNOWN) for _ in range(3)))
    count = _read_rows(firsts, lasts, _Columns.of(schema), cells, (path, rows))
    return rows[:count], cells


def _described(kind: pa.DataType) -> tuple[int, int, int]:
    """Kind and limits of a column; what is not read here counts as nested."""
    if pa.types.is_signed_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return _INTEGER, -limit, limit - 1
    if pa.types.is_boolean(kind):
        return _BOOLEAN, 0, 0
    if pa.types.is_string(kind):
        return _STRING, 0, 0
    if pa.types.is_floating(kind):
        return _NUMBER, _WHOLE, _FRACTION
    if pa.types.is_decimal128(kind):
        return _DECIMAL, kind.precision - kind.scale, kind.scale
    if pa.types.is_struct(kind):
        return _NESTED, _OPEN_OBJECT, 0
    return _NESTED, _OPEN_LIST if pa.types.is_list(kind) else 0, 0


def _loading(kind: types.Integer, result: types.Integer) -> Callable[[int], int]:
    """A compiled function: what number of `kind` lies at an address."""
    kind_at: Any = cast(Any, types.CPointer)(kind)

    def load(context: Any, builder: Any, _: Any, arguments: Any) -> Any:  # noqa: ANN401 - numba's
        pointer = builder.inttoptr(arguments[0], context.get_value_type(kind_at))
        return context.cast(builder, builder.load(pointer, align=1), kind, result)

    def typed(_: object, at: object) -> object:
        return result(types.int64), load

    return cast(Callable[[int], int], intrinsic(typed))


_byte = _loading(types.uint8, types.int64)
_word = _loading(types.uint64, types.uint64)


@compiled
def _read_rows(
    firsts: Rows, lasts: Rows, columns: _Columns, cells: _Cells, path_and_rows: tuple[_Path, Rows]
) -> int:
    """Reads each value; returns how many were plain, which the rows name."""
    path, rows = path_and_rows
    count = 0
    for row in range(len(firsts)):
        for column in range(len(columns.kinds)):
            cells.firsts[column, count] = 0
            cells.lasts[column, count] = _ABSENT
        if _is_read((firsts[row], lasts[row]), columns, cells, path, count):
            rows[count] = row
            count += 1
    return count


@inlined
def _is_read(
    text: tuple[int, int], columns: _Columns, cells: _Cells, path: _Path, row: int
) -> bool:
    """Whether a value is a plain object, whose members are in the cells then."""
    at, end = text
    at = _behind_blanks(at, end)
    if at >= end or _byte(at) != _OPEN_OBJECT:
        return False
    at = _behind_blanks(at + 1, end)
    if at < end and _byte(at) == _CLOSED_OBJECT:
        return _behind_blanks(at + 1, end) == end
    place = 0
    while at < end and _byte(at) == _QUOTE:
        column, at = _column(at + 1, end, columns, path, place)
        at = _behind_colon(at, end)
        if at < 0:
            return False
        at = _value_end(at, end) if column < 0 else _cell((at, end), columns, cells, column, row)
        at = _behind_blanks(at, end) if at >= 0 else end
        if at >= end:
            return False
        if _byte(at) == _CLOSED_OBJECT:
            return _behind_blanks(at + 1, end) == end
        if _byte(at) != _COMMA:
            return False
        at = _behind_blanks(at + 1, end)
        place += 1
    return False


@inlined
def _column(at: int, end: int, columns: _Columns, path: _Path, place: int) -> tuple[int, int]:
    """The column of a member whose name begins there, -1 for none; the place behind the name.

    This place is negative if the name is not plain.
    """
    length = path.lengths[place] if place < _PATH else end
    is_so_long = length < end - at and _byte(at + length) == _QUOTE
    if is_so_long and _are_same(at, path.starts[place], length):
        return path.columns[place], at + length + 1
    stop, is_escaped = _string_end(at, end)
    if stop < 0 or is_escaped:
        return -1, -1
    column = columns.heads[_hashed(at, stop) & (len(columns.heads) - 1)]
    while column >= 0:
        first, last = columns.bounds[column], columns.bounds[column + 1]
        if last - first == stop - at and _are_same(at, first, stop - at):
            break
        column = columns.nexts[column]
    if place < _PATH:
        path.starts[place], path.lengths[place], path.columns[place] = at, stop - at, column
    return column, stop + 1


@compiled
def _hashed(at: int, end: int) -> int:
    mixed = end - at
    for place in range(at, end):
        mixed = (mixed ^ _byte(place)) * 16777619 & 0x7FFFFFFF
    return mixed


@compiled
def _are_same(at: int, other: int, length: int) -> bool:
    for place in range(length):  # noqa: SIM110 - numba has no `all`
        if _byte(at + place) != _byte(other + place):
            return False
    return True


@inlined
def _cell(text: tuple[int, int], columns: _Columns, cells: _Cells, column: int, row: int) -> int:
    """Reads the value that begins there; returns the place behind it, or -1."""
    at, end = text
    if at >= end or cells.lasts[column, row] != _ABSENT:
        return -1
    kind = columns.kinds[column]
    low, high = columns.limits[column, 0], columns.limits[column, 1]
    last = 0
    if _byte(at) == _SMALL_N:
        stop, first, last = _behind_word(at, end, _NULL_WORD), 0, _NULL
    elif kind == _INTEGER:
        stop, first = _integer(at, end)
        if first < low or first > high:
            return -1
    elif kind == _BOOLEAN:
        first = 1 if _byte(at) == _SMALL_T else 0
        stop = _boolean_end(at, end)
    elif kind == _STRING:
        first = at + 1
        last, is_escaped = _string_end(first, end) if _byte(at) == _QUOTE else (-1, False)
        cells.escaped[column] |= is_escaped
        stop = last + 1 if last >= 0 else -1
    elif kind == _NESTED:
        first = at
        stop = last = _value_end(at, end) if low in (0, _byte(at)) else -1
    else:
        first, last, stop = _number(at, end, low, high, 0 if kind == _DECIMAL else _POWER)
    cells.firsts[column, row], cells.lasts[column, row] = first, last
    return stop


@compiled
def _value_end(at: int, end: int) -> int:
    """Behind the value that begins there; -1 if it is none, or nested too deeply for us."""
    inside = 1  # behind the first bit one for each open bracket: 1 for an object, 0 for a list
    while 0 <= at < end and inside < _DEEPEST:
        is_object = _byte(at) == _OPEN_OBJECT
        if is_object or _byte(at) == _OPEN_LIST:
            inside = inside << 1 | is_object
            at = _behind_blanks(at + 1, end)
            if at < end and _byte(at) != _closing(inside):
                at = _part(at, end, inside)
                continue
        else:
            at = _scalar_end(at, end)
        at, inside = _behind_part(at, end, inside)
        if inside == 1:
            return at
    return -1


@inlined
def _behind_part(at: int, end: int, inside: int) -> tuple[int, int]:
    """Where the next value begins, or all brackets are closed; and the brackets that are open."""
    while at >= 0 and inside > 1:
        at = _behind_blanks(at, end)
        if at < end and _byte(at) == _COMMA:
            return _part(_behind_blanks(at + 1, end), end, inside), inside
        if at >= end or _byte(at) != _closing(inside):
            return -1, inside
        at += 1
        inside >>= 1
    return at, inside


@inlined
def _closing(inside: int) -> int:
    return _CLOSED_OBJECT if inside & 1 else _CLOSED_LIST


@inlined
def _part(at: int, end: int, inside: int) -> int:
    """Where the value begins, behind its name in an object; or -1."""
    return _name_end(at, end) if inside & 1 else at


@inlined
def _name_end(at: int, end: int) -> int:
    """Where the value of the member begins whose name begins there, or -1."""
    if at >= end or _byte(at) != _QUOTE:
        return -1
    at, _ = _string_end(at + 1, end)
    return _behind_colon(at + 1, end) if at >= 0 else -1


@inlined
def _scalar_end(at: int, end: int) -> int:
    if _byte(at) == _QUOTE:
        at, _ = _string_end(at + 1, end)
        return at + 1 if at >= 0 else -1
    if _byte(at) == _MINUS or _ZERO <= _byte(at) <= _NINE:
        return _number_end(at, end, _WHOLE, _FRACTION, _POWER)
    if _byte(at) == _SMALL_N:
        return _behind_word(at, end, _NULL_WORD)
    return _boolean_end(at, end)


@compiled
def _number(at: int, end: int, whole: int, fraction: int, power: int) -> tuple[int, int, int]:
    """Where the digits begin and end, and the place behind or -1; without power also in quotes."""
    is_quoted = power == 0 and _byte(at) == _QUOTE
    first = at + is_quoted
    last = _number_end(first, end, whole, fraction, power)
    if is_quoted and (last < 0 or last >= end or _byte(last) != _QUOTE):
        return first, last, -1
    return first, last, last + is_quoted if last >= 0 else -1


@compiled
def _boolean_end(at: int, end: int) -> int:
    return _behind_word(at, end, _TRUE if _byte(at) == _SMALL_T else _FALSE)


@compiled
def _behind_word(at: int, end: int, word: int) -> int:
    """Behind `word`, the number of its bytes from the last to the first, or -1."""
    while word:
        if at >= end or _byte(at) != word & 0xFF:
            return -1
        at += 1
        word >>= 8
    return at


@compiled
def _integer(at: int, end: int) -> tuple[int, int]:
    """The place behind an integer, and it; the place is -1 if it is none, -0 or too large."""
    first = at + (_byte(at) == _MINUS)
    stop = _digits_end(first, end)
    if stop == first or stop - first > _WHOLE or (_byte(first) == _ZERO and stop - at > 1):
        return -1, 0
    number = 0
    for place in range(first, stop):
        number = number * 10 + _byte(place) - _ZERO
    if number < 0:  # it has gone round
        return -1, 0
    return stop, -number if first > at else number


@compiled
def _number_end(at: int, end: int, whole: int, fraction: int, power: int) -> int:
    """Behind a number that has at most so many digits in each part, or -1; one 0 is no digit."""
    at += at < end and _byte(at) == _MINUS
    stop = _digits_end(at, end)
    is_zero = at < end and _byte(at) == _ZERO
    if stop == at or (stop - at > 1 if is_zero else stop - at > whole):
        return -1
    if stop < end and _byte(stop) == _POINT:
        at = stop + 1
        stop = _digits_end(at, end)
        if stop == at or stop - at > fraction:
            return -1
    if stop < end and (_byte(stop) == _SMALL_E or _byte(stop) == _LARGE_E):
        at = stop + 1
        at += at < end and (_byte(at) == _PLUS or _byte(at) == _MINUS)
        stop = _digits_end(at, end)
        if stop == at or stop - at > power:
            return -1
    return stop


@compiled
def _digits_end(at: int, end: int) -> int:
    while at < end and _ZERO <= _byte(at) <= _NINE:
        at += 1
    return at


@compiled
def _behind_colon(at: int, end: int) -> int:
    """Where the value begins whose name ends there, or -1."""
    if at < 0:
        return -1
    at = _behind_blanks(at, end)
    if at >= end or _byte(at) != _COLON:
        return -1
    return _behind_blanks(at + 1, end)


@inlined
def _behind_blanks(at: int, end: int) -> int:
    while at < end and _byte(at) <= _BLANK:
        byte = _byte(at)
        if byte != _BLANK and byte != _TAB and byte != _FEED and byte != _RETURN:
            break
        at += 1
    return at


@compiled
def _string_end(at: int, end: int) -> tuple[int, bool]:
    """Where the string ends whose content begins there, -1 if it is not right; has it escapes?"""
    is_escaped = False
    while True:
        while at + 8 <= end and _are_plain(at):
            at += 8
        while at < end and _PLAIN[_byte(at)]:
            at += 1
        if at >= end:
            return -1, False
        if _byte(at) == _QUOTE:
            return at, is_escaped
        if _byte(at) == _BACKSLASH:
            is_escaped = True
            at = _escape_end(at, end)
        else:
            at = _character_end(at, end)
        if at < 0:
            return -1, False


@compiled
def _are_plain(at: int) -> bool:
    """Whether the eight bytes from there on are ASCII characters without a meaning in a string.

    Of what is subtracted from, the bytes that are smaller get their highest bit.
    """
    word = _word(at)
    quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
    odd = (quote - _ONES) & ~quote | (backslash - _ONES) & ~backslash | (word - _BLANKS) & ~word
    return bool((odd | word) & _HIGHEST == 0)


@compiled
def _escape_end(at: int, end: int) -> int:
    """Behind the escape that begins there, both halves of a pair; -1 if it is not right."""
    if at + 1 >= end:
        return -1
    if _ESCAPED[_byte(at + 1)]:
        return at + 2
    unit = _unit(at, end)
    if unit < 0xD800 or unit > 0xDFFF:
        return at + 6 if unit >= 0 else -1
    second = _unit(at + 6, end)
    return at + 12 if unit < 0xDC00 <= second <= 0xDFFF else -1


@compiled
def _unit(at: int, end: int) -> int:
    """The number of the escape by digits that begins there, or -1."""
    if at + 6 > end or _byte(at) != _BACKSLASH or _byte(at + 1) != _SMALL_U:
        return -1
    number = 0
    for place in range(at + 2, at + 6):
        digit = int(_HEX[_byte(place)])
        if digit < 0:
            return -1
        number = number << 4 | digit
    return number


@compiled
def _character_end(at: int, end: int) -> int:
    """Behind the character of several bytes that begins there, -1 if it is not UTF-8."""
    lead = _byte(at)
    more = 1 + (lead >= 0xE0) + (lead >= 0xF0)
    if lead < 0xC2 or lead > 0xF4 or at + more >= end:
        return -1
    low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
    if _byte(at + 1) < low or _byte(at + 1) > high:
        return -1
    for place in range(at + 2, at + more + 1):
        if _byte(place) & 0xC0 != 0x80:
            return -1
    return at + more + 1


@compiled
def _unescape(out: Bytes, offsets: Rows, firsts: Rows, lasts: Rows) -> None:
    """The texts with what their escapes stand for, one behind the other."""
    to = 0
    for row in range(len(firsts)):
        at, end = firsts[row], lasts[row]
        while at < end:
            if _byte(at) != _BACKSLASH:
                out[to] = _byte(at)
                at, to = at + 1, to + 1
            elif _byte(at + 1) != _SMALL_U:
                out[to] = _ESCAPED[_byte(at + 1)]
                at, to = at + 2, to + 1
            else:
                code = _unit(at, end)
                at += 6
                if 0xD800 <= code <= 0xDFFF:
                    code = 0x10000 + ((code & 0x3FF) << 10 | _unit(at, end) & 0x3FF)
                    at += 6
                to = _encoded(out, to, code)
        offsets[row + 1] = to


@compiled
def _encoded(out: Bytes, to: int, code: int) -> int:
    """Writes a character in UTF-8; returns the place behind it."""
    more = (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
    out[to] = code >> 6 * more | (0, 0xC0, 0xE0, 0xF0)[more]
    for place in range(1, more + 1):
        out[to + place] = code >> 6 * (more - place) & 0x3F | 0x80
    return to + more + 1


def warm_up() -> None:
    """Compile, or read what another process of this node has compiled."""
    with one_at_a_time():
        read_plain(pa.array([b'{"a":"\\n"}'], pa.binary()), pa.schema([("a", pa.string())]))
