"""Experiment `kill-storm`: SIGKILL to every kind of process while records and changes flow.

Killed are the runner, a Python worker of Spark, the daemon that workers come from, the CDC process
and the control plane (with `--source debezium` also Connect, and instead of the CDC process the one
that reads the connector's topic), in an order that the seed gives; every tenth kill meets the next
one within two seconds. After each the clock runs until the next batch is committed or the part is
back. A killed worker or daemon must cost a task retry only: the same runner, epoch and running
query.
"""

import json
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from tests.reliability.experiment import Lab, result
from tests.reliability.plane import PlaneProcess, rig_of_process
from tests.reliability.processes import (
    CDC,
    FEED,
    daemons_of,
    lives,
    members,
    runner_of,
    send,
    workers_of,
)
from tests.reliability.subject import Subject, judged, running_subject
from tests.support.beside import beside
from tests.support.wait import wait_until

RUNNER, WORKER, DAEMON, CDC_PROCESS, PLANE = "runner", "worker", "daemon", "cdc", "control-plane"
FEED_PROCESS, CONNECT = "feed", "connect"
_SHARES = {RUNNER: 40, WORKER: 25, DAEMON: 5, CDC_PROCESS: 20, PLANE: 10}
_CAPTURED = {RUNNER: 40, WORKER: 15, DAEMON: 5, FEED_PROCESS: 20, CONNECT: 15, PLANE: 5}
_SMALL = (WORKER, CDC_PROCESS, RUNNER, PLANE, DAEMON)
_SMALL_CAPTURED = (CONNECT, FEED_PROCESS, RUNNER)
_DOUBLE_EVERY = 10
_BAR_S = 30.0
_GIVE_UP_S = 600.0
_CHUNK = 1_000


@dataclass(frozen=True)
class Sizes:
    """How much flows."""

    users: int
    records: int
    changes_per_s: int
    gap_s: float


@dataclass(frozen=True)
class Recovery:
    """What one kill cost."""

    kind: str
    seconds: float
    quiet: bool

    @property
    def ok(self) -> bool:
        return self.quiet and self.seconds < _GIVE_UP_S


def run(lab: Lab) -> dict[str, Any]:
    """The storm, and the oracle's verdict of what the job has written."""
    sizes = Sizes(
        users=lab.size(20_000, 1_000_000),
        records=lab.size(100_000, 5_000_000),
        changes_per_s=lab.size(100, 500),
        gap_s=lab.size(0.5, 2.0),
    )
    given = {
        "restart_backoff_max_s": 1.0,
        "restart_limit": 10_000,
        "spark_driver_memory": lab.size("1g", "2g"),
        "warehouse": lab.warehouse,
    }
    with (
        rig_of_process(lab, "storm", **given) as (rig, plane),
        running_subject(lab, rig, users=sizes.users, partitions=4) as subject,
    ):
        subject.clicks.send(_CHUNK)
        subject.job.wait_for(lambda s: s["state"] == "JOINING", "it opens", deadline_s=600)
        subject.wait_drained()
        lab.say("the gate is open")
        storm = Storm(lab, subject, plane, sizes)
        recoveries = storm.run()
        lab.say(f"{subject.clicks.produced} records, {subject.changes.made} changes; the end")
        subject.wait_drained(deadline_s=900)
        verdict = judged(subject)
    return _summary(lab, recoveries, verdict, changes=subject.changes.made)


def _summary(lab: Lab, recoveries: list[Recovery], verdict: Any, *, changes: int) -> dict[str, Any]:
    seconds = sorted(recovery.seconds for recovery in recoveries)
    p95 = _quantile(seconds, 0.95)
    by_kind = {
        kind: [r.seconds for r in recoveries if r.kind == kind]
        for kind in dict.fromkeys(r.kind for r in recoveries)
    }
    restarts = sum(not r.quiet for r in recoveries)
    return result(
        lab,
        "kill-storm",
        len(recoveries),
        sum(r.ok for r in recoveries),
        [verdict],
        writer=lab.writer,
        kills={kind: len(found) for kind, found in by_kind.items()},
        recovery_p50_s=_quantile(seconds, 0.5),
        recovery_p95_s=p95,
        recovery_max_s=seconds[-1],
        recovery_p95_by_kind_s={kind: _quantile(sorted(f), 0.95) for kind, f in by_kind.items()},
        worker_kills_with_restart=restarts,
        changes=changes,
        ok=p95 <= lab.size(_GIVE_UP_S, _BAR_S),  # the small scale runs beside other tests
    )


def _quantile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


def kill_plan(lab: Lab) -> list[str]:
    """Which kind of process is killed when."""
    small = _SMALL_CAPTURED if lab.is_captured else _SMALL
    count = lab.cases(len(small), 100)
    if count <= len(small):
        return list(small[:count])
    shares = _CAPTURED if lab.is_captured else _SHARES
    total = sum(shares.values())
    plan = [kind for kind, share in shares.items() for _ in range(share * count // total)]
    plan += [RUNNER] * (count - len(plan))
    lab.random("plan").shuffle(plan)
    return plan


class Storm:
    """Kills by plan while records and changes flow."""

    def __init__(self, lab: Lab, subject: Subject, plane: PlaneProcess, sizes: Sizes) -> None:
        self._lab = lab
        self._subject = subject
        self._plane = plane
        self._sizes = sizes
        self._plan = kill_plan(lab)
        self._rng = lab.random("gaps")
        self._begun = time.monotonic()
        self._done = 0
        self._kills: Mapping[str, Callable[[], Callable[[], bool]]] = {
            RUNNER: self._kill_runner,
            WORKER: lambda: self._kill_python(WORKER),
            DAEMON: lambda: self._kill_python(DAEMON),
            CDC_PROCESS: lambda: self._kill_source(CDC, ".cdc.json"),
            FEED_PROCESS: lambda: self._kill_source(FEED, ".json"),
            CONNECT: self._kill_connect,
            PLANE: self._kill_plane,
        }

    def run(self) -> list[Recovery]:
        """All kills; then the rest of the records."""
        recoveries: list[Recovery] = []
        with beside(self._produce, self._change):
            while self._done < len(self._plan):
                double = self._done % _DOUBLE_EVERY == _DOUBLE_EVERY - 1
                kinds = self._plan[self._done : self._done + 1 + double]
                recoveries += self._kill(kinds)
                self._done += len(kinds)
                time.sleep(min(3 * self._sizes.gap_s, self._rng.expovariate(1 / self._sizes.gap_s)))
        return recoveries

    def _kill(self, kinds: list[str]) -> list[Recovery]:
        """One kill, or two within two seconds; then everything must come back."""
        quiet_kinds = all(kind in (WORKER, DAEMON) for kind in kinds)
        before, begun, backs = self._life(), time.monotonic(), []
        for number, kind in enumerate(kinds):
            if number:
                time.sleep(self._rng.uniform(0, 2))
            backs.append(self._kills[kind]())
        while not all(back() for back in backs):
            if time.monotonic() - begun > _GIVE_UP_S:
                raise TimeoutError(f"{kinds} did not come back\n{self._subject.tell()}")
            time.sleep(0.05)
        seconds = round(time.monotonic() - begun, 2)
        quiet = not quiet_kinds or self._life() == before
        number, produced = self._done + len(kinds), self._subject.clicks.produced
        told = "" if quiet else " with a restart"
        self._lab.say(f"kill {number} {'+'.join(kinds)}: {seconds} s{told}, {produced} records")
        return [Recovery(kind, seconds, quiet) for kind in kinds]

    def _life(self) -> tuple[int | None, int, int]:
        """Runner, epoch, and how many queries have ended: a killed worker changes none of them."""
        runner = runner_of(self._subject.directory)
        meta = json.loads((self._subject.checkpoint / "meta.json").read_text())
        log = (self._subject.directory / "runner.log").read_bytes()
        return None if runner is None else runner.pid, meta["epoch"], log.count(b'"query ended"')

    # Kills: each answers how to see that the part is back
    # ------------------------------------------------------------------------------------------

    def _batch(self) -> int:
        return int(self._subject.progress().get("batch") or 0)

    def _kill_runner(self) -> Callable[[], bool]:
        runner = wait_until(lambda: runner_of(self._subject.directory), what="the runner lives")
        send(runner, signal.SIGKILL)
        wait_until(lambda: not lives(runner), what="the runner is gone")
        before = self._batch()
        return lambda: self._batch() > before

    def _kill_python(self, kind: str) -> Callable[[], bool]:
        find = workers_of if kind == WORKER else daemons_of
        found = wait_until(lambda: find(self._subject.directory), what=f"a {kind} lives")
        send(self._rng.choice(found), signal.SIGKILL)
        before = self._batch()
        return lambda: self._batch() > before

    def _kill_source(self, module: str, suffix: str) -> Callable[[], bool]:
        """The process that reads the table; it is back once it has kept how far it is."""
        directory = self._subject.directory
        found = wait_until(lambda: members(directory, module), what=f"{module} lives")
        for process in found:
            send(process, signal.SIGKILL)
        pids, at = {process.pid for process in found}, time.time()
        boundary = self._subject.checkpoint / "sources" / f"user_info{suffix}"

        def back() -> bool:
            now = {process.pid for process in members(directory, module)}
            return bool(now - pids) and boundary.exists() and boundary.stat().st_mtime > at

        return back

    def _kill_connect(self) -> Callable[[], bool]:
        """It is back once it tells changes again."""
        captured = self._subject.captured
        assert captured is not None
        captured.kill()
        before = sum(captured.ends().values())
        captured.go_on()
        return lambda: sum(captured.ends().values()) > before

    def _kill_plane(self) -> Callable[[], bool]:
        self._plane.kill()
        self._plane.start()

        def back() -> bool:
            runner = runner_of(self._subject.directory)
            told = self._subject.job.status()["runner"]
            return runner is not None and told["pid"] == runner.pid and bool(told["alive"])

        return back

    # Flow
    # ------------------------------------------------------------------------------------------

    def _produce(self, ended: Event) -> None:
        """As fast as the kills go on, so that records flow until the last; then the rest."""
        clicks = self._subject.clicks
        while clicks.produced < self._sizes.records:
            clicks.send(min(_CHUNK, self._sizes.records - clicks.produced))
            ended.wait(_CHUNK / self._rate())

    def _rate(self) -> float:
        left = len(self._plan) - self._done
        each = (time.monotonic() - self._begun) / self._done if self._done else 10.0
        open_records = 0.95 * self._sizes.records - self._subject.clicks.produced
        return max(1_000.0, open_records / max(1.0, left * each))

    def _change(self, ended: Event) -> None:
        """Transactions of 25 rows, evenly."""
        rows, begun, first = 25, time.monotonic(), self._subject.changes.made
        while not ended.is_set():
            self._subject.changes.many(rows)
            made = self._subject.changes.made - first
            ended.wait(max(0.0, made / self._sizes.changes_per_s + begun - time.monotonic()))
