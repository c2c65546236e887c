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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joins.adapters.delta_log import DeltaLog
from joins.adapters.kafka_cluster import KafkaCluster
from joins.build_side import BuildSettings
from joins.checkpoint import Checkpoint, JobMeta, read_json, write_json_atomically
from joins.dimension import DimensionRuntime
from joins.errors import (
    CheckpointError,
    FencedError,
    JoinError,
    SourceError,
    SourceUnavailableError,
)
from joins.failpoints import Failpoints
from joins.opening import Opening, channel_name
from joins.pins import PinStore
from joins.plan import JoinPlan, KafkaOptions
from joins.ports import BatchWriter
from joins.probe_side import FinishedBatch, ProbeHooks, ProbeSettings, ProbeSide
from joins.probe_task import ProbeTask
from joins.snapshot import SnapshotCoordinator
from joins.staging import BatchTurns, QueryGuards
from joins.stalls import Stalls
from watermark.errors import SluiceError
from watermark.gate import HeldOffsets
from watermark.model import Watermark

_log = structlog.get_logger(__name__)
_TICK_S = 0.25
_OFFSETS_EVERY_S = 1.0
_TRIM_EVERY_S = 20.0
_STOP_BATCH_S = 20.0
_QUERY_RETRY_MIN_S, _QUERY_RETRY_MAX_S = 1.0, 20.0


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


@dataclass(slots=True)
class ProbeCounts:
    """What the probe has committed; kept in `progress.json` so that it survives restarts."""

    batch: int | None = None
    joined: int = 0
    matched: int = 0
    unmatched: int = 0
    dead_letters: int = 0
    next_offsets: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class ProbeOffsets:
    """The newest look at the probe topic."""

    end: dict[int, int] = field(default_factory=dict)
    begin: dict[int, int] = field(default_factory=dict)
    held_bytes: int | None = None
    looked_at: float = 0.0


class TemporalJoin:
    """Runs the parts of one job until it is stopped or fails for good."""

    def __init__(self, parts: JobParts, on_tick: Callable[["TemporalJoin"], None]) -> None:
        self.parts = parts
        self._on_tick = on_tick
        self._stopping = threading.Event()
        self._open_requested = threading.Event()
        self._queries: dict[str, StreamingQuery] = {}
        self._retry_at: dict[str, float] = {}
        self._retry_delay: dict[str, float] = {}
        self._errors: dict[str, Exception] = {}
        self._turns = BatchTurns()
        self._pins = PinStore(parts.checkpoint.pins_directory)
        self._maintenance = threading.Thread(target=self._maintain, name="maintenance", daemon=True)
        self._probe_cluster = KafkaCluster(parts.probe_kafka, keep_open=True)
        self._changelog_cluster = KafkaCluster(parts.changelog_kafka, keep_open=True)
        self.counts = self._read_counts()
        self.offsets = ProbeOffsets()
        self._topic_is_lost = False

    def request_open(self) -> None:
        """The valve opened; the main loop does the rest."""
        self._open_requested.set()

    def request_stop(self) -> None:
        """End `run` soon; callable from a signal handler."""
        self._stopping.set()

    @property
    def running_probe(self) -> bool:
        """Whether the probe query is up."""
        query = self._queries.get("probe")
        return query is not None and bool(query.isActive)

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
                self._start(f"build {dimension.dimension.name}")
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
        self._watch_queries()
        if not self._topic_is_lost:
            self._advance()
        elif self.running_probe:
            self._queries["probe"].stop()
        self._on_tick(self)

    def _advance(self) -> None:
        """Open when the valve has, and start the probe; what fails is tried at the next tick."""
        try:
            if self._open_requested.is_set() and not self.parts.opening.is_open:
                self._open()
            if self.parts.opening.is_open and "probe" not in self._queries:
                self._start("probe")
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
        held = self.held().held_records
        self.parts.opening.settle(
            versions=versions, held_records=held, at_ms=time.time_ns() // 1_000_000
        )
        _log.info("gate opened", versions=versions, held_records=held)

    # Queries
    # -----------------------------------------------------------------------------------------

    def _start(self, name: str) -> None:
        pool = "probe" if name == "probe" else "build"
        self.parts.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        self._errors.pop(name, None)
        self._queries[name] = (
            self._start_probe()
            if name == "probe"
            else self._start_build(name.removeprefix("build "))
        )

    def _guards(self, query: str) -> QueryGuards:
        return QueryGuards(
            failpoints=self.parts.failpoints,
            turns=self._turns,
            on_error=lambda exc: self._errors.__setitem__(query, exc),
        )

    def _start_build(self, dimension: str) -> StreamingQuery:
        runtime = next(d for d in self.parts.dimensions if d.dimension.name == dimension)
        settings = BuildSettings(
            kafka=self.parts.changelog_kafka,
            checkpoint=self.parts.checkpoint.spark_directory(f"build-{dimension}"),
            trigger_ms=self.parts.settings.build_trigger_ms,
        )
        return runtime.start_build(
            self.parts.spark,
            settings,
            self._guards(f"build {dimension}"),
        )

    def _start_probe(self) -> StreamingQuery:
        for dimension in self.parts.dimensions:
            dimension.serve_index()
        source = self.parts.plan.probe.source
        limit = getattr(source, "max_records_per_batch", None)
        settings = ProbeSettings(
            kafka=self.parts.probe_kafka,
            checkpoint=self.parts.checkpoint.spark_directory("probe"),
            start_offsets=self._start_offsets(),
            trigger_ms=self.parts.settings.probe_trigger_ms,
            max_records_per_batch=limit or self.parts.settings.max_records_per_batch,
        )
        hooks = ProbeHooks(
            pins=self._pins,
            dead_letters=self.parts.dead_letters,
            versions=self._ready_versions,
            restore=self._restore_indexes,
            on_finish=self._finished,
            guards=self._guards("probe"),
        )
        side = ProbeSide(
            self.parts.spark, self.parts.probe_task, settings, self.parts.writer, hooks
        )
        return side.start()

    def _start_offsets(self) -> dict[int, int]:
        """As kept at submission; a partition that was added while records are held starts at 0."""
        added = dict.fromkeys(self.offsets.end, 0)
        return {**added, **self.parts.meta.probe_start_offsets}

    def _ready_versions(self) -> Mapping[str, int]:
        return {d.dimension.name: d.ready_version() for d in self.parts.dimensions}

    def _restore_indexes(self, versions: Mapping[str, int]) -> None:
        for dimension in self.parts.dimensions:
            dimension.keeper.restore(versions[dimension.dimension.name])

    def _watch_queries(self) -> None:
        now = time.monotonic()
        for name, query in list(self._queries.items()):
            if query.isActive:
                if name in self._retry_delay and query.lastProgress is not None:
                    self.parts.stalls.clear(name)
                    del self._retry_delay[name]
                continue
            if name == "probe" and self._topic_is_lost:
                continue
            if name not in self._retry_at:
                self._note_failure(name, query)
                delay = min(self._retry_delay.get(name, 0.5) * 2, _QUERY_RETRY_MAX_S)
                self._retry_delay[name] = max(delay, _QUERY_RETRY_MIN_S)
                self._retry_at[name] = now + self._retry_delay[name]
            elif now >= self._retry_at[name]:
                self._restart(name)

    def _restart(self, name: str) -> None:
        del self._retry_at[name]
        try:
            self._start(name)
        except (FencedError, CheckpointError):
            raise
        except (SluiceError, OSError) as exc:
            self._errors[name] = exc

    def _note_failure(self, name: str, query: StreamingQuery) -> None:
        error = self._errors.get(name)
        if isinstance(error, FencedError | CheckpointError):
            raise error
        if not isinstance(error, SluiceError):
            told = error if error is not None else query.exception()
            error = JoinError(
                f"{name} query ended: {_first_line(told)}",
                hint="It is started again by itself; if this stays, see the runner's log.",
            )
        self.parts.stalls.note(name, error)
        _log.warning("query ended", query=name, error=error.message, hint=error.hint)

    # Progress
    # ----------------------------------------------------------------------------------------

    def _progress_file(self) -> Path:
        return self.parts.checkpoint.directory / "progress.json"

    def _read_counts(self) -> ProbeCounts:
        value = read_json(self._progress_file())
        if value is None:
            return ProbeCounts(next_offsets=dict(self.parts.meta.probe_start_offsets))
        del value["format_version"]
        offsets = {int(p): o for p, o in value.pop("next_offsets").items()}
        return ProbeCounts(**value, next_offsets=offsets)

    def _finished(self, batch: FinishedBatch) -> None:
        counts = self.counts
        if counts.batch is None or batch.pin.batch > counts.batch:
            counts.batch = batch.pin.batch
            counts.joined += batch.counts.get("joined", 0)
            counts.matched += batch.counts.get("matched", 0)
            counts.unmatched += batch.counts.get("unmatched", 0)
            counts.dead_letters += batch.counts.get("dead_letters", 0)
        counts.next_offsets = dict(batch.pin.end_offsets)
        value: dict[str, Any] = {
            "batch": counts.batch,
            "joined": counts.joined,
            "matched": counts.matched,
            "unmatched": counts.unmatched,
            "dead_letters": counts.dead_letters,
            "next_offsets": {str(p): o for p, o in counts.next_offsets.items()},
        }
        write_json_atomically(self._progress_file(), value)

    def held(self) -> HeldOffsets:
        """What waits in the probe topic, by the newest look."""
        start = dict(self.counts.next_offsets)
        for partition in self.offsets.end:
            start.setdefault(partition, 0)
        return HeldOffsets.of(start=start, end=self.offsets.end, retention_begin=self.offsets.begin)

    def _look_at_offsets(self) -> None:
        if time.monotonic() - self.offsets.looked_at < _OFFSETS_EVERY_S:
            return
        topic = self.parts.probe_kafka.topic
        cluster = self._probe_cluster
        try:
            found = cluster.require(topic)
            if found.topic_id != self.parts.meta.probe_topic_id:
                raise SourceError(
                    f'topic "{topic}" has id {found.topic_id}, '
                    f"expected {self.parts.meta.probe_topic_id}",
                    hint="The topic was deleted and created again; submit the job anew.",
                )
            self.offsets.end = cluster.end_offsets(topic)
            self.offsets.begin = cluster.beginning_offsets(topic)
            if not self.parts.opening.is_open:
                self.offsets.held_bytes = cluster.size_bytes(topic)
            if not self.parts.opening.is_open:  # in JOIN Spark sees a loss, exactly
                self.held().check(topic)
            for dimension in self.parts.dimensions:
                ends = self._changelog_cluster.end_offsets(dimension.places.topic)
                dimension.end_offsets = ends
            self.parts.stalls.clear("kafka")
            self._topic_is_lost = False
        except SluiceError as exc:
            self.parts.stalls.note("kafka", exc)
            self._topic_is_lost |= not isinstance(exc, SourceUnavailableError)
        self.offsets.looked_at = time.monotonic()

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
        done, pin = self.counts.batch, self._pins.newest()
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
        for query in self._queries.values():
            try:
                query.stop()
            except (PySparkException, Py4JError) as exc:
                _log.warning("query did not stop cleanly", error=_first_line(exc))
        if self._maintenance.is_alive():
            self._maintenance.join(timeout=15)
        self._probe_cluster.close()
        self._changelog_cluster.close()


def _first_line(error: object) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or ["unknown cause"])[0][:300]


def watermark_sink(opening: Opening) -> Callable[[str, int, Watermark], None]:
    """What a dimension calls after the commit that makes a channel's watermark true."""

    def receive(dimension: str, partition: int, watermark: Watermark) -> None:
        now_ms = time.time_ns() // 1_000_000
        opening.receive(channel_name(dimension, partition), watermark, now_ms=now_ms)

    return receive
