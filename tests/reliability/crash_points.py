"""Experiment `crash-points`: a fault at every point of the batch protocol that can have one.

A case is a point, an action and a position: the first batch of a run, one in the middle, the last.
A run is one job that meets several cases, each exactly once, and the independent oracle judges what
it has written. `--list` shows all cases, and why the others cannot exist.

C2 to C9, C11 and C12 are failpoints of ours. C1 and C10 lie inside Spark (between planning and its
offset log, and at its commit log; part 3's text calls them C3 and C10): they are made from outside.

| case | how it is made |
|---|---|
| C1 kill | the runner is halted at C2, the offset log's entry removed, JVM and runner killed |
| C1 stop | the JVM is halted before the batch's records come |
| C1 enospc | the JVM may write no file when it comes to the offset log |
| C10 kill | JVM and runner are killed after the batch, the commit log's entry removed |
| C10 stop | the runner is halted at C9, then the JVM instead |
| C10 enospc | the runner is halted at C9; its JVM may write no file when it goes on |
| C10 power | as C10 kill, but the offset log's entry is lost, too: Spark fsyncs neither |
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests.reliability.experiment import Lab, in_lanes, result
from tests.reliability.oracle import Verdict
from tests.reliability.processes import (
    jvm_of,
    kill_hard,
    no_room_to_write,
    runner_of,
    send,
    stopped,
)
from tests.reliability.subject import Subject, judged, os_names, running_subject
from tests.support.rig import running_rig
from tests.support.wait import wait_until

POINTS = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "C11", "C12")
ACTIONS = ("kill", "raise", "stop", "enospc")
POWER = "power"
FIRST, MID, LAST = POSITIONS = ("first", "mid", "last")
_IN_SPARK = "no code of ours runs there; Spark's own failure there is its write, which is enospc"
_NO_WRITE = "nothing is written between this point and the next"
IMPOSSIBLE = {
    ("C1", "raise"): _IN_SPARK,
    ("C3", "enospc"): f"{_NO_WRITE}: the pin is durable, the index is only mapped",
    ("C4", "enospc"): f"{_NO_WRITE}: the driver waits; the workers' writes follow C5",
    ("C9", "enospc"): "nothing of ours is written after it; the next write is Spark's, C10 enospc",
    ("C10", "raise"): _IN_SPARK,
}
_GROUPS = (("C2", "C4", "C6", "C8"), ("C3", "C5", "C7", "C9"), ("C1", "C10", "C11", "C12"))
_BUILD = ("C11", "C12")
_TOOLS = {("C1", "kill"): "C2", ("C10", "stop"): "C9", ("C10", "enospc"): "C9"}
_BATCH_S = 120.0


@dataclass(frozen=True)
class Case:
    """One fault."""

    point: str
    action: str
    position: str

    def __str__(self) -> str:
        return f"{self.point} {self.action} {self.position}"


@dataclass(frozen=True)
class Sizes:
    """How large a run is; batches by position, of the probe and of the build side."""

    probe: dict[str, int]
    build: dict[str, int]
    burst: int
    users: int
    pause_s: float


@dataclass(frozen=True)
class Outcome:
    """What became of one run."""

    name: str
    cases: tuple[Case, ...]
    missed: tuple[str, ...]
    verdict: Verdict
    seconds: float

    @property
    def passed(self) -> int:
        return len(self.cases) - len(self.missed) if self.verdict.ok else 0


def all_cases() -> list[Case]:
    """Every combination that can exist, and a power failure after the batch."""
    pairs = [(point, action) for point in POINTS for action in ACTIONS]
    possible = [*(pair for pair in pairs if pair not in IMPOSSIBLE), ("C10", POWER)]
    return [Case(*pair, position) for pair in possible for position in POSITIONS]


def listing() -> list[str]:
    """What `--list` shows."""
    lines = [f"{case}" for case in all_cases()]
    for (point, action), reason in IMPOSSIBLE.items():
        lines.append(f"{point} {action}: cannot exist, {reason}")
    total = len(POINTS) * len(ACTIONS) * len(POSITIONS)
    power = len(POSITIONS)
    lines.append(
        f"{len(all_cases()) - power} of {total} combinations exist; {power} more: C10 power"
    )
    return lines


def full_runs() -> dict[str, tuple[Case, ...]]:
    """Name of a run → its cases; the pauses take longest and come first."""
    runs = {}
    for action in ("stop", "kill", "raise", "enospc", POWER):
        for number, group in enumerate(_GROUPS):
            cases = [c for c in all_cases() if c.action == action and c.point in group]
            runs[f"{action}-{number + 1}"] = tuple(cases)
    return {name: cases for name, cases in runs.items() if cases}


def small_runs() -> dict[str, tuple[Case, ...]]:
    """One job that meets a fault of each kind."""
    return {
        "mixed": (
            Case("C11", "raise", FIRST),
            Case("C2", "raise", FIRST),
            Case("C5", "kill", FIRST),
            Case("C1", "enospc", MID),
            Case("C4", "stop", MID),
            Case("C6", "enospc", MID),
            Case("C7", "kill", MID),
            Case("C12", "raise", MID),
            Case("C8", "raise", LAST),
            Case("C10", "kill", LAST),
        )
    }


def run(lab: Lab) -> dict[str, Any]:
    """All cases; three jobs at a time at full scale, because pauses only wait."""
    runs = _chosen_runs(lab)
    cases = sum(len(found) for found in runs.values())
    outcomes = in_lanes(lab.size(1, 3), partial(_attempt, lab), runs.items())
    missed = [f"{o.name}: {case}" for o in outcomes for case in o.missed]
    return result(
        lab,
        "crash-points",
        cases,
        sum(outcome.passed for outcome in outcomes),
        [outcome.verdict for outcome in outcomes],
        not_met=missed,
        writer=lab.writer,
        runs={o.name: o.seconds for o in outcomes},
        impossible=len(IMPOSSIBLE) * len(POSITIONS),
    )


def _chosen_runs(lab: Lab) -> dict[str, tuple[Case, ...]]:
    """The scale's runs, or with `--only` one of the full scale's."""
    only = lab.options.get("only")
    if only:
        return {only: full_runs()[only]}
    return full_runs() if lab.full else small_runs()


def _attempt(lab: Lab, named: tuple[str, tuple[Case, ...]]) -> Outcome:
    """One run; one that breaks off has met nothing."""
    name, cases = named
    begun = time.monotonic()
    try:
        outcome = run_cases(lab, name, cases)
    except (TimeoutError, AssertionError) as exc:
        lab.say(f"{name} broke off: {str(exc)[:3000]}")
        missed = tuple(map(str, cases))
        verdict = Verdict(examples=[f"{name} broke off: {str(exc)[:300]}"])
        outcome = Outcome(name, cases, missed, verdict, round(time.monotonic() - begun, 1))
    lab.say(f"{name}: {outcome.passed} of {len(cases)} in {outcome.seconds} s {outcome.missed}")
    return outcome


def run_cases(lab: Lab, name: str, cases: tuple[Case, ...]) -> Outcome:
    """One job that meets `cases`, and the verdict."""
    begun, sizes = time.monotonic(), _sizes(lab, first=_first_batch(cases))
    faults = _failpoints(cases, sizes)
    given = {"failpoints": ";".join(faults.values()), "restart_backoff_max_s": 1.0}
    with (
        running_rig(lab.place(name), lab.kafka, lab.mariadb, **given) as rig,
        running_subject(lab, rig, users=sizes.users) as subject,
    ):
        troubled = TroubledRun(subject, cases, sizes)
        troubled.run()
        missed = tuple(str(case) for case in cases if not troubled.was_met(case, faults))
        verdict = judged(subject)
    return Outcome(name, cases, missed, verdict, round(time.monotonic() - begun, 1))


def _first_batch(cases: tuple[Case, ...]) -> int:
    """The run's first batch with records.

    It is 0 when records are held at the opening. A job that holds none begins with an empty batch;
    a fault before the plan of the first batch needs that, else it would come at the opening.
    """
    return int(any(case.point == "C1" and case.position == FIRST for case in cases))


def _sizes(lab: Lab, *, first: int) -> Sizes:
    batches = (first + n for n in lab.size((0, 2, 4), (0, 4, 8)))
    return Sizes(
        probe=dict(zip(POSITIONS, batches, strict=True)),
        build=dict(zip(POSITIONS, lab.size((0, 8, 10), (0, 10, 20)), strict=True)),
        burst=lab.size(300, 2_000),
        users=lab.size(500, 5_000),
        pause_s=lab.size(2.0, 30.0),
    )


def _failpoints(cases: tuple[Case, ...], sizes: Sizes) -> dict[Case, str]:
    """The entry of SLUICE_FAILPOINTS for each case that needs one."""
    entries = {}
    for case in cases:
        batches = sizes.build if case.point in _BUILD else sizes.probe
        tool = _TOOLS.get((case.point, case.action))
        if tool is not None:
            entries[case] = f"{tool}=stop#{batches[case.position]}"
        elif case.point not in ("C1", "C10"):
            entries[case] = f"{case.point}={case.action}#{batches[case.position]}"
    return entries


class TroubledRun:
    """Feeds a job batch by batch, makes the faults inside Spark, and continues what is halted."""

    def __init__(self, subject: Subject, cases: tuple[Case, ...], sizes: Sizes) -> None:
        self._subject = subject
        self._cases = cases
        self._sizes = sizes
        self._made: set[Case] = set()
        self._continued: set[str] = set()
        self._shift = 0  # batches that a lost checkpoint has added
        self._handlers = dict(self._stop_handlers())

    def run(self) -> None:
        """All batches of the run."""
        subject, first, last = self._subject, self._sizes.probe[FIRST], self._sizes.probe[LAST]
        if first == 0:
            subject.clicks.send(self._sizes.burst)  # held until the gate opens
        self._attend(lambda: subject.newest_batch() >= 0, "the gate opens")
        self._attend(subject.idle, "the first batch is committed")
        for number in range(first, last + 1):
            if number > 0:
                self._change(until_last=number == last)
                self._feed(number)
            self._lose_entries(number)
        newest = subject.newest_batch()
        if newest != last + self._shift:
            told = f"the newest batch is {newest}, expected {last + self._shift}"
            raise AssertionError(told)

    def was_met(self, case: Case, faults: dict[Case, str]) -> bool:
        """Whether the fault happened: its marker is there, and what was made from outside is."""
        entry = faults.get(case)
        marked = entry is None or entry in self._markers()
        outside = case.point not in ("C1", "C10") or case in self._made
        return marked and outside

    def _markers(self) -> list[str]:
        return os_names(self._subject.checkpoint / "failpoints")

    def _position(self, batch: int) -> str:
        return next((p for p, n in self._sizes.probe.items() if n == batch), "")

    # Feeding
    # ------------------------------------------------------------------------------------------

    def _change(self, *, until_last: bool) -> None:
        """A change or two of the database, each a build batch; all that are due before the end."""
        subject, wanted = self._subject, self._sizes.build[LAST]
        for _ in range(100 if until_last else 2):
            newest = subject.newest_build_batch()
            if newest >= wanted:
                return
            subject.changes.one()
            self._attend(lambda n=newest: subject.newest_build_batch() > n, "a change is committed")

    def _feed(self, number: int) -> None:
        """One batch of records."""
        subject, position = self._subject, self._position(number)
        send_burst = partial(subject.clicks.send, self._sizes.burst)
        if Case("C1", "stop", position) in self._cases:
            self._plan_late(Case("C1", "stop", position), send_burst)
        elif Case("C1", "enospc", position) in self._cases:
            self._cannot_plan(Case("C1", "enospc", position), send_burst)
        else:
            send_burst()
        self._attend(subject.idle, f"batch {number} is committed")

    def _attend(self, done: Callable[[], bool], what: str) -> None:
        """Wait until `done`, and continue whatever halts meanwhile."""
        deadline = time.monotonic() + _BATCH_S + 5 * self._sizes.pause_s
        while not done():
            for process in stopped(self._subject.directory):
                self._release(process)
            if time.monotonic() > deadline:
                raise TimeoutError(f"not in time: {what}\n{self._subject.tell()}")
            time.sleep(0.05)

    def _release(self, process: psutil.Process) -> None:
        """A process was halted by a failpoint: do what the case wants, or continue it later."""
        halted = {m for m in self._markers() if "=stop#" in m} - self._continued
        for entry in sorted(halted)[:1]:
            self._continued.add(entry)
            handler = self._handlers.get(entry)
            if handler is not None:
                handler(process)
                return
        time.sleep(self._sizes.pause_s)
        send(process, signal.SIGCONT)

    # Faults inside Spark
    # ------------------------------------------------------------------------------------------

    def _stop_handlers(self) -> Iterator[tuple[str, Callable[[psutil.Process], None]]]:
        actions = {
            ("C1", "kill"): self._lose_plan,
            ("C10", "stop"): self._halt_jvm,
            ("C10", "enospc"): self._cannot_commit,
        }
        for case in self._cases:
            action = actions.get((case.point, case.action))
            if action is not None:
                batch = self._sizes.probe[case.position]
                tool = _TOOLS[case.point, case.action]
                yield f"{tool}=stop#{batch}", partial(action, case)

    def _jvm(self) -> psutil.Process:
        return wait_until(partial(jvm_of, self._subject.directory), what="the JVM lives")

    def _entry(self, log: str, batch: int) -> Path:
        directory, first = self._subject.life()
        return directory / log / str(batch - first)

    def _lose_plan(self, case: Case, runner: psutil.Process) -> None:
        """C1 kill: what Spark had planned is nowhere, as if it had died before its offset log."""
        _forget(self._entry("offsets", self._sizes.probe[case.position]))
        kill_hard(self._jvm(), runner)
        self._made.add(case)

    def _lose_entries(self, number: int) -> None:
        """C10 kill and power: the batch is done, what Spark's logs say of it is not there."""
        for action, lose in (("kill", self._lose_commit), (POWER, self._lose_both)):
            case = Case("C10", action, self._position(number))
            if case in self._cases:
                batch = number + self._shift
                self._attend(lambda b=batch: self._subject.progress().get("batch") == b, "it ends")
                lose(batch)
                self._made.add(case)

    def _lose_commit(self, batch: int) -> None:
        entry = self._entry("commits", batch)
        self._forget_and_kill(entry)
        self._attend(entry.exists, f"batch {batch} is committed again")

    def _lose_both(self, batch: int) -> None:
        """The output has more than Spark knows: a new checkpoint begins, with an empty batch."""
        before = self._subject.life()
        self._forget_and_kill(self._entry("commits", batch), self._entry("offsets", batch))
        self._attend(
            lambda: self._subject.life() != before and self._subject.idle(), "it has gone on"
        )
        self._shift += 1

    def _forget_and_kill(self, *entries: Path) -> None:
        jvm = self._jvm()
        jvm.suspend()
        for entry in entries:
            _forget(entry)
        kill_hard(jvm, runner_of(self._subject.directory))

    def _halt_jvm(self, case: Case, runner: psutil.Process) -> None:
        """C10 stop: our part of the batch is done, Spark's commit log waits."""
        entry, jvm = self._entry("commits", self._sizes.probe[case.position]), self._jvm()
        with _halted(jvm):
            send(runner, signal.SIGCONT)
            time.sleep(self._sizes.pause_s)
            if not entry.exists():
                self._made.add(case)

    def _cannot_commit(self, case: Case, runner: psutil.Process) -> None:
        """C10 enospc: Spark cannot write its commit log."""
        entry = self._entry("commits", self._sizes.probe[case.position])
        with no_room_to_write(self._jvm()):
            send(runner, signal.SIGCONT)
            self._await_stall()
            if not entry.exists():
                self._made.add(case)

    def _plan_late(self, case: Case, send_burst: Callable[[], None]) -> None:
        """C1 stop: the JVM is halted when the records come."""
        before = self._subject.newest_batch()
        with _halted(self._jvm()):
            send_burst()
            time.sleep(self._sizes.pause_s)
            if self._subject.newest_batch() == before:
                self._made.add(case)

    def _cannot_plan(self, case: Case, send_burst: Callable[[], None]) -> None:
        """C1 enospc: Spark cannot write its offset log."""
        before = self._subject.newest_batch()
        with no_room_to_write(self._jvm()):
            send_burst()
            self._await_stall()
            if self._subject.newest_batch() == before:
                self._made.add(case)

    def _await_stall(self) -> None:
        """The job says that its probe does not go on, and why."""

        def told() -> bool:
            reason = self._subject.job.status()["reason"] or ""
            return reason.startswith("probe") and "too large" in reason

        wait_until(told, what="the job is STALLED because a file cannot be written")


def _forget(entry: Path) -> None:
    """Remove an entry of one of Spark's logs and its checksum."""
    entry.unlink()
    entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)


@contextmanager
def _halted(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    try:
        yield
    finally:
        send(process, signal.SIGCONT)
