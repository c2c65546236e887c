"""Expressions: operator precedence over the token cursor, depth counted, nothing resolved."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from service.sql.grammar.cursor import TokenCursor, depth_over, operation, read_arguments, too_deep
from service.sql.grammar.expression_nodes import (
    AggregateNode,
    FunctionCall,
    Literal,
    LiteralKind,
    Name,
    Node,
    Reference,
    RowNumberNode,
    SortNode,
)
from service.sql.grammar.literal_parser import fraction, plain_literal, time_literal
from service.sql.grammar.special_forms import SPECIAL_FORMS, SpecialForms, is_json
from service.sql.grammar.type_parser import MAX_TYPE_DEPTH
from service.sql.text.dialect import MAX_DEPTH, SqlTokenKind
from service.sql.text.script import OUTSIDE, Script, SqlError

AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "LISTAGG", "FIRST_VALUE", "LAST_VALUE")
_FORM = "Write COUNT(*), COUNT(DISTINCT x), SUM(x) FILTER (WHERE y > 0) or LISTAGG(x, ', ')."


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The tokens behind the name of an aggregate, parsed."""

    arguments: tuple[Node, ...]
    distinct: bool
    where: Node | None


def read_aggregate(
    cursor: TokenCursor, parse: Callable[[], Node], name: str, at: int
) -> Aggregated:
    """Read the rest of an aggregate behind its opening parenthesis; `at` is its name's offset."""
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
    if cursor.at_words("FILTER"):
        raise cursor.script.error(cursor.at, "FILTER is not supported here", hint=_FORM)
    if not cursor.at_words("OVER"):
        return
    if name in _RANKS:
        raise rank_refused(cursor.script, name, at)
    raise cursor.script.error(
        at,
        f"{name[:100]}(…) OVER (…) keeps the rows before each one",
        hint=f"{OUTSIDE} {_OVER_FORM}",
    )


def rank_refused(script: Script, name: str, at: int) -> SqlError:
    return script.error(
        at,
        f"{name}() OVER (…) keeps rows of every key, to number them",
        hint=f"{OUTSIDE} "
        "For the newest row of each key write to an upsert-kafka table with that PRIMARY "
        "KEY; for the first rows of a window number them by ROW_NUMBER() OVER (PARTITION BY "
        "window_start, window_end ORDER BY x DESC).",
    )


def read_row_number(cursor: TokenCursor, parse: Callable[[], Node], at: int) -> RowNumberNode:
    """Read `OVER (PARTITION BY … ORDER BY …)` behind ROW_NUMBER()."""
    form = "Write ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC)."
    cursor.expect_words("OVER", hint=form)
    cursor.expect_symbol("(", hint=form)
    partition: list[Node] = []
    if cursor.accept_words("PARTITION", "BY"):
        partition.append(parse())
        while cursor.accept_symbol(","):
            partition.append(parse())
    order: list[SortNode] = []
    cursor.expect_words("ORDER", "BY", hint=form)
    while not order or cursor.accept_symbol(","):
        part = parse()
        descending = nulls_last = cursor.accept_words("DESC")
        if not descending:
            cursor.accept_words("ASC")
        if cursor.accept_words("NULLS"):
            nulls_last = not cursor.accept_words("FIRST")
            if nulls_last:
                cursor.expect_words("LAST", hint="Write NULLS FIRST or NULLS LAST.")
        order.append(SortNode(part, descending, nulls_last))
    cursor.expect_symbol(")", hint=form)
    depth = depth_over(cursor, (*partition, *(part.expression for part in order)), at)
    return RowNumberNode(tuple(partition), tuple(order), at, depth)


_PATTERNS = {
    "ILIKE": "Write LOWER(x) LIKE 'a%'.",
    "RLIKE": "Write REGEXP(x, '^a').",
    "REGEXP": "Write REGEXP(x, '^a').",
}


def refuse_pattern(cursor: TokenCursor) -> None:
    """Refuse pattern matches that Flink does not have; the word may also be an alias."""
    first = 1 if cursor.at_words("NOT") else 0
    word, follows = cursor.ahead(first), cursor.ahead(first + 1)
    name = word.text.upper()
    is_word = word.kind is SqlTokenKind.WORD and name in _PATTERNS
    if is_word and follows.kind is SqlTokenKind.STRING:
        raise cursor.script.error(word.start, f"{name} is not supported", hint=_PATTERNS[name])


_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _UNARY = 1, 2, 3, 4, 5, 6, 7
_BINARY = {
    "+": _SUM,
    "-": _SUM,
    "||": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
}
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")
_SIGNED = (
    LiteralKind.NUMBER,
    LiteralKind.INTERVAL,
    LiteralKind.INTERVAL_DAYS,
    LiteralKind.INTERVAL_MONTHS,
)
_BARE_FUNCTIONS = frozenset(
    ("CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME")
)
_NO_SUBQUERY = f"{OUTSIDE} Join the table with FOR SYSTEM_TIME AS OF instead."
_UNSUPPORTED_WORDS = {
    "SELECT": ("a subquery", _NO_SUBQUERY),
    "EXISTS": ("EXISTS", _NO_SUBQUERY),
    "ARRAY": ("an ARRAY of this form", "Write ARRAY[a, b]."),
    "MAP": ("a MAP of this form", "Write MAP['key', value]."),
}


class ExpressionParser:
    """Reads one expression after another from a cursor."""

    def __init__(self, cursor: TokenCursor) -> None:
        self._cursor = cursor
        self._special = SpecialForms(cursor, self.parse, partial(self.parse, _SUM))
        self._nesting = 0

    def parse(self, level: int = _OR) -> Node:
        """Read an expression whose operators bind at least as strongly as `level`."""
        self._nesting += 1
        if self._nesting > MAX_DEPTH:
            raise too_deep(self._cursor, self._cursor.at)
        left = self._prefix()
        while (longer := self._infix(left, level)) is not None:
            left = longer
        self._nesting -= 1
        return left

    def _infix(self, left: Node, level: int) -> Node | None:
        cursor = self._cursor
        token = cursor.token
        if (
            token.kind is SqlTokenKind.SYMBOL
            and token.text in _BINARY
            and _BINARY[token.text] >= level
        ):
            cursor.advance()
            return self._joined(token.text, token.start, left, _BINARY[token.text] + 1)
        if level <= _PREDICATE:
            predicate = self._predicate(left)
            if predicate is not None:
                return predicate
        if level <= _AND and cursor.accept_words("AND"):
            return self._joined("AND", token.start, left, _NOT)
        if level <= _OR and cursor.accept_words("OR"):
            return self._joined("OR", token.start, left, _AND)
        return None

    def _joined(self, name: str, at: int, left: Node, level: int) -> Node:
        right = self.parse(level)
        if name in ("AND", "OR", "||") and isinstance(left, FunctionCall) and left.name == name:
            return self._operation(name, (*left.arguments, right), left.at)
        return self._operation(name, (left, right), at)

    def _predicate(self, left: Node) -> Node | None:
        cursor, token = self._cursor, self._cursor.token
        if token.kind is SqlTokenKind.SYMBOL and token.text in _COMPARISONS:
            cursor.advance()
            name = "<>" if token.text == "!=" else token.text
            return self._operation(name, (left, self.parse(_SUM)), token.start)
        if cursor.accept_words("IS"):
            return self._is(left, token.start)
        refuse_pattern(cursor)
        negated = cursor.at_words("NOT") and cursor.ahead(1).text.upper() in (
            "IN",
            "LIKE",
            "BETWEEN",
            "SIMILAR",
        )
        if negated:
            cursor.advance()
        result = self._range(left, token.start)
        if result is None or not negated:
            return result
        return self._operation("NOT", (result,), token.start)

    def _range(self, left: Node, at: int) -> Node | None:
        cursor = self._cursor
        if cursor.accept_words("IN"):
            cursor.expect_symbol("(", hint="Write x IN (1, 2, 3).")
            return self._operation("IN", (left, *read_arguments(cursor, self.parse)), at)
        if cursor.accept_words("LIKE"):
            return self._like("LIKE", left, at)
        if cursor.accept_words("SIMILAR", "TO"):
            return self._like("SIMILAR", left, at)
        if cursor.accept_words("OVERLAPS"):
            return self._operation("OVERLAPS", (left, self.parse(_SUM)), at)
        if cursor.accept_words("BETWEEN"):
            name = "BETWEEN SYMMETRIC" if cursor.accept_words("SYMMETRIC") else "BETWEEN"
            cursor.accept_words("ASYMMETRIC")
            low = self.parse(_SUM)
            cursor.expect_words("AND", hint="Write x BETWEEN low AND high.")
            return self._operation(name, (left, low, self.parse(_SUM)), at)
        return None

    def _like(self, name: str, left: Node, at: int) -> Node:
        pattern = self.parse(_SUM)
        if self._cursor.accept_words("ESCAPE"):
            return self._operation(name, (left, pattern, self.parse(_SUM)), at)
        return self._operation(name, (left, pattern), at)

    def _is(self, left: Node, at: int) -> Node:
        cursor = self._cursor
        negated = "NOT " if cursor.accept_words("NOT") else ""
        if cursor.accept_words("DISTINCT", "FROM"):
            right = self.parse(_SUM)
            return self._operation(f"IS {negated}DISTINCT FROM", (left, right), at)
        for word in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
            if cursor.accept_words(word):
                return self._operation(f"IS {negated}{word}", (left,), at)
        of_json = is_json(cursor, left, at)
        if of_json is not None:
            return self._operation("NOT", (of_json,), at) if negated else of_json
        raise cursor.unexpected(
            "NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM", hint="Write x IS NOT NULL."
        )

    def _prefix(self) -> Node:
        node = self._operand()
        cursor = self._cursor
        while not isinstance(node, Literal):
            at = cursor.at
            if cursor.accept_symbol("["):
                index = self.parse()
                cursor.expect_symbol("]", hint="Write array[1] or map['key'].")
                node = self._operation("[]", (node, index), at)
            elif cursor.accept_symbol("."):
                field = cursor.name("a field name")
                name = Literal(LiteralKind.STRING, field.text, field.at)
                node = self._operation(".", (node, name), at)
            else:
                break
        return node

    def _operand(self) -> Node:
        cursor, token = self._cursor, self._cursor.token
        if cursor.accept_symbol("("):
            return self._parenthesis()
        if token.kind is SqlTokenKind.SYMBOL and token.text in ("-", "+"):
            cursor.advance()
            operand = self.parse(_UNARY)
            return operand if token.text == "+" else self._negated(operand, token.start)
        if token.kind in (SqlTokenKind.NUMBER, SqlTokenKind.STRING, SqlTokenKind.HEX):
            return plain_literal(cursor)
        if cursor.at_symbol(".") and cursor.ahead(1).kind is SqlTokenKind.NUMBER:
            return fraction(cursor)
        if token.kind is SqlTokenKind.WORD:
            return self._word()
        if token.kind is SqlTokenKind.QUOTED_NAME:
            opens = cursor.ahead(1).kind is SqlTokenKind.SYMBOL and cursor.ahead(1).text == "("
            return self._call(token.text.upper()) if opens else self._reference()
        raise cursor.unexpected("an expression", hint="Write a column, a literal or a function.")

    def _parenthesis(self) -> Node:
        at = self._cursor.at
        inner = self.parse()
        if self._cursor.accept_symbol(","):
            return self._operation("ROW", (inner, *read_arguments(self._cursor, self.parse)), at)
        self._cursor.expect_symbol(")", hint="Close the parenthesis.")
        return inner

    def _negated(self, operand: Node, at: int) -> Node:
        if isinstance(operand, Literal) and operand.kind in _SIGNED:
            text = operand.text[1:] if operand.text.startswith("-") else "-" + operand.text
            return Literal(operand.kind, text, at)
        return self._operation("NEG", (operand,), at)

    def _word(self) -> Node:
        cursor, token = self._cursor, self._cursor.token
        word = token.text.upper()
        if word in _UNSUPPORTED_WORDS and not self._is_plain_name():
            return self._array(word)
        if word == "NOT":
            cursor.advance()
            return self._operation("NOT", (self.parse(_NOT),), token.start)
        if word in ("TRUE", "FALSE", "NULL"):
            cursor.advance()
            kind = LiteralKind.NULL if word == "NULL" else LiteralKind.BOOLEAN
            return Literal(kind, word.lower(), token.start)
        time = time_literal(cursor)
        if time is not None:
            return time
        if word in SPECIAL_FORMS and (
            word == "CASE"
            or (cursor.ahead(1).text == "(" and cursor.ahead(1).kind is SqlTokenKind.SYMBOL)
        ):
            cursor.advance()
            return SPECIAL_FORMS[word](self._special, token.start)
        if cursor.ahead(1).kind is SqlTokenKind.SYMBOL and cursor.ahead(1).text == "(":
            return self._call(word)
        if word in _BARE_FUNCTIONS:
            cursor.advance()
            return self._operation(word, (), token.start)
        return self._reference()

    def _array(self, word: str) -> Node:
        cursor, at = self._cursor, self._cursor.at
        if word not in ("ARRAY", "MAP") or cursor.ahead(1).text != "[":
            what, hint = _UNSUPPORTED_WORDS[word]
            raise cursor.script.error(at, f"{what} is not supported", hint=hint)
        cursor.advance()
        cursor.advance()
        return self._operation(word, read_arguments(cursor, self.parse, "]"), at)

    def _is_plain_name(self) -> bool:
        follows = self._cursor.ahead(1)
        opens = follows.kind is SqlTokenKind.SYMBOL and follows.text in ("(", "[")
        return self._cursor.at_name() and not opens and follows.kind is not SqlTokenKind.STRING

    def _reference(self) -> Node:
        cursor = self._cursor
        at = cursor.at
        parts: list[Name] = [cursor.name("an expression")]
        while cursor.accept_symbol("."):
            parts.append(cursor.name("a column name"))
        if len(parts) > MAX_TYPE_DEPTH + 1:
            raise cursor.script.error(
                at,
                f"a name has more than {MAX_TYPE_DEPTH + 1} parts",
                hint="Write alias.column, and the fields of a ROW behind it.",
            )
        return Reference(tuple(parts), at)

    def _call(self, word: str) -> Node:
        cursor = self._cursor
        at = cursor.advance().start
        cursor.advance()
        if word in AGGREGATES:
            parts = read_aggregate(cursor, self.parse, word, at)
            used = parts.arguments if parts.where is None else (*parts.arguments, parts.where)
            depth = depth_over(cursor, used, at)
            return AggregateNode(word, parts.arguments, parts.distinct, parts.where, at, depth)
        if cursor.accept_symbol(")"):
            if word == "ROW_NUMBER":
                return read_row_number(cursor, self.parse, at)
            refuse_over(cursor, word, at)
            return self._operation(word, (), at)
        if cursor.at_symbol("*") or cursor.at_words("DISTINCT") or cursor.at_words("ALL"):
            known = "Aggregates are " + ", ".join(AGGREGATES) + "."
            raise cursor.script.error(at, f"{word[:100]} is not an aggregate function", hint=known)
        arguments = read_arguments(cursor, self.parse)
        refuse_over(cursor, word, at)
        return self._operation(word, arguments, at)

    def _operation(self, name: str, arguments: tuple[Node, ...], at: int) -> FunctionCall:
        return operation(self._cursor, name, arguments, at)
