"""The grammar of JSON as compiled functions: where a value, a string, a number ends.

Places are addresses: passing an array costs more than most of these functions do.
"""
# reads better long: compiled functions of one grammar.

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from joins.kernels.compiled import compiled, inlined

Rows = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_DEEPEST = 1 << 60
ANY_DIGITS = 1 << 20
_TENTH = (2**64 - 1) // 10
WHOLE, FRACTION, POWER = 19, 40, 2  # so many digits make no number too big for the reader

TAB, FEED, RETURN, BLANK, QUOTE, BACKSLASH = b'\t\n\r "\\'
COMMA, COLON, MINUS, PLUS, POINT, ZERO, NINE = b",:-+.09"
OPEN_OBJECT, OPEN_LIST, CLOSED_OBJECT, CLOSED_LIST = b"{[}]"
SMALL_E, LARGE_E, SMALL_N, SMALL_T, SMALL_U = b"eEntu"
TRUE, FALSE, NULL_WORD = (int.from_bytes(word, "little") for word in (b"true", b"false", b"null"))
_PLAIN = np.array([byte >= BLANK and byte not in b'"\\' and byte < 0x80 for byte in range(256)])
_ONES, _HIGHEST = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES, _BLANKS = (_ONES * np.uint64(byte) for byte in (QUOTE, BACKSLASH, BLANK))
_ESCAPED = np.zeros(256, np.uint8)  # what stands for what, behind a backslash
_ESCAPED[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
_HEX = np.full(256, -1, np.int64)
_HEX[list(b"0123456789abcdef")] = range(16)
_HEX[list(b"ABCDEF")] = range(10, 16)


def _loading(kind: types.Integer, result: types.Integer) -> Callable[[int], int]:
    kind_at: Any = cast(Any, types.CPointer)(kind)

    def load(context: Any, builder: Any, _: Any, arguments: Any) -> Any:  # noqa: ANN401 - numba's
        pointer = builder.inttoptr(arguments[0], context.get_value_type(kind_at))
        return context.cast(builder, builder.load(pointer, align=1), kind, result)

    def typed(_: object, at: object) -> object:
        return result(types.int64), load

    return cast(Callable[[int], int], intrinsic(typed))


byte_at = _loading(types.uint8, types.int64)
word_at = _loading(types.uint64, types.uint64)


@compiled
def hashed(at: int, end: int) -> int:
    mixed = end - at
    for place in range(at, end):
        mixed = (mixed ^ byte_at(place)) * 16777619 & 0x7FFFFFFF
    return mixed


@compiled
def are_same(at: int, other: int, length: int) -> bool:
    place = 0
    while place + 8 <= length:
        if word_at(at + place) != word_at(other + place):
            return False
        place += 8
    while place < length:
        if byte_at(at + place) != byte_at(other + place):
            return False
        place += 1
    return True


@compiled
def value_end(at: int, end: int) -> int:
    """Address after the value at `at`; -1 if it is invalid or nested too deeply."""
    inside = 1  # behind the first bit one for each open bracket: 1 for an object, 0 for a list
    while 0 <= at < end and inside < _DEEPEST:
        is_object = byte_at(at) == OPEN_OBJECT
        if is_object or byte_at(at) == OPEN_LIST:
            inside = inside << 1 | is_object
            at = behind_blanks(at + 1, end)
            if at < end and byte_at(at) != _closing(inside):
                at = _part(at, end, inside)
                continue
        else:
            at = scalar_end(at, end)
        at, inside = _behind_part(at, end, inside)
        if inside == 1:
            return at
    return -1


@inlined
def _behind_part(at: int, end: int, inside: int) -> tuple[int, int]:
    """Where the next value begins, or all brackets are closed; and the open brackets."""
    while at >= 0 and inside > 1:
        at = behind_blanks(at, end)
        if at < end and byte_at(at) == COMMA:
            return _part(behind_blanks(at + 1, end), end, inside), inside
        if at >= end or byte_at(at) != _closing(inside):
            return -1, inside
        at += 1
        inside >>= 1
    return at, inside


@inlined
def _closing(inside: int) -> int:
    return CLOSED_OBJECT if inside & 1 else CLOSED_LIST


@inlined
def _part(at: int, end: int, inside: int) -> int:
    return _name_end(at, end) if inside & 1 else at


@inlined
def _name_end(at: int, end: int) -> int:
    if at >= end or byte_at(at) != QUOTE:
        return -1
    at, _ = string_end(at + 1, end)
    return behind_colon(at + 1, end) if at >= 0 else -1


@inlined
def scalar_end(at: int, end: int) -> int:
    """Address after the value at `at`, which is neither object nor list; or -1."""
    if byte_at(at) == QUOTE:
        at, _ = string_end(at + 1, end)
        return at + 1 if at >= 0 else -1
    if byte_at(at) == MINUS or ZERO <= byte_at(at) <= NINE:
        return number_end(at, end, ANY_DIGITS, ANY_DIGITS, ANY_DIGITS)
    if byte_at(at) == SMALL_N:
        return behind_word(at, end, NULL_WORD)
    return boolean_end(at, end)


@compiled
def number(at: int, end: int, whole: int, fraction: int, power: int) -> tuple[int, int, int]:
    """Start and end of a number, which may be in quotes, and the address after it or -1."""
    is_quoted = byte_at(at) == QUOTE
    first = at + is_quoted
    last = number_end(first, end, whole, fraction, power)
    if is_quoted and (last < 0 or last >= end or byte_at(last) != QUOTE):
        return first, last, -1
    return first, last, last + is_quoted if last >= 0 else -1


@compiled
def boolean_end(at: int, end: int) -> int:
    return behind_word(at, end, TRUE if byte_at(at) == SMALL_T else FALSE)


@compiled
def behind_word(at: int, end: int, word: int) -> int:
    """Address after `word`, its bytes as a little-endian number, or -1."""
    while word:
        if at >= end or byte_at(at) != word & 0xFF:
            return -1
        at += 1
        word >>= 8
    return at


@compiled
def integer(at: int, end: int) -> tuple[int, int]:
    """Address after an integer (-1 if invalid, -0 or too large), and the integer."""
    first = at + (byte_at(at) == MINUS)
    stop = _digits_end(first, end)
    if stop == first or stop - first > WHOLE or (byte_at(first) == ZERO and stop - at > 1):
        return -1, 0
    number = 0
    for place in range(first, stop):
        number = number * 10 + byte_at(place) - ZERO
    if number < 0:  # it has gone round
        return -1, 0
    return stop, -number if first > at else number


@compiled
def unsigned(at: int, end: int) -> tuple[int, int]:
    """Address after an integer of 64 bits without a sign, or -1; and its bits."""
    stop = _digits_end(at, end)
    if stop == at or stop - at > WHOLE + 1 or (byte_at(at) == ZERO and stop - at > 1):
        return -1, 0
    number = 0
    for place in range(at, stop):
        digit = byte_at(place) - ZERO
        if place - at == WHOLE and not 0 <= number <= _TENTH - (digit > 5):
            return -1, 0
        number = number * 10 + digit
    return stop, number


@compiled
def whole_integer(at: int, end: int) -> tuple[int, int]:
    """As `integer`, for one in quotes or with a fraction of zeros."""
    is_quoted = byte_at(at) == QUOTE
    stop, number = integer(at + is_quoted, end)
    if stop < 0 or stop >= end:
        return -1, 0
    if is_quoted:
        return stop + 1 if byte_at(stop) == QUOTE else -1, number
    if byte_at(stop) != POINT:
        return stop, number
    first = stop + 1
    while stop + 1 < end and byte_at(stop + 1) == ZERO:
        stop += 1
    return stop + 1 if stop >= first else -1, number


@compiled
def number_end(at: int, end: int, whole: int, fraction: int, power: int) -> int:
    """Address after a number within the digit limits, or -1; a single 0 is no digit."""
    at += at < end and byte_at(at) == MINUS
    stop = _digits_end(at, end)
    is_zero = at < end and byte_at(at) == ZERO
    if stop == at or (stop - at > 1 if is_zero else stop - at > whole):
        return -1
    if stop < end and byte_at(stop) == POINT:
        at = stop + 1
        stop = _digits_end(at, end)
        if stop == at or stop - at > fraction:
            return -1
    if stop < end and (byte_at(stop) == SMALL_E or byte_at(stop) == LARGE_E):
        at = stop + 1
        at += at < end and (byte_at(at) == PLUS or byte_at(at) == MINUS)
        stop = _digits_end(at, end)
        if stop == at or stop - at > power:
            return -1
    return stop


@compiled
def _digits_end(at: int, end: int) -> int:
    while at < end and ZERO <= byte_at(at) <= NINE:
        at += 1
    return at


@compiled
def behind_colon(at: int, end: int) -> int:
    """Where the value begins whose name ends there, or -1."""
    if at < 0:
        return -1
    at = behind_blanks(at, end)
    if at >= end or byte_at(at) != COLON:
        return -1
    return behind_blanks(at + 1, end)


@compiled
def behind_mark(at: int, end: int) -> int:
    """Address after the byte order mark of UTF-8 and blanks; `end` without a mark."""
    return behind_blanks(at + 3, end) if has_mark(at, end) else end


@compiled
def has_mark(at: int, end: int) -> bool:
    if at + 3 > end:
        return False
    return byte_at(at) == 0xEF and byte_at(at + 1) == 0xBB and byte_at(at + 2) == 0xBF


@inlined
def behind_blanks(at: int, end: int) -> int:
    while at < end and byte_at(at) <= BLANK:
        byte = byte_at(at)
        if byte != BLANK and byte != TAB and byte != FEED and byte != RETURN:
            break
        at += 1
    return at


@compiled
def string_end(at: int, end: int) -> tuple[int, bool]:
    """End of the string whose content begins at `at`, or -1; true if it has escapes."""
    is_escaped = False
    while True:
        while at + 8 <= end and _are_plain(at):
            at += 8
        while at < end and _PLAIN[byte_at(at)]:
            at += 1
        if at >= end:
            return -1, False
        if byte_at(at) == QUOTE:
            return at, is_escaped
        if byte_at(at) == BACKSLASH:
            is_escaped = True
            at = _escape_end(at, end)
        else:
            at = _character_end(at, end)
        if at < 0:
            return -1, False


@compiled
def _are_plain(at: int) -> bool:
    """True if eight bytes are ASCII without special characters of a string.

    A subtraction sets the highest bit of the bytes that are smaller.
    """
    word = word_at(at)
    quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
    odd = (quote - _ONES) & ~quote | (backslash - _ONES) & ~backslash | (word - _BLANKS) & ~word
    return bool((odd | word) & _HIGHEST == 0)


@compiled
def _escape_end(at: int, end: int) -> int:
    """Address after the escape at `at`, both halves of a surrogate pair; -1 if it is invalid."""
    if at + 1 >= end:
        return -1
    if _ESCAPED[byte_at(at + 1)]:
        return at + 2
    unit = _unit(at, end)
    if unit < 0xD800 or unit > 0xDFFF:
        return at + 6 if unit >= 0 else -1
    second = _unit(at + 6, end)
    return at + 12 if unit < 0xDC00 <= second <= 0xDFFF else -1


@compiled
def _unit(at: int, end: int) -> int:
    if at + 6 > end or byte_at(at) != BACKSLASH or byte_at(at + 1) != SMALL_U:
        return -1
    number = 0
    for place in range(at + 2, at + 6):
        digit = int(_HEX[byte_at(place)])
        if digit < 0:
            return -1
        number = number << 4 | digit
    return number


@compiled
def _character_end(at: int, end: int) -> int:
    lead = byte_at(at)
    more = 1 + (lead >= 0xE0) + (lead >= 0xF0)
    if lead < 0xC2 or lead > 0xF4 or at + more >= end:
        return -1
    low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
    if byte_at(at + 1) < low or byte_at(at + 1) > high:
        return -1
    for place in range(at + 2, at + more + 1):
        if byte_at(place) & 0xC0 != 0x80:
            return -1
    return at + more + 1


@compiled
def unescape(out: Bytes, offsets: Rows, firsts: Rows, lasts: Rows) -> None:
    """Writes the unescaped texts, concatenated."""
    to = 0
    for row in range(len(firsts)):
        at, end = firsts[row], lasts[row]
        while at < end:
            if byte_at(at) != BACKSLASH:
                out[to] = byte_at(at)
                at, to = at + 1, to + 1
            elif byte_at(at + 1) != SMALL_U:
                out[to] = _ESCAPED[byte_at(at + 1)]
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
    more = (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
    out[to] = code >> 6 * more | (0, 0xC0, 0xE0, 0xF0)[more]
    for place in range(1, more + 1):
        out[to + place] = code >> 6 * (more - place) & 0x3F | 0x80
    return to + more + 1


@compiled
def counts_of(firsts: Rows, lasts: Rows, counts: Rows) -> None:
    """Number of parts of each array or object; 0 for missing values."""
    for row in range(len(firsts)):
        counts[row] = 0
        if lasts[row] >= 0:
            end = lasts[row]
            at = _first_part(firsts[row], end)
            while at > 0:
                counts[row] += 1
                _, _, _, at = _named_part(at, end)


@compiled
def _first_part(at: int, end: int) -> int:
    at = behind_blanks(behind_blanks(at, end) + 1, end)
    is_empty = at >= end or byte_at(at) == CLOSED_LIST or byte_at(at) == CLOSED_OBJECT
    return -1 if is_empty else at


@compiled
def _named_part(at: int, end: int) -> tuple[int, int, int, int]:
    """End of the name or -1, start and end of the value, start of the next part or -1."""
    name_end, first = -1, at
    stop = value_end(at, end)
    if stop < 0:
        return name_end, first, stop, -1
    at = behind_blanks(stop, end)
    if at < end and byte_at(at) == COLON:
        name_end, first = stop, behind_blanks(at + 1, end)
        stop = value_end(first, end)
        if stop < 0:
            return name_end, first, stop, -1
        at = behind_blanks(stop, end)
    is_more = at < end and byte_at(at) == COMMA
    return name_end, first, stop, behind_blanks(at + 1, end) if is_more else -1


@compiled
def parts_into(
    firsts: Rows, lasts: Rows, names: tuple[Rows, Rows], parts: tuple[Rows, Rows]
) -> None:
    """Bounds of the parts of all arrays and objects, and names; `null` ends at -2."""
    to = 0
    for row in range(len(firsts)):
        if lasts[row] >= 0:
            end = lasts[row]
            at = _first_part(firsts[row], end)
            while at > 0:
                name_at = at
                name_end, first, stop, at = _named_part(at, end)
                names[0][to], names[1][to] = name_at, name_end
                parts[0][to] = first
                parts[1][to] = -2 if byte_at(first) == SMALL_N else stop
                to += 1
