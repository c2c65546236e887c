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
    """The end of a piece of work with foreign servers; `cut` ends pending waits.

    A silent server keeps each client waiting for its full timeout, and a slow one for ever. Within
    `within` all waits end at the same moment.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at_s = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []
        self._is_over = False

    def left_s(self, server: str) -> float:
        """Seconds left to wait for `server`; SourceUnavailableError if none."""
        left_s = self._at_s - time.monotonic()
        if self._is_over or left_s <= 0:
            raise SourceUnavailableError(
                f'"{server}" was not asked: the servers asked before it took {self._seconds:g} s',
                hint="See that each server answers; one that is silent holds up the others.",
            )
        return left_s

    def on_end(self, close: Callable[[], None]) -> None:
        with self._lock:
            if not self._is_over:
                self._closers.append(close)
                return
        close()

    def cut(self) -> None:
        with self._lock:
            self._is_over = True
            closers, self._closers = self._closers, []
        for close in closers:
            close()


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def current_deadline() -> Deadline | None:
    return _current.get()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit this thread's work with servers in the block to these seconds in total."""
    deadline = Deadline(seconds)
    timer = threading.Timer(seconds, deadline.cut)
    timer.daemon = True
    before = _current.set(deadline)
    timer.start()
    try:
        yield
    finally:
        _current.reset(before)
        timer.cancel()


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
            deadline.on_end(self.close)  # an answer may come a byte at a time
        return super().send(request, **options)
