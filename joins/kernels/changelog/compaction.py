"""Compaction of changelog rows: fewer rows, and everybody who reads all of them finds the same.

What is left of the rows given: each key's newest record, all watermark records, and for each
partition the records that tell how far it is (greatest position and newest source time of a
streamed change, greatest offset, newest generation). Repeats behind a watermark record are not a
key's newest record, as in an index. Records that hide a key go only when all older ones are given,
too, and only when an index drops them.

Of a dimension with event time each version of a key stays that somebody may still ask for,
deletions too, beside the key's newest record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.changes import GENERATION, Progress, newest_rows, numbers, with_rowtime
from joins.kernels.changelog.digest import POSITION_COLUMNS, reads_of
from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.index.asof import without_ended
from joins.kernels.index.hash_table import Rows

_AT = "__at"
_STREAMED = pa.array(["c", "u", "d"])


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """How a changelog is compacted.

    Attributes:
        primary_key: columns whose newest record is the row.
        progress: the watermark records of the whole changelog.
        complete: the greatest generation that every partition has completed, -1 for none.
        is_whole: whether no older rows exist than those given.
        versioned: the rowtime column of a dimension with event time.
        needed_from_ms: versions that end before are not asked for any more; None keeps all.
    """

    primary_key: tuple[str, ...]
    progress: Progress
    complete: int
    is_whole: bool
    versioned: str | None = None
    needed_from_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is left, watermark records last, and how many `r` records of each generation are not."""

    rows: pa.Table
    dropped_reads: Mapping[int, int]


def compact(rows: pa.Table, task: CompactionTask) -> Compacted:
    """The rows of `rows`, in any order, that are still needed."""
    rows = rows.combine_chunks()
    marks = mask_of(pc.equal(rows.column("_op"), "w"))
    milestones = _milestones(rows)
    keep = marks.copy()
    keep[milestones] = True
    keep[_newest(rows, task, marks, milestones)] = True
    order = np.flatnonzero(keep)
    order = order[np.argsort(marks[order], kind="stable")]
    kept = rows.take(pa.array(order))
    was, left = (reads_of(each.column("_op"), each.column("_generation")) for each in (rows, kept))
    dropped = {generation: count - left.get(generation, 0) for generation, count in was.items()}
    return Compacted(kept, {of: count for of, count in dropped.items() if count})


def _newest(rows: pa.Table, task: CompactionTask, marks: Mask, milestones: Rows) -> Rows:
    """Where the newest record of each key is, without those that may go, and its versions."""
    usable = np.flatnonzero(~marks & ~task.progress.ignored(rows))
    rowtime = [] if task.versioned is None else [task.versioned]
    kept = [*task.primary_key, *rowtime, "_op", GENERATION, *POSITION_COLUMNS, "_offset"]
    names = list(dict.fromkeys(kept))
    keyed = rows.select(names).take(pa.array(usable)).append_column(_AT, pa.array(usable))
    newest = newest_rows(keyed, task.primary_key)
    if task.versioned is not None:
        versions = _versions(keyed, task.primary_key, task.versioned, task.needed_from_ms)
        return np.concatenate([numbers(newest, _AT), numbers(versions, _AT)])
    if task.is_whole and newest.num_rows:
        protected = rows.column(task.primary_key[0]).take(pa.array(milestones))
        newest = newest.filter(pa.array(~_forgettable(newest, task, protected)))
    return numbers(newest, _AT)


def _versions(
    keyed: pa.Table, primary_key: Sequence[str], rowtime: str, from_ms: int | None
) -> pa.Table:
    """The versions that somebody may still ask for."""
    dated = with_rowtime(keyed, rowtime)
    identity = list(dict.fromkeys([*primary_key, rowtime]))
    newest = newest_rows(dated, identity, versioned=rowtime)
    return without_ended(newest, primary_key, rowtime, from_ms)


def _forgettable(newest: pa.Table, task: CompactionTask, protected: pa.ChunkedArray) -> Mask:
    """Records that hide their key and are older than whatever may still be sent again.

    The key of a milestone keeps its newest record, for the milestone may be an older one.
    """
    epoch, file, generation = (numbers(newest, n) for n in ("_epoch", "_file", GENERATION))
    hidden = mask_of(pc.equal(newest.column("_op"), "d")) | (generation < task.complete)
    newest_epoch = epoch.max()
    newest_file = file[epoch == newest_epoch].max()
    old = (epoch < newest_epoch) | (file < newest_file - 1)
    first_key = newest.column(task.primary_key[0])
    shared = mask_of(pc.is_in(first_key, value_set=pa.concat_arrays(protected.chunks)))
    forgettable: Mask = hidden & old & ~shared
    return forgettable


def _milestones(rows: pa.Table) -> Rows:
    """Where the records are that tell how far each partition is."""
    partition, offset, generation = (
        numbers(rows, name) for name in ("_partition", "_offset", GENERATION)
    )
    streamed = mask_of(pc.is_in(rows.column("_op"), value_set=_STREAMED))
    position = [numbers(rows, name) for name in POSITION_COLUMNS]
    made = np.asarray(pc.fill_null(rows.column("_source_ts"), 0), dtype=np.int64)
    latest = np.where(generation == generation.max(), offset, -1)
    milestones = {int(latest.argmax())}
    for each in np.unique(partition):
        own = np.flatnonzero(partition == each)
        milestones.add(int(own[offset[own].argmax()]))
        changes = own[streamed[own]]
        if len(changes):
            order = np.lexsort([part[changes] for part in reversed(position)])
            milestones.add(int(changes[order[-1]]))
            milestones.add(int(changes[made[changes].argmax()]))  # clocks of two servers differ
    return np.array(sorted(milestones), dtype=np.int64)


def watermarks(rows: Sequence[pa.Table]) -> Progress:
    """The watermark records among `rows`."""
    progress = Progress()
    for table in rows:
        progress = progress.with_records(table.filter(pc.equal(table.column("_op"), "w")))
    return progress
