"""Columns that an expression can see, and typed expressions."""

from dataclasses import dataclass, replace
from enum import Enum, auto

from joins.plan.types import Column as PlanColumn
from joins.plan.types import Expression, SqlType
from service.sql.grammar.expression_nodes import Name, Reference
from service.sql.text.script import Script, suggestion

MAX_PLAN_NODES = 20_000
MAX_PLAN_DEPTH = 80


@dataclass(frozen=True, slots=True)
class Typed:
    """A planned expression; `size` counts the nodes of its tree, `depth` the levels.

    `is_bare_null`: the literal NULL, which takes any type.
    """

    expression: Expression
    nullable: bool
    at: int
    size: int = 1
    depth: int = 1
    is_bare_null: bool = False

    @property
    def type(self) -> SqlType:
        return self.expression.type


class TimeAttribute(Enum):
    """The time of a stream: a PROCTIME() column, or the column of WATERMARK FOR."""

    PROCESSING = auto()
    EVENT = auto()


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column that an expression can name.

    `time` is a time attribute of the first table; `value` is a view column's expression over
    tables.
    """

    name: str
    type: SqlType
    nullable: bool
    time: TimeAttribute | None = None
    value: Typed | None = None

    @property
    def written_out(self) -> Typed:
        assert self.value is not None, "columns of a query have values"
        return self.value


@dataclass(frozen=True, slots=True)
class ScopeRelation:
    """A relation under its alias, with its columns in the order of the DDL.

    `source` is the alias in the plan; it differs if a view has used the alias before. `merged`
    are the columns of USING, which a relation to the left shows.
    """

    alias: str
    table: str
    columns: tuple[ScopeColumn, ...]
    source: str
    merged: tuple[str, ...] = ()

    def column(self, name: str) -> ScopeColumn | None:
        """The column of this name; case matters, as in Flink."""
        return next((column for column in self.columns if column.name == name), None)

    def bare(self, name: str) -> ScopeColumn | None:
        """The column that this name means without an alias in front."""
        return None if name in self.merged else self.column(name)


@dataclass(frozen=True, slots=True)
class NameScope:
    """The relations of a query from left to right."""

    script: Script
    relations: tuple[ScopeRelation, ...]

    def typed(self, relation: ScopeRelation, column: ScopeColumn, at: int) -> Typed:
        if column.value is not None:
            return replace(column.value, nullable=column.nullable, at=at)
        expression = PlanColumn(relation.source, column.name, column.type)
        return Typed(expression, column.nullable, at, column.type.size)

    def resolve(self, reference: Reference) -> tuple[ScopeRelation, ScopeColumn]:
        relation, column, fields = self.located(reference)
        if fields:
            raise self.script.error(
                fields[0].at,
                f'"{fields[0].text}" is a field of column "{column.name}", expected a column',
                hint="Declare a computed column with the field in CREATE TABLE, and name it here.",
            )
        return relation, column

    def located(self, reference: Reference) -> tuple[ScopeRelation, ScopeColumn, tuple[Name, ...]]:
        """The column that a reference begins with, and the names of the fields behind it.

        An alias wins over a column of the same name.
        """
        first, *more = reference.parts
        if more and any(relation.alias == first.text for relation in self.relations):
            return (*self._column((first,), more[0]), tuple(more[1:]))
        if more and all(r.column(first.text) is None for r in self.relations):
            self.relation(first)  # which refuses a name that is neither
        return (*self._column((), first), tuple(more))

    def _column(self, qualifier: tuple[Name, ...], name: Name) -> tuple[ScopeRelation, ScopeColumn]:
        relations = (self.relation(qualifier[0]),) if qualifier else self.relations
        if qualifier:
            matches = [(r, c) for r in relations if (c := r.column(name.text)) is not None]
        else:
            matches = [(r, c) for r in relations if (c := r.bare(name.text)) is not None]
        if len(matches) > 1:
            owners = ", ".join(f"{relation.alias}.{name.text}" for relation, _ in matches)
            raise self.script.error(
                name.at, f'column "{name.text}" is ambiguous', hint=f"Write one of {owners}."
            )
        if not matches:
            known = [
                column.name
                for relation in relations
                for column in relation.columns
                if qualifier or column.name not in relation.merged
            ]
            where = f' in "{qualifier[0].text}"' if qualifier else ""
            otherwise = "Columns are " + ", ".join(known[:30]) + "."
            raise self.script.error(
                name.at,
                f'unknown column "{name.text}"{where}',
                hint=suggestion(name.text, known, otherwise),
            )
        return matches[0]

    def relation(self, name: Name) -> ScopeRelation:
        for relation in self.relations:
            if relation.alias == name.text:
                return relation
        for relation in self.relations:
            if relation.table == name.text:
                raise self.script.error(
                    name.at,
                    f'table "{name.text}" has the alias "{relation.alias}" here',
                    hint=f'Write "{relation.alias}" in front of its columns.',
                )
        known = [relation.alias for relation in self.relations]
        otherwise = "Tables here are " + ", ".join(known) + "." if known else "No table is here."
        raise self.script.error(
            name.at,
            f'unknown table or alias "{name.text}"',
            hint=suggestion(name.text, known, otherwise),
        )
