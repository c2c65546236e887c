r"""Regular expressions of Java by RE2, linear in the text; SIMILAR TO.

An expression that Java refuses has no match: NULL, or FALSE of REGEXP. One that Java takes and RE2
does not (`[a&&[^b]]`, `[a[b]]`, `\h`, `\R`, `\Z`, `(?=…)`, `\1`, `a++`) fails the row. So does a
text on which both differ: Java ends a line with `\n`, `\r`, U+0085, U+2028 or U+2029, and has `$`
before the last one, too; its `(?m)^` is never at the end of a text; its `(?i)` is for ASCII only;
and `\b` depends on the release of Java for letters that are not ASCII.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import re2

from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.conversion import rowwise
from joins.kernels.expressions.operation import (
    Function,
    Operation,
    Sizes,
    bounded,
    bytes_of,
    grown,
    of_rows,
)

_LINE_BREAKS = ("\n", "\r", "\x85", "\u2028", "\u2029")
_LEADING = re.compile(r"\(\?([ims]+)\)")
_OFF = re.compile(r"\(\?[ims]*-([ims]+)[:)]")
_ANY = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_QUANTIFIER = re.compile(r"\{\d+(?:,\d*)?\}")
_GROUP = re.compile(r"\(\?(?:<(?P<name>[A-Za-z]\w*)>|(?P<flags>[a-z]*(?:-[a-z]+)?)[:)])", re.ASCII)
_ESCAPE = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|.)|x\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_KNOWN_ESCAPES = frozenset("dDwWsSbBAztnrfaepPxuQE")
_SPACES = {"s": r"\x{9}-\x{d} ", "S": r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{10ffff}"}  # with \v
_CASES = ("Lu", "Ll", "Lt")
_CLASS_ONLY_IN_JAVA = ("&&", "[")


class InvalidExpressionError(ValueError):
    """A text is no regular expression, not even in Java."""


class UnknownAnswerError(ValueError):
    """Only the engine of Java can evaluate the expression."""


def translated(expression: str) -> tuple[str, frozenset[str]]:
    """The expression for RE2, and what in it depends on the text.

    That is `.`, `^`, `$`, `b`, `B`, a flag that is on somewhere, in capitals one that is on
    everywhere. Raises InvalidExpressionError or UnknownAnswerError.
    """
    pieces: list[str] = []
    leading, off = _LEADING.match(expression), "".join(_OFF.findall(expression))
    traits = set() if leading is None else set(leading[1].upper()) - set(off.upper())
    names = set[str]()
    at = 0
    while at < len(expression):
        if expression.startswith("(?", at):
            group = _group(expression, at)
            traits.update((group["flags"] or "").partition("-")[0])
            named = group["name"]
            if named in names:
                raise InvalidExpressionError(named)
            if named:
                names.add(named)
            pieces.append(f"(?P<{named}>" if named else group[0])
            at = group.end()
            continue
        read = _READERS.get(expression[at])
        piece, end = (expression[at], at + 1) if read is None else read(expression, at)
        if expression[at] in ".^$":
            traits.add(expression[at])
        elif piece in (r"\b", r"\B"):
            traits.add(piece[1])
        elif expression[at] == "\\" and expression[at + 1] in _SPACES:
            piece = f"[{piece}]"
        pieces.append(piece)
        at = end
    if "s" not in traits:
        pieces = [_ANY if piece == "." else piece for piece in pieces]
    return "".join(pieces), frozenset(traits)


def _group(expression: str, at: int) -> re.Match[str]:
    group = _GROUP.match(expression, at)
    if group is None or set(group["flags"] or "") - set("ims-"):
        raise UnknownAnswerError(expression[at : at + 4])
    if "i" in (group["flags"] or "").partition("-")[0] and not _is_ascii(expression):
        raise UnknownAnswerError("(?i) and a character that is not ASCII, or a class by case")
    if group[0][-1] == ")" and expression[group.end() : group.end() + 1] in ("*", "+", "?", "{"):
        raise UnknownAnswerError(expression[at : group.end() + 1])
    return group


def _is_ascii(expression: str) -> bool:
    escapes = _ESCAPE.findall(expression)
    codes = (each[2:].strip("{}") for each in escapes if each[1] in "xu")
    by_case = any(each[1] in "pP" and each[2:].strip("{^")[:2] in _CASES for each in escapes)
    return (
        expression.isascii() and not by_case and all(int(code or "0", 16) < 128 for code in codes)
    )


def _zero_width(expression: str, at: int) -> tuple[str, int]:
    return f"(?:{expression[at]})", at + 1  # Java lets it be repeated


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
    if letter in _SPACES:
        return _SPACES[letter], escape.end()
    if letter == "u":
        return rf"\x{{{escape[0][2:]}}}", escape.end()
    return (r"\x1b" if letter == "e" else escape[0]), escape.end()


def _class(expression: str, at: int) -> tuple[str, int]:
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
    "^": _zero_width,
    "$": _zero_width,
    "{": _brace,
    "*": _repetition,
    "+": _repetition,
    "?": _repetition,
    "\\": _escape,
    "[": _class,
}


MAX_EXPRESSION = 10_000
_MEMORY = 8 << 20
_ELEMENT = 6  # a byte as an element of a list: itself, where it ends, and a mark
# Errors of RE2 for expressions that Java refuses, too.
_INVALID = ("missing ", "unexpected )", "no argument", "trailing ", "bad repetition")
_FOLDED = "\u017f\u212a"  # to s and k by RE2, as (?iu) of Java
Expression = Any


def compiled(expression: str) -> Expression | None:
    """The expression for RE2, None if invalid; raises UnknownAnswerError if only Java has it."""
    return _read(expression)[0]


@lru_cache(maxsize=512)
def _read(expression: str) -> tuple[Expression | None, frozenset[str]]:
    """As `compiled`, and what of the expression depends on the text, as `translated`."""
    if len(expression) > MAX_EXPRESSION:
        raise UnknownAnswerError(f"a regular expression of {len(expression)} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        text, traits = translated(expression)
        return re2.compile(text, options), traits
    except InvalidExpressionError:
        return None, frozenset()
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
        if reason.startswith(_INVALID) and "{" not in reason:  # Java has {2} of nothing
            return None, frozenset()
        raise UnknownAnswerError(reason) from error


def _by(expression: str, text: str) -> Expression | None:
    """As `compiled`; raises UnknownAnswerError also if Java may answer otherwise for this text."""
    by, traits = _read(expression)
    if traits:
        _check(by, traits, text)
    return by


def _check(by: Expression, traits: frozenset[str], text: str) -> None:
    of_lines = "m" in traits and not traits.isdisjoint("^$")
    some_dots = "s" in traits and "S" not in traits and "." in traits
    if (of_lines or some_dots) and any(each in text for each in _LINE_BREAKS[1:]):
        raise UnknownAnswerError("a line break that RE2 takes for a character")
    if "$" in traits and "M" not in traits and text.endswith(_LINE_BREAKS):
        raise UnknownAnswerError("$ and a line break, behind which RE2 has another end")
    may_begin_line = of_lines and "^" in traits and text[-1:] in ("", "\n")
    if may_begin_line and any(match.end() == len(text) for match in by.finditer(text)):
        raise UnknownAnswerError("(?m)^ at the end of a text")
    if text.isascii():
        return
    if "B" in traits or ("b" in traits and any(map(_is_word, text))):
        raise UnknownAnswerError(r"\b and a character that is not ASCII")
    if "i" in traits and any(each in text for each in _FOLDED):
        raise UnknownAnswerError("(?i) and a letter that RE2 takes for another")


def _is_word(character: str) -> bool:
    return character > "\x7f" and unicodedata.category(character)[0] in "LNM"


def _regexp(text: str, expression: str) -> bool:
    found_by = _by(expression, text) if expression else None
    return found_by is not None and found_by.search(text) is not None


def _replaced(text: str, expression: str, new: str) -> str | None:
    by = _by(expression, text)
    if by is None:
        return None
    pieces, at = [], 0
    for match in matches(by, text):
        pieces += [text[at : match.start()], new]
        at = match.end()
    return "".join([*pieces, text[at:]])


def _replaced_bytes(op: Operation) -> Sizes:
    text, new = bytes_of(op.array(0)), bytes_of(op.array(2))
    return text + (text + 1) * new


def _extract(text: str, expression: str, group: int = 0) -> str | None:
    by = _by(expression, text)
    match = None if by is None else by.search(text)
    if match is None or not 0 <= group <= match.re.groups:
        return None
    part: str | None = match.group(group)
    return part


def _extract_all(text: str, expression: str, group: int = 1) -> list[str | None] | None:
    by = _by(expression, text)
    if by is None or not 0 <= group <= by.groups:
        return None
    return [match.group(group) for match in matches(by, text)]


def matches(by: Expression, text: str) -> Iterator[Any]:
    """The matches as Java finds them; `finditer` has an empty one twice if it is further on."""
    before = None
    for match in by.finditer(text):
        if match.span() != before:
            yield match
        before = match.span()


def _count(text: str, expression: str) -> int | None:
    by = _by(expression, text)
    return None if by is None else sum(1 for _ in matches(by, text))


def _place(text: str, expression: str) -> int | None:
    by = _by(expression, text)
    if by is None:
        return None
    match = by.search(text)
    return 0 if match is None else int(match.start()) + 1


def _first(text: str, expression: str) -> str | None:
    return _extract(text, expression)


def split_parts(text: str, expression: str, most: int = 0) -> list[str] | None:
    """The text between the matches, as `String.split`: no empty strings at the end."""
    by = _by(expression, text)
    if by is None:
        return None
    parts: list[str] = []
    at = 0
    for match in matches(by, text):
        if match.end() == 0 or (most and len(parts) == most):
            continue
        parts.append(text[at : match.start()])
        at = match.end()
    parts.append(text[at:])
    while most == 0 and len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _str_to_map(text: str, between: str = ",", inside: str = "=") -> list[tuple[str, str | None]]:
    pairs: dict[str, str | None] = {}
    for part in _parts(text, between) if text else ():
        key, *value = _parts(part, inside, most=1)
        pairs[key if value else part] = value[0] if value else None
    return list(pairs.items())


def _parts(text: str, expression: str, most: int = 0) -> list[str]:
    parts = split_parts(text, expression, most)
    if parts is None:
        raise ValueError(expression)
    return parts


REGULAR: Mapping[str, Function] = {
    "REGEXP": of_rows(_regexp),
    "REGEXP_REPLACE": bounded(of_rows(_replaced), _replaced_bytes),
    "REGEXP_EXTRACT": of_rows(_extract),
    "REGEXP_EXTRACT_ALL": grown(of_rows(_extract_all), _ELEMENT),
    "REGEXP_COUNT": of_rows(_count),
    "REGEXP_INSTR": of_rows(_place),
    "REGEXP_SUBSTR": of_rows(_first),
    "STR_TO_MAP": grown(of_rows(_str_to_map), 2 * _ELEMENT),
}


_CLASSES = {
    "[:ALPHA:]": r"\p{L}", "[:alpha:]": r"\p{L}", "[:UPPER:]": r"\p{Lu}", "[:upper:]": r"\p{Lu}",
    "[:LOWER:]": r"\p{Ll}", "[:lower:]": r"\p{Ll}", "[:DIGIT:]": r"\d", "[:digit:]": r"\d",
    "[:SPACE:]": " ", "[:space:]": " ", "[:WHITESPACE:]": r"\s", "[:whitespace:]": r"\s",
    "[:ALNUM:]": r"\p{L}\p{N}", "[:alnum:]": r"\p{L}\p{N}",
}  # fmt: skip


class SimilarError(ValueError):
    """A pattern is none of SIMILAR TO."""


def similar(op: Operation) -> Checked:
    def of_row(text: str, pattern: str, escape: str = "") -> bool:
        return matcher(pattern, escape).fullmatch(text) is not None

    return rowwise(of_row, op.arrays(), pa.bool_())


@lru_cache(maxsize=256)
def matcher(pattern: str, escape: str = "") -> Expression:
    """Matches a whole text by the pattern; raises SimilarError or UnknownAnswerError."""
    if len(escape) > 1:
        raise SimilarError(f'the escape is "{escape}"')
    by = compiled(_regular(pattern, escape))
    if by is None:
        raise SimilarError(pattern)
    return by


def _regular(pattern: str, escape: str) -> str:
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if escape and character == escape:
            if at + 1 == len(pattern):
                raise SimilarError(pattern)
            pieces.append(re.escape(pattern[at + 1]))
            at += 2
        elif character == "[":
            piece, at = _enumeration(pattern, at, escape)
            pieces.append(piece)
        else:
            pieces.append({"_": ".", "%": "(?:.*)"}.get(character, character))
            at += 1
    return "".join(pieces)


def _enumeration(pattern: str, at: int, escape: str) -> tuple[str, int]:
    pieces, at = ["["], at + 1
    while at < len(pattern):
        for name, regular in _CLASSES.items():
            if pattern.startswith(name, at):
                pieces.append(regular)
                at += len(name)
                break
        else:
            character = pattern[at]
            if escape and character == escape and at + 1 < len(pattern):
                pieces.append("\\" + pattern[at + 1])
                at += 2
                continue
            pieces.append(character)
            at += 1
            if character == "]":
                return "".join(pieces), at
    raise SimilarError(pattern)
