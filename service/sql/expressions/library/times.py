"""Parts of dates and times: functions, and what only EXTRACT names."""

from service.sql.expressions.library.function import Function, Takes, fixed
from service.sql.grammar.type_rules import BIGINT

_CALENDAR, _CLOCK = Takes.CALENDAR, Takes.CLOCK
TIMES: dict[str, Function] = {
    **{
        name: Function((_CALENDAR,), fixed(BIGINT), name)
        for name in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR")
    },
    **{name: Function((_CLOCK,), fixed(BIGINT), name) for name in ("HOUR", "MINUTE", "SECOND")},
}
EXTRACTED: dict[str, Function] = {
    **TIMES,
    **{
        name: Function((_CALENDAR,), fixed(BIGINT), name)
        for name in ("MILLENNIUM", "CENTURY", "DECADE", "ISOYEAR", "ISODOW")
    },
    **{
        name: Function((_CLOCK,), fixed(BIGINT), name)
        for name in ("MILLISECOND", "MICROSECOND", "NANOSECOND")
    },
    "EPOCH": Function((Takes.TIME,), fixed(BIGINT), "EPOCH"),
}
