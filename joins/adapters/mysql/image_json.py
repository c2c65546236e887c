"""MySQL's binary JSON as the server's text, and packed decimals.

Sources: MySQL's documentation of the binary format (`json_binary.h`), and of how JSON values become
text ("The JSON Data Type").
"""

import base64
import json
import math
import re
import struct
from collections.abc import Callable
from typing import Any

from joins.adapters.mysql.events.row_events import Bytes

Json = str | list["Json"] | dict[str, "Json"]
"""A document; a scalar is its text."""

_DECIMAL_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_DECIMAL_GROUP = 9


def decimal_bytes(precision: int, scale: int) -> int:
    return sum(
        digits // _DECIMAL_GROUP * 4 + _DECIMAL_BYTES[digits % _DECIMAL_GROUP]
        for digits in (precision - scale, scale)
    )


def decimal_converter(precision: int, scale: int) -> Callable[[bytes], str]:
    """Reader of a packed decimal with so many digits, `scale` of them after the point."""
    integral = _groups(precision - scale, partial_first=True)
    fraction = _groups(scale, partial_first=False)

    def convert(raw: bytes) -> str:
        negative = not raw[0] & 0x80
        content = bytes([raw[0] ^ 0x80]) + raw[1:]
        if negative:
            content = bytes(byte ^ 0xFF for byte in content)
        at, texts = 0, []
        for size, digits in (*integral, *fraction):
            texts.append(f"{int.from_bytes(content[at : at + size], 'big'):0{digits}d}")
            at += size
        whole = "".join(texts[: len(integral)]).lstrip("0") or "0"
        rest = "".join(texts[len(integral) :])
        return ("-" if negative else "") + whole + (f".{rest}" if rest else "")

    return convert


def _groups(digits: int, *, partial_first: bool) -> list[tuple[int, int]]:
    whole = [(4, _DECIMAL_GROUP)] * (digits // _DECIMAL_GROUP)
    partial = digits % _DECIMAL_GROUP
    rest = [(_DECIMAL_BYTES[partial], partial)] if partial else []
    return rest + whole if partial_first else whole + rest


_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY = range(4)
_LITERAL, _STRING, _OPAQUE = 0x4, 0xC, 0xF
_LITERALS = {0: "null", 1: "true", 2: "false"}
_NUMBERS = {0x5: "<h", 0x6: "<H", 0x7: "<i", 0x8: "<I", 0x9: "<q", 0xA: "<Q"}
_DOUBLE = 0xB
_INLINE = (0x5, 0x6, _LITERAL)
_INLINE_IF_LARGE = (0x7, 0x8)
_DEEPEST = 100  # levels, like the server
_NULL = b"\4\0"

# Field types of opaque values
_DECIMALS = (0, 246)
_DATES, _TIMES, _DATETIMES = (10, 14), (11, 19), (7, 12, 17, 18)
_FIRST_POINT, _LAST_POINT = -14, 15  # of a double that the server writes without an exponent
_LINE_BYTES, _LINE_END = 57, r"\n"  # of a text in base64


def json_text(raw: bytes) -> str:
    """The server's text (`{"a": [1, 2.0]}`); ValueError, LookupError, struct.error if invalid."""
    return _text(_document(raw or _NULL))


def changed_json_text(raw: bytes, parts: bytes) -> str:
    """The text of `raw` after the changes that an update has of it; errors as `json_text`."""
    document, data = _document(raw or _NULL), Bytes(parts)
    while data.left:
        _change(document, data)
    return _text(document)


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    members = [f"{_quoted(key)}: {_text(item)}" for key, item in value.items()]
    return f"{{{', '.join(members)}}}"


def _document(raw: bytes, depth: int = 0) -> Json:
    data = memoryview(raw)  # of which a part is no copy
    return _value(_part(data, 0, 1)[0], data[1:], depth)


def _value(kind: int, data: memoryview, depth: int) -> Json:
    if depth > _DEEPEST:
        raise ValueError("a JSON value has too many levels")
    if kind in (_SMALL_OBJECT, _LARGE_OBJECT):
        return _object(data, kind == _LARGE_OBJECT, depth)
    if kind in (_SMALL_ARRAY, _LARGE_ARRAY):
        return _array(data, kind == _LARGE_ARRAY, depth)
    if kind == _LITERAL:
        return _LITERALS[data[0]]
    if kind in _NUMBERS:
        return str(struct.unpack_from(_NUMBERS[kind], data)[0])
    if kind == _DOUBLE:
        return double_text(struct.unpack_from("<d", data)[0])
    if kind == _STRING:
        return _quoted(str(_sized(data), "utf-8"))
    if kind == _OPAQUE:
        return _opaque(data[0], bytes(_sized(data[1:])))
    raise ValueError(f"a JSON value has type {kind}, which is not known")


def _array(data: memoryview, is_large: bool, depth: int) -> Json:
    count, data, size = _head(data, is_large)
    places = (2 * size + number * (1 + size) for number in range(count))
    return [_entry(data, at, is_large, depth) for at in places]


def _object(data: memoryview, is_large: bool, depth: int) -> Json:
    count, data, size = _head(data, is_large)
    values_at = 2 * size + count * (size + 2)
    members = dict[str, Json]()
    for number in range(count):
        at = 2 * size + number * (size + 2)
        key = _part(data, _number(data, at, size), _number(data, at + size, 2))
        members[str(key, "utf-8")] = _entry(data, values_at + number * (1 + size), is_large, depth)
    if len(members) < count:
        raise ValueError("a JSON object has a key twice")
    return members


def _head(data: memoryview, is_large: bool) -> tuple[int, memoryview, int]:
    size = 4 if is_large else 2
    return _number(data, 0, size), _part(data, 0, _number(data, size, size)), size


def _entry(data: memoryview, at: int, is_large: bool, depth: int) -> Json:
    size = 4 if is_large else 2
    kind = _part(data, at, 1)[0]
    if kind in _INLINE or (is_large and kind in _INLINE_IF_LARGE):
        return _value(kind, _part(data, at + 1, size), depth + 1)
    return _value(kind, data[_number(data, at + 1, size) :], depth + 1)


def _number(data: memoryview, at: int, size: int) -> int:
    return int.from_bytes(_part(data, at, size), "little")


def _part(data: memoryview, at: int, size: int) -> memoryview:
    if at + size > len(data):
        raise ValueError(f"a JSON value ends {at + size - len(data)} bytes too early")
    return data[at : at + size]


def _sized(data: memoryview) -> memoryview:
    """Bytes after their length, a varint of 7 bits a byte, lowest first."""
    length, at = 0, 0
    while True:
        byte = _part(data, at, 1)[0]
        length |= (byte & 0x7F) << 7 * at
        at += 1
        if byte < 0x80:
            return _part(data, at, length)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_REPLACE, _INSERT, _REMOVE = range(3)
# The next member of a path, bare or in quotes, or its next item, counted from either end.
_LEG = re.compile(
    r'\.(?P<name>[^\s".*\[\]\\]+)|\.(?P<quoted>"(?:[^"\\]|\\.)*")'
    r"|\[(?:(?P<first>[0-9]{1,10})|last(?:-(?P<last>[0-9]{1,10}))?)\]",
    re.ASCII,
)


def _change(document: Json, data: Bytes) -> None:
    """Make the next change of `data`."""
    operation, path = data.number(1), data.text().decode("utf-8")
    *way, last = _legs(path)
    value = None if operation == _REMOVE else _document(data.text(), len(way) + 1)
    holder: Any = document
    for leg in way:
        holder = _inside(holder, leg)
    is_there = _inside(holder, last) is not None
    is_new = isinstance(holder, dict) and isinstance(last, str) and not is_there
    if operation == _INSERT and is_new:
        members = sorted({**holder, last: value}.items(), key=_order)
        holder.clear()
        holder.update(members)
    elif operation == _INSERT and isinstance(holder, list) and isinstance(last, int):
        holder.insert(last, value)  # an item behind the end becomes the last one, as in the server
    elif operation == _REPLACE and is_there:
        holder[last] = value
    elif operation == _REMOVE and is_there:
        del holder[last]
    else:
        raise ValueError(f'a JSON document does not fit its change {operation} at "{path}"')


def _legs(path: str) -> list[str | int]:
    """Names and numbers of the way from the document, negative from the end of an array."""
    legs, at = list[str | int](), len("$")
    while leg := _LEG.match(path, at):
        name, quoted, first, last = leg.groups()
        if quoted is not None:
            legs.append(json.loads(quoted))
        else:
            legs.append(name or (int(first) if first else -1 - int(last or 0)))
        at = leg.end()
    if not path.startswith("$") or at < len(path) or not legs:
        raise ValueError(f'JSON path "{path}" is not known')
    return legs


def _inside(holder: Json | None, leg: str | int) -> Json | None:
    if isinstance(holder, dict) and isinstance(leg, str):
        return holder.get(leg)
    if isinstance(holder, list) and isinstance(leg, int) and -len(holder) <= leg < len(holder):
        return holder[leg]
    return None


def _order(member: tuple[str, Json]) -> tuple[int, bytes]:
    """The server orders members by the length of their keys, then by their bytes."""
    key = member[0].encode()
    return len(key), key


def double_text(value: float) -> str:
    """The shortest digits that round-trip; an exponent below 1e-15 and, if whole, from 1e15 on."""
    sign, digits, point = _shortest(value)
    count = len(digits)
    if point < _FIRST_POINT or (point > _LAST_POINT and count <= point):
        rest = f".{digits[1:]}" if count > 1 else ""
        return f"{sign}{digits[0]}{rest}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def _shortest(value: float) -> tuple[str, str, int]:
    if not math.isfinite(value):
        raise ValueError(f"a JSON value is {value}")
    mantissa, _, exponent = repr(value).partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return sign, "0", 1
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    return sign, digits.rstrip("0"), point


def _opaque(kind: int, data: bytes) -> str:
    if kind in _DECIMALS:
        return decimal_converter(data[0], data[1])(data[2:])
    if kind in _DATES:
        return f'"{_datetime(data)[:10]}"'
    if kind in _DATETIMES:
        return f'"{_datetime(data)}"'
    if kind in _TIMES:
        return f'"{_time(data)}"'
    starts = range(0, len(data), _LINE_BYTES)
    lines = [base64.b64encode(data[at : at + _LINE_BYTES]).decode() for at in starts]
    return f'"base64:type{kind}:{_LINE_END.join(lines)}"'


def _datetime(data: bytes) -> str:
    packed, micros = _packed(data)
    day, clock = packed >> 17, packed & 0x1FFFF
    year, month = divmod(day >> 5, 13)
    return f"{year:04d}-{month:02d}-{day & 31:02d} {_clock(clock)}.{micros:06d}"


def _time(data: bytes) -> str:
    packed, micros = _packed(data)
    sign = "-" if struct.unpack("<q", data)[0] < 0 else ""
    return f"{sign}{_clock(packed)}.{micros:06d}"


def _packed(data: bytes) -> tuple[int, int]:
    number = abs(struct.unpack("<q", data)[0])
    return number >> 24, number & 0xFFFFFF


def _clock(packed: int) -> str:
    return f"{packed >> 12:02d}:{packed >> 6 & 63:02d}:{packed & 63:02d}"
