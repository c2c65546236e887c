"""Runs of a job: what other systems call a run lasts from a start to the end that follows."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID, uuid5

from service.client.models import Transition

STARTING = "STARTING"
ENDED = frozenset({"FAILED", "STOPPED", "FINISHED"})


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run.

    Attributes:
        number: how many runs the job has had before.
    """

    job_id: str
    number: int

    @property
    def id(self) -> UUID:
        """The same for everybody who asks about this run, also after a restart."""
        return uuid5(UUID(self.job_id), f"run {self.number}")


@dataclass(frozen=True, slots=True)
class Step:
    """A transition, and the run that it belongs to.

    Attributes:
        begins: it is the first one of its run.
        over: the run had ended before, so this says nothing about it any more.
        since_ms: when the job came into the state that it leaves, ms since the epoch; None for its
            first one.
    """

    run: JobRun
    transition: Transition
    begins: bool
    over: bool
    since_ms: int | None


class RunCounter:
    """Knows which run each transition belongs to.

    Feed it all transitions of a job in order, those of long ago, too: a run is known by its number.
    """

    def __init__(self) -> None:
        self._last: dict[str, Step] = {}

    def knows(self, job_id: str) -> bool:
        """Whether a transition of this job has been here."""
        return job_id in self._last

    def take(self, job_id: str, transition: Transition) -> Step:
        """The step that `transition` is; the one that ends a run still belongs to it."""
        last = self._last.get(job_id)
        step = _first(job_id, transition) if last is None else _behind(last, transition)
        self._last[job_id] = step
        return step

    def take_all(self, job_id: str, transitions: Iterable[Transition]) -> None:
        """Count what was told before."""
        for transition in transitions:
            self.take(job_id, transition)


def _first(job_id: str, transition: Transition) -> Step:
    run = JobRun(job_id, 0)
    return Step(run, transition, transition.target == STARTING, over=False, since_ms=None)


def _behind(last: Step, transition: Transition) -> Step:
    ended = last.over or last.transition.target in ENDED
    started = last.transition.origin is not None  # its first step is into CREATED, from nowhere
    starting = transition.target == STARTING
    number = last.run.number + (ended and starting)
    return Step(
        JobRun(last.run.job_id, number),
        transition,
        begins=starting and (ended or not started),
        over=ended and not starting,
        since_ms=last.transition.at_ms,
    )
