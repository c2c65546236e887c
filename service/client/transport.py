"""Requests to one control plane: problems become typed errors, idempotent requests are retried."""

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel

from service.errors import ConfigError, ControlPlaneError, UnreachableError, WaitTimeoutError
from service.security.tokens import Credentials


class RefusedError(ControlPlaneError, fault="refused"):
    """The control plane answered with a problem; `problem` is the whole document."""

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

    @property
    def kind(self) -> str:
        """The problem's type in kebab case, such as `job-not-found`."""
        return str(self.problem.get("type", "")).rpartition(":")[2]

    @property
    def status(self) -> int:
        return int(self.problem.get("status", 0))


class InvalidRequestError(RefusedError, fault="invalid-request"):
    """400 to 422: the request or its script must be corrected."""


class AccessError(RefusedError, fault="access"):
    """401, 403: a token is missing, wrong, expired, or of too small a scope."""


class NotFoundError(RefusedError, fault="not-found"):
    """404: there is no such job, table, version, batch or record."""


class ConflictError(RefusedError, fault="conflict"):
    """409: the request conflicts with the job's state, its sink or an earlier request."""


class ExpiredError(RefusedError, fault="expired"):
    """410: the record or version existed and has expired."""


class UnavailableError(RefusedError, fault="unavailable"):
    """429, 503: temporarily unavailable; the client retries for a minute."""


_KINDS: dict[int, type[RefusedError]] = {
    **dict.fromkeys((400, 405, 406, 413, 415, 422), InvalidRequestError),
    **dict.fromkeys((401, 403), AccessError),
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    **dict.fromkeys((429, 503), UnavailableError),
}


def refusal(problem: Mapping[str, Any], retry_after_s: float | None) -> RefusedError:
    kind = _KINDS.get(int(problem.get("status", 0)), RefusedError)
    return kind(
        problem["detail"], hint=problem["hint"], problem=problem, retry_after_s=retry_after_s
    )


def is_passing(error: Exception) -> bool:
    """True if a retry may succeed."""
    if isinstance(error, RefusedError):
        return isinstance(error, UnavailableError)
    return isinstance(error, ControlPlaneError)


Answer = TypeVar("Answer", bound=BaseModel)
_PATIENCE_S = 60.0
_TIMEOUT = httpx.Timeout(330.0, connect=5.0)
_STREAM = httpx.Timeout(60.0, connect=5.0)  # a heartbeat comes every 15 s
_CERTIFICATE = re.compile(r"certificate verify failed: (.+?)\.? \(_ssl")
_UNTRUSTED = ("issuer", "self-signed", "self signed")
_NUMBER = re.compile(r"^\[Errno -?\d+\] ")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Transport:
    """Sends requests to one control plane, up to `attempts` times while it is unreachable.

    Raises:
        UnreachableError: `url` is malformed.
        ControlPlaneError: a token would be sent unencrypted.
    """

    def __init__(self, url: str, credentials: Credentials, attempts: int) -> None:
        self.url = url.rstrip("/")
        self._attempts = attempts
        _check_address(self.url)
        headers = {}
        if credentials.token is not None:
            self.check_way("token")
            headers["Authorization"] = f"Bearer {credentials.token}"
        # verify=False: without TLS nothing is verified, and redirects are not followed;
        # trust_env=False: no proxy of the environment between us and loopback
        self._http = httpx.Client(
            base_url=self.url,
            timeout=_TIMEOUT,
            trust_env=False,
            headers=headers,
            verify=_trusted(credentials.ca_file) if self.url.startswith("https:") else False,
        )

    def check_way(self, what: str) -> None:
        """Raise ControlPlaneError if a credential would leave this machine unencrypted."""
        parts = urlsplit(self.url)
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            raise ControlPlaneError(
                f'{what} would be sent to "{self.url}" unencrypted',
                hint="Use https://, or an SSH tunnel to loopback; nothing was sent.",
            )

    def close(self) -> None:
        self._http.close()

    def ask(self, model: type[Answer], path: str, **query: object) -> Answer:
        """The document at `path`; query parameters that are None are omitted."""
        params = {name: value for name, value in query.items() if value is not None}
        return self.read(model, self.send("GET", path, params=params))

    def post(self, model: type[Answer], path: str, **options: object) -> Answer:
        return self.read(model, self.send("POST", path, **options))

    def read(self, model: type[Answer], answer: httpx.Response) -> Answer:
        """The answer's document; raises UnreachableError for that of another program."""
        try:
            return parsed(model, answer.json())
        except ValueError as exc:  # no JSON, or no such model
            raise self._foreign(answer) from exc

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401 (httpx's)
        """One idempotent request, retried while the control plane is unreachable.

        Raises RefusedError for a problem, UnreachableError without a connection or for the answer
        of another program, WaitTimeoutError if the answer takes too long.
        """
        if self._attempts == 1:
            return self._once(method, path, options)
        import stamina  # slow to load, and commands do not retry

        again = stamina.retry_context(on=_pause, attempts=self._attempts, timeout=_PATIENCE_S)
        for attempt in again:
            with attempt:
                return self._once(method, path, options)
        raise AssertionError("stamina raises the error of the last attempt")

    def _once(self, method: str, path: str, options: Mapping[str, Any]) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **options)
        except httpx.ReadTimeout as exc:
            raise WaitTimeoutError(
                f'control plane at "{self.url}" has not answered in time',
                hint="It may still be at work: see its log, then ask for less, or again.",
            ) from exc
        except (httpx.TransportError, httpx.InvalidURL) as exc:
            raise UnreachableError(
                f'control plane at "{self.url}" cannot be reached: {_cause(exc)}',
                hint="Start it with sluice up or sluice serve, or name another one with --server.",
            ) from exc
        if not answer.is_success or _type(answer).startswith("text/html"):
            raise self._refusal(answer)
        return answer

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """A streaming answer; raises as `send`."""
        try:
            with self._http.stream("GET", path, headers=dict(headers), timeout=_STREAM) as answer:
                if not _type(answer).startswith("text/event-stream"):
                    answer.read()
                    raise self._refusal(answer)
                yield answer
        except (httpx.TransportError, httpx.InvalidURL) as exc:
            raise ControlPlaneError(
                f'stream of "{self.url}{path}" was interrupted: {_cause(exc)}',
                hint="Reconnect with Last-Event-ID to continue.",
            ) from exc

    def _refusal(self, answer: httpx.Response) -> ControlPlaneError:
        problem = _problem(answer)
        if problem is None:
            return self._foreign(answer)
        again = answer.headers.get("Retry-After", "")
        return refusal(problem, float(again) if again.isdecimal() else None)

    def _foreign(self, answer: httpx.Response) -> UnreachableError:
        return UnreachableError(
            f'"{self.url}" answered {answer.status_code} and no document of Sluice: another '
            "program is there, or a proxy that does not reach its control plane",
            hint="Give the control plane's address with --server, or start it behind its proxy.",
        )


def _type(answer: httpx.Response) -> str:
    return str(answer.headers.get("Content-Type", ""))


def _problem(answer: httpx.Response) -> Mapping[str, Any] | None:
    """The problem of a control plane; None for the answer of another program."""
    if not _type(answer).startswith("application/problem+json"):
        return None
    try:
        problem = answer.json()
    except ValueError:
        return None
    is_ours = isinstance(problem, dict) and {"detail", "hint"} <= problem.keys()
    return problem if is_ours else None


def parsed(model: type[Answer], document: object) -> Answer:
    """The document as `model`; fields of newer control planes are in `model_extra`."""
    return model.model_validate(document, extra="allow")


def _pause(error: Exception) -> bool | float:
    """True to retry, or the delay in seconds that the control plane requested."""
    if isinstance(error, UnavailableError) and error.retry_after_s is not None:
        return error.retry_after_s
    return is_passing(error)


def _check_address(url: str) -> None:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise UnreachableError(
            f'control plane cannot be reached: "{url}" is not an address',
            hint="Give the whole address, such as http://127.0.0.1:8326.",
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
    fault = _CERTIFICATE.search(str(exc))
    if fault is not None and any(word in fault[1] for word in _UNTRUSTED):
        return "its certificate is not trusted (set SLUICE_CA_FILE to trust its authority)"
    if fault is not None:
        return f"its certificate is refused: {fault[1]}"
    if isinstance(exc, httpx.ConnectError) and "[SSL" in str(exc):
        return "TLS handshake failed"
    if isinstance(exc, httpx.ConnectError):
        return _NUMBER.sub("", str(exc)).lower()
    if isinstance(exc, httpx.RemoteProtocolError):
        return "another program answers there"
    return "no answer in time" if isinstance(exc, httpx.TimeoutException) else type(exc).__name__


Page = TypeVar("Page", bound=BaseModel)
Item = TypeVar("Item")


class Pages(Generic[Page, Item]):
    """The items of an address; iterating fetches them page by page.

    `model` is a page with `items` and `next_cursor`; query parameters that are None are omitted.
    """

    _cursor_is_all: ClassVar[bool] = False  # the cursor contains the query

    def __init__(
        self, transport: Transport, model: type[Page], path: str, limit: int, **query: object
    ) -> None:
        self._transport = transport
        self._model = model
        self._path = path
        self._limit = limit
        self._query = query

    def page(self, limit: int | None = None, cursor: str | int | None = None) -> Page:
        """One page: the first, or the one at `cursor`."""
        query = {} if self._cursor_is_all and cursor is not None else self._query
        size = limit or self._limit
        return self._transport.ask(self._model, self._path, **query, limit=size, cursor=cursor)

    def _pages(self) -> Iterator[Any]:
        page: Any = self.page()
        yield page
        while page.next_cursor is not None:
            page = self.page(cursor=page.next_cursor)
            yield page

    def __iter__(self) -> Iterator[Item]:
        for page in self._pages():
            yield from page.items
