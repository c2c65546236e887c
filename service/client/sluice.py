"""The typed client of one control plane."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from service.client.remote_job import RemoteJob
from service.client.transport import Transport, parsed
from service.client.wire import Client
from service.schemas.jobs import JobSummary
from service.schemas.progress import Transition
from service.security.credentials import Credentials


class Sluice:
    """Speaks with one control plane; a context manager.

    What is safe to repeat is sent again while the control plane cannot be reached: everything that
    only reads, stop and start and the like, and submissions, which carry an idempotency key.

    Args:
        control_plane: its address.
        token: sent with each request; a control plane on loopback may need none.
        ca_file: PEM of the authorities whose certificates are trusted; the machine's own without.

    Example:
        >>> with Sluice(url) as sluice:
        ...     job = sluice.submit(script, name="enriched", idempotency_key="my-deployment-7")
        ...     again = sluice.submit(script, name="enriched", idempotency_key="my-deployment-7")
        ...     again.id == job.id
        True
    """

    def __init__(
        self, control_plane: str, *, token: str | None = None, ca_file: Path | None = None
    ) -> None:
        self._client = Client(control_plane, Credentials(token, ca_file))
        self._transport = Transport(self._client)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def submit(
        self, sql: str, name: str | None = None, *, idempotency_key: str | None = None
    ) -> RemoteJob:
        """Submit a script; the job is durable when this returns, and there once.

        Args:
            sql: the script.
            name: for people; the sink's name when left out.
            idempotency_key: the same key is the same job, also for another process; a new one if
                left out.

        Raises:
            InvalidRequestError: the script cannot be planned, or what it names cannot be used.
            ConflictError: the key belongs to another submission.
        """
        body = {"sql": sql} if name is None else {"sql": sql, "name": name}
        headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
        job = self._transport.send("POST", "/v1/jobs", json=body, headers=headers).json()
        return RemoteJob(self._transport, str(job["id"]))

    def job(self, reference: str) -> RemoteJob:
        """The job of this id, unique beginning of an id, or name.

        Raises:
            JobNotFoundError: no job, or several, could be meant.
        """
        return RemoteJob(self._transport, self._client.find(reference))

    def jobs(self) -> Iterator[JobSummary]:
        """All jobs, the newest first."""
        return (parsed(JobSummary, item) for item in self._transport.items("/v1/jobs"))

    def transitions(self, *, after: int = 0, job_id: str | None = None) -> list[Transition]:
        """At most 500 transitions of all jobs, or of one, behind the number `after`, oldest first.

        Raises:
            NotFoundError: there is no such job.
        """
        path = "/v1/events" if job_id is None else f"/v1/jobs/{job_id}/events"
        page = self._transport.get(path, cursor=after, limit=500)
        return [parsed(Transition, item) for item in page["items"]]
