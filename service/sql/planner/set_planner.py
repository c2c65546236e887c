"""Statement sets and unions: the stream that several INSERTs read together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import NoReturn

from joins.plan.plan import (
    SET_FORMAT_VERSION,
    TABLES_FORMAT_VERSION,
    DeltaSink,
    Dimension,
    FurtherInsert,
    JoinPlan,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    ProbeSource,
    StreamTable,
    files_of,
)
from joins.plan.stream_topics import MOST_TOPICS, NO_TOPICS, StreamTopic, StreamTopics, partition_of
from joins.plan.types import Constant
from service.sql.catalog.kafka_tables import PATTERN
from service.sql.grammar.syntax import Insert, Select
from service.sql.planner.dimension_planner import same_path
from service.sql.planner.relations import Base
from service.sql.text.script import Script, SqlError

_APART = "a job for each of them: jobs may INSERT INTO the same table."
_ALIKE = f"Give both the same, or submit {_APART}"
_OF_A_TABLE = (
    *("kafka", "more_topics", "startup_offsets", "bounded_offsets"),
    *("value", "key", "changes_by", "kind"),
)
_OPTIONS = {
    "startup_mode": "scan.startup.mode",
    "startup_timestamp_ms": "scan.startup.timestamp-millis",
    "bounded_mode": "scan.bounded.mode",
    "bounded_timestamp_ms": "scan.bounded.timestamp-millis",
    "max_records_per_batch": "scan.max-records-per-batch",
    "max_bytes_per_batch": "scan.max-bytes-per-batch",
}
_OFFSETS = {
    "startup_offsets": "scan.startup.specific-offsets",
    "bounded_offsets": "scan.bounded.specific-offsets",
}
_Offsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class PlannedInsert:
    """An INSERT, or one query of UNION ALL, planned alone; `base` is the table that it reads."""

    node: Insert | Select
    plan: JoinPlan
    base: Base

    @property
    def query(self) -> Select:
        return self.node if isinstance(self.node, Select) else self.node.select

    @property
    def source(self) -> KafkaSource:
        assert isinstance(self.plan.probe.source, KafkaSource), "others have been refused"
        return self.plan.probe.source


def over_one_stream(script: Script, inserts: Sequence[PlannedInsert]) -> list[PlannedInsert]:
    """`inserts` over one stream of all their topics, with its partition numbers."""
    first, *others = inserts
    if all(each.plan.probe.unnamed == first.plan.probe.unnamed for each in others):
        return list(inserts)
    for each in others:
        _check_alike(script, first, each)
    topics = _topics(script, inserts)
    merged = {name: _merged(script, inserts, topics, name) for name in _OFFSETS}
    offsets = {name: tuple(sorted(pairs.items())) for name, pairs in merged.items()}
    return [_in(each, topics, offsets) for each in inserts]


def table_behind(first: ProbeSource, own: ProbeSource) -> StreamTable | None:
    """The table of a further INSERT in the plan; None if it reads the first one's table."""
    if own.unnamed == first.unnamed:
        return None
    assert isinstance(own.source, KafkaSource), "a generated stream is one table"
    formats = (own.source.value, own.source.key, own.source.changes_by)
    return StreamTable(own.table, own.reads, own.fields, own.metadata_fields, *formats)


def _in(
    insert: PlannedInsert, topics: StreamTopics, offsets: Mapping[str, tuple[tuple[int, int], ...]]
) -> PlannedInsert:
    first, *more = topics.names
    source, probe = insert.source, insert.plan.probe
    stream = replace(
        source,
        kafka=replace(source.kafka, topic=first),
        more_topics=tuple(more),
        startup_offsets=offsets["startup_offsets"],
        bounded_offsets=offsets["bounded_offsets"],
    )
    reads = tuple(topics.names.index(name) for name in source.topics.names)
    plan = replace(insert.plan, probe=replace(probe, source=stream, reads=reads))
    return replace(insert, plan=plan)


def _topics(script: Script, inserts: Sequence[PlannedInsert]) -> StreamTopics:
    names = dict.fromkeys(name for each in inserts for name in each.source.topics.names)
    if len(names) > MOST_TOPICS:
        raise script.error(
            inserts[-1].base.at,
            f"the tables of the job have {len(names)} topics, expected at most {MOST_TOPICS}",
            hint="Submit a job for some of them.",
        )
    return NO_TOPICS.with_more(map(StreamTopic, names))


def _check_alike(script: Script, first: PlannedInsert, other: PlannedInsert) -> None:
    """Refuse two tables that differ in more than topics and columns."""
    for each in (first, other):
        table = each.base.table
        if not isinstance(each.plan.probe.source, KafkaSource):
            why = f'"{table.name}" is {table.connector.name}'
            raise _apart(script, first, other, why, f"Submit {_APART}")
        if each.source.history is not None:
            why = f'"{table.name}" has a history'
            raise _apart(script, first, other, why, f"Submit {_APART}")
        if each.source.topic_pattern is not None:
            why = f'"{table.name}" has option "{PATTERN}"'
            hint = f"Name its topics, as in 'topic' = 'a;b', or submit {_APART}"
            raise _apart(script, first, other, why, hint)
    for why in _differences(first.source, other.source):
        raise _apart(script, first, other, why, _ALIKE)


def _differences(one: KafkaSource, other: KafkaSource) -> Iterator[str]:
    yield from _of_clients(one.kafka, other.kafka)
    for item in fields(KafkaSource):
        values = getattr(one, item.name), getattr(other, item.name)
        if item.name not in _OF_A_TABLE and values[0] != values[1]:
            texts = ("not set" if value is None else f'"{value}"' for value in values)
            yield f'option "{_OPTIONS[item.name]}" is {" and ".join(texts)}'


def _of_clients(one: KafkaOptions, other: KafkaOptions) -> Iterator[str]:
    if one.bootstrap_servers != other.bootstrap_servers:
        servers = f'"{one.bootstrap_servers}" and "{other.bootstrap_servers}"'
        yield f'option "properties.bootstrap.servers" is {servers}'
    properties, others = dict(one.properties), dict(other.properties)
    for name in sorted(properties.keys() | others.keys()):
        if properties.get(name) != others.get(name):
            yield f'option "properties.{name}" differs'


def _merged(
    script: Script, inserts: Sequence[PlannedInsert], topics: StreamTopics, name: str
) -> _Offsets:
    """Offsets per partition of each table, by the partition numbers of the stream."""
    merged: dict[int, int] = {}
    known: dict[str, PlannedInsert] = {}
    for each in inserts:
        own = _numbered(each.source.topics, topics, getattr(each.source, name))
        for topic in each.source.topics.names:
            before = known.setdefault(topic, each)
            if _of_topic(topics, topic, own) != _of_topic(topics, topic, {**own, **merged}):
                why = f'option "{_OFFSETS[name]}" differs, and both read topic "{topic}"'
                raise _apart(script, before, each, why, _ALIKE)
        merged |= own
    return merged


def _numbered(
    own: StreamTopics, topics: StreamTopics, offsets: Iterable[tuple[int, int]]
) -> dict[int, int]:
    numbered = (
        (topics.number(own.topic_of(number).name, partition_of(number)), offset)
        for number, offset in offsets
    )
    return {number: offset for number, offset in numbered if number is not None}


def _of_topic(topics: StreamTopics, topic: str, offsets: _Offsets) -> dict[int, int]:
    return {n: offset for n, offset in offsets.items() if topics.topic_of(n).name == topic}


def _apart(
    script: Script, one: PlannedInsert, other: PlannedInsert, why: str, hint: str
) -> SqlError:
    tables = f'table "{one.base.table.name}" and table "{other.base.table.name}"'
    what = f"{tables} cannot be one stream"
    if one.base.table.name == other.base.table.name:
        what = f'table "{one.base.table.name}" is read with different OPTIONS'
    return script.error(other.base.at, f"{what}: {why}", hint=hint)


MOST_INSERTS = 16
_ALONE = "Submit it as a separate job; jobs that read one topic do not disturb each other."


def check_count(script: Script, node: Insert | Select, count: int) -> None:
    if count > MOST_INSERTS:
        raise script.error(
            node.at,
            f"a job of {count} INSERTs, expected {MOST_INSERTS} at most; each query of UNION ALL "
            f"counts as one",
            hint="Submit the others as separate jobs.",
        )


def one_job(script: Script, inserts: Sequence[PlannedInsert]) -> JoinPlan:
    """The plan of all INSERTs together; the first gives the job its name."""
    check_count(script, inserts[-1].node, len(inserts))
    for each in inserts:
        if each.plan.probe.newest_by:
            raise script.error(
                each.node.at,
                f'INSERT INTO "{each.plan.sink_table}" has the newest row of each key by '
                "ROW_NUMBER(), which a statement set of several INSERTs cannot",
                hint=_ALONE,
            )
        if each.plan.needs_event_batches:
            raise script.error(
                each.node.at,
                f'INSERT INTO "{each.plan.sink_table}" joins by event time, has a window or waits '
                "for late rows, which a statement set of several INSERTs cannot",
                hint=_ALONE,
            )
    inserts = over_one_stream(script, inserts)
    _check_topics(script, inserts)
    _check_keys(script, inserts)
    dimensions = _all_dimensions(script, inserts)
    _check_not_joined(script, inserts, dimensions)
    first, *others = (each.plan for each in inserts)
    return replace(
        first,
        dimensions=dimensions,
        format_version=TABLES_FORMAT_VERSION if first.probe.reads else SET_FORMAT_VERSION,
        more_inserts=tuple(_further(first, plan) for plan in others),
    )


def _further(first: JoinPlan, plan: JoinPlan) -> FurtherInsert:
    return FurtherInsert(
        alias=plan.probe.alias,
        computed_fields=plan.probe.computed_fields,
        joins=plan.joins,
        where=plan.where,
        output=plan.output,
        sink_table=plan.sink_table,
        sink=plan.sink,
        unnests=plan.unnests,
        table=table_behind(first.probe, plan.probe),
    )


def _written_at(node: Insert | Select) -> int:
    return node.at if isinstance(node, Select) else node.table.at


def _check_topics(script: Script, inserts: Sequence[PlannedInsert]) -> None:
    """Refuse two INSERTs that write the same record to one topic: headers tell records apart."""
    for number, insert in enumerate(inserts):
        for before in inserts[:number]:
            if _share_a_topic(before.plan, insert.plan):
                _refuse_one_topic(script, before, insert)


def _share_a_topic(one: JoinPlan, other: JoinPlan) -> bool:
    if not isinstance(one.sink, KafkaSink) or not isinstance(other.sink, KafkaSink):
        return False
    places = [(s.kafka.bootstrap_servers, s.kafka.topic) for s in (one.sink, other.sink)]
    return places[0] == places[1] and _share_records(one, other)


def _share_records(one: JoinPlan, other: JoinPlan) -> bool:
    reads = set(one.probe.topic_names), set(other.probe.topic_names)
    return reads[0] == reads[1] or bool(reads[0] & reads[1])


def _check_keys(script: Script, inserts: Sequence[PlannedInsert]) -> None:
    """Refuse two INSERTs of one change into one key: where one has no row, it deletes the other's.

    A constant of the key may tell them apart.
    """
    for number, insert in enumerate(inserts):
        for before in inserts[:number]:
            if _share_a_key(before.plan, insert.plan):
                raise script.error(
                    _written_at(insert.node),
                    f'INSERT INTO "{insert.plan.sink_table}" replaces and deletes rows by key, and '
                    f'so does INSERT INTO "{before.plan.sink_table}", of the same table',
                    hint="Write to a separate table for each INSERT; or add a column to the "
                    "PRIMARY KEY that is another constant in each of them.",
                )


def _share_a_key(one: JoinPlan, other: JoinPlan) -> bool:
    sinks = one.sink, other.sink
    if not isinstance(sinks[0], DeltaSink) or not isinstance(sinks[1], DeltaSink):
        return False
    by_key = bool(sinks[0].merge_key and sinks[1].merge_key)
    if not by_key or not same_path(sinks[0].path, sinks[1].path) or not _share_records(one, other):
        return False
    first, second = ({each.name: each.expression for each in plan.output} for plan in (one, other))
    return not any(
        isinstance(first[name], Constant)
        and isinstance(second.get(name), Constant)
        and first[name] != second[name]
        for name in sinks[0].merge_key
        if name in sinks[1].merge_key
    )


def _refuse_one_topic(script: Script, before: PlannedInsert, insert: PlannedInsert) -> NoReturn:
    sink = insert.plan.sink
    assert isinstance(sink, KafkaSink), "others have no topic"
    if before.node is insert.node:
        raise script.error(
            insert.query.at,
            f'UNION ALL writes to topic "{sink.kafka.topic}"',
            hint="Write to a delta table, or submit a job for each of its queries: after a crash, "
            "repeated records could not be distinguished from rows of the other query.",
        )
    raise script.error(
        _written_at(insert.node),
        f'INSERT INTO "{insert.plan.sink_table}" writes to topic "{sink.kafka.topic}", as INSERT '
        f'INTO "{before.plan.sink_table}" does',
        hint="Use a separate topic for each INSERT: after a crash, repeated records could not be "
        "distinguished from rows of the other INSERT.",
    )


def _all_dimensions(script: Script, inserts: Sequence[PlannedInsert]) -> tuple[Dimension, ...]:
    by_name: dict[str, Dimension] = {}
    for each in inserts:
        for dimension in each.plan.dimensions:
            if by_name.setdefault(dimension.name, dimension) != dimension:
                raise script.error(
                    each.query.at,
                    f'table "{dimension.name}" has other OPTIONS into "{each.plan.sink_table}" '
                    "than in an INSERT before",
                    hint="Give it the same OPTIONS in all INSERTs of the set: the job keeps it "
                    "once.",
                )
    return tuple(by_name.values())


def _check_not_joined(
    script: Script, inserts: Sequence[PlannedInsert], dimensions: Sequence[Dimension]
) -> None:
    sources = [(d.name, d.source) for d in dimensions]
    for each in inserts:
        for name, source in sources:
            if not isinstance(each.plan.sink, DeltaSink):
                continue
            read = files_of(source)
            if read is not None and same_path(each.plan.sink.path, read.path):
                raise script.error(
                    _written_at(each.node),
                    f'table "{name}" is both joined and written by the same job',
                    hint="Write to another path; another job may then join that table.",
                )
