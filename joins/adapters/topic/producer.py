"""Sends record batches to a changelog topic."""

from typing import Protocol

import pyarrow as pa

from joins.adapters.kafka.batch_producer import SILENCE_S
from joins.adapters.kafka.changelog_producer import ChangelogProducer
from joins.kernels.changelog.envelope import BinlogPosition
from joins.kernels.records.encode import encode_bodies


class RecordSink(Protocol):
    """The part of `TopicProducer` that a session uses."""

    def message_bytes(self) -> int:
        """Maximum size of a message of the topic; SourceUnavailableError without the cluster."""

    def send(self, records: pa.RecordBatch) -> object:
        """Write `[key, value, partition]`, acknowledged when this returns."""

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        """Write a watermark record to every partition; their (partition, offset) pairs."""


class TopicProducer(ChangelogProducer):
    """The producer of a changelog topic that gets whole tables, by compiled code."""

    silence_s = SILENCE_S

    def _bodies(self, records: pa.RecordBatch, body_bytes: int) -> pa.RecordBatch:
        keys, values, partitions = records.columns
        return encode_bodies(keys, values, {}, partitions.to_numpy(), body_bytes)
