"""The client of one control plane."""

import os
import re
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from urllib.parse import quote
from uuid import uuid4

from joins.plan.errors import suggestion
from service.client.remote_job import RemoteJob
from service.client.tables import html_of_jobs
from service.client.transport import Pages, Transport
from service.errors import JobNotFoundError
from service.schemas.document import ExampleList, VersionView
from service.schemas.inspection import CheckReport
from service.schemas.jobs import JobPage, JobSummary, ListedJob
from service.schemas.progress import (
    AnswerList,
    AnswerView,
    EventPage,
    MigrationView,
    Transition,
    Validation,
)
from service.schemas.tables import (
    CatalogList,
    CatalogTable,
    CatalogTableDetail,
    TableCreation,
)
from service.schemas.tokens import CreatedToken, SecretList, StoredSecret, TokenPage, TokenView
from service.security.tokens import Credentials
from service.version import DEFAULT_HOST, DEFAULT_PORT


class Catalog:
    """The catalog of a control plane: tables and views that all later scripts can use."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, sql: str) -> TableCreation:
        """Store the tables and views of a script, all or none.

        Raises InvalidRequestError if a statement or a system that it names cannot be used,
        ConflictError if a name exists with another declaration.
        """
        return self._transport.post(TableCreation, "/v1/tables", json={"sql": sql})

    def tables(self) -> list[CatalogTable]:
        return self._transport.ask(CatalogList, "/v1/tables").items

    def table(self, name: str) -> CatalogTableDetail:
        """One table or view; raises NotFoundError."""
        return self._transport.ask(CatalogTableDetail, f"/v1/tables/{quote(name, safe='')}")

    def drop(self, name: str) -> None:
        """Drop a table or view, and a shared table's copy. Raises NotFoundError, ConflictError."""
        self._transport.send("DELETE", f"/v1/tables/{quote(name, safe='')}")


class RemoteTokens:
    """The tokens of a control plane; requires scope admin."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Pages[TokenPage, TokenView]:
        """All tokens, newest first."""
        return Pages(self._transport, TokenPage, "/v1/tokens", 500)

    def create(self, name: str, scope: str, days: int) -> CreatedToken:
        """Create a token; only this answer contains its text."""
        body = {"name": name, "scope": scope, "expires_in_days": days}
        return self._transport.post(CreatedToken, "/v1/tokens", json=body)

    def revoke(self, token_id: str) -> None:
        self._transport.send("DELETE", f"/v1/tokens/{token_id}")


class RemoteSecrets:
    """The secrets of a control plane; requires scope admin."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> SecretList:
        return self._transport.ask(SecretList, "/v1/secrets")

    def set(self, name: str, value: str) -> StoredSecret:
        """Store or replace a secret in the control plane's directory.

        Raises InvalidRequestError for a malformed name or value, ControlPlaneError instead of
        sending the value unencrypted.
        """
        self._transport.check_way("secret")
        path = f"/v1/secrets/{quote(name, safe='')}"
        answer = self._transport.send("PUT", path, json={"value": value})
        return self._transport.read(StoredSecret, answer)

    def remove(self, name: str) -> SecretList:
        """Remove a secret from the control plane's directory; returns the remaining ones."""
        path = f"/v1/secrets/{quote(name, safe='')}"
        return self._transport.read(SecretList, self._transport.send("DELETE", path))


_PLACE_VARIABLES = ("SLUICE_HOST", "SLUICE_PORT", "SLUICE_TLS_CERT")
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def usual_address() -> str:
    """The control plane that the settings of this process describe."""
    if not any(os.environ.get(name) for name in _PLACE_VARIABLES):
        return f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
    from service.config import Settings  # slow to load, rarely needed

    settings = Settings.load()
    host = _ANY_ADDRESS.get(settings.host, settings.host)
    host = f"[{host}]" if ":" in host else host
    scheme = "http" if settings.tls_cert is None else "https"
    return f"{scheme}://{host}:{settings.port}"


_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Sluice(AbstractContextManager["Sluice"]):
    """The client of one control plane; a context manager.

    While the control plane is unreachable, idempotent requests are retried: reads, stop and start,
    and submissions, which carry an idempotency key.

    Args:
        control_plane: its address; default: as the commands, `SLUICE_SERVER` with `SLUICE_TOKEN`,
            or the one of this machine's settings.
        token: sent with each request; not required on loopback by default.
        ca_file: PEM file of trusted authorities; default: the machine's.
        attempts: maximum attempts within a minute; 1 disables retries.

    Example:
        >>> with Sluice(url) as sluice:
        ...     job = sluice.submit(script, name="enriched", idempotency_key="my-deployment-7")
        ...     again = sluice.submit(script, name="enriched", idempotency_key="my-deployment-7")
        ...     again.id == job.id
        True
    """

    def __init__(
        self,
        control_plane: str | None = None,
        *,
        token: str | None = None,
        ca_file: Path | None = None,
        attempts: int = 6,
    ) -> None:
        shown = Credentials(token, ca_file)
        if control_plane is None:
            control_plane = os.environ.get("SLUICE_SERVER") or usual_address()
            kept = Credentials.of_environment()
            shown = Credentials(token or kept.token, ca_file or kept.ca_file)
        self._transport = Transport(control_plane, shown, attempts)
        self.catalog = Catalog(self._transport)
        self.tokens = RemoteTokens(self._transport)
        self.secrets = RemoteSecrets(self._transport)

    def _repr_html_(self) -> str:
        return html_of_jobs(self.jobs())

    @property
    def url(self) -> str:
        return self._transport.url

    def close(self) -> None:
        self._transport.close()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def submit(
        self,
        sql: str,
        name: str | None = None,
        *,
        idempotency_key: str | None = None,
        append: bool = False,
    ) -> RemoteJob:
        """Submit a script; the job is stored durably, exactly once, when this returns.

        Args:
            sql: the script.
            name: unique among active jobs; default: the sink's name.
            append: allow an output that another job also writes to.
            idempotency_key: the same key returns the same job, also in another process; default:
                a new key.

        Raises:
            InvalidRequestError: the script is invalid, or a system it names cannot be used.
            ConflictError: the key belongs to another submission, or an active job has the name or
                writes to an output of the script.
        """
        body = _script(sql, name, append=append)
        headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
        job = self._transport.post(JobSummary, "/v1/jobs", json=body, headers=headers)
        return RemoteJob(self._transport, job.id)

    def validate(self, sql: str, name: str | None = None, *, append: bool = False) -> Validation:
        """Check a script and the systems that it names, as `submit` does; stores nothing."""
        body = _script(sql, name, append=append)
        return self._transport.post(Validation, "/v1/jobs:validate", json=body)

    def migrate(self, sql: str) -> MigrationView:
        """The script as it would be accepted, with a comment for each change; stores nothing."""
        return self._transport.post(MigrationView, "/v1/jobs:migrate", json={"sql": sql})

    def statements(self, sql: str) -> list[AnswerView]:
        """Answers to the questions of a script; stores no declaration.

        Raises RefusedError if the script is invalid, asks nothing, or would start a job.
        """
        return self._transport.post(AnswerList, "/v1/statements", json={"sql": sql}).answers

    def job(self, reference: str) -> RemoteJob:
        """The job with this id, unique prefix of an id, or name.

        Raises JobNotFoundError if no job, or several, match.
        """
        if _ID.fullmatch(reference):
            return RemoteJob(self._transport, reference)
        jobs = list(self.jobs())
        ids = [job.id for job in jobs if job.name == reference]
        if reference and not ids:  # every id begins with "", an unset variable of a shell
            ids = [job.id for job in jobs if job.id.startswith(reference)]
        if len(ids) != 1:
            fault = "does not exist" if not ids else f"matches {len(ids)} jobs"
            hint = "Run sluice jobs ls to see the jobs and their ids."
            if not ids:
                hint = suggestion(reference, [job.name for job in jobs], hint)
            raise JobNotFoundError(f'job "{reference}" {fault}', hint=hint)
        return RemoteJob(self._transport, ids[0])

    def jobs(self) -> Pages[JobPage, ListedJob]:
        """All jobs, newest first."""
        return Pages(self._transport, JobPage, "/v1/jobs", 500)

    def transitions(self, *, after: int = 0, job_id: str | None = None) -> list[Transition]:
        """At most 500 transitions of one or all jobs after number `after`, oldest first."""
        path = "/v1/events" if job_id is None else f"/v1/jobs/{job_id}/events"
        return self._transport.ask(EventPage, path, cursor=after, limit=500).items

    def version(self) -> VersionView:
        return self._transport.ask(VersionView, "/v1/version")

    def examples(self) -> ExampleList:
        """Scripts that run on this control plane, and the directory of `sluice up`."""
        return self._transport.ask(ExampleList, "/v1/examples")

    def doctor(self) -> CheckReport:
        return self._transport.ask(CheckReport, "/v1/doctor")


def _script(sql: str, name: str | None, *, append: bool) -> dict[str, object]:
    named: dict[str, object] = {} if name is None else {"name": name}
    return {"sql": sql, **named, **({"append": True} if append else {})}
