"""Listeners on loopback that stand between a client and its server, or in the server's place."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

LOOPBACK = "127.0.0.1"


@contextmanager
def listening(serve: Callable[[socket.socket, int], None]) -> Iterator[int]:
    """The port of a listener that hands each connection, with its number from 0, to `serve`.

    All connections are closed with the block.
    """
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server((LOOPBACK, 0), backlog=256))

        def accept() -> None:
            number = 0
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                opened.callback(_cut, client)
                threading.Thread(target=_served, args=(serve, client, number), daemon=True).start()
                number += 1

        threading.Thread(target=accept, daemon=True).start()
        opened.callback(_cut, listener)
        yield listener.getsockname()[1]


@contextmanager
def silent() -> Iterator[int]:
    with listening(lambda client, _: None) as port:
        yield port


@contextmanager
def balanced(port_of: Callable[[int], int]) -> Iterator[int]:
    """The port of a balancer: its connection `n` goes to port `port_of(n)` of this machine."""

    def forward(client: socket.socket, number: int) -> None:
        server = socket.create_connection((LOOPBACK, port_of(number)))
        back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
        back.start()
        _pass_on(client, server)
        back.join()
        server.close()

    with listening(forward) as port:
        yield port


@contextmanager
def way_to(port: int, is_cut: threading.Event) -> Iterator[int]:
    """The port of a way to `port`, on which nothing passes while it is cut; nobody hears of it."""

    def forward(client: socket.socket, _: int) -> None:
        server = socket.create_connection((LOOPBACK, port))
        back = threading.Thread(target=_pass_unless, args=(is_cut, server, client), daemon=True)
        back.start()
        _pass_unless(is_cut, client, server)
        back.join()
        server.close()

    with listening(forward) as own_port:
        yield own_port


def _pass_unless(is_cut: threading.Event, origin: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := origin.recv(65_536):
            if not is_cut.is_set():
                target.sendall(data)
    if not is_cut.is_set():
        _cut(target)


def _served(serve: Callable[[socket.socket, int], None], client: socket.socket, n: int) -> None:
    with suppress(OSError):
        serve(client, n)


def _pass_on(origin: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := origin.recv(65_536):
            target.sendall(data)
    _cut(target)


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        connection.close()
