"""Functions with words between their arguments: CASE, CAST, TRIM, SUBSTRING, EXTRACT, JSON_…."""

from collections.abc import Callable

from service.sql.grammar.cursor import (
    FormReader,
    TokenCursor,
    depth_over,
    named,
    operation,
    read_arguments,
)
from service.sql.grammar.expression_nodes import (
    CaseNode,
    CastNode,
    FunctionCall,
    Literal,
    LiteralKind,
    Node,
)
from service.sql.grammar.type_parser import parse_type
from service.sql.text.dialect import SqlTokenKind
from service.sql.text.script import suggestion

FORMS_OF_JSON = ("VALUE", "SCALAR", "ARRAY", "OBJECT")
_EXISTS = "Write JSON_EXISTS(text, 'lax $.a' FALSE ON ERROR)."
_VALUE = "Write JSON_VALUE(text, '$.a' RETURNING INT NULL ON EMPTY DEFAULT 0 ON ERROR)."
_QUERY = "Write JSON_QUERY(text, '$.a' RETURNING STRING WITH WRAPPER NULL ON EMPTY NULL ON ERROR)."
_OBJECT = "Write JSON_OBJECT(KEY 'a' VALUE x, KEY 'b' VALUE y ABSENT ON NULL)."
_ARRAY = "Write JSON_ARRAY(x, y NULL ON NULL)."
_EMPTIES = (("NULL",), ("ERROR",), ("EMPTY", "ARRAY"), ("EMPTY", "OBJECT"))


def _opened(reader: FormReader, form: str) -> tuple[Node, Node]:
    cursor = reader.cursor
    cursor.advance()
    text = reader.parse()
    cursor.expect_symbol(",", hint=form)
    return text, reader.parse()


def _closed(reader: FormReader, name: str, parts: tuple[Node, ...], at: int, form: str) -> Node:
    reader.cursor.expect_symbol(")", hint=form)
    return operation(reader.cursor, name, parts, at)


def _exists(reader: FormReader, at: int) -> Node:
    cursor = reader.cursor
    text, path = _opened(reader, _EXISTS)
    rule = named("FALSE", at)
    for word in ("TRUE", "FALSE", "UNKNOWN", "ERROR"):
        if cursor.at_words(word):
            rule = named(word, cursor.advance().start)
            cursor.expect_words("ON", "ERROR", hint=_EXISTS)
            break
    return _closed(reader, "JSON_EXISTS", (text, path, rule), at, _EXISTS)


def _returning(cursor: TokenCursor, at: int) -> Node:
    """The type of RETURNING as a typed NULL; an untyped NULL without RETURNING."""
    nothing = Literal(LiteralKind.NULL, "null", at)
    if not cursor.accept_words("RETURNING"):
        return nothing
    return CastNode(nothing, parse_type(cursor), False, at, depth_over(cursor, [nothing], at))


def _value(reader: FormReader, at: int) -> Node:
    cursor = reader.cursor
    text, path = _opened(reader, _VALUE)
    kind = _returning(cursor, at)
    rules: dict[str, tuple[Node, Node]] = {}
    nothing = Literal(LiteralKind.NULL, "null", at)
    while cursor.at_words("NULL") or cursor.at_words("ERROR") or cursor.at_words("DEFAULT"):
        rule, default = named(cursor.token.text.upper(), cursor.advance().start), nothing
        if rule.text == "DEFAULT":
            default = reader.operand()  # type: ignore[assignment] # any expression
        cursor.expect_words("ON", hint=_VALUE)
        _ruled(cursor, rules, (rule, default), _VALUE)
    usual = (named("NULL", at), nothing)
    empty, error = rules.get("EMPTY", usual), rules.get("ERROR", usual)
    parts = (text, path, empty[0], error[0], empty[1], error[1], kind)
    return _closed(reader, "JSON_VALUE", parts, at, _VALUE)


def _ruled(
    cursor: TokenCursor,
    rules: dict[str, tuple[Node, Node]],
    rule: tuple[Node, Node],
    form: str,
) -> None:
    for case in ("EMPTY", "ERROR"):
        if case not in rules and cursor.accept_words(case):
            rules[case] = rule
            return
    raise cursor.unexpected("EMPTY or ERROR", hint=form)


def _query(reader: FormReader, at: int) -> Node:
    cursor = reader.cursor
    text, path = _opened(reader, _QUERY)
    kind = _returning(cursor, at)
    wrapper = named(_wrapper(cursor), at)
    rules: dict[str, tuple[Node, Node]] = {}
    while (words := next((w for w in _EMPTIES if cursor.at_words(*w)), None)) is not None:
        rule = named(" ".join(words), cursor.at)
        cursor.accept_words(*words)
        cursor.expect_words("ON", hint=_QUERY)
        _ruled(cursor, rules, (rule, rule), _QUERY)
    usual = (named("NULL", at),) * 2
    empty, error = rules.get("EMPTY", usual), rules.get("ERROR", usual)
    return _closed(
        reader, "JSON_QUERY", (text, path, wrapper, empty[0], error[0], kind), at, _QUERY
    )


def _wrapper(cursor: TokenCursor) -> str:
    if cursor.accept_words("WITHOUT"):
        cursor.accept_words("ARRAY")
        cursor.expect_words("WRAPPER", hint=_QUERY)
        return "WITHOUT"
    if not cursor.accept_words("WITH"):
        return "WITHOUT"
    conditional = cursor.accept_words("CONDITIONAL")
    if not conditional:
        cursor.accept_words("UNCONDITIONAL")
    cursor.accept_words("ARRAY")
    cursor.expect_words("WRAPPER", hint=_QUERY)
    return "CONDITIONAL" if conditional else "UNCONDITIONAL"


def _object(reader: FormReader, at: int) -> Node:
    cursor = reader.cursor
    cursor.advance()
    parts: list[Node] = []
    while not cursor.at_symbol(")") and not _at_rule(cursor):
        cursor.accept_words("KEY")
        parts.append(reader.operand())
        cursor.expect_words("VALUE", hint=_OBJECT)
        parts.append(reader.parse())
        if not cursor.accept_symbol(","):
            break
    rule = _on_null(cursor, "NULL", at, _OBJECT)
    return _closed(reader, "JSON_OBJECT", (rule, *parts), at, _OBJECT)


def _array(reader: FormReader, at: int) -> Node:
    cursor = reader.cursor
    cursor.advance()
    parts: list[Node] = []
    while not cursor.at_symbol(")") and not _at_rule(cursor):
        parts.append(reader.parse())
        if not cursor.accept_symbol(","):
            break
    rule = _on_null(cursor, "ABSENT", at, _ARRAY)
    return _closed(reader, "JSON_ARRAY", (rule, *parts), at, _ARRAY)


def _at_rule(cursor: TokenCursor) -> bool:
    return cursor.at_words("NULL", "ON") or cursor.at_words("ABSENT", "ON")


def _on_null(cursor: TokenCursor, usual: str, at: int, form: str) -> Node:
    if not _at_rule(cursor):
        return named(usual, at)
    word = cursor.advance()
    cursor.expect_words("ON", "NULL", hint=form)
    return named(word.text.upper(), word.start)


def is_json(cursor: TokenCursor, operand: Node, at: int) -> FunctionCall | None:
    """`JSON [VALUE | SCALAR | ARRAY | OBJECT]` behind IS; None if another token comes next."""
    if not cursor.accept_words("JSON"):
        return None
    form = next((word for word in FORMS_OF_JSON if cursor.accept_words(word)), "VALUE")
    return operation(cursor, "IS JSON", (operand, named(form, at)), at)


JSON_FORMS: dict[str, Callable[[FormReader, int], Node]] = {
    "JSON_EXISTS": _exists,
    "JSON_VALUE": _value,
    "JSON_QUERY": _query,
    "JSON_OBJECT": _object,
    "JSON_ARRAY": _array,
}


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
    token = cursor.token
    word = token.text.upper().removeprefix(_CALLED_BEFORE)
    if token.kind is not SqlTokenKind.WORD or word not in known:
        hint = suggestion(word[:20], known, "Units are " + ", ".join(known) + ".")
        raise cursor.unexpected("a unit", hint=hint)
    cursor.advance()
    return named(word, token.start)


def extract(reader: FormReader, at: int) -> Node:
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


class SpecialForms(FormReader):
    """Reads such functions; the cursor is behind the function's word, whose offset is `at`."""

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
        return self._spaced("SUBSTRING", at, "Write SUBSTRING(text FROM 1 FOR 3).", "FROM")

    def overlay(self, at: int) -> Node:
        form = "Write OVERLAY(text PLACING x FROM 1 FOR 3)."
        return self._spaced("OVERLAY", at, form, "PLACING", "FROM")

    def _spaced(self, name: str, at: int, form: str, first: str, *others: str) -> Node:
        """`text` and an argument behind each word, the last one [FOR 3]; also with commas."""
        cursor = self.cursor
        cursor.advance()
        parts = [self.parse()]
        if not cursor.accept_words(first):
            cursor.expect_symbol(",", hint=form)
            return operation(cursor, name, (*parts, *read_arguments(cursor, self.parse)), at)
        parts.append(self.parse())
        for word in others:
            cursor.expect_words(word, hint=form)
            parts.append(self.parse())
        if cursor.accept_words("FOR"):
            parts.append(self.parse())
        cursor.expect_symbol(")", hint=form)
        return operation(cursor, name, tuple(parts), at)

    def position(self, at: int) -> Node:
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
