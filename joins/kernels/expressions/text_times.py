"""Dates and times as CAST reads them, in more forms than the usual one, and TIME as it writes it.

As in Flink: `1999-9-10`, `1999-9` and `1999` are dates, whatever follows a blank behind a date is
ignored, `1:30:00` and `23` are times.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import DATE_PATTERN, TIME_PATTERN, TIMESTAMP_PATTERN, mask_of

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
        return pc.binary_join_element_wise(_day(parts, first="00"), _clock(parts[3:]), " ")

    return _rewritten(text, TIMESTAMP_PATTERN, _TIMESTAMP, written)


def usual_times(text: pa.Array) -> pa.Array:
    return _rewritten(text, TIME_PATTERN, _TIME, _clock)


def _rewritten(
    text: pa.Array, usual: str, other: str, written: Callable[[_Parts], pa.Array]
) -> pa.Array:
    """`text` with what has only the form `other` in the usual one."""
    unusual = ~mask_of(pc.match_substring_regex(text, usual)) & mask_of(pc.is_valid(text))
    if not unusual.any():
        return text
    odd_texts = text.filter(pa.array(unusual))
    parts = pc.extract_regex(odd_texts, other).flatten()
    return pc.replace_with_mask(text, pa.array(unusual), pc.coalesce(written(parts), odd_texts))


def _day(parts: _Parts, first: str) -> pa.Array:
    month, day = (pc.if_else(pc.equal(p, ""), first, _two_digits(p)) for p in parts[1:3])
    return pc.binary_join_element_wise(pc.utf8_lpad(parts[0], 4, "0"), month, day, "-")


def _clock(parts: _Parts) -> pa.Array:
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
    """At least so many digits after the seconds, more only if they are not zero."""
    if digits == 0:
        text = pc.replace_substring_regex(text, r"\.0+$", "")
    return pc.replace_substring_regex(text, rf"(\.\d{{{digits}}}\d*?)0*$", r"\1")


def _clock_of(micros: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(micros.cast(pa.timestamp("us")).cast(pa.string()), 11)
