"""The workers' part of a plan: the columns, joins and rows of one INSERT, and its indexes."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from joins.kernels.formats.decoders import RecordColumns, SchemasOf
from joins.kernels.index.segment import IndexSpec
from joins.kernels.probe.arrival_files import (
    OFFSET,
    PARTITION,
    TIME,
    TIMESTAMP,
    VALUE,
    WATERMARK,
    ArrivalColumns,
)
from joins.kernels.probe.change_records import ChangeColumns
from joins.kernels.records.layout import MORE_OF_A_RECORD, OF_THE_PROBE, of_topics
from joins.plan.formats import SOURCE_TIMESTAMP
from joins.plan.plan import (
    Aggregate,
    ComputedField,
    DeltaSink,
    Dimension,
    DimensionJoin,
    Field,
    JoinPlan,
    KafkaSource,
    MetadataField,
    OutputColumn,
    TableStream,
    Unnest,
    WatermarkSpec,
    Windowing,
)
from joins.plan.stream_topics import StreamTopics, index_of
from joins.plan.types import Case, Expression, arrow_type, columns_of, unqualified


def window_input_columns(window: Windowing) -> tuple[OutputColumn, ...]:
    """Columns computed from each joined row before it goes into windows; all may be NULL.

    `key_<n>` for the keys in order, then for aggregate `n` its argument `arg_<n>` and its FILTER
    condition `where_<n>`, if any. An argument is computed only where the condition is true,
    elsewhere it is NULL.
    """
    keys = [OutputColumn(f"key_{at}", key.expression) for at, key in enumerate(window.keys)]
    read = [column for at, each in enumerate(window.aggregates) for column in _read(at, each)]
    return (*keys, *read)


def _read(at: int, aggregate: Aggregate) -> Iterator[OutputColumn]:
    argument, where = aggregate.argument, aggregate.where
    if argument is not None:
        chosen = argument if where is None else Case(((where, argument),), None, argument.type)
        yield OutputColumn(f"arg_{at}", chosen)
    if where is not None:
        yield OutputColumn(f"where_{at}", where)


_OF_INSERT = re.compile(r'INSERT (\d+) INTO "')


@dataclass(frozen=True, slots=True)
class SetMember:
    """One of several INSERTs of a statement set."""

    number: int  # from 1, in the order of the script
    sink_table: str
    # it reports records that cannot be parsed as dead letters; only the first INSERT of a table in
    # a batch does
    tells_unparsed: bool
    # another table of the job shares one of its topics and may parse these records, so each INSERT
    # reports its own
    is_alone: bool = False
    # indexes of the topics whose records count here, as the others count in an earlier INSERT; None
    # for all that it reads
    counts: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        return f'INSERT {self.number} INTO "{self.sink_table}"'

    def reason(self, text: str) -> str:
        return f"{self.name}: {text}"

    def reason_unparsed(self, text: str) -> str | None:
        if self.is_alone:
            return self.reason(text)
        return text if self.tells_unparsed else None

    def is_told(self, reason: str) -> bool:
        return insert_told(reason) in (None, self.number)


def insert_told(reason: str) -> int | None:
    match = _OF_INSERT.match(reason)
    return None if match is None else int(match[1])


def member_of(plan: JoinPlan, insert: int) -> SetMember | None:
    """The INSERT of `plan` at `insert`, from 0; None if it is the only one."""
    if not plan.more_inserts:
        return None
    own, *others = plan.inserts[insert], *plan.inserts[:insert], *plan.inserts[insert + 1 :]
    before, reads = others[:insert], set(own.probe.reads)
    return SetMember(
        number=insert + 1,
        sink_table=own.sink_table,
        tells_unparsed=all(each.probe.unnamed != own.probe.unnamed for each in before),
        is_alone=any(
            each.probe.unnamed != own.probe.unnamed and reads & set(each.probe.reads)
            for each in others
        ),
        counts=_counted(own, before),
    )


def _counted(own: JoinPlan, before: list[JoinPlan]) -> tuple[int, ...] | None:
    if not own.probe.reads:  # as all INSERTs, of all topics
        return () if before else None
    known = {index for each in before for index in each.probe.reads}
    return tuple(index for index in own.probe.reads if index not in known)


COORDINATES = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
"""Address of a record: within a batch the partition is its number, in tables it is the true one."""
DEAD_LETTERS = pa.schema(
    [
        *COORDINATES,
        ("reason", pa.string()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        *MORE_OF_A_RECORD,
    ]
)
"""Records without rows; of `MORE_OF_A_RECORD` only the columns that the job reads are present."""
ROW_METADATA = pa.schema(
    [
        ("_topic", pa.string()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_batch", pa.int64()),
        ("_dimension_versions", pa.string()),
    ]
)
WINDOW_METADATA = pa.schema([ROW_METADATA.field(name) for name in ROW_METADATA.names[3:]])
"""The row metadata of windows, which come from many records."""


@dataclass(frozen=True, slots=True)
class ProbeKernelSpec:
    """The workers' part of a plan; made by `kernel_spec`, picklable, without secrets."""

    alias: str
    topics: StreamTopics  # of records that come without a topic name; partitions are their numbers
    # the physical columns that are read, as for metadata and computed ones
    fields: tuple[Field, ...]
    metadata_fields: tuple[MetadataField, ...]
    computed_fields: tuple[ComputedField, ...]
    joins: tuple[DimensionJoin, ...]
    where: Expression | None
    output: tuple[OutputColumn, ...]
    row_metadata: bool  # append `ROW_METADATA` to the rows, `WINDOW_METADATA` to those of windows
    columns: RecordColumns  # all physical columns of a record, read or not
    watermark: WatermarkSpec | None = None
    carried: tuple[Field, ...] = ()  # the probe's columns that are read after parsing
    # with windows, the columns that `join_arrivals` gives instead of `output`
    window_input: tuple[OutputColumn, ...] | None = None
    window_records: tuple[str, ...] = ()  # the record's columns after `window_input`
    member: SetMember | None = None
    schemas: SchemasOf | None = None
    unnests: tuple[Unnest, ...] = ()
    reads: tuple[int, ...] = ()  # indexes of the topics whose records it joins; empty for all
    # aliases of the joins for whose match a record waits (`join.late-rows.wait`)
    waits_for: tuple[str, ...] = ()
    changes: ChangeColumns | None = None  # of a stream of changes; None for a stream of rows

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.fields)

    @property
    def record_columns(self) -> tuple[str, ...]:
        asked_for = {item.key for item in self.metadata_fields}
        changes = self.changes
        reads_keys = changes is not None and not changes.are_rows
        if self.columns.are_in_key(self.names) or reads_keys:
            asked_for.add("key")
        more = asked_for - {"topic", SOURCE_TIMESTAMP, *OF_THE_PROBE}
        return (*OF_THE_PROBE, *sorted(more))

    @property
    def rows_tell_records(self) -> bool:
        return self.row_metadata and self.window_input is None

    @property
    def output_schema(self) -> pa.Schema:
        metadata = ROW_METADATA if self.window_input is None else WINDOW_METADATA
        return pa.schema([*_schema(self.output), *(metadata if self.row_metadata else ())])

    @property
    def joined_schema(self) -> pa.Schema:
        """The schema of `JoinedBatch.rows`: the sink's, or the windows' input."""
        if self.window_input is None:
            return self.output_schema
        record = self.arrivals.schema
        return pa.schema(
            [*_schema(self.window_input), *(record.field(name) for name in self.window_records)]
        )

    @property
    def arrivals(self) -> ArrivalColumns:
        return ArrivalColumns(self.carried, self.watermark is not None or bool(self.waits_for))

    def reading(self, topics: StreamTopics) -> "ProbeKernelSpec":
        return replace(self, topics=topics)

    @property
    def topic_names(self) -> tuple[str, ...]:
        topics = self.topics.of(self.reads)
        return topics.names if topics.history is None else (*topics.names, topics.history.name)

    def is_read(self, number: int) -> bool:
        return not self.reads or index_of(number) in self.reads

    def own(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return of_topics(records, self.reads) if self.reads else records

    def counted(self, records: pa.RecordBatch) -> pa.RecordBatch:
        if self.member is None or self.member.counts is None:
            return records
        return of_topics(records, self.member.counts)

    def by_itself(self) -> "ProbeKernelSpec":
        if self.member is None:
            return self
        return replace(self, member=replace(self.member, tells_unparsed=True))


def kernel_spec(plan: JoinPlan, insert: int = 0) -> ProbeKernelSpec:
    """The part of `plan` that a worker needs for INSERT number `insert`, from 0.

    It omits probe columns that nothing reads, but keeps those that other INSERTs read from the same
    table: a record that cannot be parsed has no rows in any of their outputs.
    """
    own = plan.inserts[insert]
    read = {
        name
        for each in plan.inserts
        if each.probe.unnamed == own.probe.unnamed
        for relation, name in _plan_columns(each)
        if relation == each.probe.alias
    }
    return _spec_of_one(own, read, member_of(plan, insert))


def _spec_of_one(plan: JoinPlan, read: set[str], member: SetMember | None) -> ProbeKernelSpec:
    probe = plan.probe
    watermark = probe.watermark if _has_event_time(plan) else None
    needed = set(read)
    if watermark is not None:
        needed |= {watermark.rowtime, *(each.name for each in columns_of(watermark.expression))}
    computed: list[ComputedField] = []
    for item in reversed(probe.computed_fields):
        if item.name in needed:
            computed.insert(0, item)
            needed |= {column.name for column in columns_of(item.expression)}
    source = probe.source
    columns, changes = RecordColumns(probe.fields), None
    if isinstance(source, KafkaSource):
        columns = RecordColumns(probe.fields, source.value, source.key)
        if source.changes_by:
            changes = ChangeColumns(columns, source.changes_by)
    if isinstance(source, TableStream):
        changes = ChangeColumns(columns, source.changes_by)
    if probe.newest_by:
        changes = ChangeColumns(columns, probe.newest_by, are_rows=True)
    if changes is not None:
        needed |= set(changes.key)
    needed |= columns.needed
    spec = ProbeKernelSpec(
        alias=probe.alias,
        topics=source.topics if isinstance(source, KafkaSource) else StreamTopics.one(""),
        fields=tuple(item for item in probe.fields if item.name in needed),
        metadata_fields=tuple(item for item in probe.metadata_fields if item.name in needed),
        computed_fields=tuple(computed),
        joins=plan.joins,
        where=plan.where,
        output=plan.output,
        row_metadata=isinstance(plan.sink, DeltaSink) and plan.sink.row_metadata,
        watermark=watermark,
        member=member,
        columns=columns,
        unnests=plan.unnests,
        reads=probe.reads,
        changes=changes,
    )
    if not plan.needs_event_batches:
        return spec
    spec = replace(
        spec,
        carried=tuple(_carried(spec, read)),
        waits_for=tuple(join.alias for join in plan.late_joins),
    )
    if plan.window is None:
        return spec
    inputs = window_input_columns(plan.window)
    return replace(spec, window_input=inputs, window_records=_window_records(plan))


def _has_event_time(plan: JoinPlan) -> bool:
    in_window = plan.window is not None and plan.window.time is not None
    return in_window or any(join.time is not None for join in plan.joins)


def _carried(spec: ProbeKernelSpec, read: Collection[str]) -> Iterator[Field]:
    for item in spec.fields:
        if item.name in read:
            yield item
    for meta in spec.metadata_fields:
        if meta.name in read:
            yield Field(meta.name, meta.type)
    for computed in spec.computed_fields:
        if computed.name in read:
            yield Field(computed.name, computed.expression.type)


def _window_records(plan: JoinPlan) -> tuple[str, ...]:
    """Columns of a record that windows need: address and time, and all if it may be late."""
    if not _has_event_time(plan):
        return (PARTITION, OFFSET)
    names = (PARTITION, OFFSET, TIME, WATERMARK)
    waits, watermark = any(join.time is not None for join in plan.joins), plan.probe.watermark
    in_time = waits and not (watermark is not None and watermark.after_backlog)
    return names if in_time else (*names, TIMESTAMP, VALUE)


def index_spec(plan: JoinPlan, join: DimensionJoin, partitions: int) -> IndexSpec:
    """The index that `join`, of any INSERT of `plan`, looks up.

    Joins of one dimension on the same columns share it. A join in event time, of a dimension with
    event time, looks up all versions of the primary key. `partitions` counts those of the
    dimension's changelog topic.
    """
    dimension = next(item for item in plan.dimensions if item.name == join.dimension)
    key = tuple(pair.dimension_column for pair in join.keys)
    computed = tuple(
        ComputedField(pair.dimension_column, unqualified(pair.computed))
        for pair in join.keys
        if pair.computed is not None
    )
    null_safe = tuple(at for at, pair in enumerate(join.keys) if pair.null_safe)
    needed = set[str]()
    for each in plan.inserts:
        roles = {item.alias for item in each.joins if item.dimension == join.dimension}
        needed |= {name for relation, name in _plan_columns(each) if relation in roles}
    needed |= {*key, *dimension.primary_key}
    needed |= {column.name for item in computed for column in columns_of(item.expression)}
    rowtime = _rowtime(dimension, join)
    if rowtime is not None:
        assert set(dimension.primary_key) <= set(key), "ON has all of a versioned table's key"
        needed.add(rowtime)
        key, null_safe = dimension.primary_key, ()
    fields = tuple(item for item in dimension.fields if item.name in needed)
    if rowtime is not None:
        computed = ()
    return IndexSpec(
        dimension.primary_key, key, fields, partitions, null_safe, rowtime, computed=computed
    )


def _rowtime(dimension: Dimension, join: DimensionJoin) -> str | None:
    if join.time is None or dimension.watermark is None:
        return None
    return dimension.watermark.rowtime


def _schema(columns: Sequence[OutputColumn]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(item.name, arrow_type(item.expression.type), nullable=item.nullable)
            for item in columns
        ]
    )


def _plan_columns(plan: JoinPlan) -> Iterator[tuple[str, str]]:
    """(relation, name) of every column that UNNEST, joins, WHERE and output read."""
    window = plan.window
    output = plan.output if window is None else window_input_columns(window)
    expressions = [column.expression for column in output]
    expressions += [unnest.value for unnest in plan.unnests]
    for join in plan.joins:
        expressions += [pair.probe for pair in join.keys]
        expressions += [join.condition] if join.condition is not None else []
    expressions += [plan.where] if plan.where is not None else []
    for expression in expressions:
        for column in columns_of(expression):
            yield column.relation, column.name
