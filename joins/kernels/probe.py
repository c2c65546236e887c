"""One micro-batch of the probe, a pure function: records in, joined rows and dead letters out.

Steps: parse the needed fields, metadata and computed columns (`parse_records`), then for each
dimension in the order of the statement keys, lookup and the rest of ON, which belongs to the match,
then WHERE, then the projection. Where records may wait between the two, they are arrivals
(`joins.kernels.arrivals`), which `join_arrivals` goes on with.

Rows come in the order of the records, and for one record in the order of the matches' primary keys,
first dimension first. So a replay gives the same rows in the same order, whatever became of the
index's segments.

A record is either answered or dead: if it cannot be parsed, or an expression
fails in one of its rows, or a NOT NULL column of the sink would be NULL, it is one dead letter with
the first reason and has no rows.

The INSERTs of a statement set answer each for themselves. All of them parse the same columns, so
that a record which cannot be parsed is dead for all; of what fails behind that, the reason names
the INSERT.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.expressions import Column, Expression, columns_of
from joins.kernels.arrivals import (
    OFFSET,
    PARTITION,
    RECORD,
    TIME,
    TIMESTAMP,
    VALUE,
    WATERMARK,
    ArrivalColumns,
)
from joins.kernels.casts import Mask, mask_of
from joins.kernels.evaluate import Evaluated, Scope, evaluate_rows
from joins.kernels.index import DimensionIndex, IndexSpec
from joins.kernels.json_rows import parse
from joins.kernels.nested import missing_parts
from joins.kernels.rowtime import millis
from joins.kernels.segment import taken
from joins.kernels.window_inputs import window_input_columns
from joins.plan import (
    ComputedField,
    DeltaSink,
    Dimension,
    DimensionJoin,
    Field,
    JoinPlan,
    JoinType,
    KafkaSource,
    KeyPair,
    MetadataField,
    OutputColumn,
    WatermarkSpec,
)
from joins.types import TypeName, arrow_type

Rows = npt.NDArray[np.int64]

_NO_TIME = pa.scalar(-(2**63), pa.int64())
COORDINATES = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
DEAD_LETTERS = pa.schema(
    [
        *COORDINATES,
        ("reason", pa.string()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
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
class SetMember:
    """An INSERT of a statement set of several.

    Attributes:
        number: from 1, in the order of the script.
        tells_unparsed: a record that cannot be parsed is a dead letter here, too; of a batch only
            the first INSERT tells them.
    """

    number: int
    sink_table: str
    tells_unparsed: bool

    def reason(self, text: str) -> str:
        """Why a record has no rows here, for a dead letter."""
        return f'INSERT {self.number} INTO "{self.sink_table}": {text}'

    def is_told(self, reason: str) -> bool:
        """Whether a letter with this reason is of this INSERT, or of all of them."""
        return insert_told(reason) in (None, self.number)


_OF_INSERT = re.compile(r'INSERT (\d+) INTO "')


def insert_told(reason: str) -> int | None:
    """The INSERT, from 1, that the reason of a dead letter names; None if it is dead for all."""
    found = _OF_INSERT.match(reason)
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class ProbeKernelSpec:
    """What the workers need of a plan; made by `kernel_spec`, picklable, without secrets.

    Attributes:
        topic: of records that come without one.
        fields: the physical columns that are needed, likewise the metadata and computed ones.
        row_metadata: append `ROW_METADATA` to the rows, `WINDOW_METADATA` to those of windows.
        watermark: of a plan with event time.
        carried: the probe's columns that are read behind the parsing.
        window_input: of a plan with windows, what `join_arrivals` gives instead of `output`.
        window_records: the columns of the record behind `window_input`.
        member: of a statement set of several INSERTs, which one it is.
    """

    alias: str
    topic: str
    fields: tuple[Field, ...]
    metadata_fields: tuple[MetadataField, ...]
    computed_fields: tuple[ComputedField, ...]
    joins: tuple[DimensionJoin, ...]
    where: Expression | None
    output: tuple[OutputColumn, ...]
    row_metadata: bool
    watermark: WatermarkSpec | None = None
    carried: tuple[Field, ...] = ()
    window_input: tuple[OutputColumn, ...] | None = None
    window_records: tuple[str, ...] = ()
    member: SetMember | None = None

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the sink's rows."""
        metadata = ROW_METADATA if self.window_input is None else WINDOW_METADATA
        return pa.schema([*_schema(self.output), *(metadata if self.row_metadata else ())])

    @property
    def joined_schema(self) -> pa.Schema:
        """The schema of `JoinedBatch.rows`: the sink's, or that of the windows' input."""
        if self.window_input is None:
            return self.output_schema
        record = self.arrivals.schema
        return pa.schema(
            [*_schema(self.window_input), *(record.field(name) for name in self.window_records)]
        )

    @property
    def arrivals(self) -> ArrivalColumns:
        """The columns of its arrivals."""
        return ArrivalColumns(self.carried, self.watermark is not None)

    def by_itself(self) -> "ProbeKernelSpec":
        """For records that only this INSERT is to answer: it tells all that have no rows."""
        if self.member is None:
            return self
        return replace(self, member=replace(self.member, tells_unparsed=True))


@dataclass(frozen=True, slots=True)
class BatchContext:
    """What a micro-batch has pinned.

    Attributes:
        versions: (dimension name, version) in the order of the plan.
    """

    proctime_ms: int
    batch_id: int
    versions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class JoinedBatch:
    """The answer to a micro-batch, or to a part of it.

    Attributes:
        rows: the sink's columns, with `ROW_METADATA` if the spec says so; of the join below a
            window the window's input.
        coordinates: `COORDINATES` of the record that each row comes from; NULL for rows of windows.
        dead_letters: `DEAD_LETTERS`, in the order of the records.
        matched: living records with a match in every dimension, before WHERE.
        unmatched: the other living records.
        kinds: Flink's RowKind of each row (`row_kinds`), None where all are `+I`.
        watermarks: under which each row left, in milliseconds; None where there is none.
    """

    rows: pa.RecordBatch
    coordinates: pa.RecordBatch
    dead_letters: pa.RecordBatch
    matched: int
    unmatched: int
    kinds: pa.Array | None = None
    watermarks: pa.Array | None = None


def kernel_spec(plan: JoinPlan, insert: int = 0) -> ProbeKernelSpec:
    """The part of `plan` that a worker needs for one of its INSERTs, which count from 0.

    It is without the probe columns that nothing reads, but with those that other INSERTs read: a
    record that cannot be parsed has rows in no output.
    """
    read = {
        name
        for each in plan.inserts
        for relation, name in _plan_columns(each)
        if relation == each.probe.alias
    }
    member = None
    if plan.more_inserts:
        member = SetMember(insert + 1, plan.inserts[insert].sink_table, insert == 0)
    return _spec_of_one(plan.inserts[insert], read, member)


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
    spec = ProbeKernelSpec(
        alias=probe.alias,
        topic=source.kafka.topic if isinstance(source, KafkaSource) else "",
        fields=tuple(item for item in probe.fields if item.name in needed),
        metadata_fields=tuple(item for item in probe.metadata_fields if item.name in needed),
        computed_fields=tuple(computed),
        joins=plan.joins,
        where=plan.where,
        output=plan.output,
        row_metadata=isinstance(plan.sink, DeltaSink) and plan.sink.row_metadata,
        watermark=watermark,
        member=member,
    )
    if not plan.needs_event_batches:
        return spec
    spec = replace(spec, carried=tuple(_carried(spec, read)))
    if plan.window is None:
        return spec
    columns = window_input_columns(plan.window)
    return replace(spec, window_input=columns, window_records=_window_records(plan))


def _has_event_time(plan: JoinPlan) -> bool:
    in_window = plan.window is not None and plan.window.time is not None
    return in_window or any(join.time is not None for join in plan.joins)


def _carried(spec: ProbeKernelSpec, read: Collection[str]) -> Iterator[Field]:
    """The columns that are `read` behind the parsing, of all that a record is parsed into."""
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
    """What the windows need of a record: where and when it came, and all of it if it may be late.

    What a temporal join in event time has released is not behind the watermark; what it lets
    through in processing time may be behind the clock.
    """
    if not _has_event_time(plan):
        return (PARTITION, OFFSET)
    names = (PARTITION, OFFSET, TIME, WATERMARK)
    waits, watermark = any(join.time is not None for join in plan.joins), plan.probe.watermark
    in_time = waits and not (watermark is not None and watermark.after_backlog)
    return names if in_time else (*names, TIMESTAMP, VALUE)


def index_spec(plan: JoinPlan, join: DimensionJoin, partitions: int) -> IndexSpec:
    """The index that `join`, of any INSERT of `plan`, looks up.

    Joins of one dimension on the same columns share it.

    A join in event time, of a dimension with event time, looks up all versions of the primary key.
    `partitions` is the number of partitions of the dimension's changelog topic.
    """
    dimension = next(item for item in plan.dimensions if item.name == join.dimension)
    key = tuple(pair.dimension_column for pair in join.keys)
    null_safe = tuple(at for at, pair in enumerate(join.keys) if pair.null_safe)
    needed = {name for each in plan.inserts for name in _columns_of_roles(each, join.dimension)}
    needed |= {*key, *dimension.primary_key}
    rowtime = _rowtime(dimension, join)
    if rowtime is not None:
        assert set(dimension.primary_key) <= set(key), "ON has all of a versioned table's key"
        needed.add(rowtime)
        key, null_safe = dimension.primary_key, ()
    fields = tuple(item for item in dimension.fields if item.name in needed)
    return IndexSpec(dimension.primary_key, key, fields, partitions, null_safe, rowtime)


def _columns_of_roles(plan: JoinPlan, dimension: str) -> set[str]:
    """What a plan of one INSERT reads of a dimension."""
    roles = {item.alias for item in plan.joins if item.dimension == dimension}
    return {name for relation, name in _plan_columns(plan) if relation in roles}


def _rowtime(dimension: Dimension, join: DimensionJoin) -> str | None:
    """Which column tells the versions apart that `join` sees; None if it sees the newest rows."""
    if join.time is None or dimension.watermark is None:
        return None
    return dimension.watermark.rowtime


def join_batch(
    spec: ProbeKernelSpec,
    records: pa.RecordBatch,
    indexes: Mapping[str, DimensionIndex],
    context: BatchContext,
) -> JoinedBatch:
    """Join `records` with `indexes`, which are given by the alias of their join.

    `records` is `[value: binary, topic: string?, partition: int32, offset: int64, timestamp?]`, the
    timestamp an Arrow timestamp or int64 milliseconds.
    """
    return _answer(parse_records(spec, records, context), indexes)


def parse_records(
    spec: ProbeKernelSpec, records: pa.RecordBatch, context: BatchContext
) -> "ParsedRecords":
    """The first half of `join_batch`: what each record of a batch says, and which are dead."""
    parsed = ParsedRecords(spec, _with_topic(records, spec.topic), context)
    parsed.read()
    return parsed


def join_arrivals(
    spec: ProbeKernelSpec,
    arrivals: pa.RecordBatch,
    indexes: Mapping[str, DimensionIndex],
    context: BatchContext,
) -> JoinedBatch:
    """The other half of `join_batch`: join `arrivals`, of `spec.arrivals`, in their order."""
    return _answer(ParsedRecords.of_arrivals(spec, arrivals, context), indexes)


def _answer(parsed: "ParsedRecords", indexes: Mapping[str, DimensionIndex]) -> JoinedBatch:
    spec = parsed.spec
    joined = _Joined(parsed, parsed.living(), {})
    for join in spec.joins:
        joined = _join(joined, join, indexes[join.alias])
    complete = np.ones(len(joined.probe_rows), dtype=np.bool_)
    for _, rows in joined.dimensions.values():
        complete &= rows >= 0
    matched = joined.probe_rows[complete]
    if spec.where is not None:
        joined = joined.kept(joined.true(spec.where))
    projection = spec.output if spec.window_input is None else spec.window_input
    columns = [joined.output(column) for column in projection]
    return parsed.answer(joined.probe_rows, columns, matched)


def lookup_keys(
    spec: ProbeKernelSpec,
    records: pa.RecordBatch,
    indexes: Mapping[str, DimensionIndex],
    context: BatchContext,
    alias: str,
) -> list[pa.Array]:
    """The keys that `join_batch` may look up in the join `alias`: all of these, perhaps more.

    `indexes` has at least `joins_before` of the join. What fails here gives NULL; which records are
    dead, and why, is for `join_batch` to say.
    """
    parsed = parse_records(spec, records, context)
    joined = _Joined(parsed, parsed.living(), {})
    for join in joins_before(spec.joins, alias):
        widest = replace(join, join_type=JoinType.INNER, condition=None)
        joined = _join(joined, widest, indexes[join.alias])
    (wanted,) = (join for join in spec.joins if join.alias == alias)
    return [joined.evaluate(pair.probe).values for pair in wanted.keys]


def joins_before(joins: Sequence[DimensionJoin], alias: str) -> tuple[DimensionJoin, ...]:
    """The joins whose columns the key of `alias` reads, directly or through their own keys."""
    needed, found = {alias}, []
    for join in reversed(joins):
        if join.alias in needed:
            needed |= {column.relation for pair in join.keys for column in columns_of(pair.probe)}
            found.append(join)
    return tuple(join for join in reversed(found) if join.alias != alias)


@dataclass(slots=True)
class ParsedRecords:
    """The records of a batch and what they say.

    Attributes:
        records: as they came.
        dead: the first reason of each dead one, by its input row.
        columns: the probe's columns, by name; a value for each parsed row.
        input_rows: the input row of each parsed row.
        arrivals: what the records were, if they have been parsed in another stage.
        unparsed: the input rows that were dead when all was parsed.
    """

    spec: ProbeKernelSpec
    records: pa.RecordBatch
    context: BatchContext
    dead: dict[int, str] = field(default_factory=dict)
    columns: dict[str, pa.Array] = field(default_factory=dict)
    input_rows: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    arrivals: pa.RecordBatch | None = None
    unparsed: frozenset[int] = frozenset()

    @classmethod
    def of_arrivals(
        cls, spec: ProbeKernelSpec, arrivals: pa.RecordBatch, context: BatchContext
    ) -> "ParsedRecords":
        """Records that were parsed before; all of them live."""
        names = {PARTITION: "partition", OFFSET: "offset", TIMESTAMP: "timestamp", VALUE: "value"}
        own = {names[name]: arrivals.column(name) for name in RECORD.names}
        records = _with_topic(pa.RecordBatch.from_pydict(own), spec.topic)
        columns = spec.arrivals.carried_of(arrivals)
        rows = np.arange(arrivals.num_rows, dtype=np.int64)
        return cls(spec, records, context, {}, columns, rows, arrivals)

    def read(self) -> None:
        """Fill `columns` for the records that can be parsed, which `input_rows` names."""
        parsed = parse(self.records.column("value"), _json_schema(self.spec.fields))
        self.dead = {bad.row: bad.reason for bad in parsed.bad}
        self.input_rows = parsed.row_index.to_numpy()
        for item, values in zip(self.spec.fields, parsed.batch.columns, strict=True):
            self.columns[item.name] = values
            if not item.nullable and values.null_count:
                missing = np.flatnonzero(mask_of(values.is_null()))
                self.kill(missing, f'field "{item.name}" is missing or null and NOT NULL')
            for path, rows in missing_parts(values, item.type, item.name):
                reason = f'field "{path}" is missing or null and NOT NULL'
                self.kill(np.flatnonzero(rows), reason)
        for meta in self.spec.metadata_fields:
            values = _metadata(self.records, meta.key).take(parsed.row_index)
            self.columns[meta.name] = values.cast(arrow_type(meta.type))
        for computed in self.spec.computed_fields:
            scope = self.scope(lambda column: self.columns[column.name], len(self.input_rows))
            result = evaluate_rows(computed.expression, scope)
            self.columns[computed.name] = result.values
            for row, reason in result.errors.items():
                self.kill([row], f'column "{computed.name}": {reason}')
        self.unparsed = frozenset(self.dead)

    def scope(self, resolve: Callable[[Column], pa.Array], num_rows: int) -> Scope:
        """What an expression sees of `num_rows` rows in this batch."""
        return Scope(resolve, num_rows, self.context.proctime_ms)

    def kill(self, rows: Sequence[int] | Rows, reason: str) -> None:
        """Make the records of the parsed `rows` dead, unless they are."""
        for row in rows:
            self.dead.setdefault(int(self.input_rows[row]), reason)

    def living(self) -> Rows:
        """The parsed rows that are not dead."""
        return np.flatnonzero(self._alive())

    def _alive(self) -> Mask:
        dead = np.zeros(self.records.num_rows, dtype=np.bool_)
        dead[list(self.dead)] = True
        return ~dead[self.input_rows]

    def as_arrivals(self, rows: Rows, *event_time: pa.Array) -> pa.RecordBatch:
        """The parsed `rows` for later stages, with `EVENT_TIME` in a job that has it."""
        origin = self.input_rows[rows]
        records = _taken(self.records.select(["partition", "offset", "value"]), origin)
        timestamps = _timestamps(self.records)
        if len(origin) != len(timestamps) or not _is_identity(origin):
            timestamps = timestamps.take(pa.array(origin))
        own = [records.column(0), records.column(1), timestamps, records.column(2), *event_time]
        whole = len(rows) == len(self.input_rows) and _is_identity(rows)
        columns = [self.columns[item.name] for item in self.spec.carried]
        carried = columns if whole else taken(columns, rows)
        schema = self.spec.arrivals.schema
        cast = [
            column.cast(item.type) for column, item in zip([*own, *carried], schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(cast, schema=schema)

    def answer(self, probe_rows: Rows, columns: list[pa.Array], matched: Rows) -> JoinedBatch:
        """The batch as joined so far; `matched` are the parsed rows with all dimensions."""
        alive = self._alive()
        with_match = np.zeros(len(alive), dtype=np.bool_)
        with_match[matched] = True
        keep = alive[probe_rows]
        origin = self.input_rows[probe_rows[keep]]
        if not keep.all():
            columns = [column.filter(pa.array(keep)) for column in columns]
        coordinates = _taken(self.records.select(COORDINATES.names), origin).cast(COORDINATES)
        if self.spec.window_input is not None:
            columns = [*columns, *self._record_columns(probe_rows[keep])]
        elif self.spec.row_metadata:
            columns = [*columns, *coordinates.columns, *pin_columns(self.context, len(origin))]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.spec.joined_schema)
        count = int((with_match & alive).sum())
        return JoinedBatch(rows, coordinates, self.dead_letters(), count, int(alive.sum()) - count)

    def _record_columns(self, rows: Rows) -> list[pa.Array]:
        assert self.arrivals is not None, "windows read arrivals"
        found = _taken(self.arrivals.select(list(self.spec.window_records)), rows)
        return list(found.columns)

    def dead_letters(self) -> pa.RecordBatch:
        """`DEAD_LETTERS`, in the order of the records."""
        reasons_by_row = dict(sorted(self._told()))
        rows = list(reasons_by_row)
        letters = _taken(self.records, np.array(rows, dtype=np.int64))
        reasons = pa.array(list(reasons_by_row.values()), pa.string())
        columns = [letters.column(name) for name in COORDINATES.names]
        columns = [*columns, reasons, letters.column("value"), _timestamps(letters)]
        types = [item.type for item in DEAD_LETTERS]
        cast = [column.cast(kind) for column, kind in zip(columns, types, strict=True)]
        return pa.RecordBatch.from_arrays(cast, schema=DEAD_LETTERS)

    def _told(self) -> Iterator[tuple[int, str]]:
        """The dead records that are told here, and why."""
        member = self.spec.member
        for row, reason in self.dead.items():
            if member is None:
                yield row, reason
            elif row not in self.unparsed:
                yield row, member.reason(reason)
            elif member.tells_unparsed:
                yield row, reason


def pin_columns(context: BatchContext, num_rows: int) -> list[pa.Array]:
    """`WINDOW_METADATA`, which is the same for all rows of a batch."""
    versions = ",".join(f"{name}={version}" for name, version in context.versions)
    return [
        pa.repeat(pa.scalar(context.batch_id, pa.int64()), num_rows),
        pa.repeat(pa.scalar(versions, pa.string()), num_rows),
    ]


@dataclass(slots=True)
class _Joined:
    """Rows of the join so far.

    Attributes:
        probe_rows: the parsed row of each; ascending.
        dimensions: by alias, the index and its row for each row, -1 where LEFT has padded.
    """

    batch: ParsedRecords
    probe_rows: Rows
    dimensions: dict[str, tuple[DimensionIndex, Rows]]
    resolved: dict[tuple[str, str], pa.Array] = field(default_factory=dict)

    def resolve(self, column: Column) -> pa.Array:
        key = (column.relation, column.name)
        if key not in self.resolved:
            if column.relation == self.batch.spec.alias:
                whole = self.batch.columns[column.name]
                same = len(whole) == len(self.probe_rows) and _is_identity(self.probe_rows)
                self.resolved[key] = whole if same else whole.take(pa.array(self.probe_rows))
            else:
                index, rows = self.dimensions[column.relation]
                self.resolved[key] = index.take(rows, [column.name]).column(0)
        return self.resolved[key]

    def evaluate(self, expression: Expression) -> Evaluated:
        """The values of `expression`; records of failed rows are dead."""
        result = evaluate_rows(expression, self.batch.scope(self.resolve, len(self.probe_rows)))
        for row, reason in result.errors.items():
            self.batch.kill([int(self.probe_rows[row])], reason)
        return result

    def true(self, condition: Expression) -> Mask:
        return mask_of(self.evaluate(condition).values)

    def picked(self, at: Rows) -> "_Joined":
        """The rows at the positions `at`."""
        picked = {alias: (index, rows[at]) for alias, (index, rows) in self.dimensions.items()}
        return _Joined(self.batch, self.probe_rows[at], picked)

    def kept(self, mask: Mask) -> "_Joined":
        return self if mask.all() else self.picked(np.flatnonzero(mask))

    def with_dimension(self, alias: str, index: DimensionIndex, rows: Rows) -> "_Joined":
        return replace(self, dimensions={**self.dimensions, alias: (index, rows)}, resolved={})

    def output(self, column: OutputColumn) -> pa.Array:
        values = self.evaluate(column.expression).values
        if not column.nullable and values.null_count:
            nulls = np.flatnonzero(mask_of(values.is_null()))
            reason = f'column "{column.name}" of the sink is NOT NULL and would be NULL'
            self.batch.kill(self.probe_rows[nulls], reason)
        for path, rows in missing_parts(values, column.expression.type, column.name):
            reason = f'column "{path}" of the sink is NOT NULL and would be NULL'
            self.batch.kill(self.probe_rows[rows], reason)
        return values


def _join(joined: _Joined, join: DimensionJoin, index: DimensionIndex) -> _Joined:
    keys = [joined.evaluate(pair.probe).values for pair in join.keys]
    at, rows = _matches(joined, join, index, keys)
    if join.condition is not None and len(at):
        candidates = joined.picked(at).with_dimension(join.alias, index, rows)
        true = candidates.true(join.condition)
        at, rows = at[true], rows[true]
    if join.join_type is JoinType.LEFT:
        at, rows = _padded(at, rows, len(joined.probe_rows))
    return joined.picked(at).with_dimension(join.alias, index, rows)


def _matches(
    joined: _Joined, join: DimensionJoin, index: DimensionIndex, keys: Sequence[pa.Array]
) -> tuple[Rows, Rows]:
    """What `lookup` finds, without the rows whose NULL comes from a cast of a null-safe pair."""
    if index.spec.versioned is not None:
        return _versions(joined, join, index, keys)
    possible = _possible(joined, join, keys)
    if possible.all():
        return index.lookup(keys)
    rows = np.flatnonzero(possible)
    at, found = index.lookup(taken(keys, rows))
    return rows[at], found


def _possible(joined: _Joined, join: DimensionJoin, keys: Sequence[pa.Array]) -> Mask:
    possible = np.ones(len(joined.probe_rows), dtype=np.bool_)
    for pair, key in zip(join.keys, keys, strict=True):
        if pair.uncast is not None and key.null_count:
            value = joined.evaluate(pair.uncast).values
            possible &= mask_of(key.is_valid()) | mask_of(value.is_null())
    return possible


def _versions(
    joined: _Joined, join: DimensionJoin, index: DimensionIndex, keys: Sequence[pa.Array]
) -> tuple[Rows, Rows]:
    """The versions that were valid at the rows' times, if the rest of the equalities is true.

    What a version has in other columns than the primary key does not make an older one valid.
    """
    pairs = list(zip(join.keys, keys, strict=True))
    by_column = {pair.dimension_column: (pair, key) for pair, key in reversed(pairs)}
    looked_up = [by_column[name] for name in index.spec.join_key]
    at, rows = index.lookup_at([key for _, key in looked_up], _times(joined, join))
    true = _possible(joined, join, keys)[at]
    for pair, key in pairs:
        if not any(pair is other for other, _ in looked_up):
            true &= _equal(index, rows, pair, key.take(pa.array(at)))
    return at[true], rows[true]


def _equal(index: DimensionIndex, rows: Rows, pair: KeyPair, wanted: pa.Array) -> Mask:
    """Where the column of `pair` equals what is wanted, row by row."""
    column = index.take(rows, [pair.dimension_column]).column(0)
    equal = mask_of(pc.equal(column, wanted.cast(column.type)))
    if pair.null_safe:
        equal |= mask_of(column.is_null()) & mask_of(wanted.is_null())
    return equal


def _times(joined: _Joined, join: DimensionJoin) -> Rows:
    """Epoch milliseconds of the rows so far; where there is no time, before all versions."""
    assert join.time is not None, "versions are looked up in event time only"
    arrivals = joined.batch.arrivals
    if arrivals is not None:
        return np.asarray(arrivals.column(TIME).to_numpy()[joined.probe_rows], dtype=np.int64)
    times = joined.resolve(join.time)
    return millis(times.fill_null(_NO_TIME.cast(times.type)) if times.null_count else times)


def _padded(at: Rows, rows: Rows, count: int) -> tuple[Rows, Rows]:
    """With a row -1 for each position that has no match, in order."""
    has_match = np.zeros(count, dtype=np.bool_)
    has_match[at] = True
    lonely = np.flatnonzero(~has_match)
    if len(lonely) == 0:
        return at, rows
    everything = np.concatenate([at, lonely])
    order = np.argsort(everything, kind="stable")
    padded = np.concatenate([rows, np.full(len(lonely), -1, dtype=np.int64)])
    return everything[order], padded[order]


def _schema(columns: Sequence[OutputColumn]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(item.name, arrow_type(item.expression.type), nullable=item.nullable)
            for item in columns
        ]
    )


def _json_schema(fields: Sequence[Field]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(
                item.name,
                arrow_type(item.type),
                metadata={b"sql": b"TIME"} if item.type.name is TypeName.TIME else None,
            )
            for item in fields
        ]
    )


def _metadata(records: pa.RecordBatch, key: str) -> pa.Array:
    values = records.column(key)
    if key == "timestamp" and pa.types.is_integer(values.type):
        return values.cast(pa.timestamp("ms")).cast(pa.timestamp("us", tz="UTC"))
    return values


def _timestamps(records: pa.RecordBatch) -> pa.Array:
    """When each record was written, NULL where the records do not tell."""
    if "timestamp" in records.schema.names:
        return _metadata(records, "timestamp")
    return pa.nulls(records.num_rows, DEAD_LETTERS.field("timestamp").type)


def _with_topic(records: pa.RecordBatch, topic: str) -> pa.RecordBatch:
    if "topic" in records.schema.names:
        return records
    topics = pa.repeat(pa.scalar(topic, pa.string()), records.num_rows)
    return records.append_column("topic", topics)


def _is_identity(rows: Rows) -> bool:
    return len(rows) == 0 or bool((rows == np.arange(len(rows))).all())


def _taken(batch: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
    if len(rows) == batch.num_rows and _is_identity(rows):
        return batch
    return batch.take(pa.array(rows))


def _plan_columns(plan: JoinPlan) -> Iterator[tuple[str, str]]:
    """(relation, name) of every column that the joins, WHERE and the output read.

    The output of windows reads none: their keys and the arguments of their aggregates do.
    """
    window = plan.window
    output = plan.output if window is None else window_input_columns(window)
    expressions = [column.expression for column in output]
    for join in plan.joins:
        expressions += [pair.probe for pair in join.keys]
        expressions += [join.condition] if join.condition is not None else []
    expressions += [plan.where] if plan.where is not None else []
    for expression in expressions:
        for column in columns_of(expression):
            yield column.relation, column.name
