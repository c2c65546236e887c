"""Kafka values as text lines that may stand in one block of JSON for Arrow's reader.

- `lines_of` removes values that could produce no row, or take part in their neighbour's: nulls,
values that do not begin with `{` and end with `}`, values with a NUL byte, a constant outside of
JSON, or invalid UTF-8. A line break inside a value becomes a tab, which is a blank outside strings
and an error inside them, as the line break is.
- `with_entries` writes maps as lists of entries: `{"m": {"a": 1}}` becomes `{"m": [{"key": "a",
"value": 1}]}`.
- `with_bearable_decimals` removes lines with very small decimals. For these Arrow's reader looks up
a power of ten beyond the end of its table, which ends the process or gives a wrong value.
"""

import json
from collections.abc import Callable, Mapping
from math import isinf
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Mask, is_beyond_scales, mask_of, null_where, try_each

_SHORT = 300  # so many digits are below the greatest double
_Reader = Callable[[Any], object]
_DOUBTFUL = r"[eE]-[0-9]{2}|\\u"  # what is escaped may be a number, too
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str)
_Bytes = npt.NDArray[np.uint8]
_Rows = npt.NDArray[np.int64]
_CONSTANTS = (b"NaN", b"Inf")  # which Arrow's reader takes for numbers
_WINDOW_BYTES = 64 << 10  # each error of Python's decoder copies what it was given


class WrittenNumber(str):
    """A number with its digits in the JSON text."""

    __slots__ = ()


class _UnfitError(ValueError): ...


def has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(has_map(kind.field(at).type) for at in range(kind.num_fields))


def broken(error: Exception) -> str:
    message = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return f"invalid JSON: {message[:1].lower()}{message[1:100]}"


def with_entries(lines: pa.Array, schema: pa.Schema) -> pa.Array:
    """`lines` with a list of entries for each map of `schema`; lines that do not fit become NULL.

    Numbers keep their digits, unread members are omitted, and the last of equal keys counts, as in
    Flink.
    """
    read = _members({item.name: item.type for item in schema})
    doubtful = mask_of(pc.match_substring(lines, r"\ud", ignore_case=True))
    changed: list[str | None] = []
    for row, line in enumerate(lines.to_pylist()):
        changed.append(None)
        if line is None:
            continue
        try:
            if doubtful[row]:
                orjson.loads(line)  # of all parsers here, Python's alone takes half a character
            changed[row] = orjson.dumps(read(_FRAGMENTS.decode(line))).decode()
        except (ValueError, TypeError, RecursionError):
            changed[row] = None
    return pa.array(changed, pa.string())


def _number(digits: str) -> orjson.Fragment:
    if (len(digits) > _SHORT or "e" in digits or "E" in digits) and isinf(float(digits)):
        raise ValueError("number too big to be stored in double")
    return orjson.Fragment(digits)


_FRAGMENTS = json.JSONDecoder(
    object_pairs_hook=tuple,
    parse_int=_number,
    parse_float=_number,
    parse_constant=orjson.Fragment,
)


def _members(fields: Mapping[str, pa.DataType]) -> _Reader:
    readers = {name: _reader(kind) for name, kind in fields.items()}

    def read(members: tuple[tuple[str, object], ...]) -> object:
        values: dict[str, object] = {}
        for name, value in members:
            if name not in readers:
                continue
            if name in values:
                raise _UnfitError
            values[name] = readers[name](value)
        return values

    return read


def _reader(kind: pa.DataType) -> _Reader:
    if pa.types.is_list(kind):
        element = _reader(kind.value_type)
        return _expecting(list, lambda values: [element(value) for value in values])
    if pa.types.is_map(kind):
        return _expecting(tuple, _entries(_reader(kind.item_type)))
    if pa.types.is_struct(kind):
        return _expecting(tuple, _members({item.name: item.type for item in kind}))
    return _scalar


def _expecting(right: type, read: _Reader) -> _Reader:
    def checked(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, right):
            raise _UnfitError
        return read(value)

    return checked


def _entries(read: _Reader) -> _Reader:
    if read is _scalar:
        return lambda pairs: [
            {"key": key, "value": {} if type(value) is tuple else value}
            for key, value in dict(pairs).items()
        ]
    return lambda pairs: [{"key": key, "value": read(value)} for key, value in dict(pairs).items()]


def _scalar(value: object) -> object:
    return {} if type(value) is tuple else value


def has_decimal(kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        return True
    return any(has_decimal(kind.field(at).type) for at in range(kind.num_fields))


def with_bearable_decimals(lines: pa.Array, schema: pa.Schema) -> pa.Array:
    """`lines` (JSON objects or NULL), NULL for lines that have a very small decimal."""
    doubtful = mask_of(pc.match_substring_regex(lines, _DOUBTFUL))
    if not doubtful.any():
        return lines
    kind, texts = pa.struct(list(schema)), lines.to_pylist()
    for row in doubtful.nonzero()[0].tolist():
        try:
            is_bearable = not _has_tiny(_DECODER.decode(str(texts[row])), kind)
        except (ValueError, RecursionError):
            is_bearable = False
        if not is_bearable:
            texts[row] = None
    return pa.array(texts, pa.string())


def _has_tiny(value: object, kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind) and isinstance(value, str):
        return is_beyond_scales(value, kind)
    if pa.types.is_struct(kind) and isinstance(value, tuple):
        types = {item.name: item.type for item in kind}
        return any(_has_tiny(part, types[name]) for name, part in value if name in types)
    if pa.types.is_list(kind) and isinstance(value, list):
        return any(_has_tiny(part, kind.value_type) for part in value)
    return False


def lines_of(values: pa.Array) -> pa.Array:
    """A line for each value (2 GiB in total), NULL for values that cannot be in a block."""
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:
        invalid = _not_utf_8(values.cast(pa.binary())) & mask_of(values.is_valid())
        rest = pc.if_else(pa.array(invalid), pa.scalar(None, values.type), values)
        text = try_each(rest, lambda part: part.cast(pa.string()), pa.string()).values
    odd = np.flatnonzero(_are_odd(text))
    if len(odd):
        is_odd = np.zeros(len(text), dtype=np.bool_)
        is_odd[odd] = True
        lines = _mended(text.take(pa.array(odd, pa.int64())))
        text = pc.replace_with_mask(text, pa.array(is_odd), lines)
    _, data = _content(text)
    if not any(constant in data.tobytes() for constant in _CONSTANTS):
        return text
    return null_where(text, mask_of(pc.match_substring_regex(text, "NaN|Inf")))


def _not_utf_8(values: pa.Array) -> Mask:
    """Values that are not UTF-8, found in one pass over all bytes.

    A value that begins inside a character is separated from the one before, which it might
    complete.
    """
    ends, data = _content(values)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
    invalid = np.zeros(len(values), dtype=np.bool_)
    filled = np.flatnonzero(ends > starts)
    first = data[starts[filled]]
    headless = filled[(first & 0xC0) == 0x80]
    invalid[headless] = True
    changed = data.copy()
    changed[starts[headless]] = ord(" ")
    content = memoryview(changed.data)
    at = 0
    while at < len(content):
        last = min(int(np.searchsorted(ends, at + _WINDOW_BYTES)), len(ends) - 1)
        stop = int(ends[last])
        try:
            str(content[at:stop], "utf-8")
        except UnicodeDecodeError as error:
            row = int(np.searchsorted(ends, at + error.start, side="right"))
            invalid[row] = True
            stop = int(ends[row])
        at = stop
    return invalid


def _content(text: pa.Array) -> tuple[_Rows, _Bytes]:
    _, offset_buffer, data_buffer = text.buffers()
    if offset_buffer is None or data_buffer is None:
        return np.zeros(len(text), dtype=np.int64), np.zeros(0, dtype=np.uint8)
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[text.offset :][: len(text) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]]
    return offsets[1:].astype(np.int64) - int(offsets[0]), data


def _are_odd(text: pa.Array) -> Mask:
    """Values that do not begin with `{` and end with `}`, or have a byte below 14."""
    ends, data = _content(text)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])[: len(ends)]
    odd: Mask = ends == starts
    filled = slice(None) if not odd.any() else np.flatnonzero(~odd)
    odd[filled] = (data[starts[filled]] != ord("{")) | (data[ends[filled] - 1] != ord("}"))
    if len(data) and data.min() <= ord("\r"):
        control = np.flatnonzero(data <= ord("\r"))
        odd[np.searchsorted(ends, control, side="right")] = True
    if text.null_count:
        odd |= mask_of(text.is_null())
    return odd


def _mended(text: pa.Array) -> pa.Array:
    text = pc.ascii_trim(text, characters=" \t\r\n")
    is_object = mask_of(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}")))
    is_object &= ~mask_of(pc.match_substring(text, "\0"))
    for line_break in ("\n", "\r"):
        text = pc.replace_substring(text, line_break, "\t")
    return null_where(text, ~is_object)
