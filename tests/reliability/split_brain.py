"""Experiment `split-brain`: two runners of one job at the same time; exactly one goes on.

- same node: two runners are started at once; the lock of the checkpoint lets one in.
- two nodes: the same, but the lock file is replaced all the time; both get in, epochs decide.
- paused: a runner halts in the middle of a batch with all its processes, the lock file is replaced,
  a new one takes over and commits; then the old one wakes up.

In each case one runner ends with code 4 (not the owner), the other goes on and commits all records.
The oracle judges the output at the end.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import psutil

from joins.durable.checkpoint import read_json, write_json_atomically
from service.jobs.runner import EXIT_NOT_OWNER
from tests.reliability.experiment import Lab, in_lanes, result
from tests.reliability.oracle import Verdict
from tests.reliability.processes import kill_node, send, with_children
from tests.reliability.subject import Subject, judged, running_subject
from tests.support.beside import beside
from tests.support.rig import running_rig
from tests.support.wait import wait_until

SAME_NODE, TWO_NODES, PAUSED = "same node", "two nodes", "paused"
_PAUSED_AT = ("C7", "C9", "C6", "C3", "C8", "C2", "C12", "C4", "C11", "C7")
_ROOT = Path(__file__).resolve().parents[2]
_BURST = 200
_CASE_S = 600.0
_NODE = "NODE_OF_EXPERIMENT"


@dataclass
class Lane:
    """What one job has been through."""

    cases: int = 0
    failed: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)


def run(lab: Lab) -> dict[str, Any]:
    """All cases, over two jobs at full scale."""
    doubles = lab.cases(2, 50)
    pauses = lab.size(1, 10) if lab.options.get("cases") is None else max(1, doubles // 5)
    kinds = [TWO_NODES if number % 2 == 0 else SAME_NODE for number in range(doubles)]
    kinds += [f"{PAUSED} {_PAUSED_AT[n % len(_PAUSED_AT)]}" for n in range(pauses)]
    lanes = lab.size(1, 2)
    work = [(number, kinds[number::lanes]) for number in range(lanes)]
    done = in_lanes(lanes, partial(_run_lane, lab), work)
    failed = [told for lane in done for told in lane.failed]
    return result(
        lab,
        "split-brain",
        len(kinds),
        len(kinds) - len(failed),
        [verdict for lane in done for verdict in lane.verdicts],
        double_starts=doubles,
        paused=pauses,
        failed=failed,
    )


def _run_lane(lab: Lab, work: tuple[int, list[str]]) -> Lane:
    number, kinds = work
    lane = Lane()
    with (
        running_rig(
            lab.place(f"lane-{number}"), lab.kafka, lab.mariadb, warehouse=lab.warehouse
        ) as rig,
        running_subject(lab, rig, users=500) as subject,
    ):
        subject.clicks.send(_BURST)
        subject.job.wait_joining()
        subject.wait_drained()
        subject.job.stop()
        brains = Brains(subject)
        try:
            for count, kind in enumerate(kinds):
                _run_case(lab, brains, lane, f"{number}.{count} {kind}")
        finally:
            brains.end()
        lane.verdicts.append(judged(subject))
    return lane


def _run_case(lab: Lab, brains: "Brains", lane: Lane, name: str) -> None:
    """One case; after one that failed everything is ended, so that the next begins clean."""
    begun = time.monotonic()
    lane.cases += 1
    try:
        if PAUSED in name:
            brains.pause(name.rpartition(" ")[2])
        else:
            brains.double_start(replace_lock=TWO_NODES in name)
        told = "ok"
    except (AssertionError, TimeoutError) as exc:
        told = str(exc)[:4000]
        lane.failed.append(f"{name}: {told}")
        brains.end()
    lab.say(f"{name}: {told} in {time.monotonic() - begun:.1f} s")


class Brains:
    """The runners of one job, started by hand: no supervisor helps them."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._runners: list[subprocess.Popen[bytes]] = []
        self._started = 0
        # A node that halts keeps the locks of its own disk, on which its index is.
        self._set("index_dir", str(subject.directory / f"index-{{{_NODE}}}"))

    # Cases
    # ------------------------------------------------------------------------------------------

    def double_start(self, *, replace_lock: bool) -> None:
        """Two runners at once; one ends, the other commits."""
        self.end(gently=self._started % 3 == 0)
        with self._no_lock() if replace_lock else nullcontext():
            pair = [self._start(), self._start()]
            self._feed_until(lambda: any(one.poll() is not None for one in pair))
        self._expect_one_of(pair)

    def pause(self, point: str) -> None:
        """The runner halts at `point` with all its processes; it wakes up after a new one."""
        old = self._running()
        self._subject.wait_drained(deadline_s=_CASE_S)
        marker = self._plant(point)
        old = self._restart(old)
        self._feed_until(marker.exists, change=point in ("C11", "C12"))
        wait_until(lambda: _is_stopped(old), what="the runner has halted")
        node = with_children(psutil.Process(old.pid))
        for process in node:
            send(process, signal.SIGSTOP)
        self._lock.unlink()
        new = self._start(node="another")
        before = self._batch()
        self._feed_until(lambda: self._batch() > before + 1)
        for process in node:
            send(process, signal.SIGCONT)
        self._feed_until(lambda: old.poll() is not None, change=True)
        self._expect_one_of([old, new], loser=old)

    def _expect_one_of(
        self, pair: list["subprocess.Popen[bytes]"], loser: "subprocess.Popen[bytes] | None" = None
    ) -> None:
        """One has ended as not the owner; the other is alive and commits everything."""
        ended = [one for one in pair if one.poll() is not None]
        codes = [one.poll() for one in ended]
        assert codes == [EXIT_NOT_OWNER], f"ended with {codes}\n{self._told()}"
        assert loser is None or ended == [loser], f"the newer runner ended\n{self._told()}"
        before = self._batch()
        self._feed_until(lambda: self._batch() > before)
        self._subject.wait_drained(deadline_s=_CASE_S)
        alive = [one for one in pair if one.poll() is None]
        assert len(alive) == 1, f"nobody is left\n{self._told()}"

    # Runners
    # ------------------------------------------------------------------------------------------

    @property
    def _lock(self) -> Path:
        return self._subject.checkpoint / "lock"

    def _batch(self) -> int:
        return int(self._subject.progress().get("batch") or 0)

    def _log(self, number: int) -> Path:
        return self._subject.directory / f"runner-{number}.log"

    def _start(self, node: str = "one") -> "subprocess.Popen[bytes]":
        self._started += 1
        directory = self._subject.directory
        with self._log(self._started).open("ab") as log:
            runner = subprocess.Popen(
                [sys.executable, "-m", "service.jobs.runner", "--job-dir", str(directory)],
                cwd=directory,
                env={**os.environ, "PYTHONPATH": str(_ROOT), _NODE: node},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._runners.append(runner)
        return runner

    def _running(self) -> "subprocess.Popen[bytes]":
        alive = [one for one in self._runners if one.poll() is None]
        return alive[0] if alive else self._start()

    def _restart(self, runner: "subprocess.Popen[bytes]") -> "subprocess.Popen[bytes]":
        kill_node(psutil.Process(runner.pid))
        runner.wait()
        return self._start()

    def end(self, *, gently: bool = False) -> None:
        """End every runner: by SIGTERM, or as if its node had died."""
        for runner in self._runners:
            if gently:
                runner.terminate()
                with suppress(subprocess.TimeoutExpired):
                    runner.wait(timeout=30)
            if runner.poll() is None:
                kill_node(psutil.Process(runner.pid))
                runner.wait()
        self._runners = []

    def _plant(self, point: str) -> Path:
        """The next batch halts at `point`; returns the marker that tells it did."""
        build = point in ("C11", "C12")
        subject = self._subject
        newest = subject.newest_build_batch() if build else subject.newest_batch()
        entry = f"{point}=stop#{newest + 1}"
        self._set("failpoints", entry)
        return subject.checkpoint / "failpoints" / entry

    def _set(self, name: str, value: str) -> None:
        """A setting of the runners that start from now on."""
        path = self._subject.directory / "settings.json"
        content = read_json(path) or {}
        content["settings"][name] = value
        content.pop("format_version", None)
        write_json_atomically(path, content)

    def _feed_until(self, done: Any, *, change: bool = False) -> None:
        """Records (and changes) until `done`."""
        deadline = time.monotonic() + _CASE_S
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not in time\n{self._told()}")
            self._subject.clicks.send(_BURST)
            if change:
                self._subject.changes.one()
            pause = time.monotonic() + 0.5
            while time.monotonic() < pause and not done():
                time.sleep(0.02)

    def _told(self) -> str:
        """The last status that a runner wrote, and the ends of logs, without what Spark says."""
        directory = self._subject.directory
        status = read_json(directory / "status.json") or {}
        texts = [str({name: status.get(name) for name in ("pid", "state", "reason", "error")})]
        newest = range(max(1, self._started - 1), self._started + 1)
        for log in (*map(self._log, newest), directory / "runner.log"):
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            ours = [line for line in lines if line.startswith("{")]
            texts.append(f"{log.name}: " + "\n".join(line[:300] for line in ours[-6:]))
        return "\n".join(texts)

    @contextmanager
    def _no_lock(self) -> Iterator[None]:
        """The lock file is another one every millisecond, so that nobody's lock means anything."""

        def replace(ended: Event) -> None:
            while not ended.wait(0.001):
                self._lock.unlink(missing_ok=True)

        with beside(replace):
            yield


def _is_stopped(runner: "subprocess.Popen[bytes]") -> bool:
    return psutil.Process(runner.pid).status() == psutil.STATUS_STOPPED
