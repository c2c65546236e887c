"""One Delta table through delta-rs: created, checked and committed without a JVM.

Each commit of a batch carries two application transactions: the batch number under the job's app id
and the runner's epoch under `<app id>:fence`. Check and commit use one loaded table, never reloaded
in between, so a stale runner's commit conflicts instead of repeating the number. After it the log
is read back: the commit must be there with our transactions, our files and their rows.

Spark's writer gives a commit one transaction only: `<app id>:spark` has epoch and batch in one
number (`spark_version`). Whatever is asked here of batches and epochs looks at both, because a
table may have commits of both writers.

delta-rs lists the whole log to look for news, and reads its tail for each transaction's number.
Here the next entry is asked for by name, and numbers follow the entries that are new.

A commit may lose its entry in the log once a checkpoint covers it; what must outlive that is kept
in application transactions, which checkpoints have.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    TableFeatures,
    Transaction,
)
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from joins.adapters.delta_features import Appends, WriterChoice
from joins.adapters.delta_rows import TableRows
from joins.errors import FencedError, SinkError
from joins.kernels.files import StagedFile

OWN_TABLE_PROPERTIES = {"delta.enableExpiredLogCleanup": "false"}
# Nobody vacuums these: files go when no pin needs them, so checkpoints need not list what is gone.
INTERNAL_TABLE_PROPERTIES = {
    **OWN_TABLE_PROPERTIES,
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
}
EPOCH_KEY = "sluice.epoch"
_PLAIN_READER_FEATURES = frozenset({"timestampNtz"})
_MAPPED_COLUMNS_READER = 2  # of readers before table features
_BATCH_BITS = 40
_HOOKS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_LOG_FILE = re.compile(r"\.?(\d{20})\.")
_T = TypeVar("_T")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


def create_table(
    path: Path, schema: pa.Schema, *, properties: Mapping[str, str] = OWN_TABLE_PROPERTIES
) -> None:
    """Create an empty table at `path` unless there is one.

    Raises:
        SinkError: the place cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        table = DeltaTable.create(str(path), schema, mode="ignore", configuration=dict(properties))
        _name_invariants(table)
    except (DeltaError, OSError) as exc:
        raise SinkError(
            f'delta table "{path}" cannot be created: {exc}',
            hint="Check that the directory exists, has space and may be written by this user.",
        ) from exc


def _name_invariants(table: DeltaTable) -> None:
    """Say in the protocol that columns are NOT NULL: Spark does not open the table otherwise.

    Only tables with features, such as for TIMESTAMP, name them; delta-rs leaves this one out.
    """
    named = table.protocol().writer_features
    strict = any(not column.nullable for column in table.schema().fields)
    if strict and named is not None and "invariants" not in named:
        table.alter.add_feature(TableFeatures.Invariants, allow_protocol_versions_increase=True)


def spark_version(epoch: int, batch: int | None) -> int:
    """The one transaction number of a commit by Spark: the greater, the newer; None for no batch.

    A new runner's epoch names the batch that was committed last.
    """
    return epoch << _BATCH_BITS | (0 if batch is None else batch + 1)


def epoch_of_spark(version: int) -> int:
    """The runner in a `spark_version`."""
    return version >> _BATCH_BITS


def _batch_of_spark(version: int) -> int | None:
    batch = version & ((1 << _BATCH_BITS) - 1)
    return batch - 1 if batch else None


@dataclass(frozen=True, slots=True)
class Change:
    """What a batch does to a table: files that it adds, and files that are gone with it.

    Attributes:
        added: complete files below the table's root.
        removed: paths of files of the newest version, relative to the root.
        counters: name → value that `counter` gives from this commit on.
        is_first: no batch may have been committed before.
    """

    added: Sequence[StagedFile] = ()
    removed: Sequence[str] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Rewrite(Change):
    """Files in place of others with the same meaning: no row of any later version changes."""


@dataclass(frozen=True, slots=True)
class _Commit:
    """What one commit says, and what must be found in the log after it."""

    transactions: tuple[Transaction, ...]
    added: Sequence[StagedFile] = ()
    removed: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    data_change: bool = True
    may_checkpoint: bool = True

    def actions(self) -> list[AddAction | RemoveAction]:
        now_ms = int(time.time() * 1000)
        changed = self.data_change
        return [
            *(AddAction(f.path, f.size_bytes, {}, now_ms, changed, f.stats) for f in self.added),
            *(RemoveAction(path, changed, now_ms, None, {}) for path in self.removed),
        ]

    def is_in(self, entry: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the actions of a commit have all our transactions."""
        told = {(a["txn"]["appId"], a["txn"]["version"]) for a in entry if "txn" in a}
        return all((one.app_id, one.version) in told for one in self.transactions)


class DeltaLog:
    """The commits of one table under one app id; threads may share it.

    Args:
        path: its root.
        app_id: of the job's commits to it.
        appends: what batches append, of a table that is not ours alone: each commit then sees that
            the table still takes columnar files.
    """

    def __init__(self, path: Path, app_id: str, appends: Appends | None = None) -> None:
        self.path = path
        self.app_id = app_id
        self.appends = appends
        self._fence_id = f"{app_id}:fence"
        self._spark_id = f"{app_id}:spark"
        self._kept: DeltaTable | None = None
        self._numbers: dict[str, int | None] = {}  # of our transactions in what is kept
        self._lock = threading.RLock()  # one commit at a time: two threads are no conflict

    def _fresh(self) -> DeltaTable:
        """The table as it is now; from the second call on only what is new in its log is read."""
        with self._lock:
            if self._kept is not None and not self._ends_with(int(self._kept.version())):
                self._follow(self._kept)
            if self._kept is None:
                table = self._load()
                ids = (self.app_id, self._fence_id, self._spark_id)
                self._numbers = {each: table.transaction_version(each) for each in ids}
                self._kept = table
            return self._kept

    def _follow(self, table: DeltaTable) -> None:
        """Read what is new in the log into what is kept, or keep nothing: some of it is gone."""
        seen, self._kept = int(table.version()), None
        with suppress(DeltaError, SinkError):
            table.update_incremental()
            for version in range(seen + 1, int(table.version()) + 1):
                told = _transactions(self.commit_entry(version))
                self._numbers.update({k: told[k] for k in self._numbers.keys() & told.keys()})
            self._kept = table

    def _number(self, table: DeltaTable, app_id: str) -> int | None:
        """The newest transaction under `app_id`; delta-rs reads the log for each such question."""
        if table is self._kept and app_id in self._numbers:
            return self._numbers[app_id]
        number: int | None = table.transaction_version(app_id)
        return number

    def _ends_with(self, version: int) -> bool:
        """Whether the log has nothing behind `version`: asked by name, for listing grows with it.

        Entries are removed oldest first: while that of `version` is there, the next one, once
        written, is too. The order of the two looks matters.
        """
        try:
            return not self._entry_path(version + 1).exists() and self._entry_path(version).exists()
        except OSError:
            return False  # delta-rs tells what is wrong

    def _of(self, version: int, tell: Callable[[DeltaTable], _T]) -> _T:
        """What `tell` says of the table at `version`; the newest one is mostly loaded already."""
        with self._lock:
            newest = None if self._kept is None else self._fresh()
            if newest is not None and int(newest.version()) == version:
                return tell(newest)
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
        with self._lock:
            return int(self._fresh().version())

    def last_batch(self) -> int | None:
        """The newest batch number committed under the app id, None before the first."""
        with self._lock:
            return self._last(self._fresh())

    def _last(self, table: DeltaTable) -> int | None:
        """The newest batch of either writer."""
        spark = self._number(table, self._spark_id)
        batches = (self._number(table, self.app_id), _batch_of_spark(spark or 0))
        return max((batch for batch in batches if batch is not None), default=None)

    def _epoch(self, table: DeltaTable) -> int | None:
        """The newest runner of either writer."""
        fence, spark = (self._number(table, each) for each in (self._fence_id, self._spark_id))
        epochs = (fence, None if spark is None else epoch_of_spark(spark))
        return max((epoch for epoch in epochs if epoch is not None), default=None)

    def counter(self, name: str, version: int) -> int:
        """The value that a commit gave counter `name`, as of `version`; 0 before the first."""
        return self.counters([name], version).get(name, 0)

    def counters(self, names: Iterable[str], version: int) -> dict[str, int]:
        """The values that commits gave those of `names` that they gave any, as of `version`."""
        table = self._load(version)
        told = {name: table.transaction_version(f"{self.app_id}:{name}") for name in names}
        return {name: value for name, value in told.items() if value is not None}

    def _counters(self, values: Mapping[str, int]) -> tuple[Transaction, ...]:
        return tuple(
            Transaction(f"{self.app_id}:{name}", value) for name, value in sorted(values.items())
        )

    def choose_writer(self, appends: Appends) -> WriterChoice:
        """The writer that may append rows to the table as it is now.

        Raises:
            SinkError: none may.
        """
        return appends.choose(self.path, self._load())

    # Commits
    # -----------------------------------------------------------------------------------------

    def commit_epoch(self, epoch: int) -> None:
        """Fence every older runner: commit `epoch`, empty.

        Raises:
            FencedError: a newer epoch is there already.
        """
        with self._lock:
            table = self._fresh()
            self._check_epoch(table, epoch)
            if self._number(table, self._fence_id) == epoch:
                return
            for_spark = self._number(table, self._spark_id) is not None
            self._write_epoch(table, epoch, for_spark=for_spark)

    def _write_epoch(self, table: DeltaTable, epoch: int, *, for_spark: bool) -> None:
        """One empty commit that fences older runners, with `for_spark` those of both writers."""
        transactions = [Transaction(self._fence_id, epoch)]
        if for_spark:
            number = spark_version(epoch, self._newest_batch(table))
            transactions.insert(0, Transaction(self._spark_id, number))
        commit = _Commit(
            tuple(transactions), metadata={EPOCH_KEY: epoch}, may_checkpoint=not for_spark
        )
        self._write(table, commit)

    def _newest_batch(self, table: DeltaTable) -> int | None:
        """The newest batch, from the log itself: a runner's epoch may not know the last one.

        Only Spark can commit to some tables, and an older runner's batch may come between our look
        and its own.
        """
        known = self._last(table)
        if self._number(table, self._spark_id) is None:
            return known
        for version in range(int(table.version()), self.oldest_entry() - 1, -1):
            batch = self.batch_in(self.commit_entry(version))
            if batch is not None:
                return batch if known is None else max(known, batch)
        return known

    def commit(
        self, batch: int, epoch: int, files: Sequence[StagedFile], metadata: Mapping[str, Any]
    ) -> int:
        """Commit `files` as `batch`, once, and see afterwards that the log says so.

        Returns:
            The version after the commit; if the batch was there already, the newest version.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: a staged file is missing or has another size or number of rows, the table
                needs Spark's writer now, the commit failed, or the log does not show it as it was
                made.
        """
        return self.commit_change(batch, epoch, Change(files), metadata)

    def commit_change(
        self, batch: int, epoch: int, change: Change, metadata: Mapping[str, Any]
    ) -> int:
        """As `commit`, with files that are gone.

        Raises:
            FencedError: as `commit`.
            SinkError: a file to remove is not in the newest version, another batch is there before
                the first one, or as `commit`.
        """
        with self._lock:
            table = self._fresh()
            self._check_epoch(table, epoch)
            last = self._last(table)
            if last is not None and last >= batch:
                return int(table.version())
            if change.is_first and last is not None:
                raise SinkError(
                    f'delta table "{self.path}" has batch {last} already, {batch} is not its first',
                    hint="Another runner of the job was faster; this one reads the table again.",
                )
            self._check_columnar(table)
            self._check_removed(table, change.removed)
            for file in change.added:
                self._check_file(file)
            transactions = (
                *self._counters(change.counters),
                Transaction(self.app_id, batch),
                Transaction(self._fence_id, epoch),
            )
            commit = _Commit(transactions, change.added, change.removed, metadata)
            version = self._write(table, commit)
            committed = self._number(self._kept or table, self.app_id)
            if committed != batch:
                raise SinkError(
                    f'delta table "{self.path}" shows batch {committed} after the commit of '
                    f"{batch}",
                    hint="Another program writes under this job's app id; stop it.",
                )
            return version

    def rewrite(self, change: Rewrite, epoch: int, metadata: Mapping[str, Any]) -> int:
        """Put files in the place of others that say the same (`dataChange` is false).

        Returns:
            The version of the commit.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: a file to remove is not in the newest version, or as `commit`.
        """
        with self._lock:
            table = self._fresh()
            self._check_epoch(table, epoch)
            self._check_removed(table, change.removed)
            for file in change.added:
                self._check_file(file)
            return self._write(
                table,
                _Commit(
                    (*self._counters(change.counters), Transaction(self._fence_id, epoch)),
                    added=change.added,
                    removed=change.removed,
                    metadata=metadata,
                    data_change=False,
                ),
            )

    def retract(self, batch: int, epoch: int) -> int | None:
        """Remove from the table what the commit of `batch` added; the number stays used.

        Returns:
            The version of the removal, None if there is nothing (more) to remove.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: the commit failed.
        """
        with self._lock:
            table = self._fresh()
            self._check_epoch(table, epoch)
            version = self.version_of(batch)
            if version is None:
                return None
            added = {action["path"] for action in added_files(self.commit_entry(version))}
            removed = sorted(added & set(_paths(table)))
            if not removed:
                return None
            fence = (Transaction(self._fence_id, epoch),)
            told = {"sluice.retracted": batch, "sluice.epoch": epoch}
            return self._write(table, _Commit(fence, removed=removed, metadata=told))

    def go_back(self, version: int, epoch: int, metadata: Mapping[str, Any]) -> int:
        """Give the table the files that it had at `version`; numbers of batches stay used.

        Returns:
            The version of the commit.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: a file of `version` is gone, or the commit failed.
        """
        with self._lock:
            wanted = {each["path"]: each for each in self.described_at(version)}
            table = self._fresh()
            self._check_epoch(table, epoch)
            now = set(_paths(table))
            added = [_staged_again(each) for path, each in wanted.items() if path not in now]
            for file in added:
                self._check_file(file)
            fence = (Transaction(self._fence_id, epoch),)
            gone = sorted(now - set(wanted))
            return self._write(table, _Commit(fence, added, gone, metadata))

    def check_epoch(self, epoch: int) -> None:
        """See that no newer runner has taken over.

        Raises:
            FencedError: one has.
        """
        with self._lock:
            self._check_epoch(self._fresh(), epoch)

    def _check_columnar(self, table: DeltaTable) -> None:
        """What the table asks of writers may have changed since the files were staged."""
        if self.appends is None:
            return
        choice = self.appends.choose(self.path, table)
        if choice.is_spark:
            raise SinkError(
                f'delta table "{self.path}" needs spark\'s writer now: {choice.reason}',
                hint="Nothing was written; the batch is run again with that writer.",
            )

    def _check_epoch(self, table: DeltaTable, epoch: int) -> None:
        newest = self._epoch(table)
        if newest is not None and newest > epoch:
            raise FencedError(
                f'delta table "{self.path}" belongs to epoch {newest}, this runner is {epoch}',
                hint="A newer runner of the job has taken over; this one ends.",
            )

    def _check_removed(self, table: DeltaTable, removed: Sequence[str]) -> None:
        missing = set(removed) - set(_paths(table)) if removed else set()
        if missing:
            raise SinkError(
                f'delta table "{self.path}" has no file "{min(missing)}" to replace',
                hint="Another program changed the table; the step is done again.",
            )

    def _check_file(self, file: StagedFile) -> None:
        path = self.path / file.path
        size = path.stat().st_size if path.exists() else None
        if size != file.size_bytes:
            raise SinkError(
                f'staged file "{path}" has {size} bytes, expected {file.size_bytes}',
                hint="The file was changed from outside; the batch is run again.",
            )
        rows = pq.read_metadata(path).num_rows
        if rows != file.rows:
            raise SinkError(
                f'staged file "{path}" has {rows} rows, its task counted {file.rows}',
                hint="The file was changed from outside; the batch is run again.",
            )

    def _write(self, table: DeltaTable, commit: _Commit) -> int:
        """Write `commit` and find it in the log; returns its version."""
        before = int(table.version())
        text = json.dumps(dict(commit.metadata), separators=(",", ":"))
        properties = CommitProperties(
            custom_metadata={"userMetadata": text}, app_transactions=list(commit.transactions)
        )
        try:
            table.create_write_transaction(
                commit.actions(),
                "append",
                table.schema(),
                commit_properties=properties,
                post_commithook_properties=_HOOKS if commit.may_checkpoint else _NO_HOOKS,
            )
        except CommitFailedError as exc:
            raise self._conflict(commit.transactions[-1].version, exc) from exc
        except DeltaError as exc:
            raise SinkError(
                f'commit to delta table "{self.path}" failed: {exc}',
                hint="Check space and permissions of the table's directory.",
            ) from exc
        return self._verified(commit, range(before + 1, self.version() + 1))

    def _verified(self, commit: _Commit, versions: range) -> int:
        """The version of `commit`, which must be in the log, whole, as one of `versions`."""
        for version in reversed(versions):
            entry = self.commit_entry(version)
            if not commit.is_in(entry):
                continue
            rows = sum(json.loads(a["stats"])["numRecords"] for a in added_files(entry))
            removed = sorted(a["remove"]["path"] for a in entry if "remove" in a)
            expected = sum(file.rows for file in commit.added)
            if rows == expected and removed == sorted(commit.removed):
                return version
            raise SinkError(
                f'version {version} of delta table "{self.path}" adds {rows} rows and removes '
                f"{len(removed)} files, expected {expected} and {len(commit.removed)}",
                hint="The log was changed from outside; compare it with the runner's log.",
            )
        raise SinkError(
            f'delta table "{self.path}" does not show a commit that succeeded',
            hint="Another program removes entries of its log; stop it.",
        )

    def _conflict(self, epoch: int, exc: CommitFailedError) -> SinkError | FencedError:
        """What a refused commit means: a newer runner, or somebody else's change of the table."""
        newest = self._epoch(self._load())
        if newest is not None and newest > epoch:
            return FencedError(
                f'commit to delta table "{self.path}" met one of epoch {newest}, this is {epoch}',
                hint="A newer runner of the job has taken over; this one ends.",
            )
        return SinkError(
            f'commit to delta table "{self.path}" met a concurrent one: {exc}',
            hint="The batch is tried again; let nobody else change the table while the job runs.",
        )

    # Reading the log
    # -----------------------------------------------------------------------------------------

    @property
    def _log(self) -> Path:
        return self.path / "_delta_log"

    def _entry_path(self, version: int) -> Path:
        return self._log / f"{version:020d}.json"

    def commit_entry(self, version: int) -> list[dict[str, Any]]:
        """The actions of one commit, from the log's JSON.

        Raises:
            SinkError: the log does not have it, or not any more.
        """
        try:
            text = self._entry_path(version).read_text(encoding="utf-8")
        except FileNotFoundError as exc:
            raise SinkError(
                f'commit {version} is not in the log of delta table "{self.path}"',
                hint="Maintenance removes entries that a checkpoint covers and no pin needs.",
            ) from exc
        return [json.loads(line) for line in text.splitlines() if line]

    def oldest_entry(self) -> int:
        """The oldest commit whose JSON is in the log."""
        if self._entry_path(0).exists():
            return 0
        found = (int(path.stem) for path in self._log.glob("*.json") if path.stem.isdigit())
        return min(found, default=self.version() + 1)

    def oldest_version(self) -> int:
        """The oldest version that the log can tell."""
        if self._entry_path(0).exists():
            return 0
        return min(self.checkpoints(), default=self.version())

    def version_of(self, batch: int) -> int | None:
        """The version whose commit carries `batch`; None if there is none, or not any more."""
        found = self.newest_batch(batch)
        return found[0] if found is not None and found[1] == batch else None

    def newest_batch(self, limit: int) -> tuple[int, int] | None:
        """Version and batch of the newest commit whose batch is `limit` at the most.

        None if there is none, or not any more.
        """
        newest = None
        low, high = self.oldest_entry(), self.version()
        while low <= high:
            middle = (low + high) // 2
            at, found = self._next_batch(middle, high)
            if found is None or found > limit:
                high = middle - 1
            else:
                newest = (at, found)
                low = at + 1
        return newest

    def _next_batch(self, first: int, last: int) -> tuple[int, int | None]:
        """The first commit of `first` to `last` with a batch of ours, and that batch."""
        for version in range(first, last + 1):
            batch = self.batch_in(self.commit_entry(version))
            if batch is not None:
                return version, batch
        return last, None

    def batch_in(self, entry: Sequence[Mapping[str, Any]]) -> int | None:
        """The batch that a commit is of; a runner's epoch names one, too, and is none."""
        told = _transactions(entry)
        if self.app_id in told:
            return told[self.app_id]
        if self._spark_id not in told or EPOCH_KEY in (_metadata_of(entry) or {}):
            return None
        return _batch_of_spark(told[self._spark_id])

    def metadata_at(self, version: int) -> dict[str, Any] | None:
        """The metadata of one commit."""
        return _metadata_of(self.commit_entry(version))

    def batch_metadata(self, batch: int) -> dict[str, Any] | None:
        """The metadata of the commit of `batch`; None if the log does not have it (any more)."""
        version = self.version_of(batch)
        return None if version is None else self.metadata_at(version)

    def table_rows(self) -> TableRows:
        """What reads the rows of the newest version, whatever features the table has."""
        with self._lock:
            return TableRows(self._fresh(), self.path)

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
        return [self.path / unquote(path) for path in self._of(version, _paths)]

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
        found = (_CHECKPOINT.fullmatch(path.name) for path in self._log.iterdir())
        return sorted(int(match.group(1)) for match in found if match)

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

        Checkpoints go first, then entries, the oldest first: what is left after a crash is not
        taken for more than it is.

        Returns:
            How many files are gone.
        """
        old = [
            (path.suffix == ".json", int(match.group(1)), path)
            for path in self._log.iterdir()
            if (match := _LOG_FILE.match(path.name)) and int(match.group(1)) < version
        ]
        for _, _, path in sorted(old):
            path.unlink(missing_ok=True)
        return len(old)

    def newest_before(self, second: float) -> int:
        """The newest version whose entry was written before `second` of the epoch, -1 for none."""
        entries = {int(p.stem): p for p in self._log.glob("*.json") if p.stem.isdigit()}
        found = -1
        for version in sorted(entries):
            if entries[version].stat().st_mtime >= second:
                break
            found = version
        return found

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
            post_commithook_properties=_HOOKS,
            full=True,
        )
        return len(gone)


def added_files(entry: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The files that a commit has added, as its log says it."""
    return [dict(action["add"]) for action in entry if "add" in action]


def _transactions(entry: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """App id → number of the transactions in a commit."""
    return {a["txn"]["appId"]: int(a["txn"]["version"]) for a in entry if "txn" in a}


def _staged_again(described: Mapping[str, Any]) -> StagedFile:
    """A file of an older version, with the bounds of its integer columns."""
    rows = int(described["num_records"])
    stats: dict[str, Any] = {"numRecords": rows}
    for name, bounds in (("minValues", "min"), ("maxValues", "max")):
        found = described.get(bounds) or {}
        stats[name] = {column: value for column, value in found.items() if isinstance(value, int)}
    stats["nullCount"] = dict(described.get("null_count") or {})
    return StagedFile(described["path"], int(described["size_bytes"]), rows, json.dumps(stats))


def _metadata_of(entry: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the writer of a commit has told in it, None if nothing that is JSON."""
    told = [a["commitInfo"].get("userMetadata") for a in entry if "commitInfo" in a]
    try:
        value = json.loads(told[0]) if told and told[0] else None
    except ValueError:
        return None
    return dict(value) if isinstance(value, dict) else None


def _add_actions(table: DeltaTable) -> pa.Table:
    return pa.table(table.get_add_actions())


def _paths(table: DeltaTable) -> list[str]:
    found: list[str] = _add_actions(table).column("path").to_pylist()
    return found
