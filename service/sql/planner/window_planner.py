"""Windows of a plan: sizes, time attribute, added columns; windows in GROUP BY."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from joins.kernels.calendar.zones import UTC
from joins.plan.durations import duration_ms
from joins.plan.plan import WINDOW, JoinType, Unnest, WindowKind
from joins.plan.types import (
    Call,
    Cast,
    Column,
    Constant,
    Expression,
    ProcTime,
    SqlType,
    TypeName,
    array_type,
    with_parts,
)
from service.sql.catalog.settings import ALLOW_LATENESS, LOCAL_TIME_ZONE
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import (
    NameScope,
    ScopeColumn,
    ScopeRelation,
    TimeAttribute,
    Typed,
)
from service.sql.expressions.time_functions import interval_of
from service.sql.grammar.expression_nodes import FunctionCall, Literal, LiteralKind, Node, Reference
from service.sql.grammar.syntax import GroupBy, WindowNode
from service.sql.grammar.type_parser import (
    BIGINT,
    BOOLEAN,
    INSTANTS,
    PROCTIME,
    is_lossless,
    type_text,
)
from service.sql.grammar.window_parser import GROUP_FORM
from service.sql.text.script import Script

_ARGUMENTS = {
    WindowKind.TUMBLE: ("SIZE",),
    WindowKind.HOP: ("SLIDE", "SIZE"),
    WindowKind.SESSION: ("GAP",),
}
_FORMS = {
    WindowKind.TUMBLE: "Write GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE).",
    WindowKind.HOP: "Write GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE): first the "
    "slide, then the size.",
    WindowKind.SESSION: "Write GROUP BY SESSION(ts, INTERVAL '5' MINUTE).",
}
_PARTS = ("START", "END", "ROWTIME", "PROCTIME")


@dataclass(frozen=True, slots=True)
class GroupWindow:
    """A window that is a key of GROUP BY; `node` is the same window as a window function."""

    call: FunctionCall
    node: WindowNode


def group_window(script: Script, group_by: GroupBy) -> GroupWindow | None:
    calls = [key for key in group_by.keys if isinstance(key, FunctionCall) and _is_window(key)]
    if len(calls) > 1:
        raise script.error(calls[1].at, "GROUP BY has two windows", hint=GROUP_FORM)
    for call in calls:
        kind = WindowKind(call.name)
        names = _ARGUMENTS[kind]
        time, *intervals = call.arguments or (call,)
        if not isinstance(time, Reference) or len(intervals) != len(names):
            raise script.error(
                call.at,
                f"{kind} in GROUP BY takes the time column and {len(names)} "
                f"interval{'s' * (len(names) > 1)}",
                hint=_FORMS[kind],
            )
        sizes = dict(zip(names, intervals, strict=True))
        return GroupWindow(call, WindowNode(kind, time, sizes, (), call.at))
    return None


def part_of(node: Node, window: GroupWindow | None) -> str | None:
    """START, END, ROWTIME or PROCTIME of a call such as TUMBLE_START.

    The caller compares the arguments.
    """
    if window is None or not isinstance(node, FunctionCall):
        return None
    kind, _, part = node.name.rpartition("_")
    return part if kind == window.node.kind.value and part in _PARTS else None


def same_intervals(one: Sequence[Node], other: Sequence[Node]) -> bool:
    if len(one) != len(other):
        return False
    return all(
        isinstance(a, Literal) and isinstance(b, Literal) and (a.kind, a.text) == (b.kind, b.text)
        for a, b in zip(one, other, strict=True)
    )


def _is_window(call: FunctionCall) -> bool:
    return call.name in _ARGUMENTS


MAX_WINDOWS_OF_A_ROW = 1_440  # minutes of a day
_MOST_ROWS = 100
PLACES = "$windows"
"""The relation of the windows of a row, where nothing aggregates them."""
ELEMENT = "element"
_MAX_SIZE_MS = 36_525 * 86_400_000
_BOUND = SqlType(TypeName.TIMESTAMP, 3)
WINDOW_COLUMNS = ("window_start", "window_end", "window_time")


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window function whose rows are not aggregated yet; a session's `size_ms` is its gap.

    `time` is None for processing time. `partition` is None for a window in GROUP BY, whose sessions
    are per key.
    """

    kind: WindowKind
    size_ms: int
    slide_ms: int | None
    offset_ms: int
    time: Column | None
    time_type: SqlType
    partition: tuple[Typed, ...] | None
    at: int


def _check_zone(script: Script, time_type: SqlType, at: int) -> None:
    """Refuse a window over instants outside UTC: windows are aligned in UTC."""
    if time_type.name is not TypeName.TIMESTAMP and script.zone != UTC:
        raise script.error(
            at,
            f'a window of instants in the time zone "{script.zone}"',
            hint=f"Write SET '{LOCAL_TIME_ZONE}' = 'UTC', and give the window an OFFSET.",
        )


def open_window(
    script: Script, node: WindowNode, scope: NameScope, *, is_key: bool = False
) -> OpenWindow:
    """The window function over the rows of `scope`; `is_key` if it stands in GROUP BY."""
    time, time_type = _time(script, node, scope)
    _check_zone(script, time_type, node.at)
    planner = ExpressionPlanner(scope)
    sizes = {name: _milliseconds(script, name, part) for name, part in node.intervals.items()}
    window = OpenWindow(
        kind=node.kind,
        size_ms=sizes.get("SIZE", sizes.get("GAP", 0)),
        slide_ms=sizes.get("SLIDE", sizes.get("STEP")),
        offset_ms=sizes.get("OFFSET", 0),
        time=time,
        time_type=time_type,
        partition=None if is_key else tuple(planner.plan(part) for part in node.partition),
        at=node.at,
    )
    slide_ms = window.slide_ms or window.size_ms
    grows = window.kind is WindowKind.CUMULATE
    if window.size_ms % slide_ms:
        step = "step" if grows else "slide"
        raise script.error(
            window.at,
            f"the size of {window.kind}, {window.size_ms} ms, is not a multiple of its {step}, "
            f"{slide_ms} ms",
            hint=f"{window.kind} takes the {step} first, then the size.",
        )
    if not grows:
        check_count(script, window, "Use a longer slide.")
    apart_ms = window.size_ms if grows else slide_ms
    if abs(window.offset_ms) >= apart_ms and window.kind is not WindowKind.SESSION:
        raise script.error(
            window.at,
            f"the offset of {window.kind}, {window.offset_ms} ms, is not below {apart_ms} ms",
            hint="Give the remainder of its division by the size (HOP: by the slide).",
        )
    return window


def check_count(script: Script, window: OpenWindow, hint: str) -> None:
    """Refuse a window whose rows are kept once for each of their windows, if these are too many."""
    count = window.size_ms // (window.slide_ms or window.size_ms)
    if count > MAX_WINDOWS_OF_A_ROW:
        raise script.error(
            window.at,
            f"a row is in {count:,} windows of {window.kind}, more than {MAX_WINDOWS_OF_A_ROW:,}",
            hint=hint,
        )


def with_window_columns(
    script: Script, relation: ScopeRelation, window: OpenWindow
) -> ScopeRelation:
    added: list[ScopeColumn] = []
    for name in WINDOW_COLUMNS:
        if relation.column(name) is not None:
            raise script.error(
                window.at,
                f'"{relation.table}" has a column "{name}", which the window adds',
                hint="Rename the column in a VIEW of the table.",
            )
        value = window_value(script, window, name)
        added.append(ScopeColumn(name, value.type, nullable=False, value=value))
    return replace(relation, columns=(*relation.columns, *added))


def window_value(script: Script, window: OpenWindow, name: str) -> Typed:
    value = Typed(Column(WINDOW, name, window.time_type), nullable=False, at=window.at)
    if name == "window_time":
        return value
    return ExpressionPlanner(NameScope(script, ())).cast(value, _BOUND)


def window_column(expression: Expression) -> str | None:
    """The window column that an expression preserves; None if it may map two values to one."""
    while isinstance(expression, Cast):
        source, target = expression.operand.type, expression.type
        same_instant = {source.name, target.name} <= INSTANTS
        if not is_lossless(source, target) and not (
            same_instant and source.precision <= target.precision
        ):
            return None
        expression = expression.operand
    if isinstance(expression, Column) and expression.relation == WINDOW:
        return expression.name
    return None


def assigned(window: OpenWindow, value: Typed) -> Typed:
    """`value` over the rows of a window without an aggregate: its bounds come from the row."""
    size = Constant(str(window.size_ms), BIGINT)
    place = Column(PLACES, ELEMENT, window.time_type)
    start: Expression = place
    if window.kind is not WindowKind.HOP:
        offset = Constant(str(window.offset_ms), BIGINT)
        start = Call("WINDOW_START", (_row_time(window), size, offset), window.time_type)
    end: Expression = place
    if window.kind is not WindowKind.CUMULATE:
        end = Call("+", (start, size), window.time_type)
    last = Call("-", (end, Constant("1", BIGINT)), window.time_type)
    bounds = dict(zip(WINDOW_COLUMNS, (start, end, last), strict=True))
    return replace(value, expression=_with_bounds(value.expression, bounds), size=value.size + 8)


def places(script: Script, window: OpenWindow) -> Unnest | None:
    """The UNNEST that makes a row per window; None for TUMBLE, where each row has one window."""
    if window.slide_ms is None:
        return None
    if window.size_ms // window.slide_ms > _MOST_ROWS:
        raise script.error(
            window.at,
            f"each row would be up to {window.size_ms // window.slide_ms:,} rows, one for each of "
            f"its windows, more than {_MOST_ROWS}",
            hint="Aggregate them: add GROUP BY window_start, window_end.",
        )
    sizes = (window.size_ms, window.slide_ms, window.offset_ms)
    grows = Constant("true" if window.kind is WindowKind.CUMULATE else "false", BOOLEAN)
    arguments = (*(Constant(str(ms), BIGINT) for ms in sizes), grows)
    kind = array_type(window.time_type, nullable=False)
    value = Call("WINDOW_PLACES", (_row_time(window), *arguments), kind)
    return Unnest(PLACES, value, JoinType.INNER)


def _row_time(window: OpenWindow) -> Expression:
    return ProcTime(PROCTIME) if window.time is None else window.time


def _with_bounds(expression: Expression, bounds: Mapping[str, Expression]) -> Expression:
    if isinstance(expression, Column):
        return bounds[expression.name] if expression.relation == WINDOW else expression
    return with_parts(expression, lambda part: _with_bounds(part, bounds))


def lateness_ms(script: Script, window: OpenWindow, settings: Mapping[str, str]) -> int:
    lateness = duration_ms(settings.get(ALLOW_LATENESS, "0 ms")) or 0
    if lateness and window.time is None:
        raise script.error(
            window.at,
            f"{ALLOW_LATENESS} has no effect on a window of processing time, where nothing is late",
            hint=f"Write RESET '{ALLOW_LATENESS}', or name a rowtime in DESCRIPTOR.",
        )
    return lateness


def _time(script: Script, node: WindowNode, scope: NameScope) -> tuple[Column | None, SqlType]:
    relation, column = scope.resolve(node.time)
    if column.time is TimeAttribute.PROCESSING:
        return None, PROCTIME
    if column.time is not TimeAttribute.EVENT:
        raise script.error(
            node.time.at,
            f'"{column.name}" is {type_text(column.type)}, not the rowtime of the stream nor its '
            "PROCTIME() column",
            hint=f"Declare WATERMARK FOR {column.name} AS {column.name} - INTERVAL '5' SECOND in "
            "its CREATE TABLE; a VIEW keeps the time where it selects the bare column.",
        )
    time = scope.typed(relation, column, node.time.at).expression
    assert isinstance(time, Column), "a time attribute is a column of the first table"
    return time, SqlType(column.type.name, 3)


def _milliseconds(script: Script, name: str, node: Node) -> int:
    interval = interval_of(node)
    if interval is None:
        raise script.error(
            node.at,
            f"{name} is not an INTERVAL",
            hint="Write a constant, such as INTERVAL '10' MINUTE.",
        )
    if interval.kind is LiteralKind.INTERVAL_MONTHS:
        raise script.error(
            node.at,
            f"{name} is in months or years, which differ in length",
            hint="Give days, hours, minutes or seconds.",
        )
    if interval.size <= 0 and name != "OFFSET":
        raise script.error(node.at, f"{name} is not above zero", hint="Write INTERVAL '10' MINUTE.")
    if abs(interval.size) > _MAX_SIZE_MS:
        raise script.error(node.at, f"{name} is longer than 100 years", hint="Use a shorter one.")
    return interval.size
