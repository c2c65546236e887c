"""REGEXP functions by RE2: linear in the text, whatever the expression is.

An expression that Java refuses has no match: NULL, or FALSE of REGEXP. One that Java takes and RE2
does not (looking ahead or back, references to groups) fails the row: its answer is not known.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import re2

from joins.kernels.expressions.operation import Function, Operation, of_rows
from joins.kernels.expressions.result_limits import Sizes, bounded, bytes_of, grown
from joins.kernels.strings.java_regex import (
    InvalidExpressionError,
    UnknownAnswerError,
    translated,
)

MAX_EXPRESSION = 10_000
_MEMORY = 8 << 20
_ELEMENT = 6  # a byte as an element of a list: itself, where it ends, and a mark
# What RE2 says of an expression that Java refuses, too.
_INVALID = ("missing ", "unexpected )", "no argument", "trailing ", "bad repetition")
Expression = Any


@lru_cache(maxsize=512)
def compiled(expression: str) -> Expression | None:
    """The expression for RE2; None if it is none for Java either.

    Raises:
        UnknownAnswerError: Java takes it and RE2 does not.
    """
    if len(expression) > MAX_EXPRESSION:
        raise UnknownAnswerError(f"a regular expression of {len(expression)} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(translated(expression), options)
    except InvalidExpressionError:
        return None
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
        if reason.startswith(_INVALID):
            return None
        raise UnknownAnswerError(reason) from error


def _regexp(text: str, expression: str) -> bool:
    found_by = compiled(expression) if expression else None
    return found_by is not None and found_by.search(text) is not None


def _replaced(text: str, expression: str, new: str) -> str | None:
    by = compiled(expression)
    return None if by is None else str(by.sub(lambda _: new, text))


def _replaced_bytes(op: Operation) -> Sizes:
    text, new = bytes_of(op.array(0)), bytes_of(op.array(2))
    return text + (text + 1) * new


def _extract(text: str, expression: str, group: int = 0) -> str | None:
    by = compiled(expression)
    match = None if by is None else by.search(text)
    if match is None or not 0 <= group <= match.re.groups:
        return None
    part: str | None = match.group(group)
    return part


def _extract_all(text: str, expression: str, group: int = 1) -> list[str | None] | None:
    by = compiled(expression)
    if by is None or not 0 <= group <= by.groups:
        return None
    return [match.group(group) for match in matches(by, text)]


def matches(by: Expression, text: str) -> Iterator[Any]:
    """Each match behind the one before, as Java's `find` goes on."""
    yield from by.finditer(text)


def _count(text: str, expression: str) -> int | None:
    by = compiled(expression)
    return None if by is None else sum(1 for _ in matches(by, text))


def _place(text: str, expression: str) -> int | None:
    by = compiled(expression)
    if by is None:
        return None
    match = by.search(text)
    return 0 if match is None else int(match.start()) + 1


def _first(text: str, expression: str) -> str | None:
    return _extract(text, expression)


def split_parts(text: str, expression: str, most: int = 0) -> list[str] | None:
    """The text between the matches, as `String.split`: nothing empty at its end."""
    by = compiled(expression)
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
    """Pairs by two regular expressions; of equal keys the last one counts."""
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
