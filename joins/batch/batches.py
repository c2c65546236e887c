"""What the probe's loop and the batches of either kind have in common."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import SparkSession

from joins.adapters.delta.log import DeltaLog
from joins.batch.event_state import EventState
from joins.durable.pins import Pin, PinStore
from joins.durable.probe_lives import Life
from joins.loop import LoopGuards
from joins.plan.causes import fault_in
from joins.plan.errors import IndexDirectoryError, RecordsExpiredError, SourceError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics, index_of
from joins.stream.guards import records_expired
from joins.worker.topic_reader import TopicReader, range_item
from joins.worker.work import Work, parallelism, split


def check_fence(pins: PinStore, log: DeltaLog, epoch: int) -> None:
    """See that no newer runner has taken over.

    Args:
        pins: of the job; where they are stored, so are the claims of runners.
        log: of a table that each runner fences at its start.
        epoch: of this runner.

    Raises:
        FencedError: one has.
        SourceUnavailableError: a store does not answer.
    """
    stored = pins.stored
    if stored is None:
        log.batches.check_epoch(epoch)
    else:
        stored.check_epoch()


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A batch whose outputs are committed.

    Attributes:
        counts: `joined`, `matched`, `unmatched`, `dead_letters`; sums over all INSERTs or stages.
        state: of time, for the next batch; of a job without event time or windows always the same.
        stages_ms: stage (`index`, `join`, `commit`) → how long it took; nothing of a batch that was
            committed before.
    """

    pin: Pin
    counts: Mapping[str, int]
    state: EventState = field(default_factory=EventState)
    stages_ms: Mapping[str, int] = field(default_factory=dict)


class StageClock:
    """How long each stage of a batch took, from the end of the one before it."""

    def __init__(self) -> None:
        self._at_s = time.monotonic()
        self.stages_ms: dict[str, int] = {}

    def ends(self, stage: str) -> None:
        now_s = time.monotonic()
        self.stages_ms[stage] = round(1000 * (now_s - self._at_s))
        self._at_s = now_s


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """Settings of the probe's loop.

    Attributes:
        life: says where the stream ends.
        start_offsets: where the life begins, for the partitions that are there.
    """

    kafka: KafkaOptions
    life: Life
    start_offsets: Mapping[int, int]
    trigger_ms: int = 100

    @property
    def topics(self) -> StreamTopics:
        return self.life.topics


@dataclass(frozen=True, slots=True)
class ProbeHooks:
    """What the probe's loop uses, asks and tells, all on its thread.

    Attributes:
        epoch: the runner's.
        versions: dimension → newest version that can be looked up.
        source_times: versions → when the newest change in each was made, None if unknown.
        limit: records of the next batch, at the most.
        restore: make the indexes of pinned versions anew, which are lost or damaged.
        on_pin: a batch begins under this pin.
        check: see, once a batch has read, that the stream still is what it was.
        on_finish: a batch whose output is committed.
    """

    epoch: int
    pins: PinStore
    dead_letters: DeltaLog
    versions: Callable[[], Mapping[str, int]]
    source_times: Callable[[Mapping[str, int]], Mapping[str, int | None]]
    limit: Callable[[], int]
    restore: Callable[[Mapping[str, int]], None]
    on_pin: Callable[[Pin], None]
    check: Callable[[], None]
    on_finish: Callable[[FinishedBatch], None]
    guards: LoopGuards


class BatchRunner(Protocol):
    """Runs the batches of one job; one at a time."""

    def sweep(self) -> None:
        """Remove what an earlier runner has left."""
        ...

    def newest_state(self) -> EventState:
        """What the newest batch has left that was not abandoned."""
        ...

    def committed(self, pin: Pin) -> FinishedBatch | None:
        """The batch of `pin`, if its output is complete."""
        ...

    def run(self, pin: Pin) -> FinishedBatch:
        """Run the batch of `pin`, of which nothing or a part is committed, and commit it.

        Raises:
            SluiceError: a part of it failed; nothing is visible, or the rest is not yet.
        """
        ...


def records_work(
    spark: SparkSession,
    reader: TopicReader,
    pin: Pin,
    *,
    whole: bool = False,
    reads: Sequence[int] = (),
) -> Work:
    """The records of the batch of `pin`; with `whole` each partition's in one task.

    With `reads` only those of the topics at these indexes; one task even if there are none.
    """
    ranges = {n: r for n, r in pin.ranges().items() if not reads or index_of(n) in reads}
    parts = split(ranges, parallelism(spark), whole=whole)
    if reads and not parts:
        parts = [{}]
    return Work.of(spark, [range_item(part) for part in parts], reader, has_index=True)


@contextmanager
def worker_errors(
    topics: StreamTopics, pin: Pin, restore: Callable[[Mapping[str, int]], None]
) -> Iterator[None]:
    """Say what a worker's error means; where nothing is known, the index files may be the reason.

    Raises:
        IndexDirectoryError: a node cannot write its index.
        RecordsLostError: records of the batch are gone.
        SourceError: they cannot be read.
    """
    try:
        yield
    except Exception as exc:
        known = fault_in(str(exc))
        if isinstance(known, RecordsExpiredError):
            raise records_expired(topics, known) from exc
        if isinstance(known, IndexDirectoryError | SourceError):
            raise known from exc
        restore(pin.versions)
        if known is not None:
            raise known from exc
        raise
