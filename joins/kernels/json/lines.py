"""Kafka values as text lines that may stand in one block of JSON.

What leaves here could produce no row, or take part in its neighbour's: nulls, values that do not
begin with `{` and end with `}`, values with a NUL byte, a constant that is no JSON, or invalid
UTF-8. A line break inside a value becomes a tab, which is a blank outside strings and an error
inside them, as the line break itself is. Values that need none of this are looked at as a whole,
the others one by one.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Mask, mask_of, null_where, try_each

_Bytes = npt.NDArray[np.uint8]
_Rows = npt.NDArray[np.int64]

_CONSTANTS = (b"NaN", b"Inf")  # which Arrow's reader takes for numbers
_WINDOW_BYTES = 64 << 10  # each error of Python's decoder copies what it was given


def lines_of(values: pa.Array) -> pa.Array:
    """Strings that are one line each, as long as `values`; NULL for what must not be in a block.

    Args:
        values: binary or large binary, at most 2 GiB of it.
    """
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:
        text = _decoded(values)
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


def _decoded(values: pa.Array) -> pa.Array:
    invalid = _not_utf_8(values.cast(pa.binary())) & mask_of(values.is_valid())
    rest = pc.if_else(pa.array(invalid), pa.scalar(None, values.type), values)
    return try_each(rest, lambda part: part.cast(pa.string()), pa.string()).values


def _not_utf_8(values: pa.Array) -> Mask:
    """The values that Python cannot decode, found in one pass over all bytes.

    A value that begins in the middle of a character is cut from the one before, which it might
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
    """Where each value ends in the bytes of all values, and these bytes."""
    _, offset_buffer, data_buffer = text.buffers()
    if offset_buffer is None or data_buffer is None:
        return np.zeros(len(text), dtype=np.int64), np.zeros(0, dtype=np.uint8)
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[text.offset :][: len(text) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]]
    return offsets[1:].astype(np.int64) - int(offsets[0]), data


def _are_odd(text: pa.Array) -> Mask:
    """The values that do not begin with `{`, end with `}` and have no byte below 14 between."""
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
    """`text` as lines, NULL where it cannot be one."""
    text = pc.ascii_trim(text, characters=" \t\r\n")
    is_object = mask_of(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}")))
    is_object &= ~mask_of(pc.match_substring(text, "\0"))
    for line_break in ("\n", "\r"):
        text = pc.replace_substring(text, line_break, "\t")
    return null_where(text, ~is_object)
