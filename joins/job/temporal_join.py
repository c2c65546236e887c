"""One job: it owns both sides, the opening between them and the faults of each part.

LOAD: sources copy, build queries append, the valve waits; the probe consumes nothing. When the
valve says that every channel is in processing time, the index of the committed versions is built,
the opening is made durable and the probe query starts from the held offsets. JOIN: both sides go on
until the job is stopped, or until all up to the end of a bounded stream is joined. A fault of the
stream pauses the probe only, until it is acknowledged.
"""
# reads better long: all that starts, watches and ends the parts of a job, in one order.

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from pyspark.sql import SparkSession

from joins.adapters.delta.features import WriterChoice
from joins.adapters.delta.log import DeltaLog
from joins.adapters.kafka.cluster import KafkaCluster
from joins.batch.event_loop import EventLoop
from joins.batch.inserts import Inserts
from joins.batch.probe_control import ControlParts, ProbeControl
from joins.batch.probe_side import FinishedBatch, ProbeHooks, ProbeSettings, ProbeSide
from joins.dimension.build_pace import BuildPace
from joins.dimension.build_side import BuildSettings
from joins.dimension.dimension import DimensionRuntime
from joins.dimension.fold_schedule import FoldPolicy
from joins.dimension.maintenance import JobLogs, Maintenance, UpkeepSettings
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.failpoints import Failpoints
from joins.durable.leases import StateLease, oldest_kept, oldest_leased
from joins.durable.requests import Handler, Request, Requests
from joins.durable.stalls import Stalls
from joins.job.event_job import EventJob, EventSide
from joins.job.opening import Opening, channel_name
from joins.job.queries import Queries, Query
from joins.plan.errors import CheckpointError, FencedError, JoinError, StoppingError
from joins.plan.plan import JoinPlan, KafkaOptions, KafkaSource
from joins.source.coordinator import SourceCoordinator
from joins.stream.batch_limit import BatchLimit
from joins.worker.staging import BatchTurns, QueryGuards
from watermark.errors import SluiceError
from watermark.model import Watermark

_log = structlog.get_logger(__name__)
_PROBE = "probe"
_TICK_S = 0.25
_TRIM_EVERY_S = 20.0
_STOP_BATCH_S = 20.0
_PAUSE_BATCH_S = 3.0


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

    build_trigger_ms: int = 200
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
        handlers: kind → what carries out a request; acknowledgements are our own.
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
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    generator: Callable[[], None] | None = None
    writer_choice: Callable[[], WriterChoice | None] = lambda: None
    event: EventJob | None = None


class TemporalJoin:
    """Runs the parts of one job until it is stopped or fails for good."""

    def __init__(self, parts: JobParts, on_tick: Callable[["TemporalJoin"], None]) -> None:
        # reads better long: each part is made of those before it.
        self.parts = parts
        self._on_tick = on_tick
        self._stopping = threading.Event()
        self._open_requested = threading.Event()
        self._queries = Queries(parts.stalls, self._start_query, self._explain)
        self._turns = BatchTurns()
        self.control = ProbeControl(
            ControlParts(
                checkpoint=parts.checkpoint,
                meta=parts.meta,
                kafka=parts.probe_kafka,
                writer=parts.inserts,
                dead_letters=parts.dead_letters,
                stalls=parts.stalls,
                available=self._available_versions,
                event=None if parts.event is None else parts.event.tables,
                outputs=_outputs_of_several(parts),
            )
        )
        writer = parts.inserts.first.writer
        self.event = (
            None if parts.event is None else EventSide(parts.event, parts.dimensions, writer)
        )
        self.progress = self.control.progress
        self._pins = self.control.pins
        self._probe: ProbeSide | EventLoop | None = None
        self._requests = Requests(
            parts.requests,
            {
                "acknowledge": self._acknowledge,
                **{kind: self._between_batches(do) for kind, do in parts.handlers.items()},
            },
            slow=parts.handlers,
        )
        states = () if parts.event is None else parts.event.tables.states
        logs = [each.log for each in states]
        ours = (parts.dead_letters, *logs)
        self._upkeep = Maintenance(
            parts.dimensions,
            JobLogs(
                # Of two INSERTs into one table the later one commits last: what it has, both have.
                [*{log.path: log for log in parts.outputs if log not in ours}.values()],
                parts.dead_letters,
                logs,
            ),
            parts.meta.epoch,
            UpkeepSettings(
                current_retention_hours=parts.settings.current_retention_hours,
                replayed_state_bytes=parts.settings.replay_state_bytes,
            ),
        )
        self._maintenance = threading.Thread(target=self._maintain, name="maintenance", daemon=True)
        self._changelog_cluster = KafkaCluster(parts.changelog_kafka, keep_open=True)
        self._limit = _batch_limit(parts)

    @property
    def is_finished(self) -> bool:
        """Whether the gate is open and all up to the end of a bounded stream is joined."""
        read = self.parts.opening.is_open and self.progress.is_finished()
        return read and (self.event is None or self.event.is_drained)

    def request_open(self) -> None:
        """The valve opened; the main loop does the rest."""
        self._open_requested.set()

    def request_stop(self) -> None:
        """End `run` soon; callable from a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Work until `request_stop` or `is_finished`; returns after the queries have ended.

        What was asked of a job that has come to its end is answered before that; where it had come
        there before, nothing else is done.

        Raises:
            FencedError: a newer runner has taken over.
            CheckpointError: the job's durable files cannot be used.
        """
        try:
            for output in self.parts.outputs:
                output.commit_epoch(self.parts.meta.epoch)
            self.control.open()
            if not self.is_finished:
                self._work()
            while self.is_finished and self._requests.open():
                self._requests.serve()
                self._on_tick(self)
                if self._stopping.wait(_TICK_S):
                    break
            self._on_tick(self)
        finally:
            self._stopping.set()
            self._shut_down()

    def _work(self) -> None:
        for dimension in self.parts.dimensions:
            dimension.open()
            self._queries.start(f"build {dimension.dimension.name}")
        for source in self.parts.sources:
            source.start()
        for dimension in self.parts.dimensions:
            dimension.replay_watermarks()
        if not self.parts.dimensions:
            self.request_open()  # there is nothing to wait for
        self._maintenance.start()
        while not (self._stopping.wait(_TICK_S) or self.is_finished):
            self._tick()

    def _tick(self) -> None:
        if self.parts.generator is not None:
            self.parts.generator()
        self._look_at_offsets()
        if not self.control.may_run() or self._limit.is_too_high():
            self._end_probe()
        self._queries.watch()
        if self.control.may_run():
            self._advance()
        self._requests.serve()
        self._on_tick(self)

    def _advance(self) -> None:
        """Open when the valve has, and start the probe; what fails is tried at the next tick."""
        try:
            if self._open_requested.is_set() and not self.parts.opening.is_open:
                self._open()
            waits = self.parts.opening.is_open and _PROBE not in self._queries
            if waits and not self.is_finished and self.control.may_begin():
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
        """LOAD → JOIN: first the lookups, so that a batch finds them; then the phase, durable."""
        versions = {d.dimension.name: d.serve_index() for d in self.parts.dimensions}
        self.parts.inserts.check(versions)
        held = self.progress.held().held_records
        self.parts.opening.settle(
            versions=versions, held_records=held, at_ms=time.time_ns() // 1_000_000
        )
        _log.info("gate opened", versions=versions, held_records=held)

    # Queries
    # -----------------------------------------------------------------------------------------

    def _start_query(self, name: str) -> Query:
        pool = "probe" if name == _PROBE else "build"
        self.parts.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        return self._start_probe() if name == _PROBE else self._start_build(name)

    def _guards(self, query: str) -> QueryGuards:
        return QueryGuards(
            failpoints=self.parts.failpoints,
            turns=self._turns,
            on_error=partial(self._note_error, query),
        )

    def _note_error(self, query: str, error: Exception) -> None:
        if isinstance(error, StoppingError):
            return
        self._queries.note_error(query, error)
        if query == _PROBE:
            self.control.report(error)

    def _start_build(self, query: str) -> Query:
        dimension = query.removeprefix("build ")
        runtime = next(d for d in self.parts.dimensions if d.dimension.name == dimension)
        settings = BuildSettings(
            kafka=self.parts.changelog_kafka,
            checkpoint=self.parts.checkpoint.spark_directory(f"build-{dimension}"),
            trigger_ms=self.parts.settings.build_trigger_ms,
        )
        pace = BuildPace(self._limit.is_draining, self._stopping.wait)
        return runtime.start_build(self.parts.spark, settings, self._guards(query), pace.rest)

    def _start_probe(self) -> Query:
        self._prepare_probe()
        self.parts.inserts.forget()
        for dimension in self.parts.dimensions:
            dimension.serve_index()
        settings = ProbeSettings(
            kafka=self.parts.probe_kafka,
            checkpoint=self.control.lives.spark_directory,
            life=self.control.lives.current,
            start_offsets=self.progress.start_offsets(),
            trigger_ms=self.parts.settings.probe_trigger_ms,
            max_records_per_batch=self._limit.begin(self.progress.average_bytes()),
        )
        hooks = ProbeHooks(
            pins=self._pins,
            dead_letters=self.parts.dead_letters,
            versions=self._ready_versions,
            source_times=self._source_times,
            lookups=self.parts.inserts.first.lookups,
            small_records=self._limit.is_of_small_records,
            restore=self._restore_indexes,
            on_pin=self.progress.begins,
            check=self.control.check_batch,
            on_finish=self._finished,
            guards=self._guards(_PROBE),
            turn=self.control.turn,
        )
        spark = self.parts.spark
        if self.event is not None:
            self._probe = self.event.loop(spark, settings, hooks)
        else:
            self._probe = ProbeSide(spark, self.parts.inserts, settings, hooks)
        return self._probe.start()

    def _finished(self, batch: FinishedBatch) -> None:
        self._limit.record(batch.counts)
        self.progress.record(batch)

    def _prepare_probe(self) -> None:
        if self._probe is not None:
            self._probe.end()
        try:
            self.control.prepare_start()
        except SluiceError as exc:
            self.control.report(exc)
            raise

    def _end_probe(self) -> None:
        """Stop the probe's query until it may run again."""
        if self._probe is not None:
            self._probe.end()
            self.control.wait_for_batch(_PAUSE_BATCH_S)
            self._probe = None
        self._queries.drop(_PROBE)

    def _explain(self, query: str, error: object) -> SluiceError | None:
        return self.control.explain(error) if query == _PROBE else None

    def _ready_versions(self) -> Mapping[str, int]:
        return {d.dimension.name: d.ready_version() for d in self.parts.dimensions}

    def _source_times(self, versions: Mapping[str, int]) -> Mapping[str, int | None]:
        named = {d.dimension.name: d for d in self.parts.dimensions}
        return {name: named[name].source_time_ms(version) for name, version in versions.items()}

    def _restore_indexes(self, versions: Mapping[str, int]) -> None:
        for dimension in self.parts.dimensions:
            dimension.keeper.restore(versions[dimension.dimension.name])

    def _available_versions(self, versions: Mapping[str, int]) -> Mapping[str, int]:
        keepers = {d.dimension.name: d.keeper for d in self.parts.dimensions}
        return {name: keepers[name].oldest_available(v) for name, v in versions.items()}

    def _look_at_offsets(self) -> None:
        if not self.progress.is_due():
            return
        self._look_at_fence()
        for dimension in self.parts.dimensions:
            dimension.end_offsets = None
        try:
            self.control.look(
                holding=not self.parts.opening.is_open, running=self._queries.is_active(_PROBE)
            )
            for dimension in self.parts.dimensions:
                ends = self._changelog_cluster.end_offsets(dimension.places.topic)
                dimension.end_offsets = ends
            self.parts.stalls.clear("kafka")
        except (FencedError, CheckpointError):
            raise
        except SluiceError as exc:
            self.parts.stalls.note("kafka", exc)

    def _look_at_fence(self) -> None:
        """A runner that was paused learns here that a newer one has taken over, if not before."""
        try:
            self.parts.dead_letters.check_epoch(self.parts.meta.epoch)
            self.parts.stalls.clear("fence")
        except FencedError:
            raise
        except SluiceError as exc:
            self.parts.stalls.note("fence", exc)

    # Requests
    # ----------------------------------------------------------------------------------------

    def _acknowledge(self, request: Request) -> Mapping[str, Any]:
        if not self.control.may_run():
            self._end_probe()
        return self.control.acknowledge(request)

    def _between_batches(self, handler: Handler) -> Handler:
        """`handler` while no batch runs: both commit to the same tables."""

        def handle(request: Request) -> Mapping[str, Any]:
            with self.control.turn:
                return handler(request)

        return handle

    # Background
    # --------------------------------------------------------------------------------------

    def _maintain(self) -> None:
        """Fold, trim and keep the tables small, at a lower priority than both sides."""
        self.parts.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "fold")
        settings = self.parts.settings
        trimmed_at = maintained_at = time.monotonic()
        interval_s = min(settings.fold_interval_s, settings.maintenance_interval_s)
        while not self._stopping.wait(interval_s):
            for dimension in self.parts.dimensions:
                part = f"fold {dimension.dimension.name}"
                self._attempt(part, partial(dimension.fold, self.parts.spark, settings.fold))
            if time.monotonic() - trimmed_at >= min(_TRIM_EVERY_S, settings.maintenance_interval_s):
                self._attempt("trim", self._trim)
                self._attempt("prune", self._prune)
                trimmed_at = time.monotonic()
            if time.monotonic() - maintained_at >= settings.maintenance_interval_s:
                self._attempt("upkeep", self._keep_up)
                maintained_at = time.monotonic()

    def _keep_up(self) -> None:
        """Compaction and clean-up of every table, below what is leased."""
        pins, kept = self.parts.checkpoint.pins_directory, self.parts.settings.replay_batches
        leased = oldest_leased(
            pins,
            kept,
            self.parts.opening.view().versions_at_open,
            {d.dimension.name: d.keeper.ready_version for d in self.parts.dimensions},
        )
        oldest = oldest_kept(pins, kept)
        batch = None if oldest is None else int(oldest["batch"])
        for part, work in self._upkeep.steps(leased, self._state_leases(), batch):
            if not self._stopping.is_set():
                self._attempt(part, work)

    def _state_leases(self) -> tuple[StateLease, ...]:
        """The versions of the state that the newest batch has read, and the kept ones before."""
        pin, event = self._pins.newest(), self.parts.event
        if pin is None or pin.event is None or event is None:
            return ()
        kept = oldest_kept(self.parts.checkpoint.pins_directory, self.parts.settings.replay_batches)
        needed = pin.event["state_versions"]
        replayed = needed if kept is None else kept["event"]["state_versions"]
        names = [each.log.path.name for each in event.tables.states]
        return tuple(StateLease(int(needed[n]), int(replayed[n])) for n in names)

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
        self._pins.prune(self.parts.settings.replay_batches)

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
        self._requests.finish(timeout_s=_STOP_BATCH_S)
        if self._maintenance.is_alive():
            self._maintenance.join(timeout=15)
        self.control.close()
        self._changelog_cluster.close()


def _outputs_of_several(parts: JobParts) -> tuple[DeltaLog, ...]:
    """The Delta outputs of a statement set of several INSERTs."""
    if not parts.plan.more_inserts:
        return ()
    return tuple(log for log in parts.outputs if log is not parts.dead_letters)


def _batch_limit(parts: JobParts) -> BatchLimit:
    """The stream's own limits, else those of the settings."""
    source, settings = parts.plan.probe.source, parts.settings
    records, size = None, None
    if isinstance(source, KafkaSource):
        records, size = source.max_records_per_batch, source.max_bytes_per_batch
    return BatchLimit(
        records or settings.max_records_per_batch, size or settings.max_bytes_per_batch
    )


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
