"""The history of one key of a dimension: which versions have changed its row, the newest first.

It goes back to the oldest version that can be read. A version's own files tell what it has brought;
of them only those are opened that may hold the key, as far as the log's statistics tell, or
watermark records: a copy that is completed hides rows that no record of it names.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from joins.adapters.delta.entries import changed_files, committed_at_ms
from joins.adapters.delta.merge import may_have_key
from joins.dimension.changelog_scan import IS_MARK
from joins.dimension.changes import json_columns
from joins.dimension.states import VISIBLE, DimensionStates, PageLimit, with_visibility
from joins.kernels.changelog.changes import CompactedChanges, read_changes
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError


@dataclass(frozen=True, slots=True)
class KeyVersion:
    """A version that has changed the row of a key.

    Attributes:
        committed_at_ms: by the clock of the runner; None if the log does not tell.
        records: of the key in the version's own files; none if a copy that it completes hides it.
        before: its newest record as of the version before, with `_visible`; no row without one.
        after: likewise as of this version.
    """

    version: int
    committed_at_ms: int | None
    records: int
    before: pa.Table
    after: pa.Table


@dataclass(frozen=True, slots=True)
class KeyHistoryPage:
    """Versions that have changed the row of a key, the newest first.

    Attributes:
        oldest: the version that the history begins with: what was before is not kept.
        beginning: the key's newest record as of `oldest`, with `_visible`; None but for the last
            page.
        next_below: the next page is of versions below; None after the last page.
    """

    versions: tuple[KeyVersion, ...]
    oldest: int
    beginning: pa.Table | None
    next_below: int | None


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit that may have changed the row."""

    version: int
    committed_at_ms: int | None
    files: tuple[TablePath, ...]
    records: int
    bytes: int


class KeyHistory:
    """Looks up the history of one key.

    Args:
        key: one row, under the names and with the types of the key's columns.
    """

    def __init__(self, states: DimensionStates, key: pa.Table) -> None:
        self._states = states
        self._scan = states.scan
        self._key = key

    def page(self, below: int, limit: PageLimit) -> KeyHistoryPage:
        """What the versions below `below` have changed.

        Looking for them ends with as many commits or bytes of records as `limit` has, or when its
        seconds are over: a page may have fewer versions, or none, and not be the last.

        Raises:
            UnknownVersionError: the changelog is not there yet.
            VersionExpiredError: a version or a file was removed meanwhile; ask again.
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
        base = self._changes_at(oldest if is_last else reached - 1)
        versions = tuple(self._versions(base, commits[::-1]))[::-1]
        return KeyHistoryPage(
            versions,
            oldest,
            self._record(base) if is_last else None,
            None if is_last else reached,
        )

    def _commit(self, version: int) -> Iterator[_Commit]:
        """The commit of `version` if it has records of the key, or watermark records."""
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

    def _changes_at(self, version: int) -> CompactedChanges:
        state = self._states.at(version)
        changes = self._scan.of_keys(state.files, self._key)
        return read_changes(changes, self._scan.spec, state.progress)

    def _versions(self, base: CompactedChanges, commits: list[_Commit]) -> Iterator[KeyVersion]:
        """The commits that have changed the row since `base`, the oldest first."""
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
        return json_columns(record.filter(record.column(VISIBLE)), self._states.dimension)
