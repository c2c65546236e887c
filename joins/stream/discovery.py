"""New topics of a stream whose topics match a pattern: looked for from time to time."""

import time

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.stream_cluster import matching_topics
from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopic, StreamTopics

_RETRY_S = 5.0


class TopicDiscovery:
    """Looks for topics on the main loop: when a job starts, and then in its interval.

    It looks again soon after a failure, and at once for as long as what it has seen is not known.
    """

    def __init__(self, kafka: KafkaOptions, pattern: str, every_s: float) -> None:
        self._cluster = KafkaCluster(kafka, keep_open=True)
        self._pattern = pattern
        self._every_s = every_s
        self._next_at_s = float("-inf")

    def close(self) -> None:
        self._cluster.close()

    def look(self, known: StreamTopics) -> StreamTopics:
        """`known` and, behind them, the topics that match and are new; asks only when it is time.

        Raises:
            SourceError: the cluster does not answer, or the topics are too many.
        """
        if time.monotonic() < self._next_at_s:
            return known
        try:
            names = matching_topics(self._pattern, self._cluster.topics())
            new = self._cluster.describe_all([name for name in names if name not in known.names])
            topics = known.with_more(StreamTopic(name, new[name].topic_id) for name in sorted(new))
        except SourceError:
            self._next_at_s = time.monotonic() + min(_RETRY_S, self._every_s)
            raise
        if topics == known:
            self._next_at_s = time.monotonic() + self._every_s
        return topics
