"""TO_TIMESTAMP, TO_DATE, DATE_FORMAT, FROM_UNIXTIME, UNIX_TIMESTAMP, CONVERT_TZ: times and texts.

An invalid text gives NULL; as in Flink UNIX_TIMESTAMP gives the lowest BIGINT for it.
"""

import calendar
import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.java_patterns import Dialect, TextError, read, shown
from joins.kernels.calendar.ticks import FIRST, argument_ticks, numbers_of
from joins.kernels.calendar.zones import UTC, instants_of, known_zone, local_times
from joins.kernels.expressions.casts import Checked, cast
from joins.kernels.expressions.conversion import rowwise
from joins.kernels.expressions.operation import Function, Operation, Value
from joins.plan.types import TypeName, arrow_type

_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PIECE = re.compile(
    r"yyyy|MM|dd|HH|mm|ss|(?P<fraction>S{1,6}(?!S))|'(?P<quoted>[^']*)'|(?P<plain>[^A-Za-z'])"
)


def arrow_pattern(pattern: str) -> list[str | int] | None:
    """A pattern of Java's `DateTimeFormatter` for Arrow, None if it has other letters.

    Letters are `yyyy MM dd HH mm ss` and up to six `S`; other characters stand for themselves,
    letters between single quotes too, and two single quotes are one. Returns patterns of strftime,
    and between them the number of digits of the second's fraction.
    """
    result: list[str | int] = [""]
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return None
        if piece["fraction"] is not None:
            result += [len(piece[0]), ""]
        else:
            result[-1] = f"{result[-1]}{_arrow_piece(piece)}"
        at = piece.end()
    follows_quote = re.search(r"'[^']+''", pattern)
    return None if follows_quote else result


def _arrow_piece(piece: re.Match[str]) -> str:
    if piece[0] in _FIELDS:
        return _FIELDS[piece[0]]
    text = piece["quoted"] if piece["quoted"] is not None else piece["plain"]
    return "'" if piece[0] == "''" else text.replace("%", "%%")


def date_format(op: Operation) -> Value:
    pattern = op.constant(1)
    assert pattern is not None, "the planner takes literals only"
    parts = arrow_pattern(pattern.as_py())
    assert parts is not None, "the planner takes known letters only"
    values = op.array(0).cast(pa.timestamp("us"))
    seconds = pc.floor_temporal(values, unit="second")
    texts = [
        _fraction(values, seconds, part)
        if isinstance(part, int)
        else pc.strftime(seconds.cast(pa.timestamp("s")), part)
        for part in parts
        if part
    ]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "")


def _fraction(values: pa.Array, seconds: pa.Array, digits: int) -> pa.Array:
    micros = pc.subtract(values, seconds).cast(pa.int64()).cast(pa.string())
    return pc.utf8_slice_codeunits(pc.utf8_lpad(micros, 6, "0"), 0, digits)


USUAL = "yyyy-MM-dd HH:mm:ss"
_DEFAULT = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{0,9}))?)?", re.ASCII
)
_WHOLE = r"^[1-9]\d{3}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,9})?$"
_FALLBACK = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?: +(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?", re.ASCII
)
_NANOS = 1_000_000_000
_MS = 1_000_000
_FIRST_MS, _LAST_MS = -62_167_219_200_000, 253_402_300_799_999
_NO_TIME = -(2**63)
_UNITS = {0: 1_000, 3: 1}


def _of_usual(text: str, pattern: re.Pattern[str]) -> int | None:
    """Nanoseconds of a usual time, with or without a clock.

    Day 31 of a short month is its last, 24:00:00 the next midnight.
    """
    match = pattern.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction = int((match[7] or "0").ljust(9, "0"))
    is_end_of_day = hour == 24 and not minute + second + fraction
    try:
        last = day if day > 31 else min(day, calendar.monthrange(year, month)[1])
        clock = 0 if is_end_of_day else hour, minute, second
        moment = dt.datetime(year, month, last, *clock, tzinfo=dt.UTC)
    except ValueError:
        return None
    whole = int((moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(seconds=1))
    return (whole + 86_400 * is_end_of_day) * _NANOS + fraction


def _local_nanos(text: str, pattern: str | None) -> int | None:
    if pattern is None:
        return _of_usual(text, _DEFAULT)
    try:
        return read(text, pattern, Dialect.FORMATTER)[0]
    except TextError:
        return _of_usual(text.strip(), _FALLBACK)


def to_timestamp(op: Operation) -> Checked:
    """`TO_TIMESTAMP(text[, pattern])`, to the millisecond; Arrow reads columns of usual texts."""
    usual = _usual(op)
    if usual is not None:
        return Checked(usual, np.zeros(op.num_rows, dtype=np.bool_))

    def micros(text: str, pattern: str | None = None) -> int | None:
        nanos = _local_nanos(text, pattern)
        return None if nanos is None else nanos // _MS * 1_000

    made = rowwise(micros, op.arrays(), pa.int64())
    return Checked(cast(made.values, arrow_type(op.result)), made.failed)


def _usual(op: Operation) -> pa.Array | None:
    pattern = op.constant(1) if len(op.arguments) > 1 else None
    if len(op.arguments) > 1 and (pattern is None or pattern.as_py() != USUAL):
        return None
    text = op.array(0)
    if not pc.all(pc.match_substring_regex(text, _WHOLE)).as_py():
        return None
    try:
        return cast(pc.utf8_slice_codeunits(text, 0, 23), arrow_type(op.result))
    except pa.ArrowInvalid:
        return None


def to_instant(op: Operation) -> Checked:
    """`TO_TIMESTAMP_LTZ(text, pattern, zone)`, to the millisecond."""

    def micros(text: str, pattern: str, zone: str) -> int | None:
        nanos = _local_nanos(text, pattern or None)
        return None if nanos is None else _moved(nanos // _MS * 1_000, zone, instants_of)

    made = rowwise(micros, op.arrays(), pa.int64())
    return Checked(cast(made.values, arrow_type(op.result)), made.failed)


def from_number(op: Operation) -> Checked:
    """`TO_TIMESTAMP_LTZ(number[, 0 or 3])`: ms by default, NULL beyond years 0 to 9999.

    A row of the year 0 fails: other systems cannot read such times.
    """
    if op.types[0].name is TypeName.BIGINT:
        return _from_whole(op)

    def micros(number: float | Decimal, precision: int = 3) -> int | None:
        if precision not in _UNITS:
            raise ValueError(precision)
        if isinstance(number, float) and not abs(number) < 1e18:
            return None
        unit = _UNITS[precision]
        ms = int(number) * unit if isinstance(number, Decimal) else int(number * unit)
        if _FIRST_MS <= ms < FIRST // 1_000:
            raise ValueError(number)
        return ms * 1_000 if _FIRST_MS <= ms <= _LAST_MS else None

    made = rowwise(micros, op.arrays(), pa.int64())
    return Checked(cast(made.values, arrow_type(op.result)), made.failed)


def _from_whole(op: Operation) -> Checked:
    numbers, valid = numbers_of(op.array(0))
    digits, there = np.full(op.num_rows, 3, dtype=np.int64), valid
    if len(op.arguments) > 1:
        digits, said = numbers_of(op.array(1))
        there = valid & said
    unit = np.where(digits == 0, 1_000, 1)
    fits = (numbers >= _FIRST_MS // unit) & (numbers <= _LAST_MS // unit)
    micros = np.where(fits, numbers, 0) * unit * 1_000
    failed = there & (((digits != 0) & (digits != 3)) | (micros < FIRST))
    made = pa.array(micros, pa.int64(), mask=~(there & fits) | failed)
    return Checked(cast(made, arrow_type(op.result)), failed)


def to_date(op: Operation) -> Checked:
    def days(text: str, pattern: str) -> int | None:
        try:
            nanos, offset = read(text, pattern, Dialect.SIMPLE)
        except TextError:
            return None
        return (nanos - (offset or 0) * 60 * _NANOS) // (86_400 * _NANOS)

    made = rowwise(days, op.arrays(), pa.int32())
    return Checked(made.values.cast(pa.date32()), made.failed)


def format_time(op: Operation) -> Value | Checked:
    """`DATE_FORMAT(time, pattern)`: by Arrow if it supports the letters."""
    pattern = op.constant(1)
    letters = None if pattern is None else pattern.as_py()
    if letters and arrow_pattern(letters) and _is_plain(op):
        return date_format(op)
    ticks = argument_ticks(op, 0)
    valid = pa.array(~ticks.valid)
    columns = [
        pa.array(numbers, pa.int64(), mask=valid.to_numpy(zero_copy_only=False))
        for numbers in (ticks.micros, ticks.nanos)
    ]
    return rowwise(
        lambda micros, nanos, by: shown(micros, nanos, by, Dialect.FORMATTER),
        [*columns, op.array(1)],
        pa.string(),
    )


def _is_plain(op: Operation) -> bool:
    """True if Arrow writes all the years as Java does, in microseconds: not those before year 1."""
    ticks = argument_ticks(op, 0)
    if op.types[0].precision > 6:
        return False
    return bool(((ticks.micros >= FIRST) & (ticks.micros < 250_000_000_000_000_000)).all())


def format_text(op: Operation) -> Checked:
    """`DATE_FORMAT(text, pattern)`: a text `yyyy-MM-dd HH:mm:ss` in another form."""

    def written(text: str, pattern: str) -> str | None:
        try:
            nanos, _ = read(text, USUAL, Dialect.SIMPLE)
        except TextError:
            return None
        return shown(nanos // 1_000, 0, pattern, Dialect.SIMPLE)

    return rowwise(written, op.arrays(), pa.string())


def from_unixtime(op: Operation) -> Checked:
    return rowwise(
        lambda seconds, pattern, zone: _shown_instant(seconds * 1_000_000, pattern, zone),
        op.arrays(),
        pa.string(),
    )


def unix_timestamp(op: Operation) -> Checked:
    """`UNIX_TIMESTAMP(text, pattern, zone)`, in seconds."""

    def seconds(text: str, pattern: str, zone: str) -> int:
        micros = _read_instant(text, pattern, zone)
        if micros is None:
            return _NO_TIME
        ms = micros // 1_000
        return ms // 1_000 if ms >= 0 else -(-ms // 1_000)

    return rowwise(seconds, op.arrays(), pa.int64())


def convert_tz(op: Operation) -> Checked:
    def converted(text: str, zone: str, other: str) -> str | None:
        micros = _read_instant(text, USUAL, zone)
        return None if micros is None else _shown_instant(micros, USUAL, other)

    return rowwise(converted, op.arrays(), pa.string())


def _read_instant(text: str, pattern: str, zone: str) -> int | None:
    try:
        nanos, offset = read(text, pattern, Dialect.SIMPLE)
    except TextError:
        return None
    if offset is not None:
        return nanos // 1_000 - offset * 60_000_000
    return _moved(nanos // 1_000, zone, instants_of)


def _shown_instant(micros: int, pattern: str, zone: str) -> str:
    local = _moved(micros, zone, local_times)
    return shown(local, 0, pattern, Dialect.SIMPLE, (local - micros) // 60_000_000)


def _checked(zone: str) -> str:
    if known_zone(zone) is None:
        raise ValueError(f'no time zone "{zone}"')
    return zone


@lru_cache(maxsize=8192)
def _moved(micros: int, zone: str, move: Callable[[pa.Array, str], pa.Array]) -> int:
    if known_zone(zone) == UTC:
        return micros
    moment = pa.array([micros], pa.int64()).cast(pa.timestamp("us"))
    return int(move(moment, _checked(zone)).cast(pa.int64())[0].as_py())


TEXT_TIMES: Mapping[str, Function] = {
    "TO_TIMESTAMP": to_timestamp,
    "TO_TIMESTAMP_LTZ": from_number,
    "TO_INSTANT": to_instant,
    "TO_DATE": to_date,
    "DATE_FORMAT": format_time,
    "FORMAT_TEXT": format_text,
    "FROM_UNIXTIME": from_unixtime,
    "UNIX_TIMESTAMP": unix_timestamp,
    "CONVERT_TZ": convert_tz,
}
