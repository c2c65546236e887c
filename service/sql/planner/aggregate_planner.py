"""GROUP BY over a window: keys, grouping sets, aggregates, and expressions of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from joins.plan.plan import (
    WINDOW,
    Aggregate,
    AggregateKind,
    JoinType,
    OutputColumn,
    Unnest,
    WindowKind,
)
from joins.plan.types import (
    Call,
    Case,
    Column,
    Constant,
    Expression,
    ProcTime,
    SqlType,
    TypeName,
    array_type,
)
from service.sql.expressions.arguments import check_count
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.nested_access import refuse_nested
from service.sql.expressions.scope import MAX_PLAN_NODES, NameScope, Typed
from service.sql.grammar.expression_nodes import (
    AggregateNode,
    FunctionCall,
    Literal,
    Node,
    Reference,
)
from service.sql.grammar.syntax import GroupBy
from service.sql.grammar.type_parser import (
    BIGINT,
    BOOLEAN,
    INT,
    NUMERIC,
    PROCTIME,
    STRING,
    TEMPORAL,
    type_text,
)
from service.sql.grammar.window_parser import GROUP_FORM
from service.sql.planner.join_planner import relations_of
from service.sql.planner.update_sinks import refuse_unkept
from service.sql.planner.window_planner import (
    GroupWindow,
    OpenWindow,
    part_of,
    same_intervals,
    window_column,
    window_value,
)
from service.sql.text.script import OUTSIDE, Script, SqlError

SETS = "$sets"
"""The relation of the number of a set: a row for each set."""
NUMBER = Column(SETS, "element", INT)
FUNCTIONS = ("GROUPING", "GROUPING_ID", "GROUP_ID")


def numbers_of_sets(count: int) -> Unnest:
    value = Call("ARRAY", tuple(map(_number, range(count))), array_type(INT, nullable=False))
    return Unnest(SETS, value, JoinType.INNER)


def keyed(
    keys: Sequence[OutputColumn], sets: Sequence[Collection[str]]
) -> tuple[OutputColumn, ...]:
    """The keys over the rows of all sets, and the number of the set as a further key."""
    columns = []
    for key in keys:
        having = [at for at, names in enumerate(sets) if key.name in names]
        if len(having) == len(sets):
            columns.append(key)
            continue
        value = Case(((_is_one_of(NUMBER, having), key.expression),), None, key.expression.type)
        columns.append(OutputColumn(key.name, value))
    return (*columns, OutputColumn(f"k{len(keys)}", NUMBER, nullable=False))


def bits(number: Column, names: Sequence[str], sets: Sequence[Collection[str]]) -> Expression:
    """GROUPING and GROUPING_ID: a bit for each key, 1 where its set has not the key."""
    values = [sum((name not in each) << at for at, name in enumerate(names[::-1])) for each in sets]
    return _by_set(number, values)


def repetitions(number: Column, sets: Sequence[Collection[str]]) -> Expression:
    return _by_set(number, [list(sets[:at]).count(each) for at, each in enumerate(sets)])


def _by_set(number: Column, values: Sequence[int]) -> Expression:
    branches = tuple(
        (
            _is_one_of(number, [at for at, each in enumerate(values) if each == value]),
            Constant(str(value), BIGINT),
        )
        for value in dict.fromkeys(values)
    )
    if len(branches) < 2:
        return Constant(str(values[0]) if values else "0", BIGINT)
    return Case(branches[:-1], branches[-1][1], BIGINT)


def _is_one_of(number: Column, places: Sequence[int]) -> Expression:
    return Call("IN", (number, *map(_number, places)), BOOLEAN)


def _number(value: int) -> Constant:
    return Constant(str(value), INT)


_ORDERED = NUMERIC | TEMPORAL | {TypeName.STRING}
_SCALARS = _ORDERED | {TypeName.BOOLEAN}
_TAKES = {
    AggregateKind.SUM: (NUMERIC, "a number"),
    AggregateKind.AVG: (NUMERIC, "a number"),
    AggregateKind.MIN: (_ORDERED, "a number, a text or a time"),
    AggregateKind.MAX: (_ORDERED, "a number, a text or a time"),
    AggregateKind.LISTAGG: (frozenset((TypeName.STRING,)), "STRING"),
    AggregateKind.FIRST_VALUE: (_SCALARS, "a number, a text, a time or BOOLEAN"),
    AggregateKind.LAST_VALUE: (_SCALARS, "a number, a text, a time or BOOLEAN"),
}


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One expression of GROUP BY: `value` over the rows, `result` over the windows.

    A key that is a window column has its `value` over the window.
    """

    node: Node
    value: Typed
    result: Typed


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys of GROUP BY; `sets` are the names of the keys of each grouping set, or empty."""

    keys: tuple[GroupKey, ...]
    sets: tuple[frozenset[str], ...] = ()

    @property
    def number(self) -> Column:
        return Column(WINDOW, f"k{len(_of_rows(self.keys))}", INT)

    def output_keys(self) -> tuple[OutputColumn, ...]:
        columns = output_keys(self.keys)
        return keyed(columns, self.sets) if self.sets else columns


class KeyPlanner(ExpressionPlanner):
    """Expressions of GROUP BY."""

    def aggregate(self, node: AggregateNode) -> Typed:
        raise self._script.error(
            node.at,
            f"{node.name} is inside another aggregate or in GROUP BY",
            hint="Aggregate the columns of the stream; aggregate results in another job.",
        )


class RowPlanner(KeyPlanner):
    """Expressions over the rows that are aggregated."""

    def plan(self, node: Node) -> Typed:
        typed = super().plan(node)
        if isinstance(node, Reference) and is_of_window(typed.expression):
            raise self._script.error(
                node.at,
                f'"{node.parts[-1].text}" is a bound of the window, not a column of its rows',
                hint="Use the bounds of the window outside of aggregates, in GROUP BY alone.",
            )
        return typed


class GroupedPlanner(ExpressionPlanner):
    """Expressions over the windows: keys of GROUP BY, aggregates, and expressions of both."""

    def __init__(
        self,
        scope: NameScope,
        grouping: Grouping,
        window: OpenWindow,
        key: GroupWindow | None,
    ) -> None:
        super().__init__(scope)
        self._rows = RowPlanner(scope)
        self._keys, self._grouping = grouping.keys, grouping
        self._window, self._window_key = window, key
        self._known: dict[Aggregate, Typed] = {}
        self._size = 0

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return tuple(
            replace(aggregate, name=f"a{place}") for place, aggregate in enumerate(self._known)
        )

    def plan(self, node: Node) -> Typed:
        key = self._key(node)
        if key is not None:
            return replace(key.result, at=node.at)
        part = part_of(node, self._window_key)
        if part is not None and isinstance(node, FunctionCall):
            return replace(self._of_window(node, part), at=node.at)
        if isinstance(node, FunctionCall) and node.name in FUNCTIONS:
            return Typed(self._of_set(node), nullable=False, at=node.at)
        if not isinstance(node, Reference):
            return super().plan(node)
        typed = super().plan(node)
        if set(relations_of(typed.expression)) <= {WINDOW}:
            return typed
        name = ".".join(part.text for part in node.parts)
        raise self._script.error(
            node.at,
            f'column "{name}" is neither in GROUP BY nor in an aggregate',
            hint=f"Leave {name} out: it is computed of a row and of the bounds of its window."
            if is_of_window(typed.expression)
            else f"Add it to GROUP BY, or take MAX({name}) or COUNT({name}).",
        )

    def _of_set(self, node: FunctionCall) -> Expression:
        number, sets = self._grouping.number, self._grouping.sets
        if node.name == "GROUP_ID":
            check_count(self._script, node, 0, 0)
            return repetitions(number, sets)
        check_count(self._script, node, 1, 62)
        names = []
        for argument in node.arguments:
            key = self._key(argument)
            if key is None:
                raise self._script.error(
                    argument.at,
                    f"{node.name} has an argument that is not in GROUP BY",
                    hint=f"Write {node.name} with an expression of GROUP BY.",
                )
            name = key.result.expression.name if isinstance(key.result.expression, Column) else ""
            names.append(name)
        # A bound of the window is in every set.
        always = {name for name in names if not name.startswith("k")}
        return bits(number, names, [each | always for each in sets])

    def _of_window(self, node: FunctionCall, part: str) -> Typed:
        assert self._window_key is not None, "there is a window with such a part"
        call = self._window_key.call
        own, other = node.arguments[:1], call.arguments[:1]
        if not same_intervals(node.arguments[1:], call.arguments[1:]) or (
            [self._rows.plan(time).expression for time in own]
            != [self._rows.plan(time).expression for time in other]
        ):
            raise self._script.error(
                node.at,
                f"{node.name} has other arguments than {call.name} in GROUP BY",
                hint=f"Give it the arguments of {call.name}.",
            )
        if part == "PROCTIME":
            return Typed(ProcTime(PROCTIME), nullable=False, at=node.at)
        name = "window_time" if part == "ROWTIME" else f"window_{part.lower()}"
        return window_value(self._script, self._window, name)

    def aggregate(self, node: AggregateNode) -> Typed:
        made, argument = self._made_aggregate(node)
        if made not in self._known:
            name = f"a{len(self._known)}"
            is_count = made.type == BIGINT and made.function in _COUNTS
            overflows = made.type.name is TypeName.DECIMAL
            nullable = not is_count and (
                argument is None or argument.nullable or made.where is not None or overflows
            )
            self._known[made] = Typed(Column(WINDOW, name, made.type), nullable, node.at)
            self._size += 1 if argument is None else argument.size
            self._check_size(node)
        return replace(self._known[made], at=node.at)

    def _check_size(self, node: AggregateNode) -> None:
        if self._size > 5 * MAX_PLAN_NODES or len(self._known) > 1_000:
            raise self._script.error(
                node.at,
                "the aggregates are too large once they are written out",
                hint="Move repeated parts into computed columns of the stream.",
            )

    def _key(self, node: Node) -> GroupKey | None:
        alike = [key for key in self._keys if _is_alike(node, key.node)]
        if not alike:
            return None
        try:
            expression = KeyPlanner(self._scope).plan(node).expression
        except SqlError:
            return None
        return next((key for key in alike if key.value.expression == expression), None)

    def _made_aggregate(self, node: AggregateNode) -> tuple[Aggregate, Typed | None]:
        where = None
        if node.where is not None:
            where = self._rows.condition(node.where, "the condition of FILTER").expression
        if not node.arguments:
            if node.name != "COUNT":
                raise self._script.error(
                    node.at, f"{node.name}(*) has no effect", hint=f"Write {node.name}(column)."
                )
            return Aggregate("", AggregateKind.COUNT_ALL, None, BIGINT, where=where), None
        function = AggregateKind(node.name)
        separator = self._separator(node, function)
        argument = self._rows.plan(node.arguments[0])
        is_row = isinstance(argument.expression, Constant) and not argument.is_bare_null
        if function is AggregateKind.COUNT and is_row and not node.distinct:
            return Aggregate("", AggregateKind.COUNT_ALL, None, BIGINT, where=where), None
        result = self._result(node, function, argument)
        made = Aggregate(
            name="",
            function=function,
            argument=argument.expression,
            type=result,
            distinct=node.distinct and function not in _EXTREMES,
            where=where,
            separator=separator,
        )
        return made, argument

    def _separator(self, node: AggregateNode, function: AggregateKind) -> str:
        most = 2 if function is AggregateKind.LISTAGG else 1
        if len(node.arguments) > most:
            raise self._script.error(
                node.at,
                f"{node.name} takes {most} argument{'s' * (most > 1)}, not {len(node.arguments)}",
                hint="Count the columns one by one." if most == 1 else "Write LISTAGG(x, ', ').",
            )
        if function is AggregateKind.LISTAGG and node.distinct:
            raise self._script.error(
                node.at, "LISTAGG(DISTINCT …) is not supported", hint="Write LISTAGG(x, ', ')."
            )
        if len(node.arguments) < 2:
            return ","
        separator = self._rows.plan(node.arguments[1])
        value = separator.expression
        if isinstance(value, Constant) and value.type == STRING and value.value is not None:
            return value.value
        raise self._script.error(
            separator.at, "the separator of LISTAGG must be a text literal", hint="Write ', '."
        )

    def _result(self, node: AggregateNode, function: AggregateKind, argument: Typed) -> SqlType:
        if function is AggregateKind.COUNT:
            refuse_nested(self._script, (argument,), node.name)
            refuse_unkept(self._script, argument, node.name)
            return BIGINT
        accepted, expected = _TAKES[function]
        if argument.is_bare_null or argument.type.name not in accepted:
            have = "NULL" if argument.is_bare_null else type_text(argument.type)
            raise self._script.error(
                argument.at, f"{node.name} takes {expected}, not {have}", hint="Cast the argument."
            )
        refuse_unkept(self._script, argument, node.name)
        return _result_type(function, argument.type)


_COUNTS = (AggregateKind.COUNT, AggregateKind.COUNT_ALL)
_EXTREMES = (AggregateKind.MIN, AggregateKind.MAX)
_OF_THE_ROWS = (*_EXTREMES, AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE)


def _result_type(function: AggregateKind, argument: SqlType) -> SqlType:
    """Source: Flink's LogicalTypeMerging, findSumAggType and findAvgAggType."""
    if argument.name is not TypeName.DECIMAL or function in _OF_THE_ROWS:
        return argument
    if function is AggregateKind.SUM:
        return SqlType(TypeName.DECIMAL, 38, argument.scale)
    return SqlType(TypeName.DECIMAL, 38, max(6, argument.scale))


def group_keys(
    script: Script,
    scope: NameScope,
    window: OpenWindow,
    group_by: GroupBy,
    window_key: GroupWindow | None,
) -> Grouping:
    planner = KeyPlanner(scope)
    keys: list[GroupKey] = []
    named: dict[Node, frozenset[str]] = {}
    for node in group_by.keys:
        if window_key is not None and node is window_key.call:
            named[node] = frozenset(("window_start", "window_end"))
            continue
        value = _key_value(script, scope, planner, node)
        bound = window_column(value.expression)
        if bound is not None:
            named[node] = frozenset((bound,))
            keys.append(GroupKey(node, value, value))
            continue
        if is_of_window(value.expression):
            named[node] = frozenset()  # where both bounds are keys, it divides no group
            continue
        known = [key for key in _of_rows(keys) if key.value.expression == value.expression]
        name = f"k{len(_of_rows(keys))}"
        if group_by.sets and known and isinstance(known[0].result.expression, Column):
            name = known[0].result.expression.name
        else:
            column = Column(WINDOW, name, value.type)
            keys.append(GroupKey(node, value, Typed(column, value.nullable, node.at)))
        named[node] = frozenset((name,))
    sets = [frozenset[str]().union(*map(named.__getitem__, each)) for each in group_by.sets]
    every = frozenset[str]().union(*named.values())
    of_bounds = [node for node, names in named.items() if not names]
    if of_bounds and (sets or not {"window_start", "window_end"} <= every):
        raise _of_a_bound(script, of_bounds[0])
    for each in sets or [every]:
        for name in ("window_start", "window_end"):
            if name not in each:
                what = "a grouping set of GROUP BY" if sets else "GROUP BY"
                raise script.error(group_by.at, f"{what} has no {name}", hint=GROUP_FORM)
    grouping = Grouping(tuple(_nullable(key, sets) for key in keys), tuple(sets))
    _check_partition(script, window, output_keys(grouping.keys))
    if sets and window.kind is WindowKind.SESSION:
        raise script.error(
            group_by.at,
            "GROUPING SETS of SESSION, whose windows are of all keys",
            hint=f"{OUTSIDE} Write GROUP BY with the keys of one set, a job for each.",
        )
    return grouping


def _of_rows(keys: Sequence[GroupKey]) -> list[GroupKey]:
    return [key for key in keys if window_column(key.value.expression) is None]


def _nullable(key: GroupKey, sets: Sequence[frozenset[str]]) -> GroupKey:
    """The key, NULL where a set has not got it."""
    result = key.result.expression
    if not isinstance(result, Column) or window_column(key.value.expression) is not None:
        return key
    if all(result.name in each for each in sets):
        return key
    return replace(key, result=replace(key.result, nullable=True))


def output_keys(keys: Sequence[GroupKey]) -> tuple[OutputColumn, ...]:
    return tuple(
        OutputColumn(key.result.expression.name, key.value.expression, key.value.nullable)
        for key in keys
        if window_column(key.value.expression) is None and isinstance(key.result.expression, Column)
    )


def _key_value(script: Script, scope: NameScope, planner: ExpressionPlanner, node: Node) -> Typed:
    if isinstance(node, Literal):
        raise script.error(
            node.at,
            "GROUP BY takes columns and expressions, not positions or constants",
            hint="Write the expression from the select list.",
        )
    value = planner.plan(node)
    if set(relations_of(value.expression)) == {WINDOW}:
        return value
    if is_of_window(value.expression):
        raise _of_a_bound(script, node)
    value = RowPlanner(scope).plan(node)
    refuse_nested(script, (value,), "GROUP BY")
    refuse_unkept(script, value, "GROUP BY")
    return value


def _of_a_bound(script: Script, node: Node) -> SqlError:
    return script.error(
        node.at,
        "GROUP BY has an expression over the bounds of the window",
        hint="Put window_start and window_end into GROUP BY, and the expression into SELECT.",
    )


def _check_partition(script: Script, window: OpenWindow, keys: Sequence[OutputColumn]) -> None:
    if window.kind is not WindowKind.SESSION or window.partition is None:
        return
    if {typed.expression for typed in window.partition} != {key.expression for key in keys}:
        raise script.error(
            window.at,
            "PARTITION BY of SESSION and GROUP BY have different keys",
            hint="List in PARTITION BY the keys of GROUP BY without the window bounds.",
        )


def is_of_window(expression: Expression) -> bool:
    return WINDOW in relations_of(expression)


def _is_alike(node: Node, key: Node) -> bool:
    if type(node) is not type(key) or node.depth != key.depth:
        return False
    return not isinstance(node, FunctionCall) or (
        isinstance(key, FunctionCall) and node.name == key.name
    )
