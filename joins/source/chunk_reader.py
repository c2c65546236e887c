"""Groups of neighbouring chunks; one Spark job reads each group into files of record bodies."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from joins.adapters.kafka.client import compressed
from joins.adapters.mysql.chunks import Chunk, SnapshotTask, snapshot_chunk_records
from joins.adapters.mysql.connection import ServerIdentity
from joins.adapters.mysql.gtids import Takeover
from joins.adapters.mysql.position import BinlogMark
from joins.adapters.mysql.sender import AcknowledgedBoundary
from joins.adapters.mysql.table import CapturedTable
from joins.kernels.changelog.envelope import snapshot_limited
from joins.kernels.probe.files import ParquetStage
from joins.kernels.records.encode import encode_bodies
from joins.kernels.records.layout import BODIES
from joins.kernels.table_path import TablePath
from joins.plan.plan import Compression
from joins.worker.row_files import ROWS, RowFiles
from joins.worker.staging import BatchReport, TaskReport, current_origin, telling_cause
from joins.worker.work import Work
from watermark.transitions import illegal_step, next_state


class SourcePhase(StrEnum):
    """How far the copy of a captured table is.

    Attributes:
        NEW: nothing is read.
        COPYING: LOW is taken, and chunks are read.
        COPIED: every chunk is acknowledged.
        FOLLOWING: HIGH is taken; changes are followed.
        ABANDONED: the table must be copied again.
    """

    NEW = "new"
    COPYING = "copying"
    COPIED = "copied"
    FOLLOWING = "following"
    ABANDONED = "abandoned"


class SourceStep(StrEnum):
    """What one durable write of a source makes true.

    Attributes:
        BEGIN: takes LOW, in a new generation.
        CHUNKS: says that a group of chunks is acknowledged.
        LAST_CHUNK: says that the last group is acknowledged.
        HIGH: takes HIGH.
        TAKE_OVER: goes on at another server, with HIGH of that one.
        ABANDON: says why the table must be copied again. The copy may end its step meanwhile.
    """

    BEGIN = "begin"
    CHUNKS = "chunks"
    LAST_CHUNK = "last-chunk"
    HIGH = "high"
    TAKE_OVER = "take-over"
    ABANDON = "abandon"


SOURCE_STEPS: Mapping[tuple[SourcePhase, SourceStep], SourcePhase] = {
    **{(phase, SourceStep.BEGIN): SourcePhase.COPYING for phase in SourcePhase},
    (SourcePhase.COPYING, SourceStep.CHUNKS): SourcePhase.COPYING,
    (SourcePhase.COPYING, SourceStep.LAST_CHUNK): SourcePhase.COPIED,
    (SourcePhase.COPIED, SourceStep.HIGH): SourcePhase.FOLLOWING,
    (SourcePhase.FOLLOWING, SourceStep.TAKE_OVER): SourcePhase.FOLLOWING,
    **{
        (phase, SourceStep.ABANDON): SourcePhase.ABANDONED
        for phase in SourcePhase
        if phase is not SourcePhase.NEW
    },
    **{
        (SourcePhase.ABANDONED, step): SourcePhase.ABANDONED
        for step in (SourceStep.CHUNKS, SourceStep.LAST_CHUNK, SourceStep.HIGH)
    },
}


@dataclass(frozen=True, slots=True)
class SourceState:
    """Durable state of a `mysql-cdc` source; each step is one write of its file."""

    epoch: int
    generation: int
    low: BinlogMark
    server: ServerIdentity  # the server that LOW was taken from
    table: CapturedTable  # its definition at LOW
    rows_estimate: int
    # upper bound of the last acknowledged chunk, None before the first
    after: tuple[str, ...] | None = None
    chunks_done: int = 0
    chunks_complete: bool = False
    high: BinlogMark | None = None  # None until every chunk is read
    needed: str | None = None  # why the table must be copied again, None while it can be followed
    # how another server is gone on with, None while the server of the copy answers
    takeover: Takeover | None = None

    @property
    def phase(self) -> SourcePhase:
        if self.needed is not None:
            return SourcePhase.ABANDONED
        if self.high is not None:
            return SourcePhase.FOLLOWING
        return SourcePhase.COPIED if self.chunks_complete else SourcePhase.COPYING

    def is_complete_at(self, boundary: AcknowledgedBoundary | None) -> bool:
        """True if everything that this copy saw is before its acknowledged `boundary`."""
        if boundary is None or self.high is None:
            return False
        return self.takeover is not None or boundary.position >= self.high.position

    def advanced(self, step: SourceStep, **changes: Any) -> "SourceState":  # noqa: ANN401
        """The state after `step`, which `changes` must fit; InvalidTransitionError if not."""
        phase = next_state("copy of a table", SOURCE_STEPS, self.phase, step)
        made = replace(self, **changes)
        if made.phase is not phase:
            raise illegal_step("copy of a table", f'step "{step}" leads to "{made.phase}"')
        return made


COMPRESSION = Compression.LZ4
"""Of the bodies: what the records of a copy have in common is most of their size."""

MOST_BODY_BYTES = 1 << 20
"""Before compression. The whole copy is available at once, so nothing waits for a body."""

DEAD_ROWS = "dead_rows"
"""Member of a task's report: key and bytes of each row that is too large."""

_GROUP_BYTES = 64 << 20
_GROUP_CHUNKS = 1_000  # the server is asked for the bounds of each chunk
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class ChunkStage:
    """Turns chunks into a file of bodies, on a worker; picklable. The report lists large rows."""

    task: SnapshotTask
    body_bytes: int
    place: TablePath
    value_bytes: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage the chunks, which come as `Chunk.as_text`; emits one report."""
        origin = current_origin(self.task.generation, 0)
        dead: list[tuple[str, int]] = []
        with (
            telling_cause(),
            ParquetStage(self.place, BODIES, origin, kept=False) as stage,
        ):
            for batch in batches:
                for text in batch.column(0).to_pylist():
                    for records in snapshot_chunk_records(self.task, Chunk.from_text(text)):
                        limited = snapshot_limited(records, self.value_bytes)
                        dead += [(key.decode(), size) for key, size in limited.dead]
                        stage.write(self._bodies(limited.records))
            file = stage.finish()
        files = {} if file is None else {ROWS: file}
        yield TaskReport(files=files, detail={DEAD_ROWS: dead}).to_batch()

    def _bodies(self, records: pa.RecordBatch) -> pa.RecordBatch:
        keys, values, partitions = records.columns
        bodies = encode_bodies(keys, values, {}, partitions.to_numpy(), self.body_bytes)
        return compressed(bodies, COMPRESSION)


@dataclass(frozen=True, slots=True)
class GroupSize:
    """The size of a Spark job: tasks with a connection each, rows of a chunk and of a group."""

    tasks: int
    chunk_rows: int
    rows: int

    def first(self) -> int:
        return self.tasks

    def following(self, chunks: int, size_bytes: int) -> int:
        """Chunks of the next group, after a group of `chunks` chunks had `size_bytes`."""
        most = min(self.rows // self.chunk_rows, _GROUP_BYTES * chunks // max(1, size_bytes))
        return max(self.tasks, min(most, _GROUP_CHUNKS) // self.tasks * self.tasks)


class ChunkReader:
    """Reads groups of chunks in order; a task reads its neighbouring chunks with one statement."""

    def __init__(self, spark: SparkSession, stage: ChunkStage, size: GroupSize) -> None:
        self._spark = spark
        self._stage = stage
        self._size = size

    def groups(self, bounds: Iterator[Chunk]) -> Iterator[tuple[Sequence[Chunk], BatchReport]]:
        """Each group of chunks with the report that names its files.

        SourceError if the server returns no bounds, PySparkException or Py4JError if a job fails.
        """
        count = self._size.first()
        while chunks := list(islice(bounds, count)):
            report = Work(self._spark, self._items(chunks)).report(self._stage)
            yield chunks, report
            size_bytes = sum(file.size_bytes for file in RowFiles.staged(report))
            count = self._size.following(len(chunks), size_bytes)

    def _items(self, chunks: Sequence[Chunk]) -> list[str]:
        each = -(-len(chunks) // self._size.tasks)
        parts = [chunks[at : at + each] for at in range(0, len(chunks), each)]
        return [Chunk(part[0].after, part[-1].through).as_text() for part in parts]


def in_background(work: Callable[[], _Answer], name: str) -> "Future[_Answer]":
    """Run `work` on a thread that does not keep the process alive."""
    future: Future[_Answer] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as exc:  # the thread that waits for the future raises it again
            future.set_exception(exc)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
