"""Queries: SELECT … FROM probe [LEFT] JOIN dimension FOR SYSTEM_TIME AS OF … ON … WHERE …."""

from joins.plan.plan import JoinType
from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import Literal, LiteralKind, Name, Node, Reference
from service.sql.grammar.expression_parser import ExpressionParser
from service.sql.grammar.refused_forms import refuse_bare_window
from service.sql.grammar.syntax import (
    GroupBy,
    OptionNode,
    Relation,
    Select,
    SelectItem,
    Star,
    TemporalJoinClause,
    WindowNode,
)
from service.sql.grammar.window_parser import GROUP_FORM, read_window

MAX_COLUMNS = 1_000
MAX_LIMIT = 10_000
_AFTER_SELECT: dict[str, str] = {
    "HAVING": "HAVING stands behind GROUP BY; without it write WHERE.",
    "WINDOW": "Write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)).",
    "ORDER": "Records keep their order within a partition; sort downstream.",
    "OFFSET": "A job runs until it is stopped; use scan.startup.mode to start later.",
    "FETCH": "A job runs until it is stopped; use WHERE to keep fewer rows.",
    "UNION": "Submit one job for each query, with the same sink.",
    "INTERSECT": "Submit one job for each query.",
    "EXCEPT": "Submit one job for each query.",
    "MINUS": "Submit one job for each query.",
    "QUALIFY": "Use HAVING behind GROUP BY.",
}
_JOIN_FORM = (
    "Write [LEFT] JOIN dimension FOR SYSTEM_TIME AS OF probe.proctime AS d ON probe.k = d.k."
)

_JOINS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
_LATERAL_FORM = "Write JOIN LATERAL TABLE(dimension(probe.proctime)) AS d ON probe.k = d.k."


def refuse_qualified(cursor: TokenCursor, name: Name) -> None:
    """Refuse `database.table`, of which `name` is the first part."""
    if cursor.at_symbol("."):
        raise cursor.script.error(
            name.at,
            "a table name has no qualifier here",
            hint="Write the table's name alone: a script has one catalog and one database.",
        )


def limit_columns(cursor: TokenCursor, count: int, at: int) -> None:
    """Refuse a table or select list that is too wide."""
    if count > MAX_COLUMNS:
        raise cursor.script.error(
            at, f"more than {MAX_COLUMNS:,} columns", hint="Select fewer columns."
        )


class QueryParser:
    """Reads a query from a cursor."""

    def __init__(self, cursor: TokenCursor, expressions: ExpressionParser) -> None:
        self._cursor = cursor
        self._expressions = expressions

    def select(self) -> Select:
        """Read SELECT up to the end of the statement.

        Raises:
            SqlError: it is not the supported form of a query.
        """
        cursor = self._cursor
        at = cursor.at
        cursor.expect_words("SELECT", hint="Write INSERT INTO table SELECT ….")
        if cursor.at_words("DISTINCT") or cursor.at_words("TRANSFORM"):
            raise cursor.script.error(
                cursor.at,
                f"SELECT {cursor.token.text.upper()} is not supported",
                hint="Select the columns; a temporal join emits one row per match.",
            )
        cursor.accept_words("ALL")
        items = self._items()
        cursor.expect_words("FROM", hint="Write SELECT … FROM probe JOIN dimension ….")
        window = None
        if cursor.at_words("TABLE"):
            probe, window = self._window()
        else:
            probe = self._probe()
        joins = self._joins()
        where = self._expressions.parse() if cursor.accept_words("WHERE") else None
        group_by = self._group_by() if cursor.at_words("GROUP") else None
        limit_at = cursor.at
        limit = self._limit()
        self._end_of_select()
        return Select(
            items=items,
            probe=probe,
            joins=joins,
            where=where,
            at=at,
            limit=limit,
            limit_at=limit_at,
            window=window,
            group_by=group_by,
        )

    def _items(self) -> tuple[SelectItem | Star, ...]:
        cursor = self._cursor
        items = [self._item()]
        while cursor.accept_symbol(","):
            limit_columns(cursor, len(items) + 1, cursor.at)
            items.append(self._item())
        return tuple(items)

    def _limit(self) -> int | None:
        if not self._cursor.accept_words("LIMIT"):
            return None
        return self._cursor.whole_number("a number of rows", 1, MAX_LIMIT)

    def _item(self) -> SelectItem | Star:
        cursor = self._cursor
        at = cursor.at
        if cursor.accept_symbol("*"):
            return Star(None, at)
        follows = (cursor.ahead(1), cursor.ahead(2))
        if cursor.at_name() and [token.text for token in follows] == [".", "*"]:
            name = cursor.name("an alias")
            cursor.advance()
            cursor.advance()
            return Star(name, at)
        expression = self._expressions.parse()
        if cursor.accept_words("AS"):
            return SelectItem(expression, cursor.name("a column alias"))
        alias = cursor.name("a column alias") if cursor.at_name() else None
        return SelectItem(expression, alias)

    def _probe(self) -> Relation:
        cursor = self._cursor
        if cursor.at_symbol("(") or cursor.at_words("LATERAL"):
            raise cursor.script.error(
                cursor.at,
                "only a table can stand here",
                hint="Write FROM probe; make a subquery a VIEW.",
            )
        refuse_bare_window(cursor)
        table = cursor.name("a table name")
        refuse_qualified(cursor, table)
        options = cursor.hint()
        if cursor.at_words("FOR"):
            raise cursor.script.error(
                cursor.at,
                "the first table is the probe and has no FOR SYSTEM_TIME",
                hint=_JOIN_FORM,
            )
        return self._relation(table, options)

    def _window(self) -> tuple[Relation, WindowNode]:
        """`TABLE(TUMBLE(TABLE t, …)) [AS alias]`."""
        table, options, window = read_window(self._cursor, self._expressions.parse)
        relation = self._relation(table, options)
        cursor = self._cursor
        if cursor.at_symbol(",") or any(cursor.at_words(word) for word in _JOINS):
            raise self._cursor.script.error(
                window.at,
                f"a join behind {window.kind}",
                hint="Join first: CREATE VIEW joined AS SELECT … FROM probe JOIN …; then write "
                f"FROM TABLE({window.kind}(TABLE joined, …)).",
            )
        return relation, window

    def _group_by(self) -> GroupBy:
        cursor = self._cursor
        at = cursor.at
        cursor.expect_words("GROUP", "BY", hint=GROUP_FORM)
        keys = [self._group_key()]
        while cursor.accept_symbol(","):
            limit_columns(cursor, len(keys) + 1, cursor.at)
            keys.append(self._group_key())
        having = self._expressions.parse() if cursor.accept_words("HAVING") else None
        return GroupBy(tuple(keys), having, at)

    def _group_key(self) -> Node:
        cursor = self._cursor
        for words in (("GROUPING", "SETS"), ("ROLLUP",), ("CUBE",)):
            if cursor.at_words(*words) and cursor.ahead(len(words)).text == "(":
                raise cursor.script.error(
                    cursor.at, f"{' '.join(words)} is not supported", hint=GROUP_FORM
                )
        return self._expressions.parse()

    def _relation(self, table: Name, options: tuple[OptionNode, ...]) -> Relation:
        """The relation with its alias; the hint may stand on either side of it."""
        alias = self._alias(table)
        return Relation(table, alias, options or self._cursor.hint())

    def _alias(self, table: Name) -> Name:
        cursor = self._cursor
        if cursor.accept_words("AS") or (
            cursor.at_name()
            and not any(cursor.at_words(word) for word in (*_AFTER_SELECT, "LIMIT"))
        ):
            alias = cursor.name("an alias")
        else:
            return table
        if cursor.at_symbol("("):
            raise cursor.script.error(
                cursor.at,
                "an alias has no column list here",
                hint="Rename the columns in the select list.",
            )
        return alias

    def _joins(self) -> tuple[TemporalJoinClause, ...]:
        cursor = self._cursor
        joins: list[TemporalJoinClause] = []
        while True:
            at = cursor.at
            self._refuse_other_joins()
            if cursor.accept_words("LEFT"):
                cursor.accept_words("OUTER")
                cursor.expect_words("JOIN", hint=_JOIN_FORM)
                joins.append(self._join(JoinType.LEFT, at))
            elif cursor.accept_words("INNER", "JOIN") or cursor.accept_words("JOIN"):
                joins.append(self._join(JoinType.INNER, at))
            elif cursor.at_symbol(","):
                joins.append(self._comma(at))
            else:
                return tuple(joins)

    def _refuse_other_joins(self) -> None:
        cursor = self._cursor
        for word in ("RIGHT", "FULL", "CROSS", "NATURAL"):
            if cursor.at_words(word):
                raise cursor.script.error(
                    cursor.at, f"{word} JOIN is not supported", hint=_JOIN_FORM
                )
        if cursor.at_words("TABLESAMPLE") or cursor.at_words("MATCH_RECOGNIZE"):
            word = cursor.token.text.upper()
            raise cursor.script.error(cursor.at, f"{word} is not supported", hint=_JOIN_FORM)

    def _comma(self, at: int) -> TemporalJoinClause:
        """`, LATERAL TABLE(dimension(time))`: its condition is in WHERE."""
        cursor = self._cursor
        cursor.advance()
        if not cursor.at_words("LATERAL"):
            raise cursor.script.error(
                at,
                "a join by comma is not supported, but for LATERAL TABLE(…)",
                hint=_JOIN_FORM,
            )
        relation, time = self._lateral()
        return TemporalJoinClause(relation, JoinType.INNER, time, None, at)

    def _join(self, join_type: JoinType, at: int) -> TemporalJoinClause:
        cursor = self._cursor
        if cursor.at_words("LATERAL"):
            relation, time = self._lateral()
            condition = self._condition()
            if join_type is JoinType.INNER and _is_true(condition):
                return TemporalJoinClause(relation, join_type, time, None, at)
            return TemporalJoinClause(relation, join_type, time, condition, at)
        if cursor.at_symbol("(") or cursor.at_words("TABLE"):
            raise cursor.script.error(cursor.at, "only a table can be joined with", hint=_JOIN_FORM)
        table = cursor.name("a table name")
        refuse_qualified(cursor, table)
        options = cursor.hint()
        time = self._system_time(table)
        relation = self._relation(table, options)
        return TemporalJoinClause(relation, join_type, time, self._condition(), at)

    def _condition(self) -> Node:
        cursor = self._cursor
        if cursor.at_words("USING"):
            raise cursor.script.error(cursor.at, "USING is not supported", hint=_JOIN_FORM)
        cursor.expect_words("ON", hint=_JOIN_FORM)
        return self._expressions.parse()

    def _lateral(self) -> tuple[Relation, Reference]:
        """LATERAL TABLE(dimension(time)) [AS alias]: a temporal table function."""
        cursor = self._cursor
        cursor.expect_words("LATERAL", "TABLE", hint=_LATERAL_FORM)
        cursor.expect_symbol("(", hint=_LATERAL_FORM)
        table = cursor.name("a table name", hint=_LATERAL_FORM)
        refuse_qualified(cursor, table)
        options = cursor.hint()
        cursor.expect_symbol("(", hint=_LATERAL_FORM)
        time = self._time(f"{table.text}(…)")
        cursor.expect_symbol(")", hint=_LATERAL_FORM)
        cursor.expect_symbol(")", hint=_LATERAL_FORM)
        return self._relation(table, options), time

    def _system_time(self, table: Name) -> Reference:
        cursor = self._cursor
        words = ("FOR", "SYSTEM_TIME", "AS", "OF")
        if not cursor.accept_words(*words):
            if cursor.at_words("FOR"):
                raise cursor.unexpected("FOR SYSTEM_TIME AS OF", hint=_JOIN_FORM)
            self._refuse_clause_behind_alias()
            raise cursor.script.error(
                table.at,
                f'table "{table.text}" is joined without FOR SYSTEM_TIME AS OF',
                hint=_JOIN_FORM,
            )
        return self._time("FOR SYSTEM_TIME AS OF")

    def _refuse_clause_behind_alias(self) -> None:
        """`JOIN d AS x FOR SYSTEM_TIME …`: the clause is there, in the wrong place."""
        cursor = self._cursor
        alias = 1 if cursor.at_words("AS") else 0
        if cursor.ahead(alias + 1).text.upper() == "FOR":
            raise cursor.script.error(
                cursor.ahead(alias + 1).start,
                f'FOR SYSTEM_TIME AS OF stands behind the alias "{cursor.ahead(alias).text}"',
                hint="Write the alias last: " + _JOIN_FORM.removeprefix("Write "),
            )

    def _time(self, what: str) -> Reference:
        at = self._cursor.at
        time = self._expressions.parse(level=5)
        if not isinstance(time, Reference):
            raise self._cursor.script.error(
                at,
                f"{what} takes a column of the probe",
                hint="Declare proctime AS PROCTIME() in the probe and write probe.proctime.",
            )
        return time

    def _end_of_select(self) -> None:
        cursor = self._cursor
        for word, hint in _AFTER_SELECT.items():
            if cursor.at_words(word):
                raise cursor.script.error(cursor.at, f"{word} is not supported", hint=hint)
        if not (cursor.at_end() or cursor.at_symbol(";")):
            raise cursor.unexpected('JOIN, WHERE, GROUP BY, ";" or the end', hint=_JOIN_FORM)


def _is_true(node: Node) -> bool:
    return isinstance(node, Literal) and node.kind is LiteralKind.BOOLEAN and node.text == "true"
