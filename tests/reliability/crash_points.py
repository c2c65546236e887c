"""Experiment `crash-points`: a fault at every point of the batch protocol that can have one.

A case is a point, an action and a position: the first batch of a run, one in the middle, the last.
A run is one job that meets several cases, each exactly once, and the independent oracle judges what
it has written. `--list` shows all cases, and why the others cannot exist.

One more job, `shapes`, has no table and several outputs (`crash_shapes`): C14 is between two.

Every point is a failpoint of ours. C1 is passed when a loop begins: a fault at C3 of the same batch
makes one begin there.
"""

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tests.reliability.crash_shapes import judged_shapes, running_shapes
from tests.reliability.experiment import Lab, in_lanes, result
from tests.reliability.oracle import Verdict
from tests.reliability.processes import runner_of, send, stopped
from tests.reliability.subject import Subject, judged, os_names, running_subject
from tests.support.rig import running_rig
from tests.support.wait import wait_until

POINTS = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "C11", "C12")
ACTIONS = ("kill", "raise", "stop", "enospc")
FIRST, MID, LAST = POSITIONS = ("first", "mid", "last")
_NO_WRITE = "nothing is written between this point and the next"
IMPOSSIBLE = {
    ("C1", "enospc"): f"{_NO_WRITE}: what an earlier loop has left is only read, or removed",
    ("C3", "enospc"): f"{_NO_WRITE}: the pin is durable, the index is only mapped",
    ("C4", "enospc"): f"{_NO_WRITE}: the driver waits; the workers' writes follow C5",
    ("C9", "enospc"): f"{_NO_WRITE}: the loop only goes on",
    ("C10", "enospc"): "the next write is the next batch's pin, which is C2 enospc",
}
_GROUPS = (("C2", "C4", "C6", "C8"), ("C3", "C5", "C7", "C9"), ("C1", "C10", "C11", "C12"))
_BUILD = ("C11", "C12")
_BATCH_S = 120.0  # several times
_REPLAYED = 8


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
    pairs = [(point, action) for point in POINTS for action in ACTIONS]
    possible = [pair for pair in pairs if pair not in IMPOSSIBLE]
    return [Case(*pair, position) for pair in possible for position in POSITIONS]


def listing() -> list[str]:
    """What `--list` shows."""
    lines = [f"{case}" for case in all_cases()]
    for (point, action), reason in IMPOSSIBLE.items():
        lines.append(f"{point} {action}: cannot exist, {reason}")
    total = len(POINTS) * len(ACTIONS) * len(POSITIONS)
    lines.append(f"{len(all_cases())} of {total} combinations exist")
    return lines


def full_runs() -> dict[str, tuple[Case, ...]]:
    """Name of a run → its cases; the pauses take longest and come first."""
    runs = {}
    for action in ("stop", "kill", "raise", "enospc"):
        for number, group in enumerate(_GROUPS):
            cases = [c for c in all_cases() if c.action == action and c.point in group]
            runs[f"{action}-{number + 1}"] = tuple(cases)
    return {name: cases for name, cases in runs.items() if cases}


def small_runs() -> dict[str, tuple[Case, ...]]:
    return {
        "mixed": (
            Case("C11", "raise", FIRST),
            Case("C2", "raise", FIRST),
            Case("C5", "kill", FIRST),
            Case("C1", "kill", MID),
            Case("C4", "stop", MID),
            Case("C6", "enospc", MID),
            Case("C7", "kill", MID),
            Case("C12", "raise", MID),
            Case("C8", "raise", LAST),
            Case("C10", "kill", LAST),
        )
    }


SHAPES = "shapes"


def shapes_cases(lab: Lab) -> tuple[Case, ...]:
    small = (
        Case("C2", "raise", FIRST),
        Case("C14", "kill", FIRST),
        Case("C5", "kill", MID),
        Case("C6", "enospc", MID),
        Case("C14", "raise", MID),
        Case("C7", "kill", LAST),
    )
    more = (
        Case("C4", "kill", FIRST),
        Case("C14", "stop", FIRST),
        Case("C7", "stop", MID),
        Case("C8", "kill", MID),
        Case("C14", "kill", LAST),
        Case("C8", "raise", LAST),
    )
    return (*small, *more) if lab.full else small


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
        store=lab.options.get("store"),
        runs={o.name: o.seconds for o in outcomes},
        impossible=len(IMPOSSIBLE) * len(POSITIONS),
    )


def _chosen_runs(lab: Lab) -> dict[str, tuple[Case, ...]]:
    """The scale's runs, or with `--only` one of the full scale's."""
    only = lab.options.get("only")
    every = full_runs() if lab.full or only else small_runs()
    if not lab.is_captured and lab.store is None:
        every[SHAPES] = shapes_cases(lab)
    return {only: every[only]} if only else every


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
    begun, sizes = time.monotonic(), _sizes(lab)
    if name == SHAPES:
        sizes = replace(sizes, build=dict.fromkeys(POSITIONS, -1))  # nothing is built
    faults = _failpoints(cases, sizes)
    entries = [*faults.values(), *_beginnings(cases, sizes)]
    given = {
        "failpoints": ";".join(entries),
        "restart_backoff_max_s": 1.0,
        "warehouse": lab.warehouse,
    }
    with running_rig(lab.place(name), lab.kafka, lab.mariadb, **given) as rig, ExitStack() as open_:
        if name == SHAPES:
            subject, kept = open_.enter_context(running_shapes(lab, rig))
        else:
            subject = open_.enter_context(running_subject(lab, rig, users=sizes.users))
        troubled = TroubledRun(subject, sizes)
        troubled.run()
        troubled.meet(list(faults.values()))
        missed = tuple(str(case) for case in cases if not troubled.was_met(faults[case]))
        verdict = judged_shapes(subject, kept) if name == SHAPES else judged(subject)
    return Outcome(name, cases, missed, verdict, round(time.monotonic() - begun, 1))


def _sizes(lab: Lab) -> Sizes:
    return Sizes(
        probe=dict(zip(POSITIONS, lab.size((0, 2, 4), (0, 4, 8)), strict=True)),
        build=dict(zip(POSITIONS, lab.size((0, 8, 10), (0, 10, 20)), strict=True)),
        burst=lab.size(300, 2_000),
        users=lab.size(500, 5_000),
        pause_s=lab.size(2.0, 30.0),
    )


def _failpoints(cases: tuple[Case, ...], sizes: Sizes) -> dict[Case, str]:
    """The entry of SLUICE_FAILPOINTS for each case."""
    entries = {}
    for case in cases:
        batches = sizes.build if case.point in _BUILD else sizes.probe
        entries[case] = f"{case.point}={case.action}#{batches[case.position]}"
    return entries


def _beginnings(cases: tuple[Case, ...], sizes: Sizes) -> list[str]:
    return [f"C3=raise#{sizes.probe[case.position]}" for case in cases if case.point == "C1"]


class TroubledRun:
    """Feeds a job batch by batch, and continues what is halted."""

    def __init__(self, subject: Subject, sizes: Sizes) -> None:
        self._subject = subject
        self._sizes = sizes

    def run(self) -> None:
        """All batches of the run."""
        subject, last = self._subject, self._sizes.probe[LAST]
        subject.clicks.send(self._sizes.burst)  # held until the gate opens
        self._attend(lambda: subject.newest_batch() >= 0, "the gate opens")
        self._attend(subject.idle, "the first batch is committed")
        for number in range(1, last + 1):
            self._change(until_last=number == last)
            self._feed(number)
        newest = subject.newest_batch()
        if newest != last:
            raise AssertionError(f"the newest batch is {newest}, expected {last}")

    def meet(self, entries: Sequence[str]) -> None:
        with suppress(TimeoutError):
            self._attend(lambda: all(map(self.was_met, entries)), "all faults")

    def was_met(self, entry: str) -> bool:
        return entry in os_names(self._subject.checkpoint / "failpoints")

    def _replay(self, verdict: Verdict) -> None:
        """Some of the batches again, the newest first."""
        subject, newest = self._subject, self._subject.newest_batch()
        for batch in range(newest, -1, -max(1, newest // _REPLAYED)):
            url = f"/v1/jobs/{subject.job.id}/batches/{batch}:replay?diff=true"
            answer = subject.rig.client.post(url).json()
            if answer.get("verdict") not in ("identical", "nothing-to-compare"):
                verdict.note("wrong_value", 1, f"batch {batch}: {str(answer)[:300]}")

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
        self._send()
        self._attend(self._subject.idle, f"batch {number} is committed")

    def _send(self) -> None:
        """The records of one batch: a loop that sees a part of them would make two."""
        runner = wait_until(partial(runner_of, self._subject.directory), what="the runner lives")
        runner.suspend()
        try:
            self._subject.clicks.send(self._sizes.burst)
        finally:
            send(runner, signal.SIGCONT)

    def _attend(self, done: Callable[[], bool], what: str) -> None:
        """Wait until `done`, and continue whatever halts meanwhile."""

        def look() -> bool:
            if done():
                return True
            for process in stopped(self._subject.directory):
                time.sleep(self._sizes.pause_s)
                send(process, signal.SIGCONT)
            return False

        try:
            wait_until(look, deadline_s=_BATCH_S, what=what)
        except TimeoutError as exc:
            raise TimeoutError(f"{exc}\n{self._subject.tell()}") from None
