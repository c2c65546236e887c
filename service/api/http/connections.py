"""Who may be connected: places in all and of one address; accepting waits while all are taken.

A connection that has sent no whole head, or rests between requests, is given up for a new one of
its address when that has no place left. So half-sent heads lock nobody out, not even their own
address.
"""

import asyncio
import errno
import resource
import socket
from collections.abc import Callable

import structlog
import uvicorn

from service.api.http.peers import Peers
from service.api.http.protocol import PatientProtocol
from service.logs import PerMinute

MOST_CONNECTIONS = 2048
_WANTED_FILES = 16_384
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RETRY_S = 0.5
_log = structlog.get_logger(__name__)


class Seat:
    """The place of one connection.

    Attributes:
        connection: None as long as TLS is being agreed.
        end: ends what stands in for it until then.
    """

    __slots__ = ("address", "connection", "end")

    def __init__(self, address: str, end: Callable[[], object]) -> None:
        self.address = address
        self.end = end
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
    """The places: `most` in all, a quarter of them for one address that is no trusted proxy."""

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
        """A place for a connection from `peer`; None if its address has too many."""
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
        """A connection has ended; without effect if that is known."""
        seats = self._of.get(seat.address, {})
        if seat not in seats:
            return
        del seats[seat]
        if not seats:
            del self._of[seat.address]
        self._taken -= 1
        self._free.set()

    def log(self, event: str, **values: object) -> None:
        """A line, at most one a minute of each kind."""
        left_out = self._logged.due(event)
        if left_out is not None:
            _log.warning(event, **values, left_out=left_out)


class SeatedServer(uvicorn.Server):
    """uvicorn with an accept loop of our own: asyncio's takes whatever comes.

    Out of file descriptors, asyncio logs a traceback for each place in the backlog, every second.
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
        """Begin to accept."""
        await super().startup(sockets=[])
        seats = ConnectionSeats(min(MOST_CONNECTIONS, raise_file_limit() // 2), self._peers)
        for listener in sockets or []:
            listener.setblocking(False)
            self._accepting.append(asyncio.create_task(self._accept(listener, seats)))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, then end what is connected."""
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
        except OSError:  # also what TLS calls an error: the other side's business
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
    """Raise the soft limit of open files towards the hard one; what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= limit:
        return _WANTED_FILES if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit
