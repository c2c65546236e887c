"""64-bit hashes of Arrow columns: equal keys of equal types have equal ones, on every node."""

import hashlib
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.arrow_cast import cast

Hashes = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0x5851F42D4C957F2D)
_LONG_BYTES = 256


def hash_rows(columns: Sequence[pa.Array], seed: int = 0) -> Hashes:
    """One hash a row over all `columns`; NULL is a value of its own.

    Hashes of different seeds are independent: keys that share one do not share the other.
    """
    start = np.uint64(seed)
    total = np.full(len(columns[0]), start, dtype=np.uint64)
    for column in columns:
        total = _mix(total ^ _hash_column(column, start))
    return total


def valid_rows(
    columns: Sequence[pa.Array], null_safe: Collection[int] = ()
) -> npt.NDArray[np.bool_]:
    """The rows without a NULL, except in the columns at the positions `null_safe`."""
    valid = np.ones(len(columns[0]), dtype=np.bool_)
    for at, column in enumerate(columns):
        if column.null_count and at not in null_safe:
            valid &= column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _mix(value: Hashes) -> Hashes:
    """The finaliser of SplitMix64."""
    value = value + _GOLDEN
    value ^= value >> np.uint64(30)
    value *= _MIX_1
    value ^= value >> np.uint64(27)
    value *= _MIX_2
    value ^= value >> np.uint64(31)
    return value


def _hash_column(column: pa.Array, seed: np.uint64) -> Hashes:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        hashes = _hash_bytes(column, np.dtype(np.int32), seed)
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        hashes = _hash_bytes(column, np.dtype(np.int64), seed)
    elif pa.types.is_decimal(kind):
        hashes = _hash_decimals(column, seed)
    else:
        hashes = _mix(_words(column))
    if column.null_count:
        hashes[~column.is_valid().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _words(column: pa.Array) -> Hashes:
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = pc.fill_null(cast(column, pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        bits: Hashes = (numbers + 0.0).view(np.uint64)
        return bits
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    integers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    words: Hashes = integers.view(np.uint64)
    return words


def _hash_decimals(column: pa.Array, seed: np.uint64) -> Hashes:
    data = column.buffers()[1]
    if len(column) == 0 or data is None:
        return np.zeros(len(column), dtype=np.uint64)
    words = np.frombuffer(data, dtype=np.uint64)[2 * column.offset :][: 2 * len(column)]
    pairs = words.reshape(-1, 2)
    return _mix(_mix(pairs[:, 0] ^ seed) ^ pairs[:, 1])


def _hash_bytes(
    column: pa.Array, offset_type: np.dtype[np.int32] | np.dtype[np.int64], seed: np.uint64
) -> Hashes:
    """Eight bytes a step for all rows that are that long; very long values one by one."""
    count = len(column)
    _, offset_buffer, data = column.buffers()
    if count == 0 or offset_buffer is None:
        return np.zeros(count, dtype=np.uint64)
    offsets = np.frombuffer(offset_buffer, dtype=offset_type)[column.offset :][: count + 1]
    base = int(offsets[0])
    size = int(offsets[-1]) - base
    padded = np.zeros(size + 8, dtype=np.uint8)
    if data is not None and size:
        padded[:size] = np.frombuffer(data, dtype=np.uint8)[base : base + size]
    words = np.ndarray((size + 1,), dtype="<u8", buffer=padded.data, strides=(1,))
    starts = offsets[:-1].astype(np.int64) - base
    lengths = np.diff(offsets).astype(np.int64)
    long = lengths > _LONG_BYTES
    hashes = _mix(lengths.astype(np.uint64) ^ seed)
    _hash_short(hashes, words, starts, np.where(long, 0, lengths))
    for row in np.flatnonzero(long):
        piece = padded[starts[row] : starts[row] + lengths[row]]
        salt = int(seed).to_bytes(8, "little")  # of zeros it changes nothing
        digest = hashlib.blake2b(piece.data, digest_size=8, salt=salt).digest()
        hashes[row] = np.uint64(int.from_bytes(digest, "little"))
    return hashes


def _hash_short(
    hashes: Hashes,
    words: Hashes,
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
) -> None:
    rows = np.flatnonzero(lengths > 0)
    step = 0
    while len(rows):
        left = lengths[rows] - step
        word = words[starts[rows] + step].copy()
        cut = np.flatnonzero(left < 8)
        word[cut] &= (np.uint64(1) << (left[cut].astype(np.uint64) * np.uint64(8))) - np.uint64(1)
        hashes[rows] = _mix(hashes[rows] ^ word)
        step += 8
        rows = rows[left > 8]
