"""What a job is made of, as the wiring has put it together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from joins.adapters.delta.features import WriterChoice
from joins.adapters.delta.log import DeltaLog
from joins.batch.inserts import Inserts
from joins.dimension.dimension import DimensionRuntime
from joins.dimension.fold_schedule import FoldPolicy
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.failpoints import Failpoints
from joins.durable.requests import TurnHandler
from joins.durable.stalls import Stalls
from joins.job.event_job import EventJob
from joins.job.opening import Opening
from joins.plan.plan import JoinPlan, KafkaOptions
from joins.source.coordinator import SourceCoordinator


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Pace and limits of one job.

    Attributes:
        replay_batches: how many of the newest batches can be replayed; their pins are kept.
        replay_state_bytes: room in each table of the state for what only replays read.
        maintenance_interval_s: least time between two rounds of compaction and clean-up.
        fold: which changes are worth a fold.
        current_retention_hours: how long files that `current` no longer needs are kept.
    """

    build_trigger_ms: int = 100
    probe_trigger_ms: int = 100
    max_records_per_batch: int = 500_000
    max_bytes_per_batch: int = 256 << 20
    fold_interval_s: float = 30.0
    fold: FoldPolicy = field(default_factory=FoldPolicy)
    replay_batches: int = 10_000
    replay_state_bytes: int = 4 << 30
    maintenance_interval_s: float = 300.0
    current_retention_hours: float = 168.0


@dataclass(frozen=True, slots=True)
class JobParts:
    """What the wiring has put together for one job.

    Attributes:
        inserts: what batches need for each INSERT; event batches have one only.
        changelog_kafka: the cluster of the changelog topics.
        probe_kafka: the cluster and topic of the probe.
        requests: where the control plane's requests lie.
        handlers: kind → what carries out a request, and is given the turn of batches, which it
            takes to commit; acknowledgements are our own.
        generator: keeps a datagen process alive; None when the probe is a topic of the user's.
        writer_choice: who appends to the delta outputs now, a slower one first; None for other
            sinks.
        event: of a job with event time or windows; None for one that joins records as they come.
    """

    job_id: str
    plan: JoinPlan
    meta: JobMeta
    checkpoint: Checkpoint
    spark: SparkSession
    changelog_kafka: KafkaOptions
    probe_kafka: KafkaOptions
    dimensions: tuple[DimensionRuntime, ...]
    inserts: Inserts
    sources: tuple[SourceCoordinator, ...]
    outputs: tuple[DeltaLog, ...]
    dead_letters: DeltaLog
    opening: Opening
    stalls: Stalls
    failpoints: Failpoints
    settings: JobSettings
    requests: Path
    handlers: Mapping[str, TurnHandler] = field(default_factory=dict)
    generator: Callable[[], None] | None = None
    writer_choice: Callable[[], WriterChoice | None] = lambda: None
    event: EventJob | None = None
