"""Compiled functions over raw values of JSON: numbers, base64, times, parts of arrays and objects.

Places are addresses; a missing or `null` value has a negative end and is skipped.
"""
# reads better long: one loop over all values each, in the order of what they are about.

import numpy as np
import numpy.typing as npt

from joins.kernels.compiled import compiled
from joins.kernels.json.scan import (
    MINUS,
    NINE,
    OPEN_LIST,
    OPEN_OBJECT,
    PLUS,
    POINT,
    QUOTE,
    SMALL_N,
    SMALL_T,
    ZERO,
    are_same,
    behind_blanks,
    byte_at,
    has_mark,
    integer,
)

Rows = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

NOTHING, STRING, INTEGER, FRACTION, BOOLEAN, OBJECT, ARRAY = range(7)

FITS, TOO_LONG, NO_NUMBER = range(3)

_SMALL_F, _LARGE_Z, _LARGE_TEE, _SPACE, _EQUAL = b"fZT ="
_SIGNS = 65  # in the table of digits: what is none
_DIGITS = np.full(256, _SIGNS, np.int64)
_DIGITS[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")] = range(64)
_URL_DIGITS = _DIGITS.copy()
_URL_DIGITS[list(b"+/")] = _SIGNS
_URL_DIGITS[list(b"-_")] = 62, 63
_LEAST_LONG = -(1 << 63)
_LEAST = np.array(list(str(_LEAST_LONG).encode()))
_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@compiled
def kinds_of(firsts: Rows, lasts: Rows, kinds: Bytes) -> None:
    for row in range(len(firsts)):
        kinds[row] = NOTHING if lasts[row] < 0 else _kind(firsts[row], lasts[row])


@compiled
def _kind(at: int, end: int) -> int:
    if at >= end:
        return FRACTION  # an empty text is a number that fails
    byte = byte_at(at)
    if byte == QUOTE:
        return STRING
    if byte == OPEN_OBJECT:
        return OBJECT
    if byte == OPEN_LIST:
        return ARRAY
    if byte in (SMALL_T, _SMALL_F):
        return BOOLEAN
    return NOTHING if byte == SMALL_N else _number_kind(at + 1, end)


@compiled
def _number_kind(at: int, end: int) -> int:
    for place in range(at, end):
        if byte_at(place) < ZERO or byte_at(place) > NINE:
            return FRACTION
    return INTEGER


@compiled
def trim(firsts: Rows, lasts: Rows) -> None:
    for row in range(len(firsts)):
        if lasts[row] >= 0:
            at, end = behind_blanks(firsts[row], lasts[row]), lasts[row]
            while end > at and behind_blanks(end - 1, end) == end:
                end -= 1
            firsts[row], lasts[row] = at, end


@compiled
def skip_marks(firsts: Rows, lasts: Rows) -> None:
    """Begin values behind their byte order mark, as Flink's parser does."""
    for row in range(len(firsts)):
        if lasts[row] >= 0 and has_mark(firsts[row], lasts[row]):
            firsts[row] += 3


@compiled
def letters_of(firsts: Rows, lasts: Rows, letters: Bytes) -> None:
    for row in range(len(firsts)):
        is_one = lasts[row] - firsts[row] == 3 and byte_at(firsts[row]) == QUOTE
        letters[row] = byte_at(firsts[row] + 1) if is_one else 0


@compiled
def integers_of(firsts: Rows, lasts: Rows, numbers: Rows, fits: Mask) -> None:
    for row in range(len(firsts)):
        numbers[row] = 0
        fits[row] = False
        if lasts[row] >= 0:
            numbers[row], fits[row] = _long(firsts[row], lasts[row])


@compiled
def _long(at: int, end: int) -> tuple[int, bool]:
    stop, number = integer(at, end)
    if stop == end:
        return number, True
    if end - at != len(_LEAST):
        return 0, False
    for place in range(len(_LEAST)):
        if byte_at(at + place) != _LEAST[place]:
            return 0, False
    return _LEAST_LONG, True


@compiled
def booleans_of(firsts: Rows, lasts: Rows, numbers: Rows) -> None:
    for row in range(len(firsts)):
        is_true = lasts[row] - firsts[row] == 4 and byte_at(firsts[row]) == SMALL_T
        numbers[row] = 1 if is_true else 0


@compiled
def copy_into(firsts: Rows, offsets: Rows, out: Bytes) -> None:
    for row in range(len(firsts)):
        to, at = offsets[row], firsts[row]
        for place in range(offsets[row + 1] - to):
            out[to + place] = byte_at(at + place)


@compiled
def are_equal(firsts: Rows, lasts: Rows, text: tuple[int, int], equal: Mask) -> None:
    at, length = text
    for row in range(len(firsts)):
        is_so_long = lasts[row] >= 0 and lasts[row] - firsts[row] == length
        equal[row] = is_so_long and are_same(firsts[row], at, length)


@compiled
def unscaled_of(firsts: Rows, lasts: Rows, numbers: Rows, outcome: Bytes) -> None:
    """Numbers from base64 of the two's complement, its highest byte first."""
    for row in range(len(firsts)):
        numbers[row] = 0
        outcome[row] = NO_NUMBER
        at, end = firsts[row] + 1, lasts[row] - 1
        if end <= at or byte_at(firsts[row]) != QUOTE:
            continue
        size = _decoded_size(at, end, _DIGITS)
        if size <= 0:
            continue
        if size > 8:
            outcome[row] = TOO_LONG
            continue
        number = 0
        for place in range(size):
            byte = _decoded_byte(at, place, _DIGITS)
            number = byte - 256 if place == 0 and byte >= 128 else number << 8 | byte
        numbers[row] = number
        outcome[row] = FITS


@compiled
def _decoded_size(at: int, end: int, digits: Rows) -> int:
    """Number of bytes that the base64 text decodes to; -1 if it is invalid."""
    length = end - at
    if length % 4:
        return -1
    padding = 0
    if length and byte_at(end - 1) == _EQUAL:
        padding = 2 if byte_at(end - 2) == _EQUAL else 1
    for place in range(at, end - padding):
        if digits[byte_at(place)] == _SIGNS:
            return -1
    if padding and digits[byte_at(end - padding - 1)] & ((1 << 2 * padding) - 1):
        return -1  # bits that no byte has
    return length // 4 * 3 - padding


@compiled
def _decoded_byte(at: int, place: int, digits: Rows) -> int:
    at += place // 3 * 4 + place % 3
    high, low = int(digits[byte_at(at)]), int(digits[byte_at(at + 1)])
    shift = 2 * (place % 3)
    return (high << (2 + shift) | low >> (4 - shift)) & 0xFF


@compiled
def sizes_of(firsts: Rows, lasts: Rows, sizes: Rows, is_url: bool) -> None:
    """Decoded size of each base64 text, -1 where it is invalid."""
    for row in range(len(firsts)):
        sizes[row] = -1
        if lasts[row] - firsts[row] >= 2 and byte_at(firsts[row]) == QUOTE:
            digits = _URL_DIGITS if is_url else _DIGITS
            sizes[row] = _decoded_size(firsts[row] + 1, lasts[row] - 1, digits)


@compiled
def bytes_into(firsts: Rows, offsets: Rows, out: Bytes, is_url: bool) -> None:
    for row in range(len(firsts)):
        digits = _URL_DIGITS if is_url else _DIGITS
        for place in range(offsets[row + 1] - offsets[row]):
            out[offsets[row] + place] = _decoded_byte(firsts[row] + 1, place, digits)


@compiled
def _two(at: int, end: int) -> int:
    if at + 2 > end:
        return -1
    tens, ones = byte_at(at) - ZERO, byte_at(at + 1) - ZERO
    return tens * 10 + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else -1


@compiled
def _day(at: int, end: int) -> tuple[int, int]:
    """Days since 1970 of `YYYY-MM-DD` and the address after it, -1 if it is invalid."""
    century, years = _two(at, end), _two(at + 2, end)
    month, day = _two(at + 5, end), _two(at + 8, end)
    if century < 0 or years < 0 or month < 1 or month > 12 or day < 1:
        return 0, -1
    if byte_at(at + 4) != MINUS or byte_at(at + 7) != MINUS:
        return 0, -1
    year = century * 100 + years
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if year < 1 or day > _DAYS[month - 1] + (is_leap and month == 2):
        return 0, -1
    return _days_until(year, month, day), at + 10


@compiled
def _days_until(year: int, month: int, day: int) -> int:
    year -= month <= 2
    in_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + in_year - 719468


@compiled
def _clock(at: int, end: int) -> tuple[int, int]:
    """Microseconds of `HH:MM:SS[.f]` and the address after it, -1 if invalid or finer."""
    hour, minute, second = _two(at, end), _two(at + 3, end), _two(at + 6, end)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return 0, -1
    if byte_at(at + 2) != 58 or byte_at(at + 5) != 58:
        return 0, -1
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000
    at += 8
    if at >= end or byte_at(at) != POINT:
        return micros, at
    unit, first = 100_000, at + 1
    at += 1
    while at < end and ZERO <= byte_at(at) <= NINE:
        if unit == 0 and byte_at(at) != ZERO:
            return 0, -1
        micros += (byte_at(at) - ZERO) * unit
        unit //= 10
        at += 1
    return micros, at if first < at <= first + 9 else -1


@compiled
def _offset(at: int, end: int) -> tuple[int, int]:
    """Microseconds east of UTC of `Z` or `+HH[[:]MM]`, and the address after it, or -1."""
    if at < end and byte_at(at) == _LARGE_Z:
        return 0, at + 1
    if at >= end or (byte_at(at) != PLUS and byte_at(at) != MINUS):
        return 0, -1
    sign = 1 if byte_at(at) == PLUS else -1
    hours = _two(at + 1, end)
    at += 3
    if hours < 0 or hours > 18:
        return 0, -1
    minutes = 0
    if at < end:
        at += byte_at(at) == 58
        minutes = _two(at, end)
        at += 2
        if minutes < 0 or minutes > 59:
            return 0, -1
    return sign * (hours * 60 + minutes) * 60_000_000, at


@compiled
def dates_of(firsts: Rows, lasts: Rows, days: Rows, fits: Mask) -> None:
    """Days since 1970 of texts `YYYY-MM-DD`, which may have the offset 0."""
    for row in range(len(firsts)):
        days[row] = 0
        fits[row] = False
        if lasts[row] - firsts[row] >= 12 and byte_at(firsts[row]) == QUOTE:
            end = lasts[row] - 1
            day, at = _day(firsts[row] + 1, end)
            east = 0
            if 0 <= at < end:
                east, at = _offset(at, end)
            if at == end and east == 0:
                days[row] = day
                fits[row] = True


@compiled
def clocks_of(firsts: Rows, lasts: Rows, micros: Rows, fits: Mask) -> None:
    """Microseconds since midnight of texts `HH:MM:SS[.f]`, which may have the offset 0."""
    for row in range(len(firsts)):
        micros[row] = 0
        fits[row] = False
        if lasts[row] - firsts[row] >= 10 and byte_at(firsts[row]) == QUOTE:
            end = lasts[row] - 1
            clock, at = _clock(firsts[row] + 1, end)
            east = 0
            if 0 <= at < end:
                east, at = _offset(at, end)
            if at == end and east == 0:
                micros[row] = clock
                fits[row] = True


@compiled
def instants_of(firsts: Rows, lasts: Rows, micros: Rows, fits: Mask) -> None:
    """Microseconds since 1970 of texts `YYYY-MM-DDTHH:MM:SS[.f]` with an offset."""
    for row in range(len(firsts)):
        micros[row] = 0
        fits[row] = False
        if lasts[row] - firsts[row] >= 22 and byte_at(firsts[row]) == QUOTE:
            end = lasts[row] - 1
            day, at = _day(firsts[row] + 1, end)
            if at < 0 or (byte_at(at) != _LARGE_TEE and byte_at(at) != _SPACE):
                continue
            clock, at = _clock(at + 1, end)
            east = 0
            if at >= 0:
                east, at = _offset(at, end)
            if at == end:
                micros[row] = day * 86_400_000_000 + clock - east
                fits[row] = True


@compiled
def unwrap(firsts: Rows, lasts: Rows, prefix: tuple[int, int], payloads: tuple[Rows, Rows]) -> int:
    """Payloads of values that begin with `prefix`, up to the last bracket; returns their number."""
    start, length = prefix
    count = 0
    for row in range(len(firsts)):
        if lasts[row] - firsts[row] <= length or payloads[1][row] != -1:
            continue
        if byte_at(lasts[row] - 1) == 125 and are_same(firsts[row], start, length):
            payloads[0][row], payloads[1][row] = firsts[row] + length, lasts[row] - 1
            count += 1
    return count


@compiled
def may_be_wrapped(firsts: Rows, lasts: Rows, wrapped: Mask) -> None:
    for row in range(len(firsts)):
        wrapped[row] = False
        end = lasts[row]
        at = behind_blanks(firsts[row], end)
        if at < end and byte_at(at) == OPEN_OBJECT:
            at = behind_blanks(at + 1, end)
            if at + 9 < end and byte_at(at) == QUOTE:
                is_schema = byte_at(at + 7) == QUOTE and byte_at(at + 1) == 115
                is_payload = byte_at(at + 8) == QUOTE and byte_at(at + 1) == 112
                wrapped[row] = is_schema or is_payload


@compiled
def schema_ids(firsts: Rows, lasts: Rows, ids: Rows) -> None:
    """The number in the four bytes after a first byte of zero; other ids stay unchanged."""
    for row in range(len(firsts)):
        at = firsts[row]
        if lasts[row] - at >= 5 and byte_at(at) == 0:
            number = 0
            for place in range(at + 1, at + 5):
                number = number << 8 | byte_at(place)
            ids[row] = number
