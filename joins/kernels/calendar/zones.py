"""Time zones: their names in Java, and instants as local times.

A local time that a zone skips is read with the offset before the gap, one that occurs twice with
the earlier offset, as in `LocalDateTime.atZone` of Java.
"""

import re
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import cast

UTC = "UTC"
_OFFSET = re.compile(r"(?:(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?)$")
_SAME_AS_UTC = frozenset(("UTC", "GMT", "UT", "Z", "Etc/UTC", "Etc/GMT", "Universal", "Zulu"))
_SHORT = {  # java.time.ZoneId.SHORT_IDS, which TimeZone knows too
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


@lru_cache(maxsize=256)
def known_zone(name: str) -> str | int | None:
    """UTC, a name of the time zone database, or an offset in minutes; None if unknown."""
    if name in _SAME_AS_UTC:
        return UTC
    fixed = _OFFSET.match(name)
    if fixed is not None:
        minutes = int(fixed[2]) * 60 + int(fixed[3] or 0)
        if minutes > 18 * 60 or int(fixed[3] or 0) > 59:
            return None
        return -minutes if fixed[1] == "-" else minutes
    full = _SHORT.get(name, name)
    if full not in available_timezones():
        return None
    try:
        return ZoneInfo(full).key
    except (ZoneInfoNotFoundError, ValueError):
        return None


def local_times(instants: pa.Array, zone: str) -> pa.Array:
    """Instants as the clocks of `zone` show them, in the same unit."""
    place, unit = known_zone(zone), instants.type.unit
    plain = instants.cast(pa.timestamp(unit))
    if place == UTC:
        return plain
    if isinstance(place, int):
        return _moved(plain, place)
    return pc.local_timestamp(plain.cast(pa.timestamp(unit, UTC)).cast(pa.timestamp(unit, place)))


def instants_of(local: pa.Array, zone: str) -> pa.Array:
    place, unit = known_zone(zone), local.type.unit
    to = pa.timestamp(unit, UTC)
    if place == UTC:
        return cast(local, to)
    if isinstance(place, int):
        return cast(_moved(local, -place), to)
    first = pc.assume_timezone(local, place, ambiguous="earliest", nonexistent="earliest")
    before = pc.subtract(first.cast(pa.timestamp(unit)).cast(pa.int64()), 1)
    at = before.cast(pa.timestamp(unit))
    offset = pc.subtract(local_times(at, zone).cast(pa.int64()), before)
    by_offset = pc.subtract(local.cast(pa.int64()), offset)
    skipped = pc.not_equal(local_times(first, zone), local)
    exact = pc.if_else(skipped, by_offset, first.cast(pa.timestamp(unit)).cast(pa.int64()))
    return cast(exact.cast(pa.timestamp(unit)), to)


def _moved(times: pa.Array, minutes: int) -> pa.Array:
    per_second = {"us": 1_000_000, "ns": 1_000_000_000}[times.type.unit]
    ticks = pc.add_checked(times.cast(pa.int64()), minutes * 60 * per_second)
    return cast(ticks, times.type)
