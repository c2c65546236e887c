"""The batches and runners of one app id, as the transactions in a Delta table's log tell them.

Spark's writer gives a commit one transaction only: `<app id>:spark` has epoch and batch in one
number (`spark_version`). Whatever is asked here of batches and epochs looks at both, because a
table may have commits of both writers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deltalake import Transaction

from joins.adapters.delta.commit import batch_of_spark, epoch_of_spark
from joins.adapters.delta.entries import metadata_of, transactions
from joins.adapters.delta.versions import Seen, TableVersions
from joins.plan.errors import FencedError

EPOCH_KEY = "sluice.epoch"


class TableBatches:
    """What is committed under one app id; threads may share it.

    Attributes:
        fence_id: the app id of the runner's epoch.
        spark_id: the app id of Spark's writer.
    """

    def __init__(self, versions: TableVersions, app_id: str) -> None:
        self._versions = versions
        self.app_id = app_id
        _, self.fence_id, self.spark_id = followed_ids(app_id)

    def last_batch(self, table: Seen | None = None) -> int | None:
        numbers = (table or self._versions.fresh()).numbers
        batches = (numbers[self.app_id], batch_of_spark(numbers[self.spark_id] or 0))
        return max((batch for batch in batches if batch is not None), default=None)

    def epoch(self, table: Seen) -> int | None:
        fence, spark = (table.numbers[each] for each in (self.fence_id, self.spark_id))
        epochs = (fence, None if spark is None else epoch_of_spark(spark))
        return max((epoch for epoch in epochs if epoch is not None), default=None)

    def check_epoch(self, epoch: int, table: Seen | None = None) -> None:
        """See that no newer runner has taken over, in `table` or now.

        Raises:
            FencedError: one has.
        """
        newest = self.epoch(table or self._versions.fresh())
        if newest is not None and newest > epoch:
            raise FencedError(
                f'delta table "{self._versions.path}" belongs to epoch {newest}, this runner is '
                f"{epoch}",
                hint="A newer runner of the job has taken over; this one ends.",
            )

    def has(self, batch: int, epoch: int, table: Seen) -> bool:
        """Whether `table` has `batch` already; raises as `check_epoch`."""
        self.check_epoch(epoch, table)
        last = self.last_batch(table)
        return last is not None and last >= batch

    def last_in_log(self, table: Seen) -> int | None:
        """The newest batch, from the log itself: a runner's epoch may not know the last one.

        Only Spark can commit to some tables, and an older runner's batch may come between our look
        and its own.
        """
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
        """Version and batch of the newest commit whose batch is `limit` at the most.

        None if there is none, or not any more.
        """
        newest = None
        low, high = self._versions.oldest_entry(), self._versions.version()
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
            batch = self.batch_in(self._versions.commit_entry(version))
            if batch is not None:
                return version, batch
        return last, None

    def batch_in(self, entry: Sequence[Mapping[str, Any]]) -> int | None:
        """The batch that a commit is of; a runner's epoch names one, too, and is none."""
        transactions_in = transactions(entry)
        if self.app_id in transactions_in:
            return transactions_in[self.app_id]
        if self.spark_id not in transactions_in or EPOCH_KEY in (metadata_of(entry) or {}):
            return None
        return batch_of_spark(transactions_in[self.spark_id])

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
