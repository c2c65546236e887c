"""The rule of each field of a plan: what a difference there is."""

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from joins.plan.connections import KAFKA_CREDENTIALS, ClientNumber
from joins.plan.plan import (
    COMPRESSION_TYPE,
    DatagenSource,
    DeltaSink,
    DeltaTableSource,
    Dimension,
    DimensionJoin,
    DimensionSource,
    FileSource,
    FurtherInsert,
    JoinPlan,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    MysqlCdcSource,
    OutputColumn,
    PolledSource,
    PrintSink,
    ProbeSource,
    SharedSource,
    Sink,
    StreamTable,
    TableStream,
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
    rules = rules_of(type(old))
    for field in dataclasses.fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after:
            rule = rules.get(field.name, _UNKNOWN)
            yield from rule.differences(before, after, replace(place, field=field.name, part=old))


_CONNECTORS = (*typing.get_args(DimensionSource), *typing.get_args(Sink), DatagenSource)


def rules_of(part: type[Any]) -> Mapping[str, FieldRule]:
    """A connector without rules is another source or sink as soon as one of its fields differs."""
    if part in FIELDS or part not in _CONNECTORS:
        return FIELDS.get(part, {})
    return dict.fromkeys((field.name for field in dataclasses.fields(part)), Leaf())


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


def _each(kind: ChangeKind | None, names: str) -> Mapping[str, FieldRule]:
    return dict.fromkeys(names.split(), Leaf(kind))


def _owner(names: str) -> Mapping[str, FieldRule]:
    return _each(None, names)


_NOTHING = Nothing()
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
        "probe": Inner(K.STREAM_IDENTITY, "the stream"),
        "dimensions": _DIMENSIONS,
        "settings": Pairs(_of_setting),
        "more_inserts": Listed(K.INSERTS),
        "name": Leaf(K.NAME),
        "window": Leaf(K.EVENT_TIME),
        "shared_table": Leaf(K.SHARED_TABLE),
        "sql": _NOTHING,
        "number": _NOTHING,
        "format_version": _NOTHING,  # follows from the INSERTs
    },
    FurtherInsert: {
        **_QUERY,
        "table": Inner(K.STREAM_IDENTITY, "the stream"),
        "alias": Leaf(K.LABEL),
        "computed_fields": Leaf(K.COMPUTED_COLUMN),
    },
    ProbeSource: {
        "source": Inner(),
        **_each(K.LABEL, "alias table"),
        **_each(K.STREAM_COLUMNS, "fields metadata_fields"),
        "computed_fields": Leaf(K.COMPUTED_COLUMN),
        "watermark": Leaf(K.EVENT_TIME),
        **_each(K.LATE_RECORDS, "late_records_path late_store"),
        **_owner("reads newest_by"),
    },
    StreamTable: {
        "name": Leaf(K.LABEL),
        **_owner("reads"),
        **_each(K.STREAM_COLUMNS, "fields metadata_fields"),
        **_each(K.STREAM_FORMAT, "value key changes_by"),
    },
    KafkaSource: {
        "kafka": Inner(),
        **_each(
            K.STREAM_START,
            "startup_mode startup_timestamp_ms startup_offsets backlog_offsets history",
        ),
        **_each(K.BATCH_SIZE, "max_records_per_batch max_bytes_per_batch"),
        **_each(
            K.STREAM_BOUNDS, "bounded_mode bounded_timestamp_ms bounded_offsets bounded_records"
        ),
        **_each(K.STREAM_FORMAT, "value key changes_by"),
        **_owner("more_topics topic_pattern topic_ids"),
        "discovery_ms": Leaf(K.STREAM_OPTION),
    },
    TableStream: {"table": Inner(), **_owner("changes_by")},
    KafkaOptions: {"properties": Pairs(_of_property), **_owner("bootstrap_servers topic")},
    Dimension: {
        "source": Inner(K.DIMENSION_SOURCE),
        **_each(K.DIMENSION_COLUMNS, "fields primary_key"),
        "watermark": Leaf(K.EVENT_TIME),
        **_each(K.DIMENSION_OPTION, "max_staleness_ms verify"),
        **_each(K.EVENT_TIME, "late_wait_ms late_correct_ms"),
        "name": _NOTHING,
    },
    MysqlCdcSource: {
        **_owner("hostname port database table"),
        **_each(K.CREDENTIALS, "username password tls"),
        "server_id": Leaf(K.DIMENSION_OPTION),
        **_each(K.DIMENSION_COPY, "chunk_rows changelog_partitions zone metadata"),
    },
    PolledSource: {
        **_owner("database_kind hostname port database table"),
        **_each(K.CREDENTIALS, "username password tls"),
        **_each(K.DIMENSION_OPTION, "refresh_ms column whole_refresh_ms"),
        **_each(K.DIMENSION_COPY, "changelog_partitions zone"),
    },
    DeltaTableSource: {
        **_owner("path store"),
        "monitor_interval_ms": Leaf(K.DIMENSION_OPTION),
        "changelog_partitions": Leaf(K.DIMENSION_COPY),
    },
    TopicSource: {
        "kafka": Inner(),
        **_each(
            K.DIMENSION_COPY,
            "value evidence deletes_by_null key end_offsets bounded_mode "
            "bounded_timestamp_ms bounded_offsets changelog_partitions history",
        ),
        **_each(K.DIMENSION_COLUMNS, "metadata computed"),
        **_owner("topic_id"),
    },
    FileSource: {
        **_owner("path format"),
        **_each(K.DIMENSION_COPY, "options changelog_partitions"),
    },
    SharedSource: {**_owner("job_id table"), "changelog_partitions": Leaf(K.DIMENSION_COPY)},
    DimensionJoin: {
        **_each(K.JOIN_KEYS, "dimension keys"),
        "join_type": Leaf(K.JOIN_TYPE),
        "condition": Leaf(K.JOIN_CONDITION),
        "time": Leaf(K.EVENT_TIME),
        "alias": _NOTHING,
    },
    Unnest: {**_each(K.UNNEST, "value join_type"), "alias": _NOTHING},
    OutputColumn: {
        "expression": ByType(K.PROJECTION, K.OUTPUT_TYPE),
        "nullable": Leaf(K.OUTPUT_NULLABILITY),
        "name": _NOTHING,
    },
    DeltaSink: {
        **_owner("path store"),
        **_each(K.SINK_COLUMNS, "row_metadata partition_by"),
        "writer": Leaf(K.SINK_OPTION),
        "merge_key": Leaf(K.SINK_KEY),
    },
    KafkaSink: {
        "kafka": Inner(),
        "value": Leaf(K.SINK_FORMAT),
        **_each(K.SINK_KEY, "key upsert"),
        "transactional_id_prefix": Leaf(K.SINK_GUARANTEE),
        **_owner("cluster_id"),
    },
    PrintSink: {"print_identifier": Leaf(K.SINK_OPTION), **_owner("row_limit")},
}
"""The rule of each field of a plan; the class of a part tells its `kind`."""
