"""Changes of somebody else's topic as records of our changelog."""

import numpy as np
import pyarrow as pa

from joins.kernels.changelog.envelope import SOURCE_SCHEMA, Envelopes, Op, encode_records
from joins.kernels.json.wire import to_wire
from joins.kernels.topic.pieces import Action, ChangePiece, snapshot_rows
from joins.plan.plan import Field


def epoch_of(generation: int) -> int:
    """Of the positions of a generation: they are newer than those of the one before."""
    return generation - 1


def changelog_records(
    piece: ChangePiece,
    generations: np.ndarray,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
    *,
    copied: int | None,
) -> pa.RecordBatch:
    """The records `[key, value, partition]` of what changes the table; a row is an upsert.

    Args:
        piece: changes of one partition, whose number our own partition has, too.
        generations: of each change.
        fields: the declared columns.
        primary_key: names of columns.
        copied: the generation whose rows are still being copied, None if it is complete.
    """
    chosen = np.flatnonzero(piece.actions != Action.NOTHING)
    generations, is_deleted = generations[chosen], piece.actions[chosen] == Action.DELETE
    is_read = snapshot_rows(piece)[chosen] & (generations == (copied or 0))
    ops = np.where(is_deleted, Op.DELETE.value, np.where(is_read, Op.READ.value, Op.CREATE.value))
    by_name = {item.name: item for item in fields}
    taken = pa.array(chosen)
    encoded = encode_records(
        Envelopes(
            ops=pa.array(ops.tolist(), pa.string()),
            source=_source(piece, chosen, generations),
            before=_wire(piece.key.take(taken), by_name) if is_deleted.any() else None,
            after=_wire(piece.after.take(taken), by_name) if not is_deleted.all() else None,
        ),
        primary_key,
        partitions=1,
    )
    partition = pa.repeat(pa.scalar(piece.partition, pa.int32()), encoded.num_rows)
    return encoded.set_column(2, encoded.schema.field("partition"), partition)


def _source(piece: ChangePiece, chosen: np.ndarray, generations: np.ndarray) -> pa.RecordBatch:
    nothing = np.zeros(len(chosen), np.int64)
    columns = {
        "epoch": generations - 1,
        "file": nothing,
        "pos": piece.offsets[chosen],
        "row": nothing,
        "gen": generations,
        "ts_ms": piece.source_ms[chosen],
    }
    arrays = [
        pa.array(columns[item.name].astype(np.int64)).cast(item.type) for item in SOURCE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SOURCE_SCHEMA)


def _wire(rows: pa.RecordBatch, fields: dict[str, Field]) -> pa.RecordBatch:
    columns = [
        to_wire(column, fields[name].type)
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
