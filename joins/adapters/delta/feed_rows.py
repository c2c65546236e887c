"""Rows of a Delta table's files as wire columns, with deletion vectors and partition values."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from joins.adapters.delta.entries import actions_of, committed_at_ms
from joins.adapters.delta.source import DeltaColumn, SourceTable, in_declared_shape, load_table
from joins.kernels.changelog.envelope import PART_BYTES
from joins.kernels.expressions.casts import Mask
from joins.kernels.json.wire import to_wire
from joins.kernels.table_path import TablePath, batch_rows, readable, row_count, value_bounds
from joins.plan.errors import SnapshotNeededError, SourceError, SourceUnavailableError
from joins.plan.types import arrow_type
from watermark.errors import SluiceError

_BATCH_ROWS = 5_000
_CHANGE_TYPE = "_change_type"
_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file, or a file of changed rows; `alive` is the mask of valid rows, None for all."""

    path: str
    partition: Mapping[str, Any] = field(default_factory=dict)
    alive: Mask | None = None
    # of files of a version: rows that are not deleted, and bytes
    rows: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The files that a commit changed.

    Files of the change data feed, if present, have all changes. `redefines` is true if the commit
    changes the table's schema or protocol.
    """

    at_ms: int
    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]
    feed: tuple[DataFile, ...]
    redefines: bool


def files_of(table: SourceTable) -> tuple[tuple[DataFile, ...], int]:
    """Files by path, and their row count; SnapshotNeededError if the version is gone."""
    with _at(table.path, table.version):
        loaded = load_table(table.path, table.version)
        actions = pa.table(loaded.get_add_actions())
        has_vectors = "deletionVectors" in (loaded.protocol().reader_features or ())
        alive = _alive(loaded, table.path) if has_vectors else {}
    files = []
    for action in sorted(actions.to_pylist(), key=lambda a: str(a["path"])):
        path = _local(table.path, action["path"])
        mask = alive.get(path)
        count = action["num_records"]
        count = row_count(path) if count is None else int(count)
        if mask is not None:  # a vector may end at the last row that it deletes
            count -= int(np.count_nonzero(~mask))
        size, partition = int(action["size_bytes"]), action.get("partition") or {}
        files.append(DataFile(action["path"], partition, mask, count, size))
    return tuple(files), sum(file.rows for file in files)


def bounds_of(table: SourceTable, file: DataFile, name: str) -> tuple[Any, Any]:
    """As `value_bounds`, of the declared column `name`; SnapshotNeededError if the file is gone."""
    column = next(each for each in table.columns if each.name == name)
    if column.is_partition:
        value = file.partition.get(column.place.name, file.partition.get(column.source_name))
        return value, value
    with (
        _file_errors(table, file),
        pq.ParquetFile(
            readable(_local(table.path, file.path)), coerce_int96_timestamp_unit="us"
        ) as opened,
    ):
        return value_bounds(opened, _names_in(opened.schema_arrow, table.columns)[name])


def files_changed(table: SourceTable, entry: bytes) -> CommitFiles:
    """The changes of the commit `entry` (bytes of the log file), which made `table`'s version.

    SnapshotNeededError if versions around it are gone, SourceUnavailableError if it is incomplete.
    """
    actions = _actions(table, entry)
    added = [a["add"] for a in actions if "add" in a and a["add"].get("dataChange", True)]
    removed = [
        a["remove"] for a in actions if "remove" in a and a["remove"].get("dataChange", True)
    ]
    cdc_actions = [a["cdc"] for a in actions if "cdc" in a]
    return CommitFiles(
        at_ms=committed_at_ms(actions) or 0,
        added=_files(table, added, table.version),
        removed=_with_partitions(table, _files(table, removed, table.version - 1)),
        feed=_files(table, cdc_actions, table.version),
        redefines=any("metaData" in a or "protocol" in a for a in actions),
    )


def _actions(table: SourceTable, entry: bytes) -> list[dict[str, Any]]:
    try:
        return actions_of(entry)
    except ValueError as exc:
        raise SourceUnavailableError(
            f'commit {table.version} of delta table "{table.path}" cannot be read: {exc}',
            hint="It is tried again; if this stays, restore the entry of the table's log from a "
            "backup.",
        ) from exc


def read_rows(table: SourceTable, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Rows as wire columns in file order; SnapshotNeededError (file is gone), SourceError."""
    for batch, _ in _read(table, file, ()):
        yield batch


def read_told(table: SourceTable, file: DataFile) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """The rows of a change data file, each with its change type; errors as `read_rows`."""
    for batch, rest in _read(table, file, (_CHANGE_TYPE,)):
        yield batch, rest.column(_CHANGE_TYPE).cast(pa.string())


def rows_in(table: SourceTable, files: Sequence[DataFile]) -> int:
    """Number of rows in `files`, deleted ones included; SnapshotNeededError if a file is gone."""
    total = 0
    for file in files:
        with _file_errors(table, file):
            total += row_count(_local(table.path, file.path))
    return total


def empty_rows(columns: Sequence[DeltaColumn]) -> pa.RecordBatch:
    arrays = [_nothing(0, column) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _nothing(count: int, column: DeltaColumn) -> pa.Array:
    return to_wire(pa.nulls(count, arrow_type(column.type)), column.type)


def _files(
    table: SourceTable, actions: Sequence[Mapping[str, Any]], version: int
) -> tuple[DataFile, ...]:
    alive: Mapping[TablePath, Mask] = {}
    if any(action.get("deletionVector") for action in actions):
        with _at(table.path, version):
            alive = _alive(load_table(table.path, version), table.path)
    files = []
    for action in sorted(actions, key=lambda a: str(a["path"])):
        mask = None
        if action.get("deletionVector"):
            mask = alive[_local(table.path, action["path"])]
        files.append(DataFile(action["path"], action.get("partitionValues") or {}, mask))
    return tuple(files)


def _with_partitions(table: SourceTable, removed: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    """A commit may leave out the partitions of files that it removes: the version before has them.

    A file that it does not have either was removed earlier.
    """
    has_partitions = any(column.is_partition for column in table.columns)
    if not has_partitions or all(file.partition for file in removed):
        return removed
    before, _ = files_of(replace(table, version=table.version - 1))
    known = {_local(table.path, file.path): file.partition for file in before}
    places = [(file, _local(table.path, file.path)) for file in removed]
    return tuple(
        replace(file, partition=file.partition or known[place])
        for file, place in places
        if file.partition or place in known
    )


def _alive(loaded: DeltaTable, root: TablePath) -> dict[TablePath, Mask]:
    masks = {}
    for batch in loaded.deletion_vectors():
        for path, kept in zip(
            *(c.to_pylist() for c in pa.record_batch(batch).columns), strict=True
        ):
            masks[_local(root, path)] = np.asarray(kept, dtype=np.bool_)
    return masks


def _local(root: TablePath, path: str) -> TablePath:
    """Path of the file in an action or deletion vector; SourceError if it is outside the table."""
    is_local = isinstance(root, Path)
    parsed = urlparse(path if is_local else path.removeprefix(f"{root}/"))
    if parsed.scheme not in (("", "file") if is_local else ("",)):
        raise SourceError(
            f'delta table "{root}" has file "{path}", which is not '
            + ("on this machine" if is_local else "below the table"),
            hint="Copy the table; one that refers to files elsewhere cannot be a dimension.",
        )
    return root / unquote(parsed.path)


@contextmanager
def _at(path: TablePath, version: int) -> Iterator[None]:
    try:
        yield
    except SourceUnavailableError:
        raise
    except SourceError as exc:
        raise SnapshotNeededError(
            f'version {version} of delta table "{path}" cannot be read any more: {exc.message}',
            hint="The table is copied again by itself; keep its log longer "
            "(delta.logRetentionDuration) to avoid it.",
        ) from exc


@contextmanager
def _file_errors(table: SourceTable, file: DataFile) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as exc:
        raise SnapshotNeededError(
            f'file "{file.path}" of delta table "{table.path}" was removed before it was read',
            hint="The table is copied again by itself; let VACUUM keep files longer to avoid it.",
        ) from exc
    except SluiceError:  # a store's error says what is wrong
        raise
    except (pa.ArrowException, OSError) as exc:
        raise SourceError(
            f'file "{file.path}" of delta table "{table.path}" cannot be read: {exc}',
            hint="Restore the file, or write the table again.",
        ) from exc


def _read(
    table: SourceTable, file: DataFile, further: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    path = _local(table.path, file.path)
    with (
        _file_errors(table, file),
        pq.ParquetFile(readable(path), coerce_int96_timestamp_unit="us") as opened,
    ):
        names = _names_in(opened.schema_arrow, table.columns)
        stored_names = [*dict.fromkeys(name for name in names.values() if name), *further]
        # without a column it has no rows either
        stored_names = stored_names or opened.schema_arrow.names[:1]
        at = 0
        count_each = batch_rows(opened, stored_names, _BATCH_ROWS, PART_BYTES)
        for batch in opened.iter_batches(count_each, columns=stored_names):
            count = batch.num_rows
            rows = _selected(batch, file.alive, at)
            at += count
            columns = [_column(rows, column, names[column.name], file) for column in table.columns]
            wire = pa.RecordBatch.from_arrays(columns, names=[c.name for c in table.columns])
            yield wire, rows.select(list(further))


def _names_in(schema: pa.Schema, columns: Sequence[DeltaColumn]) -> dict[str, str]:
    by_id = {
        int(item.metadata[_FIELD_ID]): item.name
        for item in schema
        if item.metadata and _FIELD_ID in item.metadata
    }
    there = frozenset(schema.names)
    name_of = {}
    for column in columns:
        name = column.place.name
        if column.place.field_id is not None:
            name = by_id.get(column.place.field_id, "")
        name_of[column.name] = name if name in there and not column.is_partition else ""
    return name_of


def _selected(batch: pa.RecordBatch, alive: Mask | None, first: int) -> pa.RecordBatch:
    if alive is None:
        return batch
    # A vector may end at the last row that it deletes.
    kept = np.ones(batch.num_rows, dtype=np.bool_)
    part = alive[first : first + batch.num_rows]
    kept[: len(part)] = part
    return batch.filter(pa.array(kept))


def _column(rows: pa.RecordBatch, column: DeltaColumn, name: str, file: DataFile) -> pa.Array:
    if name:
        shaped = in_declared_shape(rows.column(name), column.type, column.place.parts)
        return to_wire(shaped, column.type)
    if not column.is_partition:
        return _nothing(rows.num_rows, column)
    value = file.partition.get(column.place.name, file.partition.get(column.source_name))
    typed = pa.scalar(None if value == "" else value)
    if not pa.types.is_null(typed.type):
        typed = pc.cast(typed, arrow_type(column.type))
    return to_wire(pa.repeat(typed, rows.num_rows), column.type)
