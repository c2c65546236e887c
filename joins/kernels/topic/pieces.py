"""Changes of a topic by partition: marks and times, their order, and their changelog records."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from hashlib import blake2b
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.envelope import (
    RECORDS_SCHEMA,
    SOURCE_SCHEMA,
    Envelopes,
    Limited,
    Op,
    encode_limited,
)
from joins.kernels.debezium.changes import ChangeRows, RecordKind
from joins.kernels.expressions.casts import mask_of
from joins.kernels.json.wire import to_wire
from joins.plan.plan import Field
from watermark.foreign_records import Mark, RecordRun

Longs = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]

NO_MARK = -1
MARKS = tuple(Mark)
"""The marks by their codes."""

_FIRST = MARKS.index(Mark.FIRST)
ROW_CODES = [MARKS.index(mark) for mark in (Mark.FIRST, Mark.ROW, Mark.LAST)]
_SNAPSHOT = {
    "first": Mark.FIRST,
    "first_in_data_collection": Mark.FIRST,
    "true": Mark.ROW,
    "last_in_data_collection": Mark.LAST,
    "last": Mark.LAST,
}
_NO_TIMESTAMP = -1  # as Kafka has it
_ARRAYS = (
    "offsets",
    "times_ms",
    "order_ms",
    "source_ms",
    "positions",
    "tables",
    "marks",
    "actions",
)
_CHANGES = (RecordKind.CREATE, RecordKind.UPDATE, RecordKind.DELETE)
_WITH_ROW = (RecordKind.READ, RecordKind.CREATE, RecordKind.UPDATE)
_WITHOUT_ROW = (RecordKind.DELETE, RecordKind.TOMBSTONE)


class Action(IntEnum):
    """Effect of a record on the table."""

    NOTHING = 0
    UPSERT = 1
    DELETE = 2


@dataclass(frozen=True, slots=True)
class ChangePiece:
    """Records of one partition, in the order of their offsets."""

    partition: int
    offsets: Longs
    times_ms: Longs  # timestamps of the records in Kafka
    order_ms: Longs  # the same, but never lower than that of an earlier record
    source_ms: Longs  # times of the changes in the database, or else `times_ms`
    positions: Longs  # hash of the position at which a snapshot row was read, 0 if unknown
    tables: Longs  # hash of the partition that a record names, of a table with several; 0 if none
    marks: Codes
    actions: Codes
    key: pa.RecordBatch  # primary keys of upserted and deleted rows
    after: pa.RecordBatch  # declared columns of upserted rows
    ended: pa.RecordBatch | None = None  # rowtime of deleted rows, in a table with versions
    # values of `after` that are open, one column each; None if there are none
    unsent: Mask | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, first: int, end: int) -> "ChangePiece":
        arrays = (getattr(self, name)[first:end] for name in _ARRAYS)
        rows = (each.slice(first, end - first) for each in (self.key, self.after))
        ended = None if self.ended is None else self.ended.slice(first, end - first)
        unsent = None if self.unsent is None else self.unsent[first:end]
        sliced = ChangePiece(self.partition, *arrays, *rows)
        return replace(sliced, ended=ended, unsent=unsent)


def snapshot_rows(piece: ChangePiece) -> npt.NDArray[np.bool_]:
    return np.isin(piece.marks, ROW_CODES)


def newest_change_ms(piece: ChangePiece) -> int | None:
    """The newest time that the database gave a streamed change; None without one."""
    is_given = piece.source_ms != piece.times_ms  # without a time it is that of the record
    changed = piece.source_ms[(piece.marks == MARKS.index(Mark.STREAMED)) & is_given]
    return int(changed.max()) if len(changed) else None


def pieces_of(
    records: pa.RecordBatch,
    changes: ChangeRows,
    *,
    has_partitions: bool = False,
    has_tombstones: bool = True,
) -> list[ChangePiece]:
    """Changes of `records`, none bad, by partition; records of a partition are contiguous.

    With `has_partitions` the tables that records name are partitions of one table. Without
    `has_tombstones` a tombstone, which may be of another table, deletes no row.
    """
    whole = _piece_of(records, changes, has_partitions)
    if not has_tombstones:
        whole.actions[_is_in(changes.kind, (RecordKind.TOMBSTONE,))] = Action.NOTHING
    partitions = records.column("partition").to_numpy()
    ends = [*(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    pieces = []
    for first, end in pairwise([0, *ends]):
        part = whole.slice(first, end)
        order_ms = np.maximum.accumulate(part.times_ms)
        pieces.append(replace(part, partition=int(partitions[first]), order_ms=order_ms))
    return pieces


def _piece_of(records: pa.RecordBatch, changes: ChangeRows, has_partitions: bool) -> ChangePiece:
    offsets = records.column("offset").to_numpy()
    stamps = records.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    times = stamps.fill_null(_NO_TIMESTAMP).to_numpy()
    source = pc.coalesce(changes.source_ts_ms, pa.array(times)).to_numpy(zero_copy_only=False)
    kind = changes.kind
    actions = np.zeros(len(offsets), np.int8)
    actions[_is_in(kind, _WITH_ROW)] = Action.UPSERT
    has_key = mask_of(changes.key.column(0).is_valid())
    tables = np.zeros(len(offsets), np.int64)
    if has_partitions:
        dot = pa.scalar(".")
        named = pc.binary_join_element_wise(pc.coalesce(changes.schema, ""), changes.table, dot)
        tables = _numbers_of(named.cast(pa.binary()))
    actions[_is_in(kind, _WITHOUT_ROW) & has_key] = Action.DELETE
    return ChangePiece(
        -1,
        offsets,
        times,
        times,
        source,
        _numbers_of(changes.position),
        tables,
        _marks(kind, changes.snapshot, has_partitions),
        actions,
        changes.key,
        changes.after,
        unsent=changes.unsent,
    )


def _numbers_of(positions: pa.BinaryArray) -> Longs:
    coded = positions.dictionary_encode()
    digests = [blake2b(text, digest_size=8).digest() for text in coded.dictionary.to_pylist()]
    numbers = [int.from_bytes(digest, "big") >> 1 or 1 for digest in digests]
    places = coded.indices.fill_null(len(numbers)).to_numpy()
    of_each: Longs = np.array([*numbers, 0], np.int64)[places]
    return of_each


def _marks(kind: pa.StringArray, snapshot: pa.StringArray, has_partitions: bool) -> Codes:
    """With partitions a last row is the last one of its partition, which proves nothing."""
    marks = np.full(len(kind), NO_MARK, np.int8)
    marks[_is_in(kind, _CHANGES) & _is_in(snapshot, ("false",))] = MARKS.index(Mark.STREAMED)
    for text, mark in _SNAPSHOT.items():
        mark = Mark.ROW if has_partitions and mark is Mark.LAST else mark
        marks[_is_in(snapshot, (text,)) & _is_in(kind, _WITH_ROW)] = MARKS.index(mark)
    marks[_is_in(kind, (RecordKind.TRUNCATE,))] = MARKS.index(Mark.TRUNCATE)
    return marks


def _is_in(texts: pa.StringArray, chosen: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return mask_of(pc.is_in(texts, value_set=pa.array([str(each) for each in chosen])))


def epoch_of(generation: int) -> int:
    return generation - 1


def changelog_records(
    pieces: Sequence[ChangePiece],
    generations: np.ndarray,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
    *,
    copied: int | None,
    most_bytes: int,
) -> Limited:
    """Changelog records `[key, value, partition]` of all rows that change the table.

    `generations` has one entry a record. Rows of the generation `copied`, which is still being
    copied, are `r`; other upserts are `c`. Partitions keep their numbers. A row whose record is
    beyond `most_bytes` is left out.
    """
    actions = np.concatenate([piece.actions for piece in pieces])
    chosen = np.flatnonzero(actions != Action.NOTHING)
    if len(chosen) == 0:
        return Limited(pa.RecordBatch.from_pylist([], schema=RECORDS_SCHEMA), ())
    generations, is_deleted = generations[chosen], actions[chosen] == Action.DELETE
    is_row = np.concatenate([snapshot_rows(piece) for piece in pieces])
    is_read = is_row[chosen] & (generations == (copied or 0))
    ops = np.where(is_deleted, Op.DELETE.value, np.where(is_read, Op.READ.value, Op.CREATE.value))
    by_name = {item.name: item for item in fields}
    taken = pa.array(chosen)
    limited = encode_limited(
        Envelopes(
            ops=pa.array(ops.tolist(), pa.string()),
            source=_source(pieces, chosen, generations),
            before=_wire([*map(_gone, pieces)], taken, by_name) if is_deleted.any() else None,
            after=None if is_deleted.all() else _wire([p.after for p in pieces], taken, by_name),
        ),
        primary_key,
        partitions=1,
        most_bytes=most_bytes,
    )
    partitions = np.repeat([p.partition for p in pieces], [len(p) for p in pieces])
    partition = pa.array(partitions[chosen], pa.int32())
    records = limited.records
    placed = records.set_column(2, records.schema.field("partition"), partition)
    return replace(limited, records=placed)


def _gone(piece: ChangePiece) -> pa.RecordBatch:
    if piece.ended is None:
        return piece.key
    columns = [*piece.key.columns, *piece.ended.columns]
    names = [*piece.key.schema.names, *piece.ended.schema.names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _source(
    pieces: Sequence[ChangePiece], chosen: np.ndarray, generations: np.ndarray
) -> pa.RecordBatch:
    nothing = np.zeros(len(chosen), np.int64)
    columns = {
        "epoch": generations - 1,
        "file": nothing,
        "pos": np.concatenate([piece.offsets for piece in pieces])[chosen],
        "row": nothing,
        "gen": generations,
        "ts_ms": np.concatenate([piece.source_ms for piece in pieces])[chosen],
    }
    arrays = [
        pa.array(columns[item.name].astype(np.int64)).cast(item.type) for item in SOURCE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SOURCE_SCHEMA)


def _wire(
    parts: Sequence[pa.RecordBatch], chosen: pa.Array, fields: dict[str, Field]
) -> pa.RecordBatch:
    rows = pa.concat_batches(parts).take(chosen)
    columns = [
        to_wire(column, fields[name].type)
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


class TimeOrder:
    """Holds records of each partition until no partition is behind them.

    Offsets order a partition: a record older than an earlier one gets that one's time.
    """

    def __init__(self, partitions: Iterable[int]) -> None:
        self._held: dict[int, list[ChangePiece]] = {partition: [] for partition in partitions}
        self._latest_ms: dict[int, int] = dict.fromkeys(self._held, -1)

    def held(self, partition: int) -> int:
        return sum(map(len, self._held[partition]))

    def add(self, piece: ChangePiece) -> None:
        if not len(piece):
            return
        latest_ms = self._latest_ms[piece.partition]
        later = replace(piece, order_ms=np.maximum(piece.order_ms, latest_ms))
        self._held[piece.partition].append(later)
        self._latest_ms[piece.partition] = int(later.order_ms[-1])

    def take(self, at_end: Collection[int]) -> list[ChangePiece]:
        """Records that no older ones can follow; partitions in `at_end` have no more records."""
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
    """Records of several partitions by ascending time; places count from 0 in this order."""

    def __init__(self, pieces: list[ChangePiece]) -> None:
        self.pieces = pieces
        joined = {
            name: np.concatenate([getattr(piece, name) for piece in pieces])
            for name in _ARRAYS
            if name != "actions"
        }
        owner = np.repeat([piece.partition for piece in pieces], [len(each) for each in pieces])
        self._order = np.lexsort((joined["offsets"], owner, joined["order_ms"]))
        self._partitions = owner[self._order]
        self.times_ms: Longs = joined["times_ms"][self._order]
        self._source_ms = joined["source_ms"][self._order]
        self._positions = joined["positions"][self._order]
        self._tables = joined["tables"][self._order]
        self._offsets = joined["offsets"][self._order]
        self._marks = joined["marks"][self._order]

    def __len__(self) -> int:
        return len(self._order)

    def older(
        self,
        first: int,
        *,
        changes_from_ms: int | None,
        rows_after_ms: int | None,
        position: int,
        truncated_at: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Mask from `first` on: older than the generation with these start times.

        Snapshot rows that were read at `position` belong to the generation. In the partition of a
        TRUNCATE that began it, its offset decides, because many records may have its time.
        """
        times, marks = self.times_ms[first:], self._marks[first:]
        is_row = np.isin(marks, ROW_CODES)
        older = np.zeros(len(times), np.bool_)
        if changes_from_ms is not None:
            older |= ~is_row & (times < changes_from_ms)
        if rows_after_ms is not None:
            is_own = (self._positions[first:] == position) & (position != 0)
            older |= is_row & (times <= rows_after_ms) & ~is_own
        if truncated_at is not None:
            is_there = self._partitions[first:] == truncated_at[0]
            older = np.where(is_there, self._offsets[first:] < truncated_at[1], older)
        return older

    def runs(self, first: int, left_out: np.ndarray) -> Iterable[tuple[int, RecordRun]]:
        """Runs of records with one mark from `first` on, each with its first place.

        Rows of one run were read at one position; without a position, a source time newer than all
        before begins another run. Records in `left_out` belong to no run.
        """
        counted = np.flatnonzero((self._marks[first:] != NO_MARK) & ~left_out) + first
        if not len(counted):
            return
        marks, source = self._marks[counted], self._source_ms[counted]
        positions = self._positions[counted]
        doubted = np.isin(marks, ROW_CODES) & (positions == 0)
        newest = np.maximum.accumulate(np.where(doubted, source, -1))
        tables = np.where(marks == _FIRST, self._tables[counted], 0)
        differs = [np.diff(each) != 0 for each in (marks, positions, newest, tables)]
        starts = np.flatnonzero(np.concatenate([[True], np.logical_or.reduce(differs)]))
        for at, end in zip(starts, [*starts[1:], len(counted)], strict=True):
            own = counted[at:end]
            last = own[-1]
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
                    int(tables[at]),
                    (int(self._partitions[last]), int(self._offsets[last])),
                ),
            )

    def newest_without_mark(self, first: int, end: int) -> int | None:
        times = self.times_ms[first:end][self._marks[first:end] == NO_MARK]
        return int(times.max()) if len(times) else None

    def place_at(self, first: int, at_ms: int) -> int:
        later = np.flatnonzero(self.times_ms[first:] >= at_ms)
        return first + int(later[0]) if len(later) else len(self)

    def by_piece(self, values: np.ndarray) -> list[tuple[ChangePiece, np.ndarray]]:
        """Splits `values`, one a place from 0 on, by piece; records without a value have -1."""
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
