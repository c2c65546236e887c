"""The content of a commit to a Delta table, and the batches and epochs of an app id.

An entry that Sluice writes is either blind (it only adds files, so that concurrent commits change
only its number), or valid directly behind one version.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, unquote

from deltalake import CommitProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from joins.adapters.delta.entries import metadata_of, transactions
from joins.adapters.delta.versions import Seen, TableVersions, newest_numbered
from joins.kernels.probe.files import StagedFile
from joins.plan.errors import FencedError

_BATCH_BITS = 40


def txn_number(epoch: int, batch: int | None) -> int:
    """The number of a commit by Spark: the epoch in the high bits, batch + 1 (0: none) in the low.

    An epoch is the number of a runner of the job; each start takes the next one. So numbers grow
    with epochs, and with batches within an epoch, as Delta requires of the transactions of an app.
    """
    return epoch << _BATCH_BITS | (0 if batch is None else batch + 1)


def epoch_of_txn(txn: int) -> int:
    return txn >> _BATCH_BITS


def batch_of_txn(txn: int) -> int | None:
    batch = txn & ((1 << _BATCH_BITS) - 1)
    return batch - 1 if batch else None


@dataclass(frozen=True, slots=True)
class FileActions:
    """The file changes of one batch, computed from `of_version`, which must be the newest.

    `counters` are returned from this commit on. `changed`, change data, requires removed files.
    """

    added: Sequence[StagedFile] = ()
    removed: Sequence[str] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    changed: Sequence[StagedFile] = ()
    of_version: int | None = None


@dataclass(frozen=True, slots=True)
class Rewrite(FileActions):
    """Replaces files by others with the same rows (`dataChange` is false)."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The content of one commit, which must be in the log afterwards.

    The last transaction is the epoch. A blind commit does not depend on the table's files and has
    no change data; other commits are valid only directly behind the version they were computed
    from.
    """

    transactions: tuple[Transaction, ...]
    added: Sequence[StagedFile] = ()
    removed: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    changed: Sequence[StagedFile] = ()
    data_change: bool = True
    may_checkpoint: bool = True
    is_blind: bool = True

    @classmethod
    def of(
        cls,
        change: FileActions,
        transactions: tuple[Transaction, ...],
        metadata: Mapping[str, Any],
    ) -> Self:
        is_blind = change.of_version is None or not change.removed
        files = (change.added, change.removed)
        return cls(transactions, *files, metadata, change.changed, is_blind=is_blind)

    @property
    def epoch(self) -> int:
        return int(self.transactions[-1].version)

    @property
    def is_for_an_entry(self) -> bool:
        return not self.is_blind or (self.data_change and not self.removed)

    def actions(self) -> list[AddAction | RemoveAction]:
        now_ms = int(time.time() * 1000)
        changed = self.data_change
        return [
            *(AddAction(f.path, f.size_bytes, {}, now_ms, changed, f.stats) for f in self.added),
            # The log has paths as URIs; delta-rs converts what it gets.
            *(RemoveAction(unquote(p), changed, now_ms, None, {}) for p in self.removed),
        ]

    def properties(self) -> CommitProperties:
        return CommitProperties(
            custom_metadata={"userMetadata": self._user_metadata()},
            app_transactions=list(self.transactions),
        )

    def _user_metadata(self) -> str:
        return json.dumps(dict(self.metadata), separators=(",", ":"))

    def entry(self, read: int) -> Iterator[dict[str, Any]]:
        """The actions of its log entry. Source: Delta transaction log protocol, "Actions"."""
        now_ms = int(time.time() * 1000)
        append = {"mode": "Append", "partitionBy": "[]"}
        yield {
            "commitInfo": {
                "timestamp": now_ms,
                "operation": "MERGE" if self.removed else "WRITE",
                "operationParameters": {} if self.removed else append,
                "readVersion": read,
                "isBlindAppend": self.is_blind,
                "engineInfo": "Sluice",
                "userMetadata": self._user_metadata(),
            }
        }
        for path in self.removed:
            yield {"remove": {"path": path, "deletionTimestamp": now_ms, "dataChange": True}}
        for file in self.changed:
            described = {"path": quote(file.path), "partitionValues": {}, "size": file.size_bytes}
            yield {"cdc": {**described, "dataChange": False}}
        for file in self.added:
            yield {
                "add": {
                    "path": quote(file.path),
                    "partitionValues": {},
                    "size": file.size_bytes,
                    "modificationTime": now_ms,
                    "dataChange": True,
                    "stats": file.stats,
                }
            }
        for one in self.transactions:
            yield {"txn": {"appId": one.app_id, "version": one.version}}

    def is_in(self, entry: Sequence[Mapping[str, Any]]) -> bool:
        transactions_in = transactions(entry).items()
        return all((one.app_id, one.version) in transactions_in for one in self.transactions)


EPOCH_KEY = "sluice.epoch"


class TableBatches:
    """The batches under one app id, and epochs (`fence_id`, Spark's `spark_id`); thread-safe."""

    def __init__(self, versions: TableVersions, app_id: str) -> None:
        self._versions = versions
        self.app_id = app_id
        _, self.fence_id, self.spark_id = followed_ids(app_id)

    def last_batch(self, table: Seen | None = None) -> int | None:
        numbers = (table or self._versions.fresh()).numbers
        batches = (numbers[self.app_id], batch_of_txn(numbers[self.spark_id] or 0))
        return max((batch for batch in batches if batch is not None), default=None)

    def epoch(self, table: Seen) -> int | None:
        fence, spark = (table.numbers[each] for each in (self.fence_id, self.spark_id))
        epochs = (fence, None if spark is None else epoch_of_txn(spark))
        return max((epoch for epoch in epochs if epoch is not None), default=None)

    def check_epoch(self, epoch: int, table: Seen | None = None) -> None:
        """Raise FencedError if `table`, by default the newest, has a newer epoch."""
        newest = self.epoch(table or self._versions.fresh())
        if newest is not None and newest > epoch:
            raise FencedError(
                f'delta table "{self._versions.path}" belongs to epoch {newest}, this runner is '
                f"{epoch}",
                hint="A newer runner of the job has taken over; this one ends.",
            )

    def has(self, batch: int, epoch: int, table: Seen) -> bool:
        """True if `table` has `batch`; raises as `check_epoch`."""
        self.check_epoch(epoch, table)
        last = self.last_batch(table)
        return last is not None and last >= batch

    def last_in_log(self, table: Seen) -> int | None:
        """The newest batch in the log: an older runner's may land after an epoch named its last."""
        known = self.last_batch(table)
        if table.numbers[self.spark_id] is None:
            return known
        for version in range(table.at, self._versions.oldest_entry() - 1, -1):
            batch = self.batch_in(self._versions.commit_entry(version))
            if batch is not None:
                return batch if known is None else max(known, batch)
        return known

    def version_of(self, batch: int) -> int | None:
        newest = self.newest_batch(batch)
        return newest[0] if newest is not None and newest[1] == batch else None

    def newest_batch(self, limit: int) -> tuple[int, int] | None:
        """(version, batch) of the newest commit with a batch ≤ `limit`."""
        return newest_numbered(self._versions, limit, self.batch_in)

    def batch_in(self, entry: Sequence[Mapping[str, Any]]) -> int | None:
        """The batch of a commit. An epoch's commit names a batch, too, but has none."""
        transactions_in = transactions(entry)
        if self.app_id in transactions_in:
            return transactions_in[self.app_id]
        if self.spark_id not in transactions_in or EPOCH_KEY in (metadata_of(entry) or {}):
            return None
        return batch_of_txn(transactions_in[self.spark_id])

    def metadata_at(self, version: int) -> dict[str, Any] | None:
        return metadata_of(self._versions.commit_entry(version))

    def batch_metadata(self, batch: int) -> dict[str, Any] | None:
        version = self.version_of(batch)
        return None if version is None else self.metadata_at(version)

    def counters(self, names: Iterable[str], version: int) -> dict[str, int]:
        table = self._versions.load(version)
        versions = {name: table.transaction_version(f"{self.app_id}:{name}") for name in names}
        return {name: value for name, value in versions.items() if value is not None}

    def counter_transactions(self, values: Mapping[str, int]) -> tuple[Transaction, ...]:
        return tuple(
            Transaction(f"{self.app_id}:{name}", value) for name, value in sorted(values.items())
        )


def followed_ids(app_id: str) -> tuple[str, str, str]:
    return app_id, f"{app_id}:fence", f"{app_id}:spark"
