"""The candidate of the benchmarks of event time: drained like the others, timed by its pins."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from joins.pins import PinStore
from service.jobs.layout import living_runner
from tests.bench.batches import BatchTime, pinned_times
from tests.bench.measure import Bar, Measure, Sense
from tests.bench.place import Place
from tests.bench.shop import Stream
from tests.bench.subject import Subject
from tests.support.rig import Rig

DRAINS_WITHIN_S = 1_800.0
_LOOK_S = 2.0
_GONE = (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied)


@dataclass(frozen=True)
class Used:
    """PSS in MiB at one moment, of Python (the runner, its workers, sources) and of the JVM."""

    python: float
    jvm: float


@dataclass
class Memory:
    """Looks at the memory of a job's processes until the block ends."""

    job_directory: Path
    seen: list[Used] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(_LOOK_S):
            with suppress(*_GONE):
                runner = living_runner(self.job_directory)
                if runner is not None:
                    self.seen.append(_used([runner, *runner.children(recursive=True)]))

    def halves(self) -> tuple[float, float]:
        """The most that Python had in the first half of the time, and in the second."""
        half = len(self.seen) // 2
        first, second = self.seen[: half or 1], self.seen[half:]
        return max(u.python for u in first), max(u.python for u in second)


def _used(processes: list[psutil.Process]) -> Used:
    python = jvm = 0
    for process in processes:
        with suppress(*_GONE):
            pss = process.memory_full_info().pss
            if process.name() == "java":
                jvm += pss
            else:
                python += pss
    return Used(python / 2**20, jvm / 2**20)


@dataclass
class EventSubject(Subject):
    """A job whose batches keep state.

    Attributes:
        memory: of the newest drain.
    """

    memory: Memory | None = None

    @property
    def pins(self) -> Path:
        """The pins of its batches."""
        return self.job.directory / "checkpoint" / "pins"

    def wait_drained(self) -> None:
        """All records of the stream are in a batch that has ended; as `wait_for`."""
        self.wait_for(
            lambda _: self.joined_to() >= self.stream.sent,
            "every record is in a batch",
            deadline_s=DRAINS_WITHIN_S,
        )

    def timed_drain(self) -> list[BatchTime]:
        """Start the stopped job on what is in the stream, and stop it again."""
        newest = PinStore(self.pins).newest()
        before = -1 if newest is None else newest.batch
        with Memory(self.job.directory) as self.memory:
            self.job.start()
            self.wait_drained()
        self.job.stop()
        return pinned_times(self.pins, behind=before)

    def wait_changed(self, changes: int) -> None:
        """So many changes of the table are committed, and the index has them; as `wait_for`."""
        self.wait_for(
            lambda s: self._has_changed(s["dimensions"][0], changes),
            f"{changes:,} changes are there",
            deadline_s=DRAINS_WITHIN_S,
        )

    @staticmethod
    def _has_changed(dimension: dict[str, int], changes: int) -> bool:
        there = dimension["streamed_records"] >= changes and not dimension["lag_records"]
        return there and dimension["index_version"] == dimension["changelog_version"]


@contextmanager
def event_subject(place: Place, rig: Rig, script: str, stream: Stream) -> Iterator[EventSubject]:
    """A job of its own that runs `script`; it is removed at the end."""
    with rig.job(script) as job:
        yield EventSubject(place, rig, job, "", stream, 0)


def memory_measure(rounds: Sequence[Memory | None], size: str, *, full: bool) -> Measure:
    """Whether Python needs more in the second half of a drain than in the first.

    What waits and is open does not grow meanwhile; what was joined and counted does.
    """
    seen = [one for one in rounds if one is not None and one.seen]
    halves = [one.halves() for one in seen]
    return Measure(
        "PSS of runner and workers, second half of a drain against the first",
        "MiB",
        size,
        full,
        [second for _, second in halves],
        [first for first, _ in halves],
        Bar(Sense.RATIO_AT_MOST, 1.3),
        {"jvm_pss_mib": [round(max(used.jvm for used in one.seen)) for one in seen]},
    )
