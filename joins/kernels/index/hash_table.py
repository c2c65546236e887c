"""Hashes, packed columns and hash tables of an index: about six bytes a row.

Equal keys of equal types have equal 64-bit hashes on every node. A block of a packed column stores
its minimum once, and for each row the difference in 0 to 8 bytes; blocks of one width are
contiguous.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import cast

Hashes = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0x5851F42D4C957F2D)
_LONG_BYTES = 256


def hash_rows(columns: Sequence[pa.Array], seed: int = 0) -> Hashes:
    """One hash a row over all `columns`; NULL counts. Seeds give independent hashes."""
    start = np.uint64(seed)
    total = np.full(len(columns[0]), start, dtype=np.uint64)
    for column in columns:
        total = _mix(total ^ _hash_column(column, start))
    return total


def valid_rows(
    columns: Sequence[pa.Array], null_safe: Collection[int] = ()
) -> npt.NDArray[np.bool_]:
    """Mask of rows without a NULL, except in the columns at the positions `null_safe`."""
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


Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

_BLOCK_BITS = 8
_WORD = 8
_BLOCK = 1 << _BLOCK_BITS
_WHOLE = 62  # bits of a block that no column fills
_MASKS = np.array([(1 << (8 * width)) - 1 for width in range(_WORD + 1)], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """Integers without NULL, found by their row."""

    count: int
    block_bits: int  # `row >> block_bits` is a row's block
    bases: Numbers  # the minimum of each block
    starts: npt.NDArray[np.uint32]  # where each block begins in `data`, in blocks of one byte a row
    widths: Bytes  # bytes a row of each block
    data: Bytes  # differences to the base, and one zero word of padding

    @classmethod
    def of(cls, numbers: Numbers) -> Self:
        """The column of `numbers`; equal numbers take no bytes."""
        count = len(numbers)
        if count == 0 or numbers.min() == numbers.max():
            return cls(
                count,
                _WHOLE,
                numbers[:1].copy() if count else np.zeros(1, dtype=np.int64),
                np.zeros(1, dtype=np.uint32),
                np.zeros(1, dtype=np.uint8),
                np.zeros(_WORD, dtype=np.uint8),
            )
        blocks = -(-count // _BLOCK)
        filled = np.pad(numbers, (0, blocks * _BLOCK - count), mode="edge").reshape(blocks, _BLOCK)
        bases = filled.min(axis=1)
        added = filled.view(np.uint64) - bases.view(np.uint64)[:, None]  # right beyond 63 bits, too
        widths = np.searchsorted(_MASKS, added.max(axis=1)).astype(np.uint8)
        order = np.argsort(widths, kind="stable")
        starts = np.zeros(blocks, dtype=np.uint32)
        starts[order[1:]] = np.cumsum(widths[order[:-1]], dtype=np.uint32)
        pieces = [
            cut(added[widths == width], int(width)).reshape(-1) for width in np.unique(widths)
        ]
        data = np.concatenate([*pieces, np.zeros(_WORD, dtype=np.uint8)])
        return cls(count, _BLOCK_BITS, bases, starts, widths, data)

    @classmethod
    def of_arrays(cls, arrays: Sequence[Bytes]) -> Self:
        head, bases, starts, widths, data = arrays
        count, block_bits = (int(item) for item in head.view(np.int64))
        return cls(count, block_bits, bases.view(np.int64), starts.view(np.uint32), widths, data)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        head = np.array([self.count, self.block_bits], dtype=np.int64)
        return head, self.bases, self.starts, self.widths, self.data

    def at(self, rows: Numbers) -> Numbers:
        blocks = rows >> self.block_bits
        widths = self.widths[blocks]
        inside = rows & ((1 << self.block_bits) - 1)
        first = self.starts[blocks].astype(np.int64) << _BLOCK_BITS
        added = words_of(self.data, 1)[first + inside * widths] & _MASKS[widths]
        values: Numbers = self.bases[blocks] + added.view(np.int64)
        return values

    def all(self) -> Numbers:
        if self.block_bits == _WHOLE:
            return np.full(self.count, self.bases[0])
        values = np.empty((len(self.bases), _BLOCK), dtype=np.int64)
        for width in np.unique(self.widths):
            blocks = np.flatnonzero(self.widths == width)
            first = int(self.starts[blocks[0]]) << _BLOCK_BITS
            last = first + len(blocks) * _BLOCK * int(width)
            words = np.zeros((len(blocks), _BLOCK, _WORD), dtype=np.uint8)
            words[:, :, :width] = self.data[first:last].reshape(len(blocks), _BLOCK, width)
            values[blocks] = words.view(np.int64)[:, :, 0] + self.bases[blocks][:, None]
        return values.reshape(-1)[: self.count]


def cut(words: Words, width: int) -> Bytes:
    whole = np.ascontiguousarray(words).reshape(-1).view(np.uint8)
    return whole.reshape(-1, _WORD)[:, :width]


def words_of(data: Bytes, step: int) -> Words:
    count = max(0, (len(data) - _WORD) // step + 1)
    return np.ndarray((count,), dtype="<u8", buffer=data, strides=(step,))


def write_arrays(sink: BinaryIO, arrays: Iterable[npt.NDArray[Any]]) -> None:
    """Write for `map_arrays`: the count, the sizes in bytes, then each array aligned to 8 bytes."""
    pieces = [np.ascontiguousarray(array).view(np.uint8) for array in arrays]
    sink.write(np.array([len(pieces), *(len(piece) for piece in pieces)], dtype=np.int64).data)
    for piece in pieces:
        sink.write(piece.data)
        sink.write(bytes(-len(piece) % _WORD))


def map_arrays(path: Path) -> list[Bytes]:
    """The bytes of each array in a file, mapped; raises ValueError if the file is too short."""
    data = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    count = int(data[:_WORD].view(np.int64)[0])
    at = _WORD * (count + 1)
    arrays = []
    for size in data[_WORD:at].view(np.int64).tolist():
        if at + size > len(data):
            raise ValueError(f"{len(data)} bytes are too few")
        arrays.append(data[at : at + size])
        at += size + -size % _WORD
    return arrays


Rows = npt.NDArray[np.int64]

_GROUP_BITS = 6
_GROUP = 1 << _GROUP_BITS
_MOST_BUCKET_BITS = 28
_LEAST_ENTRY_BYTES = 4
_LEAST_MARK_BITS = 6
_HASH_BITS = 64


@dataclass(frozen=True, slots=True)
class _Shape:
    """Bits of a hash in a table, highest first: bucket, mark, and the rest, which is dropped."""

    bucket_bits: int
    row_bits: int
    mark_bits: int
    entry_bytes: int

    def buckets(self, hashes: Hashes) -> Rows:
        return (hashes >> np.uint64(_HASH_BITS - self.bucket_bits)).view(np.int64)

    def marks(self, hashes: Hashes) -> Hashes:
        upper = (hashes << np.uint64(self.bucket_bits)) >> np.uint64(_HASH_BITS - self.mark_bits)
        return upper << np.uint64(self.row_bits)


@dataclass(frozen=True, slots=True)
class HashTable:
    """Rows by the hash of their key.

    A bucket is the upper bits of the hash. Its entries are contiguous, ordered by hash and row: an
    entry is a row, and above it the mark, as many of the next hash bits as fit. The mark excludes
    most other keys; the caller compares the keys of the rest. There are one to two buckets for each
    different key. 64 buckets are a group.
    """

    shape: _Shape
    bases: Rows  # where the entries of each group begin
    # 65 numbers a group: where its buckets begin relative to its base, and the end
    steps: npt.NDArray[np.unsignedinteger[Any]]
    entries: Bytes  # the entries, and one word of padding

    @classmethod
    def of(cls, columns: Sequence[pa.Array], null_safe: Collection[int] = ()) -> Self:
        """A table of the rows without a NULL in columns other than `null_safe`."""
        rows = np.flatnonzero(valid_rows(columns, null_safe))
        hashes = hash_rows(columns)
        row_bits = max(1, len(hashes).bit_length())
        ordered = hashes if len(rows) == len(hashes) else hashes[rows]
        ordered = (ordered & ~np.uint64((1 << row_bits) - 1)) | rows.view(np.uint64)
        ordered.sort()
        bucket_bits = min(_different(ordered, row_bits).bit_length(), _MOST_BUCKET_BITS)
        entry_bytes = max(_LEAST_ENTRY_BYTES, -(-(row_bits + _LEAST_MARK_BITS) // 8))
        mark_bits = min(8 * entry_bytes - row_bits, _HASH_BITS - row_bits - bucket_bits)
        shape = _Shape(bucket_bits, row_bits, mark_bits, entry_bytes)
        bases, steps = _directory(shape.buckets(ordered), 1 << bucket_bits)
        entries = np.zeros(len(rows) * entry_bytes + _WORD, dtype=np.uint8)
        rows_and_marks = shape.marks(ordered) | (ordered & np.uint64((1 << row_bits) - 1))
        entries[:-_WORD].reshape(-1, entry_bytes)[:] = cut(rows_and_marks, entry_bytes)
        return cls(shape, bases, steps, entries)

    @classmethod
    def map(cls, path: Path) -> Self:
        """Map a table from a file; raises OSError, or ValueError if the file is too short."""
        head, bases, steps, entries = map_arrays(path)
        *shape, step_bytes = (int(item) for item in head.view(np.int64))
        return cls(_Shape(*shape), bases.view(np.int64), steps.view(f"<u{step_bytes}"), entries)

    @property
    def nbytes(self) -> int:
        return self.bases.nbytes + self.steps.nbytes + self.entries.nbytes

    def write(self, sink: BinaryIO) -> None:
        head = np.array([*astuple(self.shape), self.steps.itemsize], dtype=np.int64)
        write_arrays(sink, (head, self.bases, self.steps, self.entries))

    def candidates(self, hashes: Hashes) -> tuple[Rows, Rows]:
        """Pairs (position in `hashes`, row) in order: all with equal hashes, some others."""
        buckets = self.shape.buckets(hashes)
        groups = buckets >> _GROUP_BITS
        at = buckets + groups  # a group has one step more than buckets
        first = self.steps[at]
        counts = self.steps[at + 1] - first
        starts = self.bases[groups] + first
        probes = np.repeat(np.arange(len(hashes)), counts)
        skipped = np.cumsum(counts, dtype=np.int64) - counts
        entries = self._entries(np.arange(len(probes)) + np.repeat(starts - skipped, counts))
        marks = self.shape.marks(hashes).astype(entries.dtype)
        rows = entries ^ marks[probes]  # equal marks leave the row
        equal = np.flatnonzero(rows < entries.dtype.type(1 << self.shape.row_bits))
        return probes[equal], rows[equal].astype(np.int64)

    def _entries(self, at: Rows) -> npt.NDArray[np.unsignedinteger[Any]]:
        if self.shape.entry_bytes == _LEAST_ENTRY_BYTES:
            return self.entries.view(np.uint32)[at]
        mask = np.uint64((1 << (8 * self.shape.entry_bytes)) - 1)
        words: Words = words_of(self.entries, self.shape.entry_bytes)[at] & mask
        return words


def _different(ordered: Hashes, row_bits: int) -> int:
    upper = ordered >> np.uint64(row_bits)
    return int(np.count_nonzero(upper[1:] != upper[:-1])) + 1


def _directory(buckets: Rows, count: int) -> tuple[Rows, npt.NDArray[np.unsignedinteger[Any]]]:
    """First entry of each group, and the offsets of its buckets from there."""
    groups = -(-count // _GROUP)
    ends = np.cumsum(np.bincount(buckets, minlength=groups * _GROUP)).reshape(groups, _GROUP)
    bases = np.zeros(groups, dtype=np.int64)
    bases[1:] = ends[:-1, -1]
    ends -= bases[:, None]
    steps = np.zeros((groups, _GROUP + 1), dtype=np.min_scalar_type(int(ends[:, -1].max())))
    steps[:, 1:] = ends
    return bases, steps.reshape(-1)
