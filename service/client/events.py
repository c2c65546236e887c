"""Server-sent events of a job: transitions in order, none twice, over lost connections.

Source: WHATWG HTML, "Server-sent events".
"""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from service.client.refusals import is_passing
from service.client.transport import Transport, parsed
from service.errors import ControlPlaneError
from service.schemas.document import Document
from service.schemas.jobs import JobSummary
from service.schemas.progress import Transition

_SHORTEST_S = 0.2
_LONGEST_S = 10.0


class StatusChanged(Document):
    """What a job has just become, between transitions."""

    status: JobSummary


class Removed(Document):
    """A job is gone: the last event of its stream."""

    job_id: str


Event = Transition | StatusChanged | Removed


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event as it came."""

    name: str
    data: str
    id: str | None


def _lines(blocks: Iterable[bytes]) -> Iterator[str]:
    """The lines of a stream of `blocks`: a value of JSON may have what else ends a line of text."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from (line.removesuffix(b"\r").decode(errors="replace") for line in whole)


def parse(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """The events in the lines of a stream; what its end cuts off is dropped, as in browsers."""
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
    """Follows one job; an iterator that ends when the job is gone.

    A connection that is lost is opened again behind the last transition that came.

    Attributes:
        last_id: number of the last transition that was given; to go on later.
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
    """The event; None for a kind that only newer clients know."""
    document = json.loads(server_event.data)
    if server_event.name == "transition":
        return parsed(Transition, document)
    if server_event.name == "status":
        return StatusChanged(status=parsed(JobSummary, document))
    return parsed(Removed, document) if server_event.name == "removed" else None
