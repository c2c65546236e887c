"""Versions of a dimension's rows: which one is valid at a time, and which are no longer needed.

A version is valid from its rowtime, inclusive, until the next one of its primary key; a deletion is
a version without a row (`watermark.reference.temporal`). A new copy of the table (a generation) has
no deletions: if it lacks a key, the key's newest version counts as deleted at its own rowtime.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from joins.kernels.calendar.ticks import micros, rowtimes
from joins.kernels.changelog.changes import GENERATION, exact_codes, numbers, shared_hash
from joins.kernels.expressions.casts import Mask, whole
from joins.kernels.index.hash_table import Rows


def valid_at(probes: Rows, since: Rows, times: Rows) -> Rows:
    """Position of the version valid at each probe's time, for each probe that has one.

    `probes` is ascending and has the probe of each version; `since` has their rowtimes, different
    within a probe, in the unit of `times`.
    """
    begun = np.flatnonzero(since <= times[probes])
    probes, since = probes[begun], since[begun]
    first = _firsts(probes)
    if first.all():
        return begun
    starts = np.flatnonzero(first)
    newest = np.maximum.reduceat(since, starts)
    firsts: Rows = begun[since == newest[np.cumsum(first) - 1]]
    return firsts


def ended_by_copy(probes: Rows, since: Rows, generations: Rows, complete: int) -> Mask:
    """Mask of each key's newest version, where the complete copy lacks the key.

    `probes` is ascending and has the probe of each version, with all versions of its key.
    `generations` has the copy of each version, `complete` the greatest complete one.
    """
    first = _firsts(probes)
    starts, run = np.flatnonzero(first), np.cumsum(first) - 1
    if len(starts) == 0:
        return np.zeros(0, dtype=np.bool_)
    gone = np.maximum.reduceat(generations, starts) < complete
    ended: Mask = gone[run] & (since == np.maximum.reduceat(since, starts)[run])
    return ended


def without_ended(
    rows: pa.Table, primary_key: Sequence[str], rowtime: str, from_ms: int | None
) -> pa.Table:
    """`rows`, one a version, without the versions that end at or before `from_ms`.

    Of each key all later versions stay, and the newest of the others, deletion or not: a change
    with an older rowtime may still come. The proof that a later copy has found the key stays, too.
    """
    if from_ms is None or rows.num_rows == 0:
        return rows
    keep = ~ended(rows, primary_key, rowtime, from_ms)
    return rows if keep.all() else rows.filter(pa.array(keep))


def ended(rows: pa.Table, primary_key: Sequence[str], rowtime: str, from_ms: int) -> Mask:
    """Mask of the rows that `without_ended` drops."""
    since = rowtimes(whole(rows.column(rowtime)))
    keys = [whole(rows.column(name)) for name in primary_key]
    limit = micros(np.array([from_ms]))[0]
    candidates = np.flatnonzero((since <= limit) & shared_hash(keys))
    gone = np.zeros(rows.num_rows, dtype=np.bool_)
    if len(candidates) == 0:
        return gone
    codes = exact_codes([key.take(pa.array(candidates)) for key in keys])
    order = np.lexsort([since[candidates], codes])
    candidates, codes = candidates[order], codes[order]
    last = np.ones(len(candidates), dtype=np.bool_)
    last[:-1] = codes[1:] != codes[:-1]
    generation = numbers(rows, GENERATION)[candidates]
    run = np.cumsum(np.concatenate([[0], last[:-1].astype(np.int64)]))
    newest = generation[last][run]
    gone[candidates[~last & (generation <= newest)]] = True
    return gone


def _firsts(probes: Rows) -> Mask:
    first = np.ones(len(probes), dtype=np.bool_)
    first[1:] = probes[1:] != probes[:-1]
    return first
