"""What a job does behind its batches: folds, trims, prunes, and keeps its tables small."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from joins.adapters.kafka.cluster import KafkaCluster
from joins.batch.probe_control import ProbeControl
from joins.dimension.maintenance import UpkeepSettings
from joins.durable.leases import (
    StateLease,
    leases_in,
    oldest_kept,
    oldest_leased,
    oldest_of_shared,
)
from joins.job.attempts import UpkeepAttempts, UpkeepFault
from joins.job.maintenance import JobLogs, Maintenance
from joins.job.parts import JobParts
from joins.worker.work import enter_pool

_TRIM_EVERY_S = 20.0
Steps = list[tuple[str, Callable[[], object]]]


class JobUpkeep:
    """A thread that works until `stopping`; what fails is tried again in its next round.

    Each kind of work has a name, under which `conditions` tells that it fails or does not end.
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
        """Fold, trim and keep the tables small, at a lower priority than both sides."""
        settings, attempt = self._parts.settings, self._attempts.run
        trimmed_at = maintained_at = time.monotonic()
        interval_s = min(settings.fold_interval_s, settings.maintenance_interval_s)
        while not self._stopping.wait(interval_s):
            for dimension in self._parts.dimensions:
                name = dimension.dimension.name
                fold = partial(dimension.fold, self._parts.spark, settings.fold)
                attempt(f"fold {name}", fold, not_beside=[f"upkeep {name} current"])
            if time.monotonic() - trimmed_at >= min(_TRIM_EVERY_S, settings.maintenance_interval_s):
                attempt("trim", self._trim)
                attempt("prune", self._prune)
                trimmed_at = time.monotonic()
            if time.monotonic() - maintained_at >= settings.maintenance_interval_s:
                self._keep_up()
                maintained_at = time.monotonic()

    def _keep_up(self) -> None:
        """Compaction and clean-up of every table, below what is leased."""
        plans: list[Steps] = []
        self._attempts.run("plan of the upkeep", lambda: plans.append([*self._steps()]))
        for part, work in (step for steps in plans for step in steps):
            name = part.removeprefix("upkeep ").removesuffix(" current")
            self._attempts.run(part, work, not_beside=[f"fold {name}"] if "current" in part else ())

    def _steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """What there is to do, by name."""
        pins, kept = self._parts.checkpoint.pins_directory, self._parts.settings.replay_batches
        leased = self._leased(pins, kept)
        for dimension in self._parts.dimensions:
            name = dimension.dimension.name
            yield f"lease {name}", partial(dimension.keep, leased.get(name))
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
        """The versions of the state that the newest batch has read, and the kept ones before."""
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
        """Index versions and pins that no batch needs any more."""
        done, pin = self._control.progress.counts.batch, self._control.pins.newest()
        needed = {} if pin is None or (done is not None and done >= pin.batch) else pin.versions
        for dimension in self._parts.dimensions:
            dimension.keeper.prune(needed.get(dimension.dimension.name))
        self._control.pins.prune(self._parts.settings.replay_batches)

    def _trim(self) -> None:
        cluster = KafkaCluster(self._parts.changelog_kafka)
        for dimension in self._own:
            dimension.trim_topic(cluster)
