"""Text taken apart, put together and changed, a row at a time."""

import re
from collections.abc import Mapping

import numpy as np

from joins.kernels.expressions.operation import Function, Operation, of_rows
from joins.kernels.expressions.result_limits import Sizes, bounded, bytes_of, grown
from joins.kernels.strings.rows import with_nulls

_MOST_OF_LETTER = 4
_ELEMENT = 6  # a byte as an element of a list: itself, where it ends, and a mark
_JAVA_NUMBER = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII
)


def _initcap(text: str) -> str:
    """Each word with a capital first; a word has letters and digits."""
    result, in_word = [], False
    for character in text:
        is_word = character.isalnum()
        result.append(_cased(character, first=not in_word) if is_word else character)
        in_word = is_word
    return "".join(result)


def _cased(character: str, *, first: bool) -> str:
    changed = character.upper() if first else character.lower()
    return changed if len(changed) == 1 else character


def _overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    """`new` in the place of the characters from `start`, or of as many as it has."""
    count = len(new) if length is None else length
    if start <= 0 or start > len(text):
        return text
    rest = text[start - 1 + count :] if count > 0 and start + count <= len(text) else ""
    return text[: start - 1] + new + rest


def _translate(text: str | None, old: str | None, new: str | None) -> str | None:
    """Each character of `old` as the one in its place of `new`, or left out."""
    if text is None or new is None:
        return None
    if not old:
        return text
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
    """The part of number `index`, from 0; an empty delimiter parts at white space."""
    if index < 0 or text == "":
        return None
    parts = text.split(delimiter) if delimiter else text.split()
    return parts[index] if index < len(parts) else None


def _split_index_at(text: str, code: int, index: int) -> str | None:
    return _split_index(text, chr(code), index) if 1 <= code <= 255 else None


def _instr(text: str, part: str, start: int = 1, occurrence: int = 1) -> int:
    """Where a part is found: for a negative start backwards from the end."""
    if occurrence <= 0:
        raise ValueError(occurrence)
    if start < 0:
        place = _instr(text[::-1], part[::-1], -start, occurrence)
        return 0 if place == 0 else len(text) + 2 - place - len(part)
    hit = start - 2
    for _ in range(occurrence if start else 0):
        hit = text.find(part, hit + 1)
        if hit < 0:
            return 0
    return hit + 1 if start else 0


def _hash_code(text: str) -> int:
    """The absolute value of `String.hashCode`."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2])) % 2**32
    return abs(code - 2**32 if code >= 2**31 else code) if code != 2**31 else -(2**31)


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


def _replaced_bytes(op: Operation) -> Sizes:
    text = bytes_of(op.array(0))
    return np.asarray(text * _MOST_OF_LETTER)


def _ascii(text: str) -> int:
    """The first byte, signed as in Java; 0 of an empty text."""
    if not text:
        return 0
    first = text[:1].encode()[0]
    return first - 256 if first > 127 else first


def _chr(code: int) -> str:
    if code < 0:
        return ""
    return chr(code & 0xFF)


WORDS: Mapping[str, Function] = {
    "INITCAP": grown(of_rows(_initcap), 2),
    "OVERLAY": grown(of_rows(_overlay)),
    "TRANSLATE": bounded(with_nulls(_translate), _replaced_bytes),
    "ELT": grown(with_nulls(_elt)),
    "SPLIT": grown(of_rows(_split), _ELEMENT),
    "SPLIT_INDEX": of_rows(_split_index),
    "SPLIT_INDEX_AT": of_rows(_split_index_at),
    "INSTR": of_rows(_instr),
    "LOCATE": of_rows(lambda part, text, start: text.find(part, max(start - 1, 0)) + 1),
    "HASH_CODE": of_rows(_hash_code),
    "IS_DECIMAL": with_nulls(_is_decimal),
    "IS_DIGIT": with_nulls(_is_digit),
    "IS_ALPHA": with_nulls(_is_alpha),
    "REPEAT": bounded(of_rows(_repeat), _repeat_bytes),
    "ASCII": of_rows(_ascii),
    "CHR": of_rows(_chr),
}
