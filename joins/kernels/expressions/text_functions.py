"""Strings: operators and functions, a column at a time, counted in code points."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, mask_of, null_where
from joins.kernels.expressions.conversion import rowwise
from joins.kernels.expressions.like import like
from joins.kernels.expressions.nested_access import concat_ws
from joins.kernels.expressions.operation import Function, Operation, Value, of_rows, plain
from joins.kernels.expressions.result_limits import (
    MAX_COLUMN_BYTES,
    MAX_VALUE_BYTES,
    Sizes,
    bounded,
    bytes_of,
    bytes_of_all,
)

_MOST_BYTES_PER_CHARACTER = 4
_SHORT = 64


def _trim(function: Callable[..., Value], of_row: Callable[..., str]) -> Function:
    def apply(op: Operation) -> Value | Checked:
        if len(op.arguments) == 1:
            return function(op.array(0), characters=" ")
        characters = op.constant(1)
        if characters is None:
            return rowwise(of_row, op.arrays(), pa.string())
        return function(op.array(0), characters=characters.as_py())

    return apply


def _stripped(left: bool, right: bool) -> Callable[[str, str], str]:
    """The text without these characters at its ends; a step for each that is cut off."""

    def of_row(text: str, characters: str) -> str:
        cut = frozenset(characters)
        first, stop = 0, len(text)
        while left and first < stop and text[first] in cut:
            first += 1
        while right and first < stop and text[stop - 1] in cut:
            stop -= 1
        return text[first:stop]

    return of_row


def _cased(ascii_case: Callable[..., pa.Array], of_row: Callable[[str], str]) -> Function:
    """UPPER or LOWER: as in Java, a character may become several, and a last sigma differs."""

    def apply(op: Operation) -> pa.Array:
        text = op.array(0)
        others = pc.invert(pc.fill_null(pc.string_is_ascii(text), True))
        if not pc.any(others, min_count=0).as_py():
            return ascii_case(text)
        rest = text.filter(others)
        changed = pa.array([of_row(item) for item in rest.to_pylist()], pa.string())
        plain = null_where(text, mask_of(others))
        return pc.replace_with_mask(ascii_case(plain), others, changed)

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


def _pad_bytes(op: Operation) -> Sizes:
    """Of what is kept of each text, and of as many whole fills as are begun."""
    text, width, fill = op.arrays()
    widths = _counts(width).clip(0)
    missing = (widths - _counts(pc.utf8_length(text))).clip(0)
    fills = -(-missing // _counts(pc.utf8_length(fill)).clip(1))
    kept = np.minimum(bytes_of(text), widths * _MOST_BYTES_PER_CHARACTER)
    padding = np.minimum(fills * bytes_of(fill), missing * _MOST_BYTES_PER_CHARACTER)
    return np.asarray(kept + padding)


def _counts(numbers: pa.Array) -> Sizes:
    return np.asarray(pc.fill_null(numbers, 0), dtype=np.int64)


def _replace(op: Operation) -> Value | Checked:
    """Arrow compares all of what is replaced at each place of a text; Python is linear."""
    old, new = op.constant(1), op.constant(2)
    if old is not None and new is not None and 0 < len(old.as_py()) <= _SHORT:
        return pc.replace_substring(op.array(0), old.as_py(), new.as_py())
    return rowwise(str.replace, op.arrays(), pa.string())


def _replace_bytes(op: Operation) -> Sizes:
    """Exactly where a rough bound is too high: to count the places costs as much as to replace."""
    length = bytes_of(op.array(0))
    old, new = op.constant(1), op.constant(2)
    if old is not None and new is not None and old.as_py():
        before, after = len(old.as_py().encode()), len(new.as_py().encode())
        rough = length * max(1, -(-after // before))
        if rough.max(initial=0) <= MAX_VALUE_BYTES and rough.sum() <= MAX_COLUMN_BYTES:
            return rough
    places = rowwise(_places, op.arrays()[:2], pa.int64()).values
    grown = bytes_of(op.array(2)) - bytes_of(op.array(1))
    return length + _counts(places) * grown


def _places(text: str, old: str) -> int:
    return text.count(old)


def _concat(op: Operation) -> Value:
    return pc.binary_join_element_wise(*op.arrays(), "", null_handling="emit_null")


def _concat_ws_bytes(op: Operation) -> Sizes:
    return bytes_of_all(op) + bytes_of(op.array(0)) * (len(op.arguments) - 1)


def _affix(function: Callable[..., Value], of_row: Callable[..., bool]) -> Function:
    def apply(op: Operation) -> Value | Checked:
        affix = op.constant(1)
        if affix is None:
            return rowwise(of_row, op.arrays(), pa.bool_())
        return function(op.array(0), affix.as_py())

    return apply


TEXT: Mapping[str, Function] = {
    "||": bounded(_concat, bytes_of_all),
    "LIKE": like,
    "UPPER": _cased(pc.ascii_upper, str.upper),
    "LOWER": _cased(pc.ascii_lower, str.lower),
    "TRIM": _trim(pc.utf8_trim, _stripped(left=True, right=True)),
    "LTRIM": _trim(pc.utf8_ltrim, _stripped(left=True, right=False)),
    "RTRIM": _trim(pc.utf8_rtrim, _stripped(left=False, right=True)),
    "CHAR_LENGTH": plain(pc.utf8_length),
    "SUBSTRING": _substring,
    "CONCAT": bounded(_concat, bytes_of_all),
    "CONCAT_WS": bounded(concat_ws, _concat_ws_bytes),
    "REPLACE": bounded(_replace, _replace_bytes),
    "LPAD": bounded(_pad(left=True), _pad_bytes),
    "RPAD": bounded(_pad(left=False), _pad_bytes),
    "POSITION": of_rows(lambda needle, text: text.find(needle) + 1),
    "REVERSE": plain(pc.utf8_reverse),
    "LEFT": _edge(end=False),
    "RIGHT": _edge(end=True),
    "STARTSWITH": _affix(pc.starts_with, lambda text, start: text.startswith(start)),
    "ENDSWITH": _affix(pc.ends_with, lambda text, end: text.endswith(end)),
}
