"""Changes between two states of some rows of a table, by its key."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.comparison import hashable
from joins.kernels.changelog.envelope import SOURCE_SCHEMA, BinlogPosition, Envelopes
from joins.kernels.expressions.casts import mask_of
from joins.kernels.json.encode import encode_objects


def row_changes(before: pa.RecordBatch, after: pa.RecordBatch, key: tuple[str, ...]) -> pa.Table:
    """Changes that turn the rows `before` into `after`, in a deterministic order, deletions first.

    Both have the same wire columns. The last of several rows of a key counts. Equal rows are no
    change. Returns `op` (`d`, `u`, `c`), `before` (int64 row of `before`, NULL for `c`) and `after`
    (int64 row of `after`, NULL for `d`).
    """
    old, new = _newest(before, key), _newest(after, key)
    old_keys, new_keys = old.column("key"), new.column("key")
    places_in_old = pc.index_in(new_keys, value_set=old_keys)
    deleted = old.filter(pc.invert(pc.is_in(old_keys, value_set=new_keys)))
    old_rows = old.column("row").take(places_in_old)
    same = _same(before, after, old_rows, new.column("row"))
    kept = pa.array(~same)
    ops = pc.if_else(places_in_old.is_valid(), "u", "c").filter(kept)
    nothing = pa.nulls(deleted.num_rows, pa.int64())
    gone = pa.table(
        {
            "op": pa.repeat(pa.scalar("d"), deleted.num_rows),
            "before": deleted.column("row"),
            "after": nothing,
        }
    )
    here = pa.table(
        {"op": ops, "before": old_rows.filter(kept), "after": new.column("row").filter(kept)}
    )
    return pa.concat_tables([gone, here]).combine_chunks()


def changes_at(
    rows: pa.Table,
    sides: tuple[pa.RecordBatch, pa.RecordBatch],
    place: BinlogPosition,
    *,
    first: int,
    source: tuple[int, int],
) -> Envelopes:
    """A slice of `row_changes` of both `sides` as changes to encode, all at `place`.

    `first` is the first ordinal; `source` has generation and epoch milliseconds of the commit.
    """
    before, after = (
        None if taken.null_count == len(taken) else side.take(taken.combine_chunks())
        for side, taken in zip(sides, (rows.column("before"), rows.column("after")), strict=True)
    )
    ordinals = np.arange(first, first + rows.num_rows)
    return Envelopes(
        ops=rows.column("op").combine_chunks(),
        source=source_block(ordinals, place, source),
        before=before,
        after=after,
    )


def source_block(
    ordinals: np.ndarray, place: BinlogPosition, source: tuple[int, int]
) -> pa.RecordBatch:
    """Source block of rows at one position, numbered by `ordinals`; `source` as above."""
    count, (generation, at_ms) = len(ordinals), source
    constants = {
        "epoch": place.epoch,
        "file": place.file,
        "pos": place.pos,
        "gen": generation,
        "ts_ms": at_ms,
    }
    columns = [
        pa.array(ordinals, pa.int64())
        if item.name == "row"
        else pa.repeat(pa.scalar(constants[item.name], item.type), count)
        for item in SOURCE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SOURCE_SCHEMA)


def _newest(rows: pa.RecordBatch, key: tuple[str, ...]) -> pa.Table:
    keys = encode_objects(rows.select(list(key)))
    numbers = pa.array(np.arange(rows.num_rows), pa.int64())
    last = pa.table({"key": keys, "row": numbers}).group_by("key").aggregate([("row", "max")])
    kept = last.column("row_max").combine_chunks().sort()
    return pa.table({"key": keys.take(kept), "row": kept})


def _same(
    before: pa.RecordBatch, after: pa.RecordBatch, old: pa.ChunkedArray, new: pa.ChunkedArray
) -> np.ndarray:
    same = mask_of(old.combine_chunks().is_valid())
    for name in after.schema.names:
        one, other = (
            hashable(column.take(rows))
            for column, rows in ((before.column(name), old), (after.column(name), new))
        )
        equal = pc.or_(
            pc.fill_null(pc.equal(one, other), False), pc.and_(one.is_null(), other.is_null())
        )
        same &= mask_of(equal)
    return np.asarray(same)
