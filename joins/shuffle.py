"""The `shuffle` lookup: records and dimension rows meet by the hash of their keys, in no one place.

The records of a batch ask for their keys, bucket by bucket; what is matched travels back to the
records, which stay in their order. The rows of a version are folded and spread once and kept on the
executors' disks until another version is asked for. The joins themselves are the kernel's.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from joins.adapters.delta_log import DeltaLog
from joins.errors import SinkError
from joins.index_keeper import version_expired
from joins.kernels.exchange import ShuffledRole, fold, match, pack, read_changelog
from joins.kernels.index_spec import IndexSpec
from joins.kernels.packets import PACKETS_DDL
from joins.kernels.probe import joins_before
from joins.pins import Pin
from joins.probe_task import ProbeTask, asked

_BUCKET_ROWS = 250_000  # a bucket is looked up in the memory of one worker
_BUCKET_FILE_BYTES = 16 << 20  # of Parquet, several times that in memory
_MAX_BUCKETS = 16_384


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
class _Rows:
    """The visible rows of one version, cached by bucket of a join key."""

    version: int
    buckets: int
    frame: DataFrame


class Shuffle:
    """The shuffled roles of one job, in the order of the statement; one batch at a time."""

    def __init__(self, sources: Sequence[ShuffleSource]) -> None:
        self._sources = sources
        self._rows: dict[tuple[str, IndexSpec], _Rows] = {}

    @property
    def is_used(self) -> bool:
        """Whether any role is shuffled."""
        return bool(self._sources)

    @contextmanager
    def gathered(
        self, frame: DataFrame, task: ProbeTask, pin: Pin
    ) -> Iterator[tuple[DataFrame, ProbeTask]]:
        """The records of `frame` with the rows that they ask for, and the task that joins them.

        Raises:
            PinnedVersionExpiredError: a version cannot be read any more.
        """
        cached: list[DataFrame] = [frame.mapInArrow(pack, PACKETS_DDL).persist()]
        roles: dict[str, ShuffledRole] = {}
        matched: dict[str, DataFrame] = {}
        try:
            for source in self._sources:
                rows = self._rows_of(frame.sparkSession, source, pin.versions[source.dimension])
                role = ShuffledRole(source.alias, source.ordinal, source.spec, rows.buckets)
                before = [
                    join.alias
                    for join in joins_before(task.kernel.joins, source.alias)
                    if join.alias in roles
                ]
                known = replace(task, shuffled=tuple(roles[alias] for alias in before))
                asking = partial(asked, task=known, pin=pin, role=role)
                parts = _in_order([cached[0], *(matched[alias] for alias in before)], pin)
                keys = parts.mapInArrow(asking, PACKETS_DDL)
                matched[source.alias] = _matched(keys, rows.frame, role).persist()
                cached.append(matched[source.alias])
                roles[source.alias] = role
            whole = _in_order([cached[0], *matched.values()], pin)
            yield whole, replace(task, shuffled=tuple(roles.values()))
        finally:
            for each in cached:
                each.unpersist()

    def forget(self) -> None:
        """Drop what is cached: the query that it was made for has ended."""
        for rows in self._rows.values():
            rows.frame.unpersist()
        self._rows.clear()

    def _rows_of(self, spark: SparkSession, source: ShuffleSource, version: int) -> _Rows:
        key = (source.dimension, source.spec)
        kept = self._rows.get(key)
        if kept is not None and kept.version == version:
            return kept
        if kept is not None:
            del self._rows[key]
            kept.frame.unpersist()
        paths, buckets = _files(source.changelog, version)
        files = spark.createDataFrame([(path,) for path in paths], "path string")
        width = min(max(1, len(paths)), 4 * spark.sparkContext.defaultParallelism)
        read = files.repartition(width).mapInArrow(
            partial(read_changelog, spec=source.spec, buckets=buckets), PACKETS_DDL
        )
        folded = _by_bucket(read, buckets).mapInArrow(
            partial(fold, spec=source.spec, buckets=buckets), PACKETS_DDL
        )
        frame = _by_bucket(folded, buckets).persist(StorageLevel.DISK_ONLY)
        self._rows[key] = _Rows(version, buckets, frame)
        return self._rows[key]


def _files(changelog: DeltaLog, version: int) -> tuple[list[str], int]:
    """(files of `version`, buckets for its rows)."""
    try:
        rows = changelog.rows_at(version)
        sizes = [(changelog.path / name).stat().st_size for name in rows]
    except (SinkError, OSError) as exc:
        raise version_expired(changelog, version, exc) from exc
    buckets = max(sum(rows.values()) // _BUCKET_ROWS, sum(sizes) // _BUCKET_FILE_BYTES) + 1
    return [str(changelog.path / name) for name in sorted(rows)], min(buckets, _MAX_BUCKETS)


def _by_bucket(frame: DataFrame, buckets: int) -> DataFrame:
    tasks = min(buckets, 4 * frame.sparkSession.sparkContext.defaultParallelism)
    return frame.repartition(tasks, "bucket").sortWithinPartitions("bucket")


def _in_order(frames: Sequence[DataFrame], pin: Pin) -> DataFrame:
    """The packets of each Kafka partition in one task, in the order of their offsets."""
    if len(frames) == 1:
        return frames[0]
    tasks = max(1, len(pin.end_offsets))
    place = f.col("partition") % tasks
    whole = reduce(DataFrame.union, frames).repartitionById(tasks, place)
    return whole.sortWithinPartitions("partition", "offset", "role")


def _matched(keys: DataFrame, rows: DataFrame, role: ShuffledRole) -> DataFrame:
    both = keys.groupBy("bucket").cogroup(rows.groupBy("bucket"))
    return both.applyInArrow(partial(match, role=role), PACKETS_DDL)
