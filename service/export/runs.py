"""Runs of a job: what other systems call a run lasts from a start to the end that follows."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID, uuid5

from service.schemas.progress import Transition

STARTING = "STARTING"
ENDED = frozenset({"FAILED", "STOPPED", "FINISHED"})
_BEFORE = (None, "CREATED")


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
        return uuid5(UUID(self.job_id), f"run {self.number}")


@dataclass(frozen=True, slots=True)
class Step:
    """A transition, and the run that it belongs to.

    Attributes:
        begins: it is the first start of its run.
        begun: its run begins with it or has begun before; a job that is paused or stopped before
            its first start has no run yet.
        over: the run had ended before, so this says nothing about it any more.
        since_ms: when the job came into the state that it leaves, ms since the epoch; None for its
            first one.
    """

    run: JobRun
    transition: Transition
    begins: bool
    begun: bool
    over: bool
    since_ms: int | None


class RunCounter:
    """Knows which run each transition belongs to.

    Feed it all transitions of a job in order, those of long ago, too: a run is known by its number.
    """

    def __init__(self) -> None:
        self._last: dict[str, Step] = {}

    def knows(self, job_id: str) -> bool:
        return job_id in self._last

    def take(self, job_id: str, transition: Transition) -> Step:
        """The step that `transition` is; the one that ends a run still belongs to it.

        The newest one may be taken again, and is the same step.
        """
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
    begun = begins or transition.origin not in _BEFORE  # else what came before it is gone
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
