"""Follows the transitions of all jobs, assigns them to runs and hands them to an exporter in order.

The cursor, the number of the newest exported transition, is stored in a file: transitions during a
downtime are exported later. After a crash before the store, the last one is exported twice.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid5

import structlog

from joins.durable.checkpoint import write_atomically
from service.client import NotFoundError, Sluice
from service.client.transport import is_passing
from service.errors import ControlPlaneError, ExportError
from service.schemas.progress import Transition

STARTING = "STARTING"
ENDED = frozenset({"FAILED", "STOPPED", "FINISHED"})
_BEFORE = (None, "CREATED")


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run; `number` counts the earlier runs of the job."""

    job_id: str
    number: int

    @property
    def id(self) -> UUID:
        return uuid5(UUID(self.job_id), f"run {self.number}")


@dataclass(frozen=True, slots=True)
class Step:
    """A transition, and the run that it belongs to."""

    run: JobRun
    transition: Transition
    begins: bool  # it is the first start of its run
    begun: bool  # its run has begun; a job paused or stopped before its first start has no run yet
    over: bool  # the run had ended before
    since_ms: int | None  # when the job entered the state that it leaves; None at first


class RunCounter:
    """Assigns transitions to runs; it needs all transitions of a job, in order."""

    def __init__(self) -> None:
        self._last: dict[str, Step] = {}

    def run_of(self, job_id: str) -> JobRun | None:
        """The run of the job's newest transition; None before its first one."""
        last = self._last.get(job_id)
        return None if last is None else last.run

    def take(self, job_id: str, transition: Transition) -> Step:
        """The step of `transition`; the newest transition may be taken twice."""
        last = self._last.get(job_id)
        if last is not None and last.transition.sequence == transition.sequence:
            return last
        step = _first(job_id, transition) if last is None else _behind(last, transition)
        self._last[job_id] = step
        return step

    def take_all(self, job_id: str, transitions: Iterable[Transition]) -> None:
        for transition in transitions:
            self.take(job_id, transition)


def _first(job_id: str, transition: Transition) -> Step:
    begins = transition.target == STARTING
    begun = begins or transition.origin not in _BEFORE  # otherwise earlier transitions are gone
    return Step(JobRun(job_id, 0), transition, begins, begun, over=False, since_ms=None)


def _behind(last: Step, transition: Transition) -> Step:
    ended = last.over or last.transition.target in ENDED
    starting = transition.target == STARTING
    again = ended and starting
    begins = starting and (ended or not last.begun)
    return Step(
        JobRun(last.run.job_id, last.run.number + again),
        transition,
        begins=begins,
        begun=begins or last.begun,
        over=ended and not starting,
        since_ms=last.transition.at_ms,
    )


_SHORTEST_S = 1.0
_LONGEST_S = 30.0
_log = structlog.get_logger(__name__)


class Exporter(Protocol):
    """Sends steps to one other system."""

    def tell(self, step: Step) -> None:
        """Send a transition; returns when the receiver has taken or refused it.

        Raises ExportError if the receiver cannot be reached now.
        """

    def look(self, run_of: Callable[[str], JobRun | None]) -> None:
        """Send what has no transition, such as batches; raises as `tell`.

        `run_of` gives the run of a job, None before its first transition was sent.
        """


class FollowPosition:
    """The number of the newest transition sent, in the file `path` (None stores nothing).

    Raises ExportError if the file cannot be read or holds something else.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.value = 0 if path is None or not path.exists() else _read(path)

    def move(self, sequence: int) -> None:
        self.value = sequence
        if self._path is None:
            return
        try:
            write_atomically(self._path, f"{sequence}\n".encode())
        except OSError as exc:
            raise ExportError(
                f'the cursor cannot be kept in "{self._path}": {exc.strerror}',
                hint="Make its directory writable for this user, or name another file.",
                passing=False,
            ) from exc


def _read(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError) as exc:
        raise ExportError(
            f'"{path}" holds no cursor: {exc}',
            hint="Name the file that an exporter has written, or one that is not there yet.",
            passing=False,
        ) from exc


class Follower:
    """Reads transitions and jobs from the control plane and hands them to an exporter."""

    def __init__(self, client: Sluice, exporter: Exporter, cursor: FollowPosition) -> None:
        self._client = client
        self._exporter = exporter
        self._cursor = cursor
        self._runs = RunCounter()

    def run(self, *, every_s: float) -> None:
        """Follow forever, waiting while control plane or receiver are away.

        Raises ExportError or ControlPlaneError if retrying cannot help.
        """
        pause_s = _SHORTEST_S
        while True:
            before = self._cursor.value
            try:
                self.catch_up()
            except (ExportError, ControlPlaneError) as exc:
                if not (exc.passing if isinstance(exc, ExportError) else is_passing(exc)):
                    raise
                pause_s = pause_s if self._cursor.value == before else _SHORTEST_S
                _log.warning("trying again", error=exc.message, hint=exc.hint, after_s=pause_s)
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_S)
            else:
                pause_s = _SHORTEST_S
                time.sleep(every_s)

    def catch_up(self) -> int:
        """Send everything new and return its count; after an error the next call resumes."""
        count = 0
        for transition in self._behind(self._cursor.value):
            self._tell(transition)
            self._cursor.move(transition.sequence)
            count += 1
        self._exporter.look(self._run_of)
        return count

    def _behind(self, sequence: int) -> Iterator[Transition]:
        while page := self._client.transitions(after=sequence):
            yield from page
            sequence = page[-1].sequence

    def _tell(self, transition: Transition) -> None:
        job_id = transition.job_id
        assert job_id is not None, "the list of all jobs names each"
        self._learn(job_id, transition.sequence)
        step = self._runs.take(job_id, transition)
        self._exporter.tell(step)

    def _run_of(self, job_id: str) -> JobRun | None:
        self._learn(job_id, self._cursor.value + 1)
        return self._runs.run_of(job_id)

    def _learn(self, job_id: str, before: int) -> None:
        if self._runs.run_of(job_id) is None:
            self._runs.take_all(job_id, self._earlier(job_id, before))

    def _earlier(self, job_id: str, sequence: int) -> list[Transition]:
        try:
            transitions = self._client.transitions(job_id=job_id)
            while transitions and transitions[-1].sequence < sequence:
                more = self._client.transitions(job_id=job_id, after=transitions[-1].sequence)
                if not more:
                    break
                transitions += more
        except NotFoundError:
            return []  # the job and its history are gone
        return [transition for transition in transitions if transition.sequence < sequence]
