"""One version of a dimension's rows to look up, and its manifest.

The manifest is written last: a version is usable when it exists.
"""

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.ticks import micros, rowtimes
from joins.kernels.changelog.changes import Progress
from joins.kernels.index.asof import ended_by_copy, valid_at
from joins.kernels.index.hash_table import Hashes, Rows, hash_rows, valid_rows
from joins.kernels.index.segment import (
    Bits,
    IndexSpec,
    Segment,
    StoredFile,
    bits_at,
    damaged,
    map_bits,
    store,
    taken,
)
from joins.kernels.local_files import node_start
from joins.plan.errors import IndexBuildError

FORMAT_VERSION = 3  # of the manifest and of the files; an index of another version is rebuilt


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment of a version, and the bitmap of rows that this version hides.

    `name` has no suffix; `rows` includes hidden rows, `visible` does not.
    """

    name: str
    rows: int
    files: tuple[StoredFile, ...]
    hidden: StoredFile
    visible: int

    @property
    def all_files(self) -> tuple[StoredFile, ...]:
        return (*self.files, self.hidden)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a version, oldest segment first."""

    version: int
    segments: tuple[SegmentEntry, ...]
    progress: Progress


def manifest_path(directory: Path, version: int) -> Path:
    return directory / f"v{version}.json"


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Make the version usable on this node until it starts again: nothing is synced."""
    marks = [[*key, offset] for key, offset in sorted(manifest.progress.watermarks.items())]
    body = json.dumps(
        {
            "format": FORMAT_VERSION,
            "version": manifest.version,
            "node_start": node_start(),
            "segments": [
                {
                    "name": entry.name,
                    "rows": entry.rows,
                    "visible": entry.visible,
                    "files": [astuple(file) for file in entry.files],
                    "hidden": astuple(entry.hidden),
                }
                for entry in manifest.segments
            ],
            "watermarks": marks,
            "floor": sorted([at, *position] for at, position in manifest.progress.floor.items()),
        }
    )
    text = json.dumps({"crc": zlib.crc32(body.encode()), "body": body}).encode()

    def write(sink: BinaryIO) -> None:
        sink.write(text)

    store(manifest_path(directory, manifest.version), write)


def read_manifest(directory: Path, version: int, *, is_checked: bool = False) -> Manifest:
    """The manifest of `version`; raises IndexBuildError if it or a file is bad or missing.

    So is one from before the node started, whose files may have lost bytes, unless the caller
    compares all checksums (`is_checked`).
    """
    path = manifest_path(directory, version)
    try:
        outer = json.loads(path.read_bytes())
        body = outer["body"]
        if zlib.crc32(body.encode()) != outer["crc"]:
            raise damaged(path, "its checksum differs")
        content = json.loads(body)
        if content["format"] != FORMAT_VERSION:
            raise damaged(path, f"format {content['format']} in place of {FORMAT_VERSION}")
        manifest = _manifest(content)
        if not is_checked and content["node_start"] != node_start():
            raise damaged(path, "the node has started again since it was written")
    except FileNotFoundError as error:
        raise IndexBuildError(
            f'index version {version} is not in "{directory}"',
            hint="Build the index of this version from the changelog.",
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, str(error)) from error
    for entry in manifest.segments:
        for file in entry.all_files:
            _check_size(directory, file)
    return manifest


def _check_size(directory: Path, file: StoredFile) -> None:
    path = directory / file.name
    try:
        size = path.stat().st_size
    except OSError as error:
        raise damaged(path, str(error)) from error
    if size != file.size:
        raise damaged(path, f"{size} bytes in place of {file.size}")


def _manifest(content: dict[str, Any]) -> Manifest:
    segments = tuple(
        SegmentEntry(
            name=item["name"],
            rows=item["rows"],
            files=tuple(StoredFile(*file) for file in item["files"]),
            hidden=StoredFile(*item["hidden"]),
            visible=item["visible"],
        )
        for item in content["segments"]
    )
    marks = {(part, gen): offset for part, gen, offset in content["watermarks"]}
    floor = {at: (e, f, p, r) for at, e, f, p, r in content.get("floor", ())}
    return Manifest(content["version"], segments, Progress(marks, floor))


_CACHED_VERSIONS = 16


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Rows of an index by segment, the largest first; `missing` marks rows of NULLs.

    Reading the largest in order and inserting the few others is four times as fast as a sort by
    segment. `order` is the position of each row in the concatenated parts, None with one part.
    """

    parts: Sequence[tuple[Segment, pa.Array]]
    order: pa.Array | None
    missing: pa.BooleanArray | None

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        chunks = [segment.rows.column(name).take(at).cast(kind) for segment, at in self.parts]
        whole = chunks[0] if self.order is None else pa.concat_arrays(chunks).take(self.order)
        if self.missing is None:
            return whole
        return pc.if_else(self.missing, pa.scalar(None, kind), whole)


class DimensionIndex:
    """Segments of a dimension's rows; immutable and safe to share between threads."""

    _cache: ClassVar[OrderedDict[tuple[str, int, int, int], "DimensionIndex"]] = OrderedDict()
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        hidden: Sequence[Bits],
        complete: int = -1,
        files: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.spec = spec
        self._complete = complete  # the greatest complete generation
        self._files = files  # of each segment: its name, and the name of its bitmap
        self._segments = segments
        self._hidden = hidden
        rows = [segment.rows.num_rows for segment in segments]
        self._first = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)

    @classmethod
    def _map(cls, home: Path, manifest: Manifest, spec: IndexSpec) -> Self:
        segments = [Segment.map(home, entry.name) for entry in manifest.segments]
        hidden = [map_bits(home / entry.hidden.name) for entry in manifest.segments]
        complete = manifest.progress.complete_generation(spec.partitions)
        files = [(entry.name, entry.hidden.name) for entry in manifest.segments]
        return cls(spec, segments, hidden, complete, files)

    def changed_since(self, older: "DimensionIndex") -> "ChangedKeys":
        known = set(older._files)
        new = [at for at, files in enumerate(self._files) if files not in known]
        segments, hidden = [self._segments[at] for at in new], [self._hidden[at] for at in new]
        keys = [[each.rows.column(name) for name in self.spec.join_key] for each in segments]
        return ChangedKeys(DimensionIndex(self.spec, segments, hidden, self._complete), keys)

    @property
    def num_rows(self) -> int:
        pairs = zip(self._segments, self._hidden, strict=True)
        return sum(
            segment.rows.num_rows - int(np.unpackbits(hidden)[: segment.rows.num_rows].sum())
            for segment, hidden in pairs
        )

    @classmethod
    def attach(cls, directory: Path, version: int, spec: IndexSpec) -> "DimensionIndex":
        """Map `version`: milliseconds, then cached; raises IndexBuildError if it is unusable."""
        home = directory / spec.digest
        try:
            written = manifest_path(home, version).stat()
        except OSError:
            written = None
        key = (str(home), version, *((written.st_ino, written.st_mtime_ns) if written else (0, 0)))
        with cls._lock:
            known = cls._cache.get(key)
            if known is None:
                known = cls._map(home, read_manifest(home, version), spec)
                cls._cache[key] = known
            cls._cache.move_to_end(key)
            while len(cls._cache) > _CACHED_VERSIONS:
                cls._cache.popitem(last=False)
        return known

    def lookup(self, keys: Sequence[pa.Array]) -> tuple[Rows, Rows]:
        """All matches as (position in `keys`, dimension row), by position, then by primary key.

        `keys` has one array for each column of the join key. NULL matches nothing, except at the
        positions `null_safe` of the spec, where it matches NULL. The order does not depend on the
        segments; the row numbers do. A versioned index gives all versions, including deletions,
        ordered by rowtime within a primary key.
        """
        valid, probes, rows = self._matches(keys)
        if self.spec.join_is_unique or not (probes[1:] == probes[:-1]).any():
            return valid[probes], rows
        return self._sorted(valid[probes], rows)

    def lookup_at(self, keys: Sequence[pa.Array], times_ms: Rows) -> tuple[Rows, Rows]:
        """For each primary key the row valid at its time (epoch ms), in a versioned index."""
        valid, probes, rows = self._matches(keys)
        since = self._gathered(rows, self._since)
        at = valid_at(probes, since, micros(times_ms)[valid])
        at = at[self._gathered(rows[at], Segment.deleted_at) == 0]
        if self._has_older_copies:
            generations = self._gathered(rows, Segment.generations_at)
            at = at[~ended_by_copy(probes, since, generations, self._complete)[at]]
        return valid[probes[at]], rows[at]

    def _matches(self, keys: Sequence[pa.Array]) -> tuple[Rows, Rows, Rows]:
        """The usable positions in `keys`, and all visible matches, by position among those."""
        columns = self.as_kept(keys)
        valid = np.flatnonzero(valid_rows(columns, self.spec.null_safe))
        hashes = hash_rows(columns)[valid]
        usable = columns if len(valid) == len(columns[0]) else taken(columns, valid)
        if self.spec.join_is_unique:
            return valid, *self._only_matches(usable, hashes)
        numbers = range(len(self._segments))
        matches = [self._visible(number, usable, hashes) for number in numbers]
        if not matches:
            return valid, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        probes = np.concatenate([pair[0] for pair in matches])
        rows = np.concatenate([pair[1] for pair in matches])
        if len(matches) > 1:
            order = np.argsort(probes, kind="stable")
            probes, rows = probes[order], rows[order]
        return valid, probes, rows

    def as_kept(self, keys: Sequence[pa.Array]) -> list[pa.Array]:
        """`keys` in the types of the join key's columns."""
        schema = self.spec.kept
        expected = [schema.field(name).type for name in self.spec.join_key]
        return [
            key if key.type.equals(kind) else key.cast(kind)
            for key, kind in zip(keys, expected, strict=True)
        ]

    def _visible(self, number: int, keys: Sequence[pa.Array], hashes: Hashes) -> tuple[Rows, Rows]:
        segment = self._segments[number]
        probes, rows = segment.matches(segment.join, self.spec.join_key, keys, hashes)
        visible = bits_at(self._hidden[number], rows) == 0
        return probes[visible], rows[visible] + self._first[number]

    def _only_matches(self, keys: Sequence[pa.Array], hashes: Hashes) -> tuple[Rows, Rows]:
        matches = np.full(len(hashes), -1, dtype=np.int64)
        open_keys = np.arange(len(hashes))
        for number in self._largest_first:
            is_part = len(open_keys) < len(hashes)
            open_values = taken(keys, open_keys) if is_part else keys
            at, rows = self._visible(number, open_values, hashes[open_keys] if is_part else hashes)
            matches[open_keys[at]] = rows
            open_keys = np.flatnonzero(matches < 0)
            if len(open_keys) == 0:
                break
        probes = np.flatnonzero(matches >= 0)
        return probes, matches[probes]

    @cached_property
    def _largest_first(self) -> list[int]:
        sizes = [segment.rows.num_rows for segment in self._segments]
        return sorted(range(len(sizes)), key=lambda number: -sizes[number])

    @cached_property
    def _has_older_copies(self) -> bool:
        return any(each.oldest_generation() < self._complete for each in self._segments)

    def _since(self, segment: Segment, rows: Rows) -> Rows:
        assert self.spec.versioned is not None, "only versions have a time"
        return rowtimes(segment.rows.column(self.spec.versioned))[rows]

    def _gathered(
        self, rows: Rows, values: Callable[[Segment, Rows], npt.NDArray[Any]]
    ) -> npt.NDArray[Any]:
        if len(self._segments) == 1:
            return values(self._segments[0], rows)
        owners = np.searchsorted(self._first, rows, side="right") - 1
        gathered = np.zeros(len(rows), dtype=np.int64)
        for number, segment in enumerate(self._segments):
            mine = np.flatnonzero(owners == number)
            gathered[mine] = values(segment, rows[mine] - self._first[number])
        return gathered

    def take(self, dimension_rows: Rows, columns: Sequence[str]) -> pa.RecordBatch:
        """`columns` of `dimension_rows` in their order; -1 gives a row of NULLs."""
        schema = pa.schema([self.spec.kept.field(name) for name in columns])
        if not columns:
            return pa.RecordBatch.from_struct_array(
                pa.array([{}] * len(dimension_rows), pa.struct([]))
            )
        if self._first[-1] == 0:
            nothing = [pa.nulls(len(dimension_rows), item.type) for item in schema]
            return pa.RecordBatch.from_arrays(nothing, schema=schema)
        pieces = self._pieces(dimension_rows)
        arrays = [pieces.column(item.name, item.type) for item in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _pieces(self, rows: Rows) -> _Pieces:
        main = self._largest_first[0]
        at = rows - self._first[main]
        apart = np.flatnonzero((at < 0) | (at >= self._segments[main].rows.num_rows))
        at[apart] = 0  # any row of it: `order` or `missing` leaves it out
        parts = [(self._segments[main], pa.array(at))]
        owners = np.searchsorted(self._first, rows[apart], side="right") - 1
        order, size = np.arange(len(rows)), len(rows)
        for number in np.unique(owners[owners >= 0]):
            mine = apart[owners == number]
            parts.append((self._segments[number], pa.array(rows[mine] - self._first[number])))
            order[mine] = size + np.arange(len(mine))
            size += len(mine)
        missing = pa.array(rows < 0) if (owners < 0).any() else None
        return _Pieces(parts, pa.array(order) if len(parts) > 1 else None, missing)

    def _sorted(self, probes: Rows, rows: Rows) -> tuple[Rows, Rows]:
        table = pa.Table.from_batches([self.take(rows, self.spec.identity)])
        table = table.rename_columns([f"key{at}" for at in range(table.num_columns)])
        sort_keys = [("probe", "ascending"), *((name, "ascending") for name in table.column_names)]
        order = pc.sort_indices(
            table.append_column("probe", pa.array(probes)), sort_keys=sort_keys
        ).to_numpy()
        return probes[order], rows[order]


_SEEN_BITS = 20


class ChangedKeys:
    """The rows of an index in segments that an older version does not have.

    Many keys are looked up in few rows: most are passed over by a few bits of their hashes.
    """

    def __init__(self, rows: DimensionIndex, keys: Sequence[Sequence[pa.Array]]) -> None:
        self._rows = rows
        self._hashes = np.unique(np.concatenate([_NO_HASHES, *map(hash_rows, keys)]))
        self._seen = np.zeros(1 << _SEEN_BITS, dtype=np.bool_)
        self._seen[_seen_bits(self._hashes)] = True

    def hashes(self, keys: Sequence[pa.Array]) -> Hashes:
        """The hashes of `keys`, for `may_have`: those of one type are equal in all versions."""
        return hash_rows(self._rows.as_kept(keys))

    def may_have(self, hashes: Hashes) -> bool:
        """False if no row has one of these keys."""
        passing = hashes[self._seen[_seen_bits(hashes)]]
        if len(passing) == 0:
            return False
        at = np.searchsorted(self._hashes, passing)
        return bool((self._hashes[np.minimum(at, len(self._hashes) - 1)] == passing).any())

    def matched(self, keys: Sequence[pa.Array]) -> Rows:
        """Positions in `keys` with a row, as those of `lookup`; repeated for several rows."""
        columns = self._rows.as_kept(keys)
        at = np.flatnonzero(self._seen[_seen_bits(hash_rows(columns))])
        return at[self._rows.lookup(taken(columns, at))[0]]


_NO_HASHES = np.zeros(0, dtype=np.uint64)


def _seen_bits(hashes: Hashes) -> Rows:
    return (hashes >> np.uint64(64 - _SEEN_BITS)).astype(np.int64)
