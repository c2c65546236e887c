"""Whether the probe may run, and from where: lives, guards and acknowledgements."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import structlog

from joins.adapters.delta.log import DeltaLog
from joins.adapters.kafka.cluster import KafkaCluster
from joins.batch.event_batch import EventTables
from joins.batch.probe_progress import ProbeProgress
from joins.batch.probe_side import FinishedBatch, logs_disagree
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.pins import Pin, PinStore, newest_logged, read_offset_log, restore_offset_log
from joins.durable.probe_lives import LOGS_DISAGREE, Life, ProbeLives
from joins.durable.requests import Request
from joins.durable.stalls import Fault, Stalls
from joins.plan.errors import NothingToAcknowledgeError, RequestError
from joins.plan.plan import KafkaOptions
from joins.sinks.port import CommittedBatches
from joins.stream.bounds import cut
from joins.stream.guards import TopicGuard, TopicView, check_batch, explain_spark
from joins.stream.resumption import resumption
from watermark.errors import SluiceError

_PART = "stream"
_BATCH_ENDS_S = 10.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ControlParts:
    """What `ProbeControl` works with.

    Attributes:
        writer: tells which batches have their output.
        available: versions by dimension → for each the oldest one not older that can be read.
        event: the tables of a job with event batches, whose offsets Spark does not log.
        outputs: the Delta outputs of a job with several; one may have a batch that another lacks.
    """

    checkpoint: Checkpoint
    meta: JobMeta
    kafka: KafkaOptions
    writer: CommittedBatches
    dead_letters: DeltaLog
    stalls: Stalls
    available: Callable[[Mapping[str, int]], Mapping[str, int]]
    event: EventTables | None = None
    outputs: Sequence[DeltaLog] = ()


class ProbeControl:
    """One job's probe; all calls but `report` and `check_batch` come from the main loop.

    Attributes:
        turn: held while a batch runs.
    """

    def __init__(self, parts: ControlParts) -> None:
        self._parts = parts
        self.lives = ProbeLives(parts.checkpoint, parts.meta)
        self.pins = PinStore(parts.checkpoint.pins_directory)
        self.progress = ProbeProgress(parts.checkpoint, self.lives, parts.kafka)
        self.turn = threading.Lock()
        self._guard = TopicGuard(
            parts.checkpoint.directory / "guards.json", parts.kafka.topic, self.lives.current
        )
        self._batch_cluster = KafkaCluster(parts.kafka, keep_open=True)

    def open(self) -> None:
        """Complete what an earlier runner has left; the tables are fenced already."""
        self._abandon(self.lives.current)
        self._catch_up()

    def close(self) -> None:
        """Close the connections."""
        self.progress.close()
        self._batch_cluster.close()

    def may_run(self) -> bool:
        """Whether nothing waits for an acknowledgement; the stall is shown until then."""
        fault = self._guard.fault()
        if fault is None:
            self._parts.stalls.clear(_PART)
        else:
            self._parts.stalls.note(_PART, fault)
        return fault is None

    def may_begin(self) -> bool:
        """Whether all before where the stream goes on, and of a batch that is pinned, is stable.

        It may not be where somebody chose the offsets, or a release that read open transactions.
        """
        ends, pin = self.progress.next_offsets, self.pins.newest()
        if pin is not None and pin.batch >= self.lives.current.first_batch:
            ends |= pin.end_offsets
        return self.progress.is_stable(ends)

    def look(self, *, holding: bool, running: bool) -> None:
        """Look at the topic; what is found is in `may_run`.

        Args:
            holding: records wait for the gate.
            running: the probe's query is alive.

        Raises:
            SourceUnavailableError: no broker answers.
        """
        running = running or self.turn.locked()
        if not running:
            self._catch_up()
        view = self.progress.look(holding=holding)
        self._guard.observe(view, self.progress.reach(running=running))

    def wait_for_batch(self, timeout_s: float) -> None:
        """Let the batch that runs come to its end: what Spark interrupts ends badly."""
        if self.turn.acquire(timeout=timeout_s):
            self.turn.release()

    def report(self, error: Exception) -> None:
        """A batch or a query has failed with `error`."""
        if isinstance(error, SluiceError):
            self._guard.report(error)

    def explain(self, error: object) -> SluiceError | None:
        """What an error of Spark's means for the stream; a look at the topic follows soon."""
        self.progress.look_soon()
        return explain_spark(self._parts.kafka.topic, str(error))

    def check_batch(self, pin: Pin) -> None:
        """After a batch has read: was it the right topic, and is the next batch's still there?

        On the batch's thread. What is gone behind it keeps the next one from being committed.

        Raises:
            GuardError: nothing of the batch may be committed.
        """
        fault = self._guard.fault()
        if fault is not None:
            raise fault
        topic, life = self._parts.kafka.topic, self.lives.current
        lost = check_batch(self._batch_cluster, topic, life, pin.end_offsets)
        if lost is not None:
            self._guard.report(lost)

    # Starting
    # ----------------------------------------------------------------------------------------

    def prepare_start(self) -> None:
        """Before the query starts: make Spark's offset log and the newest pin agree.

        An entry that Spark's log has lost is written again if its batch is not committed. If the
        batch is committed, a new life begins behind it. Event batches have no log but the pins.

        Raises:
            LogsDisagreeError: both have the batch, uncommitted, with other offsets.
            JoinError: a batch of the query before is still running.
        """
        with self._quiet():
            if self._parts.event is not None:
                self._catch_up()
            else:
                self._make_logs_agree()

    def _make_logs_agree(self) -> None:
        self._catch_up()
        pin, life = self.pins.newest(), self.lives.current
        if pin is None or pin.batch < life.first_batch:
            return
        directory, spark_batch = self.lives.spark_directory, pin.batch - life.first_batch
        logged = read_offset_log(directory, spark_batch, self._parts.kafka.topic)
        planned = None if logged is None else cut(logged.end_offsets, life.end_offsets)
        if self._is_committed(pin):
            if planned != dict(pin.end_offsets):
                self._begin_behind(pin)
            return
        done = newest_logged(directory, "commits")
        if done is not None and done >= spark_batch:
            raise logs_disagree(pin.batch)
        if planned is None:
            self._restore_log(pin, spark_batch)
        elif planned != dict(pin.end_offsets):
            raise logs_disagree(pin.batch)

    def _restore_log(self, pin: Pin, spark_batch: int) -> None:
        """The entry of `pin` and of the batch before it, which Spark reads as its start."""
        before = self.pins.read(pin.batch - 1) if spark_batch > 0 else None
        for each, number in ((before, spark_batch - 1), (pin, spark_batch)):
            if each is not None:
                restore_offset_log(self.lives.spark_directory, number, each)
        _log.warning("spark's offset log was completed from the pins", batch=pin.batch)

    def _begin_behind(self, pin: Pin) -> None:
        """Spark's log lost a committed batch: nothing is uncommitted, so nobody need decide."""
        life = Life(
            directory=self.lives.next_directory(),
            first_batch=pin.batch + 1,
            topic_id=self.lives.current.topic_id,
            start_offsets={**self.lives.current.start_offsets, **pin.end_offsets},
            cause=LOGS_DISAGREE,
            end_offsets=self.lives.current.end_offsets,
            backlog_offsets=self.lives.current.backlog_offsets,
        )
        self.lives.begin(life)
        self._guard.continues(life)
        _log.warning("spark's offset log lost a committed batch; a new one begins", batch=pin.batch)

    def _is_committed(self, pin: Pin) -> bool:
        done = self.progress.counts.batch
        if done is not None and done >= pin.batch:
            return True
        return self._parts.writer.committed_counts(pin) is not None

    def _catch_up(self) -> None:
        """Count a batch that is committed and was not counted before a crash."""
        newest, done = self.pins.newest(), self.progress.counts.batch
        if newest is None or (done is not None and done >= newest.batch):
            return
        for pin in (newest, self.pins.read(newest.batch - 1)):
            counts = None if pin is None else self._parts.writer.committed_counts(pin)
            if pin is not None and counts is not None:
                if done is None or done < pin.batch:
                    self.progress.record(FinishedBatch(pin, counts))
                return

    def _abandon(self, life: Life) -> None:
        for batch in life.abandoned:
            pin = self.pins.read(batch)
            if pin is not None and self._parts.event is not None:
                self._parts.event.undo(pin, self._parts.meta.epoch)
            self._parts.dead_letters.retract(batch, self._parts.meta.epoch)
            self.pins.abandon(batch)

    # Acknowledgements
    # --------------------------------------------------------------------------------

    def acknowledge(self, request: Request) -> Mapping[str, Any]:
        """An operator accepts what a fault has cost: a new life begins with what is there.

        Returns:
            The record that is kept; the same for the same request.

        Raises:
            NothingToAcknowledgeError: the named fault is not the one that keeps the probe.
            RequestError: the request is incomplete, or it is too early for it.
        """
        kept = self.lives.acknowledgement(request.id)
        if kept is not None:
            return kept
        fault = self._acknowledged_fault(request)
        choice = _choice(request, fault)
        with self._quiet():
            self._catch_up()
            view = self.progress.look(holding=False)
            if view.topic_id is None:
                raise RequestError(
                    f'topic "{self._parts.kafka.topic}" is not there',
                    hint="Create or restore it first; then acknowledge what is shown.",
                )
            life = self._next_life(request, fault, choice, view)
            for batch in life.abandoned:  # its records come again in another batch
                for output in self._parts.outputs:
                    output.retract(batch, self._parts.meta.epoch)
            self.lives.begin(life)
            self._abandon(life)
            self._guard.begin(life, view)
        self._parts.stalls.clear(_PART)
        _log.warning("fault acknowledged", **dict(life.acknowledgement or {}))
        return dict(life.acknowledgement or {})

    def _acknowledged_fault(self, request: Request) -> Fault:
        cause, error = request.body.get("cause"), self._guard.fault()
        fault = None if error is None else Fault.of(error)
        if fault is None or fault.type != cause:
            now = "nothing waits" if fault is None else f'"{fault.type}" waits'
            raise NothingToAcknowledgeError(
                f'"{cause}" was acknowledged, but {now} for an acknowledgement',
                hint="Look at the job's status; acknowledge the fault that it shows.",
            )
        return fault

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """While no batch runs, not even one whose query was stopped."""
        if not self.turn.acquire(timeout=_BATCH_ENDS_S):
            raise RequestError(
                "a batch of the stopped query is still running", hint="Try it again soon."
            )
        try:
            yield
        finally:
            self.turn.release()

    def _next_life(self, request: Request, fault: Fault, choice: str, view: TopicView) -> Life:
        old, pin = self.lives.current, self.pins.newest()
        if pin is not None and pin.batch < old.first_batch:
            pin = None  # of an earlier life, and committed
        uncommitted = pin if pin is not None and not self._is_committed(pin) else None
        committed = self.progress.next_offsets
        resumed = resumption(old, committed, self._guard.marks, view)
        directory = self.lives.next_directory()
        record = {
            "id": request.id,
            "at_ms": time.time_ns() // 1_000_000,
            "by": request.by,
            "cause": fault.type,
            "choice": choice,
            "reason": request.body["reason"],
            "message": fault.message,
            "gaps": [gap.as_json() for gap in resumed.gaps],
            "life": directory,
        }
        life = Life(
            directory=directory,
            first_batch=old.first_batch if pin is None else pin.batch + 1,
            topic_id=view.topic_id or "",
            start_offsets=resumed.start_offsets,
            cause=fault.type,
            acknowledgement=record,
            end_offsets=resumed.end_offsets,
            backlog_offsets=resumed.backlog_offsets,
        )
        if uncommitted is None:
            return replace(life, versions=old.versions if pin is None else None)
        again = choice == "repin"
        versions = self._parts.available(uncommitted.versions) if again else None
        return replace(life, versions=versions, abandoned=(uncommitted.batch,))


def _choice(request: Request, fault: Fault) -> str:
    """What the request chooses.

    Raises:
        RequestError: it gives no reason, or the fault has no such choice.
    """
    reason = request.body.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise RequestError("acknowledgement has no reason", hint="Say why it is right to go on.")
    choice = request.body.get("choice") or fault.choices[0]
    if choice not in fault.choices:
        raise RequestError(
            f'"{fault.type}" was acknowledged with "{choice}", expected {", ".join(fault.choices)}',
            hint="Choose one of these, or stop the job.",
        )
    return str(choice)
