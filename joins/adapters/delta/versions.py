"""The versions of one Delta table: its newest one, the files of each, and what keeps it small.

delta-rs lists the whole log to look for news. Here the next entry is asked for by name: what a
commit needs of the newest version is followed entry by entry, and a loaded table serves as long as
no entry changes protocol, columns or properties. Only what needs the newest files loads them.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, TableFeatures
from deltalake.exceptions import DeltaError, TableNotFoundError

from joins.adapters.delta.entries import LogEntries, added_files, keeps_rules, transactions
from joins.adapters.delta.rows import TableRows
from joins.plan.errors import SinkError

OWN_TABLE_PROPERTIES = {"delta.enableExpiredLogCleanup": "false"}
# Nobody vacuums these: files go when no pin needs them, so checkpoints need not list what is gone.
INTERNAL_TABLE_PROPERTIES = {
    **OWN_TABLE_PROPERTIES,
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
}
CREATOR = "sluice.creator"
CHECKPOINTS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
_PLAIN_READER_FEATURES = frozenset({"timestampNtz"})
_MAPPED_COLUMNS_READER = 2  # of readers before table features
_MOST_STEPS = 200  # entries that are quicker read one by one than with a listing
_T = TypeVar("_T")


def create_table(
    path: Path,
    schema: pa.Schema,
    *,
    properties: Mapping[str, str] = OWN_TABLE_PROPERTIES,
    creator: str = "",
) -> None:
    """Create an empty table at `path` unless there is one.

    Args:
        path: of its root.
        schema: of its rows.
        properties: of a new table.
        creator: the app id of the job that creates it, in whose commit it stands.

    Raises:
        SinkError: the place cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        commit_properties = CommitProperties(custom_metadata={CREATOR: creator})
        table = DeltaTable.create(
            str(path),
            schema,
            mode="ignore",
            configuration=dict(properties),
            commit_properties=commit_properties,
        )
        _name_invariants(table, commit_properties)
    except (DeltaError, OSError) as exc:
        raise SinkError(
            f'delta table "{path}" cannot be created: {exc}',
            hint="Check that the directory exists, has space and may be written by this user.",
        ) from exc


def _name_invariants(table: DeltaTable, properties: CommitProperties) -> None:
    """Say in the protocol that columns are NOT NULL: Spark does not open the table otherwise.

    Only tables with features, such as for TIMESTAMP, name them; delta-rs leaves this one out.
    """
    named = table.protocol().writer_features
    strict = any(not column.nullable for column in table.schema().fields)
    if strict and named is not None and "invariants" not in named:
        table.alter.add_feature(
            TableFeatures.Invariants,
            allow_protocol_versions_increase=True,
            commit_properties=properties,
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one version, the newest one when somebody looked.

    Attributes:
        numbers: application id → newest number, of the ids that are followed.
        rules: a table with this version's protocol, columns and properties, maybe of another one.
    """

    at: int
    numbers: Mapping[str, int | None]
    rules: DeltaTable

    def version(self) -> int:
        """The version."""
        return self.at


class TableVersions:
    """One table as its log tells it; threads may share it.

    Args:
        path: its root.
        followed: application ids whose newest numbers are known without reading the log.
    """

    # reads better long: a table's log answers many questions, and one look at it serves them all.

    def __init__(self, path: Path, followed: Sequence[str] = ()) -> None:
        self.path = path
        self.entries = LogEntries(path)
        self._followed = tuple(followed)
        self._seen: Seen | None = None
        self._lock = threading.RLock()  # one commit at a time: two threads are no conflict

    # The newest version
    # -----------------------------------------------------------------------------------------

    def _fresh(self) -> Seen:
        """The table as it is now; from the second call on only what is new in its log is read."""
        with self._lock:
            if self._seen is not None:
                self._seen = self._follow(self._seen)
            return self._seen or self._reload()

    def _reload(self) -> Seen:
        """The table as it is now, whatever was known."""
        table = self._load()
        numbers = {each: table.transaction_version(each) for each in self._followed}
        self._seen = Seen(int(table.version()), numbers, table)
        return self._seen

    def _follow(self, seen: Seen) -> Seen | None:
        """The newest version, told by the entries behind `seen`; None if they do not suffice."""
        version, numbers = seen.at, dict(seen.numbers)
        with suppress(SinkError):
            while not self._ends_with(version):
                entry = self.entries.read(version + 1)
                is_gone = not self.entries.has(version)  # then the next one may follow nothing
                if is_gone or not keeps_rules(entry) or version - seen.at >= _MOST_STEPS:
                    return None
                versions = transactions(entry)
                numbers.update({k: versions[k] for k in numbers.keys() & versions.keys()})
                version += 1
            return seen if version == seen.at else replace(seen, at=version, numbers=numbers)
        return None

    def _ends_with(self, version: int) -> bool:
        """Whether the log has nothing behind `version`: asked by name, for listing grows with it.

        Entries are removed oldest first: while that of `version` is there, the next one, once
        written, is too. The order of the two looks matters.
        """
        try:
            return not self.entries.has(version + 1) and self.entries.has(version)
        except OSError:
            return False  # delta-rs tells what is wrong

    def _whole(self, seen: Seen) -> DeltaTable:
        """The table at the very version of `seen`, with its files."""
        table = seen.rules
        if int(table.version()) < seen.at:
            with suppress(DeltaError):
                table.update_incremental()
        return table if int(table.version()) == seen.at else self._load(seen.at)

    def _of(self, version: int, tell: Callable[[DeltaTable], _T]) -> _T:
        """What `tell` says of the table at `version`; the newest one is mostly loaded already."""
        with self._lock:
            newest = None if self._seen is None else self._fresh()
            if newest is not None and newest.at == version:
                return tell(self._whole(newest))
        return tell(self._load(version))

    def _load(self, version: int | None = None) -> DeltaTable:
        try:
            return DeltaTable(str(self.path), version=version)
        except DeltaError as exc:
            if version is not None:
                raise SinkError(
                    f'version {version} of delta table "{self.path}" cannot be read: {exc}',
                    hint="Maintenance removes versions that no pin needs; take a newer one.",
                ) from exc
            if isinstance(exc, TableNotFoundError):
                raise SinkError(
                    f'delta table "{self.path}" is not there',
                    hint="It was removed while the job existed; restore it or submit the job anew.",
                ) from exc
            raise SinkError(
                f'delta table "{self.path}" cannot be read: {exc}',
                hint="Its log is damaged or of a newer protocol; repair it or use another path.",
            ) from exc

    def version(self) -> int:
        """The newest version."""
        return self._fresh().at

    # Entries of the log
    # -----------------------------------------------------------------------------------------

    def commit_entry(self, version: int) -> list[dict[str, Any]]:
        """The actions of one commit, from the log's JSON.

        Raises:
            SinkError: the log does not have it, or not any more.
        """
        return self.entries.read(version)

    def oldest_entry(self) -> int:
        """The oldest commit from which on the log has all entries."""
        oldest = self.entries.oldest()
        return self.version() + 1 if oldest is None else oldest

    def oldest_version(self) -> int:
        """The oldest version that the log can tell."""
        if self.entries.has(0):
            return 0
        return min(self.checkpoints(), default=self.version())

    # Files and rows
    # -----------------------------------------------------------------------------------------

    def table_rows(self) -> TableRows:
        """What reads the rows of the newest version, whatever features the table has."""
        with self._lock:
            return TableRows(self._whole(self._fresh()), self.path)

    def read_commit(self, version: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows that commit `version` added."""
        tables = list(self.read_files(self.files_added(version, version), columns))
        return pa.concat_tables(tables) if tables else pa.table({})

    def read_files(
        self, files: Sequence[Path], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The rows of data files, one table a file.

        Raises:
            SinkError: a file is gone.
        """
        names = list(columns) if columns is not None else None
        for file in files:
            try:
                yield pq.read_table(
                    file, columns=names, partitioning=None, coerce_int96_timestamp_unit="us"
                )
            except FileNotFoundError as exc:
                raise SinkError(
                    f'data file "{file}" is gone',
                    hint="Maintenance removes files of versions that no pin needs; if a needed "
                    "one is gone, restore it from a backup.",
                ) from exc

    def files_added(self, first: int, last: int) -> list[Path]:
        """The data files with the changes of commits `first` to `last`, in commit order.

        Files that only say anew what was there (`dataChange` is false) are no changes.

        Raises:
            SinkError: the log has one of the commits no more.
        """
        return [
            self.path / unquote(action["path"])
            for version in range(first, last + 1)
            for action in added_files(self.commit_entry(version))
            if action.get("dataChange", True)
        ]

    def files_named(self, first: int, last: int) -> set[str]:
        """The paths of all files that commits `first` to `last` added, whatever for."""
        return {
            action["path"]
            for version in range(first, last + 1)
            for action in added_files(self.commit_entry(version))
        }

    def files_at(self, version: int) -> list[Path]:
        """The data files of `version`, in no order.

        Raises:
            SinkError: the version cannot be read (any more).
        """
        return [self.path / unquote(path) for path in self._of(version, paths_of)]

    def check_plain(self, version: int) -> None:
        """See that the rows of `version` are those of its data files, under their own names.

        Raises:
            SinkError: the table has deletion vectors or mapped columns, or cannot be read.
        """
        protocol = self._load(version).protocol()
        denied = set(protocol.reader_features or ()) - _PLAIN_READER_FEATURES
        if protocol.min_reader_version == _MAPPED_COLUMNS_READER:
            denied.add("columnMapping")
        if denied:
            raise SinkError(
                f'delta table "{self.path}" uses {", ".join(sorted(denied))}, '
                "so its data files alone are not its rows",
                hint="Remove the feature from the table's properties and rewrite its files.",
            )

    def rows_at(self, version: int) -> dict[str, int]:
        """Path → rows of the data files of `version`."""
        actions = self._of(version, _add_actions)
        names, rows = (actions.column(name).to_pylist() for name in ("path", "num_records"))
        return dict(zip(names, rows, strict=True))

    def described_at(self, version: int) -> list[dict[str, Any]]:
        """The data files of `version` with path, size, rows, and statistics by column.

        Raises:
            SinkError: the version cannot be read (any more).
        """
        described: list[dict[str, Any]] = self._of(version, _add_actions).to_pylist()
        return described

    # Upkeep
    # -----------------------------------------------------------------------------------------

    def checkpoints(self) -> list[int]:
        """The versions that have a Delta checkpoint, ascending."""
        return self.entries.checkpoints()

    def make_checkpoint(self, version: int) -> None:
        """Write the Delta checkpoint of `version`."""
        try:
            self._load(version).create_checkpoint()
        except DeltaError as exc:
            raise SinkError(
                f'checkpoint {version} of delta table "{self.path}" cannot be written: {exc}',
                hint="Check space and permissions of the table's directory.",
            ) from exc

    def remove_log_before(self, version: int) -> int:
        """Remove what the log has of versions before `version`, which must have a checkpoint.

        Returns:
            How many files are gone.
        """
        with self._lock:  # our own commits find the entry that they follow
            return self.entries.remove_before(version)

    def newest_before(self, second: float) -> int:
        """The newest version whose entry was written before `second` of the epoch, -1 for none."""
        return self.entries.newest_before(second)

    def vacuum(self, retention_hours: int) -> int:
        """Remove the files that no version younger than `retention_hours` needs; returns how many.

        For tables whose only writer is the caller.
        """
        table = self._load()
        if not table.vacuum(
            retention_hours, dry_run=True, enforce_retention_duration=False, full=True
        ):
            return 0
        gone = table.vacuum(
            retention_hours,
            dry_run=False,
            enforce_retention_duration=False,
            post_commithook_properties=CHECKPOINTS,
            full=True,
        )
        return len(gone)


def _add_actions(table: DeltaTable) -> pa.Table:
    return pa.table(table.get_add_actions())


def paths_of(table: DeltaTable) -> list[str]:
    """The paths of the table's files, relative to its root."""
    paths: list[str] = _add_actions(table).column("path").to_pylist()
    return paths
