"""A segment of a lookup index: the newest rows of some keys, with hash tables, immutable on disk.

Each file is written, checksummed and renamed before it is mapped: `<name>.arrow` (an Arrow
IPC file of one batch: kept columns and `_deleted`), `<name>.positions` (packed position and
generation, which no lookup reads), `<name>.primary` and, unless the join key is the primary key,
`<name>.join` (hash tables).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

import crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Mask
from joins.kernels.index.hash_table import (
    Hashes,
    HashTable,
    PackedColumn,
    Rows,
    map_arrays,
    write_arrays,
)
from joins.kernels.index.lock import Room
from joins.plan.errors import IndexBuildError
from joins.plan.plan import ComputedField, Field
from joins.plan.types import arrow_type


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """One index of a dimension; several may share a directory."""

    primary_key: tuple[str, ...]
    join_key: tuple[str, ...]  # columns that `lookup` gets, in order; not necessarily unique
    fields: tuple[Field, ...]  # the kept columns, including both keys
    # of the changelog topic. A generation is complete when each of them has given a watermark
    # record of it or of a later one.
    partitions: int
    # positions in `join_key` where NULL matches NULL; elsewhere it matches nothing
    null_safe: tuple[int, ...] = ()
    # rowtime column of a versioned index, where every (primary key, rowtime) is a row, including
    # deletions. None keeps the newest rows only.
    versioned: str | None = None
    # versions that end before it are no longer looked up; None keeps all. Not part of the index's
    # identity.
    needed_from_ms: int | None = field(default=None, compare=False)
    # further columns of `join_key`, computed of `fields`
    computed: tuple[ComputedField, ...] = ()

    @property
    def identity(self) -> tuple[str, ...]:
        if self.versioned is None or self.versioned in self.primary_key:
            return self.primary_key
        return (*self.primary_key, self.versioned)

    @property
    def digest(self) -> str:
        """Name of the index's directory: equal for equal specifications, on every node."""
        fields = [(item.name, str(arrow_type(item.type))) for item in self.fields]
        content: list[Any] = [self.primary_key, self.join_key, fields, self.partitions]
        if self.null_safe or self.versioned is not None:
            content.append(self.null_safe)
        if self.versioned is not None:
            content.append((self.versioned, "in order of position"))
        if self.computed:
            content.append([(item.name, repr(item.expression)) for item in self.computed])
        text = json.dumps(content)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(item.name, arrow_type(item.type)) for item in self.fields])

    @property
    def kept(self) -> pa.Schema:
        """`schema` and the computed columns."""
        computed = [(item.name, arrow_type(item.expression.type)) for item in self.computed]
        return pa.schema([*self.schema, *computed])

    @property
    def join_is_unique(self) -> bool:
        return set(self.identity) <= set(self.join_key)


Bits = npt.NDArray[np.uint8]

POSITION = ("_epoch", "_file", "_pos", "_row", "_offset")
_PACKED = {
    "_epoch": pa.int32(),
    "_file": pa.int64(),
    "_pos": pa.int64(),
    "_row": pa.int64(),
    "_offset": pa.int64(),
    "_generation": pa.int32(),
}
_ARRAYS = 5  # of a packed column
_LARGE_BYTES = (1 << 31) - 1
_READ_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A complete file below the index's directory, as in the manifest."""

    name: str
    size: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Segment:
    """The mapped files of one segment; `rows` has the kept columns and `_deleted`.

    `packed` has the parts of the position, and `_generation`.
    """

    rows: pa.RecordBatch
    packed: Mapping[str, PackedColumn]
    primary: HashTable
    join: HashTable

    @classmethod
    def map(cls, directory: Path, name: str) -> Self:
        """Map segment `name`; raises IndexBuildError if a file is missing or invalid."""
        try:
            source = pa.memory_map(str(directory / f"{name}.arrow"))
            rows = pa.ipc.open_file(source).get_batch(0)
            arrays = map_arrays(directory / f"{name}.positions")
            groups = [arrays[at : at + _ARRAYS] for at in range(0, len(arrays), _ARRAYS)]
            packed = dict(zip(_PACKED, map(PackedColumn.of_arrays, groups), strict=True))
            primary = HashTable.map(directory / f"{name}.primary")
            own = directory / f"{name}.join"
            join = HashTable.map(own) if own.exists() else primary
        except (OSError, ValueError, pa.ArrowInvalid) as error:
            raise damaged(directory / name, str(error)) from error
        return cls(rows, packed, primary, join)

    def positions(self, rows: Rows) -> list[Rows]:
        return [self.packed[part].at(rows) for part in POSITION]

    def deleted(self) -> Mask:
        column = self.rows.column("_deleted")
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.bool_)

    def deleted_at(self, rows: Rows) -> Mask:
        """Mask of deletes among `rows`; reads no other rows."""
        column = self.rows.column("_deleted")
        bits = np.frombuffer(column.buffers()[1], dtype=np.uint8)
        at = rows + column.offset
        is_deleted: Mask = (bits[at >> 3] >> (at & 7).astype(np.uint8)) & 1 == 1
        return is_deleted

    def generations_at(self, rows: Rows) -> Rows:
        return self.packed["_generation"].at(rows)

    def oldest_generation(self) -> int:
        return int(self.packed["_generation"].bases.min())

    def generations(self) -> Rows:
        return self.packed["_generation"].all()

    def table(self) -> pa.Table:
        table = pa.Table.from_batches([self.rows])
        for name, kind in _PACKED.items():
            table = table.append_column(name, pa.array(self.packed[name].all(), kind))
        return table

    def matches(
        self, table: HashTable, names: Sequence[str], keys: Sequence[pa.Array], hashes: Hashes
    ) -> tuple[Rows, Rows]:
        """Pairs (position in `keys`, row) whose `names` equal `keys`.

        NULL equals NULL: rows that must not match by it are in neither `table` nor `keys`.
        """
        probes, rows = table.candidates(hashes)
        for name, key in zip(names, keys, strict=True):
            equal = _equal(self.rows.column(name), rows, key, probes)
            if not equal.all():
                probes, rows = probes[equal], rows[equal]
        return probes, rows


def write_segment(
    directory: Path, name: str, table: pa.Table, spec: IndexSpec
) -> tuple[StoredFile, ...]:
    """Write a segment with a hash table for each key; raises IndexDiskFullError."""
    batch = _one_batch(table.drop_columns(list(_PACKED)))
    packed = [PackedColumn.of(_numbers(table, part)) for part in _PACKED]
    tables = {"primary": HashTable.of([batch.column(key) for key in spec.identity])}
    if spec.join_key != spec.identity:
        keys = [batch.column(key) for key in spec.join_key]
        tables["join"] = HashTable.of(keys, spec.null_safe)
    needed = batch.nbytes + sum(column.nbytes for column in packed)
    room = Room(directory, needed + sum(hashed.nbytes for hashed in tables.values()))
    room.check()

    def write_rows(sink: BinaryIO) -> None:
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    def write_packed(sink: BinaryIO) -> None:
        write_arrays(sink, [array for column in packed for array in column.arrays])

    stored = [store(directory / f"{name}.arrow", write_rows, room)]
    stored.append(store(directory / f"{name}.positions", write_packed, room))
    for kind, hashed in tables.items():
        stored.append(store(directory / f"{name}.{kind}", hashed.write, room))
    return tuple(stored)


def _numbers(table: pa.Table, name: str) -> Rows:
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)


def store(path: Path, write: Callable[[BinaryIO], None], room: Room | None = None) -> StoredFile:
    """Let `write` fill a file that appears at `path` only when it is complete.

    Raises IndexDiskFullError (`room` says how much is needed) or IndexDirectoryError.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as sink:
            write(sink)
        size, checksum = partial.stat().st_size, file_checksum(partial)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise (room or Room(path.parent)).error(error) from error
    return StoredFile(path.name, size, checksum)


def file_checksum(path: Path) -> int:
    """CRC-32C of the file's bytes."""
    checksum = 0
    with path.open("rb") as source:
        while piece := source.read(_READ_BYTES):
            checksum = crc32c.crc32c(piece, checksum)
    return checksum


def damaged(path: Path, reason: str) -> IndexBuildError:
    return IndexBuildError(
        f'index file "{path}" cannot be read: {reason}',
        hint="Build the index of this version again from the changelog.",
    )


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """The table as one contiguous batch, with 64-bit offsets where 32 bits are too few."""
    schema = table.schema
    for at, item in enumerate(schema):
        if table.column(at).nbytes >= _LARGE_BYTES:
            schema = schema.set(at, item.with_type(_large(item.type)))
    columns = [column.combine_chunks() for column in table.cast(schema).columns]
    arrays = [_single(column) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _large(kind: pa.DataType) -> pa.DataType:
    """The type with 64-bit offsets; maps keep theirs, which count entries."""
    if pa.types.is_struct(kind):
        return pa.struct([item.with_type(_large(item.type)) for item in kind])
    if pa.types.is_list(kind):
        return pa.large_list(kind.value_field.with_type(_large(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_large(kind.key_type), _large(kind.item_type))
    if pa.types.is_string(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(kind) else kind


def _single(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    return column


def _equal(column: pa.Array, rows: Rows, key: pa.Array, probes: Rows) -> npt.NDArray[np.bool_]:
    if _plain_integers(column) and _plain_integers(key):
        left, right = column.to_numpy(), key.to_numpy()
        equal: npt.NDArray[np.bool_] = left[rows] == right[probes]
        return equal
    taken = column.take(pa.array(rows))
    key_values = key.take(pa.array(probes)).cast(taken.type)
    filled = pc.fill_null(pc.equal(taken, key_values), False)
    if taken.null_count and key_values.null_count:
        filled = pc.or_(filled, pc.and_(taken.is_null(), key_values.is_null()))
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _plain_integers(column: pa.Array) -> bool:
    return bool(pa.types.is_integer(column.type)) and column.null_count == 0


def store_bits(home: Path, name: str, hidden: Mask) -> StoredFile:
    """Store a bitmap of hidden rows, one bit a row, the highest bit first."""
    packed = np.packbits(hidden)

    def write(sink: BinaryIO) -> None:
        sink.write(packed.data)

    return store(home / f"{name}.hidden", write)


def map_bits(path: Path) -> npt.NDArray[np.uint8]:
    """Map a bitmap of `store_bits`; raises IndexBuildError if it is missing."""
    try:
        if path.stat().st_size == 0:
            return np.zeros(0, dtype=np.uint8)
        return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    except OSError as error:
        raise damaged(path, str(error)) from error


def bits_at(bits: npt.NDArray[np.uint8], rows: Rows) -> npt.NDArray[np.uint8]:
    bits_of_rows: npt.NDArray[np.uint8] = (bits[rows >> 3] >> (7 - (rows & 7)).astype(np.uint8)) & 1
    return bits_of_rows


def taken(columns: Sequence[pa.Array], rows: Rows) -> list[pa.Array]:
    at = pa.array(rows)
    return [column.take(at) for column in columns]
