"""The lookup index of a dimension: one immutable, memory-mapped state per changelog version.

A version is a list of segments, oldest first, and for each segment a bitmap of the rows that this
version hides: superseded by a newer segment, deleted, or of a generation older than the complete
one, which is the newest whose watermark record is in all partitions. A segment has at most one row
a key, the newest of its changes, and only if it is newer than the row in older segments; so the
newest segment with a key has the key's newest record, deletes included. Deletes stay while their
change may be sent again (`_without_old_deletes`): an older record must not restore a key.

In a versioned index (`IndexSpec.versioned`) a key is the primary key with a rowtime, and only
superseded rows are hidden: deletions are versions, too, and the lookup skips rows that an older
copy of the table has left (`joins.kernels.index.asof`).

Layout below `directory`: `<spec digest>/lock`, `<spec digest>/v<version>.json` (the manifest:
segments, bitmaps, sizes, checksums and the watermark records seen, written last) and the files that
it names.
"""
# reads better long: what writes a version and what removes it keep the same invariants.

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from joins.kernels.changelog.changes import DELETED, Progress, newest_rows, place_of, read_changes
from joins.kernels.expressions.casts import Mask
from joins.kernels.index.asof import without_ended
from joins.kernels.index.dimension_index import (
    DimensionIndex,
    Manifest,
    SegmentEntry,
    manifest_path,
    read_manifest,
    write_manifest,
)
from joins.kernels.index.hash_table import Rows, hash_rows
from joins.kernels.index.lock import exclusive
from joins.kernels.index.segment import (
    IndexSpec,
    Segment,
    damaged,
    file_checksum,
    map_bits,
    store_bits,
    taken,
    write_segment,
)
from joins.plan.errors import IndexBuildError

__all__ = [
    "DimensionIndex",
    "FoldedRows",
    "IndexSpec",
    "advance",
    "build",
    "discard_damaged",
    "is_usable",
    "remove_older",
    "remove_versions",
    "stored_versions",
    "verify",
]

_MERGE_FACTOR = 4
_SMALLEST_SEGMENT = 4096


@dataclass(frozen=True, slots=True)
class FoldedRows:
    """The folded changelog up to some version: one row a key, no deletes; and its progress."""

    rows: Iterable[pa.RecordBatch]
    progress: Progress


def build(
    directory: Path,
    version: int,
    spec: IndexSpec,
    changes: Iterable[pa.RecordBatch],
    *,
    fold: FoldedRows | None = None,
) -> None:
    """Make `version` usable from all changelog rows up to it, in any order.

    With `fold`, `changes` has only the rows after it; a fold has no versions. Raises
    IndexBuildError if the rows do not fit, IndexDirectoryError and IndexDiskFullError.
    """
    home = directory / spec.digest
    with exclusive(home), _all_or_nothing(home):
        if is_usable(directory, version, spec):
            return
        _sweep(home)  # what a process that was killed has left
        parts, progress = list[_SegmentDraft](), Progress()
        if fold is not None:
            assert spec.versioned is None, "a fold has the newest rows only"
            rows = read_changes(fold.rows, spec, Progress()).rows
            complete = fold.progress.complete_generation(spec.partitions)
            progress = fold.progress
            parts = [_stored(home, version, spec, rows, complete)] if rows.num_rows else []
        _write(home, version, spec, parts, progress, changes)


def advance(
    directory: Path,
    from_version: int,
    version: int,
    spec: IndexSpec,
    changes: Iterable[pa.RecordBatch],
) -> None:
    """Make `version` usable from `from_version` and the rows of the commits after it.

    Raises IndexBuildError, also if `from_version` is missing or damaged, and the errors of `build`.
    """
    home = directory / spec.digest
    with exclusive(home), _all_or_nothing(home):
        if is_usable(directory, version, spec):
            return
        manifest = read_manifest(home, from_version)
        parts = [_SegmentDraft.mapped(home, entry) for entry in manifest.segments]
        _write(home, version, spec, parts, manifest.progress, changes)


def is_usable(directory: Path, version: int, spec: IndexSpec) -> bool:
    """True if `version` can be attached: a sound manifest, and files of the recorded sizes."""
    try:
        read_manifest(directory / spec.digest, version)
    except IndexBuildError:
        return False
    return True


def stored_versions(directory: Path, spec: IndexSpec) -> tuple[int, ...]:
    """The versions with a manifest, which may be damaged, in ascending order."""
    return tuple(sorted(_versions(directory / spec.digest)))


def verify(directory: Path, version: int, spec: IndexSpec) -> Manifest:
    """Compare all checksums; raises IndexBuildError if a file is missing or damaged."""
    home = directory / spec.digest
    manifest = read_manifest(home, version, is_checked=True)
    for entry in manifest.segments:
        for file in entry.all_files:
            if file_checksum(home / file.name) != file.checksum:
                raise damaged(home / file.name, "its checksum differs")
    return manifest


def discard_damaged(directory: Path, version: int, spec: IndexSpec) -> None:
    """Make `version` unusable, so that it is rebuilt, if a file is missing or damaged.

    One that is whole is usable, also if the node has started since it was written.
    """
    home = directory / spec.digest
    with exclusive(home):
        try:
            manifest = verify(directory, version, spec)
        except IndexBuildError:
            manifest_path(home, version).unlink(missing_ok=True)
            return
        if not is_usable(directory, version, spec):
            write_manifest(home, manifest)


KEPT_FOR_OTHERS = 256
"""Versions of an index of several jobs that stay: one may lag so many commits behind another."""


def remove_older(directory: Path, version: int, spec: IndexSpec) -> None:
    home = directory / spec.digest
    with exclusive(home):
        _remove_versions(home, {each for each in _versions(home) if each >= version})


def remove_versions(directory: Path, keep: set[int]) -> None:
    """Remove the versions not in `keep` of every index, damaged manifests and unnamed files.

    Processes that have a removed version attached keep their mappings.
    """
    if not directory.is_dir():
        return
    for home in sorted(path for path in directory.iterdir() if path.is_dir()):
        with exclusive(home):
            _remove_versions(home, keep)


@contextmanager
def _all_or_nothing(home: Path) -> Iterator[None]:
    try:
        yield
    except Exception:
        with suppress(OSError):
            _sweep(home)
        raise


def _sweep(home: Path) -> None:
    _remove_versions(home, _versions(home))


def _remove_versions(home: Path, keep: set[int]) -> None:
    named = {"lock"}
    for version in _versions(home):
        path = manifest_path(home, version)
        if version not in keep:
            path.unlink()
            continue
        try:
            entries = read_manifest(home, version).segments
        except IndexBuildError:
            path.unlink()
            continue
        named.add(path.name)
        named.update(file.name for entry in entries for file in entry.all_files)
    for path in home.iterdir():
        if path.name not in named:
            path.unlink()


@dataclass(slots=True)
class _SegmentDraft:
    """A segment that a version in the making has; `saved_hidden` is its bitmap as stored."""

    entry: SegmentEntry
    segment: Segment
    hidden: Mask
    saved_hidden: Mask

    @classmethod
    def mapped(cls, home: Path, entry: SegmentEntry) -> Self:
        bits = map_bits(home / entry.hidden.name)
        hidden = np.unpackbits(bits, count=entry.rows).astype(np.bool_)
        return cls(entry, Segment.map(home, entry.name), hidden, hidden.copy())

    def saved(self, home: Path, version: int) -> SegmentEntry:
        if np.array_equal(self.hidden, self.saved_hidden):
            return self.entry
        entry = self.entry
        name = f"{entry.name}.{version}-{uuid.uuid4().hex[:8]}"  # never that of a file that exists
        stored = store_bits(home, name, self.hidden)
        visible = entry.rows - int(self.hidden.sum())
        return SegmentEntry(entry.name, entry.rows, entry.files, stored, visible)


def _write(
    home: Path,
    version: int,
    spec: IndexSpec,
    parts: list[_SegmentDraft],
    progress: Progress,
    changes: Iterable[pa.RecordBatch],
) -> None:
    before = progress.complete_generation(spec.partitions)
    read = read_changes(changes, spec, progress)
    complete = read.progress.complete_generation(spec.partitions)
    rows = _newer_than(parts, read.rows, spec) if parts else _needed(read.rows, spec, complete)
    if complete > before and spec.versioned is None:
        for part in parts:
            part.hidden |= part.segment.generations() < complete
    start = _merged_from(parts, rows.num_rows)
    if start is not None:
        rows = _merged(parts[start:], rows, spec, complete)
        # a deletion stays while an older segment may have a row of its key
        if start == 0 or spec.versioned is not None:
            rows = _needed(rows, spec, complete)
        parts = parts[:start]
    if rows.num_rows:
        parts = [*parts, _stored(home, version, spec, rows, complete)]
    entries = tuple(part.saved(home, version) for part in parts)
    write_manifest(home, Manifest(version, entries, read.progress))


def _stored(
    home: Path, version: int, spec: IndexSpec, rows: pa.Table, complete: int
) -> _SegmentDraft:
    """Write `rows` as a segment; hides deletes and incomplete generations unless versioned."""
    name = f"s{version}-{uuid.uuid4().hex[:12]}"
    files = write_segment(home, name, rows, spec)
    segment = Segment.map(home, name)
    hidden = np.zeros(segment.rows.num_rows, dtype=np.bool_)
    if spec.versioned is None:
        hidden = segment.deleted() | (segment.generations() < complete)
    stored = store_bits(home, f"{name}.{version}", hidden)
    count = segment.rows.num_rows
    entry = SegmentEntry(name, count, files, stored, count - int(hidden.sum()))
    return _SegmentDraft(entry, segment, hidden, hidden.copy())


def _newer_than(parts: Sequence[_SegmentDraft], rows: pa.Table, spec: IndexSpec) -> pa.Table:
    """The `rows` that are newer than those in `parts`; hides the superseded rows of `parts`."""
    if rows.num_rows == 0:
        return rows
    table = rows.combine_chunks()
    keys = [table.column(name).combine_chunks() for name in spec.identity]
    place = place_of(table, versioned=spec.versioned)
    keep = np.ones(table.num_rows, dtype=np.bool_)
    open_rows = np.arange(table.num_rows)
    hashes = hash_rows(keys)
    for part in reversed(parts):
        open_values = taken(keys, open_rows)
        segment = part.segment
        matches, held = segment.matches(
            segment.primary, spec.identity, open_values, hashes[open_rows]
        )
        mine = open_rows[matches]
        newer = _is_later([item[mine] for item in place], _places(segment, held, spec))
        part.hidden[held[newer]] = True
        keep[mine[~newer]] = False
        open_rows = np.setdiff1d(open_rows, mine, assume_unique=True)
    return table.filter(pa.array(keep))


def _places(segment: Segment, rows: Rows, spec: IndexSpec) -> list[Rows]:
    position = segment.positions(rows)
    if spec.versioned is None:
        return position
    return [segment.packed["_generation"].at(rows), *position]


def _is_later(new: Sequence[Rows], old: Sequence[Rows]) -> Mask:
    """Compares places by their first column, then by the next one, and so on."""
    later = np.zeros(len(new[0]), dtype=np.bool_)
    for mine, theirs in zip(reversed(new), reversed(old), strict=True):
        later = (mine > theirs) | ((mine == theirs) & later)
    return later


def _merged_from(parts: Sequence[_SegmentDraft], new_rows: int) -> int | None:
    """First of the newest `parts` to merge with the new rows, None to merge none.

    An older part is merged unless it is much larger than the newer ones together.
    """
    sizes = [part.entry.rows for part in parts] + ([new_rows] if new_rows else [])
    start = len(sizes)
    total = 0
    while start and (
        total == 0 or sizes[start - 1] <= _MERGE_FACTOR * max(total, _SMALLEST_SEGMENT)
    ):
        start -= 1
        total += sizes[start]
    return start if len(sizes) - start > 1 else None


def _merged(
    parts: Sequence[_SegmentDraft], rows: pa.Table, spec: IndexSpec, complete: int
) -> pa.Table:
    live = [_kept_rows(part, spec, complete) for part in parts]
    if rows.num_rows:
        live.append(rows)
    joined_rows = pa.concat_tables(live, promote_options="permissive")
    return newest_rows(joined_rows, spec.identity, versioned=spec.versioned)


def _kept_rows(part: _SegmentDraft, spec: IndexSpec, complete: int) -> pa.Table:
    """All rows but superseded ones: deletions and older generations stop older records of a key."""
    is_kept = ~part.hidden
    if spec.versioned is None:
        is_kept |= part.segment.deleted() | (part.segment.generations() < complete)
    return part.segment.table().filter(pa.array(is_kept))


def _needed(rows: pa.Table, spec: IndexSpec, complete: int) -> pa.Table:
    if spec.versioned is not None:
        return without_ended(rows, spec.primary_key, spec.versioned, spec.needed_from_ms)
    return _without_old_deletes(rows, complete)


def _without_old_deletes(rows: pa.Table, complete: int) -> pa.Table:
    """Drops hidden rows whose binlog file is more than one behind the newest, or of older epochs.

    A restarted source repeats unacknowledged changes: seconds, not files. Positions of topics and
    files have one file an epoch.
    """
    if rows.num_rows == 0:
        return rows
    epoch, file, generation = (
        rows.column(name).to_numpy() for name in ("_epoch", "_file", "_generation")
    )
    newest_epoch = epoch.max()
    newest_file = file[epoch == newest_epoch].max()
    hidden = rows.column(DELETED).to_numpy() | (generation < complete)
    old = (epoch < newest_epoch) | (file < newest_file - 1)
    return rows.filter(pa.array(~(hidden & old))) if (hidden & old).any() else rows


def _versions(home: Path) -> set[int]:
    names = (path.stem for path in home.glob("v*.json"))
    return {int(name[1:]) for name in names if name[1:].isdigit()}
