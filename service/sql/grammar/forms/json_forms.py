"""Functions of JSON whose arguments have words between them: JSON_VALUE, JSON_OBJECT, IS JSON."""

from collections.abc import Callable

from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import (
    CastNode,
    FunctionCall,
    Literal,
    LiteralKind,
    Node,
)
from service.sql.grammar.operations import FormReader, depth_over, named, operation
from service.sql.grammar.type_parser import parse_type

FORMS_OF_JSON = ("VALUE", "SCALAR", "ARRAY", "OBJECT")
_EXISTS = "Write JSON_EXISTS(text, 'lax $.a' FALSE ON ERROR)."
_VALUE = "Write JSON_VALUE(text, '$.a' RETURNING INT NULL ON EMPTY DEFAULT 0 ON ERROR)."
_QUERY = "Write JSON_QUERY(text, '$.a' RETURNING STRING WITH WRAPPER NULL ON EMPTY NULL ON ERROR)."
_OBJECT = "Write JSON_OBJECT(KEY 'a' VALUE x, KEY 'b' VALUE y ABSENT ON NULL)."
_ARRAY = "Write JSON_ARRAY(x, y NULL ON NULL)."
_EMPTIES = (("NULL",), ("ERROR",), ("EMPTY", "ARRAY"), ("EMPTY", "OBJECT"))


def _opened(reader: FormReader, form: str) -> tuple[Node, Node]:
    """The text and the path."""
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
    """RETURNING type, as a NULL of this type; a NULL without one if nothing is said."""
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
    """Take EMPTY or ERROR, and keep the rule for it."""
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
    """`JSON [VALUE | SCALAR | ARRAY | OBJECT]` behind IS, if it comes next."""
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
