"""Offsets for those who watch consumer groups: committed behind each batch, and never waited for.

They say how far the output is and decide nothing: where a job goes on is in its pins.
"""

import threading
import time
from collections.abc import Mapping

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics

_RETRY_S = 5.0
_RENEW_S = 600.0  # brokers forget what is not committed for long (offsets.retention.minutes)
_END_S = 3.0


class GroupOffsets:
    """Commits the newest offsets on a thread of its own; safe to use from several threads.

    Args:
        kafka: the cluster and the `reported_group`.
        topics: of a stream of several; that of `kafka` when missing.
        retry_s: how long after a failure until the next attempt.
    """

    def __init__(
        self, kafka: KafkaOptions, topics: StreamTopics | None = None, *, retry_s: float = _RETRY_S
    ) -> None:
        assert kafka.reported_group is not None, "who has no group reports nothing"
        self._group = kafka.reported_group
        topics = topics or StreamTopics.one(kafka.topic)
        self._cluster = StreamCluster(KafkaCluster(kafka, keep_open=True), topics)
        self._retry_s = retry_s
        self._changed = threading.Condition()
        self._offsets: Mapping[int, int] = {}
        self._committed: Mapping[int, int] = {}
        self._next_at_s = float("-inf")
        self._failures = 0
        self._error: SourceError | None = None
        self._ends = False
        self._thread: threading.Thread | None = None

    def read(self, topics: StreamTopics) -> None:
        self._cluster.topics = topics

    def report(self, offsets: Mapping[int, int]) -> None:
        """Commit these (partition → next offset) soon, unless newer ones come before."""
        with self._changed:
            if not offsets or self._ends:
                return
            self._offsets = dict(offsets)
            if self._thread is None:
                name = f"group {self._group}"
                self._thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def warning(self) -> dict[str, object] | None:
        """That the newest attempt has failed, as the status shows it; None if it has not."""
        with self._changed:
            error, failures = self._error, self._failures
        if error is None:
            return None
        return {
            "type": "group-offsets",
            "message": f'consumer group "{self._group}" does not show how far the job is: '
            f"{error.message} ({failures} failed attempts since the start)",
            "hint": f"{error.hint} The job itself goes on without it.",
        }

    def close(self) -> None:
        """Try once more to commit what was reported last, for a moment; then end."""
        with self._changed:
            self._ends = True
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(_END_S)

    def _work(self) -> None:
        ends = False
        while not ends:
            with self._changed:
                self._changed.wait_for(self._is_due, timeout=self._rest_s())
                offsets, ends = self._offsets, self._ends
                is_news = offsets != self._committed
            if is_news or not ends:
                self._commit(offsets)
        self._cluster.close()

    def _is_due(self) -> bool:
        is_news = self._error is None and self._offsets != self._committed
        return self._ends or is_news or self._rest_s() <= 0.0

    def _rest_s(self) -> float:
        return max(0.0, self._next_at_s - time.monotonic())

    def _commit(self, offsets: Mapping[int, int]) -> None:
        try:
            self._cluster.commit_group_offsets(self._group, offsets)
        except SourceError as exc:
            self._note(exc, self._retry_s)
        else:
            self._note(None, _RENEW_S)
            self._committed = offsets

    def _note(self, error: SourceError | None, rest_s: float) -> None:
        with self._changed:
            self._error, self._next_at_s = error, time.monotonic() + rest_s
            self._failures += error is not None
