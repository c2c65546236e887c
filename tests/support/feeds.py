"""A `delta` source without a broker: its session, and what its records say the table is."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from joins.adapters.delta.feed import FeedSession
from joins.adapters.delta.source import DeltaFeedConfig
from joins.adapters.process.sessions import SourceProtocol
from joins.kernels.changelog.envelope import BinlogPosition, encode_watermark
from joins.plan.errors import SourceUnavailableError
from joins.plan.plan import Field, KafkaOptions
from tests.support.copies import Copy, copy_of

PARTITIONS = 2


@dataclass(frozen=True)
class Record:
    """As a consumer gives it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes


@dataclass
class Topic:
    """Takes records as a broker does; it can be told to be gone after some more of them."""

    records: list[Record] = field(default_factory=list)
    takes: int | None = None
    ends: Counter[int] = field(default_factory=Counter)

    def send(self, records: Iterable[tuple[bytes | None, bytes, int]]) -> list[object]:
        for key, value, partition in records:
            if self.takes is not None:
                if self.takes == 0:
                    raise SourceUnavailableError("the broker is gone", hint="Wait.")
                self.takes -= 1
            self.records.append(Record(partition, self.ends[partition], key, value))
            self.ends[partition] += 1
        return []

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        value = encode_watermark(high, generation)
        self.send([(None, value, number) for number in range(PARTITIONS)])
        return [(number, 0) for number in range(PARTITIONS)]

    def batch(self) -> pa.RecordBatch:
        """The records as the build side reads them from Kafka."""
        names = ("key", "value", "partition", "offset")
        kinds = (pa.binary(), pa.binary(), pa.int32(), pa.int64())
        columns = [
            pa.array([getattr(record, name) for record in self.records], kind)
            for name, kind in zip(names, kinds, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(names))

    def copy(self) -> Copy:
        return copy_of(self.records, PARTITIONS)


@dataclass
class BatchTopic:
    """Takes whole batches of records."""

    topic: Topic = field(default_factory=Topic)
    most_bytes: int = 1 << 20

    def message_bytes(self) -> int:
        return self.most_bytes

    def send(self, records: pa.RecordBatch) -> None:
        columns = (records.column(name).to_pylist() for name in ("key", "value", "partition"))
        self.topic.send(zip(*columns, strict=True))

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        return self.topic.watermark(high, generation)


class Silent(SourceProtocol):
    """A protocol that nobody listens to."""

    def tell(self, event: str, value: Any) -> None:
        pass


@dataclass
class Feed:
    """A source over the table at `path`."""

    config: DeltaFeedConfig
    topic: Topic = field(default_factory=Topic)
    most_bytes: int = 1 << 20

    def run(self, session: FeedSession | None = None) -> FeedSession:
        """Send everything that there is to send now."""
        running = session or FeedSession(self.config, Silent())
        sink = BatchTopic(self.topic, self.most_bytes)
        while running.step(sink):
            pass
        return running

    def rows(self) -> list[dict[str, Any]]:
        found = self.topic.copy().rows.values()
        return sorted(found, key=lambda row: str(list(row.values())))


def feed(
    path: Path, directory: Path, fields: tuple[Field, ...], key: tuple[str, ...] = ("id",)
) -> Feed:
    config = DeltaFeedConfig(
        path=path,
        fields=fields,
        primary_key=key,
        kafka=KafkaOptions("nowhere:9092", "topic"),
        partitions=PARTITIONS,
        state_file=directory / "source.json",
        monitor_interval_ms=100,
    )
    return Feed(config)


def table_rows(path: Path, columns: str = "*") -> list[dict[str, Any]]:
    query = QueryBuilder().register("t", DeltaTable(str(path))).execute(f"SELECT {columns} FROM t")
    rows = [dict(row) for batch in query for row in _rows(batch)]
    return sorted(rows, key=lambda row: str(list(row.values())))


def _rows(batch: Any) -> list[dict[str, Any]]:
    return pa.record_batch(batch).to_pylist()
