"""Producers with transactions on a real broker: what they commit, abort, or leave open."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer

from tests.support.topics import unique_name
from tests.support.wait import wait_until

_CLOSE_S = 10.0
_ENDED = ("Complete", "Empty")  # states of a transaction
Sent = Mapping[int, Iterable[Any]]
"""Partition → values."""


class Transactions:
    """One producer with a transactional id; it has at most one transaction open.

    Attributes:
        id: the transactional id.
    """

    def __init__(self, bootstrap_servers: str, *, timeout_ms: int = 60_000) -> None:
        self.id = unique_name("txn")
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            transactional_id=self.id,
            transaction_timeout_ms=timeout_ms,
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, values: Sent, *, key: bytes | None = None) -> list[tuple[int, int]]:
        """Records of the open transaction; (partition, offset) of each, once the broker has them.

        Bytes and None are sent as they are, other values as JSON.
        """
        sent = [
            (p, self._producer.send(topic, value=_bytes(value), key=key, partition=p))
            for p, each in values.items()
            for value in each
        ]
        self._producer.flush(timeout=60)
        return [(partition, future.get(timeout=60).offset) for partition, future in sent]

    def commit(self) -> None:
        self._producer.commit_transaction()
        self._await_end()

    def abort(self) -> None:
        self._producer.abort_transaction()
        self._await_end()

    def _await_end(self) -> None:
        wait_until(
            lambda: self._admin.describe_transactions([self.id])[self.id].state.startswith(_ENDED),
            what=f"the transaction of {self.id} has ended",
            poll_s=0.005,
        )

    def committed(
        self, topic: str, values: Sent, *, key: bytes | None = None
    ) -> list[tuple[int, int]]:
        """A whole transaction that is committed."""
        self.begin()
        sent = self.send(topic, values, key=key)
        self.commit()
        return sent

    def aborted(
        self, topic: str, values: Sent, *, key: bytes | None = None
    ) -> list[tuple[int, int]]:
        """A whole transaction that is aborted."""
        self.begin()
        sent = self.send(topic, values, key=key)
        self.abort()
        return sent

    def close(self) -> None:
        self._producer.close(timeout=_CLOSE_S)
        self._admin.close()


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


@contextmanager
def transactions(bootstrap_servers: str, **given: Any) -> Iterator[Transactions]:
    """A producer that ends with the block; an open transaction is aborted then."""
    producer = Transactions(bootstrap_servers, **given)
    try:
        yield producer
    finally:
        producer.close()
