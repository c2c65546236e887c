"""One job: it owns both sides, the opening between them and the faults of each part.

LOAD: sources copy, build queries append, the valve waits; the probe consumes nothing. When the
    valve says that
every channel is in processing time, the index of the committed versions is built, the opening is
made durable and the probe query starts from the held offsets. JOIN: both sides go on until the job
is stopped.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import structlog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joins.adapters.delta_log import DeltaLog
from joins.adapters.kafka_cluster import KafkaCluster
from joins.build_side import BuildSettings
from joins.checkpoint import Checkpoint, JobMeta
from joins.dimension import DimensionRuntime
from joins.errors import (
    CheckpointError,
    FencedError,
    JoinError,
    SourceUnavailableError,
)
from joins.failpoints import Failpoints
from joins.opening import Opening, channel_name
from joins.pins import PinStore
from joins.plan import JoinPlan, KafkaOptions
from joins.ports import BatchWriter
from joins.probe_progress import ProbeProgress
from joins.probe_side import ProbeHooks, ProbeSettings, ProbeSide
from joins.probe_task import ProbeTask
from joins.queries import Queries
from joins.snapshot import SnapshotCoordinator
from joins.staging import BatchTurns, QueryGuards
from joins.stalls import Stalls
from watermark.errors import SluiceError
from watermark.model import Watermark

_log = structlog.get_logger(__name__)
_PROBE = "probe"
_TICK_S = 0.25
_TRIM_EVERY_S = 20.0
_STOP_BATCH_S = 20.0


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Pace and limits of one job."""

    build_trigger_ms: int = 200
    probe_trigger_ms: int = 100
    max_records_per_batch: int = 500_000
    fold_interval_s: float = 30.0


@dataclass(frozen=True, slots=True)
class JobParts:
    """What the wiring has put together for one job.

    Attributes:
        changelog_kafka: the cluster of the changelog topics.
        probe_kafka: the cluster and topic of the probe.
        generator: keeps a datagen process alive; None when the probe is a topic of the user's.
    """

    job_id: str
    plan: JoinPlan
    meta: JobMeta
    checkpoint: Checkpoint
    spark: SparkSession
    changelog_kafka: KafkaOptions
    probe_kafka: KafkaOptions
    dimensions: tuple[DimensionRuntime, ...]
    sources: tuple[SnapshotCoordinator, ...]
    probe_task: ProbeTask
    writer: BatchWriter
    outputs: tuple[DeltaLog, ...]
    dead_letters: DeltaLog
    opening: Opening
    stalls: Stalls
    failpoints: Failpoints
    settings: JobSettings
    generator: Callable[[], None] | None = None


class TemporalJoin:
    """Runs the parts of one job until it is stopped or fails for good."""

    def __init__(self, parts: JobParts, on_tick: Callable[["TemporalJoin"], None]) -> None:
        self.parts = parts
        self._on_tick = on_tick
        self._stopping = threading.Event()
        self._open_requested = threading.Event()
        self._queries = Queries(parts.stalls, self._start_query)
        self._turns = BatchTurns()
        self._pins = PinStore(parts.checkpoint.pins_directory)
        self._maintenance = threading.Thread(target=self._maintain, name="maintenance", daemon=True)
        self._changelog_cluster = KafkaCluster(parts.changelog_kafka, keep_open=True)
        self.progress = ProbeProgress(parts.checkpoint, parts.meta, parts.probe_kafka)
        self._topic_is_lost = False

    def request_open(self) -> None:
        """The valve opened; the main loop does the rest."""
        self._open_requested.set()

    def request_stop(self) -> None:
        """End `run` soon; callable from a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Work until `request_stop`; returns after the queries have ended.

        Raises:
            FencedError: a newer runner has taken over.
            CheckpointError: the job's durable files cannot be used.
        """
        try:
            for output in self.parts.outputs:
                output.commit_epoch(self.parts.meta.epoch)
            for dimension in self.parts.dimensions:
                dimension.open()
                self._queries.start(f"build {dimension.dimension.name}")
            for source in self.parts.sources:
                source.start()
            for dimension in self.parts.dimensions:
                dimension.replay_watermarks()
            self._maintenance.start()
            while not self._stopping.wait(_TICK_S):
                self._tick()
        finally:
            self._stopping.set()
            self._shut_down()

    def _tick(self) -> None:
        if self.parts.generator is not None:
            self.parts.generator()
        self._look_at_offsets()
        if self._topic_is_lost:
            self._queries.pause(_PROBE)
            self._queries.watch(paused=(_PROBE,))
        else:
            self._queries.watch()
            self._advance()
        self._on_tick(self)

    def _advance(self) -> None:
        """Open when the valve has, and start the probe; what fails is tried at the next tick."""
        try:
            if self._open_requested.is_set() and not self.parts.opening.is_open:
                self._open()
            if self.parts.opening.is_open and _PROBE not in self._queries:
                self._queries.start(_PROBE)
            self.parts.stalls.clear("opening")
        except (FencedError, CheckpointError):
            raise
        except SluiceError as exc:
            self.parts.stalls.note("opening", exc)
        except OSError as exc:
            error = JoinError(
                f"opening failed: {exc}", hint="Make room, or repair the job's directory."
            )
            self.parts.stalls.note("opening", error)

    def _open(self) -> None:
        """LOAD → JOIN: first the index, so that a batch finds it; then the phase, durable."""
        versions = {d.dimension.name: d.serve_index() for d in self.parts.dimensions}
        held = self.progress.held().held_records
        self.parts.opening.settle(
            versions=versions, held_records=held, at_ms=time.time_ns() // 1_000_000
        )
        _log.info("gate opened", versions=versions, held_records=held)

    # Queries
    # -----------------------------------------------------------------------------------------

    def _start_query(self, name: str) -> StreamingQuery:
        pool = "probe" if name == _PROBE else "build"
        self.parts.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        return self._start_probe() if name == _PROBE else self._start_build(name)

    def _guards(self, query: str) -> QueryGuards:
        return QueryGuards(
            failpoints=self.parts.failpoints,
            turns=self._turns,
            on_error=partial(self._queries.note_error, query),
        )

    def _start_build(self, query: str) -> StreamingQuery:
        dimension = query.removeprefix("build ")
        runtime = next(d for d in self.parts.dimensions if d.dimension.name == dimension)
        settings = BuildSettings(
            kafka=self.parts.changelog_kafka,
            checkpoint=self.parts.checkpoint.spark_directory(f"build-{dimension}"),
            trigger_ms=self.parts.settings.build_trigger_ms,
        )
        return runtime.start_build(self.parts.spark, settings, self._guards(query))

    def _start_probe(self) -> StreamingQuery:
        for dimension in self.parts.dimensions:
            dimension.serve_index()
        source = self.parts.plan.probe.source
        limit = getattr(source, "max_records_per_batch", None)
        settings = ProbeSettings(
            kafka=self.parts.probe_kafka,
            checkpoint=self.parts.checkpoint.spark_directory("probe"),
            start_offsets=self.progress.start_offsets(),
            trigger_ms=self.parts.settings.probe_trigger_ms,
            max_records_per_batch=limit or self.parts.settings.max_records_per_batch,
        )
        hooks = ProbeHooks(
            pins=self._pins,
            dead_letters=self.parts.dead_letters,
            versions=self._ready_versions,
            restore=self._restore_indexes,
            on_finish=self.progress.record,
            guards=self._guards(_PROBE),
        )
        side = ProbeSide(
            self.parts.spark, self.parts.probe_task, settings, self.parts.writer, hooks
        )
        return side.start()

    def _ready_versions(self) -> Mapping[str, int]:
        return {d.dimension.name: d.ready_version() for d in self.parts.dimensions}

    def _restore_indexes(self, versions: Mapping[str, int]) -> None:
        for dimension in self.parts.dimensions:
            dimension.keeper.restore(versions[dimension.dimension.name])

    def _look_at_offsets(self) -> None:
        if not self.progress.is_due():
            return
        try:
            self.progress.look(holding=not self.parts.opening.is_open)
            for dimension in self.parts.dimensions:
                ends = self._changelog_cluster.end_offsets(dimension.places.topic)
                dimension.end_offsets = ends
            self.parts.stalls.clear("kafka")
            self._topic_is_lost = False
        except SluiceError as exc:
            self.parts.stalls.note("kafka", exc)
            self._topic_is_lost |= not isinstance(exc, SourceUnavailableError)

    # Background
    # --------------------------------------------------------------------------------------

    def _maintain(self) -> None:
        """Fold and trim, at a lower priority than both sides."""
        self.parts.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "fold")
        trimmed_at = time.monotonic()
        while not self._stopping.wait(self.parts.settings.fold_interval_s):
            for dimension in self.parts.dimensions:
                part = f"fold {dimension.dimension.name}"
                self._attempt(part, partial(dimension.fold, self.parts.spark))
            if time.monotonic() - trimmed_at >= _TRIM_EVERY_S:
                self._attempt("trim", self._trim)
                self._attempt("prune", self._prune)
                trimmed_at = time.monotonic()

    def _attempt(self, part: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as exc:  # whatever it is: without this thread nobody folds and trims
            if not self._stopping.is_set():
                _log.warning("background work failed; it is tried again", part=part, error=str(exc))

    def _prune(self) -> None:
        """Index versions and pins that no batch needs any more."""
        done, pin = self.progress.counts.batch, self._pins.newest()
        needed = {} if pin is None or (done is not None and done >= pin.batch) else pin.versions
        for dimension in self.parts.dimensions:
            dimension.keeper.prune(needed.get(dimension.dimension.name))
        self._pins.prune()

    def _trim(self) -> None:
        """Changelog topics keep nothing below the last committed batch of the build side."""
        cluster = KafkaCluster(self.parts.changelog_kafka)
        for dimension in self.parts.dimensions:
            cluster.delete_records_before(dimension.places.topic, dimension.trimmable_offsets())

    def _shut_down(self) -> None:
        if not self._turns.stop(timeout_s=_STOP_BATCH_S):
            _log.warning("a batch did not end in time; it is run again after the next start")
        for source in self.parts.sources:
            source.stop()
        self._queries.stop()
        if self._maintenance.is_alive():
            self._maintenance.join(timeout=15)
        self.progress.close()
        self._changelog_cluster.close()


def watermark_sink(opening: Opening) -> Callable[[str, int, Watermark | None], None]:
    """What a dimension calls after the commit that makes a channel's watermark true.

    None instead of a watermark says that the channel is copied anew.
    """

    def receive(dimension: str, partition: int, watermark: Watermark | None) -> None:
        channel = channel_name(dimension, partition)
        if watermark is None:
            opening.restart(channel)
        else:
            opening.receive(channel, watermark, now_ms=time.time_ns() // 1_000_000)

    return receive
