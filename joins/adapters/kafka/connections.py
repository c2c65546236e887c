"""Connections to brokers that tell why there is none, which kafka-python keeps to itself.

It says only that time is over; and what a broker says just before it hangs up, such as that it does
not know a user, it throws away. It keeps connections private: its version is pinned exactly.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

_OF_A_CERTIFICATE = "CERTIFICATE"  # in OpenSSL's errors; others pass, as when a broker ends
_Received = tuple[bytes, Exception | None]


class TlsError(kafka_errors.KafkaError):  # type: ignore[misc] # it has no types
    """A broker and we do not trust each other's certificates."""


class NetClient(KafkaNetClient):  # type: ignore[misc] # it has no types
    """kafka-python's connections, which remember why the last one ended before it was open."""

    def __init__(self, **configs: Any) -> None:  # noqa: ANN401 (kafka-python's own)
        net = NetworkSelector(**configs)
        super().__init__(net=net, manager=_Connections(net, **configs), **configs)


class _Connections(KafkaConnectionManager):  # type: ignore[misc] # it has no types
    def __init__(self, net: NetworkSelector, **configs: Any) -> None:  # noqa: ANN401
        super().__init__(net, **configs)
        self._failure: BaseException | None = None

    async def _build_transport(self, *node: Any, **named: Any) -> Any:  # noqa: ANN401
        transport = await super()._build_transport(*node, **named)
        transport._sock_recv = partial(_last_words, transport._sock_recv)
        return transport

    async def _connect(self, node: Any, conn: Any, *more: Any, **named: Any) -> None:  # noqa: ANN401
        note = partial(self._note, node.node_id)
        conn.init_future.add_errback(note)
        await super()._connect(node, conn, *more, **named)
        if conn.init_future.failed():
            note(conn.init_future.exception)  # it was forgotten meanwhile

    def _note(self, node: object, failure: BaseException) -> None:
        if _OF_A_CERTIFICATE in str(failure):
            failure = TlsError(str(failure))
        self._failure = failure
        if isinstance(failure, TlsError | kafka_errors.SaslAuthenticationFailedError):
            self._auth_failures[node] = failure  # whoever asks for the broker next is told

    async def _do_bootstrap(self, deadline: float | None) -> Any:  # noqa: ANN401
        try:
            return await super()._do_bootstrap(deadline)
        except kafka_errors.KafkaTimeoutError as exc:
            if self._failure is None:
                raise
            raise kafka_errors.KafkaTimeoutError(f"{exc.args[0]}: {self._failure}") from exc


def _last_words(receive: Callable[[], _Received]) -> _Received:
    data, error = receive()
    return data, None if data else error
