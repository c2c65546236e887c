"""How much a Fetch asks for: of each partition about the bytes of the records that are wanted.

A broker sends what it may, so that a batch of few records in a topic with many would be read many
times over.
"""

import math
from dataclasses import dataclass
from typing import Self

from joins.kernels.records.decode import DecodedRecords
from joins.kernels.records.layout import BatchHeader
from joins.plan.connections import ClientNumber
from joins.plan.plan import KafkaOptions


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How long a broker waits for a first record, and how much it sends; a batch it sends whole."""

    wait_ms: int = 500
    partition_bytes: int = 8 << 20
    response_bytes: int = 64 << 20

    @classmethod
    def of(cls, kafka: KafkaOptions) -> Self:
        limits, sizes = cls(), dict(kafka.properties)
        return cls(
            partition_bytes=int(sizes.get(ClientNumber.PARTITION_BYTES, limits.partition_bytes)),
            response_bytes=int(sizes.get(ClientNumber.FETCH_BYTES, limits.response_bytes)),
        )


@dataclass(frozen=True, slots=True)
class _Density:
    """What the newest answer has told of a topic."""

    bytes_an_offset: float
    largest_batch: int


class FetchSizes:
    """What was seen of each topic, by its name."""

    def __init__(self) -> None:
        self._seen: dict[str, _Density] = {}

    def see(self, topic: str, data: bytes, records: DecodedRecords) -> None:
        """An answer: `data` of one partition, and what was made of it.

        Where it has no whole batch, or none of those that were wanted, nothing is known any more.
        """
        self._seen.pop(topic, None)
        first = BatchHeader.at(memoryview(data), 0)
        if first is not None and records.next_offset is not None and records.batches:
            each = len(data) / (records.next_offset - first.base_offset)
            self._seen[topic] = _Density(each, max(batch.size for batch in records.batches))

    def to_ask(self, topic: str, offsets: int, most: int) -> int:
        """Bytes to ask for where so many offsets are wanted; `most` while nothing is known.

        The batches at both ends have other records, too.
        """
        seen = self._seen.get(topic)
        if seen is None:
            return most
        return min(most, math.ceil(offsets * seen.bytes_an_offset) + 2 * seen.largest_batch)
