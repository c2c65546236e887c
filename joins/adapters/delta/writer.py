"""Puts a commit into the log of a Delta table, verifies it, and keeps the log small.

| commit | written by |
|---|---|
| blind append to a table within the allow-list | Sluice, one entry put by name |
| valid directly behind one version only; only such tables have it | the same |
| anything else, or where files cannot be linked | delta-rs, which lists the log |

Both create the next entry only if it does not exist. If another writer was faster, a blind append
is retried behind it, unless that commit has one of this app id's transactions or changes the
table's rules: then it conflicts. Other commits always conflict.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import structlog
from deltalake import DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import CommitFailedError, DeltaError

from joins.adapters.delta.commit import Commit, TableBatches
from joins.adapters.delta.entries import NoLinksError, added_files, transactions
from joins.adapters.delta.features import Appends, WriterChoice, takes_plain_entries
from joins.adapters.delta.versions import CHECKPOINTS, Seen, TableVersions, store_faults
from joins.plan.errors import FencedError, SinkError

_log = structlog.get_logger(__name__)


class TableUpkeep:
    """Checkpoints, unless only Spark may write them, and clean-up; thread-safe."""

    def __init__(self, versions: TableVersions, may_checkpoint: Callable[[], bool]) -> None:
        self._versions = versions
        self._may_checkpoint = may_checkpoint
        self._checkpointing = threading.Lock()

    def checkpoints(self) -> list[int]:
        return self._versions.entries.checkpoints()

    def make_checkpoint(self, version: int) -> None:
        if not self._may_checkpoint():
            return
        try:
            with store_faults(self._versions.path):
                self._versions.load(version).create_checkpoint()
        except DeltaError as exc:
            raise SinkError(
                f'checkpoint {version} of delta table "{self._versions.path}" cannot be written: '
                f"{exc}",
                hint="Check space and permissions of the table's directory.",
            ) from exc

    def checkpoint_beside(self, version: int) -> None:
        """Write a checkpoint in a thread, unless one is being written; no commit waits for it.

        It ends before the process does. A failure is logged: the next one is due soon.
        """
        if self._checkpointing.acquire(blocking=False):
            threading.Thread(target=self._beside, args=(version,), name="checkpoint").start()

    def _beside(self, version: int) -> None:
        try:
            self.make_checkpoint(version)
        except Exception as exc:  # of whatever kind, the commit is there
            _log.warning("a checkpoint is missing", table=str(self._versions.path), error=str(exc))
        finally:
            self._checkpointing.release()

    def remove_log_before(self, version: int) -> int:
        """Remove log files before `version`, which must have a checkpoint; returns their number."""
        with self._versions.lock:  # Sluice's commits find the entry that they follow
            return self._versions.entries.remove_before(version)

    def grow(self, appends: Appends) -> None:
        """Add the nullable columns of the rows that the table lacks; rows that are there have NULL.

        Raises SinkError if the table does not take them.
        """
        with self._versions.lock:
            missing = appends.missing_in(self._versions.fresh().rules)
            if missing:
                self._add_columns(missing)

    def _add_columns(self, columns: pa.Schema) -> None:
        table = self._versions.load()
        try:
            with store_faults(self._versions.path):
                table.alter.add_columns(
                    list(Schema.from_arrow(columns).fields), post_commithook_properties=CHECKPOINTS
                )
        except DeltaError as exc:
            raise SinkError(
                f'delta table "{self._versions.path}" cannot get the columns '
                f"{', '.join(columns.names)}: {exc}",
                hint="Add them with Spark: ALTER TABLE … ADD COLUMNS; then resume the job.",
            ) from exc
        self._versions.reload()

    def newest_before(self, second: float) -> int:
        return self._versions.entries.newest_before(second)

    def vacuum(self, retention_hours: int) -> int:
        """Remove files that no version within `retention_hours` needs; for the only writer."""
        with store_faults(self._versions.path):
            table = self._versions.load()
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


_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_CHECKPOINT_INTERVAL = 100  # Delta's default
MOST_TRIES = 15  # as delta-rs


@dataclass(frozen=True, slots=True)
class TableRules:
    """What a table requires of its writers."""

    of: DeltaTable
    takes_entries: bool  # true if blind appends may be entries that Sluice writes
    choice: WriterChoice | None  # the writer of batches, None where it is not checked
    interval: int  # commits between two checkpoints


class CommitWriter:
    """Writes commits to one table; its caller holds the lock of `versions`."""

    def __init__(
        self,
        versions: TableVersions,
        batches: TableBatches,
        upkeep: TableUpkeep,
        appends: Appends | None,
    ) -> None:
        self._versions = versions
        self._batches = batches
        self._upkeep = upkeep
        self._appends = appends
        self._known_rules: TableRules | None = None
        self._has_links = True

    def write(self, table: Seen, commit: Commit) -> int:
        before = self._put(table, commit)
        if before is None and not commit.is_blind:
            raise self._conflict(commit, "its log takes no entries of ours")
        if before is None:
            self._write_by_delta_rs(table, commit)
            return self.verified(commit, range(table.at + 1, self._versions.version() + 1))[0]
        version, entry = self.verified(commit, range(before.at + 1, before.at + 2))
        self._versions.note(before, entry)
        interval = self.rules(table).interval
        is_due = (version + 1) % interval == 0 and commit.may_checkpoint
        if is_due and version - self._versions.entries.last_checkpoint() >= interval:
            self._upkeep.checkpoint_beside(version)
        return version

    def takes_entries(self, table: Seen) -> bool:
        return self._has_links and self.rules(table).takes_entries

    def rules(self, table: Seen) -> TableRules:
        """The requirements of the table, cached until an entry changes them."""
        known = self._known_rules
        if known is None or known.of is not table.rules:
            rules, appends = table.rules, self._appends
            interval = str(rules.metadata().configuration.get("delta.checkpointInterval", ""))
            known = self._known_rules = TableRules(
                rules,
                takes_plain_entries(rules),
                None if appends is None else appends.choose(self._versions.path, rules),
                int(interval) if interval.isdecimal() and int(interval) else _CHECKPOINT_INTERVAL,
            )
        return known

    def _put(self, table: Seen, commit: Commit) -> Seen | None:
        """Write the next entry; returns the version before it, None if delta-rs must write."""
        if not (commit.is_for_an_entry and self.takes_entries(table)):
            return None
        for _ in range(MOST_TRIES):
            try:
                if self._versions.entries.put(table.at + 1, commit.entry(table.at)):
                    return table
            except NoLinksError:
                self._has_links = False
                return None
            table = self._behind(table, commit)
        raise self._conflict(commit, f"{MOST_TRIES} others were faster, one after the other")

    def _behind(self, table: Seen, commit: Commit) -> Seen:
        """The newest version, if the commits since `table` do not conflict with `commit`."""
        if not commit.is_blind:
            raise self._conflict(commit, f"another was faster behind version {table.at}")
        newest = self._versions.follow(table)
        if newest is None:
            raise self._conflict(commit, "it changed what the table asks for, or is gone again")
        ours = {*self._versions.followed, *(one.app_id for one in commit.transactions)}
        for version in range(table.at + 1, newest.at + 1):
            met = sorted(ours & transactions(self._versions.entries.read(version)).keys())
            if met:
                raise self._conflict(commit, f'version {version} has transactions of "{met[0]}"')
        return newest

    def _write_by_delta_rs(self, table: Seen, commit: Commit) -> None:
        loaded = self._versions.whole(table)
        hooks = CHECKPOINTS if commit.may_checkpoint else _NO_HOOKS
        try:
            with store_faults(self._versions.path):
                loaded.create_write_transaction(
                    commit.actions(),
                    "append",
                    loaded.schema(),
                    commit_properties=commit.properties(),
                    post_commithook_properties=hooks,
                )
        except CommitFailedError as exc:
            raise self._conflict(commit, str(exc)) from exc
        except DeltaError as exc:
            # a newer runner has shortened the log
            self._batches.check_epoch(commit.epoch, self._versions.reload())
            raise SinkError(
                f'commit to delta table "{self._versions.path}" failed: {exc}',
                hint="Check space and permissions of the table's directory.",
            ) from exc

    def verified(self, commit: Commit, versions: range) -> tuple[int, Sequence[Mapping[str, Any]]]:
        """Version and entry of `commit`, which must be complete in the log as one of `versions`."""
        for version in versions:
            entry = self._versions.entries.find(version)
            if entry is None or not commit.is_in(entry):
                continue
            if not self._versions.entries.follows(version):
                self._versions.entries.remove(version)
                raise self._conflict(commit, f"the log was shortened beyond version {version}")
            rows = sum(json.loads(a["stats"])["numRecords"] for a in added_files(entry))
            removed = sorted(unquote(a["remove"]["path"]) for a in entry if "remove" in a)
            expected = sum(file.rows for file in commit.added)
            if rows == expected and removed == sorted(map(unquote, commit.removed)):
                return version, entry
            raise SinkError(
                f'version {version} of delta table "{self._versions.path}" adds {rows} rows and '
                f"removes {len(removed)} files, expected {expected} and {len(commit.removed)}",
                hint="The log was changed from outside; compare it with the runner's log.",
            )
        raise SinkError(
            f'delta table "{self._versions.path}" does not show a commit that succeeded',
            hint="Another program removes entries of its log; stop it.",
        )

    def _conflict(self, commit: Commit, why: str) -> SinkError | FencedError:
        newest = self._batches.epoch(self._versions.reload())
        if newest is not None and newest > commit.epoch:
            return FencedError(
                f'commit to delta table "{self._versions.path}" met one of epoch {newest}, this is '
                f"{commit.epoch}",
                hint="A newer runner of the job has taken over; this one ends.",
            )
        return SinkError(
            f'commit to delta table "{self._versions.path}" met a concurrent one: {why}',
            hint="The batch is tried again; let no other program change the table while the job "
            "runs.",
        )
