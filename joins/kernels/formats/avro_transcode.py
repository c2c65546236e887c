"""Compiled: Avro's bytes as JSON, as Kafka Connect's JSON converter would write the value.

Except for `float` and `double`, which become their bits as an integer. Places are addresses.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from joins.kernels.compiled import compiled
from joins.kernels.formats.avro_schema import (
    ARRAY,
    BOOLEAN,
    BYTES,
    DOUBLE,
    ENUM,
    FIXED,
    LONG,
    MAP,
    NULL,
    RECORD,
    STRING,
    UNION,
)
from joins.kernels.json.scan import byte_at

Rows = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

DONE, BROKEN, FULL = range(3)

_BASE64 = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
).copy()
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_NULL_WORD = np.frombuffer(b"null", np.uint8).copy()
_TRUE = np.frombuffer(b"true", np.uint8).copy()
_FALSE = np.frombuffer(b"false", np.uint8).copy()
_LEAST = np.frombuffer(b"-9223372036854775808", np.uint8).copy()
_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _ZERO, _EQUAL, _SMALL_U = b'"\\,:-0=u'
_OPEN_OBJECT, _CLOSED_OBJECT, _OPEN_LIST, _CLOSED_LIST = b"{}[]"
_LEAST_LONG = -(1 << 63)
_LONGEST = 24  # of a value that is no text
_WRONG, _NO_ROOM = -1, -2


class Machine(NamedTuple):
    """Schema (`Program`) and memory of the writer; `texts` is an address.

    `stack` has for each open object and list: node, parts left in the block, parts written.
    """

    nodes: Rows
    parts: Rows
    texts: int
    out: Bytes
    stack: Rows


@compiled
def write_rows(firsts: Rows, lasts: Rows, machine: Machine, bounds: Rows) -> tuple[int, int]:
    """Writes values until one is broken or does not fit into `machine.out`.

    `bounds` has the position of the first value's JSON and receives the ends. Returns the number of
    values written, and `DONE`, or `BROKEN` or `FULL` for the next one.
    """
    to = bounds[0]
    for row in range(len(firsts)):
        at, to = _write(firsts[row], lasts[row], to, machine)
        if at != lasts[row]:
            return row, FULL if at == _NO_ROOM else BROKEN
        bounds[row + 1] = to
    return len(firsts), DONE


@compiled
def _write(at: int, end: int, to: int, machine: Machine) -> tuple[int, int]:
    """Writes one value; returns the address after it, or `_WRONG` or `_NO_ROOM`."""
    node, depth = 0, 0
    while True:
        node, at = _chosen(node, at, end, machine)
        if at < 0:
            return at, to
        kind = machine.nodes[node, 0]
        if kind in (RECORD, ARRAY, MAP):
            at, to = _open(node, at, to, machine, depth)
            depth += 1
        else:
            at, to = _leaf(node, (at, end), to, machine)
        while depth > 0 and at >= 0:
            node, at, to = _next(at, end, to, machine, depth - 1)
            if node >= 0:
                break
            depth -= 1
        if depth == 0 or at < 0:
            return at, to


@compiled
def _chosen(node: int, at: int, end: int, machine: Machine) -> tuple[int, int]:
    while machine.nodes[node, 0] == UNION:
        branch, at = _long(at, end)
        if at < 0 or branch < 0 or branch >= machine.nodes[node, 2]:
            return node, _WRONG
        node = machine.parts[machine.nodes[node, 1] + branch, 0]
    return node, at


@compiled
def _open(node: int, at: int, to: int, machine: Machine, depth: int) -> tuple[int, int]:
    if to + _LONGEST > len(machine.out):
        return _NO_ROOM, to
    machine.out[to] = _OPEN_LIST if machine.nodes[node, 0] == ARRAY else _OPEN_OBJECT
    machine.stack[depth, 0] = node
    machine.stack[depth, 1] = 0
    machine.stack[depth, 2] = 0
    return at, to + 1


@compiled
def _next(at: int, end: int, to: int, machine: Machine, depth: int) -> tuple[int, int, int]:
    """Begins the next part of the open object or list and returns its node; at its end -1."""
    node, _, written = machine.stack[depth]
    kind, part = machine.nodes[node, 0], machine.nodes[node, 1]
    left, at = _left(at, end, machine, depth)
    if at < 0 or to + _LONGEST > len(machine.out):
        return node, at if at < 0 else _NO_ROOM, to
    if left == 0:
        machine.out[to] = _CLOSED_LIST if kind == ARRAY else _CLOSED_OBJECT
        return -1, at, to + 1
    machine.stack[depth, 1] = left - 1
    machine.stack[depth, 2] = written + 1
    if written > 0:
        machine.out[to] = _COMMA
        to += 1
    if kind == RECORD:
        part += written
        at, to = _copied(part, at, to, machine)
    elif kind == MAP:
        at, to = _key(at, end, to, machine.out)
    return machine.parts[part, 0], at, to


@compiled
def _left(at: int, end: int, machine: Machine, depth: int) -> tuple[int, int]:
    """Least number of remaining parts, and the address after it."""
    node, left, written = machine.stack[depth]
    if machine.nodes[node, 0] == RECORD:
        return machine.nodes[node, 2] - written, at
    return (left, at) if left > 0 else _block(at, end)


@compiled
def _key(at: int, end: int, to: int, out: Bytes) -> tuple[int, int]:
    at, to = _text(at, end, to, out)
    if at >= 0:
        out[to] = _COLON
        to += 1
    return at, to


@compiled
def _block(at: int, end: int) -> tuple[int, int]:
    """Number of parts in the next block; the address is `_WRONG` if it is invalid."""
    count, at = _long(at, end)
    if count < 0 and at >= 0:
        count = -count
        _, at = _long(at, end)
    if at < 0 or count < 0:
        return 0, _WRONG
    return count, at


@compiled
def _copied(part: int, at: int, to: int, machine: Machine) -> tuple[int, int]:
    start, stop = machine.parts[part, 1], machine.parts[part, 2]
    if to + stop - start + _LONGEST > len(machine.out):
        return _NO_ROOM, to
    for place in range(start, stop):
        machine.out[to + place - start] = byte_at(machine.texts + place)
    return at, to + stop - start


@compiled
def _leaf(node: int, text: tuple[int, int], to: int, machine: Machine) -> tuple[int, int]:
    at, end = text
    kind, out = machine.nodes[node, 0], machine.out
    if to + _LONGEST > len(out):
        return _NO_ROOM, to
    if kind == LONG:
        number, at = _long(at, end)
        return at, _number(number, to, out) if at >= 0 else to
    if kind == STRING:
        return _text(at, end, to, out)
    if kind == BYTES:
        length, at = _long(at, end)
        return _base64(at, length, end, to, out)
    return _rare(node, text, to, machine)


@compiled
def _rare(node: int, text: tuple[int, int], to: int, machine: Machine) -> tuple[int, int]:
    at, end = text
    kind, out = machine.nodes[node, 0], machine.out
    if kind == FIXED:
        return _base64(at, machine.nodes[node, 2], end, to, out)
    if kind == NULL:
        return at, _word(_NULL_WORD, to, out)
    if kind == BOOLEAN:
        if at >= end or byte_at(at) > 1:
            return _WRONG, to
        return at + 1, _word(_TRUE if byte_at(at) else _FALSE, to, out)
    if kind == ENUM:
        symbol, at = _long(at, end)
        if at < 0 or symbol < 0 or symbol >= machine.nodes[node, 2]:
            return _WRONG, to
        return _copied(machine.nodes[node, 1] + symbol, at, to, machine)
    return _bits(at, end, 8 if kind == DOUBLE else 4, to, out)


@compiled
def _long(at: int, end: int) -> tuple[int, int]:
    value, shift = 0, 0
    if at < 0:
        return 0, _WRONG
    while at < end and shift < 70:
        byte = byte_at(at)
        at += 1
        if shift == 63 and byte > 1:
            return 0, _WRONG
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at
        shift += 7
    return 0, _WRONG


@compiled
def _word(word: Bytes, to: int, out: Bytes) -> int:
    for place in range(len(word)):
        out[to + place] = word[place]
    return to + len(word)


@compiled
def _number(number: int, to: int, out: Bytes) -> int:
    if number == _LEAST_LONG:
        return _word(_LEAST, to, out)
    if number < 0:
        out[to] = _MINUS
        to += 1
        number = -number
    digits, rest = 1, number // 10
    while rest:
        digits += 1
        rest //= 10
    for place in range(to + digits - 1, to - 1, -1):
        out[place] = _ZERO + number % 10
        number //= 10
    return to + digits


@compiled
def _bits(at: int, end: int, size: int, to: int, out: Bytes) -> tuple[int, int]:
    if at + size > end:
        return _WRONG, to
    number = 0
    for place in range(size):
        number |= byte_at(at + place) << 8 * place
    return at + size, _number(number, to, out)


@compiled
def _text(at: int, end: int, to: int, out: Bytes) -> tuple[int, int]:
    """Writes a string; the JSON reader checks UTF-8."""
    length, at = _long(at, end)
    if at < 0 or length < 0 or length > end - at:
        return _WRONG, to
    if to + 6 * length + _LONGEST > len(out):
        return _NO_ROOM, to
    out[to] = _QUOTE
    to += 1
    for place in range(at, at + length):
        byte = byte_at(place)
        if byte >= 32 and byte != _QUOTE and byte != _BACKSLASH:
            out[to] = byte
            to += 1
        elif byte >= 32:
            out[to], out[to + 1] = _BACKSLASH, byte
            to += 2
        else:
            out[to], out[to + 1], out[to + 2], out[to + 3] = _BACKSLASH, _SMALL_U, _ZERO, _ZERO
            out[to + 4], out[to + 5] = _HEX[byte >> 4], _HEX[byte & 15]
            to += 6
    out[to] = _QUOTE
    return at + length, to + 1


@compiled
def _base64(at: int, length: int, end: int, to: int, out: Bytes) -> tuple[int, int]:
    if at < 0 or length < 0 or length > end - at:
        return _WRONG, to
    if to + (length + 2) // 3 * 4 + _LONGEST > len(out):
        return _NO_ROOM, to
    out[to] = _QUOTE
    to += 1
    for place in range(at, at + length, 3):
        left = at + length - place
        bits = byte_at(place) << 16
        bits |= byte_at(place + 1) << 8 if left > 1 else 0
        bits |= byte_at(place + 2) if left > 2 else 0
        out[to], out[to + 1] = _BASE64[bits >> 18], _BASE64[bits >> 12 & 63]
        out[to + 2] = _BASE64[bits >> 6 & 63] if left > 1 else _EQUAL
        out[to + 3] = _BASE64[bits & 63] if left > 2 else _EQUAL
        to += 4
    out[to] = _QUOTE
    return at + length, to + 1
