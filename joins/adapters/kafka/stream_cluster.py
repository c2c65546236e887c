"""The topics of a stream on their cluster, and the reporting of its offsets to a group."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import OffsetSpec

from joins.adapters.kafka.client import LEVELS
from joins.adapters.kafka.cluster import (
    KafkaCluster,
    TopicDescription,
    topic_policy,
    without_internal,
)
from joins.adapters.kafka.groups import (
    OpenTransaction,
    commit_offsets,
    committed_offsets,
    open_transactions,
)
from joins.kernels.strings.regular import compiled
from joins.plan.errors import SourceError
from joins.plan.plan import Isolation, KafkaOptions
from joins.plan.stream_topics import (
    SPAN,
    StreamTopics,
    by_number,
    by_topic,
    index_of,
    of_kafka,
    partition_of,
)
from watermark.gate import Retention


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """The topics of a stream by index; None for a missing one."""

    topics: tuple[TopicDescription | None, ...]

    @property
    def topic_ids(self) -> tuple[str | None, ...]:
        return tuple(None if each is None else each.topic_id for each in self.topics)

    @property
    def there(self) -> dict[int, TopicDescription]:
        return {index: each for index, each in enumerate(self.topics) if each is not None}


class StreamCluster:
    """The topics of one stream on one cluster, for one thread.

    Files before the topics begin at 0 and end behind their rows, whatever the cluster answers.
    Every method raises `SourceUnavailableError` if no broker answers, methods about offsets also
    `SourceError` if a topic is missing.
    """

    # reads better long: a method for each one of `KafkaCluster` that tells of partitions.

    def __init__(self, cluster: KafkaCluster, topics: StreamTopics) -> None:
        self._cluster = cluster
        self.topics = topics

    def close(self) -> None:
        self._cluster.close()

    def describe(self) -> StreamDescription:
        described = self._cluster.describe_all(self.topics.names)
        return StreamDescription(tuple(described.get(name) for name in self.topics.names))

    def require(self) -> StreamDescription:
        """All topics; SourceError if one is missing that is not known to be deleted."""
        description = self.describe()
        for name in self.topics.missing_in(description.topic_ids):
            self._cluster.require(name)
        return description

    def identified(self) -> StreamTopics:
        return self.topics.identified(self.require().topic_ids)

    # Offsets
    # ------------------------------------------------------------------------------------------

    def _offsets(
        self,
        of: StreamDescription | None,
        spec: OffsetSpec | int,
        isolation: Isolation | None = None,
    ) -> dict[int, int]:
        there = (self.require() if of is None else of).there
        answer = self._cluster.offsets_of(list(there.values()), spec, isolation)
        of_files = self.topics.file_ends
        if spec == OffsetSpec.EARLIEST:
            of_files = dict.fromkeys(of_files, 0)
        return of_files | {
            number: offset
            for index, topic in there.items()
            for number, offset in by_number(index, answer[topic.name]).items()
        }

    def beginning_offsets(self, of: StreamDescription | None = None) -> dict[int, int]:
        return self._offsets(of, OffsetSpec.EARLIEST)

    def end_offsets(self, of: StreamDescription | None = None) -> dict[int, int]:
        return self._offsets(of, OffsetSpec.LATEST)

    def high_watermarks(self, of: StreamDescription | None = None) -> dict[int, int]:
        return self._offsets(of, OffsetSpec.LATEST, Isolation.UNCOMMITTED)

    def offsets_at(self, timestamp_ms: int) -> dict[int, int]:
        ends = self.end_offsets()  # first: later records are not before the time
        offsets = self._offsets(None, timestamp_ms)
        return {n: ends.get(n, 0) if offset < 0 else offset for n, offset in offsets.items()}

    def first_since(self, times_ms: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        """Partition → offset and timestamp of its first record not older than its time, if any."""
        numbers = {
            TopicPartition(self.topics.topic_of(number).name, partition_of(number)): number
            for number in of_kafka(times_ms)
        }
        connection = self._cluster.connection
        with connection.admin() as admin:
            times = {tp: times_ms[number] for tp, number in numbers.items()}
            results = admin.partition_offsets(times, LEVELS[connection.kafka.isolation])
        return {
            numbers[tp]: (value.offset, value.timestamp)
            for tp, value in results.items()
            if value.offset >= 0
        }

    # Transactions, groups and sizes
    # ------------------------------------------------------------------------------------------

    def open_transactions(self, ends: Mapping[int, int]) -> list[OpenTransaction]:
        return [
            replace(each, partition=number)
            for index, own in by_topic(ends).items()
            for each in open_transactions(self._cluster.connection, self.topics.names[index], own)
            for number in by_number(index, {each.partition: None})
        ]

    def group_offsets(self, group: str) -> dict[int, int]:
        return {
            number: offset
            for index, topic in enumerate(self.topics.topics)
            if not topic.is_gone
            for number, offset in by_number(
                index, committed_offsets(self._cluster.connection, group, topic.name)
            ).items()
        }

    def commit_group_offsets(self, group: str, offsets: Mapping[int, int]) -> None:
        for index, own in by_topic(offsets).items():
            commit_offsets(self._cluster.connection, group, self.topics.names[index], own)

    def retention(self, index: int) -> Retention:
        return topic_policy(self._cluster, self.topics.names[index]).retention

    def partition_bytes(self, numbers: Iterable[int]) -> dict[int, int] | None:
        """Number → bytes on its largest replica, of the topics of `numbers`; None if unknown."""
        sizes: dict[int, int] = {}
        for index in sorted({*map(index_of, of_kafka(dict.fromkeys(numbers)))}):
            own = _partition_bytes(self._cluster, self.topics.names[index])
            if own is None:
                return None
            sizes |= by_number(index, own)
        return sizes

    def size_bytes(self) -> int | None:
        """Bytes of all partitions, each on one replica; None if unknown."""
        first = dict.fromkeys(range(0, len(self.topics) * SPAN, SPAN), 0)
        sizes = self.partition_bytes(self.topics.read_of(first))
        return None if sizes is None else sum(sizes.values())


def _partition_bytes(cluster: KafkaCluster, topic: str) -> dict[int, int] | None:
    """Bytes of each partition on its largest replica, None if unknown."""
    partitions = list(cluster.require(topic).partitions)
    with cluster.connection.admin() as admin:
        try:
            brokers = admin.describe_log_dirs({topic: partitions})
        except kafka_errors.KafkaError:
            return None
    sizes: dict[int, int] = {}
    for broker in brokers:
        for directory in broker.get("log_dirs", broker.get("results", ())):
            for each in directory.get("topics", ()):
                for partition in each.get("partitions", ()):
                    index = partition.get("partition_index", 0)
                    sizes[index] = max(sizes.get(index, 0), partition.get("partition_size", 0))
    return sizes


def matching_topics(pattern: str, names: Iterable[str]) -> list[str]:
    """The non-internal `names` that a Java regular expression matches as a whole, sorted."""
    expression = compiled(pattern)
    if expression is None:
        return []
    foreign = without_internal(names)
    return sorted(name for name in foreign if expression.fullmatch(name) is not None)


_RETRY_S = 5.0
_RENEW_S = 600.0  # brokers forget old commits (offsets.retention.minutes)
_END_S = 3.0


class GroupOffsets:
    """Commits the newest offsets to `reported_group` on a thread; thread-safe."""

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
        """Commit these (partition → next offset) soon, unless newer ones arrive before."""
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
        """The status entry of a failed last attempt, else None."""
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
        """Try for a moment to commit the last reported offsets, then end."""
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
