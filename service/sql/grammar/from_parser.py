"""FROM: the first table, its window function, and the joins."""

from collections.abc import Callable
from dataclasses import replace

from joins.plan.plan import JoinType
from service.sql.grammar.cursor import TokenCursor, operation, read_hint, read_names, read_table
from service.sql.grammar.expression_nodes import (
    FunctionCall,
    Literal,
    LiteralKind,
    Name,
    Node,
    Reference,
)
from service.sql.grammar.expression_parser import ExpressionParser
from service.sql.grammar.syntax import (
    CreateView,
    JoinNode,
    OptionNode,
    Relation,
    Select,
    SnapshotNode,
    Star,
    TemporalJoinClause,
    UnnestClause,
    WindowNode,
)
from service.sql.grammar.window_parser import WINDOWS, read_window
from service.sql.text.script import OUTSIDE, Edit, suggestion

NO_ALIAS = (
    *("HAVING", "WINDOW", "ORDER", "OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT", "MINUS"),
    *("QUALIFY", "LIMIT", "MATCH_RECOGNIZE", "TABLESAMPLE"),
)
"""Words that go on behind a table, so that they name none."""
JOIN_FORM = (
    "Write [LEFT] JOIN dimension FOR SYSTEM_TIME AS OF stream.proctime AS d ON stream.k = d.k."
)
NAMELESS = ""
"""The alias of what has none: nothing can name it."""
_QUERY_FORM = "Write FROM table, or FROM (SELECT … FROM table) AS name."
_LATERAL_FORM = "Write JOIN LATERAL TABLE(dimension(stream.proctime)) AS d ON stream.k = d.k."
_SNAPSHOT_FORM = "Write JOIN LATERAL SNAPSHOT(input => TABLE dimension) AS d ON stream.k = d.k."
_SNAPSHOT_ARGUMENTS = (
    *("input", "on_time", "load_completed_time", "load_completed_idle_timeout", "state_ttl"),
    "load_completed_condition",
)
"""Arguments of SNAPSHOT in Flink's order; the last is of its first versions, by name alone."""
_UNNEST_FORM = "Write CROSS JOIN UNNEST(stream.items) AS item (name), with a column for each field."
_OTHER_JOINS = {
    "RIGHT": "Put the stream first and write LEFT JOIN; rows of a table alone have no record.",
    "FULL": "Write LEFT JOIN; rows of a table alone have no record.",
    "CROSS": _UNNEST_FORM + " A table is joined by an equality: " + JOIN_FORM,
    "NATURAL": JOIN_FORM,
}


class FromParser:
    """Reads from a cursor; `query` reads a query up to its closing parenthesis."""

    def __init__(
        self, cursor: TokenCursor, expressions: ExpressionParser, query: Callable[[], Select]
    ) -> None:
        self._cursor = cursor
        self._expressions = expressions
        self._query = query

    def first(self) -> tuple[Relation, WindowNode | None]:
        cursor = self._cursor
        self._refuse_bare_snapshot("FROM")
        is_window = cursor.token.text.upper() in WINDOWS and cursor.ahead(1).text == "("
        if cursor.at_words("TABLE") or is_window:
            return self._window()
        if cursor.at_symbol("("):
            return self.subquery(), None
        if cursor.at_words("LATERAL") or cursor.at_words("UNNEST"):
            raise cursor.script.error(
                cursor.at,
                f"{cursor.token.text.upper()} is the first relation, which must be a stream",
                hint=_QUERY_FORM,
            )
        table = read_table(cursor, "a table name")
        options = read_hint(cursor)
        if cursor.at_words("FOR"):
            raise cursor.script.error(
                cursor.at,
                "the first table is the stream and has no FOR SYSTEM_TIME",
                hint=JOIN_FORM,
            )
        return self._relation(table, options), None

    def subquery(self) -> Relation:
        """Read `(query) [AS alias [(columns)]]`."""
        cursor = self._cursor
        at = cursor.advance().start
        if not any(cursor.at_words(word) for word in ("SELECT", "WITH")) and not (
            cursor.at_symbol("(")
        ):
            raise cursor.unexpected("SELECT", hint=_QUERY_FORM)
        start = cursor.at
        select = self._query()
        end = cursor.end_of_last
        cursor.expect_symbol(")", hint=_QUERY_FORM)
        alias = Name(NAMELESS, at)
        if cursor.accept_words("AS") or self._at_alias():
            alias = cursor.name("an alias")
        columns = read_names(cursor, f"AS {alias.text}") if cursor.at_symbol("(") else None
        name = Name(alias.text or "(…)", at)
        view = CreateView(name, False, columns, select, at, start, end)
        return Relation(name, alias, query=view)

    def _window(self) -> tuple[Relation, WindowNode]:
        relation, window = read_window(self._cursor, self._expressions.parse, self.subquery)
        relation = Relation(
            relation.table, self._alias(relation.alias), relation.options, relation.query
        )
        return relation, window

    def _relation(self, table: Name, options: tuple[OptionNode, ...]) -> Relation:
        """The relation with its alias; the hint may stand on either side of it."""
        alias = self._alias(table)
        options = options or read_hint(self._cursor)
        relation = Relation(table, alias, options)
        return self._with_columns(relation) if self._cursor.at_symbol("(") else relation

    def _with_columns(self, relation: Relation) -> Relation:
        """`table AS alias (columns)` as a query of all columns under these names."""
        cursor = self._cursor
        alias = relation.alias
        start = cursor.at
        columns = read_names(cursor, f"AS {alias.text}")
        everything = Select((Star(None, alias.at),), relation, (), None, alias.at)
        end = cursor.end_of_last
        view = CreateView(alias, False, columns, everything, alias.at, start, end)
        return Relation(relation.table, alias, query=view)

    def _at_alias(self) -> bool:
        return self._cursor.at_name() and not any(map(self._cursor.at_words, NO_ALIAS))

    def _alias(self, table: Name) -> Name:
        cursor = self._cursor
        if not cursor.accept_words("AS") and not self._at_alias():
            return table
        return cursor.name("an alias")

    def joins(self) -> tuple[JoinNode, ...]:
        cursor = self._cursor
        joins: list[JoinNode] = []
        while True:
            at = cursor.at
            if cursor.accept_words("LEFT"):
                cursor.accept_words("OUTER")
                cursor.expect_words("JOIN", hint=JOIN_FORM)
                joins.append(self._join(JoinType.LEFT, at))
            elif cursor.accept_words("INNER", "JOIN") or cursor.accept_words("JOIN"):
                joins.append(self._join(JoinType.INNER, at))
            elif cursor.at_symbol(",") or cursor.at_words("CROSS"):
                joins.append(self._cross(at))
            else:
                self._refuse_other_joins()
                return tuple(joins)

    def _refuse_other_joins(self) -> None:
        cursor = self._cursor
        for word, hint in _OTHER_JOINS.items():
            if cursor.at_words(word):
                raise cursor.script.error(cursor.at, f"{word} JOIN is not supported", hint=hint)
        if cursor.at_words("TABLESAMPLE"):
            raise cursor.script.error(
                cursor.at, "TABLESAMPLE is not supported", hint="Keep fewer rows by WHERE."
            )
        if cursor.at_words("MATCH_RECOGNIZE"):
            raise cursor.script.error(
                cursor.at,
                "MATCH_RECOGNIZE is not supported: it keeps state over many records",
                hint=f"{OUTSIDE} Filter single records with WHERE, or count them in a window: FROM "
                "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY "
                "window_start, window_end.",
            )

    def _cross(self, at: int) -> JoinNode:
        """`, LATERAL TABLE(dimension(time))`, `, UNNEST(…)`, or both behind CROSS JOIN."""
        cursor = self._cursor
        if cursor.at_words("CROSS"):
            is_join = cursor.ahead(1).text.upper() == "JOIN"
            if not is_join or cursor.ahead(2).text.upper() not in ("UNNEST", "LATERAL"):
                self._refuse_other_joins()
            cursor.advance()
        cursor.advance()
        if cursor.at_words("UNNEST"):
            return self._unnest(JoinType.INNER, at)
        if not cursor.at_words("LATERAL"):
            raise cursor.script.error(
                at,
                "a comma join keeps the rows of both sides, except LATERAL TABLE(…) and UNNEST(…)",
                hint=f"{OUTSIDE} {JOIN_FORM}",
            )
        return self._lateral(JoinType.INNER, at)

    def _join(self, join_type: JoinType, at: int) -> JoinNode:
        cursor = self._cursor
        if cursor.at_words("UNNEST"):
            return self._unnest(join_type, at)
        if cursor.at_words("LATERAL"):
            clause = self._lateral(join_type, at)
            if cursor.at_words("USING"):
                return self._using(clause)
            condition = self._condition()
            if join_type is JoinType.INNER and _is_true(condition):
                return clause
            return replace(clause, condition=condition)
        self._refuse_bare_snapshot("JOIN")
        self._refuse_join_of_streams()
        table = read_table(cursor, "a table name")
        options = read_hint(cursor)
        time = self._system_time(table)
        relation = self._relation(table, options)
        clause = TemporalJoinClause(relation, join_type, time, None, at)
        if cursor.at_words("USING"):
            return self._using(clause)
        return replace(clause, condition=self._condition())

    def _refuse_join_of_streams(self) -> None:
        cursor = self._cursor
        if cursor.at_symbol("("):
            raise cursor.script.error(
                cursor.at,
                "a query in parentheses is joined, which keeps the rows of both sides",
                hint=f"{OUTSIDE} Only a table with a PRIMARY KEY can be joined, or a VIEW of one: "
                + JOIN_FORM.removeprefix("Write "),
            )
        if cursor.at_words("TABLE"):
            raise cursor.script.error(
                cursor.at,
                "a window is joined, which keeps the rows of both sides",
                hint=f"{OUTSIDE} "
                "Aggregate each window in a separate job; a stream is joined with a table: "
                + JOIN_FORM.removeprefix("Write "),
            )

    def _condition(self) -> Node:
        cursor = self._cursor
        cursor.expect_words("ON", hint=JOIN_FORM)
        return self._expressions.parse()

    def _using(self, clause: TemporalJoinClause) -> TemporalJoinClause:
        """`USING (a, b)`: the columns on both sides are equal, and are one column of the result."""
        cursor, alias = self._cursor, clause.relation.alias
        cursor.advance()
        if not cursor.at_symbol("("):
            raise cursor.unexpected("a list of columns", hint="Write USING (k).")
        columns = read_names(cursor, "USING")
        equalities: list[Node] = []
        for name in columns:
            own = Reference((replace(alias, at=name.at), name), name.at)
            equalities.append(operation(cursor, "=", [Reference((name,), name.at), own], name.at))
        condition = equalities[0]
        if len(equalities) > 1:
            condition = operation(cursor, "AND", equalities, columns[0].at)
        return replace(clause, condition=condition, using=columns)

    def _unnest(self, join_type: JoinType, at: int) -> UnnestClause:
        """`UNNEST(value) [AS alias [(columns)]] [ON TRUE]`."""
        cursor = self._cursor
        name_at = cursor.advance().start
        cursor.expect_symbol("(", hint=_UNNEST_FORM)
        value = self._expressions.parse()
        cursor.expect_symbol(")", hint=_UNNEST_FORM)
        if cursor.at_words("WITH", "ORDINALITY"):
            raise cursor.script.error(
                cursor.at, "WITH ORDINALITY is not supported", hint="Leave it out."
            )
        alias = Name(NAMELESS, name_at)
        if cursor.accept_words("AS") or self._at_alias():
            alias = cursor.name("an alias")
        columns = read_names(cursor, "UNNEST(…) AS alias") if cursor.at_symbol("(") else None
        if cursor.at_words("ON"):
            condition_at = cursor.at
            if not _is_true(self._condition()):
                raise cursor.script.error(
                    condition_at,
                    "UNNEST is joined ON a condition",
                    hint="Write ON TRUE, and the condition into WHERE.",
                )
        elif join_type is JoinType.LEFT:
            raise cursor.unexpected("ON TRUE", hint="Write LEFT JOIN UNNEST(…) AS t (c) ON TRUE.")
        return UnnestClause(value, alias, columns, join_type, at)

    def _lateral(self, join_type: JoinType, at: int) -> TemporalJoinClause:
        """LATERAL TABLE(dimension(time)) or LATERAL SNAPSHOT(…) with its alias, without ON."""
        cursor = self._cursor
        cursor.advance()
        if cursor.at_symbol("("):
            raise cursor.script.error(
                cursor.at,
                "a query behind LATERAL is run for each row, which keeps the rows of both sides",
                hint=f"{OUTSIDE} Join a table with a PRIMARY KEY: "
                + _LATERAL_FORM.removeprefix("Write "),
            )
        if cursor.at_words("SNAPSHOT"):
            snapshot_of, snapshot = self._snapshot()
            return TemporalJoinClause(
                self._aliased(snapshot_of), join_type, None, None, at, snapshot
            )
        cursor.expect_words("TABLE", hint=_LATERAL_FORM)
        cursor.expect_symbol("(", hint=_LATERAL_FORM)
        if cursor.at_words("SNAPSHOT"):
            snapshot_of, snapshot = self._snapshot()
            cursor.expect_symbol(")", hint="Close TABLE( with a second parenthesis.")
            return TemporalJoinClause(
                self._aliased(snapshot_of), join_type, None, None, at, snapshot
            )
        table = read_table(cursor, "a table name", hint=_LATERAL_FORM)
        options = read_hint(cursor)
        cursor.expect_symbol("(", hint=_LATERAL_FORM)
        time = self._time(f"{table.text}(…)")
        cursor.expect_symbol(")", hint=_LATERAL_FORM)
        cursor.expect_symbol(")", hint=_LATERAL_FORM)
        return TemporalJoinClause(self._relation(table, options), join_type, time, None, at)

    def _aliased(self, relation: Relation) -> Relation:
        relation = replace(relation, alias=self._alias(relation.alias))
        return self._with_columns(relation) if self._cursor.at_symbol("(") else relation

    def _snapshot(self) -> tuple[Relation, SnapshotNode]:
        """`SNAPSHOT(input => TABLE t, on_time => DESCRIPTOR(c), name => constant, …)`."""
        cursor = self._cursor
        at = cursor.advance().start
        cursor.expect_symbol("(", hint=_SNAPSHOT_FORM)
        relation: Relation | None = None
        on_time: Name | None = None
        arguments: dict[str, Node] = {}
        names: list[str] = []
        named = False
        while not names or cursor.accept_symbol(","):
            named = named or cursor.ahead(1).text == "=>"
            name_at, name = cursor.at, self._snapshot_argument(names, named=named)
            if name in names:
                raise cursor.script.error(
                    name_at, f"argument {name} of SNAPSHOT is given twice", hint="Remove one."
                )
            names.append(name)
            if name == "input":
                relation = self._snapshot_input()
            elif name == "on_time":
                cursor.expect_words("DESCRIPTOR", hint="Write on_time => DESCRIPTOR(column).")
                (on_time, *more) = read_names(cursor, "on_time => DESCRIPTOR")
                if more:
                    raise cursor.script.error(
                        more[0].at, "on_time names two columns", hint="Name the time column alone."
                    )
            else:
                arguments[name] = self._expressions.parse()
        cursor.expect_symbol(")", hint=_SNAPSHOT_FORM)
        if relation is None:
            raise cursor.script.error(at, "SNAPSHOT has no input", hint=_SNAPSHOT_FORM)
        return relation, SnapshotNode(on_time, arguments, at)

    def _snapshot_argument(self, before: list[str], *, named: bool) -> str:
        """The name of the next argument, written in front of it or by its position."""
        cursor = self._cursor
        if cursor.ahead(1).text != "=>":
            if not named and len(before) + 1 < len(_SNAPSHOT_ARGUMENTS):
                return _SNAPSHOT_ARGUMENTS[len(before)]
            what = "an argument without a name" if named else "too many arguments"
            raise cursor.script.error(cursor.at, f"SNAPSHOT has {what}", hint=_SNAPSHOT_FORM)
        name = cursor.token.text.lower()
        if name not in _SNAPSHOT_ARGUMENTS:
            otherwise = "Arguments are " + ", ".join(_SNAPSHOT_ARGUMENTS) + "."
            raise cursor.script.error(
                cursor.at,
                f'SNAPSHOT has no argument "{name[:40]}"',
                hint=suggestion(name[:40], _SNAPSHOT_ARGUMENTS, otherwise),
            )
        cursor.advance()
        cursor.advance()
        return name

    def _snapshot_input(self) -> Relation:
        cursor = self._cursor
        if not cursor.at_symbol("("):
            cursor.expect_words("TABLE", hint=_SNAPSHOT_FORM)
        if cursor.at_symbol("("):
            return self.subquery()
        table = read_table(cursor, "a table name", hint=_SNAPSHOT_FORM)
        return Relation(table, table, read_hint(cursor))

    def _refuse_bare_snapshot(self, behind: str) -> None:
        cursor = self._cursor
        wrapped = 2 if cursor.at_words("TABLE") and cursor.ahead(1).text == "(" else 0
        word, then = cursor.ahead(wrapped), cursor.ahead(wrapped + 1)
        if word.text.upper() == "SNAPSHOT" and then.text == "(":
            raise cursor.script.error(
                cursor.at,
                "SNAPSHOT is a table function of a join and stands behind LATERAL",
                hint=_SNAPSHOT_FORM,
                edit=Edit(cursor.at, cursor.at, "LATERAL ", sure=False)
                if behind == "JOIN"
                else None,
            )

    def _system_time(self, table: Name) -> Reference | None:
        cursor = self._cursor
        words = ("FOR", "SYSTEM_TIME", "AS", "OF")
        if not cursor.accept_words(*words):
            if cursor.at_words("FOR"):
                raise cursor.unexpected("FOR SYSTEM_TIME AS OF", hint=JOIN_FORM)
            self._refuse_clause_behind_alias()
            raise cursor.script.error(
                table.at,
                f'table "{table.text}" is joined without FOR SYSTEM_TIME AS OF: a regular or '
                "interval join, which keeps the rows of both sides",
                hint=f"{OUTSIDE} {JOIN_FORM}",
            )
        return self._time("FOR SYSTEM_TIME AS OF")

    def _refuse_clause_behind_alias(self) -> None:
        """`JOIN d AS x FOR SYSTEM_TIME …` has the clause in the wrong place."""
        cursor = self._cursor
        alias = 1 if cursor.at_words("AS") else 0
        if cursor.ahead(alias + 1).text.upper() == "FOR":
            raise cursor.script.error(
                cursor.ahead(alias + 1).start,
                f'FOR SYSTEM_TIME AS OF follows the alias "{cursor.ahead(alias).text}"',
                hint="Write the alias last: " + JOIN_FORM.removeprefix("Write "),
            )

    def _time(self, what: str) -> Reference | None:
        """The column; None for PROCTIME()."""
        at = self._cursor.at
        time = self._expressions.parse(level=5)
        if isinstance(time, FunctionCall) and time.name == "PROCTIME" and not time.arguments:
            return None
        if not isinstance(time, Reference):
            raise self._cursor.script.error(
                at,
                f"{what} takes a column of the stream, or PROCTIME()",
                hint="Declare proctime AS PROCTIME() in the stream and write stream.proctime.",
            )
        return time


def _is_true(node: Node) -> bool:
    return isinstance(node, Literal) and node.kind is LiteralKind.BOOLEAN and node.text == "true"
