"""Brings the rows of dimensions to the records of a batch, as each dimension's strategy says.

Only the match step differs: index roles are attached by the workers; rows that are broadcast or
shuffled become indexes in memory, and the same kernel joins.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from joins.adapters.delta.log import DeltaLog
from joins.batch.shuffle import Shuffle, ShuffleSource
from joins.durable.pins import Pin
from joins.kernels.index.spec import IndexSpec
from joins.lookup.broadcast import DEFAULT_MAX_BYTES, BroadcastRows
from joins.plan.plan import LookupStrategy
from joins.worker.probe_task import CopiedRole, ProbeTask
from joins.worker.work import Work


@dataclass(frozen=True, slots=True)
class Role:
    """A role of a dimension in the statement, and where its rows are."""

    alias: str
    dimension: str
    spec: IndexSpec
    strategy: LookupStrategy
    changelog: DeltaLog


class Lookups:
    """The lookups of one job's roles, which come in the order of the statement."""

    def __init__(
        self, roles: Sequence[Role] = (), *, max_broadcast_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        self._copied = [r for r in roles if r.strategy is LookupStrategy.BROADCAST]
        self._broadcast = {
            role.dimension: BroadcastRows(
                role.dimension,
                _columns_of_all([r for r in self._copied if r.dimension == role.dimension]),
                role.changelog,
                max_broadcast_bytes,
            )
            for role in self._copied
        }
        self._shuffle = Shuffle(
            [
                ShuffleSource(r.alias, ordinal, r.dimension, r.spec, r.changelog)
                for ordinal, r in enumerate(roles)
                if r.strategy is LookupStrategy.SHUFFLE
            ]
        )

    def check(self, versions: Mapping[str, int]) -> None:
        """See that the rows of `versions` can be looked up as their strategies say.

        Raises:
            DimensionTooLargeError: a dimension is too large to be broadcast.
        """
        for dimension, rows in self._broadcast.items():
            rows.rows(versions[dimension])

    @contextmanager
    def ready(self, work: Work, task: ProbeTask, pin: Pin) -> Iterator[tuple[Work, ProbeTask]]:
        """What the workers get in place of `work` and `task`, until the batch is staged.

        Raises:
            DimensionTooLargeError: a dimension is too large to be broadcast.
            PinnedVersionExpiredError: a version cannot be read any more.
        """
        context = work.spark.sparkContext
        copies = {
            dimension: rows.copy(context, pin.versions[dimension])
            for dimension, rows in self._broadcast.items()
        }
        copied = {r.alias: CopiedRole(r.spec, copies[r.dimension]) for r in self._copied}
        task = replace(task, copied=copied)
        if not self._shuffle.is_used:
            yield work, task
            return
        with self._shuffle.gathered(work, task, pin) as gathered:
            yield gathered

    def forget(self) -> None:
        """Drop what Spark keeps of them."""
        for rows in self._broadcast.values():
            rows.forget()
        self._shuffle.forget()


def _columns_of_all(roles: Sequence[Role]) -> IndexSpec:
    """The columns that any of `roles` needs, of one dimension."""
    fields = {field.name: field for role in roles for field in role.spec.fields}
    return replace(roles[0].spec, fields=tuple(fields.values()))
