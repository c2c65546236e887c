"""The large values of each key's newest row, on disk, for changes that do not have them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from joins.adapters.topic.appended_file import AppendedFile, TimeFile
from joins.kernels.topic.keys import GONE
from joins.kernels.topic.pieces import ChangePiece
from joins.kernels.topic.unsent import FilledPiece, block_schema, fill, place_of, position_of
from joins.plan.plan import Field

_SIZE_BYTES = 8
_SPARE_BYTES = 256 << 20
_COPIED_ROWS = 10_000  # of a block of a new file


class ValueFile:
    """Durable blocks of rows, and where each key's newest row is.

    A file that has doubled since it was begun is replaced by one with the newest rows only. A
    number follows `path`; `kept` is that number and the file's valid bytes, `places` as in
    `TimeFile`.

    Attributes:
        live: bytes of the rows that the file was begun with.
    """

    def __init__(
        self,
        path: Path,
        fields: Sequence[Field],
        kept: tuple[int, int],
        places: tuple[int, int],
        *,
        live: int = 0,
        spare: int = _SPARE_BYTES,
    ) -> None:
        self._path = path
        self._schema = block_schema(fields)
        self._names = [field.name for field in fields]
        self._spare = spare
        self._number, self._bytes = kept
        self.live = live
        self._file = self._numbered(self._number, self._bytes)
        self._numbered(self._number - 1, 0).remove()
        self._old: AppendedFile | None = None
        self._places = TimeFile(path.with_name(f"{path.name}-places"), places)
        self._unsaved: dict[int, pa.RecordBatch] = {}
        self._newest: tuple[int, pa.RecordBatch] | None = None

    def fill(self, piece: ChangePiece) -> FilledPiece:
        """As `unsent.fill`; `keep` applies it."""
        return fill(piece, self._names, self._places, self._block, self._bytes)

    def keep(self, filled: FilledPiece) -> None:
        if len(filled.places):
            self._places.take(filled.keys, filled.places)
            self._append(filled.block)

    def save(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Make all durable; (number, bytes) of the blocks, and `TimeFile.save` of the places."""
        if self._old is not None:
            self._old.remove()  # the previous save recorded that it is not needed
            self._old = None
        self._save_blocks()
        if self._bytes > 2 * self.live + self._spare:
            self._rewrite()
        return (self._number, self._bytes), self._places.save()

    def _save_blocks(self) -> None:
        self._file.save()
        self._unsaved = {}

    def _append(self, block: pa.RecordBatch) -> None:
        data = block.serialize().to_pybytes()
        self._unsaved[self._bytes] = block
        self._file.append(len(data).to_bytes(_SIZE_BYTES, "big") + data)
        self._bytes += _SIZE_BYTES + len(data)

    def _rewrite(self) -> None:
        parts = list(self._places.known())
        places = np.concatenate([np.zeros(0, np.int64), *(values for _, values in parts)])
        hashes, checks = (
            np.concatenate([np.zeros(0, np.uint64), *(keys[at] for keys, _ in parts)])[
                places != GONE
            ]
            for at in range(2)
        )
        places = places[places != GONE]
        order = np.argsort(places, kind="stable")
        old, moved = self._file, np.empty_like(places)
        self._number, self._bytes = self._number + 1, 0
        new = self._numbered(self._number, 0)
        for first in range(0, len(order), _COPIED_ROWS):
            chosen = order[first : first + _COPIED_ROWS]
            block = self._rows(places[chosen])
            moved[chosen] = place_of(self._bytes, np.arange(len(chosen)))
            self._file = new
            self._append(block)
            self._save_blocks()
            self._file = old
        self._file, self._old, self._newest = new, old, None
        self.live = self._bytes
        self._places.take((hashes, checks), moved)

    def _rows(self, places: np.ndarray) -> pa.RecordBatch:
        """The rows at ascending `places`."""
        positions, rows = position_of(places)
        starts = np.flatnonzero(np.diff(positions, prepend=-1))
        parts = [
            self._block(int(positions[first])).take(pa.array(rows[first:end]))
            for first, end in zip(starts, [*starts[1:], len(rows)], strict=True)
        ]
        return pa.concat_batches(parts)

    def _block(self, position: int) -> pa.RecordBatch:
        if position in self._unsaved:
            return self._unsaved[position]
        if self._newest is None or self._newest[0] != position:
            size = int.from_bytes(self._file.at(position, _SIZE_BYTES), "big")
            data = self._file.at(position + _SIZE_BYTES, size)
            self._newest = position, pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)
        return self._newest[1]

    def _numbered(self, number: int, kept: int) -> AppendedFile:
        return AppendedFile(self._path.with_name(f"{self._path.name}-{number}"), 1, kept)
