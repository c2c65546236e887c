"""Connections to Kafka clusters: one each for a piece of work, kept a while for the next one."""

import threading
import time
from dataclasses import dataclass, replace
from types import TracebackType
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
    """Connections that nobody uses, for whoever comes next; safe to use from several threads.

    One is used again only with the very options that it was made with, and by one piece of work at
    a time. One with a credential is not kept: its client would hold that in the clear.
    What has been idle for `idle_s` is closed, whether somebody comes or not.
    """

    def __init__(self, *, idle_s: float = _IDLE_S) -> None:
        self._idle_s = idle_s
        self._idle: list[_Idle] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._closed = False

    def take(self, kafka: KafkaOptions) -> KafkaCluster:
        """The connection that was used last, else one that connects when it is first asked."""
        with self._lock:
            idle = next((one for one in reversed(self._idle) if one.kafka == kafka), None)
            if idle is None:
                return KafkaCluster(kafka, keep_open=True)
            self._idle.remove(idle)
        idle.cluster.doubt()
        return idle.cluster

    def give_back(self, kafka: KafkaOptions, cluster: KafkaCluster) -> None:
        """Keep a connection that `take` gave, or close it."""
        until_s = time.monotonic() + self._idle_s
        with self._lock:
            room = not self._closed and len(self._idle) < _MOST_IDLE
            kept = room and cluster.is_open and KAFKA_CREDENTIALS.isdisjoint(dict(kafka.properties))
            if kept:
                self._idle.append(_Idle(kafka, cluster, until_s))
                self._look_later()
        if not kept:
            cluster.close()

    def close(self) -> None:
        """Close what is idle, and from now on what is given back."""
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
        """Look for idle connections when the oldest has had its time; the lock is held."""
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


def _keeps_nothing() -> ClusterPool:
    pool = ClusterPool()
    pool.close()
    return pool


class OpenClusters:
    """The clusters of one piece of work: each is connected to once, until the `with` block ends.

    A connection costs 4 ms of CPU and five round trips, a question to it 2 ms (measured).

    Args:
        pool: where connections come from and go to; without one they are made and closed.
    """

    def __init__(self, pool: ClusterPool | None = None) -> None:
        self._pool = _keeps_nothing() if pool is None else pool
        self._clusters: dict[KafkaOptions, KafkaCluster] = {}

    def of(self, kafka: KafkaOptions) -> KafkaCluster:
        """The cluster of `kafka`; topics are not told apart, logins are."""
        whole = replace(kafka, topic="")
        if whole not in self._clusters:
            self._clusters[whole] = self._pool.take(whole)
        return self._clusters[whole]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for kafka, cluster in self._clusters.items():
            self._pool.give_back(kafka, cluster)
