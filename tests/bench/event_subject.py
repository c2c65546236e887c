"""The candidate of the benchmarks of event time: drained like the others, timed by its pins."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import psutil

from service.jobs.store.layout import living_runner
from tests.bench.batches import BatchTime, newest_pinned, pinned_span, pinned_times
from tests.bench.measure import Bar, Measure, Sense
from tests.bench.place import Place
from tests.bench.shop import Stream
from tests.bench.subject import Subject
from tests.support.beside import RunsBeside
from tests.support.rig import Rig

DRAINS_WITHIN_S = 1_800.0
_LOOK_S = 2.0
_GONE = (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied)


def memory_of_halves(
    size: str, *, full: bool, first: Sequence[float], second: Sequence[float]
) -> Measure:
    """The MiB that drains needed in their second halves, against those in their first ones."""
    name = "memory of runner and workers, second half of a drain against the first"
    return Measure(name, "MiB", size, full, second, first, Bar(Sense.RATIO_AT_MOST, 1.3))


@dataclass(frozen=True)
class Used:
    """Memory in MiB at one moment.

    Attributes:
        at_s: Unix time.
        python: PSS of the runner, its workers and sources, without the files that they map: an
            index is in the page cache.
        jvm: PSS of the JVM.
    """

    at_s: float
    python: float
    jvm: float


@dataclass
class Memory(RunsBeside):
    """Looks at the memory of a job's processes until the block ends."""

    job_directory: Path
    seen: list[Used] = field(default_factory=list)

    def _run(self, ended: Event) -> None:
        while not ended.wait(_LOOK_S):
            with suppress(*_GONE):
                runner = living_runner(self.job_directory)
                if runner is not None:
                    self.seen.append(used_by([runner, *runner.children(recursive=True)]))

    def halves(self, since_s: float) -> tuple[float, float] | None:
        """The most that Python had in the first half of the time since then, and in the second."""
        seen = [used.python for used in self.seen if used.at_s >= since_s]
        half = len(seen) // 2
        return (max(seen[:half]), max(seen[half:])) if half else None


def used_by(processes: list[psutil.Process]) -> Used:
    """What these need together now; those that are gone need nothing."""
    python = jvm = 0
    for process in processes:
        with suppress(*_GONE, FileNotFoundError, ProcessLookupError):
            if process.name() == "java":
                jvm += _rollup_kb(process.pid, "Pss")
            else:
                python += _rollup_kb(process.pid, "Pss_Anon")
    return Used(time.time(), python / 1024, jvm / 1024)


def _rollup_kb(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


@dataclass
class EventSubject(Subject):
    """A job whose batches keep state.

    Attributes:
        memory: of each drain: what its second half needed, its first half, and the JVM.
    """

    memory: list[tuple[float, float, float]] = field(default_factory=list)

    def timed_drain(self) -> list[BatchTime]:
        """Start the stopped job on what is in the stream, and stop it again."""
        before = newest_pinned(self.checkpoint)
        with Memory(self.job.directory) as memory:
            self.job.start()
            self.wait_drained()
        self.job.stop()
        times = pinned_times(self.checkpoint, behind=before)
        halves = memory.halves(pinned_span(self.checkpoint, times)[0]) if times else None
        if halves is not None:
            first, second = halves
            self.memory.append((second, first, max(used.jvm for used in memory.seen)))
        return times[:-1]  # behind the last one come batches without records, at their time

    def memory_measure(self, size: str, *, full: bool) -> list[Measure]:
        """Whether Python needs more in the second half of a drain than in the first.

        What waits and is open does not grow meanwhile; what was joined and counted does.
        Nothing is told where the drains were too short to look twice.
        """
        if not self.memory:
            return []
        second, first, jvm = (list(column) for column in zip(*self.memory, strict=True))
        measured = memory_of_halves(size, full=full, first=first, second=second)
        return [replace(measured, facts={"jvm_pss_mib": [round(one) for one in jvm]})]

    def wait_changed(self, changes: int) -> None:
        self.wait_for(
            lambda s: self._has_changed(s["dimensions"][0], changes),
            f"{changes:,} changes are there",
            deadline_s=DRAINS_WITHIN_S,
        )

    @staticmethod
    def _has_changed(dimension: dict[str, int], changes: int) -> bool:
        there = dimension["streamed_records"] >= changes and dimension["lag_records"] == 0
        return there and dimension["index_version"] == dimension["changelog_version"]


@contextmanager
def event_subject(place: Place, rig: Rig, script: str, stream: Stream) -> Iterator[EventSubject]:
    with rig.job(script) as job:
        yield EventSubject(place, rig, job, stream)
