"""What changed in a dimension between two of its versions: inserted, updated and deleted rows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from joins.dimension.changelog_scan import Key, KeyWalk
from joins.dimension.states import DimensionStates, PageLimit, State
from joins.kernels.expressions.casts import whole
from joins.kernels.json.exact import json_values
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError
from joins.plan.plan import Dimension

CHANGE_TYPE = "_change_type"


class ChangeType(StrEnum):
    """What a row of a table of changes is, as in Delta's change data feed."""

    INSERT = "insert"
    BEFORE = "update_preimage"
    AFTER = "update_postimage"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One key's rows, as numbers of rows of the page's two tables; both for an update."""

    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes in the order of their keys.

    Attributes:
        before: rows of the earlier version; those that no change names are equal in both.
        after: rows of the later version, likewise.
        next_after: the key behind which the next page begins, None after the last page.
    """

    before: pa.Table
    after: pa.Table
    changes: tuple[KeyChange, ...]
    next_after: Key | None

    def as_table(self) -> pa.Table:
        """A row a change, two an update, with `_change_type` as its last column."""
        kinds: list[tuple[int, ChangeType]] = []
        for change in self.changes:
            is_update = change.before is not None and change.after is not None
            if change.before is not None:
                kind = ChangeType.BEFORE if is_update else ChangeType.DELETE
                kinds.append((change.before, kind))
            if change.after is not None:
                kind = ChangeType.AFTER if is_update else ChangeType.INSERT
                kinds.append((change.after + self.before.num_rows, kind))
        rows = pa.concat_tables([self.before, self.after])
        picked = rows.take(pa.array([at for at, _ in kinds], pa.int64()))
        return picked.append_column(CHANGE_TYPE, pa.array([str(k) for _, k in kinds], pa.string()))


@dataclass(slots=True)
class _GrowingPage:
    """What a page has so far."""

    before: list[pa.Table]
    after: list[pa.Table]
    changes: list[KeyChange] = field(default_factory=list)
    bytes: int = 0
    rows: tuple[int, int] = (0, 0)

    def add(self, before: pa.Table, after: pa.Table, dimension: Dimension) -> int:
        """Compare the rows of some keys; returns their bytes."""
        first, second = self.rows
        for at, other in _differences(before, after, dimension):
            self.changes.append(
                KeyChange(
                    None if at is None else at + first,
                    None if other is None else other + second,
                )
            )
        self.before.append(before)
        self.after.append(after)
        self.rows = (first + before.num_rows, second + after.num_rows)
        size = int(before.nbytes + after.nbytes)
        self.bytes += size
        return size


def changes_between(
    states: DimensionStates, versions: tuple[State, State], behind: Key | None, limit: PageLimit
) -> ChangePage:
    """How the first state became the second, for keys behind `behind`.

    Rows that are equal in both are left out, however often they were written in between.

    Raises:
        VersionExpiredError: a file of one of them is gone.
    """
    before, after = versions
    page = _GrowingPage([states.no_rows()], [states.no_rows()])
    walk = KeyWalk(states.scan, _touched(states, before, after), behind, limit.seconds)
    for keys in walk:
        size = page.add(states.rows(before, keys), states.rows(after, keys), states.dimension)
        walk.weigh(size)
        if len(page.changes) > limit.rows or (page.changes and page.bytes > limit.bytes):
            break
    old, new = pa.concat_tables(page.before), pa.concat_tables(page.after)
    kept = tuple(page.changes[: limit.rows])
    if len(kept) == len(page.changes):
        return ChangePage(old, new, kept, walk.position)
    last = kept[-1]
    row = new.slice(last.after, 1) if last.after is not None else old.slice(last.before, 1)
    return ChangePage(old, new, kept, states.scan.last_key(row))


def _touched(states: DimensionStates, before: State, after: State) -> tuple[TablePath, ...]:
    """Files that have all keys which may differ.

    A copy that was completed in between hides rows that no record of it names.
    """
    if before.generation == after.generation:
        try:
            return tuple(states.log.files.files_added(before.version + 1, after.version))
        except SinkError:
            pass  # a checkpoint has taken the place of these entries
    return tuple(sorted({*before.files, *after.files}, key=str))


def _differences(
    before: pa.Table, after: pa.Table, dimension: Dimension
) -> Iterator[tuple[int | None, int | None]]:
    """(row of `before`, row of `after`) of each key whose rows are not equal, by key."""
    texts = [list(zip(*json_columns(rows, dimension), strict=True)) for rows in (before, after)]
    names = [item.name for item in dimension.fields]
    key_at = [names.index(name) for name in dimension.primary_key]
    keys = [{tuple(row[n] for n in key_at): at for at, row in enumerate(rows)} for rows in texts]
    for side, at in _by_key(before, after, dimension):
        key = tuple(texts[side][at][n] for n in key_at)
        if side == 0 and key not in keys[1]:
            yield at, None
        elif side == 1 and key not in keys[0]:
            yield None, at
        elif side == 1 and texts[0][keys[0][key]] != texts[1][at]:
            yield keys[0][key], at


def _by_key(before: pa.Table, after: pa.Table, dimension: Dimension) -> list[tuple[int, int]]:
    """(table, row) of all rows of both tables, by key."""
    names = list(dimension.primary_key)
    both = pa.concat_tables([before.select(names), after.select(names)])
    order = pc.sort_indices(both, sort_keys=[(name, "ascending") for name in names]).to_pylist()
    first = before.num_rows
    return [(0, at) if at < first else (1, at - first) for at in order]


def json_columns(rows: pa.Table, dimension: Dimension) -> list[list[object]]:
    return [json_values(whole(rows.column(f.name)), f.type) for f in dimension.fields]
