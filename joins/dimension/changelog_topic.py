"""The changelog topic of a dimension, identified by Kafka's UUID and recreated when lost.

Offsets in a dimension's tables continue over topics: the n-th topic begins at `n << 40`, so its
rows come after all rows of earlier topics.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

from joins.adapters.kafka.cluster import KafkaCluster, TopicDescription
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics

_SPAN_BITS = 40
_GONE_S = 3.0  # a broker that has just started may not know a topic
_MADE_S = 60.0
_POLL_S = 0.2
_log = structlog.get_logger(__name__)


def first_of(number: int) -> int:
    return number << _SPAN_BITS


def first_before(offset: int) -> int:
    return first_of(offset >> _SPAN_BITS)


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A changelog topic; `number` counts the lost topics of its name before it."""

    topic_id: str
    number: int = 0

    @property
    def first(self) -> int:
        return first_of(self.number)


class ChangelogTopic:
    """The changelog topic of one dimension in one runner; thread-safe.

    The source's coordinator owns it: only the coordinator creates the topic, with `make`, and it
    first records that the table must be copied. All others read. `file` stores Kafka's UUID.
    """

    def __init__(
        self,
        kafka: KafkaOptions,
        name: str,
        partitions: int,
        make: Callable[[KafkaCluster], None],
        file: Path,
    ) -> None:
        self.name = name
        self.reached: Callable[[], Mapping[int, int]] = dict
        """Partition → table offset up to which records are committed."""
        self.has_all: Callable[[], bool] = lambda: False
        """True if everything that the topic will ever have is committed."""
        self._kafka = kafka
        self._partitions = partitions
        self._make = make
        self._file = file
        self._lock = threading.Lock()
        self._looking = threading.Lock()  # of two threads, the later one must not store older ends
        self._now: KnownTopic | None = None
        self._ends: dict[int, int] = {}
        self._doubted_at_s: float | None = None
        self._lost: str | None = None

    @property
    def lost(self) -> str | None:
        return self._lost

    @property
    def now(self) -> KnownTopic | None:
        return self._now

    def topics(self, now: KnownTopic) -> StreamTopics:
        return StreamTopics.one(self.name, now.topic_id)

    def look(self, cluster: KafkaCluster) -> Mapping[int, int] | None:
        """Partition → end as table offset; None while unreadable. SourceUnavailableError."""
        with self._looking:
            return self._look(cluster)

    def _look(self, cluster: KafkaCluster) -> Mapping[int, int] | None:
        now = self._now
        if now is None or self._lost is not None:
            return None
        description = cluster.describe(self.name)
        reason = self._other(now, description)
        if reason is not None:
            if self._is_doubted_long():
                self.lose(now, reason)
            return None
        assert description is not None
        try:
            ends = cluster.end_offsets(description)
        except SourceUnavailableError:
            raise
        except SourceError:  # deleted after it was described, which the next look reports
            if self._is_doubted_long():
                raise  # Kafka refuses the answer
            return None
        self._doubted_at_s = None
        return self._checked(now, {p: now.first + end for p, end in ends.items()})

    def _is_doubted_long(self) -> bool:
        self._doubted_at_s = self._doubted_at_s or time.monotonic()
        return time.monotonic() - self._doubted_at_s >= _GONE_S

    def _other(self, now: KnownTopic, there: TopicDescription | None) -> str | None:
        if there is None:
            return f'changelog topic "{self.name}" does not exist any more'
        if there.topic_id != now.topic_id:
            return (
                f'changelog topic "{self.name}" has id {there.topic_id}, expected {now.topic_id}: '
                "it was deleted and created again"
            )
        return None

    def _checked(self, now: KnownTopic, ends: dict[int, int]) -> Mapping[int, int] | None:
        reached = self.reached()
        for partition, end in sorted(ends.items()):
            seen = max(self._ends.get(partition, 0), reached.get(partition, 0))
            if end < seen:
                self.lose(
                    now,
                    f'partition {partition} of changelog topic "{self.name}" ends at offset '
                    f"{end - now.first}, expected {seen - now.first} or more",
                )
                return None
        self._ends = ends
        return ends

    def trim(self, cluster: KafkaCluster, offsets: Mapping[int, int]) -> None:
        """Delete the records before these table offsets; SourceError if refused."""
        now = self._now
        if now is not None and self.look(cluster) is not None:
            own = {p: offset - now.first for p, offset in offsets.items()}
            cluster.delete_records_before(self.name, own)

    def lose(self, topic: KnownTopic, reason: str) -> None:
        with self._lock:
            if self._now == topic and self._lost is None:
                self._lost = reason
                _log.warning("changelog topic lost", topic=self.name, reason=reason)

    # What the coordinator does
    # -----------------------------------------------------------------------------------------

    def ensure(self, abandon: Callable[[str], None]) -> None:
        """Return once the topic exists; a lost topic is recreated. SourceError from the cluster.

        Before that, `abandon` durably records why the source must copy its table again.
        """
        cluster = KafkaCluster(self._kafka, keep_open=True)
        try:
            self._find(cluster)
            while self._lost is None and self.look(cluster) is None:
                time.sleep(_POLL_S)
            if self._lost is not None:
                if not self.has_all():
                    abandon(self._lost)
                self._make_again(cluster)
        finally:
            cluster.close()

    def _find(self, cluster: KafkaCluster) -> None:
        """Read the stored topic; without one, the existing topic is taken."""
        value = read_json(self._file)
        if value is not None:
            kept = KnownTopic(value["topic_id"], value["number"])
            if kept != self._now:
                self._begin(kept)
            return
        if self._now is not None:
            return
        there = cluster.describe(self.name)
        self._now = KnownTopic("" if there is None else there.topic_id)
        if there is not None:
            self._keep(self._now)

    def _begin(self, now: KnownTopic) -> None:
        with self._looking, self._lock:
            self._now, self._lost = now, None
            self._ends, self._doubted_at_s = {}, None

    def _keep(self, now: KnownTopic) -> None:
        write_json_atomically(self._file, asdict(now))

    def _make_again(self, cluster: KafkaCluster) -> None:
        """Delete any topic of this name: its records do not belong to the table's copy."""
        assert self._now is not None
        old = cluster.describe(self.name)
        if old is not None:
            cluster.delete(self.name)
        deadline = time.monotonic() + _MADE_S
        there = old
        while there is None or (old is not None and there.topic_id == old.topic_id):
            if time.monotonic() > deadline:
                raise SourceError(
                    f'changelog topic "{self.name}" cannot be made again: Kafka has deleted none '
                    f"within {_MADE_S:.0f} s",
                    hint="Delete the topic, and the job creates it.",
                )
            self._make(cluster)
            time.sleep(_POLL_S)
            there = cluster.describe(self.name)
        made = KnownTopic(there.topic_id, self._now.number + 1)
        self._keep(made)
        self._begin(made)
        _log.warning("changelog topic made again", topic=self.name, topic_id=made.topic_id)
