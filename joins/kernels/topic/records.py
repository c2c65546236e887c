"""Changes of somebody else's topic as records of our changelog."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from joins.kernels.changelog.envelope import (
    RECORDS_SCHEMA,
    SOURCE_SCHEMA,
    Envelopes,
    Op,
    encode_records,
)
from joins.kernels.json.wire import to_wire
from joins.kernels.topic.pieces import Action, ChangePiece, snapshot_rows
from joins.plan.plan import Field


def epoch_of(generation: int) -> int:
    return generation - 1


def changelog_records(
    pieces: Sequence[ChangePiece],
    generations: np.ndarray,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
    *,
    copied: int | None,
) -> pa.RecordBatch:
    """The records `[key, value, partition]` of what changes the table; a row is an upsert.

    Args:
        pieces: changes; our partitions have the numbers of theirs.
        generations: of each change.
        fields: the declared columns.
        primary_key: names of columns.
        copied: the generation whose rows are still being copied, None if it is complete.
    """
    actions = np.concatenate([piece.actions for piece in pieces])
    chosen = np.flatnonzero(actions != Action.NOTHING)
    if len(chosen) == 0:
        return pa.RecordBatch.from_pylist([], schema=RECORDS_SCHEMA)
    generations, is_deleted = generations[chosen], actions[chosen] == Action.DELETE
    is_row = np.concatenate([snapshot_rows(piece) for piece in pieces])
    is_read = is_row[chosen] & (generations == (copied or 0))
    ops = np.where(is_deleted, Op.DELETE.value, np.where(is_read, Op.READ.value, Op.CREATE.value))
    by_name = {item.name: item for item in fields}
    taken = pa.array(chosen)
    encoded = encode_records(
        Envelopes(
            ops=pa.array(ops.tolist(), pa.string()),
            source=_source(pieces, chosen, generations),
            before=_wire([*map(_gone, pieces)], taken, by_name) if is_deleted.any() else None,
            after=None if is_deleted.all() else _wire([p.after for p in pieces], taken, by_name),
        ),
        primary_key,
        partitions=1,
    )
    partitions = np.repeat([p.partition for p in pieces], [len(p) for p in pieces])
    partition = pa.array(partitions[chosen], pa.int32())
    return encoded.set_column(2, encoded.schema.field("partition"), partition)


def _gone(piece: ChangePiece) -> pa.RecordBatch:
    """What deletions say of their rows: the key, and of a table with versions when they ended."""
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
