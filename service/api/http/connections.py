"""HTTP connections: small and timely request heads, and limits of all and of each address.

While all seats are taken, accepting waits. If an address has none left, its new connection replaces
an idle one, so half-sent heads lock out no client.
"""

import asyncio
import errno
import resource
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import h11
import structlog
import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from service.api.http.exposure import Peers
from service.api.http.problems import MEDIA_TYPE, problem
from service.logs import PerMinute

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
    """uvicorn's protocol with a timeout for request heads; calls `on_lost` at its end."""

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
        super().connection_made(cast("asyncio.Transport", transport))
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)
        self.on_lost()

    @property
    def rests(self) -> bool:
        """True while no complete request head has arrived since the last answer."""
        return self.conn.their_state is h11.IDLE

    def abort(self) -> None:
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer malformed input with a problem; overrides uvicorn's method."""
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
        """Run the timer while a request head is incomplete; further bytes do not extend it."""
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


MOST_CONNECTIONS = 2048
_WANTED_FILES = 16_384
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RETRY_S = 0.5
_log = structlog.get_logger(__name__)


class Seat:
    """The seat of one connection."""

    __slots__ = ("address", "connection", "end")

    def __init__(self, address: str, end: Callable[[], object]) -> None:
        self.address = address
        self.end = end
        # None until the TLS handshake is complete; `end` cancels it until then
        self.connection: PatientProtocol | None = None

    @property
    def rests(self) -> bool:
        return self.connection is None or self.connection.rests

    def abort(self) -> None:
        if self.connection is None:
            self.end()
        else:
            self.connection.abort()


class ConnectionSeats:
    """Seats: `most` in total, at most a quarter for one address unless it is a trusted proxy."""

    def __init__(self, most: int, peers: Peers) -> None:
        self._most = most
        self._most_of_one = max(1, most // 4)
        self._peers = peers
        self._taken = 0
        self._of: dict[str, dict[Seat, None]] = {}
        self._free = asyncio.Event()
        self._free.set()
        self._logged = PerMinute()

    async def free(self) -> None:
        if not self._free.is_set():
            self.log("connections are all taken, new ones wait", most=self._most)
            await self._free.wait()

    def take(self, peer: str, end: Callable[[], object]) -> Seat | None:
        """A seat for a connection from `peer`; None if its address has too many busy ones."""
        address = self._peers.address(peer, {})
        seats = self._of.setdefault(address, {})
        if len(seats) >= self._most_of_one and not self._peers.is_proxy(peer):
            resting = next((seat for seat in seats if seat.rests), None)
            self.log("address has too many connections", address=address, most=self._most_of_one)
            if resting is None:
                return None
            self.give_back(resting)
            resting.abort()
        seat = Seat(address, end)
        self._of.setdefault(address, {})[seat] = None
        self._taken += 1
        if self._taken >= self._most:
            self._free.clear()
        return seat

    def give_back(self, seat: Seat) -> None:
        """Release a seat; idempotent."""
        seats = self._of.get(seat.address, {})
        if seat not in seats:
            return
        del seats[seat]
        if not seats:
            del self._of[seat.address]
        self._taken -= 1
        self._free.set()

    def log(self, event: str, **values: object) -> None:
        """Log at most one line a minute of each kind."""
        left_out = self._logged.due(event)
        if left_out is not None:
            _log.warning(event, **values, left_out=left_out)


class SeatedServer(uvicorn.Server):
    """uvicorn with its own accept loop, which limits connections.

    asyncio's accepts without limit; out of file descriptors, it logs a traceback for each
    connection in the backlog, every second.
    """

    def __init__(
        self, config: uvicorn.Config, protocol: type[PatientProtocol], peers: Peers
    ) -> None:
        super().__init__(config)
        self._protocol = protocol
        self._peers = peers
        self._accepting: list[asyncio.Task[None]] = []
        self._greeting: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        seats = ConnectionSeats(min(MOST_CONNECTIONS, raise_file_limit() // 2), self._peers)
        for listener in sockets or []:
            listener.setblocking(False)
            self._accepting.append(asyncio.create_task(self._accept(listener, seats)))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in (*self._accepting, *self._greeting):
            task.cancel()
        await asyncio.gather(*self._accepting, *self._greeting, return_exceptions=True)
        await super().shutdown(sockets=sockets)

    async def _accept(self, listener: socket.socket, seats: ConnectionSeats) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await seats.free()
            try:
                accepted, address = await loop.sock_accept(listener)
            except OSError as exc:
                if exc.errno in _OUT_OF_FILES:
                    seats.log("connections wait: the process is out of files", error=str(exc))
                    await asyncio.sleep(_RETRY_S)
                continue
            task = asyncio.create_task(self._greet(accepted, str(address[0]), seats))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)
            await asyncio.sleep(0)  # a flood must not keep the loop from everything else

    async def _greet(self, accepted: socket.socket, peer: str, seats: ConnectionSeats) -> None:
        task = asyncio.current_task()
        assert task is not None
        seat = seats.take(peer, task.cancel)
        if seat is None:
            accepted.close()
            return
        try:
            await self._connect(accepted, seat, lambda: seats.give_back(seat))
        except OSError:  # also TLS errors, which are the client's fault
            return
        finally:
            if seat.connection is None:
                seats.give_back(seat)

    async def _connect(
        self, accepted: socket.socket, seat: Seat, on_lost: Callable[[], None]
    ) -> None:
        config = self.config

        def protocol() -> PatientProtocol:
            made = self._protocol(config, self.server_state, self.lifespan.state)
            made.on_lost = on_lost
            return made

        _, seat.connection = await asyncio.get_running_loop().connect_accepted_socket(
            protocol,
            accepted,
            ssl=config.ssl,
            ssl_handshake_timeout=self._protocol.head_timeout_s if config.ssl else None,
        )


def raise_file_limit() -> int:
    """Raise the soft limit of open files towards the hard one; returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= limit:
        return _WANTED_FILES if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit
