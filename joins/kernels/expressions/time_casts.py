"""CAST to and from DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ; intervals as text.

As in Flink: finer digits are cut, towards the past; a TIME becomes the time of 1970-01-01; `1999-9`
and `1999` are dates, `23` is a time. A TIMESTAMP of 7 to 9 digits spans 1677 to 2262.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.zones import UTC, instants_of, local_times
from joins.kernels.expressions.casts import (
    DATE_PATTERN,
    TIME_PATTERN,
    TIMESTAMP_PATTERN,
    Checked,
    cast,
    from_text,
    mask_of,
    null_where,
    sound,
    time_from_text,
    try_each,
)
from joins.plan.types import SqlType, TypeName, arrow_type


def month_text(months: int) -> str:
    years, rest = divmod(abs(months), 12)
    return f"{'-' if months < 0 else '+'}{years}-{rest:02}"


def second_text(milliseconds: int) -> str:
    """`+1 02:03:04.005`: days, hours, minutes and seconds."""
    seconds, ms = divmod(abs(milliseconds), 1_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    sign = "-" if milliseconds < 0 else "+"
    return f"{sign}{days} {hour:02}:{minute:02}:{second:02}.{ms:03}"


_CLOCK = r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_DATE = (
    r"^0*(?P<y>\d{1,4})(?:-0*(?P<m>\d{1,2})(?:-0*(?P<d>\d{1,2}))?)?"
    rf"(?: (?s:.*)|T{_CLOCK})?$"
)
_TIMESTAMP = (
    r"^(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
    r"(?:[ T](?P<h>\d{1,2}):(?P<n>\d{1,2})(?::(?P<s>\d{1,2})(?:\.(?P<f>\d{0,9}))?)?)?$"
)
_TIME = (
    r"^0*(?P<h>\d{1,2})(?: *: *0*(?P<n>\d{1,2})"
    r"(?: *: *0*(?P<s>\d{1,2})(?: *\.(?P<f>\d{0,9})\d*)?)?)?$"
)
_Parts = Sequence[pa.Array]


def usual_dates(text: pa.Array) -> pa.Array:
    return _rewritten(text, DATE_PATTERN, _DATE, lambda parts: _day(parts, first="01"))


def usual_timestamps(text: pa.Array) -> pa.Array:
    def written(parts: _Parts) -> pa.Array:
        return pc.binary_join_element_wise(_day(parts, first="00"), _clock_text(parts[3:]), " ")

    return _rewritten(text, TIMESTAMP_PATTERN, _TIMESTAMP, written)


def _rewritten(
    text: pa.Array, usual: str, other: str, written: Callable[[_Parts], pa.Array]
) -> pa.Array:
    """Changes texts that match only `other` to the `usual` form."""
    unusual = ~mask_of(pc.match_substring_regex(text, usual)) & mask_of(pc.is_valid(text))
    if not unusual.any():
        return text
    odd_texts = text.filter(pa.array(unusual))
    parts = pc.extract_regex(odd_texts, other).flatten()
    return pc.replace_with_mask(text, pa.array(unusual), pc.coalesce(written(parts), odd_texts))


def _day(parts: _Parts, first: str) -> pa.Array:
    month, day = (pc.if_else(pc.equal(p, ""), first, _two_digits(p)) for p in parts[1:3])
    return pc.binary_join_element_wise(pc.utf8_lpad(parts[0], 4, "0"), month, day, "-")


def _clock_text(parts: _Parts) -> pa.Array:
    seconds = pc.binary_join_element_wise(*map(_two_digits, parts[:3]), ":")
    return pc.binary_join_element_wise(seconds, pc.utf8_rpad(parts[3], 1, "0"), ".")


def _two_digits(part: pa.Array) -> pa.Array:
    return pc.utf8_lpad(part, 2, "0")


def time_text(micros: pa.Array, digits: int) -> pa.Array:
    """TIME as CAST writes it: up to `digits` of the fraction, without zeros at the end but one."""
    clock = _clock_of(micros)
    if digits == 0:
        return pc.utf8_slice_codeunits(clock, 0, 8)
    cut = pc.utf8_slice_codeunits(clock, 0, 9 + digits)
    return pc.replace_substring_regex(cut, r"(\.\d+?)0*$", r"\1")


def shown_time(micros: pa.Array, digits: int) -> pa.Array:
    return trimmed_fraction(_clock_of(micros), digits)


def trimmed_fraction(text: pa.Array, digits: int) -> pa.Array:
    """At least `digits` digits after the seconds, more only if they are not zero."""
    if digits == 0:
        text = pc.replace_substring_regex(text, r"\.0+$", "")
    return pc.replace_substring_regex(text, rf"(\.\d{{{digits}}}\d*?)0*$", r"\1")


def _clock_of(micros: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(micros.cast(pa.timestamp("us")).cast(pa.string()), 11)


_MICROS_PER_DAY = 86_400_000_000
_OFFSET = r":\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})$"


def to_time_type(values: pa.Array, source: SqlType, target: SqlType, zone: str) -> Checked:
    is_instant = source.name is TypeName.TIMESTAMP_LTZ
    if target.name is TypeName.TIMESTAMP_LTZ and is_instant:
        return _cut_to(values, target)
    local = local_times(values, zone) if is_instant else _plain(values, source)
    if target.name is TypeName.TIME:
        return sound(_clock(values if source.name is TypeName.TIME else local, source, target))
    if target.name is TypeName.DATE:
        return sound(pc.floor_temporal(local, unit="day").cast(pa.date32()))
    if target.name is TypeName.TIMESTAMP_LTZ:
        return _cut_to(instants_of(local, zone), target)
    return _cut_to(local, target)


def _plain(values: pa.Array, source: SqlType) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        return values
    if source.name is TypeName.TIME:
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False) % _MICROS_PER_DAY
        return pa.array(numbers, mask=mask_of(values.is_null())).cast(pa.timestamp("us"))
    return values.cast(pa.timestamp("us"))


def _cut_to(values: pa.Array, target: SqlType) -> Checked:
    to = arrow_type(target)
    if to.unit == "us" or values.type.unit == "ns":
        return sound(cast(cut_fraction(values, target), to, safe=False))
    return try_each(values, lambda part: cast(part, to), to)


def _clock(values: pa.Array, source: SqlType, target: SqlType) -> pa.Array:
    if source.name is TypeName.TIME:
        return cut_fraction(values, target)
    cut = cut_fraction(values, target)
    micros = cast(cut, pa.timestamp("us"), safe=False).cast(pa.int64())
    numbers = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False) % _MICROS_PER_DAY
    valid = pa.array(mask_of(pc.is_valid(values)))
    return pc.if_else(valid, pa.array(numbers), pa.scalar(None, pa.int64()))


def cut_fraction(values: pa.Array, target: SqlType) -> pa.Array:
    """Microseconds, or nanoseconds, cut to the fractional digits of `target`, towards the past."""
    nanos = pa.types.is_timestamp(values.type) and values.type.unit == "ns"
    digits = 9 if nanos else 6
    if target.precision >= digits:
        return values
    unit = 10 ** (digits - target.precision)
    ticks = values.cast(pa.int64())
    numbers = pc.fill_null(ticks, 0).to_numpy(zero_copy_only=False)
    cut = pa.array(numbers - numbers % unit)
    kept = pc.if_else(pc.is_valid(values), cut, pa.scalar(None, pa.int64()))
    return cast(kept, values.type)


def date_from_string(text: pa.Array, target: SqlType) -> Checked:
    return from_text(usual_dates(text), arrow_type(target))


def time_from_string(text: pa.Array, target: SqlType) -> Checked:
    read = time_from_text(_rewritten(text, TIME_PATTERN, _TIME, _clock_text))
    return Checked(cut_fraction(read.values, target), read.failed)


def timestamp_from_string(text: pa.Array, target: SqlType) -> Checked:
    read = from_text(usual_timestamps(text), arrow_type(target))
    return Checked(cut_fraction(read.values, target), read.failed)


def instant_from_string(text: pa.Array, target: SqlType, zone: str = UTC) -> Checked:
    """TIMESTAMP_LTZ: by the offset in the text, else by the zone."""
    to = arrow_type(target)
    offset = mask_of(pc.match_substring_regex(text, _OFFSET))
    instant = from_text(null_where(text, ~offset), to)
    local = from_text(usual_timestamps(null_where(text, offset)), pa.timestamp(to.unit))
    values = pc.coalesce(instant.values, instants_of(local.values, zone))
    return Checked(cut_fraction(values, target), instant.failed | local.failed)
