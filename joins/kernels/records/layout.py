"""The layout of a record batch, format v2 (magic 2), and the numbers of partitions.

Source: Kafka's documentation, "Record Batch" and "Record".
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar, Self

import crc32c
import pyarrow as pa
import pyarrow.compute as pc

from joins.plan.plan import Compression
from joins.plan.stream_topics import FILES_INDEX, SPAN, StreamTopics

_BITS = SPAN.bit_length() - 1
OF_THE_PROBE = ("value", "partition", "offset", "timestamp")
"""What of a record is needed whatever a plan reads."""
MORE_OF_A_RECORD = pa.schema(
    [
        ("key", pa.binary()),
        ("headers", pa.map_(pa.string(), pa.binary())),
        ("leader-epoch", pa.int32()),
        ("timestamp-type", pa.string()),
    ]
)
"""What plans may read of it beside that, under the names of the metadata."""
ROW, ROW_ERROR = "row", "row-error"
"""Columns of records that are rows of files: their typed columns, and why one has no row."""
BODIES = pa.schema(
    [("partition", pa.int32()), ("records", pa.int32()), ("body", pa.large_binary())]
)
"""Encoded records of partitions, without the header of their batch."""
_OWN = {
    "value": pa.binary(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_NO_TEXT, _NO_HEADERS = b"\x01", b"\0"
_IS_PLAIN = b"\0\0"  # no attributes, and the time of the batch
_LONGEST_NUMBERS = 10  # bytes of a record's length and of its number in the batch
_MAGIC = 2
_BEFORE_CRC = struct.Struct(">qiib")
_CRC = struct.Struct(">I")
_BEHIND_CRC = struct.Struct(">hiqqqhii")
_WHOLE = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">qi")  # what the length does not count
_KINDS = tuple(Compression)  # each has its place as its number in the attributes
_CODEC, _APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0b111, 1 << 3, 1 << 4, 1 << 5


def record_type(name: str) -> pa.DataType:
    """The type of a record's own column."""
    return _OWN[name] if name in _OWN else MORE_OF_A_RECORD.field(name).type


def true_partitions(numbers: pa.Array) -> pa.Array:
    return pc.bit_wise_and(numbers.cast(pa.int32()), pa.scalar(SPAN - 1, pa.int32()))


def topic_names(topics: StreamTopics, numbers: pa.Array) -> pa.Array:
    if not topics.are_several:
        return pa.repeat(pa.scalar(topics.names[0], pa.string()), len(numbers))
    names, indexes = list(topics.names), _indexes(numbers)
    if topics.history is not None:
        indexes = pc.if_else(pc.equal(indexes, FILES_INDEX), len(names), indexes)
        names.append(topics.history.name)
    return pc.take(pa.array(names, pa.string()), indexes)


def of_topics(records: pa.RecordBatch, indexes: Sequence[int]) -> pa.RecordBatch:
    own = pc.is_in(_indexes(records.column("partition")), pa.array(indexes, pa.int32()))
    return records if pc.all(own).as_py() else records.filter(own)


def _indexes(numbers: pa.Array) -> pa.Array:
    return pc.shift_right(numbers.cast(pa.int32()), pa.scalar(_BITS, pa.int32()))


def numbered(topics: StreamTopics, names: pa.Array, partitions: pa.Array) -> pa.Array:
    """Partition numbers of places by topic and true partition.

    A place whose topic is not in the stream, as in rows of windows, keeps its partition.
    """
    if not topics.are_several:
        return partitions
    indexes = pc.fill_null(pc.index_in(names, pa.array(topics.names, pa.string())), 0)
    if topics.history is not None:
        of_files = pc.fill_null(pc.equal(names, topics.history.name), False)
        indexes = pc.if_else(of_files, pa.scalar(FILES_INDEX, indexes.type), indexes)
    shifted = pc.shift_left(indexes, pa.scalar(_BITS, pa.int32()))
    return pc.add(shifted, partitions.cast(pa.int32()))


class RecordFormatError(ValueError):
    """Bytes of a partition that are no records, or have an unsupported format."""


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """Producer and first sequence number of a batch; the broker detects repeats by it."""

    producer_id: int
    producer_epoch: int
    sequence: int
    is_transactional: bool = False


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of a record batch; timestamps in epoch milliseconds."""

    SIZE: ClassVar[int] = _WHOLE.size
    CHECKED_FROM: ClassVar[int] = _BEFORE_CRC.size + _CRC.size

    base_offset: int
    last_offset: int
    size: int  # bytes of the whole batch
    checksum: int  # CRC-32C of all bytes from `CHECKED_FROM` on
    attributes: int
    base_ms: int
    max_ms: int  # greatest timestamp, or the append time
    producer_id: int
    records: int
    leader_epoch: int = -1  # of the partition's leader at the append, negative if unknown

    @classmethod
    def at(cls, data: memoryview, at: int) -> Self | None:
        """The header at `at`, None if truncated; raises RecordFormatError unless format v2."""
        if len(data) - at < _BEFORE_CRC.size:
            return None
        offset, length, epoch, magic = _BEFORE_CRC.unpack_from(data, at)
        if magic != _MAGIC:
            raise RecordFormatError(f"the batch at offset {offset} has format v{magic}, not v2")
        size = length + _LENGTH.size
        if size < cls.SIZE:
            raise RecordFormatError(f"the batch at offset {offset} has a length of {length}")
        if len(data) - at < cls.SIZE:
            return None
        *_, crc, flags, last, base_ms, max_ms, producer, _, _, records = _WHOLE.unpack_from(
            data, at
        )
        ends = (offset, offset + last, size)
        return cls(*ends, crc, flags, base_ms, max_ms, producer, records, epoch)

    @property
    def compression(self) -> Compression:
        """Codec of the records; raises RecordFormatError if it is unknown."""
        codec = self.attributes & _CODEC
        if codec >= len(_KINDS):
            raise RecordFormatError(f"a batch is compressed by codec {codec}, which Kafka has not")
        return _KINDS[codec]

    @property
    def is_append_time(self) -> bool:
        return bool(self.attributes & _APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)


def _varint(value: int) -> bytes:
    """A number that is not negative, as records have it."""
    rest, out = value << 1, bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*out, rest))


def text_bytes(value: bytes | None) -> bytes:
    """A key, a value, or the name or value of a header: its length and itself."""
    return _NO_TEXT if value is None else _varint(len(value)) + value


def plain_bodies(records: pa.RecordBatch, body_bytes: int) -> pa.RecordBatch:
    """Rows `[key, value, partition]` as `encode_bodies` has them, without compiled code."""
    done: list[tuple[int, int, bytes]] = []
    under_way: dict[int, tuple[int, bytearray]] = {}
    columns = (column.to_pylist() for column in records.columns)
    for key, value, partition in zip(*columns, strict=True):
        text = text_bytes(key) + text_bytes(value) + _NO_HEADERS
        size = len(_IS_PLAIN) + len(text)
        count, body = under_way.get(partition, (0, bytearray()))
        if count and len(body) + size + _LONGEST_NUMBERS > body_bytes:
            done.append((partition, count, bytes(body)))
            count, body = 0, bytearray()
        delta = _varint(count)
        body += _varint(size + len(delta)) + _IS_PLAIN + delta + text
        under_way[partition] = count + 1, body
    done += ((partition, count, bytes(body)) for partition, (count, body) in under_way.items())
    done.sort(key=itemgetter(0))
    rows = [dict(zip(BODIES.names, each, strict=True)) for each in done]
    return pa.RecordBatch.from_pylist(rows, BODIES)


def record_batch(
    body: bytes, records: int, compression: Compression, at_ms: int, origin: BatchOrigin
) -> bytes:
    """A batch of the compressed `body`, whose records all have the timestamp `at_ms`."""
    who = (origin.producer_id, origin.producer_epoch, origin.sequence)
    flags = _KINDS.index(compression) | (_TRANSACTIONAL if origin.is_transactional else 0)
    behind = _BEHIND_CRC.pack(flags, records - 1, at_ms, at_ms, *who, records)
    length = BatchHeader.SIZE - _LENGTH.size + len(body)
    checksum = crc32c.crc32c(body, crc32c.crc32c(behind))
    before = _BEFORE_CRC.pack(0, length, -1, _MAGIC)
    return b"".join((before, _CRC.pack(checksum), behind, body))
