"""Functions with words between their arguments: CASE, CAST, EXTRACT, TRIM, SUBSTRING, POSITION."""

from collections.abc import Callable

from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import CaseNode, CastNode, Node
from service.sql.grammar.operations import depth_over, operation, read_arguments
from service.sql.grammar.type_parser import parse_type
from service.sql.text.dialect import SqlTokenKind

_UNITS = {
    "YEAR": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "WEEK": "WEEK",
    "DOW": "DAYOFWEEK",
    "DOY": "DAYOFYEAR",
    "DAY": "DAYOFMONTH",
    "HOUR": "HOUR",
    "MINUTE": "MINUTE",
    "SECOND": "SECOND",
}


class SpecialForms:
    """Reads such functions from a cursor, each from behind its word, which stands at `at`.

    Args:
        cursor: stands behind the word that the function begins with.
        parse: reads an expression.
        operand: reads an expression without comparisons and logic.
    """

    def __init__(
        self, cursor: TokenCursor, parse: Callable[[], Node], operand: Callable[[], Node]
    ) -> None:
        self._cursor = cursor
        self._parse = parse
        self._operand = operand

    def case(self, at: int) -> Node:
        """CASE [operand] WHEN … THEN … [ELSE …] END."""
        cursor = self._cursor
        operand = None if cursor.at_words("WHEN") else self._parse()
        branches: list[tuple[Node, Node]] = []
        while cursor.accept_words("WHEN"):
            condition = self._parse()
            cursor.expect_words("THEN", hint="Write CASE WHEN condition THEN value … END.")
            branches.append((condition, self._parse()))
        if not branches:
            raise cursor.unexpected("WHEN", hint="Write CASE WHEN condition THEN value … END.")
        otherwise = self._parse() if cursor.accept_words("ELSE") else None
        cursor.expect_words("END", hint="Close CASE with END.")
        parts = [node for branch in branches for node in branch]
        parts += [node for node in (operand, otherwise) if node is not None]
        return CaseNode(operand, tuple(branches), otherwise, at, depth_over(cursor, parts, at))

    def _cast(self, at: int, *, safe: bool) -> Node:
        cursor = self._cursor
        cursor.expect_symbol("(", hint="Write CAST(x AS TYPE).")
        operand = self._parse()
        cursor.expect_words("AS", hint="Write CAST(x AS TYPE).")
        target = parse_type(cursor)
        cursor.expect_symbol(")", hint="Write CAST(x AS TYPE).")
        return CastNode(operand, target, safe, at, depth_over(cursor, [operand], at))

    def plain_cast(self, at: int) -> Node:
        """CAST(x AS TYPE)."""
        return self._cast(at, safe=False)

    def try_cast(self, at: int) -> Node:
        """TRY_CAST(x AS TYPE)."""
        return self._cast(at, safe=True)

    def extract(self, at: int) -> Node:
        """EXTRACT(unit FROM x)."""
        cursor = self._cursor
        cursor.advance()
        unit = cursor.token.text.upper()
        if cursor.token.kind is not SqlTokenKind.WORD or unit not in _UNITS:
            raise cursor.unexpected("a unit", hint="Units are " + ", ".join(_UNITS) + ".")
        cursor.advance()
        cursor.expect_words("FROM", hint="Write EXTRACT(YEAR FROM x).")
        operand = self._parse()
        cursor.expect_symbol(")", hint="Write EXTRACT(YEAR FROM x).")
        return operation(cursor, _UNITS[unit], (operand,), at)

    def trim(self, at: int) -> Node:
        """TRIM([BOTH | LEADING | TRAILING] [x] [FROM] text)."""
        cursor = self._cursor
        cursor.advance()
        name = "TRIM"
        for word, function in (("BOTH", "TRIM"), ("LEADING", "LTRIM"), ("TRAILING", "RTRIM")):
            if cursor.accept_words(word):
                name = function
        characters = None if cursor.accept_words("FROM") else self._parse()
        if characters is not None and not cursor.accept_words("FROM"):
            cursor.expect_symbol(")", hint="Write TRIM(BOTH 'x' FROM text).")
            return operation(cursor, name, (characters,), at)
        operand = self._parse()
        cursor.expect_symbol(")", hint="Write TRIM(BOTH 'x' FROM text).")
        both = (operand,) if characters is None else (operand, characters)
        return operation(cursor, name, both, at)

    def substring(self, at: int) -> Node:
        """SUBSTRING(text FROM 1 [FOR 3]), and with commas."""
        cursor = self._cursor
        cursor.advance()
        text = self._parse()
        if not cursor.accept_words("FROM"):
            cursor.expect_symbol(",", hint="Write SUBSTRING(text FROM 1 FOR 3).")
            return operation(cursor, "SUBSTRING", (text, *read_arguments(cursor, self._parse)), at)
        parts = [text, self._parse()]
        if cursor.accept_words("FOR"):
            parts.append(self._parse())
        cursor.expect_symbol(")", hint="Write SUBSTRING(text FROM 1 FOR 3).")
        return operation(cursor, "SUBSTRING", tuple(parts), at)

    def position(self, at: int) -> Node:
        """POSITION(x IN text)."""
        cursor = self._cursor
        cursor.advance()
        needle = self._operand()
        cursor.expect_words("IN", hint="Write POSITION('x' IN text).")
        text = self._operand()
        cursor.expect_symbol(")", hint="Write POSITION('x' IN text).")
        return operation(cursor, "POSITION", (needle, text), at)


SPECIAL_FORMS: dict[str, Callable[[SpecialForms, int], Node]] = {
    "CASE": SpecialForms.case,
    "CAST": SpecialForms.plain_cast,
    "TRY_CAST": SpecialForms.try_cast,
    "EXTRACT": SpecialForms.extract,
    "TRIM": SpecialForms.trim,
    "SUBSTRING": SpecialForms.substring,
    "SUBSTR": SpecialForms.substring,
    "POSITION": SpecialForms.position,
}
