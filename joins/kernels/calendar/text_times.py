"""Functions from texts and numbers to times, and back.

    function                                pattern (`Dialect`)                  invalid text
    TO_TIMESTAMP, TO_TIMESTAMP_LTZ of text  FORMATTER; none, or no match: ISO    NULL
    DATE_FORMAT of a time                   FORMATTER
    DATE_FORMAT of a text, TO_DATE          SIMPLE                               NULL
    CONVERT_TZ, FROM_UNIXTIME               SIMPLE, in a zone                    NULL
    UNIX_TIMESTAMP                          SIMPLE, in a zone                    the lowest BIGINT

A row with an unknown zone fails. Arrow evaluates what it does as Java, Python the rest by row.
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

DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"
_ISO = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{0,9}))?)?", re.ASCII
)
_ISO_AFTER_PATTERN = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?: +(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?", re.ASCII
)
_ISO_OF_ARROW = r"^[1-9]\d{3}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,9})?$"
_NANOS = 1_000_000_000
_NANOS_OF_MS = 1_000_000
_FIRST_MS, _LAST_MS = -62_167_219_200_000, 253_402_300_799_999  # years 0 to 9999
_NO_TIME = -(2**63)
_MS_OF_PRECISION = {0: 1_000, 3: 1}

# To times, to the millisecond
# ---------------------------------------------------------------------------------------------


def _to_timestamp(op: Operation) -> Checked:
    """`TO_TIMESTAMP(text[, pattern])`."""
    by_arrow = _read_by_arrow(op)
    if by_arrow is not None:
        return Checked(by_arrow, np.zeros(op.num_rows, dtype=np.bool_))
    return _times_of_rows(op, _local_micros)


def _read_by_arrow(op: Operation) -> pa.Array | None:
    """The times of a column of usual texts; None if a text, or the pattern, is another one."""
    pattern = op.constant(1) if len(op.arguments) > 1 else None
    if len(op.arguments) > 1 and (pattern is None or pattern.as_py() != DEFAULT_PATTERN):
        return None
    text = op.array(0)
    if not pc.all(pc.match_substring_regex(text, _ISO_OF_ARROW)).as_py():
        return None
    try:
        return cast(pc.utf8_slice_codeunits(text, 0, 23), arrow_type(op.result))
    except pa.ArrowInvalid:
        return None


def _to_instant(op: Operation) -> Checked:
    """`TO_TIMESTAMP_LTZ(text, pattern, zone)`."""

    def micros(text: str, pattern: str, zone: str) -> int | None:
        local = _local_micros(text, pattern or None)
        return None if local is None else _moved(local, zone, instants_of)

    return _times_of_rows(op, micros)


def _times_of_rows(op: Operation, micros: Callable[..., int | None]) -> Checked:
    made = rowwise(micros, op.arrays(), pa.int64())
    return Checked(cast(made.values, arrow_type(op.result)), made.failed)


def _local_micros(text: str, pattern: str | None = None) -> int | None:
    if pattern is None:
        nanos = _iso_nanos(text, _ISO)
    else:
        try:
            nanos = read(text, pattern, Dialect.FORMATTER)[0]
        except TextError:
            nanos = _iso_nanos(text.strip(), _ISO_AFTER_PATTERN)
    return None if nanos is None else nanos // _NANOS_OF_MS * 1_000


def _iso_nanos(text: str, form: re.Pattern[str]) -> int | None:
    """Day 31 of a short month is its last, 24:00:00 the next midnight."""
    match = form.fullmatch(text)
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


def _to_date(op: Operation) -> Checked:
    def days(text: str, pattern: str) -> int | None:
        try:
            nanos, offset = read(text, pattern, Dialect.SIMPLE)
        except TextError:
            return None
        return (nanos - (offset or 0) * 60 * _NANOS) // (86_400 * _NANOS)

    made = rowwise(days, op.arrays(), pa.int32())
    return Checked(made.values.cast(pa.date32()), made.failed)


def _from_number(op: Operation) -> Checked:
    """`TO_TIMESTAMP_LTZ(number[, 0 or 3])`: ms by default, NULL beyond years 0 to 9999.

    A row of the year 0 fails: other systems cannot read such times.
    """
    if op.types[0].name is TypeName.BIGINT:
        return _from_bigint(op)

    def micros(number: float | Decimal, precision: int = 3) -> int | None:
        if precision not in _MS_OF_PRECISION:
            raise ValueError(precision)
        if isinstance(number, float) and not abs(number) < 1e18:
            return None
        unit = _MS_OF_PRECISION[precision]
        ms = int(number) * unit if isinstance(number, Decimal) else int(number * unit)
        if _FIRST_MS <= ms < FIRST // 1_000:
            raise ValueError(number)
        return ms * 1_000 if _FIRST_MS <= ms <= _LAST_MS else None

    return _times_of_rows(op, micros)


def _from_bigint(op: Operation) -> Checked:
    numbers, valid = numbers_of(op.array(0))
    precision = np.full(op.num_rows, 3, dtype=np.int64)
    if len(op.arguments) > 1:
        precision, has_precision = numbers_of(op.array(1))
        valid = valid & has_precision
    unit = np.where(precision == 0, 1_000, 1)
    fits = (numbers >= _FIRST_MS // unit) & (numbers <= _LAST_MS // unit)
    micros = np.where(fits, numbers, 0) * unit * 1_000
    failed = valid & (((precision != 0) & (precision != 3)) | (micros < FIRST))
    made = pa.array(micros, pa.int64(), mask=~(valid & fits) | failed)
    return Checked(cast(made, arrow_type(op.result)), failed)


# Times to texts
# ---------------------------------------------------------------------------------------------

_STRFTIME = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PIECE = re.compile(
    r"yyyy(?!y)|MM(?!M)|dd(?!d)|HH(?!H)|mm(?!m)|ss(?!s)|(?P<fraction>S{1,6}(?!S))"
    r"|'(?P<quoted>[^']*)'|(?P<plain>[^A-Za-z'])"
)


def _format_time(op: Operation) -> Value | Checked:
    """`DATE_FORMAT(time, pattern)`: by Arrow if it writes the letters and years as Java does."""
    pattern, ticks = op.constant(1), argument_ticks(op, 0)
    parts = None if pattern is None else _arrow_parts(pattern.as_py())
    # before year 1 Java writes years of an era, after 9999 with a sign
    has_years = (ticks.micros >= FIRST) & (ticks.micros < 250_000_000_000_000_000)
    if parts and has_years.all() and op.types[0].precision <= 6:
        return _format_by_arrow(op.array(0).cast(pa.timestamp("us")), parts)
    columns = [
        pa.array(each, pa.int64(), mask=~ticks.valid) for each in (ticks.micros, ticks.nanos)
    ]
    return rowwise(
        lambda micros, nanos, by: shown(micros, nanos, by, Dialect.FORMATTER),
        [*columns, op.array(1)],
        pa.string(),
    )


def _arrow_parts(pattern: str) -> list[str | int]:
    """Patterns of strftime, and between them numbers of digits of the second's fraction.

    Empty for letters other than `yyyy MM dd HH mm ss` and up to six `S`. Other characters stand for
    themselves, letters between single quotes too, and two single quotes are one.
    """
    parts: list[str | int] = [""]
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return []
        if piece["fraction"] is not None:
            parts += [len(piece[0]), ""]
        else:
            parts[-1] = f"{parts[-1]}{_strftime(piece)}"
        at = piece.end()
    has_quote_in_quotes = re.search(r"'[^']+''", pattern)
    return [] if has_quote_in_quotes else [part for part in parts if part]


def _strftime(piece: re.Match[str]) -> str:
    if piece[0] in _STRFTIME:
        return _STRFTIME[piece[0]]
    text = piece["quoted"] if piece["quoted"] is not None else piece["plain"]
    return "'" if piece[0] == "''" else text.replace("%", "%%")


def _format_by_arrow(values: pa.Array, parts: list[str | int]) -> pa.Array:
    seconds = pc.floor_temporal(values, unit="second")
    micros = pc.subtract(values, seconds).cast(pa.int64()).cast(pa.string())
    digits = pc.utf8_lpad(micros, 6, "0")
    texts = [
        pc.utf8_slice_codeunits(digits, 0, part)
        if isinstance(part, int)
        else pc.strftime(seconds.cast(pa.timestamp("s")), part)
        for part in parts
    ]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "")


def _format_text(op: Operation) -> Checked:
    """`DATE_FORMAT(text, pattern)`: a text of `DEFAULT_PATTERN` in another form."""

    def written(text: str, pattern: str) -> str | None:
        try:
            nanos, _ = read(text, DEFAULT_PATTERN, Dialect.SIMPLE)
        except TextError:
            return None
        return shown(nanos // 1_000, 0, pattern, Dialect.SIMPLE)

    return rowwise(written, op.arrays(), pa.string())


# In a zone
# ---------------------------------------------------------------------------------------------


def _from_unixtime(op: Operation) -> Checked:
    """`FROM_UNIXTIME(seconds, pattern, zone)`."""
    return rowwise(
        lambda seconds, pattern, zone: _shown_instant(seconds * 1_000_000, pattern, zone),
        op.arrays(),
        pa.string(),
    )


def _unix_timestamp(op: Operation) -> Checked:
    """`UNIX_TIMESTAMP(text, pattern, zone)`, in seconds."""

    def seconds(text: str, pattern: str, zone: str) -> int:
        micros = _read_instant(text, pattern, zone)
        if micros is None:
            return _NO_TIME
        ms = micros // 1_000
        return ms // 1_000 if ms >= 0 else -(-ms // 1_000)

    return rowwise(seconds, op.arrays(), pa.int64())


def _convert_tz(op: Operation) -> Checked:
    """`CONVERT_TZ(text, zone, other)`."""

    def converted(text: str, zone: str, other: str) -> str | None:
        micros = _read_instant(text, DEFAULT_PATTERN, zone)
        return None if micros is None else _shown_instant(micros, DEFAULT_PATTERN, other)

    return rowwise(converted, op.arrays(), pa.string())


def _read_instant(text: str, pattern: str, zone: str) -> int | None:
    """Microseconds in UTC; an offset in the text outweighs `zone`."""
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


@lru_cache(maxsize=8192)
def _moved(micros: int, zone: str, move: Callable[[pa.Array, str], pa.Array]) -> int:
    """A time by `local_times` or `instants_of`; ValueError for an unknown zone."""
    known = known_zone(zone)
    if known == UTC:
        return micros
    if known is None:
        raise ValueError(f'no time zone "{zone}"')
    moment = pa.array([micros], pa.int64()).cast(pa.timestamp("us"))
    return int(move(moment, zone).cast(pa.int64())[0].as_py())


TEXT_TIMES: Mapping[str, Function] = {
    "TO_TIMESTAMP": _to_timestamp,
    "TO_TIMESTAMP_LTZ": _from_number,
    "TO_INSTANT": _to_instant,
    "TO_DATE": _to_date,
    "DATE_FORMAT": _format_time,
    "FORMAT_TEXT": _format_text,
    "FROM_UNIXTIME": _from_unixtime,
    "UNIX_TIMESTAMP": _unix_timestamp,
    "CONVERT_TZ": _convert_tz,
}
"""TO_INSTANT is TO_TIMESTAMP_LTZ of a text, FORMAT_TEXT is DATE_FORMAT of a text."""
