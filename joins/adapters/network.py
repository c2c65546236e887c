"""Deadlines, client certificates and HTTP clients for all adapters."""

import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx

from joins.plan.errors import SourceUnavailableError


def load_certificate(context: ssl.SSLContext, cert: str, key: str, password: str = "") -> None:
    """Load PEM texts into `context`: OpenSSL reads files only, so they go through one in memory."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(f"{cert}\n{key}\n".encode())
        # An empty password prevents a prompt.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=password)
    finally:
        os.close(descriptor)


class Deadline:
    """Limits the waits of a piece of work for foreign servers: each server has its own time.

    A silent server keeps each client waiting for its full timeout, and a slow one for ever. The
    time of a server begins when it is first asked, so that a server pays neither for those before
    it nor for what this machine does meanwhile. All of them have `_SERVERS` times the same.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end_s = time.monotonic() + _SERVERS * seconds
        self._lock = threading.Lock()
        self._of_server: dict[str, _ServerTime] = {}

    def left_s(self, server: str) -> float:
        """Seconds left to wait for `server`; SourceUnavailableError if none."""
        with self._lock:
            own = self._of_server.get(server)
            if own is None:
                seconds = min(self._seconds, self._end_s - time.monotonic())
                own = self._of_server[server] = _ServerTime(seconds)
        left_s = own.left_s
        if left_s > 0:
            return left_s
        if own.seconds <= 0:
            raise SourceUnavailableError(
                f'"{server}" was not asked: the servers asked before it took '
                f"{_SERVERS * self._seconds:g} s",
                hint="See that each server answers; those that are silent hold up the others.",
            )
        raise SourceUnavailableError(
            f'"{server}" was not asked again: it took {own.seconds:g} s before',
            hint="See that it answers in time, and try again.",
        )

    def on_end(self, server: str, close: Callable[[], None]) -> None:
        """Call `close` at the end of the time of `server`, which was asked before."""
        self._of_server[server].on_end(close)

    def close(self) -> None:
        """End the work without cutting anything."""
        with self._lock:
            for own in self._of_server.values():
                own.timer.cancel()


_SERVERS = 3.0


class _ServerTime:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at_s = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []
        self._is_over = seconds <= 0
        self.timer = threading.Timer(max(0.0, seconds), self._cut)
        self.timer.daemon = True
        self.timer.start()

    @property
    def left_s(self) -> float:
        return 0.0 if self._is_over else self._at_s - time.monotonic()

    def on_end(self, close: Callable[[], None]) -> None:
        with self._lock:
            if not self._is_over:
                self._closers.append(close)
                return
        close()

    def _cut(self) -> None:
        with self._lock:
            self._is_over = True
            closers, self._closers = self._closers, []
        for close in closers:
            close()


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def current_deadline() -> Deadline | None:
    return _current.get()


@contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """Limit this thread's work in the block to these seconds for each server."""
    deadline = Deadline(seconds)
    before = _current.set(deadline)
    try:
        yield deadline
    finally:
        _current.reset(before)
        deadline.close()


class HttpClient(httpx.Client):
    """A client of one server, without proxies and redirects.

    `server` is for errors; `patience_s` limits one step of an answer; `verify` are trusted
    certificates, True for those of the machine.
    """

    def __init__(
        self,
        server: str,
        patience_s: float,
        *,
        auth: tuple[str, str] | None = None,
        verify: ssl.SSLContext | bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            timeout=patience_s,
            trust_env=False,
            follow_redirects=False,
            auth=auth,
            verify=verify,
            headers=headers,
        )
        self._server = server
        self._patience_s = patience_s

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:  # noqa: ANN401
        """The answer; httpx.HTTPError without one, SourceUnavailableError after the deadline."""
        deadline = current_deadline()
        if deadline is not None:
            left_s = deadline.left_s(self._server)
            request.extensions["timeout"] = httpx.Timeout(min(left_s, self._patience_s)).as_dict()
            deadline.on_end(self._server, self.close)  # an answer may come a byte at a time
        return super().send(request, **options)
