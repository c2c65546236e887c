"""What changed in a dimension between two of its versions: inserted, updated and deleted rows."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.delta.entries import changed_files, committed_at_ms
from joins.adapters.delta.merge import may_have_key
from joins.dimension.changelog_scan import (
    IS_MARK,
    VISIBLE,
    DimensionStates,
    Key,
    KeyWalk,
    PageLimit,
    State,
    with_visibility,
)
from joins.kernels.changelog.changes import CompactedChanges, read_changes
from joins.kernels.expressions.casts import whole
from joins.kernels.json.exact import json_values
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError
from joins.plan.plan import Dimension, Field

CHANGE_TYPE = "_change_type"


class ChangeType(StrEnum):
    """What a row of a table of changes is, as in Delta's change data feed."""

    INSERT = "insert"
    BEFORE = "update_preimage"
    AFTER = "update_postimage"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """Row numbers of one key in the page's two tables; an update has both."""

    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes in key order, with the rows of the earlier and the later version.

    Rows that no change names are equal in both tables. The next page begins after the key
    `next_after`, None after the last page.
    """

    before: pa.Table
    after: pa.Table
    changes: tuple[KeyChange, ...]
    next_after: Key | None

    def as_table(self) -> pa.Table:
        """One row per change, two per update; `_change_type` is the last column."""
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
    before: list[pa.Table]
    after: list[pa.Table]
    changes: list[KeyChange] = field(default_factory=list)
    bytes: int = 0
    rows: tuple[int, int] = (0, 0)

    def add(self, before: pa.Table, after: pa.Table, dimension: Dimension) -> int:
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
    """Changes from the first state to the second, for keys after `behind`; VersionExpiredError.

    Rows that are equal in both are left out, even if they were written in between.
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
    """Files with all keys that may differ; a copy completed in between hides other rows."""
    if before.generation == after.generation:
        try:
            return tuple(states.log.files.files_added(before.version + 1, after.version))
        except SinkError:
            pass  # a checkpoint has replaced these entries
    return tuple(sorted({*before.files, *after.files}, key=str))


def _differences(
    before: pa.Table, after: pa.Table, dimension: Dimension
) -> Iterator[tuple[int | None, int | None]]:
    """(row of `before`, row of `after`) of each key whose rows differ, by key."""
    texts = [
        list(zip(*json_columns(rows, dimension.fields), strict=True)) for rows in (before, after)
    ]
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
    names = list(dimension.primary_key)
    both = pa.concat_tables([before.select(names), after.select(names)])
    order = pc.sort_indices(both, sort_keys=[(name, "ascending") for name in names]).to_pylist()
    first = before.num_rows
    return [(0, at) if at < first else (1, at - first) for at in order]


def json_columns(rows: pa.Table, fields: Iterable[Field]) -> list[list[object]]:
    return [json_values(whole(rows.column(field.name)), field.type) for field in fields]


@dataclass(frozen=True, slots=True)
class KeyVersion:
    """A version that changed the row of a key."""

    version: int
    committed_at_ms: int | None  # by the runner's clock; None if the log does not have it
    # of the key in the version's files; none if a copy that it completes hides the key
    records: int
    before: pa.Table  # the key's newest record before this version, with `_visible`; may be empty
    after: pa.Table


@dataclass(frozen=True, slots=True)
class KeyHistoryPage:
    """Versions that changed the row of a key, newest first."""

    versions: tuple[KeyVersion, ...]
    oldest: int  # first version of the history; earlier ones are not kept
    # the key's newest record as of `oldest`; None except on the last page
    beginning: pa.Table | None
    next_below: int | None  # the next page has versions below; None after the last page


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit that may have changed the row."""

    version: int
    committed_at_ms: int | None
    files: tuple[TablePath, ...]
    records: int
    bytes: int


class KeyHistory:
    """Looks up the history of one key: one row, with the names and types of the key's columns."""

    def __init__(self, states: DimensionStates, key: pa.Table) -> None:
        self._states = states
        self._scan = states.scan
        self._key = key

    def page(self, below: int, limit: PageLimit) -> KeyHistoryPage:
        """Versions below `below` that changed the row; a page may be empty and not the last.

        The search ends at the limit's commits, bytes of records or seconds. UnknownVersionError
        before the changelog exists; VersionExpiredError if a version or file was removed meanwhile:
        retry.
        """
        newest, oldest = self._states.newest(), self._states.oldest()
        first = max(oldest, min(below - 1, newest))
        commits: list[_Commit] = []
        end = time.monotonic() + limit.seconds
        reached = first
        for reached in range(first, oldest, -1):
            commits.extend(self._commit(reached))
            weight = sum(commit.bytes for commit in commits)
            if len(commits) >= limit.rows or weight > limit.bytes or time.monotonic() > end:
                break
        is_last = reached <= oldest + 1
        version = oldest if is_last else reached - 1
        state = self._states.at(version)
        changes = self._scan.of_keys(state.files, self._key)
        base = read_changes(changes, self._scan.spec, state.progress)
        versions = tuple(self._versions(base, commits[::-1]))[::-1]
        return KeyHistoryPage(
            versions,
            oldest,
            self._record(base) if is_last else None,
            None if is_last else reached,
        )

    def _commit(self, version: int) -> Iterator[_Commit]:
        try:
            entry = self._states.log.versions.commit_entry(version)
        except SinkError as exc:
            raise self._scan.expired(exc.message) from exc
        root = self._states.log.path
        files = tuple(
            root / unquote(action["path"])
            for action in changed_files(entry)
            if may_have_key(action.get("stats"), self._key)
        )
        where = IS_MARK | self._scan.have(self._key)
        rows = marks = size = 0
        for batch in self._scan.rows(files, self._scan.columns, where):
            rows, size = rows + batch.num_rows, size + batch.nbytes
            marks += batch.column("_op").to_pylist().count("w")
        if rows:
            yield _Commit(version, committed_at_ms(entry), files, rows - marks, size)

    def _versions(self, base: CompactedChanges, commits: list[_Commit]) -> Iterator[KeyVersion]:
        before, where = self._record(base), IS_MARK | self._scan.have(self._key)
        for commit in commits:
            rows = self._scan.rows(commit.files, self._scan.columns, where)
            base = base.followed_by(rows, self._scan.spec)
            after = self._record(base)
            if self._values(before) != self._values(after):
                at_ms, records = commit.committed_at_ms, commit.records
                yield KeyVersion(commit.version, at_ms, records, before, after)
            before = after

    def _record(self, changes: CompactedChanges) -> pa.Table:
        generation = changes.progress.complete_generation(self._scan.spec.partitions)
        return with_visibility(changes.rows, generation)

    def _values(self, record: pa.Table) -> list[list[object]]:
        return json_columns(record.filter(record.column(VISIBLE)), self._states.dimension.fields)
