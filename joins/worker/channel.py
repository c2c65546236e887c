"""Frames between the driver and its tasks: each side proves the driver's secret first.

A frame has its length, an HMAC and a payload. The HMAC covers the direction and the number of the
frame, so that none can be left out, repeated or sent back. What fails it is never unpickled.
"""

import hashlib
import hmac
import secrets
import select
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import structlog
from pyspark import SparkContext

from joins.kernels.local_files import OwnDirectory

_log = structlog.get_logger(__name__)
Address = str | tuple[str, int]
"""The path of a Unix socket, or host and port."""

_NONCE = _MAC = 32
_HEAD = struct.Struct(">Q")
_NUMBER = struct.Struct(">Q")
_LARGEST = 1 << 32
_HANDSHAKE_S = 10.0


class ChannelError(ConnectionError):
    """The other side has closed the connection, or has not proved the secret."""


def _mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.digest(key, b"".join(parts), hashlib.sha256)


@dataclass(slots=True)
class ResidentChannel:
    """One authenticated connection; one thread a direction."""

    link: socket.socket
    _key: bytes
    _mine: bytes
    _theirs: bytes
    _sent: int = 0
    _received: int = 0

    @classmethod
    def connect(cls, address: Address, secret: bytes) -> Self:
        """Raises OSError if the driver is not there, ChannelError if it has another secret."""
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        link = socket.socket(family)
        try:
            link.settimeout(_HANDSHAKE_S)
            link.connect(address)
            _undelayed(link)
            theirs, mine = _received(link, _NONCE), secrets.token_bytes(_NONCE)
            link.sendall(mine + _mac(secret, b"resident", theirs, mine))
            _check(_received(link, _MAC), _mac(secret, b"driver", theirs, mine))
        except BaseException:
            link.close()
            raise
        link.settimeout(None)
        return cls(link, _mac(secret, b"key", theirs, mine), b"resident", b"driver")

    @classmethod
    def accept(cls, link: socket.socket, secret: bytes) -> Self:
        """Raises OSError, ChannelError if the other side has another secret; closes `link` then."""
        try:
            link.settimeout(_HANDSHAKE_S)
            _undelayed(link)
            mine = secrets.token_bytes(_NONCE)
            link.sendall(mine)
            theirs = _received(link, _NONCE)
            _check(_received(link, _MAC), _mac(secret, b"resident", mine, theirs))
            link.sendall(_mac(secret, b"driver", mine, theirs))
        except BaseException:
            link.close()
            raise
        link.settimeout(None)
        return cls(link, _mac(secret, b"key", mine, theirs), b"driver", b"resident")

    def send(self, payload: bytes) -> None:
        mac = self._mac_of(self._mine, self._sent, payload)
        self._sent += 1
        self.link.sendall(_HEAD.pack(len(payload)) + mac + payload)

    def receive(self) -> bytes:
        """The next payload; ChannelError at the end or for a forged frame, TimeoutError."""
        (length,) = _HEAD.unpack(_received(self.link, _HEAD.size))
        if length > _LARGEST:
            raise ChannelError(f"a frame of {length} bytes was announced, at most {_LARGEST}")
        mac = _received(self.link, _MAC)
        payload = _received(self.link, length)
        _check(mac, self._mac_of(self._theirs, self._received, payload))
        self._received += 1
        return payload

    def has_ended(self) -> bool:
        """True if the other side has closed the connection; does not wait."""
        ready = select.poll()
        ready.register(self.link, select.POLLIN)
        if not ready.poll(0):  # a socket with a timeout would wait for it
            return False
        try:
            return not self.link.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def close(self) -> None:
        self.link.close()

    def _mac_of(self, direction: bytes, number: int, payload: bytes) -> bytes:
        code = hmac.new(self._key, direction + _NUMBER.pack(number), hashlib.sha256)
        code.update(payload)
        return code.digest()


_POLL_S = 1.0
_END_S = 5.0


class Listener:
    """Where the driver's tasks connect; `serve` has each connection on its own thread.

    With a local master it is a Unix socket in a directory of this user alone, else a TCP port.
    """

    address: Address

    def __init__(
        self, context: SparkContext, name: str, serve: Callable[[ResidentChannel], None]
    ) -> None:
        """Raises OSError, such as for a temporary directory whose name is too long."""
        self.secret = secrets.token_bytes(32)
        self._name = name
        self._serve = serve
        self._is_closed = False
        self._remove: Callable[[], object] = lambda: None
        if str(context.master).startswith("local[") or context.master == "local":
            directory = OwnDirectory("run")
            self._remove = weakref.finalize(self, directory.remove)  # at the process's end, too
            self.address = str(directory.path / f"{name}.sock")
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(self.address)
            self._socket.listen()
        else:
            conf = context.getConf()
            host = str(conf.get("spark.driver.host"))
            bound = conf.get("spark.driver.bindAddress") or host
            self._socket = socket.create_server((str(bound), 0))
            self.address = host, self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name=f"{name} accept", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(_END_S)
        self._remove()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                link, _ = self._socket.accept()
            except OSError:
                if not self._is_closed:
                    time.sleep(_POLL_S)  # no descriptors left
                continue
            thread = threading.Thread(
                target=self._greet, args=(link,), name=self._name, daemon=True
            )
            try:
                thread.start()
            except RuntimeError as exc:  # there is no room for a thread
                link.close()
                _log.warning("a connection of a task was refused", of=self._name, error=str(exc))

    def _greet(self, link: socket.socket) -> None:
        try:
            channel = ResidentChannel.accept(link, self.secret)
        except OSError as exc:
            _log.warning("a connection of a task was refused", of=self._name, error=str(exc))
            return
        self._serve(channel)


def _check(mac: bytes, expected: bytes) -> None:
    if not hmac.compare_digest(mac, expected):
        raise ChannelError("the other side of a task's connection lacks the driver's secret")


def _undelayed(link: socket.socket) -> None:
    if link.family != socket.AF_UNIX:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _received(link: socket.socket, length: int) -> bytes:
    content = bytearray(length)
    view = memoryview(content)
    at = 0
    while at < length:
        count = link.recv_into(view[at:])
        if count == 0:
            raise ChannelError("the connection of a task has ended")
        at += count
    return bytes(content)
