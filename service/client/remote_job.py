"""One job of a control plane, as the typed client gives it."""

import time
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from service.client.events import EventStream
from service.client.refusals import NotFoundError
from service.client.tables import Batches, RemoteDimension
from service.client.transport import Transport, parsed
from service.errors import ControlPlaneError
from service.schemas.inspection import DeadLetterView
from service.schemas.jobs import JobDetail
from service.schemas.progress import WaitReport, WatermarkReport
from service.schemas.tables import DimensionVersions, Preview

_POLL_S = 0.5
_ENDED = ("FAILED", "STOPPED", "FINISHED")


class RemoteJob:
    """A job; each method asks the control plane.

    Example:
        >>> job.status().name
        'enriched'
        >>> job.wait_until("JOIN", timeout_s=60).phase
        'JOIN'
        >>> [row.values["price"] for row in job.preview(limit=1).items]
        ['12.50']
    """

    # reads better long: one method for each address of a job

    def __init__(self, transport: Transport, job_id: str) -> None:
        self.id = job_id
        self._transport = transport
        self._path = f"/v1/jobs/{job_id}"

    def __repr__(self) -> str:
        return f"RemoteJob({self.id!r})"

    def status(self) -> JobDetail:
        """Where it stands now."""
        return parsed(JobDetail, self._transport.get(self._path))

    def wait_until(self, target: str, *, timeout_s: float = 3600.0) -> JobDetail:
        """Wait for a phase (`LOAD`, `JOIN`) or a state (such as `JOINING`, `FINISHED`).

        Raises:
            ControlPlaneError: it has ended in another state, or the time is over.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            status = self.status()
            if target in (status.state, status.phase):
                return status
            if status.state in _ENDED and status.desired_state != "RUNNING":
                raise _ended(status, target)
            if status.state in ("FAILED", "FINISHED"):
                raise _ended(status, target)
            if time.monotonic() > deadline:
                raise ControlPlaneError(
                    f'job "{self.id}" is {status.state}, not {target}: {status.reason}',
                    hint="It goes on; wait again, or ask what it waits for.",
                )
            time.sleep(_POLL_S)

    def pause(self) -> JobDetail:
        """Let it keep its place and process nothing, from the end of its batch on."""
        return self._changed("pause")

    def resume(self) -> JobDetail:
        """Let a paused job go on."""
        return self._changed("resume")

    def stop(self) -> JobDetail:
        """Let its runner end after its batch; the job keeps its place."""
        return self._changed("stop")

    def start(self) -> JobDetail:
        """Start it where it left off."""
        return self._changed("start")

    def _changed(self, what: str) -> JobDetail:
        return parsed(JobDetail, self._transport.send("POST", f"{self._path}:{what}").json())

    def delete(self, *, output: bool = False, timeout_s: float = 120.0) -> None:
        """Remove it with its topics, tables and checkpoint, with `output` also what it has written.

        Raises:
            ControlPlaneError: it is not gone in time; the removal goes on.
        """
        deadline = time.monotonic() + timeout_s
        try:
            self._transport.send("DELETE", self._path, params={"output": str(output).lower()})
            while time.monotonic() < deadline:
                self.status()
                time.sleep(_POLL_S)
        except NotFoundError:
            return
        raise ControlPlaneError(
            f'job "{self.id}" is not removed yet', hint="It goes on; look at the job's status."
        )

    def watermarks(self) -> WatermarkReport:
        """Each channel's watermark and the combined one."""
        return parsed(WatermarkReport, self._transport.get(f"{self._path}/watermarks"))

    def explain_wait(self) -> WaitReport:
        """Why nothing is coming out, if it is so."""
        return parsed(WaitReport, self._transport.get(f"{self._path}/explain-wait"))

    def batches(self, *, most: int | None = None) -> Batches:
        """Its batches, the newest first."""
        return Batches(self._transport, self.id, most)

    def dimensions(self) -> tuple[DimensionVersions, ...]:
        """The tables that it joins with."""
        page = self._transport.get(f"{self._path}/dimensions")
        return tuple(parsed(DimensionVersions, item) for item in page["items"])

    def dimension(self, table: str) -> RemoteDimension:
        """One table that it joins with."""
        return RemoteDimension(self._transport, self.id, table)

    def preview(self, *, limit: int = 20, sink: str | None = None) -> Preview:
        """The newest rows of its output; `sink` is the table of one of several INSERTs."""
        return parsed(Preview, self._transport.get(f"{self._path}/preview", limit=limit, sink=sink))

    def events(self, *, after: int | None = None) -> EventStream:
        """Its transitions behind number `after`, then what happens, as it happens."""
        return EventStream(self._transport, self.id, after)

    def dead_letters(self, *, pending: bool = False) -> Iterator[DeadLetterView]:
        """Records of the stream that have no rows, with `pending` those not yet replayed."""
        query = {"limit": 500, "pending": str(pending).lower()}
        letters = self._transport.items(f"{self._path}/dead-letters", **query)
        return (parsed(DeadLetterView, letter) for letter in letters)

    def replay_dead_letters(
        self, replay: Mapping[str, Any] | None = None, *, timeout_s: float = 600.0
    ) -> dict[str, Any]:
        """Join dead letters again, all without `replay` (the body of the request).

        Raises:
            RefusedError: they cannot be replayed, or there is no runner.
            ControlPlaneError: the runner has not answered in time; the request stays.
        """
        body = {"all": True} if replay is None else replay
        key = uuid4().hex
        return self._transport.client.replay_dead_letters(
            self.id, body, idempotency_key=key, timeout_s=timeout_s
        )

    def acknowledge(
        self, cause: str, reason: str, *, choice: str | None = None, timeout_s: float = 120.0
    ) -> dict[str, Any]:
        """Decide on a stall that waits for an operator; raises as `replay_dead_letters`."""
        decision = {"cause": cause, "choice": choice, "reason": reason}
        key = uuid4().hex
        return self._transport.client.acknowledge(
            self.id, decision, idempotency_key=key, timeout_s=timeout_s
        )


def _ended(status: JobDetail, target: str) -> ControlPlaneError:
    cause = status.error.message if status.error is not None else status.reason
    hint = status.error.hint if status.error is not None else "Look at the events of the job."
    return ControlPlaneError(
        f'job "{status.id}" is {status.state}, not {target}: {cause}', hint=hint
    )
