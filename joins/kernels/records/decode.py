"""Record batches as columns: one partition of a Fetch response."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import crc32c
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.kernels.compiled import compiled, one_at_a_time
from joins.kernels.records.layout import (
    BatchHeader,
    BatchOrigin,
    RecordFormatError,
    record_batch,
)
from joins.kernels.texts import texts_at
from joins.plan.plan import Compression

OFFSET, TIMESTAMP, KEY, VALUE, HEADERS = 0, 1, 2, 4, 6
"""Columns of `DecodedRecords.places`; of texts the start, the end is beside it."""

_COLUMNS = 8
_TABLE = 7  # columns of the batches that `_parse` reads
_EMPTY_RECORD = bytes((12, 0, 0, 0, 1, 1, 0))  # six bytes behind the length; NULL key and value

Decompress = Callable[[Compression, bytes], bytes]
"""The body of a batch, given how it is compressed and its bytes."""


@dataclass(frozen=True, slots=True)
class DecodedRecords:
    """Records of one partition in the order of their offsets."""

    data: NDArray[np.uint8]  # bytes of keys, values and headers
    # a row a record: offset, timestamp in ms, start and end of key, value and headers in `data`;
    # the start of a NULL is negative
    places: NDArray[np.int64]
    next_offset: int | None  # offset after the last whole batch, None without one
    batches: tuple[BatchHeader, ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    def column(self, at: int) -> NDArray[np.int64]:
        return self.places[:, at]

    def texts(self, at: int) -> pa.BinaryArray:
        """`KEY` or `VALUE` of each record; raises RecordFormatError if they exceed an array."""
        try:
            return texts_at(self.data, self.places[:, at], self.places[:, at + 1])
        except OverflowError as exc:
            raise RecordFormatError(f"{exc} of records come at once") from exc

    def of_batches(self, fact: Callable[[BatchHeader], Any]) -> list[Any]:
        first = np.array([header.base_offset for header in self.batches], np.int64)
        batch = np.searchsorted(first, self.places[:, OFFSET], side="right") - 1
        facts = [fact(header) for header in self.batches]
        return [facts[at] for at in batch.tolist()]

    def header_maps(self) -> list[list[tuple[str, bytes | None]]]:
        return [list(dict(self.headers(row)).items()) for row in range(len(self))]

    def headers(self, row: int) -> list[tuple[str, bytes | None]]:
        start, end = (int(place) for place in self.places[row, HEADERS : HEADERS + 2])
        count, at = _varint(self.data, start, end)
        headers = []
        for _ in range(count):
            name, at = _text(self.data, at, end)
            value, at = _text(self.data, at, end)
            headers.append(((name or b"").decode(errors="replace"), value))
        return headers


@compiled
def _varint(data: NDArray[np.uint8], at: int, limit: int) -> tuple[int, int]:
    """The signed number at `at` and the position after it, -1 if it does not end before `limit`."""
    value, shift = 0, 0
    while 0 <= at < limit and shift < 64:
        byte = np.int64(data[at])
        value |= int(byte & 127) << shift
        at += 1
        if byte < 128:
            return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at
        shift += 7
    return 0, -1


def _text(data: NDArray[np.uint8], at: int, limit: int) -> tuple[bytes | None, int]:
    length, at = _varint(data, at, limit)
    if at < 0 or at + length > limit:
        raise RecordFormatError("a header does not end in its record")
    return (None, at) if length < 0 else (data[at : at + length].tobytes(), at + length)


@compiled
def _parse(data: NDArray[np.uint8], batches: NDArray[np.int64], places: NDArray[np.int64]) -> bool:
    """Splits batches into records; false if the lengths of a batch do not fit.

    `batches` has for each batch start and end of its body, first and last offset, time, a flag for
    timestamp deltas, and the number of records. `places` receives a row a record.
    """
    row = 0
    for batch in range(len(batches)):
        at, end, offset, last, time_ms, is_own_time, count = batches[batch]
        before = offset - 1
        for _ in range(count):
            length, at = _varint(data, at, end)
            stop = at + length
            if at < 0 or length < 0 or stop > end:
                return False
            later_ms, at = _varint(data, at + 1, stop)
            delta, at = _varint(data, at, stop)
            places[row, OFFSET] = offset + delta
            places[row, TIMESTAMP] = time_ms + is_own_time * later_ms
            for text in (KEY, VALUE):
                length, at = _varint(data, at, stop)
                places[row, text] = at if length >= 0 else -1
                at = at + max(length, 0) if at >= 0 else at
                places[row, text + 1] = at
            if at < 0 or at >= stop or not before < offset + delta <= last:
                return False
            before = offset + delta
            places[row, HEADERS], places[row, HEADERS + 1] = at, stop
            at, row = stop, row + 1
        if at != end:
            return False
    return True


def _whole_batches(data: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Header and body of each batch; omits a truncated last batch, which the next fetch repeats."""
    at = 0
    while (header := BatchHeader.at(data, at)) is not None:
        end = at + header.size
        if end > len(data):
            return
        if crc32c.crc32c(data[at + BatchHeader.CHECKED_FROM : end]) != header.checksum:
            raise RecordFormatError(f"the batch at offset {header.base_offset} is damaged")
        yield header, data[at + BatchHeader.SIZE : end]
        at = end


def _committed(
    batches: Iterable[tuple[BatchHeader, memoryview]], aborted: Sequence[tuple[int, int]]
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Batches without control batches and aborted transactions.

    An aborted (producer id, first offset) ends with the next control batch of its producer.
    """
    coming = sorted(aborted, key=lambda each: each[1], reverse=True)
    ended: set[int] = set()
    for header, body in batches:
        while coming and coming[-1][1] <= header.last_offset:
            ended.add(coming.pop()[0])
        if header.is_control:
            ended.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ended):
            yield header, body


def _plain(header: BatchHeader, body: memoryview, decompress: Decompress) -> bytes | memoryview:
    kind = header.compression
    plain = body if kind is Compression.NONE else decompress(kind, bytes(body))
    if not 0 <= header.records <= len(plain):
        said = f"{header.records} records in {len(plain)} bytes"
        raise RecordFormatError(f"the batch at offset {header.base_offset} has {said}")
    return plain


def decode(
    data: bytes | memoryview,
    bounds: tuple[int, int],
    aborted: Sequence[tuple[int, int]],
    decompress: Decompress,
) -> DecodedRecords:
    """The records with offsets from `bounds[0]` to before `bounds[1]`.

    `data` is one partition of a Fetch response, whose last batch may be truncated. `aborted` has
    (producer id, first offset) of aborted transactions; empty for `read_uncommitted`. Raises
    RecordFormatError if a batch is damaged, or older than format v2.
    """
    batches = list(_whole_batches(memoryview(data)))
    next_offset = batches[-1][0].last_offset + 1 if batches else None
    chosen = [
        (header, body)
        for header, body in _committed(batches, aborted)
        if header.base_offset < bounds[1] and header.last_offset >= bounds[0]
    ]
    bodies = [_plain(header, body, decompress) for header, body in chosen]
    joined = np.frombuffer(b"".join(bodies), np.uint8)
    table = np.empty((len(chosen), _TABLE), np.int64)
    end = 0
    for row, ((header, _), body) in enumerate(zip(chosen, bodies, strict=True)):
        start, end = end, end + len(body)
        time_ms = header.max_ms if header.is_append_time else header.base_ms
        offsets_of = header.base_offset, header.last_offset
        table[row] = start, end, *offsets_of, time_ms, not header.is_append_time, header.records
    places = np.empty((int(table[:, -1].sum()), _COLUMNS), np.int64)
    if not _parse(joined, table, places):
        raise RecordFormatError(f"records from offset {chosen[0][0].base_offset} on are damaged")
    offsets = places[:, OFFSET]
    kept = places[(offsets >= bounds[0]) & (offsets < bounds[1])]
    return DecodedRecords(joined, kept, next_offset, tuple(header for header, _ in chosen))


def warm_up() -> None:
    origin = BatchOrigin(-1, -1, -1)
    batch = record_batch(_EMPTY_RECORD, 1, Compression.NONE, 0, origin)
    with one_at_a_time():
        decode(batch, (0, 1), (), lambda _, body: body).texts(VALUE)
