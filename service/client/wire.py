"""A client whose answers are the API's JSON documents, used by the command line and the demo."""

# reads better long: one method for each address of the API
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from service.errors import (
    ConfigError,
    ControlPlaneError,
    JobConflictError,
    JobNotFoundError,
    UnreachableError,
    WaitTimeoutError,
)
from service.security.credentials import Credentials

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_INSPECTION_TIMEOUT = httpx.Timeout(330.0, connect=5.0)
_STREAM = httpx.Timeout(60.0, connect=5.0)  # a heartbeat comes every 15 s
_POLL_S = 0.5
_NEWEST = 5  # batches to look at: the last ones may not be committed yet
_NONE = Credentials()
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class RefusedError(ControlPlaneError, fault="refused"):
    """The control plane answered with a problem.

    Attributes:
        problem: the whole document.
        retry_after_s: when to ask again, if the answer says so.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str,
        problem: Mapping[str, Any],
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.problem = problem
        self.retry_after_s = retry_after_s


class Client:
    """Speaks with one control plane; answers are the JSON documents of the API.

    Raises:
        UnreachableError: `url` is no address.
    """

    # reads better long: one method for each address of the API

    def __init__(self, url: str, credentials: Credentials = _NONE) -> None:
        self._url = url.rstrip("/")
        _check_address(self._url)
        headers = {}
        if credentials.token is not None:
            _check_way(self._url)
            headers["Authorization"] = f"Bearer {credentials.token}"
        # verify=False: there is nothing to verify without TLS, and redirects are not followed;
        # trust_env=False: a proxy of the environment has no business between us and loopback
        self._http = httpx.Client(
            base_url=self._url,
            timeout=_TIMEOUT,
            trust_env=False,
            headers=headers,
            verify=_trusted(credentials.ca_file) if self._url.startswith("https:") else False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def version(self) -> dict[str, Any]:
        """Which program answers."""
        return self._json("GET", "/v1/version")

    def submit(
        self, sql: str, name: str | None = None, *, idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """Submit a script; the job is durable when this returns.

        Raises:
            RefusedError: it cannot be planned, or what it names cannot be used.
        """
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        body = {"sql": sql} if name is None else {"sql": sql, "name": name}
        return self._json("POST", "/v1/jobs", json=body, headers=headers)

    def validate(self, sql: str, name: str | None = None) -> dict[str, Any]:
        """Check a script and everything that it names, as `submit` does; nothing is kept.

        Raises:
            RefusedError: it cannot be planned, or what it names cannot be used.
        """
        body = {"sql": sql} if name is None else {"sql": sql, "name": name}
        return self._json("POST", "/v1/jobs:validate", json=body)

    def statements(self, sql: str) -> list[dict[str, Any]]:
        """What the questions of a script are answered; nothing is declared for later.

        Raises:
            RefusedError: it cannot be read, asks nothing, or would start a job.
        """
        return list(self._json("POST", "/v1/statements", json={"sql": sql})["answers"])

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, the newest first."""
        return self._all_items("/v1/jobs")

    def find(self, reference: str) -> str:
        """The id that `reference` means: an id, the unique beginning of one, or a name.

        Raises:
            JobNotFoundError: no job, or several, could be meant.
        """
        if _ID.fullmatch(reference):
            return reference
        jobs = self.jobs()
        ids = [job["id"] for job in jobs if job["name"] == reference]
        ids = ids or [job["id"] for job in jobs if job["id"].startswith(reference)]
        if len(ids) != 1:
            fault = "does not exist" if not ids else f"could be one of {len(ids)} jobs"
            raise JobNotFoundError(
                f'job "{reference}" {fault}',
                hint="Run sluice jobs ls to see the jobs and their ids.",
            )
        return str(ids[0])

    def job(self, job_id: str) -> dict[str, Any]:
        """Everything about one job."""
        return self._json("GET", f"/v1/jobs/{job_id}")

    def stop(self, job_id: str) -> dict[str, Any]:
        """Ask a job to stop; it goes on for the rest of its batch."""
        return self._json("POST", f"/v1/jobs/{job_id}:stop")

    def pause(self, job_id: str) -> dict[str, Any]:
        """Ask a job to pause after its batch."""
        return self._json("POST", f"/v1/jobs/{job_id}:pause")

    def start(self, job_id: str) -> dict[str, Any]:
        """Start a paused, stopped or failed job where it left off."""
        return self._json("POST", f"/v1/jobs/{job_id}:start")

    def remove(self, job_id: str, *, output: bool = False) -> dict[str, Any] | None:
        """Remove a job; None when it is gone, the job while the removal goes on.

        If some of the output of a job that is gone is left, `{"left": [what and why]}`.
        """
        query = {"output": str(output).lower()}
        answer = self._request("DELETE", f"/v1/jobs/{job_id}", params=query)
        return None if answer.status_code == httpx.codes.NO_CONTENT else dict(answer.json())

    def events(self, job_id: str, *, after: int = 0) -> list[dict[str, Any]]:
        """The transitions of a job behind the sequence number `after`, the oldest first."""
        events: list[dict[str, Any]] = []
        cursor = after
        while True:
            query = {"cursor": cursor, "limit": 500}
            page = self._json("GET", f"/v1/jobs/{job_id}/events", params=query)
            events += page["items"]
            if len(page["items"]) < query["limit"]:
                return events
            cursor = page["next_cursor"]

    def watermarks(self, job_id: str) -> dict[str, Any]:
        """Each channel's watermark and the combined one."""
        return self._json("GET", f"/v1/jobs/{job_id}/watermarks")

    def explain_wait(self, job_id: str) -> dict[str, Any]:
        """What the job waits for: one sentence, and each condition with its evidence."""
        return self._json("GET", f"/v1/jobs/{job_id}/explain-wait")

    def acknowledge(
        self, job_id: str, decision: Mapping[str, Any], *, idempotency_key: str, timeout_s: float
    ) -> dict[str, Any]:
        """Acknowledge a cause; waits for the runner. `decision` is the body of the request.

        Raises:
            RefusedError: there is nothing to acknowledge, or no runner.
            WaitTimeoutError: the runner has not answered in time; the request stays.
        """
        return self._runner_answer(job_id, ":acknowledge", decision, idempotency_key, timeout_s)

    def acknowledgements(self, job_id: str) -> list[dict[str, Any]]:
        """Everything that was acknowledged, the oldest first."""
        return self._all_items(f"/v1/jobs/{job_id}/acknowledgements")

    def dead_letters(
        self, job_id: str, *, cursor: str | None = None, limit: int = 100, pending: bool = False
    ) -> dict[str, Any]:
        """A page of dead letters."""
        query: dict[str, Any] = {"limit": limit, "pending": str(pending).lower()}
        if cursor is not None:
            query["cursor"] = cursor
        path = f"/v1/jobs/{job_id}/dead-letters"
        return self._json("GET", path, params=query, timeout=_INSPECTION_TIMEOUT)

    def dead_letter(self, job_id: str, place: str, **query: int) -> dict[str, Any]:
        """One dead letter; `place` is `partition/offset`."""
        path = f"/v1/jobs/{job_id}/dead-letters/{place}"
        return self._json("GET", path, params=query, timeout=_INSPECTION_TIMEOUT)

    def replay_dead_letters(
        self, job_id: str, replay: Mapping[str, Any], *, idempotency_key: str, timeout_s: float
    ) -> dict[str, Any]:
        """Join dead letters again; waits for the runner. `replay` is the body of the request.

        Raises:
            RefusedError: they cannot be replayed, or there is no runner.
            WaitTimeoutError: the runner has not answered in time; the request stays.
        """
        return self._runner_answer(
            job_id, "/dead-letters:replay", replay, idempotency_key, timeout_s
        )

    def batch(self, job_id: str, number: int) -> dict[str, Any]:
        """A batch: its pin and what it has committed."""
        path = f"/v1/jobs/{job_id}/batches/{number}"
        return self._json("GET", path, timeout=_INSPECTION_TIMEOUT)

    def newest_batch(self, job_id: str) -> int:
        """The number of the newest batch that was committed.

        Raises:
            JobConflictError: there is none yet.
        """
        path, query = f"/v1/jobs/{job_id}/batches", {"limit": _NEWEST}
        batches = self._json("GET", path, params=query, timeout=_INSPECTION_TIMEOUT)["items"]
        committed = [int(each["batch"]) for each in batches if each["committed"]]
        if not committed:
            raise JobConflictError(
                f'job "{job_id}" has committed no batch yet',
                hint=f"Run sluice wait {job_id} join first.",
            )
        return committed[0]

    def replay_batch(
        self, job_id: str, number: int, *, diff: bool = False, sink: str | None = None
    ) -> dict[str, Any]:
        """Repeat a batch and compare; nothing is written. `sink` as of `preview`."""
        path = f"/v1/jobs/{job_id}/batches/{number}:replay"
        query = {"diff": str(diff).lower(), **_of_sink(sink)}
        return self._json("POST", path, params=query, timeout=_INSPECTION_TIMEOUT)

    def explain_row(
        self, job_id: str, coordinates: str, *, sink: str | None = None
    ) -> dict[str, Any]:
        """What became of a record at `topic/partition/offset`; `sink` as of `preview`."""
        path = f"/v1/jobs/{job_id}/rows/{coordinates}"
        return self._json("GET", path, params=_of_sink(sink), timeout=_INSPECTION_TIMEOUT)

    def doctor(self, job_id: str | None = None) -> dict[str, Any]:
        """Examine a job, or the control plane's machine."""
        path = "/v1/doctor" if job_id is None else f"/v1/jobs/{job_id}/doctor"
        return self._json("GET", path, timeout=_INSPECTION_TIMEOUT)

    def dimensions(self, job_id: str) -> list[dict[str, Any]]:
        """The tables that a job joins with, and their versions."""
        page = self._json("GET", f"/v1/jobs/{job_id}/dimensions", timeout=_INSPECTION_TIMEOUT)
        return list(page["items"])

    def dimension_rows(self, job_id: str, table: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """A page of rows of a table at a version; `query` is that of the address."""
        path = f"/v1/jobs/{job_id}/dimensions/{quote(table, safe='')}"
        return self._json("GET", path, params=dict(query), timeout=_INSPECTION_TIMEOUT)

    def dimension_changes(
        self, job_id: str, table: str, query: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A page of what changed between two versions; `query` is that of the address."""
        path = f"/v1/jobs/{job_id}/dimensions/{quote(table, safe='')}/changes"
        return self._json("GET", path, params=dict(query), timeout=_INSPECTION_TIMEOUT)

    def preview(self, job_id: str, limit: int = 20, *, sink: str | None = None) -> dict[str, Any]:
        """The newest rows of a job's output, with their batches.

        Of a statement set, `sink` is the table or the number of the INSERT; None is the first.
        """
        path, query = f"/v1/jobs/{job_id}/preview", {"limit": limit, **_of_sink(sink)}
        return self._json("GET", path, params=query, timeout=_INSPECTION_TIMEOUT)

    def create_token(self, name: str, scope: str, days: int) -> dict[str, Any]:
        """Make a token; its text is in the answer and nowhere else. Needs scope admin."""
        body = {"name": name, "scope": scope, "expires_in_days": days}
        return self._json("POST", "/v1/tokens", json=body)

    def tokens(self) -> list[dict[str, Any]]:
        """All tokens, the newest first. Needs scope admin."""
        return self._all_items("/v1/tokens")

    def revoke_token(self, token_id: str) -> None:
        """End a token. Needs scope admin."""
        self._request("DELETE", f"/v1/tokens/{token_id}")

    def log(self, job_id: str, offset: int | None = None) -> tuple[str, int]:
        """A block of the runner's log (the end without an offset) and where the next one starts."""
        query = {} if offset is None else {"offset": offset}
        answer = self._request("GET", f"/v1/jobs/{job_id}/log", params=query)
        return answer.text, int(answer.headers["Sluice-Next-Offset"])

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401 (httpx's)
        """One request; `options` are those of httpx.

        Raises:
            RefusedError: the control plane answers with a problem.
            ControlPlaneError: it cannot be reached.
        """
        return self._request(method, path, **options)

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """An answer that goes on, to be read while it comes; raises as `request`."""
        try:
            with self._http.stream("GET", path, headers=dict(headers), timeout=_STREAM) as answer:
                if answer.is_error:
                    answer.read()
                    raise self._refusal(answer)
                yield answer
        except (httpx.TransportError, httpx.InvalidURL) as exc:
            raise ControlPlaneError(
                f'stream of "{self._url}{path}" has ended: {_cause(exc)}',
                hint="Open it again; Last-Event-ID says where to go on.",
            ) from exc

    def _all_items(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        query: dict[str, Any] = {}
        while True:
            page = self._json("GET", path, params=query)
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            query = {"cursor": page["next_cursor"]}

    def _runner_answer(
        self, job_id: str, path: str, body: Mapping[str, Any], key: str, timeout_s: float
    ) -> dict[str, Any]:
        """Send a request to a runner and follow it to its end."""
        deadline = time.monotonic() + timeout_s
        headers = {"Idempotency-Key": key}
        answer = self._request("POST", f"/v1/jobs/{job_id}{path}", json=body, headers=headers)
        request = dict(answer.json())
        if answer.status_code != httpx.codes.ACCEPTED:
            return request
        request_id = request["id"]
        while request["status"] == "waiting":
            if time.monotonic() > deadline:
                raise WaitTimeoutError(
                    f'runner has not answered request "{request_id}" yet',
                    hint="It is kept and carried out; look again with sluice jobs get.",
                )
            time.sleep(_POLL_S)
            request = self._json("GET", f"/v1/jobs/{job_id}/requests/{request_id}")
        if request["status"] == "refused":
            error = request["error"]
            raise RefusedError(error["message"], hint=error["hint"], problem=error)
        return dict(request["result"])

    def _json(self, method: str, path: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 (httpx's)
        return dict(self._request(method, path, **options).json())

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401 (httpx's)
        try:
            answer = self._http.request(method, path, **options)
        except (httpx.TransportError, httpx.InvalidURL) as exc:
            raise UnreachableError(
                f'control plane at "{self._url}" cannot be reached: {_cause(exc)}',
                hint="Start it with sluice serve, or name another one with --server.",
            ) from exc
        if answer.is_error:
            raise self._refusal(answer)
        return answer

    def _refusal(self, answer: httpx.Response) -> ControlPlaneError:
        if not answer.headers.get("content-type", "").startswith("application/problem+json"):
            return UnreachableError(
                f'"{self._url}" answered {answer.status_code} and is no control plane of Sluice',
                hint="Name the control plane's address with --server.",
            )
        problem = answer.json()
        again = answer.headers.get("Retry-After", "")
        return RefusedError(
            problem["detail"],
            hint=problem["hint"],
            problem=problem,
            retry_after_s=float(again) if again.isdecimal() else None,
        )


def _check_address(url: str) -> None:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise UnreachableError(
            f'control plane cannot be reached: "{url}" is no address',
            hint="Write the whole address, such as http://127.0.0.1:8326.",
        )


def _check_way(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise ControlPlaneError(
            f'token would travel to "{url}" in the clear',
            hint="Use https://, or an SSH tunnel to loopback; nothing was sent.",
        )


def _trusted(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as exc:
        raise ConfigError(
            f'file "{ca_file}" of trusted authorities cannot be used: {exc.strerror or exc}',
            hint="Set SLUICE_CA_FILE to a PEM file, or unset it for those of this machine.",
        ) from exc


def _cause(exc: Exception) -> str:
    if isinstance(exc, httpx.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in str(exc):
        return "its certificate is not trusted (SLUICE_CA_FILE names further authorities)"
    if isinstance(exc, httpx.ConnectError) and "[SSL" in str(exc):
        return "it does not speak TLS as we do"
    if isinstance(exc, httpx.ConnectError):
        return "connection refused"
    return "no answer in time" if isinstance(exc, httpx.TimeoutException) else type(exc).__name__


def _of_sink(sink: str | None) -> dict[str, str]:
    return {} if sink is None else {"sink": sink}
