"""Durations as a script writes them: a number and a unit."""

import re

_UNITS_MS = {
    **{"ms": 1, "s": 1_000, "sec": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000},
    "d": 86_400_000,
}
_SHOWN = ("d", "h", "min")


def duration_ms(text: str) -> int | None:
    """Milliseconds of a duration such as `500 ms` or `2 s`; None if malformed."""
    match = re.fullmatch(r"(\d{1,9})\s*([a-z]+)", text.strip(), re.ASCII)
    if match is None or match[2] not in _UNITS_MS:
        return None
    return int(match[1]) * _UNITS_MS[match[2]]


def duration_text(value_ms: int) -> str:
    """Such as `5 min`, by the greatest unit that gives a whole number; else `2.5 s`, `500 ms`."""
    for unit in _SHOWN:
        number, rest = divmod(value_ms, _UNITS_MS[unit])
        if number and not rest:
            return f"{number} {unit}"
    if value_ms < _UNITS_MS["s"]:
        return f"{value_ms} ms"
    return f"{value_ms / 1000:.3f}".rstrip("0").rstrip(".") + " s"
