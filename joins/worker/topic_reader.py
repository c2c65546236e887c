"""Records of a stream inside a task, by a connection that its process keeps."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from joins.adapters.files.stream_rows import StreamFiles
from joins.adapters.kafka.records import KafkaRecords, Ranges
from joins.kernels.expressions.casts import whole_batch
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import FILES, StreamTopics, of_kafka
from joins.worker.staging import telling_cause

_ROWS, _BYTES = 10_000, 4 << 20  # of a batch that is worth its work


@cache
def _records(kafka: KafkaOptions) -> KafkaRecords:
    return KafkaRecords(kafka)


def range_item(ranges: Ranges) -> str:
    return json.dumps({str(partition): list(bounds) for partition, bounds in ranges.items()})


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge rows into fewer batches: each batch costs a kernel as much as thousands of rows."""
    small, rows, size = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        small.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield whole_batch(small)
            small, rows, size = [], 0, 0
    if small:
        yield whole_batch(small)


@dataclass(frozen=True, slots=True)
class TopicReader:
    """Reads the ranges that a task gets; picklable."""

    kafka: KafkaOptions
    topics: StreamTopics
    columns: tuple[str, ...]
    files: StreamFiles | None = None  # of the stream's history

    def __call__(self, items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records of all `range_item`s, each partition in offset order.

        Raises as `KafkaRecords.batches`; the driver gets the errors through `joins.worker.staging`.
        """
        for batch in items:
            for item in batch.column(0).to_pylist():
                ranges = {int(p): (first, end) for p, (first, end) in json.loads(item).items()}
                with telling_cause():
                    yield from _gathered(self._read(ranges))

    def _read(self, ranges: Ranges) -> Iterator[pa.RecordBatch]:
        of_files = ranges.get(FILES)
        if of_files is not None:
            assert self.files is not None, "the stream has a history"
            yield from self.files.batches(*of_files, self.columns)
        of_topics = of_kafka(ranges)
        if of_topics:
            yield from _records(self.kafka).batches(self.topics, of_topics, self.columns)
