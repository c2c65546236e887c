"""HTTP on one connection: heads of requests are small, come in time, and errors are problems.

`HEADERS` are those of every answer.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from service.api.http.problems import MEDIA_TYPE, problem

HEAD_LIMIT_BYTES = 32 * 1024
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)
_HINTS = {
    400: "Speak HTTP/1.1; for TLS use https:// with a server that has a certificate.",
    431: "Send fewer or shorter headers; 32 KiB is the limit.",
}
_DETAILS = {
    400: "request is not HTTP",
    431: f"head of the request is larger than {HEAD_LIMIT_BYTES} bytes",
}


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, whose patience ends: a slow or silent head closes the connection.

    Attributes:
        on_lost: called when the connection has ended.
    """

    head_timeout_s = 30.0

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_timer: asyncio.TimerHandle | None = None
        self.on_lost: Callable[[], None] = _nothing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and give its place back."""
        self._forget_timer()
        super().connection_lost(exc)
        self.on_lost()

    @property
    def rests(self) -> bool:
        """No whole head of a request has come since the last answer."""
        return self.conn.their_state is h11.IDLE

    def abort(self) -> None:
        """End the connection now."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request; uvicorn's own name and argument."""
        too_large = len(self.conn.trailing_data[0]) > HEAD_LIMIT_BYTES
        status = 431 if too_large else 400
        answer = problem(status, _DETAILS[status], _HINTS[status])
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"connection", b"close"), *HEADERS]
        reason = HTTPStatus(status).phrase
        response = h11.Response(status_code=status, headers=headers, reason=reason)
        for event in (response, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch_head(self) -> None:
        """Let the timer run while the head of a request is incomplete; bytes do not extend it."""
        if self.conn.their_state is not h11.IDLE:
            self._forget_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


def _nothing() -> None:
    return


def patient(head_timeout_s: float) -> type[PatientProtocol]:
    return type("PatientProtocol", (PatientProtocol,), {"head_timeout_s": head_timeout_s})
