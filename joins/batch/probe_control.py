"""Decides whether the probe may run, and from which offsets: lives, guards, acknowledgements."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import structlog

from joins.adapters.delta.log import DeltaLog
from joins.batch.batches import FinishedBatch, check_fence
from joins.batch.event_batch import EventTables
from joins.batch.probe_progress import ProbeProgress
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.pins import Pin, PinStore
from joins.durable.probe_lives import Life, ProbeLives
from joins.durable.requests import Fault, Request, Stalls, reason_of, record_of
from joins.plan.errors import (
    LogsDisagreeError,
    NothingToAcknowledgeError,
    OffsetsWentBackError,
    OutputTopicChangedError,
    RequestError,
    SinkError,
    TopicIdentityChangedError,
    TopicMissingError,
)
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from joins.sinks.port import CommittedBatches
from joins.stream.bounds import resumption
from joins.stream.guards import Reach, TopicGuard, TopicView
from watermark.errors import SluiceError

_PART = "stream"
_OTHER_RECORDS = (TopicIdentityChangedError, OffsetsWentBackError)
_BATCH_ENDS_S = 10.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ControlParts:
    """What `ProbeControl` works with."""

    checkpoint: Checkpoint
    meta: JobMeta
    kafka: KafkaOptions
    writer: CommittedBatches
    dead_letters: DeltaLog
    stalls: Stalls
    # versions by dimension → for each the oldest readable version that is not older
    available: Callable[[Mapping[str, int]], Mapping[str, int]]
    event: EventTables | None = None  # the tables of a job with event batches
    # the Delta outputs of a job with several; one may lack a batch that another has
    outputs: Sequence[DeltaLog] = ()
    # True if rows of the output are replaced by topic, partition and offset of their records
    replaces_by_place: bool = False
    # lets batches write to the topics of the outputs as they are now
    accept_outputs: Callable[[], None] = lambda: None


class ProbeControl:
    """One job's probe; all calls but `report` and `check` come from the main loop."""

    def __init__(self, parts: ControlParts) -> None:
        self._parts = parts
        self.lives = ProbeLives(parts.checkpoint, parts.meta)
        self.pins = PinStore(parts.checkpoint.pins_directory)
        self.progress = ProbeProgress(parts.checkpoint, self.lives, parts.kafka)
        self.turn = threading.Lock()  # held while a batch runs
        self._guard = TopicGuard(parts.checkpoint.directory / "guards.json", self.lives.current)

    def open(self) -> None:
        self.progress.follow(self.pins.newest())
        with suppress(SinkError):  # `prepare_start` does both again
            self._abandon(self.lives.current)
            self._catch_up()

    def close(self) -> None:
        self.progress.close()

    def may_run(self) -> bool:
        """True unless a fault waits for acknowledgement; notes or clears the stall."""
        fault = self._guard.fault()
        if fault is None:
            self._parts.stalls.clear(_PART)
        else:
            self._parts.stalls.note(_PART, fault)
        return fault is None

    def is_at_border(self) -> bool:
        """True if no batch is pinned that is not counted as committed."""
        pin, done = self.pins.newest(), self.progress.counts.batch
        if pin is None or pin.batch < self.lives.current.first_batch:
            return True
        return done is not None and done >= pin.batch

    def may_begin(self) -> bool:
        """True if the offsets to start from, and those of a pinned batch, are stable.

        They may be unstable if a user chose them, or if an earlier release read open transactions.
        """
        ends, pin = self.progress.next_offsets, self.pins.newest()
        if pin is not None and pin.batch >= self.lives.current.first_batch:
            ends |= pin.end_offsets
        there = self.progress.ends.end_offsets
        return all(offset <= there.get(p, offset) for p, offset in ends.items())

    def look(self, *, holding: bool, running: bool) -> None:
        """Look at the topic; `may_run` has the result. `holding` if records wait for the gate.

        Raises:
            SourceUnavailableError: no broker answers.
        """
        running = running or self.turn.locked()
        if not running:
            self._catch_up()
        before = self.progress.reach(running=running)
        view = self.progress.look(holding=holding)
        # Meanwhile a batch may commit beyond the ends that the view has.
        after = self.progress.reach(running=running)
        self._guard.observe(view, Reach(before.committed, after.reading))

    def wait_for_batch(self, timeout_s: float) -> None:
        if self.turn.acquire(timeout=timeout_s):
            self.turn.release()

    def report(self, error: Exception) -> None:
        self.progress.look_soon()
        if isinstance(error, SluiceError):
            self._guard.report(error)

    def check(self) -> None:
        """On the batch's thread, before the commit, raise the stream's fault if there is one."""
        fault = self._guard.fault()
        if fault is not None:
            raise fault

    # Starting
    # ----------------------------------------------------------------------------------------

    def prepare_start(self) -> None:
        """Undo what is given up, and check that no pin is missing, before the loop starts.

        Raises:
            LogsDisagreeError: committed batches have no pin.
            RequestError: a batch of the previous loop is still running.
            SinkError: a table does not answer.
        """
        with self._quiet():
            self._abandon(self.lives.current)
            self._catch_up()
            newest, done = self.pins.newest(), self._newest_committed()
            if done < self.lives.current.first_batch:
                return
            if newest is None or newest.batch < done:
                raise LogsDisagreeError(
                    f"batch {done} is committed, but has no pin",
                    hint="Files of the checkpoint were lost or changed. Acknowledge it to go on "
                    "where the counted output ends; what was committed behind it comes twice.",
                )

    def _newest_committed(self) -> int:
        """The newest batch of which a table has something."""
        event, output = self._parts.event, self._parts.writer
        logs = (self._parts.dead_letters, *(() if event is None else event.logs))
        kept = [log.batches.last_batch() for log in logs]
        batches = (self.progress.counts.batch, output.newest_batch(), *kept)
        return max((batch for batch in batches if batch is not None), default=-1)

    def _is_committed(self, pin: Pin) -> bool:
        done = self.progress.counts.batch
        if done is not None and done >= pin.batch:
            return True
        return self._parts.writer.committed_counts(pin) is not None

    def _catch_up(self) -> None:
        """Count a batch whose commit a crash left uncounted."""
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
        """Undo the batches that `life` has given up; the pin goes last, so all of it is repeated.

        No loop and no later life begins before it is done: they read the state.
        """
        for batch in life.abandoned:
            pin = self.pins.read(batch)
            if pin is None:
                continue
            if self._parts.event is not None:
                self._parts.event.undo(pin, self._parts.meta.epoch)
            for log in (*reversed(self._parts.outputs), self._parts.dead_letters):
                log.retract(batch, self._parts.meta.epoch)
            self.pins.abandon(batch)

    # Topics
    # ------------------------------------------------------------------------------------------

    def add_topics(self, topics: StreamTopics) -> None:
        """Read them from their beginnings; no loop may run.

        Raises:
            RequestError: the batch of a stopped loop still runs.
            FencedError: a newer runner has taken over; its list of topics holds.
        """
        with self._quiet():
            check_fence(self.pins, self._parts.dead_letters, self._parts.meta.epoch)
            self.lives.add_topics(topics)
            self.progress.read_topics(self.lives.current.topics)
            self._guard.continues(self.lives.current)
        self.progress.look_soon()

    # Acknowledgements
    # --------------------------------------------------------------------------------

    def acknowledge(self, request: Request) -> Mapping[str, Any]:
        """Accept what a fault has cost, and begin a new life with the records that are left.

        Returns:
            The stored record; the same for the same request.

        Raises:
            NothingToAcknowledgeError: the named fault is not the one that keeps the probe.
            RequestError: the request is incomplete, or it comes too early.
            SinkError: a table does not answer, or keeps rows of the batch that is given up; if the
                life has begun, its loop waits for the rest.
        """
        kept = self.lives.acknowledgement(request.id)
        if kept is not None and self._guard.is_of(self.lives.current):
            return kept
        error, fault = self._acknowledged_fault(request)
        if self._parts.replaces_by_place and isinstance(error, _OTHER_RECORDS):
            raise RequestError(
                "late rows replace rows of the output by topic, partition and offset of their "
                "records, and other records have some of these now",
                hint="Submit the job again, with another 'path' for its output.",
            )
        choice = _choice(request, fault)
        with self._quiet():
            self._abandon(self.lives.current)
            self._catch_up()
            view = self.progress.look(holding=False)
            self._see_topics(view, error)
            if kept is None:  # else it has begun, and what follows has failed
                self.lives.begin(self._next_life(request, fault, choice, view))
            life = self.lives.current
            self.progress.read_topics(life.topics)
            if isinstance(error, OutputTopicChangedError):
                self._parts.accept_outputs()
            self._guard.begin(life, view)
            self._abandon(life)
        self._parts.stalls.clear(_PART)
        _log.warning("fault acknowledged", **dict(life.acknowledgement or {}))
        return dict(life.acknowledgement or {})

    def _see_topics(self, view: TopicView, error: SluiceError) -> None:
        topics = self.lives.current.topics
        missing = topics.missing_in(view.topic_ids)
        shown = error.topics if isinstance(error, TopicMissingError) else ()
        unknown = [name for name in missing if name not in shown]
        if unknown or (missing and len(missing) == len(topics.read_names)):
            raise RequestError(
                f'topic "{(unknown or missing)[0]}" is not there',
                hint="Create or restore it first; then acknowledge what is shown.",
            )

    def _acknowledged_fault(self, request: Request) -> tuple[SluiceError, Fault]:
        cause, error = request.body.get("cause"), self._guard.fault()
        fault = None if error is None else Fault.of(error)
        if fault is None or fault.type != cause:
            now = "nothing waits" if fault is None else f'"{fault.type}" waits'
            raise NothingToAcknowledgeError(
                f'"{cause}" was acknowledged, but {now} for an acknowledgement',
                hint="Look at the job's status; acknowledge the fault that it shows.",
            )
        assert error is not None, "a fault is of an error"
        return error, fault

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Hold the turn, so that no batch runs, not even of a stopped loop."""
        if not self.turn.acquire(timeout=_BATCH_ENDS_S):
            raise RequestError(
                "a batch of the stopped loop is still running", hint="Try it again soon."
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
        newest = max(-1 if pin is None else pin.batch, self._newest_committed())
        directory = self.lives.next_directory()
        topics = old.topics.identified(view.topic_ids)
        gaps = [gap.as_json(topics) for gap in resumed.gaps]
        record = record_of(request, choice=choice, message=fault.message, gaps=gaps)
        record["life"] = directory
        life = Life(
            directory=directory,
            first_batch=max(old.first_batch, 1 + newest),
            topics=topics,
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
    reason_of(request)
    choice = request.body.get("choice") or fault.choices[0]
    if choice not in fault.choices:
        raise RequestError(
            f'"{fault.type}" was acknowledged with "{choice}", expected {", ".join(fault.choices)}',
            hint="Choose one of these, or stop the job.",
        )
    return str(choice)
