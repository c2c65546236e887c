"""Pooled connections to Kafka clusters."""

import threading
import time
from dataclasses import dataclass, replace
from typing import Self

from joins.adapters.kafka.cluster import KafkaCluster
from joins.plan.connections import KAFKA_CREDENTIALS
from joins.plan.plan import KafkaOptions

_IDLE_S = 30.0
_MOST_IDLE = 8


@dataclass(frozen=True, slots=True)
class _Idle:
    kafka: KafkaOptions
    cluster: KafkaCluster
    until_s: float


class ClusterPool:
    """Connections idle for at most `idle_s`, reused with equal options, one user each; thread-safe.

    A connection with a credential is not kept, since its client would hold it in plain text.
    """

    def __init__(self, *, idle_s: float = _IDLE_S) -> None:
        self._idle_s = idle_s
        self._idle: list[_Idle] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._closed = False

    def take(self, kafka: KafkaOptions) -> KafkaCluster:
        """The most recently used connection, else one that connects on first use."""
        with self._lock:
            idle = next((one for one in reversed(self._idle) if one.kafka == kafka), None)
            if idle is None:
                return KafkaCluster(kafka, keep_open=True)
            self._idle.remove(idle)
        idle.cluster.connection.has_answered = False  # it may be cut by now
        return idle.cluster

    def give_back(self, kafka: KafkaOptions, cluster: KafkaCluster) -> None:
        until_s = time.monotonic() + self._idle_s
        with self._lock:
            room = not self._closed and len(self._idle) < _MOST_IDLE
            kept = (
                room
                and cluster.connection.is_open
                and KAFKA_CREDENTIALS.isdisjoint(dict(kafka.properties))
            )
            if kept:
                self._idle.append(_Idle(kafka, cluster, until_s))
                self._look_later()
        if not kept:
            cluster.close()

    def close(self) -> None:
        """Close idle connections, and all that are given back later."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            if self._timer is not None:
                self._timer.cancel()
        for one in idle:
            one.cluster.close()

    def __len__(self) -> int:
        return len(self._idle)

    def _look_later(self) -> None:
        """Schedule the closing of the oldest idle connection; the lock is held."""
        if self._timer is None and self._idle:
            wait_s = max(0.0, self._idle[0].until_s - time.monotonic())
            self._timer = threading.Timer(wait_s, self._close_idle)
            self._timer.daemon = True
            self._timer.start()

    def _close_idle(self) -> None:
        now = time.monotonic()
        with self._lock:
            over = [one for one in self._idle if one.until_s <= now]
            self._idle = [one for one in self._idle if one.until_s > now]
            self._timer = None
            if not self._closed:
                self._look_later()
        for one in over:
            one.cluster.close()


class OpenClusters:
    """One connection per cluster, until the `with` block ends; from `pool` if there is one.

    A connection costs 4 ms of CPU and five round trips, a question to it 2 ms (measured).
    """

    def __init__(self, pool: ClusterPool | None = None) -> None:
        self._pool = ClusterPool() if pool is None else pool
        if pool is None:
            self._pool.close()  # it keeps no connections
        self._clusters: dict[KafkaOptions, KafkaCluster] = {}

    def of(self, kafka: KafkaOptions) -> KafkaCluster:
        """The cluster of `kafka`, one per login; the topic does not matter."""
        whole = replace(kafka, topic="")
        if whole not in self._clusters:
            self._clusters[whole] = self._pool.take(whole)
        return self._clusters[whole]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for kafka, cluster in self._clusters.items():
            self._pool.give_back(kafka, cluster)
