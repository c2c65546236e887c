"""The hash table of an index: rows by the hash of their key, in about six bytes a row."""

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.index.hashing import Hashes, hash_rows, valid_rows
from joins.kernels.index.packed import Bytes, Words, cut, map_arrays, words_of, write_arrays

Rows = npt.NDArray[np.int64]

_GROUP_BITS = 6
_GROUP = 1 << _GROUP_BITS
_MOST_BUCKET_BITS = 28
_LEAST_ENTRY_BYTES = 4
_LEAST_MARK_BITS = 6
_HASH_BITS = 64
_WORD = 8


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a table cuts a hash, highest bits first: bucket, mark, and the rest, which it forgets."""

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

    A bucket is the upper bits of the hash. Its entries stand together, ordered by hash and row: an
    entry is a row, and above it the mark, as many of the next bits of the hash as there is room
    for. It tells most other keys apart; for the rest, whoever asks compares the keys. There are one
    to two buckets for each different key. 64 buckets are a group.

    Attributes:
        bases: where the entries of each group begin.
        steps: for each group 65 numbers: where its buckets begin behind its base, and the end.
        entries: the entries, and a word of nothing that the last one may read.
    """

    shape: _Shape
    bases: Rows
    steps: npt.NDArray[np.unsignedinteger[Any]]
    entries: Bytes

    @classmethod
    def of(cls, columns: Sequence[pa.Array], null_safe: Collection[int] = ()) -> Self:
        """A table of the rows that have no NULL but in the columns at the positions `null_safe`."""
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
        """The table in the file at `path`, memory-mapped.

        Raises:
            OSError: it cannot be read.
            ValueError: it is shorter than it says.
        """
        head, bases, steps, entries = map_arrays(path)
        *shape, step_bytes = (int(item) for item in head.view(np.int64))
        return cls(_Shape(*shape), bases.view(np.int64), steps.view(f"<u{step_bytes}"), entries)

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.bases.nbytes + self.steps.nbytes + self.entries.nbytes

    def write(self, sink: BinaryIO) -> None:
        head = np.array([*astuple(self.shape), self.steps.itemsize], dtype=np.int64)
        write_arrays(sink, (head, self.bases, self.steps, self.entries))

    def candidates(self, hashes: Hashes) -> tuple[Rows, Rows]:
        """Pairs (position in `hashes`, row) ordered by position, then by the row's hash and number.

        All rows with equal hashes are among them, and some others.
        """
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
    """Where the entries of each group begin, and those of its buckets behind that."""
    groups = -(-count // _GROUP)
    ends = np.cumsum(np.bincount(buckets, minlength=groups * _GROUP)).reshape(groups, _GROUP)
    bases = np.zeros(groups, dtype=np.int64)
    bases[1:] = ends[:-1, -1]
    ends -= bases[:, None]
    steps = np.zeros((groups, _GROUP + 1), dtype=np.min_scalar_type(int(ends[:, -1].max())))
    steps[:, 1:] = ends
    return bases, steps.reshape(-1)
