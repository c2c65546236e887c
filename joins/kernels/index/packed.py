"""Integer columns in as few bytes as their neighbours allow, and files of such arrays.

A column is cut into blocks. A block keeps its least number once, and for each row what is added to
it, in 0 to 8 bytes. Blocks of the same width stand together, so that all of them are read or
written in one step.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

_BLOCK_BITS = 8
_BLOCK = 1 << _BLOCK_BITS
_WHOLE = 62  # bits of a block that no column fills
_WORD = 8
_MASKS = np.array([(1 << (8 * width)) - 1 for width in range(_WORD + 1)], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """Integers without NULL, found by their row.

    Attributes:
        count: number of rows.
        block_bits: `row >> block_bits` is a row's block.
        bases: the least number of each block.
        starts: where each block begins in `data`, in blocks of one byte a row.
        widths: bytes a row of each block.
        data: what is added to the base, and a word of nothing that the last rows may read.
    """

    count: int
    block_bits: int
    bases: Numbers
    starts: npt.NDArray[np.uint32]
    widths: Bytes
    data: Bytes

    @classmethod
    def of(cls, numbers: Numbers) -> Self:
        """The column of `numbers`; equal ones take no bytes at all."""
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
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        head = np.array([self.count, self.block_bits], dtype=np.int64)
        return head, self.bases, self.starts, self.widths, self.data

    def at(self, rows: Numbers) -> Numbers:
        """The numbers of `rows`."""
        blocks = rows >> self.block_bits
        widths = self.widths[blocks]
        inside = rows & ((1 << self.block_bits) - 1)
        first = self.starts[blocks].astype(np.int64) << _BLOCK_BITS
        added = words_of(self.data, 1)[first + inside * widths] & _MASKS[widths]
        values: Numbers = self.bases[blocks] + added.view(np.int64)
        return values

    def all(self) -> Numbers:
        """The numbers of all rows."""
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
    """The lowest `width` bytes of each of `words`."""
    whole = np.ascontiguousarray(words).reshape(-1).view(np.uint8)
    return whole.reshape(-1, _WORD)[:, :width]


def words_of(data: Bytes, step: int) -> Words:
    """Eight bytes from each `step` bytes of `data` on."""
    count = max(0, (len(data) - _WORD) // step + 1)
    return np.ndarray((count,), dtype="<u8", buffer=data, strides=(step,))


def write_arrays(sink: BinaryIO, arrays: Iterable[npt.NDArray[Any]]) -> None:
    """Write what `map_arrays` reads: how many, their bytes, then each from a multiple of 8 on."""
    pieces = [np.ascontiguousarray(array).view(np.uint8) for array in arrays]
    sink.write(np.array([len(pieces), *(len(piece) for piece in pieces)], dtype=np.int64).data)
    for piece in pieces:
        sink.write(piece.data)
        sink.write(bytes(-len(piece) % _WORD))


def map_arrays(path: Path) -> list[Bytes]:
    """The bytes of each array in the file at `path`, memory-mapped.

    Raises:
        ValueError: the file is shorter than it says.
    """
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
