"""Windows as keys of GROUP BY, `GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)`, and the calls beside them.

Source: Flink's documentation, "Group Window Aggregation".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from joins.plan.plan import WindowKind
from service.sql.grammar.expression_nodes import FunctionCall, Literal, Node, Reference
from service.sql.grammar.syntax import GroupBy, WindowNode
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
    """A window that is a key of GROUP BY.

    Attributes:
        call: the key itself.
        node: the same as a window function.
    """

    call: FunctionCall
    node: WindowNode


def group_window(script: Script, group_by: GroupBy) -> GroupWindow | None:
    """The window among the keys of GROUP BY, None if there is none.

    Raises:
        SqlError: there are two, or its arguments are no time and intervals.
    """
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
    """START, END, ROWTIME or PROCTIME, where a call such as TUMBLE_START asks for it.

    Its arguments are for the caller to compare.
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
