"""The records of old batches, as far as Kafka still has them."""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import KafkaRecords
from joins.durable.pins import Pin
from joins.lookback.history import History
from joins.plan.errors import RecordsExpiredError
from joins.plan.stream_topics import index_of

Range = tuple[int, int, int]


class PastRecords:
    """Reads the records of one job's stream again; close it when done.

    Attributes:
        topics: of the stream; their ids are of no concern here.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self.topics = history.topics
        self._columns = history.places.kernel.record_columns
        kafka = history.places.probe_kafka
        self._records = KafkaRecords(kafka)
        self._cluster = KafkaCluster(kafka, keep_open=True)

    def close(self) -> None:
        self._records.close()
        self._cluster.close()

    def check_topics(self, pin: Pin) -> None:
        """See that the topics are still those that the batch has read.

        Raises:
            RecordsExpiredError: one is gone, or another one has its name.
        """
        expected = self._history.life_of(pin.batch).topics
        read = [expected.topics[i] for i in sorted({*map(index_of, pin.end_offsets)})]
        described = self._cluster.describe_all([topic.name for topic in read])
        for topic in read:
            there = described.get(topic.name)
            if there is None or there.topic_id != topic.topic_id:
                state = (
                    "is gone"
                    if there is None
                    else f"has id {there.topic_id}, expected {topic.topic_id}"
                )
                raise RecordsExpiredError(
                    f'topic "{topic.name}" of batch {pin.batch} {state}',
                    hint="The records of this batch cannot be read again.",
                )

    def ends(self, number: int) -> tuple[dict[int, int], dict[int, int]]:
        """(oldest offsets, offsets behind the newest record that may be read) of a topic.

        Args:
            number: of a partition of the topic.
        """
        index, name = index_of(number), self.topics.topic_of(number).name
        begin, end = self._cluster.beginning_offsets(name), self._cluster.end_offsets(name)
        return self.topics.at(index, begin), self.topics.at(index, end)

    def high_watermarks(self, number: int) -> dict[int, int]:
        name = self.topics.topic_of(number).name
        return self.topics.at(index_of(number), dict(self._cluster.high_watermarks(name)))

    def kept(self, pin: Pin) -> tuple[dict[int, tuple[int, int]], tuple[Range, ...]]:
        """(partition → range that is there, ranges that retention has removed) of a batch."""
        self.check_topics(pin)
        begin = {
            number: offset
            for index in self.topics.by_topic(pin.end_offsets)
            for number, offset in self.topics.at(
                index, self._cluster.beginning_offsets(self.topics.names[index])
            ).items()
        }
        ranges: dict[int, tuple[int, int]] = {}
        gone: list[Range] = []
        for partition, end in sorted(pin.end_offsets.items()):
            start = pin.start_offsets.get(partition, 0)
            first = min(max(start, begin.get(partition, end)), end)
            ranges[partition] = (first, end)
            if start < first:
                gone.append((partition, start, first))
        return ranges, tuple(gone)

    def read(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        return self._records.batches(self.topics.without_ids(), ranges, self._columns)
