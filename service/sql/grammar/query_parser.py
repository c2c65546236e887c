"""Queries: SELECT … FROM probe [LEFT] JOIN dimension FOR SYSTEM_TIME AS OF … ON … WHERE …."""

from collections.abc import Callable
from dataclasses import replace
from itertools import compress, product
from typing import TypeVar

from service.sql.grammar.cursor import TokenCursor, read_names, read_whole_number
from service.sql.grammar.expression_nodes import FunctionCall, Node
from service.sql.grammar.expression_parser import ExpressionParser
from service.sql.grammar.from_parser import JOIN_FORM, FromParser
from service.sql.grammar.syntax import (
    CreateView,
    GroupBy,
    HintNode,
    OrderItem,
    Select,
    SelectItem,
    Star,
)
from service.sql.grammar.window_parser import GROUP_FORM
from service.sql.text.dialect import HINT_END, HINT_START, SqlTokenKind
from service.sql.text.script import OUTSIDE

MAX_COLUMNS = 1_000
MAX_LIMIT = 10_000
QUERY_HINTS = {
    "LOOKUP": "a dimension's rows are in a local index, so no lookup is repeated or cached; the "
    "table option 'join.late-rows.wait' is for rows that come late",
    "STATE_TTL": "no row is kept by its age: a window's state ends with the window, a dimension "
    "has the rows of its table",
    "BROADCAST": "each node has an index of the dimension",
    "SHUFFLE_HASH": "each node has an index of the dimension",
    "SHUFFLE_MERGE": "each node has an index of the dimension",
    "NEST_LOOP": "a dimension is looked up by the columns of ON",
    "MULTI_JOIN": "the joins of a query go one after the other, without state",
}
"""Hints of Flink behind SELECT: what is there instead."""
_AFTER_SELECT: dict[str, str] = {
    "HAVING": "HAVING stands behind GROUP BY; without it write WHERE.",
    "WINDOW": "Write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)).",
    "OFFSET": "A job runs until it is stopped; use scan.startup.mode to start later.",
    "FETCH": "A job runs until it is stopped; use WHERE to keep fewer rows.",
    "INTERSECT": "It would keep all rows of both queries: submit one job for each query.",
    "EXCEPT": "It would keep all rows of both queries: submit one job for each query.",
    "MINUS": "It would keep all rows of both queries: submit one job for each query.",
    "QUALIFY": "Use HAVING behind GROUP BY.",
}
_AFTER_SELECT |= {
    word: f"{OUTSIDE} {_AFTER_SELECT[word]}"
    for word in ("OFFSET", "FETCH", "INTERSECT", "EXCEPT", "MINUS")
}
_CONFLICTS = ("ERROR", "NOTHING", "DEDUPLICATE")
_CONFLICT_FORM = "Write INSERT INTO table SELECT … ON CONFLICT DO DEDUPLICATE."
_WITH_FORM = "Write WITH name AS (SELECT … FROM table) SELECT … FROM name."
_GROUPING_SETS, _ROLLUP, _CUBE = ("GROUPING", "SETS"), ("ROLLUP",), ("CUBE",)
_SETS_FORM = "Write GROUP BY window_start, window_end, GROUPING SETS ((a, b), (a), ())."
MAX_SETS = 256
_MAX_CUBE = 8
_Read = TypeVar("_Read")
_DISTINCT_FORM = (
    "Select the columns, and write to an upsert-kafka table with a PRIMARY KEY; of a window write "
    "SELECT x, COUNT(*) FROM TABLE(TUMBLE(…)) GROUP BY window_start, window_end, x."
)


def limit_columns(cursor: TokenCursor, count: int, at: int) -> None:
    if count > MAX_COLUMNS:
        raise cursor.script.error(
            at, f"more than {MAX_COLUMNS:,} columns", hint="Select fewer columns."
        )


class QueryParser:
    """Reads a query from a cursor."""

    def __init__(self, cursor: TokenCursor, expressions: ExpressionParser) -> None:
        self._cursor = cursor
        self._expressions = expressions
        self._from = FromParser(cursor, expressions, self._inner)

    def select(self) -> Select:
        cursor = self._cursor
        query = self._query()
        if not (cursor.at_end() or cursor.at_symbol(";")):
            raise cursor.unexpected('JOIN, WHERE, GROUP BY, ";" or the end', hint=JOIN_FORM)
        return query

    def at_query(self) -> bool:
        return any(map(self._cursor.at_words, ("SELECT", "WITH"))) or self._cursor.at_symbol("(")

    def _inner(self) -> Select:
        query = self._query()
        if query.limit is not None:
            raise self.no_limit(query)
        return query

    def no_limit(self, query: Select) -> Exception:
        return self._cursor.script.error(
            query.limit_at,
            "LIMIT is not supported here",
            hint=f"{OUTSIDE} "
            "A job runs until it is stopped: use WHERE to keep fewer rows, or run the "
            "SELECT alone, which is a preview that ends.",
        )

    def inserted(self) -> tuple[Select, str]:
        """Read `query [ON CONFLICT DO {ERROR | NOTHING | DEDUPLICATE}]`, and that word."""
        cursor = self._cursor
        query = self._query()
        action = ""
        if cursor.accept_words("ON", "CONFLICT"):
            cursor.expect_words("DO", hint=_CONFLICT_FORM)
            action = next((word for word in _CONFLICTS if cursor.accept_words(word)), "")
            if not action:
                raise cursor.unexpected(" or ".join(_CONFLICTS), hint=_CONFLICT_FORM)
        if not (cursor.at_end() or cursor.at_symbol(";")):
            raise cursor.unexpected('JOIN, WHERE, GROUP BY, ";" or the end', hint=JOIN_FORM)
        if query.limit is not None:
            raise self.no_limit(query)
        return query, action

    def _query(self) -> Select:
        """`[WITH …] query [UNION ALL query]… [ORDER BY …] [LIMIT n]`."""
        cursor = self._cursor
        names = self._names() if cursor.at_words("WITH") else ()
        first, *others = self._united()
        order = self._order()
        limit_at = cursor.at
        limit = self._limit()
        for word, hint in _AFTER_SELECT.items():
            if cursor.at_words(word):
                raise cursor.script.error(cursor.at, f"{word} is not supported", hint=hint)
        return replace(
            first, names=names, others=tuple(others), order=order, limit=limit, limit_at=limit_at
        )

    def _names(self) -> tuple[CreateView, ...]:
        """`WITH name [(columns)] AS (query), …`."""
        cursor = self._cursor
        cursor.advance()
        if cursor.at_words("RECURSIVE"):
            raise cursor.script.error(
                cursor.at, "WITH RECURSIVE is not supported", hint=f"{OUTSIDE} {_WITH_FORM}"
            )
        names = [self._named()]
        while cursor.accept_symbol(","):
            names.append(self._named())
        return tuple(names)

    def _named(self) -> CreateView:
        cursor = self._cursor
        name = cursor.name("a name for the query", hint=_WITH_FORM)
        columns = read_names(cursor, f"WITH {name.text}") if cursor.at_symbol("(") else None
        cursor.expect_words("AS", hint=_WITH_FORM)
        cursor.expect_symbol("(", hint=_WITH_FORM)
        start = cursor.at
        select = self._inner()
        end = cursor.end_of_last
        cursor.expect_symbol(")", hint=_WITH_FORM)
        return CreateView(name, False, columns, select, name.at, start, end)

    def _united(self) -> list[Select]:
        cursor = self._cursor
        queries = [self._term()]
        while cursor.at_words("UNION"):
            at = cursor.advance().start
            if not cursor.accept_words("ALL"):
                raise cursor.script.error(
                    at,
                    "UNION without ALL keeps every row to leave out the second one",
                    hint=f"{OUTSIDE} Write UNION ALL.",
                )
            queries.append(self._term())
        return queries

    def _term(self) -> Select:
        """One SELECT; a query in parentheses becomes a query over that query."""
        if not self._cursor.at_symbol("("):
            return self._select()
        inner = self._from.subquery()
        assert inner.query is not None, "it stands in parentheses"
        select = inner.query.select
        if not select.names and not select.others and not select.order:
            return select
        return Select((Star(None, select.at),), inner, (), None, select.at)

    def _select(self) -> Select:
        cursor = self._cursor
        at = cursor.at
        cursor.expect_words("SELECT", hint="Write INSERT INTO table SELECT ….")
        hints = self._hints()
        if cursor.at_words("DISTINCT") or cursor.at_words("TRANSFORM"):
            raise cursor.script.error(
                cursor.at,
                f"SELECT {cursor.token.text.upper()} is not supported",
                hint=f"{OUTSIDE} {_DISTINCT_FORM}",
            )
        cursor.accept_words("ALL")
        items = self._items()
        cursor.expect_words("FROM", hint="Write SELECT … FROM stream JOIN dimension ….")
        probe, window = self._from.first()
        joins = self._from.joins()
        where = self._expressions.parse() if cursor.accept_words("WHERE") else None
        group_by = self._group_by() if cursor.at_words("GROUP") else None
        return Select(
            items=items,
            probe=probe,
            joins=joins,
            where=where,
            at=at,
            window=window,
            group_by=group_by,
            hints=hints,
        )

    def _hints(self) -> tuple[HintNode, ...]:
        """`/*+ NAME(…), … */` behind SELECT."""
        cursor = self._cursor
        hints: list[HintNode] = []
        if not cursor.accept_symbol(HINT_START):
            return ()
        while not cursor.accept_symbol(HINT_END):
            name = cursor.token.text.upper()
            if name == "OPTIONS" or cursor.token.kind is not SqlTokenKind.WORD:
                raise cursor.unexpected(
                    "a hint",
                    hint=f"Behind SELECT stand {', '.join(QUERY_HINTS)}; OPTIONS stands behind the "
                    "name of a table.",
                )
            hints.append(HintNode(name, cursor.advance().start))
            if name in QUERY_HINTS or cursor.at_symbol("("):
                self._skip_arguments()
            cursor.accept_symbol(",")
        return tuple(hints)

    def _skip_arguments(self) -> None:
        cursor = self._cursor
        cursor.expect_symbol("(", hint="Write /*+ LOOKUP('table' = 'd') */.")
        depth = 1
        while depth:
            if cursor.at_symbol(HINT_END):
                raise cursor.unexpected('")"', hint="Close the parenthesis of the hint.")
            symbol = cursor.advance().text
            depth += (symbol == "(") - (symbol == ")")

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
        return read_whole_number(self._cursor, "a number of rows", 1, MAX_LIMIT)

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

    def _group_by(self) -> GroupBy:
        cursor = self._cursor
        at = cursor.at
        cursor.expect_words("GROUP", "BY", hint=GROUP_FORM)
        has_sets = self._at_sets()
        sets = self._sets()
        while cursor.accept_symbol(","):
            has_sets = has_sets or self._at_sets()
            further = self._sets()
            sets = self._limited([(*one, *other) for one in sets for other in further])
        keys = tuple(dict.fromkeys(key for each in sets for key in each))
        limit_columns(cursor, len(keys), at)
        having = self._expressions.parse() if cursor.accept_words("HAVING") else None
        return GroupBy(keys, having, at, tuple(sets) if has_sets else ())

    def _at_sets(self) -> bool:
        cursor = self._cursor
        return cursor.at_words(*_GROUPING_SETS) or any(
            cursor.at_words(*word) and cursor.ahead(1).text == "(" for word in (_ROLLUP, _CUBE)
        )

    def _sets(self) -> list[tuple[Node, ...]]:
        """The sets of keys of one element of GROUP BY: one, but for ROLLUP and its like."""
        cursor = self._cursor
        if not self._at_sets():
            return [self._keys()]
        if cursor.accept_words(*_GROUPING_SETS):
            return self._limited([each for sets in self._listed(self._sets) for each in sets])
        if cursor.accept_words(*_ROLLUP):
            keys = self._listed(self._keys)
            sets = [keys[:count] for count in range(len(keys), -1, -1)]
        else:
            cursor.advance()
            keys = self._listed(self._keys)
            if len(keys) > _MAX_CUBE:
                raise self._too_many_sets()
            sets = [
                list(compress(keys, chosen)) for chosen in product((True, False), repeat=len(keys))
            ]
        return self._limited([tuple(key for keys in each for key in keys) for each in sets])

    def _listed(self, read: Callable[[], _Read]) -> list[_Read]:
        cursor = self._cursor
        cursor.expect_symbol("(", hint=_SETS_FORM)
        parts = [read()]
        while cursor.accept_symbol(","):
            limit_columns(cursor, len(parts) + 1, cursor.at)
            parts.append(read())
        cursor.expect_symbol(")", hint=_SETS_FORM)
        return parts

    def _keys(self) -> tuple[Node, ...]:
        cursor = self._cursor
        if cursor.at_symbol("(") and cursor.ahead(1).text == ")":
            cursor.advance()
            cursor.advance()
            return ()
        node = self._expressions.parse()
        if isinstance(node, FunctionCall) and node.name == "ROW":
            return node.arguments
        return (node,)

    def _limited(self, sets: list[tuple[Node, ...]]) -> list[tuple[Node, ...]]:
        if len(sets) > MAX_SETS:
            raise self._too_many_sets()
        return sets

    def _too_many_sets(self) -> Exception:
        return self._cursor.script.error(
            self._cursor.at,
            f"GROUP BY has more than {MAX_SETS} grouping sets",
            hint="Write the sets that you need: GROUPING SETS ((a, b), (a)).",
        )

    def _order(self) -> tuple[OrderItem, ...]:
        cursor = self._cursor
        if not cursor.accept_words("ORDER"):
            return ()
        cursor.expect_words("BY", hint="Write ORDER BY the time of the stream, or leave it out.")
        items = [self._order_item()]
        while cursor.accept_symbol(","):
            limit_columns(cursor, len(items) + 1, cursor.at)
            items.append(self._order_item())
        return tuple(items)

    def _order_item(self) -> OrderItem:
        cursor = self._cursor
        at = cursor.at
        expression = self._expressions.parse()
        descending = cursor.accept_words("DESC")
        if not descending:
            cursor.accept_words("ASC")
        if cursor.accept_words("NULLS") and not cursor.accept_words("FIRST"):
            cursor.expect_words("LAST", hint="Write NULLS FIRST or NULLS LAST.")
        return OrderItem(expression, descending, at)
