"""Decodes the records of a dimension's topic, and notifications about it."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import KafkaRecords
from joins.adapters.registry import SchemaRegistry, shared_schemas
from joins.kernels.debezium import decoder as debezium
from joins.kernels.debezium.changes import ForeignTable
from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.debezium.notifications import (
    ScanStatus,
    SnapshotEvent,
    SnapshotFamily,
    SnapshotNotification,
    read_notification,
)
from joins.kernels.debezium.options import CapturedName, debezium_options
from joins.kernels.debezium.raw import RawValues
from joins.kernels.formats import avro_payloads as avro
from joins.kernels.formats.avro_payloads import AvroMemory
from joins.kernels.formats.decoders import RecordColumns
from joins.kernels.topic.rows import (
    ComputedTimeDecoder,
    KeyedRowDecoder,
    PlacedRowDecoder,
    RecordTimeDecoder,
    TopicDecoder,
)
from joins.plan.errors import RecordsExpiredError
from joins.plan.formats import OF_CHANGES
from joins.plan.plan import Field, KafkaOptions, TopicSource, declared_fields
from joins.plan.stream_topics import StreamTopics
from watermark.foreign_records import Notice, NoticeKind

_OF_THE_CONNECTOR = {
    SnapshotEvent.STARTED: NoticeKind.STARTED,
    SnapshotEvent.COMPLETED: NoticeKind.COMPLETED,
    SnapshotEvent.ABORTED: NoticeKind.ABORTED,
    SnapshotEvent.SKIPPED: NoticeKind.SKIPPED,
}


class NoticeTopic:
    """Reads the topic of all connectors' notifications and returns those about one table.

    `read` is an earlier `read_to`: the id of the topic of notifications, and its next offsets.
    `schemas` are for a connector that writes Avro, in its notifications, too. `partitions` are
    those of the table, if it has some.
    """

    def __init__(
        self,
        kafka: KafkaOptions,
        topic: str,
        read: tuple[str, Sequence[tuple[int, int]]],
        schemas: SchemaRegistry | None = None,
        partitions: CapturedName | None = None,
    ) -> None:
        self._partitions = partitions
        self._kafka = kafka
        self._topic = topic
        self._topic_id, offsets = read
        self._next = dict(offsets)
        self._cluster = KafkaCluster(kafka, keep_open=True)
        self._records = KafkaRecords(kafka)
        self._avro = None if schemas is None else AvroMemory(schemas.avro_schema)

    @property
    def read_to(self) -> tuple[str, tuple[tuple[int, int], ...]]:
        return self._topic_id, tuple(sorted(self._next.items()))

    @property
    def is_read(self) -> bool:
        return bool(self._next)

    def begin_again(self) -> None:
        self._next = {}

    def close(self) -> None:
        self._cluster.close()
        self._records.close()

    def read(self, table: ForeignTable | None) -> list[Notice]:
        """New notifications about the table; `table` is as its records say, None before the first.

        A topic that was recreated or ends before the stored offsets is read from its beginning.
        Records that retention removes meanwhile are none: the next call begins behind them.
        """
        topic = self._cluster.require(self._kafka.topic)
        ends, begins = self._cluster.end_offsets(topic), self._cluster.beginning_offsets(topic)
        is_other = topic.topic_id != self._topic_id
        if is_other or any(end < self._next.get(p, 0) for p, end in ends.items()):
            self._next = {}
        ranges = {p: (max(self._next.get(p, 0), begins.get(p, 0)), end) for p, end in ends.items()}
        try:
            notices = list(self._notices(topic.topic_id, ranges, table))
        except RecordsExpiredError:
            return []
        self._topic_id = topic.topic_id
        self._next = {p: max(first, end) for p, (first, end) in ranges.items()}
        return notices

    def _notices(
        self, topic_id: str, ranges: dict[int, tuple[int, int]], table: ForeignTable | None
    ) -> Iterator[Notice]:
        unread = {p: (first, end) for p, (first, end) in ranges.items() if first < end}
        if not unread:
            return
        name = StreamTopics.one(self._kafka.topic, topic_id)
        for batch in self._records.batches(name, unread, ("key", "value")):
            columns = (json_texts(column, self._avro) for column in batch.columns)
            for key, value in zip(*columns, strict=True):
                read = read_notification(key, value)
                if isinstance(read, SnapshotNotification):
                    notice = notice_of(read, self._topic, table, self._partitions)
                    if notice is not None:
                        yield notice


def json_texts(values: pa.Array, memory: AvroMemory | None) -> list[bytes | None]:
    """Keys or values as JSON; values that are not Avro stay unchanged. None memory: no Avro."""
    own: list[bytes | None] = values.to_pylist()
    if memory is None:
        return own
    read = memory.unwrapped(RawValues.of(values)).values.copied().to_pylist()
    return [one if text is None else text for one, text in zip(own, read, strict=True)]


def notice_of(
    read: SnapshotNotification,
    topic: str,
    table: ForeignTable | None,
    partitions: CapturedName | None = None,
) -> Notice | None:
    """The notification's content about the table in `topic`; None if it is about others.

    The records' data decides. Only what they lack is taken from the topic's name, which begins with
    the connector's unless a transformation renames it. That one of the `partitions` of a table was
    scanned does not show that all were.
    """
    if read.family is not SnapshotFamily.INITIAL or read.timestamp_ms is None:
        return None
    if not _is_by(read.connector, topic, table):
        return None
    if read.event in _OF_THE_CONNECTOR:
        return Notice(_OF_THE_CONNECTOR[read.event], read.timestamp_ms)
    is_scan = read.event is SnapshotEvent.TABLE_SCAN_COMPLETED and read.connector is not None
    if not is_scan or read.table is None:
        return None
    if partitions is not None:
        has_failed = read.status not in (None, ScanStatus.SUCCEEDED, ScanStatus.EMPTY)
        is_ours = partitions.has(read.table.rpartition(".")[2])
        return Notice(NoticeKind.SCAN_FAILED, read.timestamp_ms) if has_failed and is_ours else None
    if not _is_of(read.table, f"{read.connector}.", topic, table):
        return None
    if read.status in (None, ScanStatus.SUCCEEDED, ScanStatus.EMPTY):
        rows = 0 if read.status is ScanStatus.EMPTY else read.rows
        return Notice(NoticeKind.SCANNED, read.timestamp_ms, rows)
    return Notice(NoticeKind.SCAN_FAILED, read.timestamp_ms)


def is_named_after(connector: str | None, topic: str) -> bool:
    return connector is None or topic.startswith(f"{connector}.")


def _is_by(connector: str | None, topic: str, table: ForeignTable | None) -> bool:
    if connector is None or table is None or table.connector is None:
        return is_named_after(connector, topic)
    return connector == table.connector


def _is_of(scanned: str, prefix: str, topic: str, table: ForeignTable | None) -> bool:
    """True if the table was scanned; PostgreSQL's names may begin with the database."""
    parts = scanned.split(".")
    if table is not None and "." in table.name:
        known = table.name.split(".")
        least = min(len(parts), len(known))
        return least > 1 and parts[-least:] == known[-least:]
    return topic in {prefix + scanned, prefix + ".".join(parts[-2:])}


def schemas_of(source: TopicSource) -> SchemaRegistry | None:
    registry = source.value.registry
    return None if registry is None else SchemaRegistry(registry)


def decoder_of(
    source: TopicSource,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
    schemas: SchemaRegistry | None,
) -> TopicDecoder:
    """The decoder of the topic's format; it passes on errors of `schemas`."""
    parsed, made = source.parsed_fields(fields), declared_fields(fields)
    decoder: TopicDecoder
    if source.value.name in OF_CHANGES:
        options, payloads = debezium_options(dict(source.value.options)), None
        if schemas is not None:
            payloads = AvroMemory(schemas.avro_schema), AvroMemory(schemas.avro_schema)
        decoder = DebeziumDecoder(parsed, primary_key, options, payloads=payloads)
    else:
        columns = RecordColumns(parsed, source.value, source.key)
        key = primary_key if made == fields else ()
        deletes = source.deletes_by_null and made == fields
        decoder = KeyedRowDecoder(columns, key, deletes_by_null=deletes, schemas=shared_schemas)
    if source.metadata:
        decoder = RecordTimeDecoder(decoder, source.metadata)
    if source.computed:
        decoder = ComputedTimeDecoder(decoder, source.computed)
    return decoder if made == fields else PlacedRowDecoder(decoder)


def warm_up(source: TopicSource) -> None:
    if source.value.name in OF_CHANGES:
        debezium.warm_up()
    if source.value.registry is not None:
        avro.warm_up()


def partitions_of(options: Mapping[str, str]) -> CapturedName | None:
    """The tables that are partitions of the dimension's table; None for a table without."""
    captured = CapturedName.of(options)
    return captured if captured is not None and captured.is_pattern else None
