"""Functions with words between their arguments: CASE, CAST, TRIM, SUBSTRING, OVERLAY, POSITION."""

from collections.abc import Callable

from service.sql.grammar.expression_nodes import CaseNode, CastNode, Node
from service.sql.grammar.forms.json_forms import JSON_FORMS
from service.sql.grammar.forms.time_forms import TIME_FORMS
from service.sql.grammar.operations import FormReader, depth_over, operation, read_arguments
from service.sql.grammar.type_parser import parse_type


class SpecialForms(FormReader):
    """Reads such functions from a cursor, each from behind its word, which stands at `at`."""

    def case(self, at: int) -> Node:
        """CASE [operand] WHEN … THEN … [ELSE …] END."""
        cursor = self.cursor
        operand = None if cursor.at_words("WHEN") else self.parse()
        branches: list[tuple[Node, Node]] = []
        while cursor.accept_words("WHEN"):
            conditions = [self.parse()]
            while operand is not None and cursor.accept_symbol(","):
                conditions.append(self.parse())
            cursor.expect_words("THEN", hint="Write CASE WHEN condition THEN value … END.")
            value = self.parse()
            branches += [(each, value) for each in conditions]
        if not branches:
            raise cursor.unexpected("WHEN", hint="Write CASE WHEN condition THEN value … END.")
        otherwise = self.parse() if cursor.accept_words("ELSE") else None
        cursor.expect_words("END", hint="Close CASE with END.")
        parts = [node for branch in branches for node in branch]
        parts += [node for node in (operand, otherwise) if node is not None]
        return CaseNode(operand, tuple(branches), otherwise, at, depth_over(cursor, parts, at))

    def _cast(self, at: int, *, safe: bool) -> Node:
        cursor = self.cursor
        cursor.expect_symbol("(", hint="Write CAST(x AS TYPE).")
        operand = self.parse()
        cursor.expect_words("AS", hint="Write CAST(x AS TYPE).")
        target = parse_type(cursor)
        cursor.expect_symbol(")", hint="Write CAST(x AS TYPE).")
        return CastNode(operand, target, safe, at, depth_over(cursor, [operand], at))

    def plain_cast(self, at: int) -> Node:
        return self._cast(at, safe=False)

    def try_cast(self, at: int) -> Node:
        return self._cast(at, safe=True)

    def trim(self, at: int) -> Node:
        """TRIM([BOTH | LEADING | TRAILING] [x] [FROM] text)."""
        cursor = self.cursor
        cursor.advance()
        name = "TRIM"
        for word, function in (("BOTH", "TRIM"), ("LEADING", "LTRIM"), ("TRAILING", "RTRIM")):
            if cursor.accept_words(word):
                name = function
        characters = None if cursor.accept_words("FROM") else self.parse()
        if characters is not None and not cursor.accept_words("FROM"):
            cursor.expect_symbol(")", hint="Write TRIM(BOTH 'x' FROM text).")
            return operation(cursor, name, (characters,), at)
        operand = self.parse()
        cursor.expect_symbol(")", hint="Write TRIM(BOTH 'x' FROM text).")
        both = (operand,) if characters is None else (operand, characters)
        return operation(cursor, name, both, at)

    def substring(self, at: int) -> Node:
        """SUBSTRING(text FROM 1 [FOR 3]), and with commas."""
        cursor = self.cursor
        cursor.advance()
        text = self.parse()
        if not cursor.accept_words("FROM"):
            cursor.expect_symbol(",", hint="Write SUBSTRING(text FROM 1 FOR 3).")
            return operation(cursor, "SUBSTRING", (text, *read_arguments(cursor, self.parse)), at)
        parts = [text, self.parse()]
        if cursor.accept_words("FOR"):
            parts.append(self.parse())
        cursor.expect_symbol(")", hint="Write SUBSTRING(text FROM 1 FOR 3).")
        return operation(cursor, "SUBSTRING", tuple(parts), at)

    def overlay(self, at: int) -> Node:
        """OVERLAY(text PLACING x FROM 1 [FOR 3]), and with commas."""
        cursor = self.cursor
        cursor.advance()
        text = self.parse()
        form = "Write OVERLAY(text PLACING x FROM 1 FOR 3)."
        if not cursor.accept_words("PLACING"):
            cursor.expect_symbol(",", hint=form)
            return operation(cursor, "OVERLAY", (text, *read_arguments(cursor, self.parse)), at)
        parts = [text, self.parse()]
        cursor.expect_words("FROM", hint=form)
        parts.append(self.parse())
        if cursor.accept_words("FOR"):
            parts.append(self.parse())
        cursor.expect_symbol(")", hint=form)
        return operation(cursor, "OVERLAY", tuple(parts), at)

    def position(self, at: int) -> Node:
        """POSITION(x IN text)."""
        cursor = self.cursor
        cursor.advance()
        needle = self.operand()
        cursor.expect_words("IN", hint="Write POSITION('x' IN text).")
        text = self.operand()
        cursor.expect_symbol(")", hint="Write POSITION('x' IN text).")
        return operation(cursor, "POSITION", (needle, text), at)


SPECIAL_FORMS: dict[str, Callable[[SpecialForms, int], Node]] = {
    "CASE": SpecialForms.case,
    "CAST": SpecialForms.plain_cast,
    "TRY_CAST": SpecialForms.try_cast,
    "TRIM": SpecialForms.trim,
    "SUBSTRING": SpecialForms.substring,
    "SUBSTR": SpecialForms.substring,
    "POSITION": SpecialForms.position,
    "OVERLAY": SpecialForms.overlay,
    **TIME_FORMS,
    **JSON_FORMS,
}
