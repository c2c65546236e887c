"""Records of a changelog topic: wire columns to key and value, and back to changelog rows.

Snapshot and binlog share `encode_records`: equal rows have equal bytes (contracts.md).
"""

import time
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Mask, mask_of, null_where
from joins.kernels.json import rows as json_rows
from joins.kernels.json.encode import encode_objects, join_text
from joins.kernels.json.wire import Encoding, to_declared, wire_type
from joins.plan.errors import SourceError
from joins.plan.types import SqlType, arrow_type

WATERMARK_TIMESTAMP_MS = -(2**63)
PART_BYTES = 32 << 20
"""Of rows that are encoded at once: texts of one column have at most 2 GiB."""
_SNAPSHOT_ROW = -1
_TIME_BYTES = 40  # more than the text of a time has
SOURCE_SCHEMA = pa.schema(
    [
        ("epoch", pa.int32()),
        ("file", pa.int64()),
        ("pos", pa.int64()),
        ("row", pa.int64()),
        ("gen", pa.int32()),
        ("ts_ms", pa.int64()),
    ]
)
_WATERMARK = pa.struct([("timestamp_ms", pa.int64()), ("use_processing_time", pa.bool_())])
_META_FIELDS = (
    ("_op", pa.string()),
    ("_epoch", pa.int32()),
    ("_file", pa.int64()),
    ("_pos", pa.int64()),
    ("_row", pa.int64()),
    ("_source_ts", pa.int64()),
    ("_partition", pa.int32()),
    ("_offset", pa.int64()),
    ("_generation", pa.int32()),
)
RECORDS_SCHEMA = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("partition", pa.int32())]
)


class Op(StrEnum):
    """Operation of a record: Debezium's letters, and `w` for a watermark."""

    READ = "r"
    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    WATERMARK = "w"


@dataclass(frozen=True, slots=True)
class CapturedColumn:
    """A captured column; `encoding`, from the database type, is its form in JSON."""

    name: str
    sql_type: SqlType
    encoding: Encoding


@dataclass(frozen=True, slots=True, order=True)
class BinlogPosition:
    """A position between two transactions of the binlog; positions of one epoch compare as numbers.

    `epoch` increases whenever positions are not comparable. `pos` is the byte position of the next
    transaction's first event in file number `file`.
    """

    epoch: int
    file: int
    pos: int


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Rows to encode; all arrays have one length.

    `r`, `c` and `u` have an `after`, `u` and `d` a `before`: wire columns (BYTES as binary), None
    if no row has one. `source` is the source block of each row (`SOURCE_SCHEMA`).
    """

    ops: pa.StringArray
    source: pa.RecordBatch
    before: pa.RecordBatch | None
    after: pa.RecordBatch | None

    @property
    def num_rows(self) -> int:
        return len(self.ops)

    @property
    def nbytes(self) -> int:
        return sum(rows.nbytes for rows in (self.before, self.after) if rows is not None)

    def slice(self, first: int, length: int | None = None) -> "Envelopes":
        before, after = (
            None if rows is None else rows.slice(first, length)
            for rows in (self.before, self.after)
        )
        ops, source = self.ops.slice(first, length), self.source.slice(first, length)
        return Envelopes(ops, source, before, after)


Rows = TypeVar("Rows", Envelopes, pa.RecordBatch)


def in_parts(rows: Rows, most_bytes: int = PART_BYTES) -> Iterator[Rows]:
    """The same rows in order; a part has at most `most_bytes`, or one row."""
    half = rows.num_rows // 2
    if not half or rows.nbytes <= most_bytes:
        yield rows
        return
    yield from in_parts(rows.slice(0, half), most_bytes)
    yield from in_parts(rows.slice(half), most_bytes)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Rows of the changelog table in input order, including watermark records.

    `watermarks` has (partition, offset, generation, timestamp_ms, use_processing_time) of each.
    """

    batch: pa.RecordBatch
    watermarks: tuple[tuple[int, int, int, int, bool], ...]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def changelog_schema(columns: tuple[CapturedColumn, ...]) -> pa.Schema:
    declared = [(column.name, arrow_type(column.sql_type)) for column in columns]
    return pa.schema([*declared, *_META_FIELDS])


def wire_schema(columns: tuple[CapturedColumn, ...]) -> pa.Schema:
    return pa.schema([(c.name, wire_type(c.encoding, c.sql_type)) for c in columns])


def encode_snapshot(
    rows: pa.RecordBatch,
    primary_key: tuple[str, ...],
    low: BinlogPosition,
    *,
    generation: int,
    partitions: int,
) -> pa.RecordBatch:
    """Records `[key, value, partition]` at LOW; equal to `encode_records`, but faster."""
    made_at_ms = now_ms()
    constants = (low.epoch, low.file, low.pos, _SNAPSHOT_ROW, generation, made_at_ms)
    source = pa.RecordBatch.from_arrays([[value] for value in constants], schema=SOURCE_SCHEMA)
    behind = f',"op":"{Op.READ}","source":{encode_objects(source)[0]},"ts_ms":{made_at_ms}}}'
    value = encode_objects(rows, '{"before":null,"after":', behind)
    return _records(encode_objects(rows.select(primary_key)), value, partitions)


def encode_records(
    changes: Envelopes, primary_key: tuple[str, ...], *, partitions: int
) -> pa.RecordBatch:
    """`changes` as records `[key: binary, value: binary, partition: int32]`, in their order."""
    ops = changes.ops
    before = _objects(changes.before, pc.is_in(ops, pa.array(["u", "d"])))
    after = _objects(changes.after, pc.not_equal(ops, "d"))
    ending = pa.scalar(f',"ts_ms":{now_ms()}}}')
    pieces = [pa.scalar('{"before":'), before, pa.scalar(',"after":'), after]
    pieces += [pa.scalar(',"op":"'), ops, pa.scalar('","source":'), encode_objects(changes.source)]
    return _records(_keys(changes, primary_key), join_text([*pieces, ending]), partitions)


_LONG_KEY = 3  # parts of the limit


@dataclass(frozen=True, slots=True)
class Limited:
    """Records whose values fit a limit; `dead` has key and bytes of each row that did not fit.

    `places` are the records that delete such rows; `snapshot_limited` has none. No record of a key
    in `long_keys` is ever sent, not even one that deletes it.
    """

    records: pa.RecordBatch
    dead: tuple[tuple[bytes, int], ...]
    places: tuple[int, ...] = ()
    long_keys: tuple[int, ...] = ()

    def sent(self) -> pa.RecordBatch:
        if not self.long_keys:
            return self.records
        kept = np.ones(self.records.num_rows, np.bool_)
        kept[list(self.long_keys)] = False
        return self.records.filter(pa.array(kept))

    def written(self) -> Iterator[tuple[str, int | None]]:
        """Key of each record, in order, with the bytes of a row that was left out."""
        sizes = dict(zip(self.places, (size for _, size in self.dead), strict=True))
        for row, key in enumerate(self.records.column("key").to_pylist()):
            yield key.decode(), sizes.get(row)


def encode_limited(
    changes: Envelopes, primary_key: tuple[str, ...], *, partitions: int, most_bytes: int
) -> Limited:
    """`encode_records`, with values of at most `most_bytes`.

    `before` is shortened first: readers need only its key and its times. A new row that is still
    too large is omitted, and the row that its key had before is deleted. A deletion has its key
    twice, so no record of a key above a third of the limit is sent: such a key never has a row.
    """
    records = encode_records(changes, primary_key, partitions=partitions)
    large, long = _larger(records, most_bytes), _have_long_keys(records, most_bytes)
    if not (large | long).any():
        return Limited(records, ())
    before = None if changes.before is None else _shortened(changes.before, large, primary_key)
    changes = replace(changes, before=before)
    records = encode_records(changes, primary_key, partitions=partitions)
    is_row = mask_of(pc.not_equal(changes.ops, "d"))
    dead = (_larger(records, most_bytes) | long) & is_row
    sizes = _sizes(records).tolist()
    keys = records.column("key").to_pylist()
    places = tuple(np.flatnonzero(dead).tolist())
    left_out = tuple((keys[row], sizes[row]) for row in places)
    long_keys = tuple(np.flatnonzero(long).tolist())
    if changes.after is None or not dead.any():
        return Limited(records, (), (), long_keys)
    mask, after = pa.array(dead), _shortened(changes.after, dead, primary_key)
    columns = [
        pc.if_else(mask, new, new if before is None else before.column(name))
        for name, new in zip(after.schema.names, after.columns, strict=True)
    ]
    known = pc.or_(mask, pc.is_in(changes.ops, pa.array(["u", "d"])))
    columns = [pc.if_else(known, c, pa.scalar(None, c.type)) for c in columns]
    gone = Envelopes(
        ops=pc.if_else(mask, "d", changes.ops),
        source=changes.source,
        before=pa.RecordBatch.from_arrays(columns, schema=after.schema),
        after=after,
    )
    records = encode_records(gone, primary_key, partitions=partitions)
    return Limited(records, left_out, places, long_keys)


def encode_copy(
    rows: pa.RecordBatch,
    primary_key: tuple[str, ...],
    low: BinlogPosition,
    *,
    generation: int,
    partitions: int,
    most_bytes: int,
) -> Limited:
    """`encode_snapshot`; a row that is too large deletes what an earlier one of its key was."""
    records = encode_snapshot(rows, primary_key, low, generation=generation, partitions=partitions)
    if not (_larger(records, most_bytes) | _have_long_keys(records, most_bytes)).any():
        return Limited(records, ())
    constants = (low.epoch, low.file, low.pos, _SNAPSHOT_ROW, generation, now_ms())
    source = [
        pa.repeat(pa.scalar(value, field.type), rows.num_rows)
        for value, field in zip(constants, SOURCE_SCHEMA, strict=True)
    ]
    return encode_limited(
        Envelopes(
            ops=pa.repeat(pa.scalar(Op.READ.value), rows.num_rows),
            source=pa.RecordBatch.from_arrays(source, schema=SOURCE_SCHEMA),
            before=None,
            after=rows,
        ),
        primary_key,
        partitions=partitions,
        most_bytes=most_bytes,
    )


def snapshot_limited(records: pa.RecordBatch, most_bytes: int) -> Limited:
    """Records of a copy in which a key occurs once."""
    large = _larger(records, most_bytes) | _have_long_keys(records, most_bytes)
    if not large.any():
        return Limited(records, ())
    left_out = records.filter(pa.array(large))
    pairs = zip(left_out.column("key").to_pylist(), _sizes(left_out).tolist(), strict=True)
    return Limited(records.filter(pa.array(~large)), tuple(pairs))


def _larger(records: pa.RecordBatch, most_bytes: int) -> npt.NDArray[np.bool_]:
    return np.asarray(_sizes(records) > most_bytes)


def _have_long_keys(records: pa.RecordBatch, most_bytes: int) -> npt.NDArray[np.bool_]:
    sizes = pc.binary_length(records.column("key")).cast(pa.int64())
    return np.asarray(pc.greater(sizes, most_bytes // _LONG_KEY), dtype=np.bool_)


def _sizes(records: pa.RecordBatch) -> npt.NDArray[np.int64]:
    key, value = (pc.binary_length(records.column(name)) for name in ("key", "value"))
    return np.asarray(pc.add(key, value).cast(pa.int64()))


def _shortened(
    rows: pa.RecordBatch, which: npt.NDArray[np.bool_], primary_key: tuple[str, ...]
) -> pa.RecordBatch:
    columns = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if name not in primary_key:
            column = null_where(column, which & _may_be_long(column))
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _may_be_long(column: pa.Array) -> Mask:
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return mask_of(pc.greater(pc.binary_length(column), _TIME_BYTES))
    return np.full(len(column), pa.types.is_nested(column.type))


def _records(key: pa.StringArray, value: pa.StringArray, partitions: int) -> pa.RecordBatch:
    key, value = key.cast(pa.binary()), value.cast(pa.binary())
    return pa.RecordBatch.from_arrays(
        [key, value, partition_of(key, partitions)], schema=RECORDS_SCHEMA
    )


def encode_watermark(high: BinlogPosition, generation: int) -> bytes:
    """The value of a watermark record `(MIN, true)` at HIGH; its key is null."""
    made_at_ms = now_ms()
    source = (
        f'{{"epoch":{high.epoch},"file":{high.file},"pos":{high.pos},"row":{_SNAPSHOT_ROW},'
        f'"gen":{generation},"ts_ms":{made_at_ms}}}'
    )
    mark = f'{{"timestamp_ms":{WATERMARK_TIMESTAMP_MS},"use_processing_time":true}}'
    text = (
        f'{{"before":null,"after":null,"op":"w","source":{source},'
        f'"ts_ms":{made_at_ms},"watermark":{mark}}}'
    )
    return text.encode()


def partition_of(keys: pa.Array, partitions: int) -> pa.Int32Array:
    """CRC-32 of each key's bytes modulo `partitions`."""
    if partitions == 1:
        return pa.repeat(pa.scalar(0, pa.int32()), len(keys))
    partitions_of_keys = [zlib.crc32(key) % partitions for key in keys.to_pylist()]
    return pa.array(partitions_of_keys, pa.int32())


def decode(
    rows: pa.RecordBatch,
    columns: tuple[CapturedColumn, ...],
    *,
    topic: str,
    before: Collection[str] = (),
) -> Decoded:
    """Kafka rows `[key, value, partition, offset]` of a changelog topic as changelog rows.

    A deleted row has its key, and the columns `before` of the deleted version. Raises SourceError
    with the coordinates of the first record that is not a changelog record.
    """
    # reads better long: one record's fields, in the order of the changelog's columns.
    records = _Records(topic, rows)
    fields = [item for item in wire_schema(columns) if item.name in before]
    envelope = pa.schema(
        [
            *([("before", pa.struct(fields))] if fields else []),
            ("after", pa.struct(list(wire_schema(columns)))),
            ("op", pa.string()),
            ("source", pa.struct(list(SOURCE_SCHEMA))),
            ("watermark", _WATERMARK),
        ]
    )
    parsed = records.parse("value", np.arange(rows.num_rows), envelope)
    records.check_envelopes(parsed)
    wires = parsed.column("after").flatten()
    deleted = pc.equal(parsed.column("op"), "d")
    keys = records.parse("key", np.flatnonzero(mask_of(deleted)), wire_schema(columns))
    declared = []
    for position, column in enumerate(columns):
        wire = wires[position]
        if keys.num_rows and not column.sql_type.is_nested:  # no key is, nor a rowtime
            gone = keys.column(position)
            if column.name in before:
                gone = pc.struct_field(parsed.column("before"), column.name).filter(deleted)
            wire = pc.replace_with_mask(wire, deleted, gone)
        declared.append(records.declare(wire, column))
    epoch, file, pos, row, gen, ts_ms = parsed.column("source").flatten()
    partition, offset = (rows.column(name) for name in ("partition", "offset"))
    meta = [
        parsed.column("op"),
        epoch,
        file,
        pos,
        row,
        ts_ms,
        partition.cast(pa.int32()),
        offset,
        gen,
    ]
    batch = pa.RecordBatch.from_arrays([*declared, *meta], schema=changelog_schema(columns))
    return Decoded(batch, _watermarks(parsed, batch))


def _objects(rows: pa.RecordBatch | None, present: pa.Array) -> pa.Array | pa.Scalar:
    if rows is None:
        return pa.scalar("null")
    objects = encode_objects(rows)
    is_whole = pc.all(present, min_count=0).as_py()
    return objects if is_whole else pc.if_else(present, objects, "null")


def _keys(changes: Envelopes, primary_key: tuple[str, ...]) -> pa.StringArray:
    if changes.after is None:
        assert changes.before is not None
        return encode_objects(changes.before.select(primary_key))
    keys = encode_objects(changes.after.select(primary_key))
    if changes.before is not None:
        deleted = pc.equal(changes.ops, "d")
        keys = pc.if_else(deleted, encode_objects(changes.before.select(primary_key)), keys)
    return keys


def _watermarks(
    parsed: pa.RecordBatch, batch: pa.RecordBatch
) -> tuple[tuple[int, int, int, int, bool], ...]:
    is_mark = pc.equal(parsed.column("op"), "w")
    if not pc.any(is_mark, min_count=0).as_py():
        return ()
    columns = [batch.column(name) for name in ("_partition", "_offset", "_generation")]
    columns += parsed.column("watermark").flatten()
    return tuple(zip(*(column.filter(is_mark).to_pylist() for column in columns), strict=True))


@dataclass(frozen=True, slots=True)
class _Records:
    """Kafka rows being decoded; errors name their record."""

    topic: str
    rows: pa.RecordBatch

    def parse(
        self, column: str, positions: npt.NDArray[np.int64], schema: pa.Schema
    ) -> pa.RecordBatch:
        values = self.rows.column(column).cast(pa.binary())
        if len(positions) < len(values):
            values = values.take(pa.array(positions))
        parsed = json_rows.parse(values, schema)
        if parsed.bad:
            first = parsed.bad[0]
            raise self.error(int(positions[first.row]), f"{column}: {first.reason}")
        return parsed.batch

    def check_envelopes(self, parsed: pa.RecordBatch) -> None:
        op = parsed.column("op")
        self._require(pc.is_in(op, pa.array([item.value for item in Op])), "unknown op")
        for item in parsed.column("source").flatten():
            self._require(item.is_valid(), "incomplete source block")
        is_mark = pc.equal(op, "w")
        has_after = parsed.column("after").is_valid()
        expected = pc.is_in(op, pa.array(["r", "c", "u"]))
        self._require(pc.equal(has_after, expected), "after does not fit op")
        self._require(pc.equal(self.rows.column("key").is_valid(), pc.invert(is_mark)), "wrong key")
        timestamp, processing = parsed.column("watermark").flatten()
        is_right = pc.and_(
            pc.fill_null(pc.equal(timestamp, WATERMARK_TIMESTAMP_MS), False),
            pc.fill_null(processing, False),
        )
        self._require(pc.equal(is_right, is_mark), "wrong watermark")

    def declare(self, wire: pa.Array, column: CapturedColumn) -> pa.Array:
        checked = to_declared(wire, column.encoding, column.sql_type)
        if checked.failed.any():
            row = int(np.flatnonzero(checked.failed)[0])
            raise self.error(row, f'column "{column.name}" is not {column.sql_type}')
        return checked.values

    def _require(self, truth: pa.Array, complaint: str) -> None:
        wrong = np.flatnonzero(~mask_of(truth))
        if len(wrong):
            raise self.error(int(wrong[0]), complaint)

    def error(self, row: int, complaint: str) -> SourceError:
        partition, offset = (self.rows.column(name)[row] for name in ("partition", "offset"))
        return SourceError(
            f'record {partition}/{offset} of changelog topic "{self.topic}" is invalid: '
            f"{complaint}",
            hint="Remove the job and submit it again, and let no other program write to the topic.",
        )
