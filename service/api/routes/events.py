"""`/v1/jobs/{id}/events` and `/v1/events`: transitions as a list or as server-sent events."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response

from service.api.http.access import VIEWER
from service.api.http.negotiation import EVENT_STREAM, wants
from service.api.routes.event_stream import (
    EventHub,
    Following,
    StreamReader,
    event_response,
    event_view,
)
from service.api.routes.jobs import Injected, JobId
from service.jobs.store.job import JobEvent
from service.schemas.progress import EventPage

_LARGEST = 2**63 - 1
_STREAM = {"schema": {"type": "string"}}
_FORMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page; or with `Accept: text/event-stream` the stream, which goes on.",
        "content": {EVENT_STREAM: _STREAM},
    }
}
Cursor = Annotated[
    int | None, Query(ge=0, le=_LARGEST, description="Events after this number; from the first on.")
]
LastEventId = Annotated[
    int | None,
    Header(ge=0, le=_LARGEST, description="As a browser sends it when it comes back; wins."),
]
router = APIRouter(prefix="/v1", tags=["events"], dependencies=[VIEWER])


@dataclass(frozen=True, slots=True)
class EventCursor:
    """Where a list or a stream goes on."""

    cursor: int | None
    last_event_id: int | None
    limit: int

    @property
    def after(self) -> int | None:
        """The number of the last event that the client has; None if it says nothing."""
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
    """Every transition with its cause, the oldest first; `next_cursor` is where to go on later.

    A stream also has the event `status` whenever the status changes, and `removed` at its end.
    """
    after = query.after or 0
    if not wants(request.headers.get("accept", ""), EVENT_STREAM):
        return _page(services.store.events(job_id, after=after, limit=query.limit))
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
    """Transitions of every job in the order of their numbers.

    A stream without a number begins now; it also has the event `removed` for a job that is gone.
    """
    if not wants(request.headers.get("accept", ""), EVENT_STREAM):
        return _page(services.store.events(None, after=query.after or 0, limit=query.limit))
    start = services.store.newest_event() if query.after is None else query.after
    following = Following(_hub(request), services.store, None, start)
    return event_response(following, _follower(request))
