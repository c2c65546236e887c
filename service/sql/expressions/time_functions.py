"""Times: arithmetic with INTERVAL, functions with units, zones and patterns, the batch's time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from joins.kernels.calendar.java_patterns import Dialect, PatternError, items_of
from joins.kernels.calendar.text_times import DEFAULT_PATTERN
from joins.kernels.calendar.times import DIFFERENCE_UNITS, MILLISECOND_PARTS, MONTH_PARTS
from joins.kernels.calendar.zones import UTC, known_zone
from joins.plan.types import Call, Constant, Expression, ProcTime, SqlType, TypeName
from service.sql.expressions.arguments import (
    Special,
    check_count,
    literal_of,
    text_constant,
    word_of,
)
from service.sql.expressions.functions import EXTRACTED, TIMES, Takes
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import FunctionCall, Literal, LiteralKind, Node
from service.sql.grammar.literal_parser import MAX_INTERVAL_MS
from service.sql.grammar.special_forms import PARTS
from service.sql.grammar.type_parser import (
    BIGINT,
    DOUBLE,
    INT,
    INTEGERS,
    INTERVALS,
    NUMERIC,
    PROCTIME,
    STRING,
    TEMPORAL,
    type_text,
)
from service.sql.text.script import Script

if TYPE_CHECKING:
    from service.sql.expressions.expression_planner import ExpressionPlanner

_KINDS = {
    LiteralKind.INTERVAL: LiteralKind.INTERVAL,
    LiteralKind.INTERVAL_DAYS: LiteralKind.INTERVAL,
    LiteralKind.INTERVAL_MONTHS: LiteralKind.INTERVAL_MONTHS,
}


@dataclass(frozen=True, slots=True)
class Interval:
    """An INTERVAL known at planning time, in milliseconds, or in months for `INTERVAL_MONTHS`."""

    kind: LiteralKind
    size: int


def interval_of(node: Node) -> Interval | None:
    """The INTERVAL of `node`, a literal or a sum of literals of one kind; else None."""
    if isinstance(node, Literal):
        kind = _KINDS.get(node.kind)
        return None if kind is None else Interval(kind, int(node.text))
    if not isinstance(node, FunctionCall) or node.name not in ("+", "-", "NEG"):
        return None
    parts = [interval_of(argument) for argument in node.arguments]
    if node.name == "NEG" and parts[0] is not None:
        return replace(parts[0], size=-parts[0].size)
    if len(parts) != 2 or parts[0] is None or parts[1] is None or parts[0].kind != parts[1].kind:
        return None
    sign = 1 if node.name == "+" else -1
    return replace(parts[0], size=parts[0].size + sign * parts[1].size)


def shifted(
    planner: "ExpressionPlanner", script: Script, node: FunctionCall, both: tuple[Typed, Typed]
) -> Typed | None:
    """Arithmetic with an INTERVAL; None for arithmetic without one."""
    if node.name not in ("+", "-", "*"):
        return None
    left, right = both
    names = (left.type.name, right.type.name)
    if not set(names) & INTERVALS or (left.is_bare_null and right.is_bare_null):
        return None
    if node.name == "*":
        return _multiplied(planner, script, (left, right), node.at)
    if set(names) <= INTERVALS:
        first, second = planner.common((left, right), node.at, f'"{node.name}"')
        return planner.call(node.name, (first, second), first.type, node.at)
    if node.name == "+" and names[0] in INTERVALS:
        left, right = right, left
    if right.type.name not in INTERVALS:
        raise _unfit(script, node, right)
    return moved(planner, script, left, right, node)


def _multiplied(
    planner: "ExpressionPlanner", script: Script, both: tuple[Typed, Typed], at: int
) -> Typed:
    left, right = both if both[0].type.name in INTERVALS else both[::-1]
    if right.type.name not in NUMERIC or right.is_bare_null:
        raise script.error(
            right.at,
            f'"*" of an INTERVAL takes a number, not {type_text(right.type)}',
            hint="Write INTERVAL '1' SECOND * 3.",
        )
    return planner.call("*", (left, right), left.type, at)


def moved(
    planner: "ExpressionPlanner", script: Script, time: Typed, by: Typed, node: FunctionCall
) -> Typed:
    """`time` plus or minus an INTERVAL of milliseconds or months."""
    if time.is_bare_null:
        null = Constant(None, SqlType(TypeName.TIMESTAMP, 3))
        return Typed(null, nullable=True, at=node.at)
    if time.type.name not in TEMPORAL:
        raise _unfit(script, node, time)
    sign = "-" if node.name == "-" else "+"
    if by.type.name is TypeName.INTERVAL_MONTH:
        return planner.call("ADD_MONTHS", (time, _months(planner, by, sign)), time.type, node.at)
    result = _result(time.type, by)
    value = planner.cast(time, result)
    constant = by.expression
    if isinstance(constant, Constant) and constant.value is not None:
        size = int(constant.value) * (-1 if sign == "-" else 1)
        sign = "-" if size < 0 else "+"
        by = Typed(Constant(str(abs(size)), BIGINT), nullable=False, at=by.at)
    return planner.call(sign, (value, by), result, node.at)


def _result(time: SqlType, by: Typed) -> SqlType:
    if time.name is TypeName.DATE:
        return SqlType(TypeName.TIMESTAMP, 6) if by.type.precision else time
    return time if _is_whole(by.expression) or time.precision >= 3 else SqlType(time.name, 3)


def _is_whole(by: Expression) -> bool:
    if isinstance(by, Call) and by.function == "*" and by.arguments[1].type.name in INTEGERS:
        return _is_whole(by.arguments[0])
    return isinstance(by, Constant) and int(by.value or 0) % 1_000 == 0


def _months(planner: "ExpressionPlanner", by: Typed, sign: str) -> Typed:
    constant = by.expression
    if isinstance(constant, Constant) and constant.value is not None:
        count = int(constant.value) * (-1 if sign == "-" else 1)
        return Typed(Constant(str(count), INT), nullable=False, at=by.at)
    return planner.call("NEG", (by,), by.type, by.at) if sign == "-" else by


def _unfit(script: Script, node: FunctionCall, value: Typed) -> Exception:
    return script.error(
        value.at,
        f'"{node.name}" with an INTERVAL takes a time, not {type_text(value.type)}',
        hint="Write CAST(… AS TIMESTAMP(3)), or TO_TIMESTAMP_LTZ(…, 3) for milliseconds.",
    )


def _check_size(script: Script, interval: Interval, at: int) -> None:
    most = MAX_INTERVAL_MS if interval.kind is LiteralKind.INTERVAL else MAX_INTERVAL_MS // 10**9
    if abs(interval.size) > most:
        raise script.error(
            at, "the INTERVAL is longer than 10,000 years", hint="Use a shorter one."
        )


def folded_interval(script: Script, node: FunctionCall) -> Typed | None:
    """The value of an INTERVAL known at planning time; None for another node."""
    interval = interval_of(node)
    if interval is None:
        return None
    _check_size(script, interval, node.at)
    if interval.kind is LiteralKind.INTERVAL_MONTHS:
        kind = SqlType(TypeName.INTERVAL_MONTH)
    else:
        kind = SqlType(TypeName.INTERVAL_SECOND, 0 if _is_of_days(node) else 3)
    return Typed(Constant(str(interval.size), kind), nullable=False, at=node.at)


def _is_of_days(node: Node) -> bool:
    if isinstance(node, FunctionCall):
        return all(map(_is_of_days, node.arguments))
    return isinstance(node, Literal) and node.kind is LiteralKind.INTERVAL_DAYS


_TIMESTAMP = SqlType(TypeName.TIMESTAMP, 3)
_TIME, _DATE = SqlType(TypeName.TIME), SqlType(TypeName.DATE)
_MS = {"WEEK": 604_800_000, "DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000,
       "SECOND": 1_000, "MILLISECOND": 1}  # fmt: skip
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_CLOCK = {"HOUR", "MINUTE", "SECOND", "MILLISECOND"}
_NOW = {"CURRENT_DATE": _DATE, "CURRENT_TIME": _TIME, "LOCALTIME": _TIME,
        "LOCALTIMESTAMP": _TIMESTAMP}  # fmt: skip


def local(planner: "ExpressionPlanner", value: Typed) -> Typed:
    if value.type.name is not TypeName.TIMESTAMP_LTZ or known_zone(planner.zone) == UTC:
        return value
    return planner.cast(value, SqlType(TypeName.TIMESTAMP, value.type.precision))


def now(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 0, 0)
    time = Typed(ProcTime(PROCTIME), nullable=False, at=node.at)
    kind = _NOW.get(node.name)
    return time if kind is None else planner.cast(time, kind)


def _extract(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    unit, value = word_of(node.arguments[0]), planner.plan(node.arguments[1])
    return _part(planner, script, unit, value, node)


def _named_part(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 1)
    unit = next(unit for unit, name in PARTS.items() if name == node.name)
    return _part(planner, script, unit, planner.plan(node.arguments[0]), node)


def _part(
    planner: "ExpressionPlanner", script: Script, unit: str, value: Typed, node: FunctionCall
) -> Typed:
    if value.type.name not in INTERVALS:
        function = EXTRACTED[PARTS[unit]]
        fitting = local(planner, planner.argument(node.name, value, function.takes[0]))
        return planner.call(function.call, (fitting,), BIGINT, node.at)
    known = MONTH_PARTS if value.type.name is TypeName.INTERVAL_MONTH else MILLISECOND_PARTS
    if unit not in known:
        raise script.error(
            value.at,
            f"{unit} of {type_text(value.type)}",
            hint="Its parts are " + ", ".join(sorted(known)) + ".",
        )
    arguments = (value, text_constant(unit, node.at))
    return planner.call("INTERVAL_PART", arguments, BIGINT, node.at)


def _rounded(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`FLOOR(x TO unit)`, `CEIL(x TO unit)`: weeks and longer units need a date."""
    value, unit = planner.plan(node.arguments[0]), word_of(node.arguments[1])
    value = planner.argument(node.name, value, Takes.TIME)
    if value.type.name is TypeName.TIME and unit not in _CLOCK:
        raise script.error(
            value.at,
            f"{node.name} {unit} takes a date or a TIMESTAMP, not TIME",
            hint="Units of a TIME are HOUR, MINUTE, SECOND and MILLISECOND.",
        )
    inner = local(planner, value)
    name = node.name.replace(" ", "_")
    made = planner.call(name, (inner, text_constant(unit, node.at)), inner.type, node.at)
    return made if inner is value else planner.cast(made, value.type)


def _add(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    unit = word_of(node.arguments[0])
    count, time = (planner.plan(argument) for argument in node.arguments[1:])
    count = planner.argument(node.name, count, Takes.LONG)
    time = planner.argument(node.name, time, Takes.TIME)
    if unit in _MONTHS:
        kind, size = SqlType(TypeName.INTERVAL_MONTH), _MONTHS[unit]
    else:
        kind, size = SqlType(TypeName.INTERVAL_SECOND, 3 * (unit in _CLOCK)), _MS[unit]
    one = Typed(Constant(str(size), kind), nullable=False, at=node.at)
    written = literal_of(count)
    if written is not None and abs(int(written)) < 10**12:
        by = replace(one, expression=Constant(str(size * int(written)), kind))
    else:
        by = planner.call("*", (one, count), kind, node.at)
    return moved(planner, script, time, by, replace(node, name="+"))


def _difference(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    unit = word_of(node.arguments[0])
    assert unit in DIFFERENCE_UNITS, "the grammar knows the units"
    both = [planner.plan(argument) for argument in node.arguments[1:]]
    times = [planner.argument(node.name, value, Takes.TIME) for value in both]
    if TypeName.TIMESTAMP_LTZ in {time.type.name for time in times}:
        for value in times:
            if value.type.name is not TypeName.TIMESTAMP_LTZ:
                raise script.error(
                    value.at,
                    f"TIMESTAMPDIFF takes two TIMESTAMP_LTZ, not {type_text(value.type)}",
                    hint="Write CAST(… AS TIMESTAMP_LTZ(3)).",
                )
    return planner.call("TIMESTAMPDIFF", (*times, text_constant(unit, node.at)), INT, node.at)


def _overlaps(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    first, second = (_period(planner, script, node, each) for each in node.arguments)
    parts = (
        planner.comparison(">=", first[1], second[0], node.at),
        planner.comparison(">=", second[1], first[0], node.at),
    )
    return planner.conjunction("AND", parts, node.at)


def _period(
    planner: "ExpressionPlanner", script: Script, node: FunctionCall, period: object
) -> tuple[Typed, Typed]:
    if not isinstance(period, FunctionCall) or period.name != "ROW" or len(period.arguments) != 2:
        raise script.error(
            node.at,
            "OVERLAPS takes two periods",
            hint="Write (start, end) OVERLAPS (start, INTERVAL '1' HOUR).",
        )
    start, end = (planner.plan(argument) for argument in period.arguments)
    start = planner.argument("OVERLAPS", start, Takes.TIME)
    if end.type.name in INTERVALS:
        end = moved(planner, script, start, end, replace(node, name="+"))
    else:
        end = planner.argument("OVERLAPS", end, Takes.TIME)
    start, end = planner.common((start, end), node.at, "OVERLAPS")
    return (
        planner.call("LEAST", (start, end), start.type, node.at),
        planner.call("GREATEST", (start, end), start.type, node.at),
    )


def check_pattern(script: Script, name: str, pattern: Typed, dialect: Dialect) -> None:
    text = literal_of(pattern)
    if text is None:
        return
    try:
        items_of(text, dialect)
    except PatternError as error:
        raise script.error(
            pattern.at,
            f"the pattern of {name} has {error}",
            hint="Write 'yyyy-MM-dd HH:mm:ss.SSS'; other letters go between two single quotes.",
        ) from error


def _texts(
    planner: "ExpressionPlanner", script: Script, node: FunctionCall, values: Sequence[Typed]
) -> list[Typed]:
    return [planner.argument(node.name, value, Takes.TEXT) for value in values]


def _date_format(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 2, 2)
    value, pattern = (planner.plan(argument) for argument in node.arguments)
    (pattern,) = _texts(planner, script, node, (pattern,))
    if value.type == STRING and not value.is_bare_null:
        check_pattern(script, node.name, pattern, Dialect.SIMPLE)
        made = planner.call("FORMAT_TEXT", (value, pattern), STRING, node.at)
        return replace(made, nullable=True)
    check_pattern(script, node.name, pattern, Dialect.FORMATTER)
    time = local(planner, planner.argument(node.name, value, Takes.MOMENT))
    return planner.call("DATE_FORMAT", (time, pattern), STRING, node.at)


def _to_date(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`TO_DATE(text[, pattern])`; without a pattern, it reads dates as CAST does."""
    check_count(script, node, 1, 2)
    values = _texts(planner, script, node, [planner.plan(each) for each in node.arguments])
    if len(values) == 1:
        return planner.cast(values[0], _DATE, safe=True)
    check_pattern(script, node.name, values[1], Dialect.SIMPLE)
    return replace(planner.call("TO_DATE", values, _DATE, node.at), nullable=True)


def _to_timestamp(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 2)
    values = _texts(planner, script, node, [planner.plan(each) for each in node.arguments])
    for pattern in values[1:]:
        check_pattern(script, node.name, pattern, Dialect.FORMATTER)
    return replace(planner.call("TO_TIMESTAMP", values, _TIMESTAMP, node.at), nullable=True)


def _to_instant(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`TO_TIMESTAMP_LTZ(number[, 0 or 3])`, `TO_TIMESTAMP_LTZ(text[, pattern[, zone]])`."""
    check_count(script, node, 1, 3)
    values = [planner.plan(argument) for argument in node.arguments]
    if values[0].type == STRING and not values[0].is_bare_null:
        return _instant_of_text(planner, script, node, values)
    check_count(script, node, 1, 2)
    number = planner.argument(node.name, values[0], Takes.NUMBER)
    if number.type.name in INTEGERS:
        number = planner.cast(number, BIGINT)
    elif number.type.name is TypeName.FLOAT:
        number = planner.cast(number, DOUBLE)
    precisions = [planner.argument(node.name, value, Takes.WHOLE) for value in values[1:]]
    for precision in precisions:
        _check_precision(script, precision)
    made = planner.call("TO_TIMESTAMP_LTZ", (number, *precisions), PROCTIME, node.at)
    return replace(made, nullable=True)


def _check_precision(script: Script, precision: Typed) -> None:
    text = literal_of(precision)
    if text is None or text in ("0", "3"):
        return
    raise script.error(
        precision.at,
        "the precision of TO_TIMESTAMP_LTZ must be 0 or 3",
        hint="Write TO_TIMESTAMP_LTZ(x, 3) for milliseconds since 1970, 0 for seconds.",
    )


def _instant_of_text(
    planner: "ExpressionPlanner", script: Script, node: FunctionCall, values: Sequence[Typed]
) -> Typed:
    texts = _texts(planner, script, node, values)
    pattern = texts[1] if len(texts) > 1 else text_constant("", node.at)
    if literal_of(pattern):
        check_pattern(script, node.name, pattern, Dialect.FORMATTER)
    zone = texts[2] if len(texts) > 2 else text_constant(UTC, node.at)
    _check_zone(script, zone)
    made = planner.call("TO_INSTANT", (texts[0], pattern, zone), PROCTIME, node.at)
    return replace(made, nullable=True)


def _check_zone(script: Script, zone: Typed) -> None:
    name = literal_of(zone)
    if name is None or known_zone(name) is not None:
        return
    raise script.error(
        zone.at,
        f'unknown time zone "{name[:100]}"',
        hint="Write a name such as 'Europe/Berlin', or an offset such as '+02:00'.",
    )


def _from_unixtime(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`FROM_UNIXTIME(seconds[, pattern])`, in the session's zone."""
    check_count(script, node, 1, 2)
    values = [planner.plan(argument) for argument in node.arguments]
    seconds = planner.argument(node.name, values[0], Takes.LONG)
    pattern = _pattern(planner, script, node, values[1:])
    zone = text_constant(planner.zone, node.at)
    return planner.call("FROM_UNIXTIME", (seconds, pattern, zone), STRING, node.at)


def _pattern(
    planner: "ExpressionPlanner", script: Script, node: FunctionCall, values: Sequence[Typed]
) -> Typed:
    for pattern in _texts(planner, script, node, values):
        check_pattern(script, node.name, pattern, Dialect.SIMPLE)
        return pattern
    return text_constant(DEFAULT_PATTERN, node.at)


def _unix_timestamp(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`UNIX_TIMESTAMP()`, the batch's time, and `UNIX_TIMESTAMP(text[, pattern])`."""
    check_count(script, node, 0, 2)
    if not node.arguments:
        instant = Typed(ProcTime(PROCTIME), nullable=False, at=node.at)
        return planner.call("EPOCH", (instant,), BIGINT, node.at)
    values = [planner.plan(argument) for argument in node.arguments]
    (text,) = _texts(planner, script, node, values[:1])
    pattern = _pattern(planner, script, node, values[1:])
    zone = text_constant(planner.zone, node.at)
    return planner.call("UNIX_TIMESTAMP", (text, pattern, zone), BIGINT, node.at)


def _convert_tz(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 3, 3)
    values = _texts(planner, script, node, [planner.plan(each) for each in node.arguments])
    for zone in values[1:]:
        _check_zone(script, zone)
    return replace(planner.call("CONVERT_TZ", values, STRING, node.at), nullable=True)


TIME_FUNCTIONS: dict[str, Special] = {
    **dict.fromkeys(
        ("PROCTIME", "CURRENT_TIMESTAMP", "NOW", "CURRENT_ROW_TIMESTAMP", "LOCALTIMESTAMP",
         "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME"),
        now,
    ),
    **dict.fromkeys(TIMES, _named_part),
    "EXTRACT": _extract,
    "FLOOR TO": _rounded,
    "CEIL TO": _rounded,
    "TIMESTAMPADD": _add,
    "TIMESTAMPDIFF": _difference,
    "OVERLAPS": _overlaps,
    "DATE_FORMAT": _date_format,
    "TO_DATE": _to_date,
    "TO_TIMESTAMP": _to_timestamp,
    "TO_TIMESTAMP_LTZ": _to_instant,
    "FROM_UNIXTIME": _from_unixtime,
    "UNIX_TIMESTAMP": _unix_timestamp,
    "CONVERT_TZ": _convert_tz,
}  # fmt: skip
