"""UNNEST: an array or map whose elements become rows, as a relation of the query."""

from dataclasses import dataclass

from joins.plan.plan import JoinType, Unnest
from joins.plan.types import Column, Member, SqlType, TypeName, columns_of
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import NameScope, ScopeColumn, ScopeRelation, Typed
from service.sql.grammar.syntax import UnnestClause
from service.sql.grammar.type_rules import type_text
from service.sql.text.script import Script


@dataclass(frozen=True, slots=True)
class UnnestPlanner:
    """Plans one UNNEST behind the relations of `scope`.

    Attributes:
        available: aliases in the plan whose columns are there before tables are joined.
    """

    script: Script
    scope: NameScope
    available: frozenset[str]

    def plan(self, node: UnnestClause, source: str) -> tuple[Unnest, ScopeRelation]:
        """The step of the plan under its alias there, `source`, and the relation.

        Raises:
            SqlError: the value is no array or map of the stream, or its names do not fit.
        """
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
            name = f"EXPR${at}" if is_scalar else member.name
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
                "UNNEST of a column that the stream does not have",
                hint="Unnest columns of the stream; an element of a dimension's array is read by "
                "elements[1].",
            )


def _members(unnested: SqlType) -> tuple[Member, ...]:
    """What an element has, as the plan names it."""
    if unnested.name is TypeName.MAP:
        return unnested.members
    element = unnested.members[0]
    if element.type.name is not TypeName.ROW:
        return (element,)
    return tuple(
        Member(each.name, each.type, each.nullable or element.nullable)
        for each in element.type.members
    )
