"""Rows as the records of record batches: each goes to the partition of its key, in its order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.kernels.compiled import compiled, one_at_a_time
from joins.kernels.records.layout import BODIES, text_bytes

KEYLESS_RUN = 1_000
"""Rows without a key that go to one partition before the next one."""

_VARINT_BYTES = 5
_FIXED_BYTES = 2 + 4 * _VARINT_BYTES  # attributes, time; length, offset, key, value


class Texts(NamedTuple):
    """Byte strings in one buffer; NULL has a negative start."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class Headers(NamedTuple):
    """Headers of rows; `values` has segment s of row r at `s * rows + r`."""

    # encoded bytes before the value of each segment: its name, or whole constant headers
    before: Texts
    counts: NDArray[np.int64]  # number of headers in each segment
    # start and end are 0 in a segment without values, and negative in omitted headers
    values: Texts
    has_value: NDArray[np.bool_]  # by segment


class RecordRows(NamedTuple):
    """Rows to write in `order`, in which rows of one partition are contiguous."""

    order: NDArray[np.int64]
    partitions: NDArray[np.int32]
    keys: Texts
    values: Texts
    headers: Texts


@dataclass(frozen=True, slots=True)
class Places:
    """Chooses a partition for each row; rows without a key begin at `first`.

    `body_bytes` limits a batch before compression; a larger record is a batch by itself.
    """

    partitions: int
    first: int
    body_bytes: int

    def of(self, keys: pa.Array) -> NDArray[np.int32]:
        chosen = np.empty(len(keys), np.int32)
        _choose(chosen, texts_of(keys), self.partitions, self.first, KEYLESS_RUN)
        return chosen


@compiled
def _varint_size(value: int) -> int:
    rest = value << 1 if value >= 0 else 1
    size = 1
    while rest > 127:
        rest >>= 7
        size += 1
    return size


@compiled
def _put_varint(out: NDArray[np.uint8], at: int, value: int) -> int:
    rest = value << 1 if value >= 0 else 1
    while rest > 127:
        out[at] = rest & 127 | 128
        rest >>= 7
        at += 1
    out[at] = rest
    return at + 1


@compiled
def _text_size(start: int, end: int) -> int:
    return 1 if start < 0 else _varint_size(end - start) + end - start


@compiled
def _put(out: NDArray[np.uint8], at: int, data: NDArray[np.uint8], start: int, end: int) -> int:
    first, place = np.uint64(start), np.uint64(at)  # signed ones are looked at for negative ones
    for i in range(np.uint64(end - start)):
        out[place + i] = data[first + i]
    return at + end - start


@compiled
def _put_text(
    out: NDArray[np.uint8], at: int, data: NDArray[np.uint8], start: int, end: int
) -> int:
    if start < 0:
        return _put_varint(out, at, -1)
    return _put(out, _put_varint(out, at, end - start), data, start, end)


@compiled
def _put_headers(out: NDArray[np.uint8], ends: NDArray[np.int64], headers: Headers) -> None:
    """Writes number and headers of each row; `ends` receives where each row ends."""
    # Read arrays from their tuples once: each access counts a reference.
    (names, name_starts, name_ends), counts, (data, starts, value_ends), has_value = headers
    rows, at = len(ends), 0
    for row in range(rows):
        count = 0
        for segment in range(len(counts)):
            count += counts[segment] if starts[segment * rows + row] >= 0 else 0
        at = _put_varint(out, at, count)
        for segment in range(len(counts)):
            place = segment * rows + row
            if starts[place] >= 0:
                at = _put(out, at, names, name_starts[segment], name_ends[segment])
                if has_value[segment]:
                    at = _put_text(out, at, data, starts[place], value_ends[place])
        ends[row] = at


@compiled
def _put_records(
    out: NDArray[np.uint8], bodies: NDArray[np.int64], written: RecordRows, body_bytes: int
) -> int:
    """Writes the records; `bodies` receives partition, number of records and end of each."""
    order, partitions, (keys, key_starts, key_ends), values_of_all, headers_of_all = written
    (values, value_starts, value_ends), (headers, starts, ends) = values_of_all, headers_of_all
    count, start, at, delta = 0, 0, 0, 0
    for row in order:
        size = 2 + ends[row] - starts[row] + _text_size(key_starts[row], key_ends[row])
        size += _text_size(value_starts[row], value_ends[row])
        is_other = count == 0 or bodies[count - 1, 0] != partitions[row]
        if is_other or at - start + size + 2 * _VARINT_BYTES > body_bytes:
            bodies[count, 0] = partitions[row]
            count, start, delta = count + 1, at, 0
        at = _put_varint(out, at, size + _varint_size(delta))
        out[at] = 0  # attributes
        out[at + 1] = 0  # later than the batch's time by this
        at = _put_varint(out, at + 2, delta)
        at = _put_text(out, at, keys, key_starts[row], key_ends[row])
        at = _put_text(out, at, values, value_starts[row], value_ends[row])
        at = _put(out, at, headers, starts[row], ends[row])
        delta += 1
        bodies[count - 1, 1], bodies[count - 1, 2] = delta, at
    return count


@compiled
def _murmur2(data: NDArray[np.uint8], start: int, end: int) -> int:
    """The 32-bit hash by which Kafka's producers choose a partition."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    length = end - start
    hashed = (0x9747B28C ^ length) & mask
    for at in range(start, start + length // 4 * 4, 4):
        word = data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24
        word = word * multiplier & mask
        word ^= word >> 24
        hashed = (hashed * multiplier & mask) ^ (word * multiplier & mask)
    rest = length % 4
    for at in range(rest):
        hashed ^= data[end - rest + at] << 8 * at
    if rest:
        hashed = hashed * multiplier & mask
    hashed ^= hashed >> 13
    hashed = hashed * multiplier & mask
    return hashed ^ hashed >> 15


@compiled
def _choose(chosen: NDArray[np.int32], keys: Texts, partitions: int, first: int, run: int) -> None:
    keyless = 0
    for row in range(len(keys.starts)):
        if keys.starts[row] < 0:
            chosen[row] = (first + keyless // run) % partitions
            keyless += 1
        else:
            hashed = _murmur2(keys.data, keys.starts[row], keys.ends[row])
            chosen[row] = (hashed & 0x7FFFFFFF) % partitions


def texts_of(column: pa.Array) -> Texts:
    _, offsets, data = column.buffers()
    rows = len(column)
    places = np.zeros(1, np.int64)
    if rows:
        whole = np.frombuffer(offsets, np.int32)
        places = whole[column.offset : column.offset + rows + 1].astype(np.int64)
    starts = places[:-1]
    if column.null_count:
        starts = np.where(column.is_valid().to_numpy(zero_copy_only=False), starts, -1)
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Texts(content, starts, places[1:])


def _segments(headers: Mapping[str, bytes | pa.Array], rows: int) -> Headers:
    """Headers as segments; neighbours that are equal in all rows are one encoded segment."""
    before: list[bytes] = []
    counts: list[int] = []
    columns: list[Texts | None] = []
    for name, value in headers.items():
        start = text_bytes(name.encode())
        whole = start + text_bytes(value) if isinstance(value, bytes) else start
        if isinstance(value, bytes) and columns and columns[-1] is None:
            before[-1] += whole
            counts[-1] += 1
        else:
            before.append(whole)
            counts.append(1)
            columns.append(None if isinstance(value, bytes) else texts_of(value))
    has_value = np.array([column is not None for column in columns], np.bool_)
    names = texts_of(pa.array(before, pa.binary()))
    return Headers(names, np.array(counts, np.int64), _one_buffer(columns, rows), has_value)


def _one_buffer(columns: Sequence[Texts | None], rows: int) -> Texts:
    nothing = np.zeros(rows, np.int64)
    data, starts, ends = [np.empty(0, np.uint8)], [nothing[:0]], [nothing[:0]]
    shift = 0
    for column in columns:
        if column is None:
            starts.append(nothing)
            ends.append(nothing)
            continue
        starts.append(np.where(column.starts < 0, column.starts, column.starts + shift))
        ends.append(column.ends + shift)
        data.append(column.data)
        shift += len(column.data)
    return Texts(np.concatenate(data), np.concatenate(starts), np.concatenate(ends))


def _bytes_of(texts: Texts) -> int:
    return int((texts.ends - texts.starts)[texts.starts >= 0].sum())


def _finished(headers: Headers, rows: int) -> Texts:
    segments = len(headers.counts)
    a_row = _VARINT_BYTES * (1 + segments) + len(headers.before.data)
    out = np.empty(_bytes_of(headers.values) + rows * a_row, np.uint8)
    ends = np.empty(rows, np.int64)
    _put_headers(out, ends, headers)
    return Texts(out, np.concatenate([np.zeros(1, np.int64), ends[:-1]])[:rows], ends)


def encode_bodies(
    keys: pa.Array,
    values: pa.Array,
    headers: Mapping[str, bytes | pa.Array],
    partitions: NDArray[np.int32],
    body_bytes: int,
) -> pa.RecordBatch:
    """The rows as bodies of record batches, `BODIES`, in the order of each partition's rows.

    `keys` and `values` are `binary`; a NULL value is a tombstone. A header has one value for all
    rows, or a `binary` column; NULL omits it. `body_bytes` is as in `Places`.
    """
    rows = len(values)
    texts = (texts_of(keys), texts_of(values), _finished(_segments(headers, rows), rows))
    written = RecordRows(np.argsort(partitions, kind="stable"), partitions, *texts)
    out = np.empty(sum(map(_bytes_of, texts)) + rows * _FIXED_BYTES, np.uint8)
    bodies = np.empty((rows, 3), np.int64)
    bodies = bodies[: _put_records(out, bodies, written, body_bytes)]
    ends = np.concatenate([np.zeros(1, np.int64), bodies[:, 2]])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(out[: int(ends[-1])])]
    body = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(bodies), buffers)
    numbers = [pa.array(bodies[:, at].astype(np.int32)) for at in (0, 1)]
    return pa.record_batch([*numbers, body], schema=BODIES)


def warm_up() -> None:
    with one_at_a_time():
        row = pa.array([b""], pa.binary())
        encode_bodies(row, row, {"": row}, Places(1, 0, 1).of(row), 1)
