"""Writes binary JSON, and parts of it in updates, as MySQL's documentation describes them."""

import json
import re
import struct
from collections.abc import Sequence
from typing import Any

from tests.support.binlogs import packed

Document = Any
"""As Python has it: a dictionary, a list, a text, a number, a truth value or None."""
REPLACE, INSERT, REMOVE = range(3)
_INTEGERS = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q"}
_LITERALS = {None: 0, True: 1, False: 2}


def binary(document: Document) -> bytes:
    kind, data = _typed(document)
    return bytes([kind]) + data


def _typed(value: Document) -> tuple[int, bytes]:
    if isinstance(value, dict):
        return _container(0, sorted((key.encode(), item) for key, item in value.items()))
    if isinstance(value, list):
        return _container(2, [(None, item) for item in value])
    if isinstance(value, str):
        return 12, _varint(len(value.encode())) + value.encode()
    if isinstance(value, float):
        return 11, struct.pack("<d", value)
    if isinstance(value, bool) or value is None:
        return 4, bytes([_LITERALS[value]])
    for kind, form in _INTEGERS.items():
        if kind % 2 or kind == 10:  # unsigned only if nothing else fits
            try:
                return kind, struct.pack(form, value)
            except struct.error:
                continue
    raise AssertionError(value)


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _container(kind: int, members: Sequence[tuple[bytes | None, Document]]) -> tuple[int, bytes]:
    members = sorted(members, key=lambda member: len(member[0] or b""))
    try:
        return kind, _laid_out(members, 2, "<H")
    except struct.error:
        return kind + 1, _laid_out(members, 4, "<I")


def _laid_out(members: Sequence[tuple[bytes | None, Document]], size: int, form: str) -> bytes:
    """Count, size, entries of the keys, entries of the values, keys, values."""
    keys = [key for key, _ in members if key is not None]
    at = 2 * size + len(keys) * (size + 2) + len(members) * (1 + size)
    heads, tails = b"", b""
    for key in keys:
        heads += struct.pack(form, at + len(tails)) + struct.pack("<H", len(key))
        tails += key
    for _, value in members:
        kind, data = _typed(value)
        if kind in (4, 5, 6) or (size == 4 and kind in (7, 8)):
            heads += bytes([kind]) + data.ljust(size, b"\0")
        else:
            heads += bytes([kind]) + struct.pack(form, at + len(tails))
            tails += data
    whole = 2 * size + len(heads) + len(tails)
    return struct.pack(form, len(members)) + struct.pack(form, whole) + heads + tails


def part(operation: int, path: str, value: Document = None) -> bytes:
    """A change as an update has it; `value` has no meaning for REMOVE."""
    text = path.encode()
    written = b"" if operation == REMOVE else binary(value)
    end = b"" if operation == REMOVE else packed(len(written)) + written
    return bytes([operation]) + packed(len(text)) + text + end


def member(key: str) -> str:
    """Of a path: in quotes unless it is an identifier."""
    is_bare = re.fullmatch(r"[A-Za-z_$\xa0é][A-Za-z_$0-9\xa0é]*", key)
    return f".{key}" if is_bare else f".{json.dumps(key, ensure_ascii=False)}"
