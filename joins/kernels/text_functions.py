"""Strings: operators and functions, a column at a time, counted in code points."""

import re
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.casts import Checked
from joins.kernels.conversion import rowwise
from joins.kernels.operation import Function, Operation, Value, of_rows, plain


def _like(op: Operation) -> Value | Checked:
    escape = op.constant(2) if len(op.arguments) > 2 else None
    pattern = op.constant(1)
    if pattern is not None and (escape is not None or len(op.arguments) == 2):
        try:
            regex = _like_regex(pattern.as_py(), escape.as_py() if escape else None)
        except ValueError:
            return Checked(pa.nulls(op.num_rows, pa.bool_()), np.ones(op.num_rows, dtype=np.bool_))
        return pc.match_substring_regex(op.array(0), rf"(?s)\A{regex}\z")

    def matches(value: str, pattern: str, escape: str | None = None) -> bool:
        regex = _like_regex(pattern, escape)
        return re.fullmatch(regex, value, re.DOTALL) is not None

    return rowwise(matches, op.arrays(), pa.bool_())


def _like_regex(pattern: str, escape: str | None) -> str:
    """A regular expression that RE2 and Python read alike."""
    if escape is not None and len(escape) != 1:
        raise ValueError
    regex = ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped not in {"%", "_", escape}:
                raise ValueError
            regex += _literal(escaped)
        else:
            regex += {"%": ".*", "_": "."}.get(character) or _literal(character)
    return regex


def _literal(character: str) -> str:
    return character if character.isalnum() or ord(character) > 127 else f"\\x{ord(character):02x}"


def _trim(function: Callable[..., Value], of_row: Callable[..., str]) -> Function:
    def apply(op: Operation) -> Value | Checked:
        if len(op.arguments) == 1:
            return function(op.array(0), characters=" ")
        characters = op.constant(1)
        if characters is None:
            return rowwise(
                lambda text, cut: of_row(text, cut) if cut else text, op.arrays(), pa.string()
            )
        return function(op.array(0), characters=characters.as_py())

    return apply


def _substring(op: Operation) -> Value | Checked:
    bounds = [op.constant(at) for at in range(1, len(op.arguments))]
    numbers = [bound.as_py() for bound in bounds if bound is not None]
    if len(numbers) < len(bounds) or min(numbers) < 0:
        return rowwise(_substring_of_row, op.arrays(), pa.string())
    first = max(numbers[0] - 1, 0)
    stop = first + numbers[1] if len(numbers) > 1 else None
    return pc.utf8_slice_codeunits(op.array(0), first, stop)


def _substring_of_row(text: str, start: int, length: int | None = None) -> str | None:
    """From 1, or from the end if negative; NULL for a negative length."""
    if length is not None and length < 0:
        return None
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    if first < 0:
        return ""
    return text[first:] if length is None else text[first : first + length]


def _edge(end: bool) -> Function:
    def of_row(text: str, count: int) -> str:
        if count <= 0:
            return ""
        return text[-count:] if end else text[:count]

    return of_rows(of_row)


def _pad(left: bool) -> Function:
    def of_row(text: str, width: int, fill: str) -> str | None:
        missing = width - len(text)
        if width < 0 or (missing > 0 and not fill):
            return None
        if missing <= 0:
            return text[:width]
        padding = (fill * (missing // len(fill) + 1))[:missing]
        return padding + text if left else text + padding

    return of_rows(of_row)


def _replace(op: Operation) -> Value | Checked:
    old, new = op.constant(1), op.constant(2)
    if old is not None and new is not None and old.as_py():
        return pc.replace_substring(op.array(0), old.as_py(), new.as_py())
    return rowwise(str.replace, op.arrays(), pa.string())


def _concat(op: Operation) -> Value:
    return pc.binary_join_element_wise(*op.arrays(), "", null_handling="emit_null")


def _concat_ws(op: Operation) -> Value:
    separator, *texts = op.arrays()
    empty = pa.array([""] * op.num_rows, pa.string())
    joined = empty
    started = pa.array(np.zeros(op.num_rows, dtype=np.bool_))
    for text in texts:
        longer = pc.binary_join_element_wise(joined, text, separator)
        joined = pc.if_else(pc.is_null(text), joined, pc.if_else(started, longer, text))
        started = pc.or_(started, pc.is_valid(text))
    return pc.if_else(pc.is_valid(separator), joined, pa.scalar(None, pa.string()))


def _affix(function: Callable[..., Value], of_row: Callable[..., bool]) -> Function:
    def apply(op: Operation) -> Value | Checked:
        affix = op.constant(1)
        if affix is None:
            return rowwise(of_row, op.arrays(), pa.bool_())
        return function(op.array(0), affix.as_py())

    return apply


TEXT: Mapping[str, Function] = {
    "||": _concat,
    "LIKE": _like,
    "UPPER": plain(pc.utf8_upper),
    "LOWER": plain(pc.utf8_lower),
    "TRIM": _trim(pc.utf8_trim, str.strip),
    "LTRIM": _trim(pc.utf8_ltrim, str.lstrip),
    "RTRIM": _trim(pc.utf8_rtrim, str.rstrip),
    "CHAR_LENGTH": plain(pc.utf8_length),
    "SUBSTRING": _substring,
    "CONCAT": _concat,
    "CONCAT_WS": _concat_ws,
    "REPLACE": _replace,
    "LPAD": _pad(left=True),
    "RPAD": _pad(left=False),
    "POSITION": of_rows(lambda needle, text: text.find(needle) + 1),
    "REVERSE": plain(pc.utf8_reverse),
    "LEFT": _edge(end=False),
    "RIGHT": _edge(end=True),
    "STARTSWITH": _affix(pc.starts_with, str.startswith),
    "ENDSWITH": _affix(pc.ends_with, str.endswith),
}
