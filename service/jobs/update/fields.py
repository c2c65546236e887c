"""The rule of each field of a plan: what a difference there is."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from joins.plan.connections import KAFKA_CREDENTIALS, ClientNumber
from joins.plan.plan import (
    COMPRESSION_TYPE,
    BlackholeSink,
    DatagenSource,
    DeltaSink,
    DeltaTableSource,
    Dimension,
    DimensionJoin,
    FileSource,
    FurtherInsert,
    JoinPlan,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    MysqlCdcSource,
    OutputColumn,
    PrintSink,
    ProbeSource,
    SharedSource,
    StreamTable,
    TopicSource,
    Unnest,
)
from service.jobs.update.changes import ChangeKind
from service.sql.catalog.settings import LOCAL_TIME_ZONE, TRIGGER_INTERVAL

K = ChangeKind
Part = Any
"""A dataclass of a plan, or a value in one."""


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One place where two plans differ."""

    kind: ChangeKind
    of: str  # what differs, in words
    insert: int = 0  # the INSERT, from 0; 0 for what belongs to all
    # what was added or removed, or the older part with the field
    part: Part = dataclasses.field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """Where two values are compared: a field of the part `of`; `owner` is the kind of that part."""

    owner: ChangeKind
    of: str
    insert: int
    field: str = ""
    part: Part = None

    def differs(self, kind: ChangeKind) -> PlanDifference:
        return PlanDifference(kind, f"{self.field} of {self.of}", self.insert, self.part)


class FieldRule:
    """What a difference of a field is."""

    def differences(self, old: Part, new: Part, place: FieldPlace) -> Iterator[PlanDifference]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Leaf(FieldRule):
    """A value that is compared as a whole; None stands for the kind of the part around."""

    kind: ChangeKind | None = None

    def differences(self, old: Part, new: Part, place: FieldPlace) -> Iterator[PlanDifference]:
        yield place.differs(place.owner if self.kind is None else self.kind)


@dataclass(frozen=True, slots=True)
class ByType(FieldRule):
    """An expression; another type is `retyped`."""

    kind: ChangeKind
    retyped: ChangeKind

    def differences(self, old: Part, new: Part, place: FieldPlace) -> Iterator[PlanDifference]:
        yield place.differs(self.kind if old.type == new.type else self.retyped)


class Nothing(FieldRule):
    """No part of what a plan means."""

    def differences(self, old: Part, new: Part, place: FieldPlace) -> Iterator[PlanDifference]:
        return iter(())


@dataclass(frozen=True, slots=True)
class Inner(FieldRule):
    """A part whose own fields are compared; another class, or an absent part, is a `kind`.

    None stands for the kind of the part around. `of` names the part, None as the part around.
    """

    kind: ChangeKind | None = None
    of: str | None = None

    def differences(self, old: Part, new: Part, place: FieldPlace) -> Iterator[PlanDifference]:
        kind = place.owner if self.kind is None else self.kind
        if type(old) is not type(new):
            yield place.differs(kind)
        else:
            yield from differences(old, new, FieldPlace(kind, self.of or place.of, place.insert))


@dataclass(frozen=True, slots=True)
class Named(FieldRule):
    """Parts that are matched by their field `by`; without `moved` their order is nothing."""

    by: str
    what: str
    added: ChangeKind
    removed: ChangeKind
    moved: ChangeKind | None = None

    def differences(self, old: Part, new: Part, place: FieldPlace) -> Iterator[PlanDifference]:
        before = {getattr(part, self.by): part for part in old}
        after = {getattr(part, self.by): part for part in new}
        for name, part in after.items():
            of = f'{self.what} "{name}"'
            if name not in before:
                yield PlanDifference(self.added, of, place.insert, part)
            else:
                inner = FieldPlace(ChangeKind.UNKNOWN, of, place.insert)
                yield from differences(before[name], part, inner)
        for name in sorted(before.keys() - after.keys()):
            yield PlanDifference(self.removed, f'{self.what} "{name}"', place.insert, before[name])
        kept = [n for n in before if n in after], [n for n in after if n in before]
        is_twice = len(before) < len(old) or len(after) < len(new)
        if self.moved is not None and (kept[0] != kept[1] or is_twice):
            yield PlanDifference(self.moved, f"the order of each {self.what}", place.insert)


@dataclass(frozen=True, slots=True)
class Listed(FieldRule):
    """The further INSERTs, matched by their position; another number of them is a `kind`."""

    kind: ChangeKind

    def differences(self, old: Part, new: Part, place: FieldPlace) -> Iterator[PlanDifference]:
        if len(old) != len(new):
            yield PlanDifference(self.kind, "the number of INSERTs")
        for number, (before, after) in enumerate(zip(old, new, strict=False), start=1):
            inner = FieldPlace(self.kind, f"INSERT {number + 1}", number)
            yield from differences(before, after, inner)


@dataclass(frozen=True, slots=True)
class Pairs(FieldRule):
    """Texts by name; `kind_of` gives the kind of a name."""

    kind_of: Callable[[str], ChangeKind]

    def differences(self, old: Part, new: Part, place: FieldPlace) -> Iterator[PlanDifference]:
        before, after = dict(old), dict(new)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield replace(place, field=f'"{name}"').differs(self.kind_of(name))


def differences(old: Part, new: Part, place: FieldPlace) -> Iterator[PlanDifference]:
    """The differences of two parts of one class."""
    rules = FIELDS.get(type(old), {})
    for field in dataclasses.fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after:
            rule = rules.get(field.name, _UNKNOWN)
            yield from rule.differences(before, after, replace(place, field=field.name, part=old))


_UNKNOWN = Leaf(K.UNKNOWN)
_LOGIN = ("sasl.", "ssl.", "security.protocol")
_CLIENT = frozenset(number.value for number in ClientNumber) | KAFKA_CREDENTIALS
_SETTINGS = {TRIGGER_INTERVAL: K.TRIGGER_INTERVAL, LOCAL_TIME_ZONE: K.TIME_ZONE}


def _of_property(name: str) -> ChangeKind:
    if name.startswith(_LOGIN) or name in _CLIENT:
        return K.CREDENTIALS
    return K.SINK_OPTION if name == COMPRESSION_TYPE else K.KAFKA_PROPERTY


def _of_setting(name: str) -> ChangeKind:
    return _SETTINGS.get(name, K.SETTING)


_OWNER, _NOTHING = Leaf(), Nothing()
_JOINS = Named("alias", "join", K.JOIN_ADDED, K.JOIN_REMOVED, K.JOIN_ORDER)
_OUTPUT = Named("name", "output column", K.OUTPUT_ADDED, K.OUTPUT_REMOVED, K.OUTPUT_ORDER)
_UNNESTS = Named("alias", "UNNEST", K.UNNEST, K.UNNEST, K.UNNEST)
_DIMENSIONS = Named("name", "table", K.DIMENSION_ADDED, K.DIMENSION_REMOVED)
_QUERY: Mapping[str, FieldRule] = {
    "joins": _JOINS,
    "where": Leaf(K.FILTER),
    "output": _OUTPUT,
    "sink_table": Leaf(K.LABEL),
    "sink": Inner(K.SINK_IDENTITY, "the sink"),
    "unnests": _UNNESTS,
}

FIELDS: Mapping[type[Any], Mapping[str, FieldRule]] = {
    JoinPlan: {
        **_QUERY,
        "name": Leaf(K.NAME),
        "sql": _NOTHING,
        "number": _NOTHING,
        "format_version": _NOTHING,  # follows from the INSERTs
        "probe": Inner(K.STREAM_IDENTITY, "the stream"),
        "dimensions": _DIMENSIONS,
        "settings": Pairs(_of_setting),
        "window": Leaf(K.EVENT_TIME),
        "more_inserts": Listed(K.INSERTS),
        "shared_table": Leaf(K.SHARED_TABLE),
    },
    FurtherInsert: {
        **_QUERY,
        "alias": Leaf(K.LABEL),
        "computed_fields": Leaf(K.COMPUTED_COLUMN),
        "table": Inner(K.STREAM_IDENTITY, "the stream"),
    },
    ProbeSource: {
        "alias": Leaf(K.LABEL),
        "table": Leaf(K.LABEL),
        "source": Inner(),
        "fields": Leaf(K.STREAM_COLUMNS),
        "metadata_fields": Leaf(K.STREAM_COLUMNS),
        "computed_fields": Leaf(K.COMPUTED_COLUMN),
        "watermark": Leaf(K.EVENT_TIME),
        "late_records_path": Leaf(K.LATE_RECORDS),
        "late_store": Leaf(K.LATE_RECORDS),
        "reads": _OWNER,
    },
    StreamTable: {
        "name": Leaf(K.LABEL),
        "reads": _OWNER,
        "fields": Leaf(K.STREAM_COLUMNS),
        "metadata_fields": Leaf(K.STREAM_COLUMNS),
        "value": Leaf(K.STREAM_FORMAT),
        "key": Leaf(K.STREAM_FORMAT),
    },
    KafkaSource: {
        "kafka": Inner(),
        "startup_mode": Leaf(K.STREAM_START),
        "startup_timestamp_ms": Leaf(K.STREAM_START),
        "startup_offsets": Leaf(K.STREAM_START),
        "max_records_per_batch": Leaf(K.BATCH_SIZE),
        "bounded_mode": Leaf(K.STREAM_BOUNDS),
        "bounded_timestamp_ms": Leaf(K.STREAM_BOUNDS),
        "bounded_offsets": Leaf(K.STREAM_BOUNDS),
        "max_bytes_per_batch": Leaf(K.BATCH_SIZE),
        "bounded_records": Leaf(K.STREAM_BOUNDS),
        "backlog_offsets": Leaf(K.STREAM_START),
        "value": Leaf(K.STREAM_FORMAT),
        "key": Leaf(K.STREAM_FORMAT),
        "more_topics": _OWNER,
        "topic_pattern": _OWNER,
        "discovery_ms": Leaf(K.STREAM_OPTION),
        "topic_ids": _OWNER,
        "kind": _NOTHING,  # the class tells it
    },
    KafkaOptions: {
        "bootstrap_servers": _OWNER,
        "topic": _OWNER,
        "properties": Pairs(_of_property),
    },
    DatagenSource: {
        "rows_per_second": _OWNER,
        "number_of_rows": _OWNER,
        "fields": _OWNER,
        "kind": _NOTHING,
    },
    Dimension: {
        "name": _NOTHING,  # they are matched by it
        "source": Inner(K.DIMENSION_SOURCE),
        "fields": Leaf(K.DIMENSION_COLUMNS),
        "primary_key": Leaf(K.DIMENSION_COLUMNS),
        "watermark": Leaf(K.EVENT_TIME),
        "max_staleness_ms": Leaf(K.DIMENSION_OPTION),
        "verify": Leaf(K.DIMENSION_OPTION),
    },
    MysqlCdcSource: {
        "hostname": _OWNER,
        "port": _OWNER,
        "username": Leaf(K.CREDENTIALS),
        "password": Leaf(K.CREDENTIALS),
        "database": _OWNER,
        "table": _OWNER,
        "server_id": Leaf(K.DIMENSION_OPTION),
        "chunk_rows": Leaf(K.DIMENSION_COPY),
        "changelog_partitions": Leaf(K.DIMENSION_COPY),
        "tls": Leaf(K.CREDENTIALS),
        "zone": Leaf(K.DIMENSION_COPY),
        "kind": _NOTHING,
    },
    DeltaTableSource: {
        "path": _OWNER,
        "monitor_interval_ms": Leaf(K.DIMENSION_OPTION),
        "changelog_partitions": Leaf(K.DIMENSION_COPY),
        "store": _OWNER,
        "kind": _NOTHING,
    },
    TopicSource: {
        "kafka": Inner(),
        "value": Leaf(K.DIMENSION_COPY),
        "evidence": Leaf(K.DIMENSION_COPY),
        "deletes_by_null": Leaf(K.DIMENSION_COPY),
        "key": Leaf(K.DIMENSION_COPY),
        "end_offsets": Leaf(K.DIMENSION_COPY),
        "bounded_mode": Leaf(K.DIMENSION_COPY),
        "bounded_timestamp_ms": Leaf(K.DIMENSION_COPY),
        "bounded_offsets": Leaf(K.DIMENSION_COPY),
        "changelog_partitions": Leaf(K.DIMENSION_COPY),
        "metadata": Leaf(K.DIMENSION_COLUMNS),
        "topic_id": _OWNER,
        "history": Leaf(K.DIMENSION_COPY),
        "kind": _NOTHING,
    },
    FileSource: {
        "path": _OWNER,
        "format": _OWNER,
        "options": Leaf(K.DIMENSION_COPY),
        "changelog_partitions": Leaf(K.DIMENSION_COPY),
        "kind": _NOTHING,
    },
    SharedSource: {
        "job_id": _OWNER,
        "table": _OWNER,
        "changelog_partitions": Leaf(K.DIMENSION_COPY),
        "kind": _NOTHING,
    },
    DimensionJoin: {
        "alias": _NOTHING,  # they are matched by it
        "dimension": Leaf(K.JOIN_KEYS),
        "join_type": Leaf(K.JOIN_TYPE),
        "keys": Leaf(K.JOIN_KEYS),
        "condition": Leaf(K.JOIN_CONDITION),
        "time": Leaf(K.EVENT_TIME),
    },
    Unnest: {"alias": _NOTHING, "value": Leaf(K.UNNEST), "join_type": Leaf(K.UNNEST)},
    OutputColumn: {
        "name": _NOTHING,  # they are matched by it
        "expression": ByType(K.PROJECTION, K.OUTPUT_TYPE),
        "nullable": Leaf(K.OUTPUT_NULLABILITY),
    },
    DeltaSink: {
        "path": _OWNER,
        "row_metadata": Leaf(K.SINK_COLUMNS),
        "writer": Leaf(K.SINK_OPTION),
        "merge_key": Leaf(K.SINK_KEY),
        "partition_by": Leaf(K.SINK_COLUMNS),
        "store": _OWNER,
        "kind": _NOTHING,
    },
    KafkaSink: {
        "kafka": Inner(),
        "value": Leaf(K.SINK_FORMAT),
        "key": Leaf(K.SINK_KEY),
        "upsert": Leaf(K.SINK_KEY),
        "transactional_id_prefix": Leaf(K.SINK_GUARANTEE),
        "cluster_id": _OWNER,
        "kind": _NOTHING,
    },
    PrintSink: {"print_identifier": Leaf(K.SINK_OPTION), "row_limit": _OWNER, "kind": _NOTHING},
    BlackholeSink: {"kind": _NOTHING},
}
"""The rule of each field of a plan."""
