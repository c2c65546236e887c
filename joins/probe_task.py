"""The worker's half of a probe micro-batch: attach the pinned index, join, stage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from joins.broadcast import RowsCopy
from joins.failpoints import Failpoints
from joins.kernels.exchange import Gathered, ShuffledRole, ask, gather
from joins.kernels.files import ParquetStage
from joins.kernels.index import DimensionIndex, IndexSpec
from joins.kernels.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe import (
    BatchContext,
    JoinedBatch,
    ProbeKernelSpec,
    join_batch,
    lookup_keys,
)
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
class CopiedRole:
    """A role whose dimension is broadcast."""

    spec: IndexSpec
    copy: RowsCopy


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """What a worker needs to join a part of a micro-batch; picklable.

    Attributes:
        indexes: role's alias → place, of the roles that are looked up in an index.
        dead_letters: root of the dead-letter table.
        copied: role's alias → rows, of the roles whose dimension is broadcast; of each batch.
        shuffled: the roles whose rows come with the records, which then come in packets.
    """

    topic: str
    kernel: ProbeKernelSpec
    indexes: Mapping[str, IndexPlace]
    dead_letters: Path
    epoch: int
    failpoints: Failpoints = field(default_factory=Failpoints)
    copied: Mapping[str, CopiedRole] = field(default_factory=dict)
    shuffled: tuple[ShuffledRole, ...] = ()

    def attach(self, versions: Mapping[str, int]) -> dict[str, DimensionIndex]:
        """Map the pinned versions into this process; milliseconds, cached."""
        attached = {
            alias: DimensionIndex.attach(place.directory, versions[place.dimension], place.spec)
            for alias, place in self.indexes.items()
        }
        copied = {alias: role.copy.index(role.spec) for alias, role in self.copied.items()}
        return attached | copied


def joined(batches: Iterator[pa.RecordBatch], task: ProbeTask, pin: Pin) -> Iterator[JoinedBatch]:
    """Join the Kafka rows of one task, or their packets, under `pin`."""
    indexes = task.attach(pin.versions)
    context = _context(pin)
    task.failpoints.hit("C5", pin.batch)
    if not task.shuffled:
        for records in batches:
            yield join_batch(task.kernel, records, indexes, context)
        return
    for part in gather(batches, task.shuffled):
        yield join_batch(task.kernel, part.records, {**indexes, **part.indexes}, context)


def asked(
    batches: Iterator[pa.RecordBatch], *, task: ProbeTask, pin: Pin, role: ShuffledRole
) -> Iterator[pa.RecordBatch]:
    """The keys that the packets of one task ask for in `role`, a later one than those of `task`."""
    indexes = task.attach(pin.versions)

    def keys_of(part: Gathered) -> list[pa.Array]:
        found = {**indexes, **part.indexes}
        return lookup_keys(task.kernel, part.records, found, _context(pin), role.alias)

    return ask(gather(batches, task.shuffled), role, keys_of)


def _context(pin: Pin) -> BatchContext:
    return BatchContext(
        proctime_ms=pin.batch_timestamp_ms,
        batch_id=pin.batch,
        versions=tuple(sorted(pin.versions.items())),
    )


class TaskCounts:
    """Sums what the joined batches of a task count."""

    def __init__(self) -> None:
        self.values = {"joined": 0, "matched": 0, "unmatched": 0, "dead_letters": 0}

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
        for batch in joined(batches, task, pin):
            rows.write(batch.rows)
            dead.write(batch.dead_letters)
            counts.add(batch)
        staged = {OUTPUT: rows.finish(), DEAD_LETTERS: dead.finish()}
    files = {name: file for name, file in staged.items() if file is not None}
    yield TaskReport(files=files, counts=counts.values).to_batch()
