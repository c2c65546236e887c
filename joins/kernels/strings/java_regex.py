r"""Regular expressions of Java in the letters of RE2, as far as both mean the same.

| in Java | here |
|---|---|
| `.` | none of `\n`, `\r`, U+0085, U+2028, U+2029, unless `(?s)` is on |
| `{` that begins no repetition | no expression |
| `[a&&[^b]]`, `[a[b]]`, `\h`, `\R`, `\Z`, `(?=…)`, `\1`, `a++` | not known: RE2 has none |
"""

import re
from collections.abc import Callable, Mapping

_ANY = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_QUANTIFIER = re.compile(r"\{\d+(?:,\d*)?\}")
_GROUP = re.compile(r"\(\?(?:<(?P<name>[A-Za-z]\w*)>|(?P<flags>[a-z]*(?:-[a-z]+)?)[:)])", re.ASCII)
_ESCAPE = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|.)|x\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_KNOWN_ESCAPES = frozenset("dDwWsSbBAztnrfaepPxuQE")
_CLASS_ONLY_IN_JAVA = ("&&", "[")


class InvalidExpressionError(ValueError):
    """A text is no regular expression, for Java neither."""


class UnknownAnswerError(ValueError):
    """Only the engine of Java knows what an expression matches."""


def translated(expression: str) -> str:
    """The expression for RE2.

    Raises:
        InvalidExpressionError: it is none.
        UnknownAnswerError: RE2 has no equal of it.
    """
    pieces: list[str] = []
    at, dotall = 0, False
    while at < len(expression):
        if expression.startswith("(?", at):
            group = _group(expression, at)
            dotall |= "s" in (group["flags"] or "").partition("-")[0]
            named = group["name"]
            pieces.append(f"(?P<{named}>" if named else group[0])
            at = group.end()
            continue
        read = _READERS.get(expression[at])
        piece, at = (expression[at], at + 1) if read is None else read(expression, at)
        pieces.append("." if piece == _ANY and dotall else piece)
    return "".join(pieces)


def _group(expression: str, at: int) -> re.Match[str]:
    group = _GROUP.match(expression, at)
    if group is None or set(group["flags"] or "") - set("ims-"):
        raise UnknownAnswerError(expression[at : at + 4])
    return group


def _dot(expression: str, at: int) -> tuple[str, int]:
    return _ANY, at + 1


def _brace(expression: str, at: int) -> tuple[str, int]:
    quantifier = _QUANTIFIER.match(expression, at)
    if quantifier is None:
        raise InvalidExpressionError(expression)
    return _repeated(expression, at, quantifier[0])


def _repetition(expression: str, at: int) -> tuple[str, int]:
    return _repeated(expression, at, expression[at])


def _repeated(expression: str, at: int, text: str) -> tuple[str, int]:
    if expression[at + len(text) : at + len(text) + 1] == "+":
        raise UnknownAnswerError(f"{text}+")
    return text, at + len(text)


def _escape(expression: str, at: int) -> tuple[str, int]:
    if expression.startswith(r"\Q", at):
        end = expression.find(r"\E", at + 2)
        stop = len(expression) if end < 0 else end
        return re.escape(expression[at + 2 : stop]), len(expression) if end < 0 else end + 2
    escape = _ESCAPE.match(expression, at)
    if escape is None:
        raise InvalidExpressionError(expression)
    letter = escape[0][1]
    if letter.isascii() and letter.isalnum() and letter not in _KNOWN_ESCAPES:
        raise UnknownAnswerError(escape[0])
    if letter == "u":
        return rf"\x{{{escape[0][2:]}}}", escape.end()
    return (r"\x1b" if letter == "e" else escape[0]), escape.end()


def _class(expression: str, at: int) -> tuple[str, int]:
    """An enumeration `[…]`."""
    pieces, place = ["["], at + 1
    if expression.startswith("^", place):
        pieces.append("^")
        place += 1
    first = place
    while place < len(expression):
        character = expression[place]
        if character == "]" and place > first:
            return "".join([*pieces, "]"]), place + 1
        if expression.startswith(_CLASS_ONLY_IN_JAVA, place):
            raise UnknownAnswerError(expression[at : place + 2])
        if character == "\\":
            piece, place = _escape(expression, place)
            pieces.append(piece)
        else:
            pieces.append(r"\]" if character == "]" else character)
            place += 1
    raise InvalidExpressionError(expression)


_READERS: Mapping[str, Callable[[str, int], tuple[str, int]]] = {
    ".": _dot,
    "{": _brace,
    "*": _repetition,
    "+": _repetition,
    "?": _repetition,
    "\\": _escape,
    "[": _class,
}
