"""One job: it owns both sides, the opening between them and the faults of each part.

LOAD: sources copy, build loops append, the valve waits; the probe consumes nothing. When every
channel is in processing time, the job builds the indexes of the committed versions, makes the
opening durable and starts the probe's loop from the held offsets. JOIN: both sides run until the
job is stopped, or until a bounded stream is joined to its end. A fault of the stream pauses only
the probe, until it is acknowledged.
"""
# reads better long: a job's life from its start to its end, in one place.

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from joins.adapters.delta.log import DeltaLog
from joins.adapters.kafka.cluster import KafkaCluster
from joins.batch.batch_plan import ProbeSteps
from joins.batch.batches import FinishedBatch, ProbeHooks, ProbeSettings, check_fence
from joins.batch.inserts import JoinBatches
from joins.batch.probe_control import ControlParts, ProbeControl
from joins.batch.staleness import StalenessGate
from joins.dimension.build_side import BuildPace, BuildSettings
from joins.durable.letter_replays import LetterReplays
from joins.durable.requests import Request, Requests
from joins.job.loops import Loops, Reporter
from joins.job.opening import Opening, channel_name
from joins.job.parts import EventSide, JobParts
from joins.job.session import check_driver
from joins.job.upkeep import JobUpkeep
from joins.loop import BatchTurns, Loop, LoopGuards
from joins.plan.causes import cause_of
from joins.plan.errors import (
    CheckpointError,
    FencedError,
    ForeignRecordError,
    NothingToAcknowledgeError,
    RepairError,
    SnapshotUnprovenError,
    StaleTableError,
    StoppingError,
)
from joins.plan.plan import DeltaSink, Dimension, JoinPlan, KafkaSource
from joins.source.chunk_reader import in_background
from joins.source.coordinator import evidence_of
from joins.stream.bounds import BatchLimit, is_reached
from joins.stream.watches import TopicDiscovery
from joins.worker.resident_pool import PoolTasks
from joins.worker.topic_reader import TopicReader
from joins.worker.work import SparkTasks, Tasks
from watermark.errors import SluiceError
from watermark.freshness import Proof
from watermark.model import Watermark

_log = structlog.get_logger(__name__)
_PROBE = "probe"
OF_A_SOURCE = (SnapshotUnprovenError.fault, ForeignRecordError.fault)
"""Faults of a table that can be acknowledged; all others are faults of the stream."""
_TICK_S = 0.25
_LOOK_EVERY_S = 1.0
_STOP_BATCH_S = 20.0
_PAUSE_BATCH_S = 3.0
_REPORT_ENDS_S = 5.0


class TemporalJoin:
    """Runs the parts of one job until it is stopped or fails for good."""

    def __init__(self, parts: JobParts, on_tick: Callable[["TemporalJoin"], None]) -> None:
        self.parts = parts
        self._on_tick = on_tick
        self.reporter = Reporter(lambda: on_tick(self), every_s=_TICK_S)
        self._indexes: Future[Mapping[str, int]] | None = None
        self._stopping = threading.Event()
        self.is_stop_requested = False
        self.is_superseded = False  # it ended because the job has a newer plan
        self._open_requested = threading.Event()
        self._loops = Loops(parts.stalls, self._start_loop)
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
                replaces_by_place=_replaces_by_place(parts.plan),
                accept_outputs=parts.inserts.accept,
            )
        )
        self.staleness = StalenessGate(
            bounds_of(parts.plan.dimensions),
            parts.checkpoint.directory / "stale.json",
            parts.checkpoint.directory / "acknowledgements.jsonl",
        )
        first = parts.inserts.first
        self.event = (
            None if parts.event is None else EventSide(parts.event, parts.dimensions, first)
        )
        self.progress = self.control.progress
        self.letter_replays = LetterReplays.of(parts.checkpoint)
        self._probe: Loop | None = None
        self._last_versions: Mapping[str, int] = {}  # of the newest batch; empty before
        self._requests = Requests(
            parts.requests,
            {
                "acknowledge": self._acknowledge,
                "repair": self._repair,
                # These commit to the same tables as the batches.
                **{k: partial(do, turn=self.control.turn) for k, do in parts.handlers.items()},
            },
            slow={"repair", *parts.handlers},
        )
        self.upkeep = JobUpkeep(parts, self.control, self._stopping)
        self._changelog_cluster = KafkaCluster(parts.changelog_kafka, keep_open=True)
        self._limit = _batch_limit(parts)
        self._discovery = _discovery(parts)

    @property
    def is_finished(self) -> bool:
        end = self.control.lives.current.end_offsets
        read = self.parts.opening.is_open and is_reached(self.progress.next_offsets, end)
        return read and (self.event is None or self.event.is_drained)

    def request_open(self) -> None:
        self._open_requested.set()

    def request_stop(self) -> None:
        self.is_stop_requested = True
        self.parts.stalls.close()
        self._stopping.set()

    def run(self) -> None:
        """Work until `request_stop` or `is_finished`; returns after the loops have ended.

        A finished job answers its open requests before it returns.

        Raises:
            FencedError: a newer runner has taken over.
            CheckpointError: the job's durable files cannot be used.
            SourceUnavailableError: the JVM has ended; another runner starts one.
        """
        try:
            for output in self.parts.outputs:
                output.commit_epoch(self.parts.meta.epoch)
            self.control.open()
            self._restore_proofs()
            if not self.is_finished:
                self._work()
            self.reporter.stop(_REPORT_ENDS_S)
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
        self.reporter.start()
        if self.parts.residents is not None:
            self.parts.residents.start()
        for dimension in self.parts.dimensions:
            name = dimension.dimension.name
            with self.reporter.step(f'the changelog of table "{name}" is read back'):
                dimension.open()
            self._loops.start(f"build {dimension.dimension.name}")
        for source in self.parts.all_sources:
            source.start()
        for dimension in self.parts.dimensions:
            dimension.replay_watermarks()
        if not self.parts.dimensions:
            self.request_open()  # there is nothing to wait for
        self.upkeep.start()
        while not (self._stopping.wait(_TICK_S) or self.is_finished):
            self._tick()

    def _tick(self) -> None:
        check_driver(self.parts.spark)
        if self.parts.has_newer_plan() and self.control.is_at_border():
            self.is_superseded = True
            self._stopping.set()
            return
        if self.parts.generator is not None:
            self.parts.generator()
        self._store_progress()
        self._look_at_offsets()
        self._look_for_topics()
        if not self.control.may_run():
            self._end_probe()
        self._loops.watch()
        if self.control.may_run():
            self._advance()
        self._requests.serve()
        self.reporter.beat()

    def _store_progress(self) -> None:
        """FencedError if a newer runner has taken over, which has counted more.

        After another error the next tick tries again; pins have the counts, too.
        """
        if self.progress.counts is self.progress.stored:
            return
        try:
            check_fence(self.control.pins, self.parts.dead_letters, self.parts.meta.epoch)
            self.progress.store()
        except FencedError:
            raise
        except (OSError, SluiceError) as exc:
            _log.warning("the progress is stored later", error=str(exc))

    def _advance(self) -> None:
        """Open when the valve has, and start the probe; a failure is retried at the next tick."""
        try:
            opens = self._open_requested.is_set() and not self.parts.opening.is_open
            waits = self.parts.opening.is_open and _PROBE not in self._loops
            if opens or (waits and not self.is_finished and self.control.may_begin()):
                versions = self._ready_indexes()
                if versions is None:
                    return
                if opens:
                    self._open(versions)
                else:
                    self._loops.start(_PROBE)
            self.parts.stalls.clear("opening")
        except (FencedError, CheckpointError):
            raise
        except SluiceError as exc:
            self.parts.stalls.note("opening", exc)
        except OSError as exc:
            self.parts.stalls.note("opening", cause_of(exc, "opening failed"))

    def _ready_indexes(self) -> Mapping[str, int] | None:
        """Dimension → version whose index is ready; None while one is being built.

        An error is raised once; the next call tries again.
        """
        if self._indexes is None:
            self._indexes = in_background(self._serve_indexes, "indexes")
        if self._indexes not in wait([self._indexes], _TICK_S).done:
            return None
        indexes, self._indexes = self._indexes, None
        return indexes.result()

    def _serve_indexes(self) -> Mapping[str, int]:
        return {d.dimension.name: d.serve_index() for d in self.parts.dimensions}

    def _open(self, versions: Mapping[str, int]) -> None:
        held = self.progress.held().held_records
        self.parts.opening.settle(
            versions=versions,
            held_records=held,
            at_ms=time.time_ns() // 1_000_000,
            evidence=self._evidence(),
        )
        _log.info("gate opened", versions=versions, held_records=held)

    def _evidence(self) -> Mapping[str, str]:
        pairs = zip(self.parts.dimensions, self.parts.sources, strict=True)
        return {dimension.dimension.name: evidence_of(source.view()) for dimension, source in pairs}

    # Loops
    # -----------------------------------------------------------------------------------------

    def _start_loop(self, name: str) -> Loop:
        return self._start_probe() if name == _PROBE else self._start_build(name)

    def _guards(self, loop: str) -> LoopGuards:
        return LoopGuards(
            failpoints=self.parts.failpoints,
            turns=self._turns,
            on_error=partial(self._note_error, loop),
        )

    def _note_error(self, loop: str, error: Exception) -> None:
        if isinstance(error, StoppingError):
            return
        self._loops.note_error(loop, error)
        if loop == _PROBE:
            self.control.report(error)

    def _start_build(self, loop: str) -> Loop:
        dimension = loop.removeprefix("build ")
        runtime = next(d for d in self.parts.dimensions if d.dimension.name == dimension)
        settings = BuildSettings(
            kafka=self.parts.changelog_kafka, trigger_ms=self.parts.settings.build_trigger_ms
        )
        pace = BuildPace(self._limit.is_draining, self._stopping.wait)
        build = runtime.build_loop(
            self.parts.spark, settings, self._guards(loop), pace.rest, self._tasks()
        )
        return build.start()

    def _tasks(self) -> Tasks:
        pool = self.parts.residents
        return SparkTasks(self.parts.spark) if pool is None else PoolTasks(pool)

    def _start_probe(self) -> Loop:
        if self._probe is not None:
            self._probe.end()
        try:
            self.control.prepare_start()
        except SluiceError as exc:
            self.control.report(exc)
            raise
        self.parts.inserts.read_topics(self.control.lives.current.topics)
        with self.reporter.step("the lookup indexes of the newest versions are built"):
            for dimension in self.parts.dimensions:
                dimension.serve_index()
        self._limit.begin(self.progress.average_bytes())
        settings = ProbeSettings(
            kafka=self.parts.probe_kafka,
            life=self.control.lives.current,
            start_offsets=self.progress.start_offsets(),
            trigger_ms=self.parts.settings.probe_trigger_ms,
        )
        hooks = ProbeHooks(
            epoch=self.parts.meta.epoch,
            plan=self.parts.plan.number,
            may_pin=lambda: not self.parts.has_newer_plan(),
            pins=self.control.pins,
            dead_letters=self.parts.dead_letters,
            versions=self._ready_versions,
            source_times=self._source_times,
            proofs=self._proofs,
            staleness=self.staleness,
            limit=self._limit.records,
            restore=self._restore_indexes,
            on_pin=self.progress.begins,
            check=self.control.check,
            counted=lambda: self.progress.counts.sums(),
            on_finish=self._finished,
            guards=replace(self._guards(_PROBE), lock=self.control.turn),
            tasks=self._tasks(),
        )
        spark = self.parts.spark
        columns = self.parts.inserts.record_columns
        reader = TopicReader(settings.kafka, settings.topics, columns, self.parts.stream_files)
        if self.event is not None:
            steps = self.event.steps(spark, reader, settings, hooks)
        else:
            steps = ProbeSteps(
                JoinBatches(spark, self.parts.inserts, reader, hooks), settings, hooks
            )
        self._probe = steps.loop(spark)
        return self._probe.start()

    def _finished(self, batch: FinishedBatch) -> None:
        self._limit.record(batch.counts)
        self._last_versions = dict(batch.pin.versions)
        self.progress.record(batch)

    def _end_probe(self) -> None:
        if self._probe is not None:
            self._probe.end()
            self.control.wait_for_batch(_PAUSE_BATCH_S)
            self._probe = None
        self._loops.drop(_PROBE)

    def _ready_versions(self) -> Mapping[str, int]:
        return {d.dimension.name: d.ready_version() for d in self.parts.dimensions}

    def _source_times(self, versions: Mapping[str, int]) -> Mapping[str, int | None]:
        named = {d.dimension.name: d.states for d in self.parts.dimensions}
        return {name: named[name].source_time_ms(version) for name, version in versions.items()}

    def _proofs(self, versions: Mapping[str, int]) -> Mapping[str, Proof]:
        named = {d.dimension.name: d for d in self.parts.dimensions}
        proofs: dict[str, Proof] = {}
        for name, version in versions.items():
            proof, last = named[name].proof(version), self._last_versions.get(name)
            if proof is not None:
                changes = {} if last is None else named[name].states.changes(last, version)
                proofs[name] = replace(proof, position={**proof.position, **changes})
        return proofs

    def _restore_proofs(self) -> None:
        """What the newest batch had holds for later versions, too."""
        pin = self.control.pins.newest()
        for dimension in self.parts.dimensions:
            proof = None if pin is None else pin.as_of.get(dimension.dimension.name)
            if proof is not None:
                dimension.freshness.restore(proof)

    def _restore_indexes(self, versions: Mapping[str, int]) -> None:
        for dimension in self.parts.dimensions:
            dimension.keeper.restore(versions[dimension.dimension.name])

    def _available_versions(self, versions: Mapping[str, int]) -> Mapping[str, int]:
        keepers = {d.dimension.name: d.keeper for d in self.parts.dimensions}
        return {name: keepers[name].oldest_available(v) for name, v in versions.items()}

    def _look_at_offsets(self) -> None:
        if time.monotonic() - self.progress.looked_at_s < _LOOK_EVERY_S:
            return
        self._look_at_fence()
        for dimension in self.parts.dimensions:
            dimension.end_offsets = None
        with self._noted("kafka"):
            self.control.look(
                holding=not self.parts.opening.is_open, running=self._loops.is_active(_PROBE)
            )
            with self._noted("changelog"):
                for dimension in self.parts.dimensions:
                    dimension.look_at_topic(self._changelog_cluster)

    @contextmanager
    def _noted(self, part: str) -> Iterator[None]:
        """Note the fault of `part` as a stall, or clear it; other runners' faults are raised."""
        try:
            yield
            self.parts.stalls.clear(part)
        except (FencedError, CheckpointError):
            raise
        except SluiceError as exc:
            self.parts.stalls.note(part, exc)

    def _look_for_topics(self) -> None:
        if self._discovery is None or self.control.lives.current.end_offsets is not None:
            return
        known = self.control.lives.current.topics
        with self._noted("topics"):
            topics = self._discovery.look(known)
            if topics != known:
                self._end_probe()
                self.control.add_topics(topics)
                _log.info("topics joined the stream", topics=topics.names[len(known) :])

    def _look_at_fence(self) -> None:
        """Detect that a newer runner took over while this one was paused."""
        try:
            check_fence(self.control.pins, self.parts.dead_letters, self.parts.meta.epoch)
            self.parts.stalls.clear("fence")
        except FencedError:
            raise
        except SluiceError as exc:
            self.parts.stalls.note("fence", exc)

    # Requests
    # ----------------------------------------------------------------------------------------

    def _acknowledge(self, request: Request) -> Mapping[str, Any]:
        if request.body.get("cause") == StaleTableError.fault:
            return self.staleness.acknowledge(request)
        if request.body.get("cause") in OF_A_SOURCE:
            return self._acknowledge_source(request)
        if not self.control.may_run():
            self._end_probe()
        return self.control.acknowledge(request)

    def _repair(self, request: Request) -> Mapping[str, Any]:
        table = request.body.get("table")
        source = next((each for each in self.parts.sources if each.name == table), None)
        if source is None:
            hint = "Use the name that the script gives the table in CREATE TABLE."
            raise RepairError(f'the job copies no table "{table}"', hint=hint)
        return source.repair(request)

    def _acknowledge_source(self, request: Request) -> Mapping[str, Any]:
        stalled = [part for part, _ in self.parts.stalls.all()]
        sources = sorted(self.parts.sources, key=lambda source: source.part not in stalled)
        refusal: NothingToAcknowledgeError | None = None
        for source in sources:
            try:
                return source.acknowledge(request)
            except NothingToAcknowledgeError as exc:
                refusal = refusal or exc
        raise refusal or NothingToAcknowledgeError(
            "a fault of a table was acknowledged, but the job has none",
            hint="Look at the job's status; acknowledge the fault that it shows.",
        )

    def _shut_down(self) -> None:
        self.reporter.stop(_REPORT_ENDS_S)
        if not self._turns.stop(timeout_s=_STOP_BATCH_S):
            _log.warning("a batch did not end in time; it is run again after the next start")
        for source in self.parts.all_sources:
            source.stop()
        self._loops.stop()
        if self.parts.residents is not None:
            self.parts.residents.close()
        self._requests.finish(timeout_s=_STOP_BATCH_S)
        self.upkeep.join()
        with suppress(FencedError):
            self._store_progress()
        self.control.close()
        self._changelog_cluster.close()
        if self._discovery is not None:
            self._discovery.close()


def _outputs_of_several(parts: JobParts) -> tuple[DeltaLog, ...]:
    if not parts.plan.more_inserts:
        return ()
    return tuple(log for log in parts.outputs if log is not parts.dead_letters)


def _replaces_by_place(plan: JoinPlan) -> bool:
    return bool(plan.late_correct_ms) and isinstance(plan.sink, DeltaSink)


def bounds_of(dimensions: Iterable[Dimension]) -> dict[str, int]:
    bounds = {each.name: each.max_staleness_ms for each in dimensions}
    return {name: bound_ms for name, bound_ms in bounds.items() if bound_ms is not None}


def _discovery(parts: JobParts) -> TopicDiscovery | None:
    source = parts.plan.probe.source
    if not isinstance(source, KafkaSource) or source.topic_pattern is None:
        return None
    if source.discovery_ms is None:
        return None
    return TopicDiscovery(parts.probe_kafka, source.topic_pattern, source.discovery_ms / 1000)


def _batch_limit(parts: JobParts) -> BatchLimit:
    source, settings = parts.plan.probe.source, parts.settings
    records, size = None, None
    if isinstance(source, KafkaSource):
        records, size = source.max_records_per_batch, source.max_bytes_per_batch
    return BatchLimit(
        records or settings.max_records_per_batch, size or settings.max_bytes_per_batch
    )


def watermark_sink(opening: Opening) -> Callable[[str, int, Watermark | None], None]:
    """The callback of a dimension after the commit that makes a channel's watermark true.

    None instead of a watermark means that the channel is copied again.
    """

    def receive(dimension: str, partition: int, watermark: Watermark | None) -> None:
        channel = channel_name(dimension, partition)
        if watermark is None:
            opening.restart(channel)
        else:
            opening.receive(channel, watermark, now_ms=time.time_ns() // 1_000_000)

    return receive
