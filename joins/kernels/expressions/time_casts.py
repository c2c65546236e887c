"""CAST to DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ, from each other and from text.

Digits beyond those of the target are cut, towards the past. A TIME becomes the time of that day
1970-01-01. A TIMESTAMP of 7 to 9 digits has nanoseconds, which reach from 1677 to 2262: a time
beyond fails.
"""

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.zones import UTC, instants_of, local_times
from joins.kernels.expressions.arrow_cast import cast
from joins.kernels.expressions.casts import (
    Checked,
    from_text,
    mask_of,
    null_where,
    sound,
    time_from_text,
    try_each,
)
from joins.kernels.expressions.text_times import usual_dates, usual_times, usual_timestamps
from joins.plan.types import SqlType, TypeName, arrow_type

_MICROS_PER_DAY = 86_400_000_000
_OFFSET = r":\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})$"


def to_time_type(values: pa.Array, source: SqlType, target: SqlType, zone: str) -> Checked:
    """Times as another type of times."""
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
    """Local times of a column that is no instant."""
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
    micros = cast(values, pa.timestamp("us"), safe=False).cast(pa.int64())
    numbers = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False) % _MICROS_PER_DAY
    valid = pa.array(mask_of(pc.is_valid(values)))
    times = pc.if_else(valid, pa.array(numbers), pa.scalar(None, pa.int64()))
    return cut_fraction(times, target)


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
    read = time_from_text(usual_times(text))
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
