"""Background work of a job: folds, trims, prunes, and maintenance of its tables."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog

from joins.adapters.delta.log import DeltaLog
from joins.adapters.kafka.cluster import KafkaCluster
from joins.batch.probe_control import ProbeControl
from joins.dimension.dimension import DimensionRuntime
from joins.dimension.fold import folded_version
from joins.dimension.maintenance import (
    ChangelogMaintenance,
    CurrentMaintenance,
    DimensionKey,
    LetterMaintenance,
    OutputMaintenance,
    StateMaintenance,
    Upkeep,
    UpkeepSettings,
)
from joins.durable.leases import (
    StateLease,
    leases_in,
    oldest_kept,
    oldest_leased,
    oldest_of_shared,
)
from joins.job.parts import JobParts
from joins.plan.causes import cause_of
from joins.worker.work import enter_pool

PATIENCE_S = 20.0
SLOW_S = 60.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class UpkeepFault:
    """A kind of work that fails or does not end."""

    part: str
    since_ms: int  # when its first attempt failed, or when the running one began
    failures: int = 0  # attempts since the last success
    error: str | None = None  # of the newest attempt; None while the first one runs
    hint: str = "Look at the load of the machine, and at the runner's log."

    @property
    def text(self) -> str:
        minutes = max(0, time.time_ns() // 1_000_000 - self.since_ms) // 60_000
        if self.error is None:
            return f"background work ({self.part}) has not ended for {minutes or 'about 1'} min"
        times = "once" if self.failures == 1 else f"{self.failures} times"
        lasts = f" in {minutes} min" if minutes else ""
        return f"background work ({self.part}) has failed {times}{lasts}: {self.error}"


class UpkeepAttempts:
    """The attempts of one job; one thread calls `run`, any thread `conditions`.

    Args:
        stopping: once set, no attempt begins and no failure is reported.
        enter: called first on each attempt's thread.
        patience_s: how long `run` waits for an attempt to end.
        slow_s: how long an attempt may run before it is reported.
    """

    def __init__(
        self,
        stopping: threading.Event,
        enter: Callable[[], object] = lambda: None,
        *,
        patience_s: float = PATIENCE_S,
        slow_s: float = SLOW_S,
    ) -> None:
        self._stopping = stopping
        self._enter = enter
        self._patience_s = patience_s
        self._slow_s = slow_s
        self._running: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self._begun: Mapping[str, int] = {}
        self._failed: Mapping[str, UpkeepFault] = {}

    def run(
        self, part: str, work: Callable[[], object], *, not_beside: Collection[str] = ()
    ) -> None:
        """Begin `work` unless its part, or one in `not_beside`, is still running."""
        if self._stopping.is_set() or any(map(self.is_running, (part, *not_beside))):
            return
        thread = threading.Thread(
            target=self._attempt, args=(part, work), name=f"upkeep: {part}", daemon=True
        )
        self._running[part] = thread
        with self._lock:
            self._begun = {**self._begun, part: time.time_ns() // 1_000_000}
        try:
            thread.start()
        except RuntimeError as exc:  # there is no room for a thread
            self._ended(part, exc)
            return
        end = time.monotonic() + self._patience_s
        while thread.is_alive() and not self._stopping.is_set():
            left_s = end - time.monotonic()
            if left_s <= 0:
                return
            thread.join(min(0.5, left_s))

    def is_running(self, part: str) -> bool:
        thread = self._running.get(part)
        return thread is not None and thread.is_alive()

    def conditions(self) -> tuple[UpkeepFault, ...]:
        now_ms, begun, failed = time.time_ns() // 1_000_000, self._begun, self._failed
        slow = (
            UpkeepFault(part, at_ms)
            for part, at_ms in begun.items()
            if part not in failed and now_ms - at_ms > 1000 * self._slow_s
        )
        return (*failed.values(), *slow)

    def join(self, timeout_s: float) -> None:
        end = time.monotonic() + timeout_s
        for thread in list(self._running.values()):
            thread.join(max(0.0, end - time.monotonic()))

    def _attempt(self, part: str, work: Callable[[], object]) -> None:
        error: Exception | None = None
        try:
            self._enter()
            work()
        except Exception as exc:  # any error is retried
            error = exc
        self._ended(part, error)

    def _ended(self, part: str, error: Exception | None) -> None:
        with self._lock:
            self._begun = {name: at for name, at in self._begun.items() if name != part}
            others = {name: each for name, each in self._failed.items() if name != part}
            if error is None:
                self._failed = others
            elif not self._stopping.is_set():
                self._failed = {**others, part: self._after(part, error)}
        if error is not None and not self._stopping.is_set():
            _log.warning("background work failed; it is tried again", part=part, error=str(error))

    def _after(self, part: str, error: Exception) -> UpkeepFault:
        known = self._failed.get(part) or UpkeepFault(part, time.time_ns() // 1_000_000)
        cause = cause_of(error, "newest attempt")
        return replace(known, failures=known.failures + 1, error=cause.message, hint=cause.hint)


@dataclass(frozen=True, slots=True)
class JobLogs:
    """The tables of a job beside those of its dimensions; `letters` None without dead letters."""

    outputs: Sequence[DeltaLog] = ()
    letters: DeltaLog | None = None
    states: Sequence[DeltaLog] = ()


class UpkeepStep(NamedTuple):
    """One kind of upkeep; `not_beside` are parts that must not run meanwhile."""

    part: str
    work: Callable[[], object]
    not_beside: tuple[str, ...] = ()


def fold_part(table: str) -> str:
    return f'merging the changes of table "{table}"'


def current_part(table: str) -> str:
    return f'cleaning up the merged rows of table "{table}"'


class Maintenance:
    """All tables of one job; one caller at a time."""

    def __init__(
        self,
        dimensions: Sequence[DimensionRuntime],
        logs: JobLogs,
        epoch: int,
        settings: UpkeepSettings,
    ) -> None:
        self._dimensions = dimensions
        self._states = [StateMaintenance(Upkeep(log, epoch, settings)) for log in logs.states]
        self._changelogs = {
            d.dimension.name: ChangelogMaintenance(
                Upkeep(d.changelog, epoch, settings),
                _key(d),
            )
            for d in dimensions
        }
        self._currents = {
            d.dimension.name: CurrentMaintenance(Upkeep(d.current, epoch, settings))
            for d in dimensions
        }
        self._outputs = [OutputMaintenance(Upkeep(log, epoch, settings)) for log in logs.outputs]
        self._letters = [
            LetterMaintenance(Upkeep(log, epoch, settings)) for log in (logs.letters,) if log
        ]

    def steps(
        self,
        leased: Mapping[str, int],
        states: Sequence[StateLease] = (),
        oldest_batch: int | None = None,
    ) -> Iterator[UpkeepStep]:
        """The steps; each may fail without stopping the others.

        Args:
            leased: dimension → the oldest version that must stay readable.
            states: the same for each state table; none before the first batch.
            oldest_batch: the oldest batch whose pin is kept.
        """
        for dimension in self._dimensions:
            name = dimension.dimension.name
            yield UpkeepStep(
                f'cleaning up the changes of table "{name}"',
                partial(self._changelog, dimension, leased.get(name)),
            )
            current = self._currents[name].run
            yield UpkeepStep(current_part(name), current, (fold_part(name),))
        for at, state in enumerate(self._states):
            step = partial(state.run, states[at] if states else None)
            yield UpkeepStep(f"cleaning up state table {at + 1}", step)
        for at, output in enumerate(self._outputs):
            yield UpkeepStep(f"cleaning up output {at + 1}", output.run)
        for letters in self._letters:
            yield UpkeepStep(
                "cleaning up the dead letters", partial(letters.run_behind, oldest_batch)
            )

    def _changelog(self, dimension: DimensionRuntime, leased: int | None) -> None:
        folded = folded_version(dimension.current)
        upkeep = self._changelogs[dimension.dimension.name]
        upkeep.run(leased, folded, dimension.keeper.needed_from_ms)


def _key(runtime: DimensionRuntime) -> DimensionKey:
    dimension = runtime.dimension
    rowtime = None if dimension.watermark is None else dimension.watermark.rowtime
    return DimensionKey(dimension.primary_key, runtime.places.partitions, rowtime)


_TRIM_EVERY_S = 20.0


class JobUpkeep:
    """A thread that works until `stopping` and retries failed work in its next round.

    `conditions` names each kind of work that fails or does not end.
    """

    def __init__(self, parts: JobParts, control: ProbeControl, stopping: threading.Event) -> None:
        self._parts = parts
        self._control = control
        self._stopping = stopping
        states = () if parts.event is None else parts.event.tables.states
        logs = [each.log for each in states]
        ours = (parts.dead_letters, *logs)
        self._own = [dimension for dimension in parts.dimensions if dimension.is_own]
        self._maintenance = Maintenance(
            self._own,
            JobLogs(
                # Of two INSERTs into one table the later commits last: what it has, both have.
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
        self._attempts = UpkeepAttempts(stopping, partial(enter_pool, parts.spark, "fold"))
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join(timeout=15)
        self._attempts.join(15)

    def conditions(self) -> tuple[UpkeepFault, ...]:
        return self._attempts.conditions()

    def _run(self) -> None:
        """At a lower priority than both sides."""
        settings, attempt = self._parts.settings, self._attempts.run
        trimmed_at = maintained_at = time.monotonic()
        interval_s = min(settings.fold_interval_s, settings.maintenance_interval_s)
        while not self._stopping.wait(interval_s):
            for dimension in self._parts.dimensions:
                name = dimension.dimension.name
                fold = partial(dimension.fold, self._parts.spark, settings.fold)
                attempt(fold_part(name), fold, not_beside=[current_part(name)])
            if time.monotonic() - trimmed_at >= min(_TRIM_EVERY_S, settings.maintenance_interval_s):
                attempt("deleting committed changes from Kafka", self._trim)
                attempt("deleting old lookup indexes and pins", self._prune)
                trimmed_at = time.monotonic()
            if time.monotonic() - maintained_at >= settings.maintenance_interval_s:
                self._keep_up()
                maintained_at = time.monotonic()

    def _keep_up(self) -> None:
        plans: list[list[UpkeepStep]] = []
        self._attempts.run(
            "planning the clean-up of tables", lambda: plans.append([*self._steps()])
        )
        for step in (step for steps in plans for step in steps):
            self._attempts.run(step.part, step.work, not_beside=step.not_beside)

    def _steps(self) -> Iterator[UpkeepStep]:
        pins, kept = self._parts.checkpoint.pins_directory, self._parts.settings.replay_batches
        leased = self._leased(pins, kept)
        for dimension in self._parts.dimensions:
            name = dimension.dimension.name
            yield UpkeepStep(
                f'keeping old versions of table "{name}"',
                partial(dimension.keep, leased.get(name)),
            )
        oldest = oldest_kept(pins, kept)
        batch = None if oldest is None else oldest.batch
        yield from self._maintenance.steps(leased, self._state_leases(), batch)

    def _leased(self, pins: Path, kept: int) -> dict[str, int]:
        """Dimension → the oldest version that must stay readable."""
        ready = {d.dimension.name: d.keeper.ready_version for d in self._parts.dimensions}
        if self._parts.plan.shared_table is not None:
            return oldest_of_shared(leases_in(self._parts.checkpoint.directory), ready)
        return oldest_leased(pins, kept, self._parts.opening.view().versions_at_open, ready)

    def _state_leases(self) -> tuple[StateLease, ...]:
        """For each state table, the version that the newest batch has read and the oldest kept."""
        pin, event = self._control.pins.newest(), self._parts.event
        if pin is None or pin.event is None or event is None:
            return ()
        kept = oldest_kept(
            self._parts.checkpoint.pins_directory, self._parts.settings.replay_batches
        )
        needed = pin.event.state_versions
        replayed = needed if kept is None else kept.of_event.state_versions
        names = [each.log.path.name for each in event.tables.states]
        return tuple(StateLease(int(needed[n]), int(replayed[n])) for n in names)

    def _prune(self) -> None:
        done, pin = self._control.progress.counts.batch, self._control.pins.newest()
        needed = {} if pin is None or (done is not None and done >= pin.batch) else pin.versions
        for dimension in self._parts.dimensions:
            dimension.keeper.prune(needed.get(dimension.dimension.name))
        self._control.pins.prune(self._parts.settings.replay_batches)

    def _trim(self) -> None:
        cluster = KafkaCluster(self._parts.changelog_kafka)
        for dimension in self._own:
            if dimension.topic is not None:
                dimension.topic.trim(cluster, dimension.trimmable_offsets)
