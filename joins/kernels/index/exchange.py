"""The workers' steps of a shuffled lookup: packets in, packets out, records with their rows last.

1. `pack`: the records of a batch, chunk by chunk.
2. `ask`: the distinct keys of each chunk, by bucket.
3. `read_changelog` and `fold`: the visible rows of a version, by bucket of the join key.
4. `match`: in one bucket, the rows that each chunk has asked for.
5. `gather`: the records of a chunk with an index in memory of the rows that it has asked for.

What is joined in the end is what the kernel finds in that index, so the rows of step 4 may be more
than are needed, but each comes to a chunk once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from joins.kernels.changelog.changes import CHANGE_COLUMNS, Progress, read_changes
from joins.kernels.index.dimension_index import DimensionIndex
from joins.kernels.index.hash_table import Rows
from joins.kernels.index.packets import (
    PACKETS,
    RECORDS,
    body,
    chunk_of,
    in_buckets,
    in_chunks,
    packet,
    packets,
)
from joins.kernels.index.spec import IndexSpec
from joins.kernels.table_path import TablePath, readable

_READ_ROWS = 131_072
_NOWHERE = -1  # the partition of what no record has asked for

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class ShuffledRole:
    """A role whose rows come to the records.

    Attributes:
        ordinal: of its join in the statement.
        buckets: over which its keys are spread.
    """

    alias: str
    ordinal: int
    spec: IndexSpec
    buckets: int = 1


@dataclass(frozen=True, slots=True)
class Gathered:
    """Records of one chunk, and the rows that the chunk has asked for, by role's alias."""

    partition: int
    chunk: int
    records: pa.RecordBatch
    indexes: Mapping[str, DimensionIndex]


def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Records of the stream as packets."""
    for records in batches:
        yield from in_chunks(records)


def ask(
    parts: Iterable[Gathered],
    role: ShuffledRole,
    keys_of: Callable[[Gathered], Sequence[pa.Array]],
) -> Iterator[pa.RecordBatch]:
    """The distinct keys of `role` that each chunk of `parts` has, one packet a bucket."""
    for (partition, chunk), chunk_parts in groupby(parts, lambda p: (p.partition, p.chunk)):
        keys = _distinct([_key_table(keys_of(part), role.spec) for part in chunk_parts])
        for bucket, table in in_buckets(keys, keys, role.buckets):
            for whole in table.combine_chunks().to_batches():
                yield packet((role.ordinal, bucket, partition, chunk), whole)


def read_changelog(
    batches: Batches, root: TablePath, spec: IndexSpec, buckets: int
) -> Iterator[pa.RecordBatch]:
    """The rows of changelog files, whose `path` the batches name, by bucket of the primary key.

    Every bucket gets the watermark records.
    """
    columns = [*spec.schema.names, *CHANGE_COLUMNS]
    for path in (path for batch in batches for path in batch.column("path").to_pylist()):
        with pq.ParquetFile(readable(root / path)) as file:
            for batch in file.iter_batches(_READ_ROWS, columns=columns):
                yield from _spread(pa.Table.from_batches([batch]), spec, buckets)


def _spread(rows: pa.Table, spec: IndexSpec, buckets: int) -> Iterator[pa.RecordBatch]:
    marks = pc.equal(rows.column("_op"), "w")
    if pc.any(marks, min_count=0).as_py():
        for bucket in range(buckets):
            yield from packets((0, bucket, _NOWHERE, 0), rows.filter(marks))
        rows = rows.filter(pc.invert(marks))
    typed = pa.schema([spec.schema.field(name) for name in spec.primary_key])
    keys = rows.select(typed.names).cast(typed)
    for bucket, taken in in_buckets(rows, keys, buckets):
        yield from packets((0, bucket, _NOWHERE, 0), taken)


def fold(batches: Batches, spec: IndexSpec, buckets: int) -> Iterator[pa.RecordBatch]:
    """The visible rows of buckets of the primary key, in packets by bucket of the join key.

    `batches` has each bucket in one piece.
    """
    for _, changes in groupby(_bodies(batches), lambda pair: pair[0]):
        rows = read_changes((rows for _, rows in changes), spec, Progress()).visible(spec)
        for bucket, table in in_buckets(rows, rows.select(list(spec.join_key)), buckets):
            yield from packets((0, bucket, _NOWHERE, 0), table)


def match(keys: pa.Table, rows: pa.Table, role: ShuffledRole) -> pa.Table:
    """In one bucket: of the packets `rows` of the dimension those that the packets of `keys` ask.

    Each row once a chunk.
    """
    if keys.num_rows == 0 or rows.num_rows == 0:
        return PACKETS.empty_table()
    held = pa.Table.from_batches([held for _, held in _bodies(rows.to_batches())])
    index = DimensionIndex.of_rows(held, role.spec)
    rows_of_packets: dict[tuple[int, int], list[Rows]] = {}
    for key_batch in keys.to_batches():
        for at in range(key_batch.num_rows):
            chunk = key_batch["partition"][at].as_py(), key_batch["offset"][at].as_py()
            _, matches = index.lookup(body(key_batch, at).columns)
            rows_of_packets.setdefault(chunk, []).append(matches)
    answers: list[pa.RecordBatch] = []
    for (partition, offset), parts in rows_of_packets.items():
        taken = index.take(np.unique(np.concatenate(parts)), role.spec.schema.names)
        place = (role.ordinal, 0, partition, offset)
        answers.extend(packets(place, pa.Table.from_batches([taken])))
    return pa.Table.from_batches(answers, schema=PACKETS)


def gather(batches: Batches, roles: Sequence[ShuffledRole]) -> Iterator[Gathered]:
    """The records in `batches`, each chunk with what it has asked for.

    `batches` is in the order of partition, offset, role.
    """
    chunk = _Chunk((_NOWHERE, 0), roles)
    for batch in batches:
        for at in range(batch.num_rows):
            ordinal, _, partition, offset = (column[at].as_py() for column in batch.columns[:4])
            place = (partition, chunk_of(offset))
            if place != chunk.place:
                chunk = _Chunk(place, roles)
            carried = body(batch, at)
            if ordinal == RECORDS:
                yield Gathered(*place, carried, chunk.indexes())
            else:
                chunk.rows.setdefault(ordinal, []).append(carried)


@dataclass(slots=True)
class _Chunk:
    """What came for one chunk; its rows are all there when its first records come."""

    place: tuple[int, int]
    roles: Sequence[ShuffledRole]
    rows: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    made: dict[str, DimensionIndex] | None = None

    def indexes(self) -> Mapping[str, DimensionIndex]:
        if self.made is None:
            self.made = {
                role.alias: DimensionIndex.of_rows(
                    pa.Table.from_batches(self.rows.pop(role.ordinal, []), role.spec.schema),
                    role.spec,
                )
                for role in self.roles
            }
        return self.made


def _bodies(batches: Batches) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(bucket, what it carries) of each packet."""
    for batch in batches:
        for at in range(batch.num_rows):
            yield batch.column("bucket")[at].as_py(), body(batch, at)


def _key_table(keys: Sequence[pa.Array], spec: IndexSpec) -> pa.Table:
    kinds = [spec.schema.field(name).type for name in spec.join_key]
    cast = [key.cast(kind) for key, kind in zip(keys, kinds, strict=True)]
    return pa.table(cast, names=[f"key{at}" for at in range(len(cast))])


def _distinct(tables: Sequence[pa.Table]) -> pa.Table:
    whole = pa.concat_tables(tables)
    return whole.group_by(whole.column_names, use_threads=False).aggregate([])
