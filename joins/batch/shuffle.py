"""The `shuffle` lookup: records and dimension rows meet by the hash of their keys, in no one place.

The records of a batch ask for their keys, bucket by bucket; what is matched travels back to the
records, which stay in their order. The rows of a version are folded and spread once and kept on the
executors' disks until another version is asked for. The joins themselves are the kernel's.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from joins.adapters.delta.log import DeltaLog
from joins.durable.pins import Pin
from joins.kernels.index.exchange import ShuffledRole, fold, match, pack, read_changelog
from joins.kernels.index.packets import PACKETS_DDL
from joins.kernels.index.spec import IndexSpec
from joins.kernels.probe.probe import joins_before
from joins.lookup.index_source import version_expired
from joins.plan.errors import SinkError
from joins.plan.stream_topics import SPAN
from joins.worker.probe_task import ProbeTask, role_keys
from joins.worker.work import Work

_BUCKET_ROWS = 250_000  # a bucket is looked up in the memory of one worker
_BUCKET_FILE_BYTES = 16 << 20  # of Parquet, several times that in memory
_MAX_BUCKETS = 16_384
_SPAN_BITS = SPAN.bit_length() - 1


@dataclass(frozen=True, slots=True)
class ShuffleSource:
    """A role that is shuffled, and where its rows are.

    Attributes:
        ordinal: of its join in the statement.
    """

    alias: str
    ordinal: int
    dimension: str
    spec: IndexSpec
    changelog: DeltaLog


@dataclass(frozen=True, slots=True)
class _CachedRows:
    """The visible rows of one version, cached by bucket of a join key."""

    version: int
    buckets: int
    frame: DataFrame


@dataclass(slots=True)
class _ShuffledBatch:
    """The records of one batch in packets, and what they are matched with, by role's alias."""

    task: ProbeTask
    pin: Pin
    records: DataFrame
    roles: dict[str, ShuffledRole] = field(default_factory=dict)
    matched: dict[str, DataFrame] = field(default_factory=dict)

    def match(self, source: ShuffleSource, rows: _CachedRows) -> None:
        """Let the records ask for their keys of `source`, which earlier roles may be needed for."""
        role = ShuffledRole(source.alias, source.ordinal, source.spec, rows.buckets)
        needed = (join.alias for join in joins_before(self.task.kernel.joins, source.alias))
        before = [alias for alias in needed if alias in self.roles]
        task = replace(self.task, shuffled=tuple(self.roles[alias] for alias in before))
        asking = partial(role_keys, task=task, pin=self.pin, role=role)
        keys = self.in_order(before).mapInArrow(asking, PACKETS_DDL)
        both = keys.groupBy("bucket").cogroup(rows.frame.groupBy("bucket"))
        self.matched[source.alias] = both.applyInArrow(
            partial(match, role=role), PACKETS_DDL
        ).persist()
        self.roles[source.alias] = role

    def in_order(self, aliases: Sequence[str]) -> DataFrame:
        """Each partition's packets in one task, by offset: what `aliases` matched, then records."""
        if not aliases:
            return self.records
        frames = [self.records, *(self.matched[alias] for alias in aliases)]
        tasks, number = max(1, len(self.pin.end_offsets)), f.col("partition")
        spread = (number + f.shiftright(number, _SPAN_BITS)) % tasks  # also over topics
        whole = reduce(DataFrame.union, frames).repartitionById(tasks, spread)
        return whole.sortWithinPartitions("partition", "offset", "role")


class Shuffle:
    """The shuffled roles of one job, in the order of the statement; one batch at a time."""

    def __init__(self, sources: Sequence[ShuffleSource]) -> None:
        self._sources = sources
        self._rows: dict[tuple[str, IndexSpec], _CachedRows] = {}

    @property
    def is_used(self) -> bool:
        """Whether any role is shuffled."""
        return bool(self._sources)

    @contextmanager
    def gathered(self, work: Work, task: ProbeTask, pin: Pin) -> Iterator[tuple[Work, ProbeTask]]:
        """The records of `work` with the rows that they ask for, and the task that joins them.

        Raises:
            PinnedVersionExpiredError: a version cannot be read any more.
        """
        batch = _ShuffledBatch(task, pin, work.map(pack, PACKETS_DDL).persist())
        try:
            for source in self._sources:
                version = pin.versions[source.dimension]
                batch.match(source, self._rows_of(work.spark, source, version))
            roles = tuple(batch.roles.values())
            yield Work(batch.in_order(list(batch.matched))), replace(task, shuffled=roles)
        finally:
            for each in (batch.records, *batch.matched.values()):
                each.unpersist()

    def forget(self) -> None:
        """Drop what is cached: the query that it was made for has ended."""
        for rows in self._rows.values():
            rows.frame.unpersist()
        self._rows.clear()

    def _rows_of(self, spark: SparkSession, source: ShuffleSource, version: int) -> _CachedRows:
        key = (source.dimension, source.spec)
        kept = self._rows.get(key)
        if kept is not None and kept.version == version:
            return kept
        if kept is not None:
            del self._rows[key]
            kept.frame.unpersist()
        paths, buckets = _files(source.changelog, version)
        files = spark.createDataFrame([(path,) for path in paths], "path string")
        root = source.changelog.path
        width = min(max(1, len(paths)), 4 * spark.sparkContext.defaultParallelism)
        read = files.repartition(width).mapInArrow(
            partial(read_changelog, root=root, spec=source.spec, buckets=buckets), PACKETS_DDL
        )
        folded = _by_bucket(read, buckets).mapInArrow(
            partial(fold, spec=source.spec, buckets=buckets), PACKETS_DDL
        )
        frame = _by_bucket(folded, buckets).persist(StorageLevel.DISK_ONLY)
        self._rows[key] = _CachedRows(version, buckets, frame)
        return self._rows[key]


def _files(changelog: DeltaLog, version: int) -> tuple[list[str], int]:
    """(files of `version`, relative to the table's root; buckets for its rows)."""
    try:
        rows = changelog.files.rows_at(version)
        sizes = [(changelog.path / name).stat().st_size for name in rows]
    except (SinkError, OSError) as exc:
        raise version_expired(changelog, version, exc) from exc
    buckets = max(sum(rows.values()) // _BUCKET_ROWS, sum(sizes) // _BUCKET_FILE_BYTES) + 1
    return sorted(rows), min(buckets, _MAX_BUCKETS)


def _by_bucket(frame: DataFrame, buckets: int) -> DataFrame:
    tasks = min(buckets, 4 * frame.sparkSession.sparkContext.defaultParallelism)
    return frame.repartition(tasks, "bucket").sortWithinPartitions("bucket")
