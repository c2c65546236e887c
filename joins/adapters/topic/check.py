"""Checks a topic by a few newest records, in plain Python: the control plane loads no numba."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors

from joins.adapters.connect import ConnectOffsets
from joins.adapters.kafka.client import may_pass
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.options import client_options, refusal
from joins.adapters.registry import SchemaRegistry, check_registries
from joins.kernels.debezium.options import CapturedName, ConnectType
from joins.kernels.formats.avro_schema import Program
from joins.kernels.formats.decoders import RecordColumns
from joins.plan.causes import detail_of
from joins.plan.errors import DefinitionError, SourceError, SourceUnavailableError
from joins.plan.formats import OF_CHANGES, KafkaFormat
from joins.plan.plan import Field, Isolation, KafkaOptions, TopicSource

_WAIT_MS = 1_500
_BOOTSTRAP_MS = 5_000


@dataclass(frozen=True, slots=True)
class NewestRecord:
    """A record of a topic, not decoded."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def newest_records(kafka: KafkaOptions, count: int) -> list[NewestRecord]:
    """About `count` of the newest records over all partitions."""
    with _consumer(kafka) as consumer:
        parts = [
            TopicPartition(kafka.topic, partition)
            for partition in sorted(consumer.partitions_for_topic(kafka.topic) or ())
        ]
        ends, begins = consumer.end_offsets(parts), consumer.beginning_offsets(parts)
        filled = [part for part in parts if ends[part] > begins[part]]
        if not filled:
            return []
        consumer.assign(filled)
        for part in filled:
            consumer.seek(part, max(begins[part], ends[part] - count))
        answer = consumer.poll(timeout_ms=_WAIT_MS, max_records=count * len(filled))
        return [
            NewestRecord(each.partition, each.offset, each.key, each.value)
            for records in answer.values()
            for each in records
        ]


@contextmanager
def _consumer(kafka: KafkaOptions) -> Iterator[KafkaConsumer]:
    try:
        consumer = KafkaConsumer(
            **client_options(kafka),
            enable_auto_commit=False,
            isolation_level=Isolation.COMMITTED.value,
            bootstrap_timeout_ms=_BOOTSTRAP_MS,
        )
        try:
            yield consumer
        finally:
            consumer.close()
    except (kafka_errors.KafkaError, OSError) as exc:
        if may_pass(exc):
            raise SourceUnavailableError(
                f'kafka "{kafka.bootstrap_servers}" cannot be reached',
                hint="Check properties.bootstrap.servers, and that the broker runs.",
                detail=detail_of(exc),
            ) from exc
        raise SourceError(
            f'topic "{kafka.topic}" cannot be read: {refusal(exc)}',
            hint="Check this user's rights and the properties of the connection.",
            detail=detail_of(exc),
        ) from exc


_LOOKED_AT = 5
_AVRO, _HEADER_BYTES = b"\x00", 5
_READABLE = "Register it as one schema of records that are not parts of themselves."
_SNAPSHOT_FIELDS = ("__snapshot", "__source_snapshot")
_WHAT_WOULD_DO = (
    "What shows that a topic is whole: envelopes with source.snapshot (ExtractNewRecordState "
    "leaves it out; add source.snapshot to its add.fields); rows by key by the connector "
    "upsert-kafka; the database itself by mysql-cdc."
)


def check_topic(source: TopicSource, fields: Sequence[Field], primary_key: Sequence[str]) -> None:
    """Check the topic, its newest records and the declared evidence.

    SourceUnavailableError if a cluster, Connect or the registry does not answer, SourceError if
    something is missing or records do not fit.
    """
    cluster = KafkaCluster(source.kafka, keep_open=True)
    try:
        cluster.require(source.kafka.topic)
        evidence = source.evidence
        if evidence is not None and evidence.notifications_topic is not None:
            cluster.require(evidence.notifications_topic)
    finally:
        cluster.close()
    if evidence is not None and evidence.connect_url is not None and evidence.connector is not None:
        connect = ConnectOffsets(evidence.connect_url, evidence.connector)
        try:
            connect.require()
        finally:
            connect.close()
    if source.value.name not in OF_CHANGES:
        check_registries(source.value, source.key)
    if source.value.name in (*OF_CHANGES, KafkaFormat.JSON):
        _check_records(source, fields, primary_key)


def connector_advice(source: TopicSource) -> tuple[str, ...]:
    """Sentences on what a topic's connector does that its records do not show."""
    evidence = source.evidence
    if evidence is None or evidence.connect_url is None or evidence.connector is None:
        return ()
    connect = ConnectOffsets(evidence.connect_url, evidence.connector)
    try:
        options, in_chunks = connect.nulls_replaced(), connect.has_snapshot_threads()
    finally:
        connect.close()
    texts = []
    if options:
        texts.append(
            f'connector "{evidence.connector}" does not set {" and ".join(options)} to false: '
            "where a column has a default, Connect may have written it in place of NULL"
        )
    if in_chunks and evidence.notifications_topic is None:
        texts.append(
            f'connector "{evidence.connector}" may read a table in chunks (snapshot.max.threads): '
            "a snapshot that a restart cuts short cannot be told from a whole one; let it send "
            "notifications, and name their topic in 'snapshot.notifications.topic'"
        )
    return tuple(texts)


def _check_records(
    source: TopicSource, fields: Sequence[Field], primary_key: Sequence[str]
) -> None:
    newest = newest_records(source.kafka, _LOOKED_AT)
    parsed = source.parsed_fields(tuple(fields))
    if source.value.registry is None:
        check = _RecordCheck(source, parsed, tuple(primary_key))
        for record in newest:
            check.look(record)
        return
    with SchemaRegistry(source.value.registry) as registry:
        check = _AvroCheck(source, parsed, tuple(primary_key), registry)
        for record in newest:
            check.look(record)
        check.look_at_subject()


class _RecordCheck:
    def __init__(
        self, source: TopicSource, fields: tuple[Field, ...], primary_key: tuple[str, ...]
    ) -> None:
        self._source = source
        self._fields = fields
        self._key = primary_key
        self._options = dict(source.value.options)

    def look(self, record: NewestRecord) -> None:
        """Raise SourceError for an unreadable record, DefinitionError for undeclared columns."""
        if record.value is None:
            return
        value = self._object(record, record.value)
        if self._source.value.name is KafkaFormat.JSON:
            columns = RecordColumns(self._fields, self._source.value, self._source.key).of_value
            self._check_columns(record, value, [f for f in columns if f.name in self._key])
            return
        if self._options.get("layout") == "flat":
            self._check_flat(record, value)
            return
        if "op" not in value or "source" not in value:
            raise self._wrong(
                record,
                "is no envelope of Debezium: it has no op and no source",
                f"Write '{self._source.value.name}.layout' = 'flat' if it is a row by itself, or "
                "'format' = 'json' if no connector wrote it.",
            )
        row = value.get("after") or (value.get("before") if value["op"] == "d" else None)
        if isinstance(row, dict) and value["op"] != "d" and self._is_ours(value["source"]):
            self._check_columns(record, row, self._fields)

    def _is_ours(self, source: object) -> bool:
        captured = CapturedName.of(self._options)
        name = source.get("table") if isinstance(source, dict) else None
        return captured is None or (isinstance(name, str) and captured.has(name))

    def _check_flat(self, record: NewestRecord, row: Mapping[str, Any]) -> None:
        has_marks = any(name in row for name in _SNAPSHOT_FIELDS)
        if self._source.evidence is not None and not has_marks:
            raise self._wrong(record, "does not tell whether it is of a snapshot", _WHAT_WOULD_DO)
        self._check_columns(record, row, self._fields)

    def _check_columns(
        self, record: NewestRecord, row: Mapping[str, Any], fields: Sequence[Field]
    ) -> None:
        if self._options.get("fail-on-missing-field") == "false":
            return
        missing = [item.name for item in fields if item.name not in row]
        if missing:
            there = ", ".join(sorted(row))[:200]
            raise DefinitionError(
                f'record {record.partition}/{record.offset} of topic "{self._source.kafka.topic}" '
                f'has no column "{missing[0]}", it has {there}',
                hint="Declare columns that the records have.",
            )

    def _object(self, record: NewestRecord, text: bytes) -> Mapping[str, Any]:
        if text[:1] == _AVRO:
            raise self._wrong(
                record,
                "is not JSON but, it seems, Avro of a schema registry",
                f"Write 'format' = '{KafkaFormat.DEBEZIUM_AVRO_CONFLUENT}' and the registry's "
                "address, or have JSON written into this topic.",
            )
        try:
            value = json.loads(text, strict=False)  # the decoder reads control characters, too
        except (ValueError, RecursionError) as exc:
            raise self._wrong(
                record, f"is not JSON: {exc}", "Name a topic whose records are JSON."
            ) from exc
        is_row = self._source.value.name is KafkaFormat.JSON
        if is_row and isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not is_row and isinstance(value, dict) and set(value) == {"schema", "payload"}:
            value = value["payload"]
        if not isinstance(value, dict):
            raise self._wrong(record, "is no object", "Name a topic whose records are objects.")
        return value

    def _wrong(self, record: NewestRecord, what: str, hint: str) -> SourceError:
        place = f"{record.partition}/{record.offset}"
        return SourceError(
            f'record {place} of topic "{self._source.kafka.topic}" {what}', hint=hint
        )


class _AvroCheck(_RecordCheck):
    # reads better deep: what is asked of a record is the same in both.

    def __init__(
        self,
        source: TopicSource,
        fields: tuple[Field, ...],
        primary_key: tuple[str, ...],
        registry: SchemaRegistry,
    ) -> None:
        super().__init__(source, fields, primary_key)
        self._registry = registry

    def look(self, record: NewestRecord) -> None:
        if record.key is not None and record.key[:1] != _AVRO:
            raise self._wrong(
                record,
                "has a key that is not Avro of a schema registry",
                "Have the connector write its keys by the same converter as its values.",
            )
        super().look(record)

    def look_at_subject(self) -> None:
        """Raise SourceError if the registry's schema for values cannot be read."""
        topic = self._source.kafka.topic
        schema = self._registry.newest_avro_schema(f"{topic}-value")
        if schema is not None:
            try:
                Program.of(schema)
            except ValueError as exc:
                raise SourceError(
                    f'the schema of "{topic}-value" cannot be read: {exc}',
                    hint=_READABLE,
                ) from exc

    def _object(self, record: NewestRecord, text: bytes) -> Mapping[str, Any]:
        if text[:1] != _AVRO or len(text) < _HEADER_BYTES:
            raise self._wrong(
                record,
                "is not Avro of a schema registry",
                f"Write 'format' = '{KafkaFormat.DEBEZIUM_JSON}' if it is JSON.",
            )
        number = int.from_bytes(text[1:_HEADER_BYTES], "big")
        schema = self._registry.avro_schema(number)
        if schema is None:
            raise self._wrong(
                record,
                f"has schema {number}, which the registry does not have",
                "Correct the registry's address, or restore its schemas.",
            )
        try:
            described = _described(Program.of(schema).connect)
        except ValueError as exc:
            raise self._wrong(
                record, f"has schema {number}, which cannot be read: {exc}", _READABLE
            ) from exc
        if not isinstance(described, dict):
            raise self._wrong(record, "is no record", "Name a topic whose values are records.")
        return described


def _described(kind: ConnectType) -> object:
    if kind.type != "struct":
        return None
    return {name: _described(each) for name, each in kind.fields.items()}
