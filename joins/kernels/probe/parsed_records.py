"""The parsed records of a batch: their columns, the dead records, and the rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from joins.kernels.expressions.nested import missing_parts
from joins.kernels.formats.parsed import ParsedRows
from joins.kernels.index.segment import taken
from joins.kernels.probe.arrival_files import OFFSET, PARTITION, RECORD, TIMESTAMP, VALUE
from joins.kernels.probe.spec import COORDINATES, DEAD_LETTERS, ProbeKernelSpec
from joins.kernels.records.layout import MORE_OF_A_RECORD, ROW, topic_names, true_partitions
from joins.plan.formats import SOURCE_TIMESTAMP
from joins.plan.stream_topics import StreamTopics
from joins.plan.types import Column, arrow_type

Rows = npt.NDArray[np.int64]
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class BatchContext:
    """The pinned context of a micro-batch; `versions` are in the order of the plan."""

    proctime_ms: int
    batch_id: int
    versions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class JoinedBatch:
    """The answer to a micro-batch, or to a part of it."""

    # the sink's columns, with `ROW_METADATA` if the spec says so; below a window, the window's
    # input
    rows: pa.RecordBatch
    # `COORDINATES` of the record that each row comes from; NULL for rows of windows
    coordinates: pa.RecordBatch
    dead_letters: pa.RecordBatch  # `DEAD_LETTERS`, in the order of the records
    matched: int  # living records with a match in every dimension, before WHERE
    unmatched: int  # the other living records
    # Flink's RowKind of each row (`row_kinds`), None where all are `+I`
    kinds: pa.Array | None = None
    # under which each row left, in milliseconds; None where there is none
    watermarks: pa.Array | None = None


def parse_records(
    spec: ProbeKernelSpec, records: pa.RecordBatch, context: BatchContext
) -> "ParsedRecords":
    """The first half of `join_batch`: parses records of the topics that the INSERT reads."""
    parsed = ParsedRecords(spec, _with_topic(spec.own(records), spec.topics), context)
    parsed.read()
    return parsed


@dataclass(slots=True)
class ParsedRecords:
    """The records of a batch and their parsed columns."""

    spec: ProbeKernelSpec
    records: pa.RecordBatch
    context: BatchContext
    # the first reason of each dead one, by its input row
    dead: dict[int, str] = field(default_factory=dict)
    # by name; a value for each parsed row, whose input row is in `input_rows`
    columns: dict[str, pa.Array] = field(default_factory=dict)
    input_rows: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # the arrivals of the records, if another stage has parsed them
    arrivals: pa.RecordBatch | None = None
    unparsed: frozenset[int] = frozenset()  # input rows that parsing made dead
    # of a stream of changes: the parsed rows that delete their key; they are joined with nothing,
    # and no expression makes them dead
    gone: Mask | None = None
    _source_times: pa.Array | None = None

    @classmethod
    def of_arrivals(
        cls, spec: ProbeKernelSpec, arrivals: pa.RecordBatch, context: BatchContext
    ) -> "ParsedRecords":
        """Records that another stage has parsed; all of them live."""
        names = {PARTITION: "partition", OFFSET: "offset", TIMESTAMP: "timestamp", VALUE: "value"}
        own = {names[name]: arrivals.column(name) for name in RECORD.names}
        records = _with_topic(pa.RecordBatch.from_pydict(own), spec.topics)
        columns = spec.arrivals.carried_of(arrivals)
        rows = np.arange(arrivals.num_rows, dtype=np.int64)
        return cls(spec, records, context, {}, columns, rows, arrivals)

    def read(self) -> None:
        """Fill `columns` for the parsable records, which `input_rows` names."""
        parsed = self._parsed()
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
            if meta.key == SOURCE_TIMESTAMP:
                assert self._source_times is not None, "only changes have it"
                values = self._source_times.cast(pa.timestamp("ms")).cast(_TIME)
            else:
                values = _metadata(self.records, meta.key).take(parsed.row_index)
            self.columns[meta.name] = values.cast(arrow_type(meta.type))
        for computed in self.spec.computed_fields:
            scope = self.scope(lambda column: self.columns[column.name], len(self.input_rows))
            result = evaluate_rows(computed.expression, scope)
            self.columns[computed.name] = result.values
            for row, reason in result.errors.items():
                self.kill([row], f'column "{computed.name}": {reason}')
        self.unparsed = frozenset(self.dead)

    def _parsed(self) -> ParsedRows:
        changes = self.spec.changes
        if changes is None:
            return self.spec.columns.read(self.records, self.spec.names, self.spec.schemas)
        read = changes.read(self.records, self.spec.names, self.spec.schemas)
        self.gone, self._source_times = read.gone, read.source_times
        return read.rows

    def scope(self, resolve: Callable[[Column], pa.Array], num_rows: int) -> Scope:
        return Scope(resolve, num_rows, self.context.proctime_ms)

    def kill(self, rows: Sequence[int] | Rows, reason: str) -> None:
        for row in rows:
            if self.gone is None or not self.gone[row]:
                self.dead.setdefault(int(self.input_rows[row]), reason)

    def living(self) -> Rows:
        """The parsed rows to join."""
        alive = self.alive()
        return np.flatnonzero(alive if self.gone is None else alive & ~self.gone)

    def without_row(self, probe_rows: Rows) -> Rows:
        """The living parsed rows that are not in `probe_rows`: their keys have no row now."""
        without = self.alive()
        without[probe_rows] = False
        return np.flatnonzero(without)

    def alive(self) -> Mask:
        dead = np.zeros(self.records.num_rows, dtype=np.bool_)
        dead[list(self.dead)] = True
        return ~dead[self.input_rows]

    def as_arrivals(self, rows: Rows, *event_time: pa.Array) -> pa.RecordBatch:
        """The parsed `rows` for later stages, with `EVENT_TIME` in a job that has it."""
        origin = self.input_rows[rows]
        records = _taken(self.records.select(["partition", "offset", "value"]), origin)
        timestamps = _timestamps(self.records)
        if len(origin) != len(timestamps) or not is_identity(origin):
            timestamps = timestamps.take(pa.array(origin))
        own = [records.column(0), records.column(1), timestamps, records.column(2), *event_time]
        whole = len(rows) == len(self.input_rows) and is_identity(rows)
        columns = [self.columns[item.name] for item in self.spec.carried]
        carried = columns if whole else taken(columns, rows)
        schema = self.spec.arrivals.schema
        cast = [
            column.cast(item.type) for column, item in zip([*own, *carried], schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(cast, schema=schema)

    def answer(
        self,
        probe_rows: Rows,
        columns: list[pa.Array],
        matched: Rows,
        kinds: pa.Array | None = None,
    ) -> JoinedBatch:
        """The batch as joined so far; `matched` are the parsed rows with all dimensions.

        A deletion counts as matched: nothing that it needs is missing.
        """
        alive = self.alive()
        with_match = np.zeros(len(alive), dtype=np.bool_) if self.gone is None else self.gone.copy()
        with_match[matched] = True
        keep = alive[probe_rows]
        origin = self.input_rows[probe_rows[keep]]
        if not keep.all():
            columns = [column.filter(pa.array(keep)) for column in columns]
            kinds = None if kinds is None else kinds.filter(pa.array(keep))
        coordinates = _taken(self.records.select(COORDINATES.names), origin).cast(COORDINATES)
        if self.spec.window_input is not None:
            columns = [*columns, *self._record_columns(probe_rows[keep])]
        elif self.spec.row_metadata:
            columns = [*columns, *_true(coordinates), *pin_columns(self.context, len(origin))]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.spec.joined_schema)
        count = int((with_match & alive).sum())
        unmatched = int(alive.sum()) - count
        return JoinedBatch(rows, coordinates, self.dead_letters(), count, unmatched, kinds)

    def _record_columns(self, rows: Rows) -> list[pa.Array]:
        assert self.arrivals is not None, "windows read arrivals"
        columns = _taken(self.arrivals.select(list(self.spec.window_records)), rows)
        return list(columns.columns)

    def dead_letters(self) -> pa.RecordBatch:
        reasons_by_row = dict(sorted(self._own_dead()))
        rows = list(reasons_by_row)
        letters = _taken(self.records, np.array(rows, dtype=np.int64))
        reasons = pa.array(list(reasons_by_row.values()), pa.string())
        columns = _true(letters.select(COORDINATES.names))
        columns = [*columns, reasons, self._values(letters), _timestamps(letters)]
        columns += [
            letters.column(item.name)
            if item.name in letters.schema.names
            else pa.nulls(len(rows), item.type)
            for item in MORE_OF_A_RECORD
        ]
        types = [item.type for item in DEAD_LETTERS]
        cast = [column.cast(kind) for column, kind in zip(columns, types, strict=True)]
        return pa.RecordBatch.from_arrays(cast, schema=DEAD_LETTERS)

    def _values(self, letters: pa.RecordBatch) -> pa.Array:
        if ROW not in letters.schema.names:
            return letters.column("value")
        from joins.kernels.formats.encoders import values_of  # dead rows of files are rare

        return values_of(letters, self.spec.columns.value, self.spec.fields)

    def _own_dead(self) -> Iterator[tuple[int, str]]:
        member = self.spec.member
        for row, reason in self.dead.items():
            if member is None:
                yield row, reason
            elif row not in self.unparsed:
                yield row, member.reason(reason)
            elif (of_all := member.reason_unparsed(reason)) is not None:
                yield row, of_all


def pin_columns(context: BatchContext, num_rows: int) -> list[pa.Array]:
    versions = ",".join(f"{name}={version}" for name, version in context.versions)
    return [
        pa.repeat(pa.scalar(context.batch_id, pa.int64()), num_rows),
        pa.repeat(pa.scalar(versions, pa.string()), num_rows),
    ]


def _metadata(records: pa.RecordBatch, key: str) -> pa.Array:
    values = records.column(key)
    if key == "timestamp" and pa.types.is_integer(values.type):
        return values.cast(pa.timestamp("ms")).cast(_TIME)
    return true_partitions(values) if key == "partition" else values


def _true(coordinates: pa.RecordBatch) -> list[pa.Array]:
    topics, numbers, offsets = coordinates.columns
    return [topics, true_partitions(numbers), offsets]


def _timestamps(records: pa.RecordBatch) -> pa.Array:
    if "timestamp" in records.schema.names:
        return _metadata(records, "timestamp")
    return pa.nulls(records.num_rows, DEAD_LETTERS.field("timestamp").type)


def _with_topic(records: pa.RecordBatch, topics: StreamTopics) -> pa.RecordBatch:
    if "topic" in records.schema.names:
        return records
    return records.append_column("topic", topic_names(topics, records.column("partition")))


def is_identity(rows: Rows) -> bool:
    return len(rows) == 0 or bool((rows == np.arange(len(rows))).all())


def _taken(batch: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
    if len(rows) == batch.num_rows and is_identity(rows):
        return batch
    return batch.take(pa.array(rows))
