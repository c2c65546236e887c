"""Whether a job's dimension is the table: folds of its Delta tables against `SELECT *`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

_POSITION = ("_epoch", "_file", "_pos", "_row", "_offset")
Rows = Mapping[int, tuple[Any, ...]]


def folded_changelog(path: Path, key: str, columns: tuple[str, ...], partitions: int) -> Rows:
    """The newest record of each key; rows of unfinished and abandoned copies do not count."""
    table = DeltaTable(str(path)).to_pyarrow_table()
    numbers = {name: _numbers(table, name) for name in (*_POSITION, "_partition", "_generation")}
    op = table.column("_op").to_numpy(zero_copy_only=False)
    keep = op != "w"
    complete = []
    for partition in range(partitions):
        marks = (op == "w") & (numbers["_partition"] == partition)
        if not marks.any():
            return {}
        newest = numbers["_generation"][marks].max()
        first = numbers["_offset"][marks & (numbers["_generation"] == newest)].min()
        late = (op == "r") & (numbers["_partition"] == partition) & (numbers["_offset"] > first)
        keep &= ~(late & (numbers["_generation"] <= newest))
        complete.append(newest)
    keys = _numbers(table, key)
    order = np.lexsort([*(numbers[name] for name in reversed(_POSITION)), keys])
    order = order[keep[order]]
    last = np.append(keys[order][1:] != keys[order][:-1], True)
    chosen = order[last]
    visible = (op[chosen] != "d") & (numbers["_generation"][chosen] >= min(complete))
    return _as_rows(table.take(pa.array(chosen[visible])), key, columns)


def current_rows(path: Path, key: str, columns: tuple[str, ...]) -> Rows:
    """The rows of `current`; a key that is there twice is a row too many."""
    table = DeltaTable(str(path)).to_pyarrow_table()
    if pc.count_distinct(table.column(key)).as_py() != table.num_rows:
        return {}
    return _as_rows(table, key, columns)


def differences(found: Rows, expected: Rows) -> list[str]:
    """Ghosts, missing and other rows, a few of them; empty when both are the same."""
    if found == expected:
        return []
    ghosts = sorted(found.keys() - expected.keys())
    missing = sorted(expected.keys() - found.keys())
    other = sorted(k for k in found.keys() & expected.keys() if found[k] != expected[k])
    counts = f"{len(ghosts)} ghosts, {len(missing)} missing, {len(other)} other"
    return [
        counts,
        *(f"{k}: {found.get(k)} {expected.get(k)}" for k in (*ghosts, *missing, *other)[:5]),
    ]


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    column = table.column(name).cast(pa.int64()).fill_null(-1)
    return np.asarray(column.to_numpy())


def _as_rows(table: pa.Table, key: str, columns: tuple[str, ...]) -> Rows:
    values = [table.column(name).to_pylist() for name in columns]
    return dict(zip(table.column(key).to_pylist(), zip(*values, strict=True), strict=True))
