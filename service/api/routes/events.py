"""`/v1/jobs/{id}/events` and `/v1/events`: transitions as a list or as server-sent events.

All streams share one read of the store per tick. A transition's number is its event id, so a client
that reconnects with `Last-Event-ID` misses none. A status has no id; the next one replaces it. A
stream ends when its job is removed, its token is no longer valid, the server shuts down, or the
client stops reading.
"""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from service.api.http.access import VIEWER
from service.api.http.checks import EVENT_STREAM, wants
from service.api.services import Injected, JobId
from service.errors import BusyError, JobNotFoundError
from service.jobs.store.job import STATE_WORDS, JobEvent
from service.jobs.store.rows import StoredJobs
from service.jobs.store.store import JobStore
from service.schemas.jobs import JobDetail
from service.schemas.progress import EventPage, Transition
from watermark.errors import SluiceError

MOST_STREAMS = 128
MOST_OF_ONE_TOKEN = MOST_STREAMS // 4
_TICK_S = 0.4
_HEARTBEAT_S = 15
_SEND_TIMEOUT_S = 30.0
_RETRY_MS = 2_000
_PAGE = 500
_log = structlog.get_logger(__name__)


def event_view(event: JobEvent) -> Transition:
    return Transition(
        sequence=event.sequence,
        job_id=event.job_id,
        at_ms=event.at_ms,
        origin=event.origin,
        target=event.target,
        word=STATE_WORDS[event.target],
        word_before="" if event.origin is None else STATE_WORDS[event.origin],
        cause=event.cause,
    )


class EventHub:
    """State shared by all event streams: the newest event, the jobs, and the seats."""

    def __init__(self, store: JobStore, *, closing: Callable[[], bool]) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._seats: Counter[str | None] = Counter()
        self._looked_at = float("-inf")
        self._newest = 0
        self._jobs: frozenset[str] = frozenset()
        self.closing = closing

    def look(self) -> tuple[int, frozenset[str]]:
        """The newest event's number and all job ids, at most a tick old."""
        with self._lock:
            if time.monotonic() - self._looked_at >= _TICK_S / 2:
                self._newest = self._store.events.newest()
                self._jobs = self._store.look(StoredJobs.ids)
                self._looked_at = time.monotonic()
            return self._newest, self._jobs

    def take_seat(self, token_id: str | None) -> None:
        """Count a new stream; raises BusyError above a limit. One token gets a quarter of all."""
        with self._lock:
            of_one, of_all = self._seats[token_id], self._seats.total()
            many = token_id is not None and of_one >= MOST_OF_ONE_TOKEN
            if many or of_all >= MOST_STREAMS:
                whose = (
                    f"{of_one} event streams of this token" if many else f"{of_all} event streams"
                )
                raise BusyError(
                    f"{whose} are open, expected fewer",
                    hint="Close unused streams, or request the list with a cursor.",
                )
            self._seats[token_id] += 1

    def give_seat_back(self, token_id: str | None) -> None:
        with self._lock:
            self._seats[token_id] -= 1
            if not self._seats[token_id]:
                del self._seats[token_id]


@dataclass(slots=True)
class Following:
    """Progress of one stream: of one job with its status, or of all jobs (`job_id` None)."""

    hub: EventHub
    store: JobStore
    job_id: str | None
    after: int
    detail: Callable[[], JobDetail] | None = None
    _read_to: int = -1
    _shown: str = ""
    _known: frozenset[str] = field(default_factory=frozenset)

    def next_events(self) -> list[ServerSentEvent]:
        """Events since the last call; blocks on the store.

        Raises:
            JobNotFoundError: the job was removed.
            SluiceError: the store cannot be read.
        """
        newest, jobs = self.hub.look()
        if self.job_id is not None and self.job_id not in jobs and self._read_to >= 0:
            raise JobNotFoundError(f'job "{self.job_id}" was removed', hint="Close the stream.")
        status = list(self._status())
        events: list[ServerSentEvent] = []
        if status or newest != self._read_to:  # `newest` may be older than the status
            events += self._transitions(newest)
        events += [_removed(job_id) for job_id in sorted(self._known - jobs)]
        self._known = jobs if self.job_id is None else frozenset()
        return events + status

    def _transitions(self, newest: int) -> Iterator[ServerSentEvent]:
        while True:
            page = self.store.events.after(self.after, self.job_id, limit=_PAGE)
            for event in page:
                self.after = event.sequence
                yield _event("transition", event_view(event), number=event.sequence)
            if len(page) < _PAGE:
                self._read_to = newest
                return

    def _status(self) -> Iterator[ServerSentEvent]:
        if self.detail is None:
            return
        status = self.detail().model_dump(mode="json", by_alias=True, exclude={"sql"})
        text = json.dumps(
            {**status, "runner": {**status["runner"], "status_age_ms": None}}, sort_keys=True
        )
        if text != self._shown:
            self._shown = text
            yield _event("status", status)


@dataclass(frozen=True, slots=True)
class StreamReader:
    """The reader of a stream; `may_go_on` checks that its token is still valid."""

    token_id: str | None
    may_go_on: Callable[[], Awaitable[bool]]


def event_response(following: Following, follower: StreamReader) -> EventSourceResponse:
    """The stream as an answer; holds a seat until it ends. Raises BusyError without a free seat."""
    following.hub.take_seat(follower.token_id)
    return _SeatedResponse(following, follower)


class _SeatedResponse(EventSourceResponse):
    """Releases its seat even when the client disconnects before the first event."""

    def __init__(self, following: Following, follower: StreamReader) -> None:
        events = _stream(following, follower)
        super().__init__(events, ping=_HEARTBEAT_S, send_timeout=_SEND_TIMEOUT_S)
        self._following = following
        self._follower = follower

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 (ASGI's)
        try:
            await super().__call__(scope, receive, send)
        except TimeoutError:
            _log.info("event stream ended", job_id=self._following.job_id, cause="send timeout")
        finally:
            self._following.hub.give_seat_back(self._follower.token_id)


async def _stream(following: Following, follower: StreamReader) -> AsyncIterator[ServerSentEvent]:
    yield ServerSentEvent(comment="events", retry=_RETRY_MS)
    while not following.hub.closing():
        try:
            if not await follower.may_go_on():
                return  # the client reconnects and receives the reason
            events = await run_in_threadpool(following.next_events)
        except JobNotFoundError:
            yield _removed(following.job_id or "")
            return
        except SluiceError as exc:  # the client reconnects
            _log.warning("event stream ended", job_id=following.job_id, error=exc.message)
            return
        for event in events:
            yield event
        await asyncio.sleep(_TICK_S)


def _removed(job_id: str) -> ServerSentEvent:
    return _event("removed", {"job_id": job_id})


def _event(
    name: str, content: BaseModel | dict[str, Any], *, number: int | None = None
) -> ServerSentEvent:
    value = content if isinstance(content, dict) else content.model_dump(mode="json", by_alias=True)
    data = json.dumps(value, separators=(",", ":"))
    return ServerSentEvent(data=data, event=name, id=None if number is None else str(number))


_LARGEST = 2**63 - 1
_STREAM = {"schema": {"type": "string"}}
_FORMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page, or with `Accept: text/event-stream` a stream of events.",
        "content": {EVENT_STREAM: _STREAM},
    }
}
Cursor = Annotated[
    int | None, Query(ge=0, le=_LARGEST, description="Events after this number; default: all.")
]
LastEventId = Annotated[
    int | None,
    Header(ge=0, le=_LARGEST, description="Sent by browsers on reconnect; overrides `cursor`."),
]
router = APIRouter(prefix="/v1", tags=["events"], dependencies=[VIEWER])


@dataclass(frozen=True, slots=True)
class EventCursor:
    """Where a list or a stream continues."""

    cursor: int | None
    last_event_id: int | None
    limit: int

    @property
    def after(self) -> int | None:
        """The number of the client's last event; None if it sent none."""
        return self.cursor if self.last_event_id is None else self.last_event_id


async def _place(
    cursor: Cursor = None,
    last_event_id: LastEventId = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Of the list.")] = 100,
) -> EventCursor:
    return EventCursor(cursor, last_event_id, limit)


EventQuery = Annotated[EventCursor, Depends(_place)]


def _hub(request: Request) -> EventHub:
    hub = request.app.state.events
    assert isinstance(hub, EventHub)
    return hub


def _follower(request: Request) -> StreamReader:
    caller, gate = request.state.caller, request.app.state.guard
    return StreamReader(caller.token_id, lambda: gate.authenticator.still(caller))


def _page(events: Sequence[JobEvent]) -> EventPage:
    items = [event_view(event) for event in events]
    return EventPage(items=items, next_cursor=items[-1].sequence if items else None)


@router.get(
    "/jobs/{job_id}/events",
    summary="Show or follow transitions of a job",
    response_model=EventPage,
    responses=_FORMS,
)
def list_events(
    job_id: JobId, query: EventQuery, request: Request, services: Injected
) -> EventPage | Response:
    """Transitions with their cause, oldest first; continue later at `next_cursor`.

    A stream also sends `status` whenever the status changes, and `removed` at its end.
    """
    after = query.after or 0
    if not wants(request.headers.get("accept", ""), EVENT_STREAM):
        return _page(services.store.events.after(after, job_id, limit=query.limit))
    services.store.get(job_id)
    following = Following(
        _hub(request),
        services.store,
        job_id,
        after,
        detail=lambda: services.detail(services.store.get(job_id)),
    )
    return event_response(following, _follower(request))


@router.get(
    "/events",
    summary="Show or follow transitions of all jobs",
    response_model=EventPage,
    responses=_FORMS,
)
def list_all_events(
    query: EventQuery, request: Request, services: Injected
) -> EventPage | Response:
    """Transitions of all jobs in the order of their numbers.

    A stream without a cursor starts now; it also sends `removed` for each removed job.
    """
    if not wants(request.headers.get("accept", ""), EVENT_STREAM):
        return _page(services.store.events.after(query.after or 0, limit=query.limit))
    start = services.store.events.newest() if query.after is None else query.after
    following = Following(_hub(request), services.store, None, start)
    return event_response(following, _follower(request))
