"""Temporal joins: time attribute, key pairs of ON, other conditions; UNNEST."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from joins.plan.plan import DimensionJoin, JoinType, KeyPair, Unnest
from joins.plan.types import (
    Call,
    Cast,
    Column,
    Expression,
    Member,
    ProcTime,
    SqlType,
    TypeName,
    columns_of,
    nodes,
    unqualified,
)
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.expression_text import expression_text
from service.sql.expressions.nested_access import refuse_nested
from service.sql.expressions.scope import (
    NameScope,
    ScopeColumn,
    ScopeRelation,
    TimeAttribute,
    Typed,
)
from service.sql.expressions.time_functions import interval_of
from service.sql.grammar.expression_nodes import (
    AggregateNode,
    CaseNode,
    CastNode,
    FunctionCall,
    Literal,
    LiteralKind,
    Node,
    Reference,
)
from service.sql.grammar.syntax import SnapshotNode, TemporalJoinClause, UnnestClause
from service.sql.grammar.type_parser import (
    APPROXIMATE,
    INSTANTS,
    INTEGERS,
    STRING,
    TEMPORAL,
    is_explicit,
    is_implicit,
    is_lossless,
    type_text,
)
from service.sql.text.script import Script, SqlError, suggestion


@dataclass(frozen=True, slots=True)
class UnnestPlanner:
    """Plans one UNNEST behind the relations of `scope`.

    `available` has the plan aliases whose columns exist before tables are joined.
    """

    script: Script
    scope: NameScope
    available: frozenset[str]

    def plan(self, node: UnnestClause, source: str) -> tuple[Unnest, ScopeRelation]:
        """The step of the plan and its relation; `source` is the alias in the plan."""
        value = ExpressionPlanner(self.scope).plan(node.value)
        self._check(node, value)
        members = _members(value.type)
        if node.columns is not None and len(node.columns) != len(members):
            raise self.script.error(
                node.alias.at,
                f'"{node.alias.text}" names {len(node.columns)} columns, an element has '
                f"{len(members)}",
                hint="Write as many names as an element has: one of a scalar, one for each field "
                "of a ROW, two of a MAP.",
            )
        outer = node.join_type is JoinType.LEFT
        is_scalar = len(value.type.members) == 1 and members == value.type.members
        columns = []
        for at, member in enumerate(members):
            name = (node.alias.text or f"EXPR${at}") if is_scalar else member.name
            if node.columns is not None:
                name = node.columns[at].text
            nullable = outer or member.nullable
            typed = Typed(Column(source, member.name, member.type), nullable, node.at)
            columns.append(ScopeColumn(name, member.type, nullable, value=typed))
        relation = ScopeRelation(node.alias.text, node.alias.text, tuple(columns), source)
        return Unnest(source, value.expression, node.join_type), relation

    def _check(self, node: UnnestClause, value: Typed) -> None:
        if value.is_bare_null or value.type.name not in (TypeName.ARRAY, TypeName.MAP):
            have = "NULL" if value.is_bare_null else type_text(value.type)
            raise self.script.error(
                value.at,
                f"UNNEST takes an ARRAY or a MAP, not {have}",
                hint="Declare the column as ARRAY<…>, ARRAY<ROW<…>> or MAP<STRING, …>.",
            )
        used = {column.relation for column in columns_of(value.expression)}
        if not used <= self.available:
            raise self.script.error(
                value.at,
                "UNNEST of a column that is not in the stream",
                hint="Unnest columns of the stream; an element of a dimension's array is read by "
                "elements[1].",
            )


def _members(unnested: SqlType) -> tuple[Member, ...]:
    if unnested.name is TypeName.MAP:
        return unnested.members
    element = unnested.members[0]
    if element.type.name is not TypeName.ROW:
        return (element,)
    return tuple(
        Member(each.name, each.type, each.nullable or element.nullable)
        for each in element.type.members
    )


_NULL_SAFE = "IS NOT DISTINCT FROM"
_KEY_OPERATORS = ("=", _NULL_SAFE)


@dataclass(frozen=True, slots=True)
class JoinPlanner:
    """Plans one join; the last relation of `scope` is the dimension."""

    scope: NameScope
    dimension: ScopeRelation
    dimension_name: str

    def plan(
        self, node: TemporalJoinClause, conditions: Sequence[Node], filters: Sequence[Typed]
    ) -> DimensionJoin:
        """The join's keys and further condition.

        `filters` are WHERE of a view: the dimension's rows must meet them to exist.
        """
        planner = ExpressionPlanner(self.scope)
        keys: list[KeyPair] = []
        rest: list[Typed] = []
        for part in conditions:
            key = self._key(planner, part)
            if key is not None:
                keys.append(key)
            else:
                rest.append(planner.condition(part, "an ON condition"))
        if not keys:
            keys, rest = self._other_keys(planner, conditions, rest)
        if not keys:
            raise self._no_key(node)
        rest += filters
        condition = planner.conjunction("AND", rest, node.at).expression if rest else None
        return DimensionJoin(
            alias=self.dimension.source,
            dimension=self.dimension_name,
            join_type=node.join_type,
            keys=tuple(keys),
            condition=condition,
        )

    def _no_key(self, node: TemporalJoinClause) -> SqlError:
        column = self.dimension.columns[0].name
        clause = "WHERE" if node.condition is None else "ON"
        return self.scope.script.error(
            node.at if node.condition is None else node.condition.at,
            f'{clause} has no equality between "{self.dimension.alias}" and the tables before it',
            hint=f"Add one such as {self.scope.relations[0].alias}.key = "
            f"{self.dimension.alias}.{column}: each side has columns of one table alone.",
        )

    def _other_keys(
        self, planner: ExpressionPlanner, conditions: Sequence[Node], rest: list[Typed]
    ) -> tuple[list[KeyPair], list[Typed]]:
        """Keys of a join without a bare equality, and the conditions that each match must meet.

        A constant is the key of every record. A CAST of an integer column is a condition, and the
        only value of the column that can meet it is the key. Any other expression over the
        dimension is computed for the index.
        """
        keys = [self._key(planner, part, constant=True) for part in conditions]
        if any(keys):
            pairs = zip(keys, rest, strict=True)
            return [k for k in keys if k is not None], [c for k, c in pairs if k is None]
        casts = [key for part in conditions if (key := self._uncast_key(planner, part))]
        if casts:
            return casts, rest
        keys = [self._computed_key(planner, part) for part in conditions]
        pairs = zip(keys, rest, strict=True)
        return [k for k in keys if k is not None], [c for k, c in pairs if k is None]

    def _computed_key(self, planner: ExpressionPlanner, node: Node) -> KeyPair | None:
        """The key of an equality of an expression over the dimension alone."""
        if not isinstance(node, FunctionCall) or node.name not in _KEY_OPERATORS:
            return None
        for sides in (node.arguments, node.arguments[::-1]):
            own, probe = (planner.plan(side) for side in sides)
            used = set(relations_of(probe.expression))
            is_own = set(relations_of(own.expression)) == {self.dimension.source}
            moves = any(isinstance(part, ProcTime) for part in nodes(own.expression))
            if not is_own or moves or not used or self.dimension.source in used:
                continue
            refuse_nested(self.scope.script, (own, probe), "a key of a join")
            own, probe = planner.common([own, probe], node.at, node.name)
            name = expression_text(unqualified(own.expression))
            while any(column.name == name for column in self.dimension.columns):
                name += "'"
            null_safe = node.name == _NULL_SAFE
            return KeyPair(probe.expression, name, null_safe, computed=own.expression)
        return None

    def _uncast_key(self, planner: ExpressionPlanner, node: Node) -> KeyPair | None:
        if not isinstance(node, FunctionCall) or node.name != "=":
            return None
        for own, other in (node.arguments, node.arguments[::-1]):
            cast, probe = planner.plan(own).expression, planner.plan(other)
            if not isinstance(cast, Cast) or not isinstance(cast.operand, Column):
                continue
            of_own = cast.operand.relation == self.dimension.source
            used = set(relations_of(probe.expression))
            if not of_own or cast.operand.type.name not in INTEGERS:
                continue
            if not used or self.dimension.source in used:
                continue
            column = ScopeColumn(cast.operand.name, cast.operand.type, nullable=True)
            if cast.type == STRING and probe.type == STRING:
                value = planner.cast(probe, column.type, safe=True)
                return KeyPair(value.expression, column.name)
            if is_lossless(column.type, cast.type) and _is_exact(probe.type):
                return self._pair(planner, probe, column, null_safe=False)
        return None

    def _key(
        self, planner: ExpressionPlanner, node: Node, *, constant: bool = False
    ) -> KeyPair | None:
        """The key of an equality with earlier relations, or with a `constant`."""
        if not isinstance(node, FunctionCall) or node.name not in _KEY_OPERATORS:
            return None
        for own, other in (node.arguments, node.arguments[::-1]):
            column = self._own_column(own)
            if column is None:
                continue
            probe = planner.plan(other)
            used = set(relations_of(probe.expression))
            if probe.is_bare_null or bool(used) == constant or self.dimension.source in used:
                continue
            return self._pair(planner, probe, column, null_safe=node.name == _NULL_SAFE)
        return None

    def _own_column(self, node: Node) -> ScopeColumn | None:
        if not isinstance(node, Reference):
            return None
        relation, column, fields = self.scope.located(node)
        return table_column(column) if relation is self.dimension and not fields else None

    def _pair(
        self, planner: ExpressionPlanner, probe: Typed, column: ScopeColumn, *, null_safe: bool
    ) -> KeyPair:
        source, target = probe.type, column.type
        refuse_nested(self.scope.script, (probe,), f'key "{self.dimension.alias}.{column.name}"')
        if is_lossless(source, target) or (
            target.name in APPROXIMATE and is_implicit(source, target)
        ):
            return KeyPair(planner.cast(probe, target).expression, column.name, null_safe)
        tried = self._tried(planner, probe, column).expression
        return KeyPair(tried, column.name, null_safe, probe.expression if null_safe else None)

    def _tried(self, planner: ExpressionPlanner, probe: Typed, column: ScopeColumn) -> Typed:
        """The probe's side in the dimension column's type; a value that cannot be equal is NULL."""
        source, target = probe.type, column.type
        if source == STRING and target.name in TEMPORAL:
            return planner.cast(probe, target, safe=True)
        if _is_exact(source) and _is_exact(target):
            narrowed = planner.cast(probe, target, safe=True)
            keeps_digits = target.scale >= source.scale
            return narrowed if keeps_digits else _if_unchanged(planner, probe, narrowed)
        if source.name is target.name or {source.name, target.name} == APPROXIMATE:
            return _if_unchanged(planner, probe, planner.cast(probe, target, safe=True))
        have, want = type_text(source), type_text(target)
        hint = f"Write CAST(… AS {want}) around the other side."
        if not is_explicit(source, target):
            hint = f"There is no cast from {have} to {want}; compare columns of one type."
        raise self.scope.script.error(
            probe.at,
            f'key "{self.dimension.alias}.{column.name}" is {want}, compared with {have}',
            hint=hint,
        )


def is_own_clock(scope: NameScope, dimension: ScopeRelation, node: TemporalJoinClause) -> bool:
    """True for PROCTIME(), or a PROCTIME() column of the dimension: both are the stream's clock."""
    if node.time is None:
        return True
    *qualifier, name = node.time.parts
    if [part.text for part in qualifier] not in ([], [dimension.alias]):
        return False
    if not qualifier and any(relation.column(name.text) for relation in scope.relations):
        return False
    column = dimension.column(name.text)
    return column is not None and column.time is TimeAttribute.PROCESSING


def system_time(scope: NameScope, node: TemporalJoinClause) -> Column | None:
    """The probe's rowtime column that a join names; None for processing time."""
    assert node.time is not None, "PROCTIME() itself is no column"
    relation, column = scope.resolve(node.time)
    probe = scope.relations[0]
    if relation is probe and column.time is TimeAttribute.PROCESSING:
        return None
    if relation is probe and column.time is TimeAttribute.EVENT:
        time = scope.typed(relation, column, node.time.at).expression
        assert isinstance(time, Column), "a time attribute is a column of the first table"
        return time
    name = column.name if column.type.name in INSTANTS and relation is probe else "ts"
    raise scope.script.error(
        node.time.at,
        f'"{column.name}" is {type_text(column.type)}, not the stream\'s PROCTIME() column nor its '
        "rowtime",
        hint=f"Declare in the stream WATERMARK FOR {name} AS {name} - INTERVAL '5' SECOND, or "
        f"proctime AS PROCTIME() for the newest rows, and write {probe.alias}.column.",
    )


SNAPSHOT_ARGUMENTS = {
    "on_time": "a change counts once it is committed, in the order of its source",
    "load_completed_condition": "the join begins when the source has proved its table complete",
    "load_completed_time": "the join begins when the source has proved its table complete",
    "load_completed_idle_timeout": "a source that is silent or slow does not begin the join, only "
    "the proof that its table is complete does",
    "state_ttl": "no row of a dimension is removed by its age",
}
"""Arguments of Flink's SNAPSHOT: what is there instead."""
_LOAD_CONDITIONS = {
    "compile_time": False,
    "on_compile_time": False,
    "user_time": True,
    "on_time": True,
}
"""Values of load_completed_condition: whether load_completed_time stands beside it."""


def snapshot_warnings(
    script: Script, dimension: ScopeRelation, node: SnapshotNode
) -> tuple[str, ...]:
    """One warning for each argument; what Flink refuses is refused."""
    if node.on_time is not None:
        _check_on_time(script, dimension, node)
    for name, value in node.arguments.items():
        if name in ("load_completed_idle_timeout", "state_ttl"):
            _check_interval(script, name, value)
        elif name == "load_completed_time":
            _check_load_time(script, value)
        else:
            _check_load_condition(script, node, value)
    names = (*(["on_time"] if node.on_time is not None else []), *node.arguments)
    return tuple(
        f'Argument {name} of SNAPSHOT over "{dimension.table}" has no effect: '
        f"{SNAPSHOT_ARGUMENTS[name]}."
        for name in names
    )


def _check_on_time(script: Script, dimension: ScopeRelation, node: SnapshotNode) -> None:
    assert node.on_time is not None, "the argument is there"
    name, known = node.on_time.text, [column.name for column in dimension.columns]
    column = dimension.column(name)
    if column is None:
        raise script.error(
            node.on_time.at,
            f'on_time of SNAPSHOT names "{name}", which is no column of "{dimension.table}"',
            hint=suggestion(name, known, "Columns are " + ", ".join(known[:30]) + "."),
        )
    if column.time is not TimeAttribute.EVENT:
        raise script.error(
            node.on_time.at,
            f'on_time of SNAPSHOT names "{name}", which is not the rowtime of "{dimension.table}"',
            hint=f"Declare WATERMARK FOR {name} in its CREATE TABLE, or leave on_time out.",
        )


def _check_interval(script: Script, name: str, value: Node) -> None:
    interval = interval_of(value)
    if interval is None or interval.kind is LiteralKind.INTERVAL_MONTHS or interval.size < 0:
        raise script.error(
            value.at,
            f"{name} of SNAPSHOT is not a constant INTERVAL of days, hours, minutes or seconds "
            "that is not negative",
            hint=f"Write {name} => INTERVAL '10' MINUTE, or leave it out.",
        )


def _check_load_time(script: Script, value: Node) -> None:
    hint = "Write load_completed_time => CAST(TIMESTAMP '2026-07-01 00:00:00' AS TIMESTAMP_LTZ(3))."
    fault = "load_completed_time of SNAPSHOT is not a constant TIMESTAMP_LTZ(3)"
    if next(_references(value), None) is not None:
        raise script.error(value.at, fault, hint=hint)
    typed = ExpressionPlanner(NameScope(script, ())).plan(value)
    is_moving = any(isinstance(part, ProcTime) for part in nodes(typed.expression))
    if typed.type.name not in INSTANTS or typed.is_bare_null or is_moving:
        raise script.error(value.at, fault, hint=hint)


def _check_load_condition(script: Script, node: SnapshotNode, value: Node) -> None:
    known = isinstance(value, Literal) and value.kind is LiteralKind.STRING
    needs_time = _LOAD_CONDITIONS.get(value.text) if isinstance(value, Literal) and known else None
    if needs_time is None:
        raise script.error(
            value.at,
            "load_completed_condition of SNAPSHOT is neither 'compile_time' nor 'user_time'",
            hint="Leave it out.",
        )
    if needs_time != ("load_completed_time" in node.arguments):
        raise script.error(
            value.at,
            "load_completed_condition 'user_time' of SNAPSHOT has no load_completed_time"
            if needs_time
            else "load_completed_condition 'compile_time' of SNAPSHOT has a load_completed_time",
            hint="Leave load_completed_condition out.",
        )


def is_key(scope: NameScope, node: Node) -> bool:
    """True if a condition compares a column of the last relation with earlier relations."""
    if not isinstance(node, FunctionCall) or node.name not in _KEY_OPERATORS:
        return False
    *before, dimension = scope.relations
    for own, other in (node.arguments, node.arguments[::-1]):
        if isinstance(own, Reference) and _owner(scope, own) is dimension:
            owners = [_owner(scope, reference) for reference in _references(other)]
            return bool(owners) and all(any(o is r for r in before) for o in owners)
    return False


def _owner(scope: NameScope, reference: Reference) -> ScopeRelation | None:
    first, *more = reference.parts
    owners = [r for r in scope.relations if more and r.alias == first.text]
    if not owners:
        owners = [r for r in scope.relations if r.bare(first.text) is not None]
    return owners[0] if len(owners) == 1 else None


def _references(node: Node) -> Iterator[Reference]:
    pending: list[Node | None] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, Reference):
            yield current
        elif isinstance(current, FunctionCall):
            pending.extend(current.arguments)
        elif isinstance(current, CastNode):
            pending.append(current.operand)
        elif isinstance(current, AggregateNode):
            pending += [*current.arguments, current.where]
        elif isinstance(current, CaseNode):
            pending += [current.operand, current.otherwise]
            pending.extend(part for branch in current.branches for part in branch)


def _if_unchanged(planner: ExpressionPlanner, probe: Typed, narrowed: Typed) -> Typed:
    same = planner.comparison("=", probe, planner.cast(narrowed, probe.type), probe.at)
    return planner.searched([same], [narrowed], probe.at)


def _is_exact(sql_type: SqlType) -> bool:
    return sql_type.name in INTEGERS or sql_type.name is TypeName.DECIMAL


def table_column(column: ScopeColumn) -> ScopeColumn | None:
    """The table's column behind `column`, through views; None for an expression."""
    if column.value is None:
        return column
    own = column.value.expression
    return replace(column, name=own.name, value=None) if isinstance(own, Column) else None


def conjuncts(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, FunctionCall) and current.name == "AND":
            pending.extend(reversed(current.arguments))
        else:
            yield current


def split(typed: Typed) -> list[Typed]:
    """The conditions that AND joins."""
    expression = typed.expression
    if not isinstance(expression, Call) or expression.function != "AND":
        return [typed]
    return [part for e in expression.arguments for part in split(replace(typed, expression=e))]


def relations_of(expression: Expression) -> Iterator[str]:
    return (column.relation for column in columns_of(expression))
