"""A segment of a lookup index: the newest rows of some keys, with hash tables, immutable on disk.

Three kinds of files, each written, checksummed, fsynced and renamed before anybody maps it:
`<name>.arrow` (an Arrow IPC file of one batch: kept columns, position, generation, `_deleted`),
`<name>.primary` and, unless the join key is the primary key, `<name>.join` (hash tables).
"""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

import crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.errors import IndexBuildError
from joins.kernels.casts import Mask
from joins.kernels.hashing import Hashes, hash_rows, valid_rows
from joins.kernels.index_spec import IndexSpec
from joins.kernels.room import Room

Rows = npt.NDArray[np.int64]

POSITION = ("_epoch", "_file", "_pos", "_row", "_offset")
_HEADER_BYTES = 16
_LARGE_BYTES = (1 << 31) - 1
_READ_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A complete file below the index's directory, as the manifest remembers it."""

    name: str
    size: int
    checksum: int


@dataclass(frozen=True, slots=True)
class HashTable:
    """Rows by the hash of their key.

    Bucket `b` is `[starts[b], starts[b + 1])` of the other two arrays; it is the upper bits of the
    hash, and entries are in the order of their hashes.
    """

    starts: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]
    hashes: Hashes

    @classmethod
    def of(cls, columns: Sequence[pa.Array], null_safe: Collection[int] = ()) -> Self:
        """A table of the rows that have no NULL but in the columns at the positions `null_safe`."""
        rows = np.flatnonzero(valid_rows(columns, null_safe))
        hashes = hash_rows(columns)[rows]
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        buckets = 1 << max(1, len(rows).bit_length())
        shift = np.uint64(64 - buckets.bit_length() + 1)
        filled = np.bincount((hashes >> shift).astype(np.int64), minlength=buckets)
        starts = np.zeros(buckets + 1, dtype=np.uint32)
        np.cumsum(filled, out=starts[1:])
        return cls(starts, rows[order].astype(np.uint32), hashes)

    @classmethod
    def map(cls, path: Path) -> Self:
        """The table in the file at `path`, memory-mapped."""
        data = np.memmap(path, dtype=np.uint8, mode="r")
        buckets, entries = (int(item) for item in data[:_HEADER_BYTES].view(np.uint64))
        rows_at = _HEADER_BYTES + 8 * entries
        starts_at = rows_at + 4 * entries
        end = starts_at + 4 * (buckets + 1)
        return cls(
            np.asarray(data[starts_at:end].view(np.uint32)),
            np.asarray(data[rows_at:starts_at].view(np.uint32)),
            np.asarray(data[_HEADER_BYTES:rows_at].view(np.uint64)),
        )

    def write(self, sink: BinaryIO) -> None:
        """Write what `map` reads."""
        header = np.array([len(self.starts) - 1, len(self.rows)], dtype=np.uint64)
        for array in (header, self.hashes, self.rows, self.starts):
            sink.write(np.ascontiguousarray(array).data)

    @staticmethod
    def size(rows: int) -> int:
        """Bytes of the file of a table of `rows` rows, if all of them are in it."""
        return _HEADER_BYTES + 12 * rows + 4 * ((1 << max(1, rows.bit_length())) + 1)

    def candidates(self, hashes: Hashes) -> tuple[Rows, Rows]:
        """Pairs (position in `hashes`, row) with equal hashes, ordered by position."""
        shift = np.uint64(64 - (len(self.starts) - 1).bit_length() + 1)
        buckets = (hashes >> shift).astype(np.int64)
        first = self.starts[buckets].astype(np.int64)
        counts = self.starts[buckets + 1].astype(np.int64) - first
        probes = np.repeat(np.arange(len(hashes)), counts)
        skipped = np.cumsum(counts) - counts
        entries = np.arange(len(probes)) + np.repeat(first - skipped, counts)
        equal = np.flatnonzero(self.hashes[entries] == hashes[probes])
        return probes[equal], self.rows[entries[equal]].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Segment:
    """The mapped files of one segment."""

    rows: pa.RecordBatch
    primary: HashTable
    join: HashTable

    @classmethod
    def map(cls, directory: Path, name: str) -> Self:
        """Map the complete files of segment `name`.

        Raises:
            IndexBuildError: a file is missing or is not what it should be.
        """
        try:
            source = pa.memory_map(str(directory / f"{name}.arrow"))
            rows = pa.ipc.open_file(source).get_batch(0)
            primary = HashTable.map(directory / f"{name}.primary")
            own = directory / f"{name}.join"
            join = HashTable.map(own) if own.exists() else primary
        except (OSError, ValueError, pa.ArrowInvalid) as error:
            raise damaged(directory / name, str(error)) from error
        return cls(rows, primary, join)

    def positions(self, rows: Rows) -> list[Rows]:
        """The position of each of `rows`, most significant part first."""
        return [self.rows.column(part).to_numpy()[rows] for part in POSITION]

    def matches(
        self, table: HashTable, names: Sequence[str], keys: Sequence[pa.Array], hashes: Hashes
    ) -> tuple[Rows, Rows]:
        """Pairs (position in `keys`, row) whose `names` equal `keys`.

        NULL equals NULL: rows that must not match by it are not in `table`, nor in `keys`.
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
    """Write the files of a segment from `table`, with a hash table for each key of `spec`.

    Raises:
        IndexDiskFullError: there is no room for them.
    """
    batch = _one_batch(table)
    tables = 1 if spec.join_key == spec.primary_key else 2
    room = Room(directory, batch.nbytes + tables * HashTable.size(batch.num_rows))
    room.check()

    def write_rows(sink: BinaryIO) -> None:
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    stored = [store(directory / f"{name}.arrow", write_rows, room)]
    hashed = HashTable.of([batch.column(key) for key in spec.primary_key])
    stored.append(store(directory / f"{name}.primary", hashed.write, room))
    if spec.join_key != spec.primary_key:
        hashed = HashTable.of([batch.column(key) for key in spec.join_key], spec.null_safe)
        stored.append(store(directory / f"{name}.join", hashed.write, room))
    return tuple(stored)


def store(path: Path, write: Callable[[BinaryIO], None], room: Room | None = None) -> StoredFile:
    """Let `write` fill a file that appears at `path` only when it is complete and on disk.

    Raises:
        IndexDiskFullError: there is no room; `room` tells how much is needed.
        IndexDirectoryError: it cannot be written for another reason.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as sink:
            write(sink)
            sink.flush()
            os.fsync(sink.fileno())
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


def sync_directory(directory: Path) -> None:
    """Make renames below `directory` durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def damaged(path: Path, reason: str) -> IndexBuildError:
    """The error for a file that cannot be used."""
    return IndexBuildError(
        f'index file "{path}" cannot be read: {reason}',
        hint="Build the index of this version again from the changelog.",
    )


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """The table as one contiguous batch, with 64-bit offsets where 32 bits are too few."""
    schema = table.schema
    for at, item in enumerate(schema):
        if table.column(at).nbytes < _LARGE_BYTES:
            continue
        if pa.types.is_string(item.type):
            schema = schema.set(at, item.with_type(pa.large_string()))
        elif pa.types.is_binary(item.type):
            schema = schema.set(at, item.with_type(pa.large_binary()))
    columns = [column.combine_chunks() for column in table.cast(schema).columns]
    arrays = [_single(column) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


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
    wanted = key.take(pa.array(probes)).cast(taken.type)
    filled = pc.fill_null(pc.equal(taken, wanted), False)
    if taken.null_count and wanted.null_count:
        filled = pc.or_(filled, pc.and_(taken.is_null(), wanted.is_null()))
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
    """The bitmap that `store_bits` wrote, memory-mapped.

    Raises:
        IndexBuildError: it is missing.
    """
    try:
        if path.stat().st_size == 0:
            return np.zeros(0, dtype=np.uint8)
        return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    except OSError as error:
        raise damaged(path, str(error)) from error


def bits_at(bits: npt.NDArray[np.uint8], rows: Rows) -> npt.NDArray[np.uint8]:
    """The bits of `rows`, 0 or 1."""
    found: npt.NDArray[np.uint8] = (bits[rows >> 3] >> (7 - (rows & 7)).astype(np.uint8)) & 1
    return found


def taken(columns: Sequence[pa.Array], rows: Rows) -> list[pa.Array]:
    """Each of `columns` at `rows`."""
    at = pa.array(rows)
    return [column.take(at) for column in columns]
