"""Aggregates as calls: DISTINCT, `*` and FILTER (WHERE …)."""

from collections.abc import Callable
from dataclasses import dataclass

from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import Node

AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "LISTAGG")
_FORM = "Write COUNT(*), COUNT(DISTINCT x), SUM(x) FILTER (WHERE y > 0) or LISTAGG(x, ', ')."


@dataclass(frozen=True, slots=True)
class Aggregated:
    """What stands behind the name of an aggregate."""

    arguments: tuple[Node, ...]
    distinct: bool
    where: Node | None


def read_aggregate(cursor: TokenCursor, parse: Callable[[], Node]) -> Aggregated:
    """Read the rest of an aggregate behind its opening parenthesis; `parse` reads an expression.

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
    refuse_over(cursor)
    return Aggregated(tuple(arguments), distinct, where)


def refuse_over(cursor: TokenCursor) -> None:
    """Refuse what makes a call a window of rows.

    Raises:
        SqlError: OVER or FILTER comes next.
    """
    if cursor.at_words("OVER") or cursor.at_words("FILTER"):
        raise cursor.script.error(
            cursor.at,
            f"{cursor.token.text.upper()} is not supported here",
            hint="Aggregate over FROM TABLE(TUMBLE(…)) with GROUP BY window_start, window_end.",
        )
