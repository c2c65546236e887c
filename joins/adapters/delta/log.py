"""Commits batches to one Delta table under one app id, once each and fenced.

A batch's commit has two application transactions: the batch number under the app id, and the
runner's epoch under `<app id>:fence`. Check and commit use one look at the newest version, so a
stale runner's commit conflicts. Afterwards the log must show the commit with its transactions,
files and rows. Clean-up may remove entries, so application transactions keep lasting facts.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from deltalake import Transaction

from joins.adapters.delta.commit import (
    EPOCH_KEY,
    Commit,
    FileActions,
    Rewrite,
    TableBatches,
    followed_ids,
    txn_number,
)
from joins.adapters.delta.entries import added_files
from joins.adapters.delta.features import Appends, WriterChoice
from joins.adapters.delta.files import TableFiles, paths_of
from joins.adapters.delta.versions import (
    INTERNAL_TABLE_PROPERTIES,
    OWN_TABLE_PROPERTIES,
    Seen,
    TableVersions,
    create_table,
)
from joins.adapters.delta.writer import MOST_TRIES, CommitWriter, TableUpkeep
from joins.adapters.store_path import StorePath, size_and_rows
from joins.durable.checkpoint import batches_app_id
from joins.kernels.probe.files import SharedTable, StagedFile, writer_tag
from joins.kernels.table_path import TablePath, row_count
from joins.plan.errors import SinkError

__all__ = [  # what the callers of a log need, wherever it is
    "EPOCH_KEY",
    "INTERNAL_TABLE_PROPERTIES",
    "OWN_TABLE_PROPERTIES",
    "DeltaLog",
    "FileActions",
    "Rewrite",
    "added_files",
    "create_table",
    "txn_number",
]


_REMOVED = "removed batch {}"  # userMetadata of the commit that removes a batch's last rows


class DeltaLog:
    """The commits of one table under one app id; thread-safe.

    The lock of `versions` serialises commits. With `appends`, `writer` checks before each commit
    that a shared table still takes columnar files.
    """

    def __init__(self, path: TablePath, app_id: str, appends: Appends | None = None) -> None:
        self.path = path
        self.app_id = app_id
        self.versions = TableVersions(path, followed_ids(app_id))
        self.batches = TableBatches(self.versions, app_id)
        self.files = TableFiles(self.versions)
        self.upkeep = TableUpkeep(self.versions, self._may_checkpoint)
        self.writer = CommitWriter(self.versions, self.batches, self.upkeep, appends)

    def version(self) -> int:
        return self.versions.version()

    def _may_checkpoint(self) -> bool:
        return True

    @property
    def shared(self) -> SharedTable:
        return SharedTable(self.path, writer_tag(batches_app_id(self.app_id)))

    def choose_writer(self, appends: Appends) -> WriterChoice:
        return appends.choose(self.path, self.versions.fresh().rules)

    # Commits
    # -----------------------------------------------------------------------------------------

    def commit_epoch(self, epoch: int) -> None:
        """Fence older runners by a commit without files; FencedError if a newer epoch exists.

        An older runner may commit its last batch meanwhile: then the epoch is written behind it.
        """
        with self.versions.lock:
            for attempt in range(MOST_TRIES):
                table = self.versions.fresh()
                self.batches.check_epoch(epoch, table)
                if table.numbers[self.batches.fence_id] == epoch:
                    return
                for_spark = table.numbers[self.batches.spark_id] is not None
                try:
                    return self._write_epoch(table, epoch, for_spark=for_spark)
                except SinkError:
                    if attempt == MOST_TRIES - 1 or self.version() == table.at:
                        raise

    def _write_epoch(self, table: Seen, epoch: int, *, for_spark: bool) -> None:
        transactions = [Transaction(self.batches.fence_id, epoch)]
        if for_spark:
            number = txn_number(epoch, self.batches.last_in_log(table))
            transactions.insert(0, Transaction(self.batches.spark_id, number))
        commit = Commit(
            tuple(transactions), metadata={EPOCH_KEY: epoch}, may_checkpoint=not for_spark
        )
        self.writer.write(table, commit)

    def commit(
        self, batch: int, epoch: int, files: Sequence[StagedFile], metadata: Mapping[str, Any]
    ) -> int:
        """Commit `files` as `batch` once and verify the log; the new, or newest, version.

        FencedError if a newer runner has taken over; SinkError if a staged file changed, the table
        needs Spark's writer, or the commit failed.
        """
        return self.commit_change(batch, epoch, FileActions(files), metadata)

    def commit_change(
        self, batch: int, epoch: int, change: FileActions, metadata: Mapping[str, Any]
    ) -> int:
        """Like `commit`, with removed files, which must be in the newest version."""
        with self.versions.lock:
            table = self.versions.fresh()
            if self.batches.has(batch, epoch, table):
                return int(table.version())
            self._check_columnar(table)
            self._check_version(table, change.of_version)
            self._check_removed(table, change.removed)
            for file in (*change.added, *change.changed):
                self._check_file(file)
            transactions = (
                *self.batches.counter_transactions(change.counters),
                Transaction(self.app_id, batch),
                Transaction(self.batches.fence_id, epoch),
            )
            commit = Commit.of(change, transactions, metadata)
            version = self.writer.write(table, commit)
            committed = self.versions.since(version).numbers[self.app_id]
            if committed != batch:
                raise SinkError(
                    f'delta table "{self.path}" shows batch {committed} after the commit of '
                    f"{batch}",
                    hint="Another program writes under this job's app id; stop it.",
                )
            return version

    def rewrite(self, change: Rewrite, epoch: int, metadata: Mapping[str, Any]) -> int:
        """Replace files by others with the same rows; returns the version."""
        with self.versions.lock:
            table = self.versions.fresh()
            self.batches.check_epoch(epoch, table)
            self._check_removed(table, change.removed)
            for file in change.added:
                self._check_file(file)
            return self.writer.write(
                table,
                Commit(
                    (
                        *self.batches.counter_transactions(change.counters),
                        Transaction(self.batches.fence_id, epoch),
                    ),
                    added=change.added,
                    removed=change.removed,
                    metadata=metadata,
                    data_change=False,
                ),
            )

    def retract(self, batch: int, epoch: int) -> int | None:
        """Remove the files that `batch` added, and put back those that it replaced.

        Its number stays used. Returns the version of the removal, None without files. SinkError,
        and no removal, if the table does not allow it, a deletion vector covers the files, a
        compaction such as OPTIMIZE has put their rows into other files, or a replaced file is gone.
        """
        with self.versions.lock:
            table = self.versions.fresh()
            self.batches.check_epoch(epoch, table)
            version = self.batches.version_of(batch)
            if version is None:
                return None
            entry = self.versions.commit_entry(version)
            added = {action["path"] for action in added_files(entry)}
            replaced = {action["remove"]["path"] for action in entry if "remove" in action}
            now = set(paths_of(self.versions.whole(table)))
            since = [self.versions.commit_entry(at) for at in range(version + 1, table.at + 1)]
            holding = now & self._holding(batch, version, added, since)
            if holding - added:
                raise self._not_retracted(batch, version, "its files were rewritten with others")
            removed = sorted(holding)
            if not removed:
                return None
            if _have_vectors(holding, since):
                raise self._not_retracted(batch, version, "its files have deletion vectors")
            fence = (Transaction(self.batches.fence_id, epoch),)
            metadata = {"sluice.retracted": batch, "sluice.epoch": epoch}
            try:
                if replaced and added - now:
                    raise SinkError("its files that replaced others have changed since", hint="")
                back = self._replaced_by(table, version, replaced)
                return self.writer.write(table, Commit(fence, back, removed, metadata))
            except SinkError as exc:
                why = str(exc.__cause__ or exc)
                raise self._not_retracted(batch, version, why, replaces=bool(replaced)) from exc

    def _holding(
        self,
        batch: int,
        version: int,
        added: set[str],
        since: Iterable[Sequence[Mapping[str, Any]]],
    ) -> set[str]:
        """The files that may have rows of `batch` behind the entries of others.

        What replaces such a file may have them, too, unless its entry says that the operator has
        removed them, or it was there before the batch.
        """
        holding, held = set(added), set(added)
        for entry in since:
            info: Mapping[str, Any] = next(
                (each["commitInfo"] for each in entry if "commitInfo" in each), {}
            )
            adds = {each["path"] for each in added_files(entry)}
            removed = {action["remove"]["path"] for action in entry if "remove" in action}
            if info.get("userMetadata") == _REMOVED.format(batch):
                adds = set()
            elif not removed & holding:
                adds &= held
            holding = holding - removed | adds
            held |= adds
        if holding - added:
            holding -= {each["path"] for each in self.files.described_at(version - 1)}
        return holding

    def _replaced_by(self, table: Seen, version: int, paths: set[str]) -> list[StagedFile]:
        """The files that `version` has replaced; SinkError if they cannot be added again."""
        if not paths:
            return []
        if not self.writer.takes_entries(table):
            raise SinkError("it replaced files of a table that needs spark's writer", hint="")
        gone = sorted(each for each in paths if not (self.path / each).exists())
        if gone:
            raise SinkError(f'file "{gone[0]}", which it replaced, is gone', hint="")
        before = [each for each in self.files.described_at(version - 1) if each["path"] in paths]
        rows = [row_count(self.path / each["path"]) for each in before]
        return [
            _staged_again({**each, "num_records": count})
            for each, count in zip(before, rows, strict=True)
        ]

    def _not_retracted(
        self, batch: int, version: int, why: str, *, replaces: bool = False
    ) -> SinkError:
        what = f"remove with Spark what is left of the rows that version {version} of the table "
        what += "has added, with SET spark.databricks.delta.commitInfo.userMetadata = "
        what += f"'{_REMOVED.format(batch)}'."
        if replaces:
            what = f"put back with Spark what version {version} of the table has replaced, such as "
            what += f"by RESTORE TABLE … TO VERSION AS OF {version - 1}."
        return SinkError(
            f'batch {batch} cannot be removed from delta table "{self.path}": {why}',
            hint=f"It is tried again; if this stays, {what}",
        )

    def go_back(self, version: int, epoch: int, metadata: Mapping[str, Any]) -> int:
        """Restore the files of `version`; batch numbers stay used. Returns the new version."""
        with self.versions.lock:
            restored = {each["path"]: each for each in self.files.described_at(version)}
            table = self.versions.fresh()
            self.batches.check_epoch(epoch, table)
            now = set(paths_of(self.versions.whole(table)))
            added = [_staged_again(each) for path, each in restored.items() if path not in now]
            for file in added:
                self._check_file(file)
            fence = (Transaction(self.batches.fence_id, epoch),)
            gone = sorted(now - set(restored))
            return self.writer.write(table, Commit(fence, added, gone, metadata))

    # Checks
    # -----------------------------------------------------------------------------------------

    def _check_columnar(self, table: Seen) -> None:
        choice = self.writer.rules(table).choice
        if choice is not None and choice.is_spark:
            raise SinkError(
                f'delta table "{self.path}" needs spark\'s writer now: {choice.reason}',
                hint="Nothing was written; the batch is run again with that writer.",
            )

    def _check_version(self, table: Seen, expected: int | None) -> None:
        if expected is not None and expected != table.at:
            raise SinkError(
                f'delta table "{self.path}" has version {table.at}, and a change to it was made of '
                f"version {expected}",
                hint="Another runner of the job was faster; this one reads the table again.",
            )

    def _check_removed(self, table: Seen, removed: Sequence[str]) -> None:
        missing = set(removed) - set(paths_of(self.versions.whole(table))) if removed else set()
        if missing:
            raise SinkError(
                f'delta table "{self.path}" has no file "{min(missing)}" to replace',
                hint="Another program changed the table; the step is done again.",
            )

    def _check_file(self, file: StagedFile) -> None:
        path = self.path / file.path
        size: int | None = None
        rows: int | None = None
        with suppress(FileNotFoundError):
            if isinstance(path, StorePath):
                size, rows = size_and_rows(path, file.size_bytes)
            else:
                size = path.stat().st_size
        if size != file.size_bytes:
            raise SinkError(
                f'staged file "{path}" has {size} bytes, expected {file.size_bytes}',
                hint="The file was changed from outside; the batch is run again.",
            )
        if rows is None:
            rows = row_count(path)
        if rows != file.rows:
            raise SinkError(
                f'staged file "{path}" has {rows} rows, its task counted {file.rows}',
                hint="The file was changed from outside; the batch is run again.",
            )


def _have_vectors(paths: set[str], entries: Iterable[Sequence[Mapping[str, Any]]]) -> bool:
    adds = (add for entry in entries for add in added_files(entry))
    return any(add["path"] in paths and add.get("deletionVector") for add in adds)


def _staged_again(described: Mapping[str, Any]) -> StagedFile:
    rows = int(described["num_records"])
    stats: dict[str, Any] = {"numRecords": rows}
    for name, bounds in (("minValues", "min"), ("maxValues", "max")):
        statistics = described.get(bounds) or {}
        stats[name] = {
            column: value for column, value in statistics.items() if isinstance(value, int)
        }
    stats["nullCount"] = dict(described.get("null_count") or {})
    return StagedFile(described["path"], int(described["size_bytes"]), rows, json.dumps(stats))
