"""The work of a batch's tasks, and how the driver runs them.

Task n prefers the same node each time, so that few nodes build an index. `collected` replaces
`mapPartitions(…).collect()` with fewer JVM calls: PySpark makes about twenty a stage, a third of
the driver's time for a small batch.
"""

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa
from py4j.java_collections import ListConverter, MapConverter
from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer, UTF8Deserializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.util import _load_from_socket

from joins.adapters.kafka.records import Ranges
from joins.worker.staging import BatchReport, merge_reports, telling_cause

TAG = "spark.sluice.job"
"""The setting of a session with the tag of its Spark jobs, where several runners share a driver."""


def enter_pool(spark: SparkSession, pool: str) -> None:
    context = spark.sparkContext
    context.setLocalProperty("spark.scheduler.pool", pool)
    tag = spark.conf.get(TAG, None)
    if tag is not None:
        context.addJobTag(tag)


_KNOWN_S = 5.0
_DRIVER = "driver"
Nodes = tuple[str, ...]


def nodes_for(spark: SparkSession) -> Nodes:
    """Hosts of executors, the host of the job's task 0 first; empty with fewer than two."""
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return ()
    nodes = _nodes(context, int(time.monotonic() / _KNOWN_S))
    if len(nodes) < 2:
        return ()
    job = str(spark.conf.get(TAG, None) or context.appName)
    first = zlib.crc32(job.encode()) % len(nodes)
    return nodes[first:] + nodes[:first]


def parallelism(spark: SparkSession) -> int:
    """Tasks that can run at the same time; cached for a few seconds."""
    return _parallelism(spark.sparkContext, int(time.monotonic() / _KNOWN_S))


@lru_cache(maxsize=4)
def _parallelism(context: SparkContext, _: int) -> int:
    return int(context.defaultParallelism)


@lru_cache(maxsize=4)
def _nodes(context: SparkContext, _: int) -> Nodes:
    executors: Any = context._jsc.sc().statusStore().executorList(True)  # those that live
    known = (executors.apply(at) for at in range(executors.length()))
    hosts = {str(each.hostPort()).rpartition(":")[0] for each in known if each.id() != _DRIVER}
    return tuple(sorted(hosts))


Texts = Callable[[Iterable[int]], Iterator[str]]
"""What a task does: it is given its numbers."""
_READS: Any = UTF8Deserializer
_PICKLES: Any = CloudPickleSerializer


@dataclass(frozen=True, slots=True)
class _OfAPartition:
    work: Texts

    def __call__(self, _: int, numbers: Iterator[str]) -> Iterator[str]:
        return self.work(map(int, numbers))


@dataclass(frozen=True, slots=True, eq=False)
class _Jvm:
    """Objects of a session's JVM that all its stages share.

    `collect` runs an RDD and says where its results can be read. A function above `largest_bytes`
    is broadcast.
    """

    function: Any
    rdd: Any
    collect: Any
    environment: Any
    includes: Any
    nothing: Any
    largest_bytes: int

    @classmethod
    def of(cls, context: SparkContext) -> "_Jvm":
        jvm: Any = context._jvm
        client = context._gateway._gateway_client  # type: ignore[union-attr] # of a live session
        return cls(
            jvm.SimplePythonFunction,
            jvm.PythonRDD,
            jvm.PythonRDD.collectAndServe,
            MapConverter().convert(context.environment, client),
            ListConverter().convert(context._python_includes, client),
            ListConverter().convert([], client),
            jvm.PythonUtils.getBroadcastThreshold(context._jsc),
        )


_jvm_of = lru_cache(maxsize=4)(_Jvm.of)


@lru_cache(maxsize=64)
def numbered(context: SparkContext, count: int, nodes: Nodes) -> Any:  # noqa: ANN401
    """An RDD of the JVM with one partition for each number; each prefers one of `nodes`."""
    jvm: Any = context._jvm
    sequence, pair = jvm.PythonUtils.toSeq, jvm.scala.Tuple2
    places = [sequence([nodes[n % len(nodes)]] if nodes else []) for n in range(count)]
    placed = [pair(str(n), place) for n, place in enumerate(places)]
    text = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("java.lang.String"))
    spark: Any = context._jsc
    return spark.sc().makeRDD(sequence(placed), text)


def collected(context: SparkContext, count: int, nodes: Nodes, work: Texts) -> list[str]:
    """The texts of `count` tasks, in task order; raises PySparkException if one fails."""
    jvm, reads, pickles = _jvm_of(context), _READS(), _PICKLES()
    pickled = pickles.dumps((_OfAPartition(work), None, reads, context.serializer))
    if len(pickled) > jvm.largest_bytes:
        pickled = pickles.dumps(context.broadcast(pickled))  # it goes with the RDD
    sent = context._pickled_broadcast_vars  # those that the function has named
    broadcasts = [each._jbroadcast for each in sent] or jvm.nothing
    sent.clear()
    function = jvm.function(
        bytearray(pickled),
        jvm.environment,
        jvm.includes,
        context.pythonExec,
        context.pythonVer,
        broadcasts,
        context._javaAccumulator,
    )
    rdd = jvm.rdd(numbered(context, count, nodes), function, False, False)
    with _load_from_socket(jvm.collect(rdd), context.serializer) as stream:
        return list(stream)


RECORDS_WORTH_A_TASK = 5_000
"""A task costs 20 ms of a core before its first record."""

Batches = Iterator[pa.RecordBatch]
Stage = Callable[[Batches], Batches]
"""What a task does with its part of a batch."""
_ITEM = "item"


@dataclass(frozen=True, slots=True)
class StageRun:
    """A stage over the rows that `read` makes from a task's items; picklable.

    It reports the stage's errors to the driver by cause.
    """

    read: Stage | None
    stage: Stage

    def __call__(self, items: Sequence[str]) -> Iterator[str]:
        """The texts of one task; without `read` the stage gets the items as they are."""
        for batch in self.batches(items):
            yield from batch.column(0).to_pylist()

    def batches(self, items: Sequence[str]) -> Batches:
        mine = iter([pa.record_batch([pa.array(items, pa.string())], names=[_ITEM])])
        with telling_cause():
            yield from self.stage(mine if self.read is None else self.read(mine))


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A run over the items at the numbers that Spark gives its tasks; picklable."""

    items: tuple[str, ...]
    run: StageRun

    def __call__(self, batches: Batches) -> Batches:
        return self.run.batches(
            self._at(n for batch in batches for n in batch.column(0).to_pylist())
        )

    def texts(self, numbers: Iterable[int]) -> Iterator[str]:
        return self.run(self._at(numbers))

    def _at(self, numbers: Iterable[int]) -> list[str]:
        return [self.items[number] for number in numbers]


class Tasks(Protocol):
    """Runs the tasks of a stage; all calls may come from any thread."""

    def collected(
        self, run: StageRun, items: Sequence[str], *, has_index: bool = False
    ) -> list[str]:
        """The texts of one task an item, in the order of `items`.

        With `has_index` each item prefers the same node each time. Raises PySparkException if a
        task fails repeatedly, or the call is cancelled; `fault_in` finds the cause in its text.
        """

    def cancel(self) -> None:
        """Let the calls that run now fail; later ones run."""


class SparkTasks:
    """Runs each stage as a Spark job, which `SparkContext.cancelJobGroup` cancels."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def collected(
        self, run: StageRun, items: Sequence[str], *, has_index: bool = False
    ) -> list[str]:
        nodes = nodes_for(self._spark) if has_index else ()
        numbered = _Numbered(tuple(items), run)
        return collected(self._spark.sparkContext, len(items), nodes, numbered.texts)

    def cancel(self) -> None:
        """Does nothing: the loop cancels the job group of its thread."""


@dataclass(frozen=True, slots=True)
class Work:
    """The items of one stage, a task each.

    `read` makes the stage's input from a task's items; None if the stage takes items. With
    `has_index` each task prefers the same node each time, which has its index.
    """

    spark: SparkSession
    items: Sequence[str]
    read: Stage | None = None
    has_index: bool = False
    tasks: Tasks | None = None  # None runs them as Spark jobs

    def map(self, stage: Stage, schema: str | StructType) -> DataFrame:
        count = len(self.items)
        tasks = self.spark.range(0, count, 1, count)
        run = StageRun(self.read, stage)
        return tasks.mapInArrow(_Numbered(tuple(self.items), run), schema)

    def report(self, stage: Stage) -> BatchReport:
        return merge_reports(self.texts(stage))

    def texts(self, stage: Stage) -> list[str]:
        """Run `stage`, whose rows are texts (`REPORT_SCHEMA`), and return them in task order.

        Items bypass Spark SQL, whose plan costs more than the tasks of a small batch.
        """
        tasks = SparkTasks(self.spark) if self.tasks is None else self.tasks
        return tasks.collected(StageRun(self.read, stage), self.items, has_index=self.has_index)


def spread(start: Mapping[int, int], end: Mapping[int, int], limit: int) -> dict[int, int]:
    """End offsets of a batch of about `limit` records: each partition gets its share.

    So all partitions reach their ends together, and none holds the watermark back for long. A
    partition with records gets at least one.
    """
    there = {p: max(0, offset - start.get(p, 0)) for p, offset in end.items()}
    total = sum(there.values())
    if total <= limit:
        return dict(end)
    shares = {p: max(1, count * limit // total) if count else 0 for p, count in there.items()}
    return {p: start.get(p, 0) + min(shares[p], there[p]) for p in end}


def split(ranges: Ranges, tasks: int, *, whole: bool = False) -> list[dict[int, tuple[int, int]]]:
    """`ranges` in at most `tasks` non-empty parts with about equally many records.

    The parts keep each partition's records in offset order; `whole` never divides a partition.
    """
    total = sum(end - first for first, end in ranges.values())
    parts = max(1, min(tasks, -(-total // RECORDS_WORTH_A_TASK)))
    size = -(-total // parts)
    answer: list[dict[int, tuple[int, int]]] = [{}]
    room = size
    for partition, (first, end) in sorted(ranges.items()):
        while first < end:
            upto = end if whole else min(end, first + room)
            answer[-1][partition] = (first, upto)
            room -= upto - first
            first = upto
            if room <= 0:
                answer.append({})
                room = size
    return [part for part in answer if part]
