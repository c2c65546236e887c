"""Records of several partitions in the order of their times, as far as nothing older can follow."""

from collections.abc import Collection, Iterable
from itertools import groupby

import numpy as np

from joins.kernels.topic.pieces import MARKS, NO_MARK, ROW_CODES, ChangePiece, Longs
from watermark.foreign_records import RecordRun


class TimeOrder:
    """Holds what was read of each partition until no partition is behind it.

    Within a partition the order is that of the offsets: a record with an older time than one
    before it counts as that late.
    """

    def __init__(self, partitions: Iterable[int]) -> None:
        self._held: dict[int, list[ChangePiece]] = {partition: [] for partition in partitions}
        self._latest_ms: dict[int, int] = dict.fromkeys(self._held, -1)

    def held(self, partition: int) -> int:
        return sum(map(len, self._held[partition]))

    def add(self, piece: ChangePiece) -> None:
        """More of a partition."""
        if not len(piece):
            return
        later = piece.after_ms(self._latest_ms[piece.partition])
        self._held[piece.partition].append(later)
        self._latest_ms[piece.partition] = int(later.order_ms[-1])

    def take(self, at_end: Collection[int]) -> list[ChangePiece]:
        """What is to be processed now.

        Args:
            at_end: the partitions that have no more now; of the others older records may come.
        """
        behind = [ms for partition, ms in self._latest_ms.items() if partition not in at_end]
        if not behind:
            taken = [piece for held in self._held.values() for piece in held]
            self._held = {partition: [] for partition in self._held}
            return taken
        frontier, taken = min(behind), []
        for partition, held in self._held.items():
            kept = []
            for piece in held:
                count = int(np.searchsorted(piece.order_ms, frontier, side="right"))
                if count:
                    taken.append(piece.slice(0, count))
                if count < len(piece):
                    kept.append(piece.slice(count, len(piece)))
            self._held[partition] = kept
        return taken

    def forget(self, partition: int) -> None:
        self._held[partition] = []
        self._latest_ms[partition] = -1


class Window:
    """Records of any partitions, to be walked through in the order of their times.

    Places are those in this order, from 0 to `len`.
    """

    def __init__(self, pieces: list[ChangePiece]) -> None:
        self.pieces = pieces
        joined = {
            name: np.concatenate([getattr(piece, name) for piece in pieces])
            for name in ("offsets", "order_ms", "times_ms", "source_ms", "positions", "marks")
        }
        owner = np.repeat([piece.partition for piece in pieces], [len(each) for each in pieces])
        self._order = np.lexsort((joined["offsets"], owner, joined["order_ms"]))
        self._partitions = owner[self._order]
        self.times_ms: Longs = joined["times_ms"][self._order]
        self._source_ms = joined["source_ms"][self._order]
        self._positions = joined["positions"][self._order]
        self._marks = joined["marks"][self._order]

    def __len__(self) -> int:
        return len(self._order)

    def older(
        self, first: int, *, changes_from_ms: int | None, rows_after_ms: int | None, position: int
    ) -> np.ndarray:
        """Which records from `first` on are of before the generation that these times tell.

        Rows that were read at its position are not.
        """
        times, marks = self.times_ms[first:], self._marks[first:]
        is_row = np.isin(marks, ROW_CODES)
        older = np.zeros(len(times), np.bool_)
        if changes_from_ms is not None:
            older |= ~is_row & (times < changes_from_ms)
        if rows_after_ms is not None:
            is_own = (self._positions[first:] == position) & (position != 0)
            older |= is_row & (times <= rows_after_ms) & ~is_own
        return older

    def runs(self, first: int, left_out: np.ndarray) -> Iterable[tuple[int, RecordRun]]:
        """From the place `first` on: where a run begins, and the run.

        Rows of one run were read at one position; where nobody tells it, a newer source time than
        all before begins another one.

        Args:
            first: of the first record.
            left_out: which records from there on belong to no run.
        """
        counted = np.flatnonzero((self._marks[first:] != NO_MARK) & ~left_out) + first
        if not len(counted):
            return
        marks, source = self._marks[counted], self._source_ms[counted]
        positions = self._positions[counted]
        doubted = np.isin(marks, ROW_CODES) & (positions == 0)
        newest = np.maximum.accumulate(np.where(doubted, source, -1))
        differs = [np.diff(each) != 0 for each in (marks, positions, newest)]
        starts = np.flatnonzero(np.concatenate([[True], np.logical_or.reduce(differs)]))
        for at, end in zip(starts, [*starts[1:], len(counted)], strict=True):
            own = counted[at:end]
            times = self.times_ms[own]
            yield (
                int(own[0]),
                RecordRun(
                    MARKS[marks[at]],
                    frozenset(np.unique(self._partitions[own]).tolist()),
                    int(times.min()),
                    int(times.max()),
                    int(source[at:end].max()),
                    int(source[at:end].min()),
                    int(positions[at]),
                ),
            )

    def newest_without_mark(self, first: int, end: int) -> int | None:
        times = self.times_ms[first:end][self._marks[first:end] == NO_MARK]
        return int(times.max()) if len(times) else None

    def place_at(self, first: int, at_ms: int) -> int:
        later = np.flatnonzero(self.times_ms[first:] >= at_ms)
        return first + int(later[0]) if len(later) else len(self)

    def by_piece(self, values: np.ndarray) -> list[tuple[ChangePiece, np.ndarray]]:
        """Each piece with its values, of which there is one a place; -1 where none is."""
        spread = np.full(len(self), -1, values.dtype)
        spread[self._order[: len(values)]] = values
        ends = np.cumsum([len(piece) for piece in self.pieces])
        return [
            (piece, part)
            for piece, part in zip(self.pieces, np.split(spread, ends[:-1]), strict=True)
        ]


def by_partition(pieces: list[ChangePiece]) -> dict[int, list[ChangePiece]]:
    ordered = sorted(pieces, key=lambda piece: (piece.partition, int(piece.offsets[0])))
    return {p: list(own) for p, own in groupby(ordered, key=lambda piece: piece.partition)}
