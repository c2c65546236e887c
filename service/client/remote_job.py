"""One job of a control plane."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from joins.plan.errors import suggestion
from service.client.tables import (
    Batches,
    OutputRows,
    RemoteDimension,
    html_of_job,
    notebook_display,
)
from service.client.transport import (
    Answer,
    NotFoundError,
    Pages,
    RefusedError,
    Transport,
    is_passing,
    parsed,
)
from service.errors import ControlPlaneError, WaitTimeoutError
from service.jobs.store.job import REMOVAL_FAILED, JobState
from service.schemas.document import Document
from service.schemas.inspection import (
    AcknowledgementView,
    BatchReplay,
    CheckReport,
    DeadLetterPage,
    DeadLetterReplayed,
    DeadLettersDiscarded,
    DeadLetterView,
    RequestView,
    RowExplanation,
)
from service.schemas.jobs import JobDetail, JobSummary, RemovalView
from service.schemas.progress import Transition, UpdateView, WaitReport, WatermarkReport
from service.schemas.tables import DimensionList, DimensionVersions, Preview
from service.schemas.verification import VerificationReport

_SHORTEST_S = 0.2
_LONGEST_S = 10.0


class StatusChanged(Document):
    """A new status of a job, between transitions."""

    status: JobSummary


class Removed(Document):
    """A job was removed: the last event of its stream."""

    job_id: str


Event = Transition | StatusChanged | Removed


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One server-sent event."""

    name: str
    data: str
    id: str | None


def _lines(blocks: Iterable[bytes]) -> Iterator[str]:
    """Lines split at newlines only, as JSON values may contain other line separators."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from (line.removesuffix(b"\r").decode(errors="replace") for line in whole)


def parse(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """Events in the lines of a stream; an incomplete last event is dropped, as in browsers."""
    fields: dict[str, str] = {}
    data: list[str] = []
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name in ("event", "id"):
                fields[name] = value
            continue
        if data:
            yield ServerEvent(fields.get("event", "message"), "\n".join(data), fields.get("id"))
        fields, data = {}, []


class EventStream:
    """An iterator over the events of a job; ends when the job is removed.

    Reconnects after the transition `last_id`, the last received one.
    """

    def __init__(self, transport: Transport, job_id: str, after: int | None) -> None:
        self._transport = transport
        self._path = f"/v1/jobs/{job_id}/events"
        self.last_id = after

    def __iter__(self) -> Iterator[Event]:
        pause_s = _SHORTEST_S
        while True:
            try:
                for event in self._connected():
                    pause_s = _SHORTEST_S
                    yield event
                    if isinstance(event, Removed):
                        return
            except ControlPlaneError as exc:
                if not is_passing(exc):
                    raise
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_S)

    def _connected(self) -> Iterator[Event]:
        headers = {"Accept": "text/event-stream"}
        if self.last_id is not None:
            headers["Last-Event-ID"] = str(self.last_id)
        with self._transport.stream(self._path, headers) as answer:
            for server_event in parse(_lines(answer.iter_bytes())):
                event = _event(server_event)
                if isinstance(event, Transition):
                    self.last_id = event.sequence
                if event is not None:
                    yield event


def _event(server_event: ServerEvent) -> Event | None:
    """The event; None for kinds that only newer clients know."""
    document = json.loads(server_event.data)
    if server_event.name == "transition":
        return parsed(Transition, document)
    if server_event.name == "status":
        return StatusChanged(status=parsed(JobSummary, document))
    return parsed(Removed, document) if server_event.name == "removed" else None


_POLL_S = 0.5
_TARGETS = ("LOAD", "JOIN", *(state.value for state in JobState))
_UPDATE_S = 120.0  # a preview joins batches again


class JobInspection:
    """Answers about a job; only `verify` with `repair` changes anything."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    def watermarks(self) -> WatermarkReport:
        """The watermark of each channel and the combined one."""
        return self._transport.ask(WatermarkReport, f"{self._path}/watermarks")

    def explain_wait(self) -> WaitReport:
        return self._transport.ask(WaitReport, f"{self._path}/explain-wait")

    def doctor(self) -> CheckReport:
        return self._transport.ask(CheckReport, f"{self._path}/doctor")

    def log(self, offset: int | None = None) -> tuple[str, int]:
        """A block of the runner's log (by default the end), and the offset of the next one."""
        query = {} if offset is None else {"offset": offset}
        answer = self._transport.send("GET", f"{self._path}/log", params=query)
        return answer.text, int(answer.headers["Sluice-Next-Offset"])

    def preview(self, *, limit: int = 20, sink: str | None = None) -> Preview:
        """The newest rows of its output; `sink` selects the table of one of several INSERTs."""
        return self._transport.ask(Preview, f"{self._path}/preview", limit=limit, sink=sink)

    def explain_row(self, coordinates: str, *, sink: str | None = None) -> RowExplanation:
        """What became of the record at `topic/partition/offset`; `sink` as in `preview`."""
        return self._transport.ask(RowExplanation, f"{self._path}/rows/{coordinates}", sink=sink)

    def replay_batch(
        self, number: int, *, diff: bool = False, sink: str | None = None
    ) -> BatchReplay:
        """Join a batch again and compare; writes nothing. `sink` as in `preview`."""
        query = {"diff": diff} if sink is None else {"diff": diff, "sink": sink}
        path = f"{self._path}/batches/{number}:replay"
        return self._transport.post(BatchReplay, path, params=query)

    def verify(
        self,
        table: str | None = None,
        *,
        sample: float = 1.0,
        rows_per_s: int | None = None,
        repair: bool = False,
        timeout_s: float = 3600.0,
    ) -> VerificationReport:
        """Compare a table, or all, with its source as of a position; nothing stands still.

        With `repair` rows that differ are sent again, and the tables compared once more.
        `sample` is the share of the chunks. Raises RefusedError if the job has no such table.
        """
        body = {"table": table, "sample": sample, "rows_per_s": rows_per_s, "repair": repair}
        body = {name: value for name, value in body.items() if value is not None}
        path = f"{self._path}:verify"
        return self._transport.post(VerificationReport, path, json=body, timeout=timeout_s)


class RemoteDeadLetters:
    """The records that a job could not join."""

    def __init__(self, transport: Transport, job: "RemoteJob") -> None:
        self._transport = transport
        self._job = job
        self._path = f"/v1/jobs/{job.id}/dead-letters"

    def list(
        self, *, pending: bool = False, matching: str | None = None
    ) -> Pages[DeadLetterPage, DeadLetterView]:
        """Dead letters, with `pending` only those not yet replayed; `matching` is of the reason."""
        query = {"pending": pending, "matching": matching}
        return Pages(self._transport, DeadLetterPage, self._path, 500, **query)

    def get(self, place: str, **query: int | str) -> DeadLetterView:
        """One dead letter at `partition/offset`, with the query parameters of the address."""
        return self._transport.ask(DeadLetterView, f"{self._path}/{place}", **query)

    def replay(
        self,
        replay: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> DeadLetterReplayed:
        """Replay the dead letters of the request body `replay`, by default all.

        Raises:
            RefusedError: they cannot be replayed, or the job has no runner.
            WaitTimeoutError: timeout; the request stays pending.
        """
        body = {"all": True} if replay is None else replay
        path, key = f"{self._path}:replay", idempotency_key
        return self._job._ask_runner(DeadLetterReplayed, path, body, key, timeout_s)

    def discard(
        self,
        reason: str,
        records: Sequence[Mapping[str, Any]] | None = None,
        *,
        matching: str | None = None,
        by: str = "unknown",
        idempotency_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> DeadLettersDiscarded:
        """Discard dead letters, by default all pending ones. Raises as `replay`.

        `records` have `partition`, `offset` and, if needed, `topic` and `batch`; without them,
        `matching` is a part of the reasons of those that are meant.
        """
        every = {"all": True} if matching is None else {"all": True, "matching": matching}
        chosen = every if records is None else {"records": list(records)}
        body = {**chosen, "reason": reason, "by": by}
        path, key = f"{self._path}:discard", idempotency_key
        return self._job._ask_runner(DeadLettersDiscarded, path, body, key, timeout_s)


class RemoteJob:
    """A job; each method sends a request to the control plane.

    `inspect` answers questions about it, `dead_letters` has the records that it could not join.

    Example:
        >>> job.status().name
        'enriched'
        >>> job.wait_until("JOIN", timeout_s=60).phase
        'JOIN'
        >>> [row.values["price"] for row in job.inspect.preview(limit=1).items]
        ['12.50']
    """

    # reads better long: one method for each change and each list of a job

    def __init__(self, transport: Transport, job_id: str) -> None:
        self.id = job_id
        self._transport = transport
        self._path = f"/v1/jobs/{job_id}"
        self.inspect = JobInspection(transport, self._path)
        self.dead_letters = RemoteDeadLetters(transport, self)

    def __repr__(self) -> str:
        return f"RemoteJob({self.id!r})"

    def status(self) -> JobDetail:
        return self._transport.ask(JobDetail, self._path)

    def _repr_html_(self) -> str:
        return html_of_job(self.status())

    def wait_until(self, target: str, *, timeout_s: float = 3600.0) -> JobDetail:
        """Wait for a phase (`LOAD`, `JOIN`) or a state (such as `JOINING`, `FINISHED`).

        In a notebook the cell shows progress. Raises ControlPlaneError if the job ends in another
        state, on a timeout, and at once for a name that is no phase and no state.
        """
        if target not in _TARGETS:
            hint = suggestion(target, _TARGETS, f"Wait for one of {', '.join(_TARGETS)}.")
            raise ControlPlaneError(f'"{target}" is no phase and no state of a job', hint=hint)
        deadline = time.monotonic() + timeout_s
        show = notebook_display()
        while True:
            status = self.status()
            if show is not None:
                show(html_of_job(status))
            if target in (status.state, status.phase):
                return status
            stays = status.state == "STOPPED" and status.desired_state != "RUNNING"
            if stays or status.state in ("FAILED", "FINISHED"):
                raise _ended(status, target)
            if time.monotonic() > deadline:
                raise ControlPlaneError(
                    f'job "{self.id}" is {status.state}, not {target}: {status.reason}',
                    hint="The job continues; wait again, or call inspect.explain_wait().",
                )
            time.sleep(_POLL_S)

    def pause(self, by: str | None = None) -> JobDetail:
        """Pause the job after its batch; it keeps its position. `by` says who asks."""
        return self._changed("pause", by=by)

    def resume(self) -> JobDetail:
        return self._changed("resume")

    def stop(self, by: str | None = None) -> JobDetail:
        """Stop the runner after its batch; the job keeps its position. `by` says who asks."""
        return self._changed("stop", by=by)

    def start(self) -> JobDetail:
        return self._changed("start")

    def update(
        self,
        sql: str,
        *,
        preview: bool = False,
        of_plan: int | None = None,
        batches: int = 100,
    ) -> UpdateView:
        """Change the job to another script; its copies, offsets and output stay.

        Args:
            sql: the whole changed script.
            preview: show what would change, and change nothing.
            of_plan: refuse unless this is the job's plan, such as that of a preview.
            batches: for a preview, how many of the newest batches are joined again.

        Raises:
            InvalidRequestError: the script is invalid, or an added table cannot be used.
            ConflictError: a change is refused, or the job has another plan than `of_plan`.
        """
        return self._updated(sql=sql, preview=preview, of_plan=of_plan, batches=batches)

    def roll_back(
        self,
        to_plan: int | None = None,
        *,
        preview: bool = False,
        of_plan: int | None = None,
        batches: int = 100,
    ) -> UpdateView:
        """Change the job to an older plan of it, the one before the newest by default.

        Raises as `update`.
        """
        return self._updated(to_plan=to_plan, preview=preview, of_plan=of_plan, batches=batches)

    def _updated(self, **body: object) -> UpdateView:
        path = f"{self._path}:update"
        return self._transport.post(UpdateView, path, json=body, timeout=_UPDATE_S)

    def _changed(self, what: str, *, by: str | None = None) -> JobDetail:
        body = {} if by is None else {"json": {"by": by}}
        return self._transport.post(JobDetail, f"{self._path}:{what}", **body)

    def delete(
        self, *, output: bool = False, topics: bool = True, timeout_s: float = 120.0
    ) -> tuple[str, ...]:
        """Remove the job with its topics, tables and checkpoint, with `output` also its output.

        Returns what is left, with reasons: output of others, and topics without `topics`. Raises
        NotFoundError, RefusedError if the removal failed, or WaitTimeoutError; then the removal
        continues.
        """
        deadline = time.monotonic() + timeout_s
        job = self._removed(output=output, topics=topics)
        while isinstance(job, JobDetail):
            if job.error is not None and job.reason.startswith(REMOVAL_FAILED):
                raise RefusedError(
                    job.reason,
                    hint=f"{job.error.hint} The removal is retried automatically.",
                    problem=job.error.model_dump(),
                )
            if time.monotonic() >= deadline:
                raise WaitTimeoutError(
                    f'job "{self.id}" is not removed after {timeout_s:g} s: {job.reason}',
                    hint=f"The removal continues; check it with sluice jobs get {self.id}.",
                )
            time.sleep(_POLL_S)
            job = self._after_removal(topics=topics)
        return job.left

    def _removed(self, *, output: bool, topics: bool) -> JobDetail | RemovalView:
        params = {"output": output} | ({} if topics else {"topics": False})
        answer = self._transport.send("DELETE", self._path, params=params)
        if answer.status_code == httpx.codes.NO_CONTENT:
            return RemovalView(left=())
        if answer.status_code == httpx.codes.ACCEPTED:
            return self._transport.read(JobDetail, answer)
        return self._transport.read(RemovalView, answer)

    def _after_removal(self, *, topics: bool) -> JobDetail | RemovalView:
        with suppress(NotFoundError):
            return self.status()
        with suppress(NotFoundError):
            return self._removed(output=False, topics=topics)
        return RemovalView(left=())

    def batches(self, *, most: int | None = None) -> Batches:
        """The `most` newest batches, newest first; None means all."""
        return Batches(self._transport, f"{self._path}/batches", most)

    def dimensions(self) -> list[DimensionVersions]:
        return self._transport.ask(DimensionList, f"{self._path}/dimensions").items

    def dimension(self, table: str) -> RemoteDimension:
        return RemoteDimension(self._transport, self.id, table)

    def output(self, *, limit: int = 100, sink: str | None = None) -> OutputRows:
        """The newest rows of its Delta output, at most 1,000; `sink` as in `inspect.preview`."""
        return OutputRows(self._transport, f"{self._path}/preview", limit=limit, sink=sink)

    def events(self, *, after: int | None = None) -> EventStream:
        """Transitions after number `after`, then live events."""
        return EventStream(self._transport, self.id, after)

    def acknowledge(
        self,
        decision: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        timeout_s: float = 120.0,
    ) -> AcknowledgementView:
        """Decide how a stalled job continues; raises as `dead_letters.replay`.

        `decision` has `cause` and `reason`, and optionally `choice` and `by`.
        """
        path, key = f"{self._path}:acknowledge", idempotency_key
        return self._ask_runner(AcknowledgementView, path, decision, key, timeout_s)

    def _ask_runner(
        self,
        model: type[Answer],
        path: str,
        body: Mapping[str, Any],
        key: str | None,
        timeout_s: float,
    ) -> Answer:
        deadline = time.monotonic() + timeout_s
        headers = {"Idempotency-Key": key or uuid4().hex}
        answer = self._transport.send("POST", path, json=body, headers=headers)
        if answer.status_code != httpx.codes.ACCEPTED:
            return self._transport.read(model, answer)
        request = self._transport.read(RequestView, answer)
        while request.status == "waiting":
            if time.monotonic() > deadline:
                raise WaitTimeoutError(
                    f'runner did not answer request "{request.id}" in time',
                    hint="The request stays pending; check it with sluice jobs get.",
                )
            time.sleep(_POLL_S)
            request = self._transport.ask(RequestView, f"{self._path}/requests/{request.id}")
        if request.error is not None:
            error = request.error
            raise RefusedError(error.message, hint=error.hint, problem=error.model_dump())
        return parsed(model, request.result)


def _ended(status: JobDetail, target: str) -> ControlPlaneError:
    error = status.error
    cause = status.reason if error is None else error.message
    return ControlPlaneError(
        f'job "{status.id}" is {status.state}, not {target}: {cause}',
        hint="Check the events of the job." if error is None else error.hint,
    )
