"""Packets: Arrow batches as single values, so that a shuffle moves few rows of many bytes.

A packet is a row of `PACKETS`; its body is an Arrow IPC stream of one batch.

| what | role | bucket | partition, offset |
|---|---|---|---|
| records of the stream | `RECORDS` | | their Kafka partition, the offset of the first |
| keys that a chunk of records asks for | ordinal of the join | of the keys | of the chunk |
| rows of a dimension, or of its changelog | | of the rows | |
| rows that a chunk has asked for | ordinal of the join | | of the chunk |

A *chunk* is what a partition has in a fixed range of offsets, so a record is in the same one
whenever it is read. A *bucket* has the rows whose keys' hashes are equal modulo their number.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.expressions.casts import whole
from joins.kernels.index.hashing import hash_rows

PACKETS = pa.schema(
    [
        ("role", pa.int32()),
        ("bucket", pa.int32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("body", pa.binary()),
    ]
)
PACKETS_DDL = "role int, bucket int, partition int, offset bigint, body binary"
RECORDS = 1 << 20  # sorts behind every join
CHUNK_OFFSETS = 65_536
_BODY_BYTES = 8 << 20  # small beside the heap of a JVM, large beside what a row costs there

Place = tuple[int, int, int, int]


def packet(place: Place, batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` as one packet at (role, bucket, partition, offset)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    values = [[value] for value in (*place, sink.getvalue().to_pybytes())]
    columns = [pa.array(value, item.type) for value, item in zip(values, PACKETS, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=PACKETS)


def packets(place: Place, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """`table` as packets of a bounded size; none if it is empty."""
    if table.num_rows:
        rows = max(1, table.num_rows * _BODY_BYTES // max(1, table.nbytes))
        for batch in table.combine_chunks().to_batches(rows):
            yield packet(place, batch)


def body(batch: pa.RecordBatch, row: int) -> pa.RecordBatch:
    """What the packet in `row` carries."""
    with pa.ipc.open_stream(batch.column("body")[row].as_buffer()) as reader:
        return reader.read_next_batch()


def in_buckets(table: pa.Table, keys: pa.Table, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of `table` by the bucket of their `keys`; NULL is a value like others."""
    if table.num_rows == 0:
        return
    numbers = hash_rows([whole(column) for column in keys.columns]) % np.uint64(buckets)
    order = np.argsort(numbers, kind="stable")
    ordered = table.take(pa.array(order)).combine_chunks()
    for start, end in _runs(numbers[order]):
        yield int(numbers[order[start]]), ordered.slice(start, end - start)


def in_chunks(records: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Records of the stream in packets, in their order."""
    if records.num_rows == 0:
        return
    chunk = records.column("offset").to_numpy() // CHUNK_OFFSETS
    for start, end in _runs(records.column("partition").to_numpy(), chunk):
        yield from _sliced(records.slice(start, end - start))


def chunk_of(offset: int) -> int:
    """The first offset of the chunk that has the record at `offset`."""
    return offset - offset % CHUNK_OFFSETS


def _sliced(records: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, records.num_rows * _BODY_BYTES // max(1, records.nbytes))
    for start in range(0, records.num_rows, rows):
        part = records.slice(start, rows)
        first = part.column("offset")[0].as_py()
        yield packet((RECORDS, 0, part.column("partition")[0].as_py(), first), part)


def _runs(*columns: npt.NDArray[np.integer[Any]]) -> Iterator[tuple[int, int]]:
    """The (start, end) of each run of equal values."""
    changed = np.zeros(len(columns[0]) - 1, dtype=np.bool_)
    for column in columns:
        changed |= column[1:] != column[:-1]
    bounds = [0, *(np.flatnonzero(changed) + 1).tolist(), len(columns[0])]
    return pairwise(bounds)
