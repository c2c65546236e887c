"""Changes of one partition of somebody else's topic: what each says, of which snapshot, when."""

from dataclasses import dataclass, replace
from enum import IntEnum
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.debezium.changes import ChangeRows, RecordKind
from joins.kernels.expressions.casts import mask_of
from watermark.foreign_records import Mark

Longs = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]

NO_MARK = -1
MARKS = tuple(Mark)
"""The marks by their codes."""

ROW_CODES = [MARKS.index(mark) for mark in (Mark.FIRST, Mark.ROW, Mark.LAST)]
_SNAPSHOT = {
    "first": Mark.FIRST,
    "first_in_data_collection": Mark.FIRST,
    "true": Mark.ROW,
    "last_in_data_collection": Mark.LAST,
    "last": Mark.LAST,
}
_NO_TIMESTAMP = -1  # as Kafka has it
_ARRAYS = ("offsets", "times_ms", "order_ms", "source_ms", "positions", "marks", "actions")
_CHANGES = (RecordKind.CREATE, RecordKind.UPDATE, RecordKind.DELETE)
_WITH_ROW = (RecordKind.READ, RecordKind.CREATE, RecordKind.UPDATE)
_WITHOUT_ROW = (RecordKind.DELETE, RecordKind.TOMBSTONE)


class Action(IntEnum):
    """What a record does to the table."""

    NOTHING = 0
    UPSERT = 1
    DELETE = 2


@dataclass(frozen=True, slots=True)
class ChangePiece:
    """Records of one partition, in the order of their offsets.

    Attributes:
        times_ms: of the records in Kafka.
        order_ms: the same, but none before that of an earlier record.
        source_ms: of the changes in their database; that in Kafka where it is not told.
        positions: of rows of snapshots: the number of where they were read, 0 if nobody tells.
        marks: codes of `MARKS`, or `NO_MARK`.
        actions: `Action` of each.
        key: the primary key of what is upserted or deleted.
        after: the declared columns of what is upserted.
        ended: of a table with versions: the rowtime of what is deleted, a column.
    """

    partition: int
    offsets: Longs
    times_ms: Longs
    order_ms: Longs
    source_ms: Longs
    positions: Longs
    marks: Codes
    actions: Codes
    key: pa.RecordBatch
    after: pa.RecordBatch
    ended: pa.RecordBatch | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, first: int, end: int) -> "ChangePiece":
        """Some of the records."""
        arrays = (getattr(self, name)[first:end] for name in _ARRAYS)
        rows = (each.slice(first, end - first) for each in (self.key, self.after))
        sliced = ChangePiece(self.partition, *arrays, *rows)
        if self.ended is None:
            return sliced
        return replace(sliced, ended=self.ended.slice(first, end - first))

    def after_ms(self, least_ms: int) -> "ChangePiece":
        return replace(self, order_ms=np.maximum(self.order_ms, least_ms))


def snapshot_rows(piece: ChangePiece) -> npt.NDArray[np.bool_]:
    return np.isin(piece.marks, ROW_CODES)


def pieces_of(records: pa.RecordBatch, changes: ChangeRows) -> list[ChangePiece]:
    """What the `changes` of `records`, none of them bad, say; those of a partition are together."""
    whole, partitions = _piece_of(records, changes), records.column("partition").to_numpy()
    ends = [*(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    pieces = []
    for first, end in pairwise([0, *ends]):
        part = whole.slice(first, end)
        order_ms = np.maximum.accumulate(part.times_ms)
        pieces.append(replace(part, partition=int(partitions[first]), order_ms=order_ms))
    return pieces


def _piece_of(records: pa.RecordBatch, changes: ChangeRows) -> ChangePiece:
    offsets = records.column("offset").to_numpy()
    stamps = records.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    times = stamps.fill_null(_NO_TIMESTAMP).to_numpy()
    source = pc.coalesce(changes.source_ts_ms, pa.array(times)).to_numpy(zero_copy_only=False)
    kind = changes.kind
    actions = np.zeros(len(offsets), np.int8)
    actions[_is_in(kind, _WITH_ROW)] = Action.UPSERT
    has_key = mask_of(changes.key.column(0).is_valid())
    actions[_is_in(kind, _WITHOUT_ROW) & has_key] = Action.DELETE
    return ChangePiece(
        -1,
        offsets,
        times,
        times,
        source,
        _numbers_of(changes.position),
        _marks(kind, changes.snapshot),
        actions,
        changes.key,
        changes.after,
    )


def _numbers_of(positions: pa.BinaryArray) -> Longs:
    """A number of each, the same in all pieces of the same; 0 of NULL."""
    coded = positions.dictionary_encode()
    numbers = [_number_of(text) for text in coded.dictionary.to_pylist()]
    places = coded.indices.fill_null(len(numbers)).to_numpy()
    of_each: Longs = np.array([*numbers, 0], np.int64)[places]
    return of_each


def _number_of(position: bytes) -> int:
    digest = blake2b(position, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1 or 1


def _marks(kind: pa.StringArray, snapshot: pa.StringArray) -> Codes:
    marks = np.full(len(kind), NO_MARK, np.int8)
    marks[_is_in(kind, _CHANGES) & _is_in(snapshot, ("false",))] = MARKS.index(Mark.STREAMED)
    for text, mark in _SNAPSHOT.items():
        marks[_is_in(snapshot, (text,)) & _is_in(kind, _WITH_ROW)] = MARKS.index(mark)
    marks[_is_in(kind, (RecordKind.TRUNCATE,))] = MARKS.index(Mark.TRUNCATE)
    return marks


def _is_in(texts: pa.StringArray, chosen: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return mask_of(pc.is_in(texts, value_set=pa.array([str(each) for each in chosen])))
