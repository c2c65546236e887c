"""When everything in a foreign topic was current: its end offsets, or its connector's own times."""

import json
import time
from collections.abc import Mapping
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

_CONNECT_S = 2.0
_SAME_CLOCK_MS = 1_000
_LOOKED_BACK = 16  # offsets; the last ones may be markers of transactions
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
    except ValueError:
        return None
    if isinstance(content, dict) and isinstance(content.get("payload"), dict):
        content = content["payload"]
    time_ms = content.get("ts_ms") if isinstance(content, dict) else None
    return time_ms if isinstance(time_ms, int) and not isinstance(time_ms, bool) else None


class TopicTimes:
    """Asks for T and the ends of one topic once an interval, and tells which answer is sent on.

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
        self._evidence = config.source.evidence
        self._connect = connect
        self._heartbeats = self._find_heartbeats()
        self._passed_on = PassedOnTimes()
        self._proofs = Freshness()
        self._asked_at_s = float("-inf")
        self._connect_at_s = float("-inf")
        self._error: str | None = None
        self._changed_ms: int | None = None

    def close(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.close()

    def _find_heartbeats(self) -> HeartbeatTopic | None:
        if self._evidence is None or self._evidence.heartbeat_topic is None:
            return None
        kafka = replace(self._config.source.kafka, topic=self._evidence.heartbeat_topic)
        return HeartbeatTopic(kafka, self._schemas)

    def due(self) -> int | None:
        """T of a question whose ends are looked up next; None if there is none now."""
        now_s = time.monotonic()
        if self._config.source.is_bounded or now_s - self._asked_at_s < self._config.freshness_s:
            return None
        self._asked_at_s = now_s
        if self._evidence is None:
            return now_ms()
        try:
            self._hear()
            self._error = None
        except SourceError as exc:
            self._error = exc.message
        return self._passed_on.at(now_ms())

    def _hear(self) -> None:
        assert self._evidence is not None
        if self._connect is not None and time.monotonic() >= self._connect_at_s:
            self._connect_at_s = time.monotonic() + _CONNECT_S
            committed = self._connect.committed_ms()
            if committed is not None:
                self._passed_on.hear(committed, 0, now_ms())
        settled_ms = now_ms() + self._evidence.settle_ms
        if self._changed_ms is not None:
            is_ordered = self._config.partitions == 1
            self._passed_on.hear(self._changed_ms, 0 if is_ordered else settled_ms, now_ms())
        beat = None if self._heartbeats is None else self._heartbeats.newest_ms()
        if beat is not None:
            self._passed_on.hear(beat, settled_ms, now_ms())

    def changed(self, source_ms: int | None) -> None:
        """A change of this time is read."""
        if source_ms is not None and (self._changed_ms is None or source_ms > self._changed_ms):
            self._changed_ms = source_ms

    def answered(self, time_ms: int, ends: Mapping[int, int]) -> None:
        kind = ProofKind.POSITION if self._evidence is None else ProofKind.CONNECTOR
        offsets = {str(partition): end for partition, end in sorted(ends.items())}
        source_ms = None if self._evidence is None else time_ms
        self._proofs.add(Proof(time_ms, {"offsets": offsets}, ends, kind, source_ms))

    def reached(self, done: Mapping[int, int]) -> Proof | None:
        """The newest answer whose ends are sent, None if there is no newer one than before."""
        return self._proofs.news(done)

    def waits_for(self) -> str | None:
        """Why T of a quiet table may stand still."""
        if self._evidence is None:
            return None
        if self._error is not None:
            return self._error
        ahead_ms = self._passed_on.ahead_ms
        if ahead_ms > _SAME_CLOCK_MS:
            return (
                f"the connector's clock was {ahead_ms / 1000:g} s ahead of this machine's, and its "
                "times are set back by that"
            )
        silent = self._connect is None and self._heartbeats is None
        return _WITHOUT_HEARTBEATS if silent else None
