"""Types that the probe's loop and both kinds of batches share."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import SparkSession

from joins.adapters.delta.log import DeltaLog
from joins.batch.event_state import EventState
from joins.batch.staleness import StalenessGate
from joins.durable.pins import Pin, PinStore, pin_json
from joins.durable.probe_lives import Life
from joins.kernels.probe.files import StagedFile
from joins.loop import LoopGuards
from joins.plan.causes import fault_in
from joins.plan.errors import (
    IndexDirectoryError,
    RecordsExpiredError,
    SinkError,
    SourceError,
)
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics, index_of
from joins.stream.guards import records_expired
from joins.worker.topic_reader import TopicReader, range_item
from joins.worker.work import Tasks, Work, parallelism, split
from watermark.freshness import Proof


def check_fence(pins: PinStore, log: DeltaLog, epoch: int) -> None:
    """Check that no newer runner has taken over, in the pins' store or else in the table `log`.

    Raises:
        FencedError: a newer runner has taken over.
        SourceUnavailableError: a store does not answer.
    """
    stored = pins.stored
    if stored is None:
        log.batches.check_epoch(epoch)
    else:
        stored.check_epoch()


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A batch whose outputs are committed."""

    pin: Pin
    # `joined`, `matched`, `unmatched`, `dead_letters`; sums over all INSERTs or stages
    counts: Mapping[str, int]
    # watermarks and clock after the batch; the default for a job without event time and windows
    state: EventState = field(default_factory=EventState)
    # by stage (`index`, `join`, `commit`); empty for a batch committed before
    stages_ms: Mapping[str, int] = field(default_factory=dict)


class StageClock:
    """Duration of each stage of a batch, from the end of the previous one."""

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

    `start_offsets` is where the partitions begin that existed when the life of the topics began;
    others begin at 0.
    """

    kafka: KafkaOptions
    life: Life
    start_offsets: Mapping[int, int]
    trigger_ms: int = 10

    @property
    def topics(self) -> StreamTopics:
        return self.life.topics


@dataclass(frozen=True, slots=True)
class ProbeHooks:
    """What the probe's loop has from its job: values, stores, and callbacks on its thread."""

    epoch: int
    plan: int  # number of the plan, for the pins
    # False once the job has a newer plan: then only a batch that is pinned runs
    may_pin: Callable[[], bool]
    pins: PinStore
    dead_letters: DeltaLog
    versions: Callable[[], Mapping[str, int]]  # dimension → newest version that can be looked up
    # versions → when the newest change in each was made, None if unknown
    source_times: Callable[[Mapping[str, int]], Mapping[str, int | None]]
    # versions → dimension → what its source proves of the version
    proofs: Callable[[Mapping[str, int]], Mapping[str, Proof]]
    staleness: StalenessGate  # holds records that are too new for a dimension
    limit: Callable[[], int]  # maximum records of the next batch
    # rebuilds lost or damaged indexes of pinned versions
    restore: Callable[[Mapping[str, int]], None]
    on_pin: Callable[[Pin], None]  # a batch begins under this pin
    check: Callable[[], None]  # raises if a topic was created again while a batch read it
    counted: Callable[[], Mapping[str, int]]  # sums over the batches so far, for the pins
    on_finish: Callable[[FinishedBatch], None]  # the output of a batch is committed
    guards: LoopGuards
    tasks: Tasks


class BatchRunner(Protocol):
    """Runs the batches of one job; one at a time."""

    def sweep(self) -> None:
        """Remove staged files that an earlier runner has left."""

    def newest_state(self) -> EventState:
        """State after the newest batch that was not abandoned."""

    def committed(self, pin: Pin) -> FinishedBatch | None:
        """The batch of `pin`, if its output is complete."""

    @property
    def shows_early(self) -> bool:
        """True if rows may be visible before the commits: then the pin is durable before `run`."""

    def run(self, pin: Pin, settle: Callable[[], None]) -> FinishedBatch:
        """Run the batch of `pin` and commit what is not committed yet.

        Calls `settle`, which returns once the pin is durable, before the first commit.

        Raises:
            SluiceError: a part failed; outputs committed before stay, `run` commits the others.
        """


def commit_letters(hooks: ProbeHooks, pin: Pin, letters: Sequence[StagedFile]) -> None:
    """Commit the batch's dead letters; without any, only look at the fence.

    Raises FencedError if a newer runner has taken over.
    """
    if letters:
        hooks.dead_letters.commit(pin.batch, hooks.epoch, letters, pin_json(pin))
    else:
        check_fence(hooks.pins, hooks.dead_letters, hooks.epoch)


def records_work(
    spark: SparkSession,
    tasks: Tasks,
    reader: TopicReader,
    pin: Pin,
    *,
    whole: bool = False,
    reads: Sequence[int] = (),
) -> Work:
    """The records of the batch of `pin`; with `whole`, one task reads a whole partition.

    `reads` restricts them to the topics at these indexes; without records there is still one task.
    """
    ranges = {n: r for n, r in pin.ranges().items() if not reads or index_of(n) in reads}
    parts = split(ranges, parallelism(spark), whole=whole)
    if reads and not parts:
        parts = [{}]
    items = [range_item(part) for part in parts]
    return Work(spark, items, reader, has_index=True, tasks=tasks)


@contextmanager
def worker_errors(
    topics: StreamTopics, pin: Pin, restore: Callable[[Mapping[str, int]], None]
) -> Iterator[None]:
    """Translate a worker's error.

    Before any other error than those below, indexes are restored: damaged files may be the cause.

    Raises:
        IndexDirectoryError: a node cannot write its index.
        RecordsLostError: records of the batch are gone.
        SourceError: they cannot be read.
        SinkError: rows cannot be written.
    """
    try:
        yield
    except Exception as exc:
        known = fault_in(str(exc))
        if isinstance(known, RecordsExpiredError):
            raise records_expired(topics, known) from exc
        if isinstance(known, IndexDirectoryError | SinkError | SourceError):
            raise known from exc
        restore(pin.versions)
        if known is not None:
            raise known from exc
        raise
