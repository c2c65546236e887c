"""Functions of text, counted in code points: those of Python by row, then those of Arrow.

The tables behind each half say how a function is evaluated:

    plain                   by Arrow
    of_rows, with_nulls     by Python for each row; a NULL gives NULL, or is passed on
    _trim, _affix, …        by Arrow while the second argument is constant, else by Python
    bounded, grown          with a limit of the result's bytes, from an upper bound of each row's

LIKE searches the texts between two `%` in turn, each at its first position. A piece with `_` may be
compared at each position, so the product of both lengths has a limit.
"""

import re
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, mask_of, null_where
from joins.kernels.expressions.conversion import rowwise
from joins.kernels.expressions.nested_access import concat_ws
from joins.kernels.expressions.operation import (
    MAX_COLUMN_BYTES,
    MAX_VALUE_BYTES,
    Function,
    Operation,
    Sizes,
    Value,
    bounded,
    bytes_of,
    bytes_of_all,
    grown,
    of_rows,
    plain,
    with_nulls,
)

_MOST_BYTES_PER_CHARACTER = 4
_ELEMENT = 6  # a byte as an element of a list: itself, where it ends, and a mark
_SHORT = 64  # characters of a pattern with which Arrow is fast
_JAVA_NUMBER = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII
)


def _initcap(text: str) -> str:
    result, is_in_word = [], False
    for character in text:
        changed = character.lower() if is_in_word else character.upper()
        is_in_word = character.isalnum()
        result.append(changed if is_in_word and len(changed) == 1 else character)
    return "".join(result)


def _overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    count = len(new) if length is None else length
    if start <= 0 or start > len(text):
        return text
    rest = text[start - 1 + count :] if count > 0 and start + count <= len(text) else ""
    return text[: start - 1] + new + rest


def _translate(text: str | None, old: str | None, new: str | None) -> str | None:
    """Replaces each character of `old` by the one at its position in `new`, or drops it.

    As in Flink, a NULL `old` changes nothing, and a NULL `new` is an empty text.
    """
    if text is None or not old:
        return text
    new = new or ""
    table: dict[int, str | None] = {}
    for at, character in enumerate(old):
        table.setdefault(ord(character), new[at] if at < len(new) else None)
    return text.translate(table)


def _elt(index: int | None, *values: object) -> object:
    if index is None or not 1 <= index <= len(values):
        return None
    return values[index - 1]


def _split(text: str, delimiter: str) -> list[str]:
    return text.split(delimiter) if delimiter else list(text)


def _split_index(text: str, delimiter: str, index: int) -> str | None:
    """Part number `index`, from 0; an empty delimiter splits at white space."""
    if index < 0 or text == "":
        return None
    parts = text.split(delimiter) if delimiter else text.split()
    return parts[index] if index < len(parts) else None


def _split_index_at(text: str, code: int, index: int) -> str | None:
    return _split_index(text, chr(code), index) if 1 <= code <= 255 else None


def _instr(text: str, part: str, start: int = 1, occurrence: int = 1) -> int:
    """Position of a part; a negative start searches backwards from the end."""
    if occurrence <= 0:
        raise ValueError(occurrence)
    if start < 0:
        place = _instr(text[::-1], part[::-1], -start, occurrence)
        return 0 if place == 0 else len(text) + 2 - place - len(part)
    if start == 0:
        return 0
    at = start - 2
    for _ in range(occurrence):
        at = text.find(part, at + 1)
        if at < 0:
            return 0
    return at + 1


def _hash_code(text: str) -> int:
    """`Math.abs(text.hashCode())` of Java, where the least int has no absolute value."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2])) % 2**32
    signed = code - 2**32 if code >= 2**31 else code
    return signed if signed == -(2**31) else abs(signed)


def _locate(part: str, text: str, start: int) -> int:
    return text.find(part, max(start - 1, 0)) + 1 if part else 1  # as in Flink


def _is_decimal(text: str | None) -> bool:
    return _JAVA_NUMBER.fullmatch(text.strip()) is not None if text else False


def _is_digit(text: str | None) -> bool:
    return bool(text) and all(character.isdecimal() for character in text or "")


def _is_alpha(text: str | None) -> bool:
    return bool(text) and all(character.isalpha() for character in text or "")


def _repeat(text: str, count: int) -> str:
    return text * max(count, 0)


def _repeat_bytes(op: Operation) -> Sizes:
    count = np.asarray(op.array(1).fill_null(0), dtype=np.int64).clip(0)
    return np.asarray(bytes_of(op.array(0)) * count)


def _translate_bytes(op: Operation) -> Sizes:
    return bytes_of(op.array(0)) * _MOST_BYTES_PER_CHARACTER


def _ascii(text: str) -> int:
    if not text:
        return 0
    first = text[:1].encode()[0]
    return first - 256 if first > 127 else first  # a byte of Java has a sign


def _chr(code: int) -> str:
    if code < 0:
        return ""
    return chr(code & 0xFF)


TEXT_OF_ROWS: Mapping[str, Function] = {
    "INITCAP": grown(of_rows(_initcap), 2),
    "OVERLAY": grown(of_rows(_overlay)),
    "TRANSLATE": bounded(with_nulls(_translate), _translate_bytes),
    "ELT": grown(with_nulls(_elt)),
    "SPLIT": grown(of_rows(_split), _ELEMENT),
    "SPLIT_INDEX": of_rows(_split_index),
    "SPLIT_INDEX_AT": of_rows(_split_index_at),
    "INSTR": of_rows(_instr),
    "LOCATE": of_rows(_locate),
    "HASH_CODE": of_rows(_hash_code),
    "IS_DECIMAL": with_nulls(_is_decimal),
    "IS_DIGIT": with_nulls(_is_digit),
    "IS_ALPHA": with_nulls(_is_alpha),
    "REPEAT": bounded(of_rows(_repeat), _repeat_bytes),
    "ASCII": of_rows(_ascii),
    "CHR": of_rows(_chr),
}


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
        ascii_text = null_where(text, mask_of(others))
        return pc.replace_with_mask(ascii_case(ascii_text), others, changed)

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
        if width < 0 or not fill:
            return None
        if missing <= 0:
            return text[:width]
        padding = (fill * (missing // len(fill) + 1))[:missing]
        return padding + text if left else text + padding

    return of_rows(of_row)


def _pad_bytes(op: Operation) -> Sizes:
    text, width, fill = op.arrays()
    widths = _counts(width).clip(0)
    missing = (widths - _counts(pc.utf8_length(text))).clip(0)
    fills = -(-missing // _counts(pc.utf8_length(fill)).clip(1))
    kept = np.minimum(bytes_of(text), widths * _MOST_BYTES_PER_CHARACTER)
    padding = np.minimum(fills * bytes_of(fill), missing * _MOST_BYTES_PER_CHARACTER)
    return np.asarray(kept + padding)


def _counts(numbers: pa.Array) -> Sizes:
    """Numbers, and 0 for NULL."""
    return np.asarray(pc.fill_null(numbers, 0), dtype=np.int64)


def _replace(op: Operation) -> Value | Checked:
    """Arrow compares the whole pattern at each position of a text; Python is linear."""
    old, new = op.constant(1), op.constant(2)
    if old is not None and new is not None and 0 < len(old.as_py()) <= _SHORT:
        return pc.replace_substring(op.array(0), old.as_py(), new.as_py())
    return rowwise(str.replace, op.arrays(), pa.string())


def _replace_bytes(op: Operation) -> Sizes:
    """Exact where a rough bound is too high: counting costs as much as replacing."""
    length = bytes_of(op.array(0))
    old, new = op.constant(1), op.constant(2)
    if old is not None and new is not None and old.as_py():
        before, after = len(old.as_py().encode()), len(new.as_py().encode())
        rough = length * max(1, -(-after // before))
        if rough.max(initial=0) <= MAX_VALUE_BYTES and rough.sum() <= MAX_COLUMN_BYTES:
            return rough
    count = rowwise(str.count, op.arrays()[:2], pa.int64()).values
    growth = bytes_of(op.array(2)) - bytes_of(op.array(1))
    return length + _counts(count) * growth


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


MAX_COMPARISONS = 100_000_000
_RE2_CHARACTERS = 128
_ANY_CHARACTER = None
_Piece = tuple[str | None, ...]


def like(op: Operation) -> Value | Checked:
    """`text LIKE pattern [ESCAPE character]`; an empty character means no escape."""
    escape = op.constant(2) if len(op.arguments) > 2 else None
    pattern = op.constant(1)
    if pattern is not None and (escape is not None or len(op.arguments) == 2):
        try:
            pieces = _pieces(pattern.as_py(), escape.as_py() if escape else None)
        except ValueError:
            return Checked(pa.nulls(op.num_rows, pa.bool_()), np.ones(op.num_rows, dtype=np.bool_))
        if sum(map(len, pieces)) + len(pieces) <= _RE2_CHARACTERS:
            regex = ".*".join("".join(map(_literal, piece)) for piece in pieces)
            return pc.match_substring_regex(op.array(0), rf"(?s)\A{regex}\z")

    def matches(value: str, pattern: str, escape: str | None = None) -> bool:
        return _matches(value, _pieces(pattern, escape))

    return rowwise(matches, op.arrays(), pa.bool_())


def _pieces(pattern: str, escape: str | None) -> list[_Piece]:
    """The pieces between the `%` of a pattern: characters, and `_ANY_CHARACTER` for each `_`.

    Raises ValueError for an escape of several characters or before any other character.
    """
    if escape and len(escape) != 1:
        raise ValueError(escape)
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped not in {"%", "_", escape}:
                raise ValueError(pattern)
            pieces[-1].append(escaped)
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(_ANY_CHARACTER if character == "_" else character)
    return [tuple(piece) for piece in pieces]


def _literal(character: str | None) -> str:
    if character is _ANY_CHARACTER:
        return "."
    plain = character.isalnum() or ord(character) > 127
    return character if plain else f"\\x{ord(character):02x}"


def _matches(value: str, pieces: list[_Piece]) -> bool:
    """True if the first and last piece are at the ends and the others in order between them."""
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return len(value) == len(first) and _stands(value, first, 0)
    place, end = len(first), len(value) - len(last)
    if place > end or not _stands(value, first, 0) or not _stands(value, last, end):
        return False
    for piece in pieces[1:-1]:
        at = _place_of(value, piece, place, end)
        if at < 0:
            return False
        place = at + len(piece)
    return True


def _stands(value: str, piece: _Piece, at: int) -> bool:
    return all(c is _ANY_CHARACTER or c == value[at + k] for k, c in enumerate(piece))


def _place_of(value: str, piece: _Piece, place: int, end: int) -> int:
    if _ANY_CHARACTER not in piece:
        return value.find("".join(filter(None, piece)), place, end)
    if (end - place) * len(piece) > MAX_COMPARISONS:
        raise ValueError(len(piece))
    match = re.compile("".join(map(_literal, piece)), re.DOTALL).search(value, place, end)
    return -1 if match is None else match.start()


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
