"""Functions that name a unit of time: EXTRACT, FLOOR and CEIL … TO, TIMESTAMPADD, TIMESTAMPDIFF."""

from collections.abc import Callable

from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import Node
from service.sql.grammar.operations import FormReader, named, operation, read_arguments
from service.sql.text.dialect import SqlTokenKind
from service.sql.text.errors import suggestion

PARTS = {
    "MILLENNIUM": "MILLENNIUM",
    "CENTURY": "CENTURY",
    "DECADE": "DECADE",
    "YEAR": "YEAR",
    "ISOYEAR": "ISOYEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "WEEK": "WEEK",
    "DOW": "DAYOFWEEK",
    "ISODOW": "ISODOW",
    "DOY": "DAYOFYEAR",
    "DAY": "DAYOFMONTH",
    "HOUR": "HOUR",
    "MINUTE": "MINUTE",
    "SECOND": "SECOND",
    "MILLISECOND": "MILLISECOND",
    "MICROSECOND": "MICROSECOND",
    "NANOSECOND": "NANOSECOND",
    "EPOCH": "EPOCH",
}
_ROUNDED = ("MILLENNIUM", "CENTURY", "DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR",
            "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")  # fmt: skip
_MOVED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
_CALLED_BEFORE = "SQL_TSI_"


def _unit(cursor: TokenCursor, known: tuple[str, ...]) -> Node:
    """Take one of the units `known`."""
    token = cursor.token
    word = token.text.upper().removeprefix(_CALLED_BEFORE)
    if token.kind is not SqlTokenKind.WORD or word not in known:
        hint = suggestion(word[:20], known, "Units are " + ", ".join(known) + ".")
        raise cursor.unexpected("a unit", hint=hint)
    cursor.advance()
    return named(word, token.start)


def extract(reader: FormReader, at: int) -> Node:
    """EXTRACT(unit FROM x)."""
    cursor = reader.cursor
    cursor.advance()
    unit = cursor.token.text.upper()
    if cursor.token.kind is not SqlTokenKind.WORD or unit not in PARTS:
        raise cursor.unexpected("a unit", hint="Units are " + ", ".join(PARTS) + ".")
    word = named(unit, cursor.advance().start)
    cursor.expect_words("FROM", hint="Write EXTRACT(YEAR FROM x).")
    operand = reader.parse()
    cursor.expect_symbol(")", hint="Write EXTRACT(YEAR FROM x).")
    return operation(cursor, "EXTRACT", (word, operand), at)


def _rounded(name: str) -> Callable[[FormReader, int], Node]:
    def read(reader: FormReader, at: int) -> Node:
        """FLOOR(x) and FLOOR(x TO unit)."""
        cursor = reader.cursor
        cursor.advance()
        if cursor.accept_symbol(")"):
            return operation(cursor, name, (), at)
        operand = reader.parse()
        if not cursor.accept_words("TO"):
            rest = read_arguments(cursor, reader.parse) if cursor.accept_symbol(",") else ()
            if not rest:
                hint = "Separate arguments by commas and close the list."
                cursor.expect_symbol(")", hint=hint)
            return operation(cursor, name, (operand, *rest), at)
        unit = _unit(cursor, _ROUNDED)
        cursor.expect_symbol(")", hint="Write FLOOR(x TO HOUR).")
        return operation(cursor, f"{name.removesuffix('ING')} TO", (operand, unit), at)

    return read


def _with_unit(name: str, form: str) -> Callable[[FormReader, int], Node]:
    def read(reader: FormReader, at: int) -> Node:
        """TIMESTAMPADD(unit, n, x)."""
        cursor = reader.cursor
        cursor.advance()
        unit = _unit(cursor, _MOVED)
        cursor.expect_symbol(",", hint=form)
        first = reader.parse()
        cursor.expect_symbol(",", hint=form)
        second = reader.parse()
        cursor.expect_symbol(")", hint=form)
        return operation(cursor, name, (unit, first, second), at)

    return read


TIME_FORMS: dict[str, Callable[[FormReader, int], Node]] = {
    "EXTRACT": extract,
    "FLOOR": _rounded("FLOOR"),
    "CEIL": _rounded("CEIL"),
    "CEILING": _rounded("CEILING"),
    "TIMESTAMPADD": _with_unit("TIMESTAMPADD", "Write TIMESTAMPADD(DAY, 1, x)."),
    "TIMESTAMPDIFF": _with_unit("TIMESTAMPDIFF", "Write TIMESTAMPDIFF(DAY, first, second)."),
}
