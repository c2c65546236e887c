"""The work of a batch's tasks: a row and a task for each item, and how tasks get its records."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from joins.adapters.kafka.records import Ranges
from joins.worker.placement import nodes_for
from joins.worker.staging import REPORT_DDL, BatchReport, merge_reports, telling_cause
from joins.worker.tasks import collected

RECORDS_WORTH_A_TASK = 5_000
"""A task costs 20 ms of a core before its first record."""

Batches = Iterator[pa.RecordBatch]
Stage = Callable[[Batches], Batches]
"""What a task does with its part of a batch."""
_ITEM = "item"


@dataclass(frozen=True, slots=True)
class _Telling:
    """A stage whose errors reach the driver as what they mean; picklable."""

    stage: Stage

    def __call__(self, batches: Batches) -> Batches:
        with telling_cause():
            yield from self.stage(batches)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A stage over what `read` makes of a task's items; picklable."""

    items: tuple[str, ...]
    read: Stage | None
    stage: Stage

    def __call__(self, batches: Batches) -> Batches:
        return self._run(n for batch in batches for n in batch.column(0).to_pylist())

    def texts(self, numbers: Iterable[int]) -> Iterator[str]:
        for batch in self._run(numbers):
            yield from batch.column(0).to_pylist()

    def _run(self, numbers: Iterable[int]) -> Batches:
        items = [self.items[number] for number in numbers]
        mine = iter([pa.record_batch([pa.array(items, pa.string())], names=[_ITEM])])
        return _Telling(self.stage)(mine if self.read is None else self.read(mine))


@dataclass(frozen=True, slots=True)
class Work:
    """What the tasks of one stage are given: rows of other tasks, or items.

    Attributes:
        frame: the rows.
        items: texts; a task each.
        read: makes the stage's input of a task's items, None where it takes them as they are.
        has_index: tasks need an index on their node, so that each prefers the same one each time.
    """

    frame: DataFrame | None
    items: tuple[str, ...] = ()
    read: Stage | None = None
    session: SparkSession | None = None
    has_index: bool = False

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        items: Sequence[str],
        read: Stage | None = None,
        *,
        has_index: bool = False,
    ) -> "Work":
        return cls(None, tuple(items), read, spark, has_index)

    @property
    def spark(self) -> SparkSession:
        spark = self.session if self.frame is None else self.frame.sparkSession
        assert spark is not None, "work has rows or a session"
        return spark

    def map(self, stage: Stage, schema: str | StructType) -> DataFrame:
        """The rows of `schema` that the tasks make by `stage`."""
        if self.frame is not None:
            return self.frame.mapInArrow(_Telling(stage), schema)
        count = len(self.items)
        tasks = self.spark.range(0, count, 1, count)
        return tasks.mapInArrow(_Reading(self.items, self.read, stage), schema)

    def report(self, stage: Stage) -> BatchReport:
        return merge_reports(self.texts(stage))

    def texts(self, stage: Stage) -> list[str]:
        """Run `stage`, whose rows are texts (`REPORT_SCHEMA`); all of them, in the tasks' order.

        Items go without a plan of Spark SQL, which costs more than the tasks of a small batch.
        """
        if self.frame is not None:
            rows = self.frame.mapInArrow(_Telling(stage), REPORT_DDL).collect()
            return [row.report for row in rows]
        reading = _Reading(self.items, self.read, stage)
        nodes = nodes_for(self.spark) if self.has_index else ()
        context = self.spark.sparkContext
        return collected(context, len(self.items), nodes, reading.texts)


def spread(start: Mapping[int, int], end: Mapping[int, int], limit: int) -> dict[int, int]:
    """Where a batch of about `limit` records ends: each partition has its share of what there is.

    So all partitions are read up to their ends together, and none holds the watermark back for
    long. A partition with records has at least one.
    """
    there = {p: max(0, offset - start.get(p, 0)) for p, offset in end.items()}
    total = sum(there.values())
    if total <= limit:
        return dict(end)
    shares = {p: max(1, count * limit // total) if count else 0 for p, count in there.items()}
    return {p: start.get(p, 0) + min(shares[p], there[p]) for p in end}


def split(ranges: Ranges, tasks: int, *, whole: bool = False) -> list[dict[int, tuple[int, int]]]:
    """`ranges` in at most so many parts of about the same number of records, none empty.

    The parts follow each other: each partition's records are in the order of its offsets.

    Args:
        ranges: of a batch.
        tasks: that can run at the same time.
        whole: a partition is not divided.
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
