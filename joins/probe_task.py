"""The worker's half of a probe micro-batch: attach the pinned index, join, stage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from joins.failpoints import Failpoints
from joins.kernels.files import ParquetStage
from joins.kernels.index import DimensionIndex, IndexSpec
from joins.kernels.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe import BatchContext, JoinedBatch, ProbeKernelSpec, join_batch
from joins.pins import Pin
from joins.staging import TaskReport, current_origin

OUTPUT = "output"
DEAD_LETTERS = "dead_letters"


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """Where the index of one role of a dimension lies on a node."""

    dimension: str
    directory: Path
    spec: IndexSpec


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """What a worker needs to join a part of a micro-batch; picklable.

    Attributes:
        indexes: role's alias → place.
        dead_letters: root of the dead-letter table.
    """

    topic: str
    kernel: ProbeKernelSpec
    indexes: Mapping[str, IndexPlace]
    dead_letters: Path
    epoch: int
    failpoints: Failpoints = field(default_factory=Failpoints)

    def attach(self, versions: Mapping[str, int]) -> dict[str, DimensionIndex]:
        """Map the pinned versions into this process; milliseconds, cached."""
        return {
            alias: DimensionIndex.attach(place.directory, versions[place.dimension], place.spec)
            for alias, place in self.indexes.items()
        }


def joined(batches: Iterator[pa.RecordBatch], task: ProbeTask, pin: Pin) -> Iterator[JoinedBatch]:
    """Join the Kafka rows of one task under `pin`."""
    indexes = task.attach(pin.versions)
    context = BatchContext(
        proctime_ms=pin.batch_timestamp_ms,
        batch_id=pin.batch,
        versions=tuple(sorted(pin.versions.items())),
    )
    task.failpoints.hit("C5", pin.batch)
    for records in batches:
        yield join_batch(task.kernel, records, indexes, context)


class TaskCounts:
    """Sums what the joined batches of a task count."""

    def __init__(self) -> None:
        self.values = {"joined": 0, "matched": 0, "unmatched": 0, "dead_letters": 0}
        self.values |= {"records": 0, "bytes": 0}

    def reading(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """`batches` as they are, their records counted."""
        for batch in batches:
            self.values["records"] += batch.num_rows
            sizes = pc.sum(pc.binary_length(batch.column("value")))
            self.values["bytes"] += sizes.as_py() or 0
            yield batch

    def add(self, batch: JoinedBatch) -> None:
        """Add one batch."""
        self.values["joined"] += batch.rows.num_rows
        self.values["matched"] += batch.matched
        self.values["unmatched"] += batch.unmatched
        self.values["dead_letters"] += batch.dead_letters.num_rows


def stage_delta(
    batches: Iterator[pa.RecordBatch], *, task: ProbeTask, pin: Pin, output: Path
) -> Iterator[pa.RecordBatch]:
    """Join and stage the output and the dead letters as files of their tables; emits one report."""
    origin = current_origin(task.epoch, pin.batch)
    counts = TaskCounts()
    with (
        ParquetStage(output, task.kernel.output_schema, origin) as rows,
        ParquetStage(task.dead_letters, DEAD_LETTER_SCHEMA, origin) as dead,
    ):
        for batch in joined(counts.reading(batches), task, pin):
            rows.write(batch.rows)
            dead.write(batch.dead_letters)
            counts.add(batch)
        staged = {OUTPUT: rows.finish(), DEAD_LETTERS: dead.finish()}
    files = {name: file for name, file in staged.items() if file is not None}
    yield TaskReport(files=files, counts=counts.values).to_batch()
