"""How current a foreign topic is: T, before which all changes of its table are in the topic.

The session of the topic (`TopicFeedSession`) looks up T, then the topic's end offsets. Once it has
sent everything up to these, the pair is a proof of freshness.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from joins.adapters.connect import ConnectOffsets
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import KafkaRecords
from joins.adapters.registry import SchemaRegistry
from joins.adapters.topic.decoding import json_texts
from joins.adapters.topic.feed_state import TopicFeedConfig
from joins.kernels.changelog.envelope import now_ms
from joins.kernels.formats.avro_payloads import AvroMemory
from joins.plan.errors import RecordsExpiredError, SourceError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from watermark.freshness import Freshness, PassedOnTimes, Proof, ProofKind

_CONNECT_S = 2.0  # between two queries of Connect
_SAME_CLOCK_MS = 1_000  # a clock that is less ahead is not worth a message
_LOOKED_BACK = 16  # offsets: the last heartbeat is enough, and few markers of transactions follow
_WITHOUT_HEARTBEATS = (
    "the connector passes on the times of changes only: while the table is quiet, its time stands "
    "still. Let the connector write heartbeats (heartbeat.interval.ms), and name their topic in "
    "'freshness.heartbeat.topic'"
)


class HeartbeatTopic:
    """Reads the newest heartbeat of a connector: JSON with `ts_ms`, or Avro with `schemas`."""

    def __init__(self, kafka: KafkaOptions, schemas: SchemaRegistry | None = None) -> None:
        self._avro = None if schemas is None else AvroMemory(schemas.avro_schema)
        self._topic = kafka.topic
        self._cluster = KafkaCluster(kafka, keep_open=True)
        self._records = KafkaRecords(kafka)

    def close(self) -> None:
        self._cluster.close()
        self._records.close()

    def newest_ms(self) -> int | None:
        """Raises SourceError if the topic cannot be read."""
        description = self._cluster.require(self._topic)
        begins = self._cluster.beginning_offsets(description)
        ends = self._cluster.end_offsets(description)
        ranges = {
            p: (max(begins[p], end - _LOOKED_BACK), end)
            for p, end in ends.items()
            if begins[p] < end
        }
        if not ranges:
            return None
        name = StreamTopics.one(self._topic, description.topic_id)
        try:
            batches = [*self._records.batches(name, ranges, ("value",))]
        except RecordsExpiredError:
            return None
        columns = (batch.column("value") for batch in batches)
        values = [value for column in columns for value in json_texts(column, self._avro)]
        times = [ms for value in values if (ms := heartbeat_ms(value)) is not None]
        return max(times, default=None)


def heartbeat_ms(value: bytes | None) -> int | None:
    """`ts_ms` of a heartbeat, with or without a schema around it; None if it is none."""
    try:
        content = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    if isinstance(content, dict) and isinstance(content.get("payload"), dict):
        content = content["payload"]
    time_ms = content.get("ts_ms") if isinstance(content, dict) else None
    return time_ms if isinstance(time_ms, int) and not isinstance(time_ms, bool) else None


class TopicTimes:
    """Looks up T of one topic once an interval, and proves it once everything before T is sent.

    A topic without a connector is its own source: T is when its end offsets were looked up. Of a
    connector's topic T is a time that the connector has passed on: an offset that it committed to
    Connect, a heartbeat, or a change. Heartbeats, and changes in several partitions, count
    `settle_ms` later, as records before them may still be on their way.
    """

    def __init__(
        self,
        config: TopicFeedConfig,
        connect: ConnectOffsets | None,
        schemas: SchemaRegistry | None = None,
    ) -> None:
        self._config = config
        self._schemas = schemas
        self._options = config.source.evidence  # None without a connector
        self._connect = connect
        self._heartbeats = self._find_heartbeats()
        self._passed_on = PassedOnTimes()
        self._proofs = Freshness()
        self._next_at_s = float("-inf")
        self._next_connect_s = float("-inf")
        self._connect_error: str | None = None
        self._heartbeat_error: str | None = None
        self._changed_ms: int | None = None  # source time of the newest change

    def close(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.close()

    def _find_heartbeats(self) -> HeartbeatTopic | None:
        if self._options is None or self._options.heartbeat_topic is None:
            return None
        kafka = replace(self._config.source.kafka, topic=self._options.heartbeat_topic)
        return HeartbeatTopic(kafka, self._schemas)

    def look_up(self) -> int | None:
        """T, for which the caller reads the end offsets next; None between intervals or without."""
        now_s = time.monotonic()
        if self._config.source.is_bounded or now_s < self._next_at_s:
            return None
        self._next_at_s = now_s + self._config.freshness_s
        if self._options is None:
            return now_ms()
        settled_ms = now_ms() + self._options.settle_ms
        if self._connect is not None and now_s >= self._next_connect_s:
            self._next_connect_s = now_s + _CONNECT_S
            self._connect_error = self._pass_on(self._connect.committed_ms, 0)
        is_ordered = self._config.partitions == 1
        self._pass_on(lambda: self._changed_ms, 0 if is_ordered else settled_ms)
        if self._heartbeats is not None:
            self._heartbeat_error = self._pass_on(self._heartbeats.newest_ms, settled_ms)
        return self._passed_on.at(now_ms())

    def _pass_on(self, read: Callable[[], int | None], settles_at_ms: int) -> str | None:
        """Take the time that `read` returns; the message of its error."""
        try:
            time_ms = read()
        except SourceError as exc:
            return exc.message
        if time_ms is not None:
            self._passed_on.hear(time_ms, settles_at_ms=settles_at_ms, now_ms=now_ms())
        return None

    def take_change(self, source_ms: int | None) -> None:
        """Take the newest source time among changes that were sent."""
        if source_ms is not None and (self._changed_ms is None or source_ms > self._changed_ms):
            self._changed_ms = source_ms

    def take_ends(self, time_ms: int, ends: Mapping[int, int]) -> None:
        """Take the end offsets that were read after `look_up` returned the T `time_ms`."""
        kind = ProofKind.POSITION if self._options is None else ProofKind.CONNECTOR
        offsets = {str(partition): end for partition, end in sorted(ends.items())}
        source_ms = None if self._options is None else time_ms
        self._proofs.add(Proof(time_ms, {"offsets": offsets}, ends, kind, source_ms))

    def newest_proof(self, done: Mapping[int, int]) -> Proof | None:
        """The newest proof whose ends are sent, None if there is no newer one than before."""
        return self._proofs.news(done)

    def waits_for(self) -> str | None:
        """Why T of a quiet table may stand still; None without a reason."""
        if self._options is None:
            return None
        error = self._connect_error or self._heartbeat_error
        if error is not None:
            return error
        ahead_ms = self._passed_on.ahead_ms
        if ahead_ms > _SAME_CLOCK_MS:
            return (
                f"the connector's clock was {ahead_ms / 1000:g} s ahead of this machine's, and its "
                "times are set back by that"
            )
        silent = self._connect is None and self._heartbeats is None
        return _WITHOUT_HEARTBEATS if silent else None
