"""Whether a job's dimension is the table: folds of its Delta tables against the table's rows.

Rows are tables of Arrow in the order of their first column, the key.
"""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from tests.support.rig import Rig
from tests.support.wait import wait_until

_POSITION = ("_epoch", "_file", "_pos", "_row", "_offset")
_SHOWN = 3


def folded_changelog(path: Path, columns: tuple[str, ...], partitions: int) -> pa.Table:
    """The newest record of each key; rows of unfinished and abandoned copies do not count."""
    table = DeltaTable(str(path)).to_pyarrow_table()
    numbers = {name: _numbers(table, name) for name in (*_POSITION, "_partition", "_generation")}
    op = table.column("_op").to_numpy(zero_copy_only=False)
    keep = op != "w"
    complete = []
    for partition in range(partitions):
        marks = (op == "w") & (numbers["_partition"] == partition)
        if not marks.any():
            return table.select(columns).slice(0, 0)
        newest = numbers["_generation"][marks].max()
        first = numbers["_offset"][marks & (numbers["_generation"] == newest)].min()
        late = (op == "r") & (numbers["_partition"] == partition) & (numbers["_offset"] > first)
        keep &= ~(late & (numbers["_generation"] <= newest))
        complete.append(newest)
    keys = _numbers(table, columns[0])
    order = np.lexsort([*(numbers[name] for name in reversed(_POSITION)), keys])
    order = order[keep[order]]
    last = np.append(keys[order][1:] != keys[order][:-1], True)
    chosen = order[last]
    visible = (op[chosen] != "d") & (numbers["_generation"][chosen] >= min(complete))
    return table.select(columns).take(pa.array(chosen[visible]))


def current_rows(path: Path, columns: tuple[str, ...]) -> pa.Table:
    return DeltaTable(str(path)).to_pyarrow_table(columns=list(columns)).sort_by(columns[0])


def differences(found: pa.Table, expected: pa.Table) -> list[str]:
    """Ghosts, missing, repeated and other rows, a few of them; empty when both are the same."""
    found = found.cast(expected.schema)
    if found.equals(expected):
        return []
    keys, expected_keys = (each.column(0).combine_chunks() for each in (found, expected))
    is_ghost, is_missing = _absent(keys, expected_keys), _absent(expected_keys, keys)
    repeated = len(keys) - pc.count_distinct(keys).as_py()
    counts = f"{is_ghost.sum()} ghosts, {is_missing.sum()} missing, {repeated} repeated"
    wrong = [*_shown("ghost", found, is_ghost), *_shown("missing", expected, is_missing)]
    if repeated:
        return [counts, *wrong]
    found, expected = found.filter(pa.array(~is_ghost)), expected.filter(pa.array(~is_missing))
    pairs = zip(found.columns, expected.columns, strict=True)
    is_other = np.logical_or.reduce([_differ(*pair) for pair in pairs])
    wrong += [*_shown("found", found, is_other), *_shown("expected", expected, is_other)]
    return [f"{counts}, {is_other.sum()} other", *wrong]


def _absent(keys: pa.Array, others: pa.Array) -> np.ndarray:
    return ~np.asarray(pc.is_in(keys, others))


def _differ(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> np.ndarray:
    """True where the values differ; NULL is the same as NULL."""
    both_null = pc.and_(pc.is_null(found), pc.is_null(expected))
    same = pc.coalesce(pc.equal(found, expected), both_null)
    return ~np.asarray(same)


def _shown(word: str, rows: pa.Table, chosen: np.ndarray) -> list[str]:
    few = rows.take(pa.array(np.flatnonzero(chosen)[:_SHOWN]))
    return [f"{word}: {row}" for row in few.to_pylist()]


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    column = table.column(name).cast(pa.int64()).fill_null(-1)
    return np.asarray(column.to_numpy())


def recorded_rows(rig: Rig, path: str) -> int:
    """Rows of the output `path`, by its log."""
    if not (rig.output(path) / "_delta_log").is_dir():
        return 0
    actions = pa.table(DeltaTable(str(rig.output(path))).get_add_actions(flatten=True))
    return int(pc.sum(actions["num_records"]).as_py() or 0)


def tables_differ(
    directory: Path, expected: pa.Table, *, partitions: int, within_s: float
) -> list[str]:
    """How `changelog` and `current` differ from the rows, once everything has arrived."""
    columns = tuple(expected.column_names)
    told: list[str] = []

    def same() -> bool:
        changelog = folded_changelog(directory / "changelog", columns, partitions)
        current = current_rows(directory / "current", columns)
        told[:] = [f"changelog: {text}" for text in differences(changelog, expected)]
        told.extend(f"current: {text}" for text in differences(current, expected))
        if told:
            time.sleep(1.0)  # each look reads both tables
        return not told

    try:
        wait_until(same, deadline_s=within_s)
    except TimeoutError:
        return told
    return []
