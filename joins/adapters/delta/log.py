"""One Delta table under one app id: each batch committed once, fenced, and checked afterwards.

Each commit of a batch carries two application transactions: the batch number under the job's app id
and the runner's epoch under `<app id>:fence`. Check and commit go by one look at the newest
version, so a stale runner's commit conflicts instead of repeating the number. After it the log
is read back: the commit must be there with our transactions, our files and their rows.

Spark's writer gives a commit one transaction only: `<app id>:spark` has epoch and batch in one
number (`spark_version`). Whatever is asked here of batches and epochs looks at both, because a
table may have commits of both writers.

| commit | written by |
|---|---|
| blind append to a table that asks for nothing that we do not know | us, one entry put by name |
| anything else, or where files cannot be linked | delta-rs, which lists the log several times |

Both put the next entry only where there is none. Where another writer was faster, a blind append
goes behind it, unless that commit has one of our transactions or changes what the table asks for:
then it conflicts, as delta-rs would have it.

A commit may lose its entry in the log once a checkpoint covers it; what must outlive that is kept
in application transactions, which checkpoints have.
"""
# reads better long: what is checked before a commit, the commit, and what is seen after it.

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from deltalake import DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from joins.adapters.delta.commit import (
    Commit,
    FileActions,
    Rewrite,
    batch_of_spark,
    epoch_of_spark,
    spark_version,
)
from joins.adapters.delta.entries import NoLinksError, added_files, metadata_of, transactions
from joins.adapters.delta.features import Appends, WriterChoice, takes_plain_entries
from joins.adapters.delta.versions import (
    CHECKPOINTS,
    INTERNAL_TABLE_PROPERTIES,
    OWN_TABLE_PROPERTIES,
    Seen,
    TableVersions,
    create_table,
    paths_of,
)
from joins.durable.app_ids import batches_app_id
from joins.kernels.probe.files import SharedTable, StagedFile, writer_tag
from joins.plan.errors import FencedError, SinkError

__all__ = [  # what the callers of a log need, wherever it is
    "EPOCH_KEY",
    "INTERNAL_TABLE_PROPERTIES",
    "OWN_TABLE_PROPERTIES",
    "DeltaLog",
    "FileActions",
    "Rewrite",
    "added_files",
    "create_table",
    "spark_version",
]
EPOCH_KEY = "sluice.epoch"
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_CHECKPOINT_INTERVAL = 100  # Delta's default
_MOST_TRIES = 15  # as delta-rs


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a table asks of its writers.

    Attributes:
        of: the table that was asked.
        takes_entries: whether its blind appends may be entries of our own.
        choice: the writer of what batches append, None where nobody asks.
        interval: commits between two checkpoints.
    """

    of: DeltaTable
    takes_entries: bool
    choice: WriterChoice | None
    interval: int


class DeltaLog(TableVersions):
    """The commits of one table under one app id; threads may share it.

    Args:
        path: its root.
        app_id: of the job's commits to it.
        appends: what batches append, of a table that is not ours alone: each commit then sees that
            the table still takes columnar files.
    """

    def __init__(self, path: Path, app_id: str, appends: Appends | None = None) -> None:
        self._fence_id = f"{app_id}:fence"
        self._spark_id = f"{app_id}:spark"
        super().__init__(path, (app_id, self._fence_id, self._spark_id))
        self.app_id = app_id
        self.appends = appends
        self._known_rules: _Rules | None = None
        self._has_links = True

    @property
    def shared(self) -> SharedTable:
        """Where to stage files of a table that is not ours alone; replays have the same tag."""
        return SharedTable(self.path, writer_tag(batches_app_id(self.app_id)))

    def _number(self, table: Seen, app_id: str) -> int | None:
        """The newest transaction under one of our ids."""
        return table.numbers[app_id]

    def last_batch(self) -> int | None:
        """The newest batch number committed under the app id, None before the first."""
        with self._lock:
            return self._last(self._fresh())

    def _last(self, table: Seen) -> int | None:
        """The newest batch of either writer."""
        spark = self._number(table, self._spark_id)
        batches = (self._number(table, self.app_id), batch_of_spark(spark or 0))
        return max((batch for batch in batches if batch is not None), default=None)

    def _epoch(self, table: Seen) -> int | None:
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
        versions = {name: table.transaction_version(f"{self.app_id}:{name}") for name in names}
        return {name: value for name, value in versions.items() if value is not None}

    def _counters(self, values: Mapping[str, int]) -> tuple[Transaction, ...]:
        return tuple(
            Transaction(f"{self.app_id}:{name}", value) for name, value in sorted(values.items())
        )

    def choose_writer(self, appends: Appends) -> WriterChoice:
        """The writer that may append rows to the table as it is now.

        Raises:
            SinkError: none may.
        """
        return appends.choose(self.path, self._fresh().rules)

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

    def _write_epoch(self, table: Seen, epoch: int, *, for_spark: bool) -> None:
        """One empty commit that fences older runners, with `for_spark` those of both writers."""
        transactions = [Transaction(self._fence_id, epoch)]
        if for_spark:
            number = spark_version(epoch, self._newest_batch(table))
            transactions.insert(0, Transaction(self._spark_id, number))
        commit = Commit(
            tuple(transactions), metadata={EPOCH_KEY: epoch}, may_checkpoint=not for_spark
        )
        self._write(table, commit)

    def _newest_batch(self, table: Seen) -> int | None:
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
        return self.commit_change(batch, epoch, FileActions(files), metadata)

    def commit_change(
        self, batch: int, epoch: int, change: FileActions, metadata: Mapping[str, Any]
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
            commit = Commit(transactions, change.added, change.removed, metadata)
            version = self._write(table, commit)
            committed = self._number(self._fresh(), self.app_id)
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
                Commit(
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
            SinkError: the table does not let files be removed, or not without Spark's writer, or a
                row of them was deleted by a deletion vector; nothing is removed.
        """
        with self._lock:
            table = self._fresh()
            self._check_epoch(table, epoch)
            version = self.version_of(batch)
            if version is None:
                return None
            added = {action["path"] for action in added_files(self.commit_entry(version))}
            removed = sorted(added & set(paths_of(self._whole(table))))
            if not removed:
                return None
            if self._have_vectors(set(removed), range(version, int(table.version()) + 1)):
                raise self._not_retracted(batch, version, "its files have deletion vectors")
            fence = (Transaction(self._fence_id, epoch),)
            metadata = {"sluice.retracted": batch, "sluice.epoch": epoch}
            try:
                return self._write(table, Commit(fence, removed=removed, metadata=metadata))
            except SinkError as exc:
                raise self._not_retracted(batch, version, str(exc.__cause__ or exc)) from exc

    def _have_vectors(self, paths: set[str], versions: range) -> bool:
        """Whether one of the files has lost rows, which our way to remove it cannot say."""
        entries = (self.commit_entry(version) for version in versions)
        adds = (add for entry in entries for add in added_files(entry))
        return any(add["path"] in paths and add.get("deletionVector") for add in adds)

    def _not_retracted(self, batch: int, version: int, why: str) -> SinkError:
        return SinkError(
            f'batch {batch} cannot be removed from delta table "{self.path}": {why}',
            hint="Try again; if this stays, remove with Spark what is left of the rows that "
            f"version {version} of the table has added, and then try again.",
        )

    def go_back(self, version: int, epoch: int, metadata: Mapping[str, Any]) -> int:
        """Give the table the files that it had at `version`; numbers of batches stay used.

        Returns:
            The version of the commit.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: a file of `version` is gone, or the commit failed.
        """
        with self._lock:
            restored = {each["path"]: each for each in self.described_at(version)}
            table = self._fresh()
            self._check_epoch(table, epoch)
            now = set(paths_of(self._whole(table)))
            added = [_staged_again(each) for path, each in restored.items() if path not in now]
            for file in added:
                self._check_file(file)
            fence = (Transaction(self._fence_id, epoch),)
            gone = sorted(now - set(restored))
            return self._write(table, Commit(fence, added, gone, metadata))

    def check_epoch(self, epoch: int) -> None:
        """See that no newer runner has taken over.

        Raises:
            FencedError: one has.
        """
        with self._lock:
            self._check_epoch(self._fresh(), epoch)

    # Checks
    # -----------------------------------------------------------------------------------------

    def _rules(self, table: Seen) -> _Rules:
        """What the table asks for; told anew when an entry has changed it."""
        known = self._known_rules
        if known is None or known.of is not table.rules:
            rules, appends = table.rules, self.appends
            interval = str(rules.metadata().configuration.get("delta.checkpointInterval", ""))
            known = self._known_rules = _Rules(
                rules,
                takes_plain_entries(rules),
                None if appends is None else appends.choose(self.path, rules),
                int(interval) if interval.isdecimal() and int(interval) else _CHECKPOINT_INTERVAL,
            )
        return known

    def _check_columnar(self, table: Seen) -> None:
        """What the table asks of writers may have changed since the files were staged."""
        choice = self._rules(table).choice
        if choice is not None and choice.is_spark:
            raise SinkError(
                f'delta table "{self.path}" needs spark\'s writer now: {choice.reason}',
                hint="Nothing was written; the batch is run again with that writer.",
            )

    def _check_epoch(self, table: Seen, epoch: int) -> None:
        newest = self._epoch(table)
        if newest is not None and newest > epoch:
            raise FencedError(
                f'delta table "{self.path}" belongs to epoch {newest}, this runner is {epoch}',
                hint="A newer runner of the job has taken over; this one ends.",
            )

    def _check_removed(self, table: Seen, removed: Sequence[str]) -> None:
        missing = set(removed) - set(paths_of(self._whole(table))) if removed else set()
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

    # Writing
    # -----------------------------------------------------------------------------------------

    def _write(self, table: Seen, commit: Commit) -> int:
        """Write `commit` and find it in the log; returns its version."""
        version = self._put(table, commit)
        if version is None:
            self._write_by_delta_rs(table, commit)
            return self._verified(commit, range(table.at + 1, self.version() + 1))
        self._verified(commit, range(version, version + 1))
        interval = self._rules(table).interval
        is_due = (version + 1) % interval == 0 and commit.may_checkpoint
        if is_due and version - self.entries.last_checkpoint() >= interval:
            self.make_checkpoint(version)
        return version

    def _put(self, table: Seen, commit: Commit) -> int | None:
        """Write `commit` as the next entry; None if it is for delta-rs.

        Raises:
            FencedError: a newer runner was faster.
            SinkError: another commit conflicts, or the file system refuses.
        """
        if not (self._has_links and commit.is_blind_append and self._rules(table).takes_entries):
            return None
        for _ in range(_MOST_TRIES):
            try:
                if self.entries.put(table.at + 1, commit.entry(table.at)):
                    return table.at + 1
            except NoLinksError:
                self._has_links = False
                return None
            table = self._behind(table, commit)
        raise self._conflict(commit, f"{_MOST_TRIES} others were faster, one after the other")

    def _behind(self, table: Seen, commit: Commit) -> Seen:
        """The newest version, whose commits since `table` leave `commit` as it is."""
        newest = self._follow(table)
        if newest is None:
            raise self._conflict(commit, "it changed what the table asks for, or is gone again")
        ours = {*self._followed, *(one.app_id for one in commit.transactions)}
        for version in range(table.at + 1, newest.at + 1):
            met = sorted(ours & transactions(self.entries.read(version)).keys())
            if met:
                raise self._conflict(commit, f'version {version} has transactions of "{met[0]}"')
        return newest

    def _write_by_delta_rs(self, table: Seen, commit: Commit) -> None:
        loaded = self._whole(table)
        try:
            loaded.create_write_transaction(
                commit.actions(),
                "append",
                loaded.schema(),
                commit_properties=commit.properties(),
                post_commithook_properties=CHECKPOINTS if commit.may_checkpoint else _NO_HOOKS,
            )
        except CommitFailedError as exc:
            raise self._conflict(commit, str(exc)) from exc
        except DeltaError as exc:
            self._check_epoch(self._reload(), commit.epoch)  # a newer runner has shortened the log
            raise SinkError(
                f'commit to delta table "{self.path}" failed: {exc}',
                hint="Check space and permissions of the table's directory.",
            ) from exc

    def _verified(self, commit: Commit, versions: range) -> int:
        """The version of `commit`, which must be in the log, whole, as one of `versions`."""
        for version in filter(self.entries.has, versions):
            entry = self.entries.read(version)
            if not commit.is_in(entry):
                continue
            self._check_place(version, commit)
            rows = sum(json.loads(a["stats"])["numRecords"] for a in added_files(entry))
            removed = sorted(unquote(a["remove"]["path"]) for a in entry if "remove" in a)
            expected = sum(file.rows for file in commit.added)
            if rows == expected and removed == sorted(map(unquote, commit.removed)):
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

    def _check_place(self, version: int, commit: Commit) -> None:
        """See that the number was never another commit's; else no reader sees what has it."""
        if not self.entries.follows(version):
            self.entries.remove(version)
            raise self._conflict(commit, f"the log was shortened beyond version {version}")

    def _conflict(self, commit: Commit, why: str) -> SinkError | FencedError:
        """What a refused commit means: a newer runner, or somebody else's change of the table."""
        newest = self._epoch(self._reload())
        if newest is not None and newest > commit.epoch:
            return FencedError(
                f'commit to delta table "{self.path}" met one of epoch {newest}, this is '
                f"{commit.epoch}",
                hint="A newer runner of the job has taken over; this one ends.",
            )
        return SinkError(
            f'commit to delta table "{self.path}" met a concurrent one: {why}',
            hint="The batch is tried again; let nobody else change the table while the job runs.",
        )

    # Looking batches up
    # -----------------------------------------------------------------------------------------

    def version_of(self, batch: int) -> int | None:
        """The version whose commit carries `batch`; None if there is none, or not any more."""
        newest = self.newest_batch(batch)
        return newest[0] if newest is not None and newest[1] == batch else None

    def newest_batch(self, limit: int) -> tuple[int, int] | None:
        """Version and batch of the newest commit whose batch is `limit` at the most.

        None if there is none, or not any more.
        """
        newest = None
        low, high = self.oldest_entry(), self.version()
        while low <= high:
            middle = (low + high) // 2
            at, batch_there = self._next_batch(middle, high)
            if batch_there is None or batch_there > limit:
                high = middle - 1
            else:
                newest = (at, batch_there)
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
        transactions_in = transactions(entry)
        if self.app_id in transactions_in:
            return transactions_in[self.app_id]
        if self._spark_id not in transactions_in or EPOCH_KEY in (metadata_of(entry) or {}):
            return None
        return batch_of_spark(transactions_in[self._spark_id])

    def metadata_at(self, version: int) -> dict[str, Any] | None:
        """The metadata of one commit."""
        return metadata_of(self.commit_entry(version))

    def batch_metadata(self, batch: int) -> dict[str, Any] | None:
        """The metadata of the commit of `batch`; None if the log does not have it (any more)."""
        version = self.version_of(batch)
        return None if version is None else self.metadata_at(version)


def _staged_again(described: Mapping[str, Any]) -> StagedFile:
    """A file of an older version, with the bounds of its integer columns."""
    rows = int(described["num_records"])
    stats: dict[str, Any] = {"numRecords": rows}
    for name, bounds in (("minValues", "min"), ("maxValues", "max")):
        statistics = described.get(bounds) or {}
        stats[name] = {
            column: value for column, value in statistics.items() if isinstance(value, int)
        }
    stats["nullCount"] = dict(described.get("null_count") or {})
    return StagedFile(described["path"], int(described["size_bytes"]), rows, json.dumps(stats))
