"""A job: its states, their transitions, and its stored values."""

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from service.errors import JobStateError
from watermark.errors import InvalidTransitionError


class JobState(StrEnum):
    """State of a job."""

    CREATED = "CREATED"
    STARTING = "STARTING"
    SNAPSHOT = "SNAPSHOT"
    CATCHING_UP = "CATCHING_UP"
    JOINING = "JOINING"
    PAUSED = "PAUSED"
    STALLED = "STALLED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    FINISHED = "FINISHED"


STATE_WORDS = {
    JobState.CREATED: "Created",
    JobState.STARTING: "Starting",
    JobState.SNAPSHOT: "Copying",
    JobState.CATCHING_UP: "Catching up",
    JobState.JOINING: "Running",
    JobState.PAUSED: "Paused",
    JobState.STALLED: "Stalled",
    JobState.FAILED: "Failed",
    JobState.STOPPED: "Stopped",
    JobState.FINISHED: "Finished",
}
"""The words of stored states for people; `status_words` knows more of a living job."""


class DesiredState(StrEnum):
    """What the operator wants of a job."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    REMOVED = "REMOVED"


_State = TypeVar("_State", bound=StrEnum)


class Transitions(Generic[_State]):
    """The table of a state machine: the meaning of each state, and its successors.

    docs/site/reference.py draws it; `check` enforces it.
    """

    def __init__(self, what: str, rows: Mapping[_State, tuple[str, Collection[_State]]]) -> None:
        self._what = what
        self._rows = {
            state: (meaning, frozenset(next_)) for state, (meaning, next_) in rows.items()
        }

    def meaning(self, state: _State) -> str:
        return self._rows[state][0]

    def following(self, state: _State) -> frozenset[_State]:
        return self._rows[state][1]

    def check(self, origin: _State, target: _State) -> None:
        following = self.following(origin)
        if target not in following:
            expected = ", ".join(sorted(following)) or "none: it is final"
            raise InvalidTransitionError(
                f'{self._what} in state "{origin}" cannot become "{target}", expected {expected}',
                hint="Report this as a defect with the job's events.",
            )


_END = frozenset({JobState.FAILED, JobState.STOPPED})
# The states without progress, which every state of a running job may become.
_HALTED = _END | {JobState.PAUSED, JobState.STALLED, JobState.FINISHED}
_COPYING = frozenset({JobState.SNAPSHOT, JobState.CATCHING_UP})
_ALL = frozenset(JobState) - {JobState.CREATED}
ENDED = _END | {JobState.FINISHED}  # the job has stopped: it failed, ended, or a request stopped it
RESTING = ENDED | {JobState.PAUSED}  # no runner belongs to it
JOB_STATES = Transitions(
    "job",
    {
        JobState.CREATED: (
            "It is stored and has no runner yet.",
            {JobState.STARTING, JobState.PAUSED} | _END,
        ),
        JobState.STARTING: (
            "A runner has been started and has not reported a state yet.",
            {JobState.JOINING} | _COPYING | _HALTED,
        ),
        JobState.SNAPSHOT: (
            "The snapshot of a table is being read; the stream's records are held.",
            {JobState.CATCHING_UP, JobState.JOINING} | _HALTED,
        ),
        JobState.CATCHING_UP: (
            "Changes up to HIGH are being committed; the stream's records are held.",
            {JobState.SNAPSHOT, JobState.JOINING} | _HALTED,
        ),
        JobState.JOINING: ("Every table is complete; records are joined.", _HALTED),
        JobState.PAUSED: (
            "It was paused by a request and keeps its position until it is resumed.",
            _ALL - {JobState.PAUSED},
        ),
        JobState.STALLED: (
            "Something outside prevents progress; it continues when that is gone.",
            _ALL - {JobState.STALLED},
        ),
        JobState.FAILED: (
            "It cannot continue without an operator.",
            {JobState.STARTING, JobState.STOPPED},
        ),
        JobState.STOPPED: (
            "It was stopped by a request and can be started again.",
            {JobState.STARTING},
        ),
        JobState.FINISHED: (
            "Everything up to the end of its bounded stream is joined; it never runs again.",
            (),
        ),
    },
)


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job is STALLED or FAILED; `type` is in kebab case, such as `source-unavailable`."""

    type: str
    message: str
    hint: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job."""

    id: str
    name: str
    state: JobState
    desired_state: DesiredState
    plan: bytes  # bytes of `service.jobs.store.plan_codec`
    sql: str  # the script with inline secrets replaced by references
    warnings: tuple[str, ...]
    reason: str  # one sentence on why the job is in its state
    error: JobError | None
    crashes: int  # crashed runners since a healthy minute or a start by request
    restarts: int  # runners started after the first one
    events_offset: int  # bytes of `events.jsonl` that are already in the store
    remove_output: bool
    created_at_ms: int
    updated_at_ms: int
    shared_table: str | None = None  # the table that the job maintains for other jobs
    since_ms: int | None = None  # when the newest transition was made; None if it was not read
    desired_by: str | None = None  # who asked for the desired state; None if unknown


def check_wanted(job: Job, desired: DesiredState, *, resume: bool = False) -> None:
    """Raise JobStateError if `job` must not be asked for `desired`; repeating a request is allowed.

    With `resume`, RUNNING is requested because the job is paused, not because it was stopped.
    """
    if desired is DesiredState.REMOVED:
        return
    if job.desired_state is DesiredState.REMOVED:
        raise _wrong_state(
            job, "is being removed", "Wait until it is gone and submit the script again."
        )
    if desired is DesiredState.STOPPED:
        return
    if job.state is JobState.FINISHED:
        fault = "has finished: all up to the end of its stream is joined"
        raise _wrong_state(job, fault, "Submit the script again to join what has come since.")
    if job.desired_state is DesiredState.STOPPED and (resume or desired is DesiredState.PAUSED):
        stops = "" if job.state in ENDED else " and stops"
        fault = f"is {job.state}{stops}, expected a job that runs"
        raise _wrong_state(job, fault, f"Run sluice jobs resume {job.id} first.")


def _wrong_state(job: Job, fault: str, hint: str) -> JobStateError:
    states = (job.state.value, job.desired_state.value)
    return JobStateError(f'job "{job.id}" {fault}', hint=hint, states=states)


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One transition of a job and its cause, or a note, whose states are equal.

    `sequence` grows over all jobs and is the page cursor; `origin` is None for the first event.
    """

    sequence: int
    job_id: str
    at_ms: int
    origin: JobState | None
    target: JobState
    cause: str


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def new_job_id(at_ms: int | None = None) -> str:
    """A UUID of version 7 (RFC 9562): ordered by time, so that pages are too."""
    at_ms = now_ms() if at_ms is None else at_ms
    random = int.from_bytes(os.urandom(10), "big")
    value = (at_ms & (1 << 48) - 1) << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0b11 << 62) | 0b10 << 62
    digits = f"{value:032x}"
    return "-".join(
        (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]),
    )


REMOVAL_FAILED = "removal failed"
"""What the reason of a job begins with whose removal has failed and is tried again."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A submission before it is stored."""

    id: str
    name: str
    plan: bytes
    sql: str
    warnings: tuple[str, ...]
    idempotency_key: str | None
    request_digest: str  # SHA-256 of the request, to detect another request under the same key
    shared_table: str | None = None
    attached: tuple[str, ...] = ()  # the jobs whose shared tables it reads
    # inline secrets; None without any, or if the job's directory suffices
    secrets: bytes | None = field(default=None, repr=False)
    # its name must be unique among jobs that can run; False for a preview
    has_own_name: bool = True


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """A transition to make, or a note (`is_note`), which keeps the state."""

    target: JobState
    cause: str
    reason: str = ""  # the job's new reason, where that is not the cause
    error: JobError | None = None  # replaces the job's; a transition without an error ends it
    desired: DesiredState | None = None  # for a transition that also changes what is desired
    at_ms: int = field(default_factory=now_ms)
    is_note: bool = False
