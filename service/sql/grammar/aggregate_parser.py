"""Aggregates as calls: DISTINCT, `*` and FILTER (WHERE …)."""

from collections.abc import Callable
from dataclasses import dataclass

from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import Node

AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "LISTAGG", "FIRST_VALUE", "LAST_VALUE")
_FORM = "Write COUNT(*), COUNT(DISTINCT x), SUM(x) FILTER (WHERE y > 0) or LISTAGG(x, ', ')."


@dataclass(frozen=True, slots=True)
class Aggregated:
    """What stands behind the name of an aggregate."""

    arguments: tuple[Node, ...]
    distinct: bool
    where: Node | None


def read_aggregate(
    cursor: TokenCursor, parse: Callable[[], Node], name: str, at: int
) -> Aggregated:
    """Read the rest of an aggregate behind its opening parenthesis; `parse` reads an expression.

    Its `name` stands at `at`.

    Raises:
        SqlError: it is none, or has a form that is not supported.
    """
    distinct = cursor.accept_words("DISTINCT")
    if not distinct:
        cursor.accept_words("ALL")
    arguments: list[Node] = []
    if not cursor.accept_symbol("*"):
        if cursor.at_symbol(")"):
            raise cursor.unexpected("an argument or *", hint=_FORM)
        arguments.append(parse())
        while cursor.accept_symbol(","):
            arguments.append(parse())
    elif distinct:
        raise cursor.unexpected("a column behind DISTINCT", hint=_FORM)
    cursor.expect_symbol(")", hint=_FORM)
    if cursor.at_words("WITHIN", "GROUP"):
        raise cursor.script.error(
            cursor.at,
            "WITHIN GROUP is not supported",
            hint="LISTAGG joins the texts in the order of arrival.",
        )
    where = None
    if cursor.accept_words("FILTER"):
        cursor.expect_symbol("(", hint=_FORM)
        cursor.expect_words("WHERE", hint=_FORM)
        where = parse()
        cursor.expect_symbol(")", hint=_FORM)
    refuse_over(cursor, name, at)
    return Aggregated(tuple(arguments), distinct, where)


_RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
_OVER_FORM = (
    "Aggregate the rows of a window: FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, "
    "INTERVAL '1' HOUR)) GROUP BY window_start, window_end."
)


def refuse_over(cursor: TokenCursor, name: str, at: int) -> None:
    """Refuse what makes a call of `name` at `at` one over many rows.

    Raises:
        SqlError: OVER or FILTER comes next.
    """
    if cursor.at_words("FILTER"):
        raise cursor.script.error(cursor.at, "FILTER is not supported here", hint=_FORM)
    if not cursor.at_words("OVER"):
        return
    if name in _RANKS:
        raise cursor.script.error(
            at,
            f"{name}() OVER (…) keeps rows of every key, to number them",
            hint="For the newest row of each key write to an upsert-kafka table with that PRIMARY "
            "KEY; for the greatest value of a window take MAX(x) in FROM TABLE(TUMBLE(TABLE t, "
            "DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end.",
        )
    raise cursor.script.error(
        at, f"{name[:100]}(…) OVER (…) keeps the rows before each one", hint=_OVER_FORM
    )
