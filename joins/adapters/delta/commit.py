"""What one commit to a Delta table says: files, transactions, metadata; as delta-rs or we write it.

What is written as an entry of our own is either blind: it adds files and reads nothing of the
table, so that whatever others committed meanwhile changes nothing about it but its number. Or it
holds for one version only and goes right behind that.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, unquote

from deltalake import CommitProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from joins.adapters.delta.entries import transactions
from joins.kernels.probe.files import StagedFile

_BATCH_BITS = 40


def spark_version(epoch: int, batch: int | None) -> int:
    """The one transaction number of a commit by Spark: the greater, the newer; None for no batch.

    A new runner's epoch names the batch that was committed last.
    """
    return epoch << _BATCH_BITS | (0 if batch is None else batch + 1)


def epoch_of_spark(version: int) -> int:
    return version >> _BATCH_BITS


def batch_of_spark(version: int) -> int | None:
    batch = version & ((1 << _BATCH_BITS) - 1)
    return batch - 1 if batch else None


@dataclass(frozen=True, slots=True)
class FileActions:
    """What a batch does to a table: files that it adds, and files that are gone with it.

    Attributes:
        added: complete files below the table's root.
        removed: paths of files of the newest version, relative to the root, as the log has them.
        counters: name → value that `counter` gives from this commit on.
        changed: with files that are gone: files of change data, which say row by row what changes.
        of_version: the version that all this was made of; the newest one must be it.
    """

    added: Sequence[StagedFile] = ()
    removed: Sequence[str] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    changed: Sequence[StagedFile] = ()
    of_version: int | None = None


@dataclass(frozen=True, slots=True)
class Rewrite(FileActions):
    """Files in place of others with the same meaning: no row of any later version changes."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What one commit says, and what must be found in the log after it.

    Attributes:
        transactions: the last one is the epoch.
        changed: change data; only of a commit that is not blind.
        is_blind: whether files of the table make no difference to what it adds; else it holds only
            right behind the version that was looked at, and is an entry of our own.
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
            # The log has paths as URIs; delta-rs makes one of what it is given.
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
        """Its actions, as its entry in the log has them.

        Args:
            read: the newest version when it was looked at.

        Source: Delta transaction log protocol, "Actions".
        """
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
