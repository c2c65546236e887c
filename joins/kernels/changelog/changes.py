"""Changelog rows on their way into an index: each key's newest record, watermark records apart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.digest import POSITION_COLUMNS, Position
from joins.kernels.expressions.casts import Mask, mask_of, whole
from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from joins.kernels.index.hash_table import Rows, hash_rows
from joins.kernels.index.segment import POSITION, IndexSpec
from joins.plan.errors import IndexBuildError
from joins.plan.plan import ComputedField

DELETED = "_deleted"
GENERATION = "_generation"
_COMPACT_ROWS = 4_000_000

_META: dict[str, pa.DataType] = {
    "_op": pa.string(),
    "_partition": pa.int32(),
    "_epoch": pa.int32(),
    "_file": pa.int64(),
    "_pos": pa.int64(),
    "_row": pa.int64(),
    "_offset": pa.int64(),
    GENERATION: pa.int32(),
}
CHANGE_COLUMNS = tuple(_META)


@dataclass(frozen=True, slots=True)
class Progress:
    """Watermark records read so far: (partition, generation) → lowest offset.

    `floor` has by partition the position of the newest streamed change in the fold that an index
    began with. The fold lacks keys that were deleted up to there.
    """

    watermarks: Mapping[tuple[int, int], int] = field(default_factory=dict)
    floor: Mapping[int, Position] = field(default_factory=dict)

    def with_records(self, records: pa.Table) -> "Progress":
        merged = dict(self.watermarks)
        columns = (
            records.column(name).to_pylist() for name in ("_partition", GENERATION, "_offset")
        )
        for partition, generation, offset in zip(*columns, strict=True):
            known = merged.get((partition, generation), offset)
            merged[(partition, generation)] = min(known, offset)
        return replace(self, watermarks=merged)

    def complete_generation(self, partitions: int) -> int:
        """The greatest generation that every partition has completed, -1 for none."""
        newest = dict.fromkeys(range(partitions), -1)
        for partition, generation in self.watermarks:
            newest[partition] = max(newest.get(partition, -1), generation)
        return min(newest.values(), default=-1)

    def ignored(self, records: pa.Table) -> Mask:
        """`r` records after a watermark record of their or a later generation."""
        ignored = np.zeros(records.num_rows, dtype=np.bool_)
        read = mask_of(pc.equal(records.column("_op"), "r"))
        if not self.watermarks or not read.any():
            return ignored
        partition, generation, offset = (
            numbers(records, name) for name in ("_partition", GENERATION, "_offset")
        )
        for (at, complete), limit in self.watermarks.items():
            ignored |= (partition == at) & (generation <= complete) & (offset > limit)
        return ignored & read

    def is_beyond(self, records: pa.Table) -> Mask:
        beyond = np.ones(records.num_rows, dtype=np.bool_)
        if not self.floor:
            return beyond
        partition = numbers(records, "_partition")
        position = [numbers(records, name) for name in POSITION_COLUMNS]
        for at, limit in self.floor.items():
            later = np.zeros(records.num_rows, dtype=np.bool_)
            for values, least in zip(reversed(position), reversed(limit), strict=True):
                later = (values > least) | ((values == least) & later)
            beyond &= later | (partition != at)
        return beyond


@dataclass(frozen=True, slots=True)
class CompactedChanges:
    """The newest record of each changed key; `progress` includes the watermark records."""

    rows: pa.Table
    progress: Progress

    def followed_by(self, batches: Iterable[pa.RecordBatch], spec: IndexSpec) -> "CompactedChanges":
        """Adds the changes of later commits; raises IndexBuildError as `read_changes`."""
        later = read_changes(batches, spec, self.progress)
        rows = pa.concat_tables([self.rows, later.rows])
        return CompactedChanges(
            newest_rows(rows, spec.identity, versioned=spec.versioned), later.progress
        )


def read_changes(
    batches: Iterable[pa.RecordBatch], spec: IndexSpec, progress: Progress
) -> CompactedChanges:
    """Folds `batches`, in any order, after the watermark records of `progress`.

    Raises IndexBuildError for a missing column, a wrong type, or a row that is not newer than the
    fold of the older rows, so that its effect is undefined.
    """
    kept: list[pa.Table] = []
    rows = limit = 0
    for batch in batches:
        table = _typed(pa.Table.from_batches([batch]), spec)
        marks = pc.equal(table.column("_op"), "w")
        if pc.any(marks, min_count=0).as_py():
            progress = progress.with_records(table.filter(marks))
            table = table.filter(pc.invert(marks))
        kept.append(table if spec.versioned is None else with_rowtime(table, spec.versioned))
        rows += table.num_rows
        if rows > limit + _COMPACT_ROWS:
            kept = [_compacted(pa.concat_tables(kept), spec)]
            rows = limit = kept[0].num_rows
    table = pa.concat_tables(kept) if kept else _schema(spec).empty_table()
    ignored = progress.ignored(table)
    if ignored.any():
        table = table.filter(pa.array(~ignored))
    newest = newest_rows(table, spec.identity, versioned=spec.versioned)
    if not progress.is_beyond(newest).all():
        raise IndexBuildError(
            "changelog rows are not newer than the fold that the index was made of",
            hint="Build the index of this version from the whole changelog.",
        )
    deleted = pc.equal(newest.column("_op"), "d")
    newest = newest.drop_columns(["_op", "_partition"]).append_column(DELETED, deleted)
    return CompactedChanges(newest, progress)


def with_rowtime(table: pa.Table, rowtime: str) -> pa.Table:
    times = table.column(rowtime)
    return table.filter(times.is_valid()) if times.null_count else table


def newest_rows(
    table: pa.Table, identity: Sequence[str], *, versioned: str | None = None
) -> pa.Table:
    """The newest row of each `identity`, in the order of `table`.

    The newest has the greatest position, deletion or not, as in `watermark.reference.temporal`.
    With `versioned`, a later copy of the table is newer than all of an earlier one.
    """
    if table.num_rows < 2:
        return table
    keys = [whole(table.column(name)) for name in identity]
    shared = shared_hash(keys)
    if not shared.any():
        return table
    rows = np.flatnonzero(shared)
    codes = exact_codes([key.take(pa.array(rows)) for key in keys])
    place = [part[rows] for part in place_of(table, versioned=versioned)]
    order = np.lexsort([*reversed(place), codes])
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = codes[order][1:] != codes[order][:-1]
    keep = ~shared
    keep[rows[order[last]]] = True
    return table.filter(pa.array(keep))


def place_of(table: pa.Table, *, versioned: str | None) -> list[Rows]:
    """Sort keys that order records of one identity by age, most significant first."""
    position = [numbers(table, part) for part in POSITION]
    if versioned is None:
        return position
    return [numbers(table, GENERATION), *position]


def deletions(table: pa.Table) -> Mask:
    if DELETED in table.column_names:
        return mask_of(table.column(DELETED))
    return mask_of(pc.equal(table.column("_op"), "d"))


def numbers(table: pa.Table, name: str) -> Rows:
    return np.asarray(whole(table.column(name)).to_numpy(zero_copy_only=False), dtype=np.int64)


def shared_hash(keys: Sequence[pa.Array]) -> Mask:
    """Rows whose key hash equals that of another row."""
    hashes = hash_rows(keys)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    same = ordered[1:] == ordered[:-1]
    shared = np.zeros(len(hashes), dtype=np.bool_)
    shared[order[1:][same]] = True
    shared[order[:-1][same]] = True
    return shared


def exact_codes(keys: Sequence[pa.Array]) -> Rows:
    codes = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        indices = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        combined = codes * max(1, len(encoded.dictionary)) + indices
        codes = np.unique(combined, return_inverse=True)[1]
    return codes


def _compacted(table: pa.Table, spec: IndexSpec) -> pa.Table:
    """Fewer rows with the same fold; keeps all `r` records, which only the end can judge."""
    read = pc.equal(table.column("_op"), "r")
    changes = table.filter(pc.invert(read))
    changed = newest_rows(changes, spec.identity, versioned=spec.versioned)
    return pa.concat_tables([changed, table.filter(read)]).combine_chunks()


def _schema(spec: IndexSpec) -> pa.Schema:
    return pa.schema([*spec.kept, *(pa.field(name, kind) for name, kind in _META.items())])


def _typed(table: pa.Table, spec: IndexSpec) -> pa.Table:
    schema = _schema(spec)
    names = [name for name in schema.names if name not in {c.name for c in spec.computed}]
    try:
        table = table.select(names).cast(pa.schema([schema.field(name) for name in names]))
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise IndexBuildError(
            f"changelog rows do not fit the index: {error}",
            hint="Check that the changelog table has the columns of the dimension's declaration.",
        ) from error
    for item in spec.computed:
        table = table.append_column(schema.field(item.name), _computed(table, item))
    return table.select(schema.names)


def _computed(table: pa.Table, item: ComputedField) -> pa.Array:
    """The values of a computed column; NULL for what is not a row."""
    scope = Scope(lambda column: whole(table.column(column.name)), table.num_rows, 0)
    result = evaluate_rows(item.expression, scope)
    is_row = mask_of(pc.is_in(table.column("_op"), pa.array(["r", "c", "u"])))
    for row, reason in result.errors.items():
        if is_row[row]:
            raise IndexBuildError(
                f"key {item.name} cannot be computed for a row of the dimension: {reason}",
                hint="Correct the row in its source, or use an expression that gives NULL, such as "
                "TRY_CAST.",
            )
    return result.values
