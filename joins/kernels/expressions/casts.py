"""Text to typed values, a column at a time: unreadable values are marked, never raised."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_EXACT = {pa.float32(): (np.float32, 2**24, 10), pa.float64(): (np.float64, 2**53, 22)}


def cast(values: pa.Array | pa.Scalar, to: pa.DataType, *, safe: bool = True) -> pa.Array:
    """`values` as `to`, a DECIMAL as the nearest float; raises ArrowInvalid if `safe`."""
    if not (pa.types.is_decimal(values.type) and pa.types.is_floating(to)):
        return values.cast(to, safe=safe)
    quotients = _quotients(values, to) if isinstance(values, pa.Decimal128Array) else None
    return values.cast(pa.string()).cast(to) if quotients is None else quotients


def _quotients(values: pa.Array, to: pa.DataType) -> pa.Array | None:
    """Divides digits by a power of ten if both are exact in `to`, which rounds once; else None."""
    kind, limit, most_scale = _EXACT[to]
    scale = values.type.scale
    data = values.buffers()[1]
    if scale > most_scale or data is None or len(values) == 0:
        return None
    words = np.frombuffer(data, dtype=np.int64)[2 * values.offset :][: 2 * len(values)]
    low, high = words[::2], words[1::2]
    valid = None
    if values.null_count:
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    if (high != low >> 63).any() or low.min() < -limit or low.max() > limit:
        return None
    mask = None if valid is None else ~valid
    return pa.array(low.astype(kind) / kind(10**scale), mask=mask)


Mask = npt.NDArray[np.bool_]

DATE_PATTERN = r"^\d{4}-\d{2}-\d{2}$"
TIMESTAMP_PATTERN = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?$"
INSTANT_PATTERN = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:?\d{2})$"
_PLAIN_LENGTHS = (19, 23, 26, None)  # to the second, ms or us
_PLAIN_INSTANTS = (20, 24, 27, None)  # the same with `Z`
TIME_PATTERN = r"^\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?$"
INTEGER_PATTERN = r"^[+-]?\d+$"
NUMBER_PATTERN = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?$"
_SMALL = r"[eE]-\d{2}"  # a decimal that may be too small for Arrow
_POWERS = {128: 38, 256: 76}  # of ten that Arrow has for decimals of so many bits


@dataclass(frozen=True, slots=True)
class Checked:
    """A converted column; `failed` marks the rows that could not be converted, which are NULL."""

    values: pa.Array
    failed: Mask


@dataclass(frozen=True, slots=True)
class CastRules:
    """How values are cast; `zone` is between instants and local times.

    If it `wraps`, a number that does not fit wraps, is limited or is NULL; otherwise it fails.
    """

    wraps: bool = False
    zone: str = "UTC"


STRICT = CastRules()


def sound(values: pa.Array) -> Checked:
    return Checked(values, np.zeros(len(values), dtype=np.bool_))


def whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def whole_batch(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def mask_of(array: pa.Array | pa.ChunkedArray) -> Mask:
    """A Boolean array as NumPy, NULL as False."""
    filled = pc.fill_null(array, False)
    if isinstance(filled, pa.ChunkedArray):
        filled = filled.combine_chunks()
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.bool_)


def integers(column: pa.Array) -> npt.NDArray[np.int64]:
    """A column of integers as NumPy, NULL as 0."""
    filled = pc.fill_null(column, 0) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)


def null_where(array: pa.Array, mask: Mask) -> pa.Array:
    if not mask.any():
        return array
    return pc.if_else(pa.array(mask), pa.scalar(None, array.type), array)


def try_each(array: pa.Array, convert: Callable[[pa.Array], pa.Array], to: pa.DataType) -> Checked:
    """`convert(array)`, bisecting around the rows for which it raises `ArrowInvalid`."""
    failed = np.zeros(len(array), dtype=np.bool_)
    pieces: list[pa.Array] = []
    pending = [(0, len(array))]
    while pending:
        low, high = pending.pop()
        try:
            pieces.append(convert(array.slice(low, high - low)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            if high - low == 1:
                failed[low] = True
                pieces.append(pa.nulls(1, to))
            else:
                middle = (low + high) // 2
                pending += [(middle, high), (low, middle)]
    return Checked(pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces), failed)


def from_text(text: pa.Array, to: pa.DataType) -> Checked:
    """Trimmed strings read as `to`; NULL stays NULL.

    Dates, timestamps and instants are `YYYY-MM-DD[ HH:MM:SS[.f]]` with a blank or a `T`; digits
    after the sixth of a fraction are cut. An instant needs `Z` or an offset.
    """
    if pa.types.is_binary(to):
        return from_base64(text)
    if pa.types.is_boolean(to):
        return _from_boolean(text)
    plain = _plain_times(text, to)
    if plain is not None:
        return Checked(plain, np.zeros(len(text), dtype=np.bool_))
    prepared, pattern = _prepared(text, to)
    if pattern is None:
        return Checked(prepared, np.zeros(len(text), dtype=np.bool_))
    readable = mask_of(pc.match_substring_regex(text, pattern))
    failed = ~readable & mask_of(pc.is_valid(text))
    if pa.types.is_decimal(to):
        failed |= _beyond_scales(text, to)
    checked = try_each(null_where(prepared, failed), lambda part: part.cast(to), to)
    return Checked(checked.values, checked.failed | failed)


def is_beyond_scales(number: str, to: pa.DataType) -> bool:
    """True if Arrow would read `number` with a power of ten beyond its table."""
    try:
        exponent = Decimal(number).as_tuple().exponent
    except InvalidOperation:
        return False  # none for Arrow either
    return isinstance(exponent, int) and -exponent - to.scale > _POWERS[to.bit_width]


def _beyond_scales(text: pa.Array, to: pa.DataType) -> Mask:
    beyond = mask_of(pc.match_substring_regex(text, _SMALL))
    for row in beyond.nonzero()[0]:
        beyond[row] = is_beyond_scales(text[row].as_py(), to)
    return beyond


def _plain_times(text: pa.Array, to: pa.DataType) -> pa.Array | None:
    """`text` as timestamps if the lengths prove that Arrow reads them alike; else None."""
    if not pa.types.is_timestamp(to):
        return None
    lengths = _PLAIN_LENGTHS if to.tz is None else _PLAIN_INSTANTS
    if not pc.all(pc.is_in(pc.binary_length(text), pa.array(lengths, pa.int32()))).as_py():
        return None
    try:
        return text.cast(to)
    except pa.ArrowInvalid:
        return None


def _prepared(text: pa.Array, to: pa.DataType) -> tuple[pa.Array, str | None]:
    if pa.types.is_integer(to):
        return pc.replace_substring_regex(text, r"^\+", ""), INTEGER_PATTERN
    if pa.types.is_floating(to) or pa.types.is_decimal(to):
        return text, NUMBER_PATTERN
    if pa.types.is_date(to):
        return text, DATE_PATTERN
    if pa.types.is_timestamp(to):
        digits = 9 if to.unit == "ns" else 6
        cut = pc.replace_substring_regex(text, rf"(\.\d{{{digits}}})\d+", r"\1")
        return cut, TIMESTAMP_PATTERN if to.tz is None else INSTANT_PATTERN
    return text.cast(to), None


def time_from_text(text: pa.Array) -> Checked:
    """`HH:MM[:SS[.f]]` as microseconds since midnight."""
    pattern_ok = mask_of(pc.match_substring_regex(text, TIME_PATTERN))
    failed = ~pattern_ok & mask_of(pc.is_valid(text))
    day = pc.binary_join_element_wise("1970-01-01", null_where(text, failed), " ")
    checked = from_text(day, pa.timestamp("us"))
    return Checked(checked.values.cast(pa.int64()), checked.failed | failed)


def _from_boolean(text: pa.Array) -> Checked:
    lower = pc.utf8_lower(text)
    true = pc.is_in(lower, pa.array(["true", "t", "yes", "y", "1"]))
    false = pc.is_in(lower, pa.array(["false", "f", "no", "n", "0"]))
    known = pc.or_(true, false)
    failed = ~mask_of(known) & mask_of(pc.is_valid(text))
    return Checked(pc.if_else(known, true, pa.scalar(None, pa.bool_())), failed)


def from_base64(text: pa.Array) -> Checked:
    values: list[bytes | None] = []
    failed = np.zeros(len(text), dtype=np.bool_)
    for row, item in enumerate(text.to_pylist()):
        try:
            values.append(None if item is None else base64.b64decode(item, validate=True))
        except (binascii.Error, ValueError):
            failed[row] = True
            values.append(None)
    return Checked(pa.array(values, pa.binary()), failed)
