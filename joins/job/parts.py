"""The parts of a job, as the wiring builds them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from joins.adapters.delta.features import WriterChoice
from joins.adapters.delta.log import DeltaLog
from joins.adapters.files.stream_rows import StreamFiles
from joins.batch.batch_plan import EventParts, ProbeSteps
from joins.batch.batches import ProbeHooks, ProbeSettings
from joins.batch.event_batch import EventBatches, EventTables
from joins.batch.event_state import EventSpec, EventView
from joins.batch.inserts import Inserts, ProbeInsert
from joins.dimension.dimension import DimensionRuntime
from joins.dimension.fold import FoldPolicy
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.failpoints import Failpoints
from joins.durable.requests import Stalls, TurnHandler
from joins.job.opening import Opening
from joins.plan.plan import JoinPlan, KafkaOptions
from joins.source.coordinator import SourceCoordinator
from joins.worker.event_task import EventTask
from joins.worker.resident_pool import ResidentPool
from joins.worker.topic_reader import TopicReader


@dataclass(frozen=True, slots=True)
class EventJob:
    """The parts of a job with event batches."""

    spec: EventSpec
    task: EventTask
    tables: EventTables


class EventSide:
    """The stream's side of a job with event batches, over all of its loops."""

    def __init__(
        self, job: EventJob, dimensions: Sequence[DimensionRuntime], insert: ProbeInsert
    ) -> None:
        self._job = job
        self._insert = insert
        self._versioned = {
            each.dimension.name: each
            for each in dimensions
            if each.dimension.name in job.spec.versioned
        }
        # status of event time; None before the first look. Any thread may read it.
        self.view: EventView | None = None

    @property
    def is_drained(self) -> bool:
        return self.view is not None and self.view.is_drained

    def steps(
        self, spark: SparkSession, reader: TopicReader, settings: ProbeSettings, hooks: ProbeHooks
    ) -> ProbeSteps:
        job = self._job
        batches = EventBatches(
            spark=spark,
            spec=job.spec,
            task=job.task.reading(settings.topics),
            reader=reader,
            tables=job.tables,
            writer=self._insert.writer,
            hooks=hooks,
        )
        parts = EventParts(
            spec=job.spec,
            tables=job.tables,
            heard=self._heard,
            seen=self._seen,
            trim=self._trim,
        )
        return ProbeSteps(batches, settings, hooks, parts)

    def _heard(self, versions: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        return {
            name: {
                str(partition): list(watermark)
                for partition, watermark in sorted(watermarks.items())
            }
            for name, watermarks in (
                (name, runtime.event_watermarks(versions[name]))
                for name, runtime in self._versioned.items()
            )
        }

    def _seen(self, view: EventView) -> None:
        self.view = view

    def _trim(self, watermark_ms: int) -> None:
        for runtime in self._versioned.values():
            runtime.keeper.trim_to(watermark_ms)


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Pace and limits of one job."""

    build_trigger_ms: int = 100
    probe_trigger_ms: int = 10
    max_records_per_batch: int = 500_000
    max_bytes_per_batch: int = 256 << 20
    fold_interval_s: float = 30.0
    fold: FoldPolicy = field(default_factory=FoldPolicy)
    # number of newest batches that can be replayed; their pins are kept
    replay_batches: int = 10_000
    replay_state_bytes: int = 4 << 30  # per state table, space for files that only replays read
    # least time between two rounds of compaction and clean-up
    maintenance_interval_s: float = 300.0
    current_retention_hours: float = 168.0  # how long files that `current` no longer needs are kept


@dataclass(frozen=True, slots=True)
class JobParts:
    """The parts of one job."""

    job_id: str
    plan: JoinPlan
    meta: JobMeta
    checkpoint: Checkpoint
    spark: SparkSession
    changelog_kafka: KafkaOptions
    probe_kafka: KafkaOptions
    dimensions: tuple[DimensionRuntime, ...]
    inserts: Inserts  # event batches have only one
    sources: tuple[SourceCoordinator, ...]
    outputs: tuple[DeltaLog, ...]
    dead_letters: DeltaLog
    opening: Opening
    stalls: Stalls
    failpoints: Failpoints
    settings: JobSettings
    requests: Path  # directory of the control plane's requests
    # kind of request → handler; it receives the turn of the batches, which it takes to commit.
    # `TemporalJoin` handles acknowledgements itself.
    handlers: Mapping[str, TurnHandler] = field(default_factory=dict)
    # of a stream that is a captured table; None for others
    table_stream: SourceCoordinator | None = None
    # keeps a datagen process alive; None when the probe is a topic of the user's
    generator: Callable[[], None] | None = None
    # current writer of the delta outputs, Spark's if one needs it; None for other sinks
    writer_choice: Callable[[], WriterChoice | None] = lambda: None
    residents: ResidentPool | None = None  # None runs all stages as Spark jobs
    event: EventJob | None = None  # None for a job that joins records as they come
    stream_files: StreamFiles | None = None  # of the stream's history
    # True once the job has a newer plan than `plan`
    has_newer_plan: Callable[[], bool] = lambda: False

    @property
    def all_sources(self) -> tuple[SourceCoordinator, ...]:
        return self.sources if self.table_stream is None else (*self.sources, self.table_stream)
