"""The records of old batches, as far as Kafka still has them."""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import KafkaRecords, TopicName
from joins.durable.pins import Pin
from joins.lookback.history import History
from joins.plan.errors import RecordsExpiredError

Range = tuple[int, int, int]


class PastRecords:
    """Reads the records of one job's stream again; close it when done."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._columns = history.places.kernel.record_columns
        kafka = history.places.probe_kafka
        self._records = KafkaRecords(kafka)
        self._cluster = KafkaCluster(kafka, keep_open=True)

    def close(self) -> None:
        """End both connections."""
        self._records.close()
        self._cluster.close()

    def check_topic(self, pin: Pin) -> None:
        """See that the topic is still the one that the batch has read.

        Raises:
            RecordsExpiredError: it is gone, or another one has its name.
        """
        description = self._cluster.describe(pin.topic)
        expected_id = self._history.life_of(pin.batch).topic_id
        if description is None or description.topic_id != expected_id:
            state = (
                "is gone"
                if description is None
                else f"has id {description.topic_id}, expected {expected_id}"
            )
            raise RecordsExpiredError(
                f'topic "{pin.topic}" of batch {pin.batch} {state}',
                hint="The records of this batch cannot be read again.",
            )

    def ends(self, topic: str) -> tuple[dict[int, int], dict[int, int]]:
        """(oldest offsets, offsets behind the newest record that may be read) by partition."""
        return self._cluster.beginning_offsets(topic), self._cluster.end_offsets(topic)

    def high_watermarks(self, topic: str) -> dict[int, int]:
        """Offsets behind everything, also behind transactions that are open, by partition."""
        return self._cluster.high_watermarks(topic)

    def kept(self, pin: Pin) -> tuple[dict[int, tuple[int, int]], tuple[Range, ...]]:
        """(partition → range that is there, ranges that retention has removed) of a batch."""
        self.check_topic(pin)
        begin = self._cluster.beginning_offsets(pin.topic)
        ranges: dict[int, tuple[int, int]] = {}
        gone: list[Range] = []
        for partition, end in sorted(pin.end_offsets.items()):
            start = pin.start_offsets.get(partition, 0)
            first = min(max(start, begin.get(partition, end)), end)
            ranges[partition] = (first, end)
            if start < first:
                gone.append((partition, start, first))
        return ranges, tuple(gone)

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        """The records of `ranges`, in the form that the kernel takes."""
        return self._records.batches(TopicName(topic), ranges, self._columns)
