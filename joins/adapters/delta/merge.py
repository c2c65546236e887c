"""A Delta output whose rows replace others by key.

| the batch's keys | commit |
|---|---|
| are new, or in no file by the ranges of the key columns in the log | an append by Sluice |
| may be in one; or the table needs Spark's writer; or a large batch | Delta's MERGE |
| the same in an object store | Sluice rewrites the files that have them |

Each commit carries one application transaction, as Spark's appends do, so it happens once and is
fenced. It is valid only directly behind the version whose files were checked. A MERGE's condition
includes the range of each key column, so that Delta reads only files that may have a key.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial, reduce
from operator import and_
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from delta.tables import DeltaTable as SparkTable
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import DeltaError
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from joins.adapters.delta.commit import Commit, batch_of_txn, epoch_of_txn
from joins.adapters.delta.features import Appends, is_exact
from joins.adapters.delta.files import paths_of
from joins.adapters.delta.output import OutputLog, SparkAppend, spark_schema
from joins.adapters.delta.versions import Seen, TableVersions
from joins.kernels.changelog.changes import exact_codes
from joins.kernels.changelog.row_kinds import DELETE, rows_left
from joins.kernels.expressions.casts import whole
from joins.kernels.probe.files import FileOrigin
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError
from joins.plan.types import quoted

Bounds = tuple[Any, Any]
"""Minimum and maximum of values without NULL."""

_BOUNDED = (pa.types.is_integer, pa.types.is_date, pa.types.is_timestamp)
_ROUNDED = timedelta(milliseconds=1)  # what statistics may leave of a time
_MOST_STEPS = 200


class KeyBounds:
    """The bounds of the key columns in the files of one table; the caller holds the table's lock.

    Columns of types whose statistics Delta truncates or orders differently have no bounds.
    """

    def __init__(self, versions: TableVersions, key: Sequence[pa.Field]) -> None:
        self._versions = versions
        self._key = tuple(key)
        self._files: dict[str, list[Bounds | None]] = {}
        self._at = 0
        self._rules: DeltaTable | None = None

    def may_hold(self, table: Seen, keys: Sequence[Bounds | None]) -> bool:
        """True if a file may have a key within these bounds, one per column; None is unbounded."""
        files = self.files_with(table, keys)
        return files is None or bool(files)

    def files_with(self, table: Seen, keys: Sequence[Bounds | None]) -> list[str] | None:
        """The files of `table` that may have such keys, as in the log; None if it does not say."""
        if not self._has_followed(table):
            return None
        return [path for path, file in self._files.items() if not _are_apart(file, keys)]

    def _has_followed(self, table: Seen) -> bool:
        """Update the known files to `table`; False if its log does not list them."""
        is_near = self._rules is table.rules and 0 <= table.at - self._at <= _MOST_STEPS
        if not (is_near and self._has_read(table.at)):
            self._rules = None
            try:
                self._files = dict(self._described(self._versions.whole(table)))
            except (DeltaError, SinkError):
                return False
        self._at, self._rules = table.at, table.rules
        return True

    def _has_read(self, version: int) -> bool:
        with suppress(SinkError):
            for each in range(self._at + 1, version + 1):
                self._apply(self._versions.commit_entry(each))
            return True
        return False

    def _apply(self, entry: Sequence[Mapping[str, Any]]) -> None:
        for action in entry:
            if "remove" in action:
                self._files.pop(action["remove"]["path"], None)
        for action in entry:
            if "add" in action:
                stats = action["add"].get("stats")
                self._files[action["add"]["path"]] = _stated(stats, self._key)

    def _described(self, table: DeltaTable) -> Iterator[tuple[str, list[Bounds | None]]]:
        actions = pa.table(table.get_add_actions())
        sides = [
            [_column(actions, side, column) for column in self._key] for side in ("min", "max")
        ]
        for at, path in enumerate(actions.column("path").to_pylist()):
            pairs = zip(*sides, strict=True)
            yield path, [_widened((lows[at], highs[at])) for lows, highs in pairs]


def bounds_of(files: Sequence[str], column: str, kind: pa.DataType) -> Bounds | None:
    """The bounds in Parquet statistics; None without them, with NULL or for unsuitable types."""
    if not files or not any(test(kind) for test in _BOUNDED):
        return None
    lows, highs = [], []
    for file in files:
        metadata = pq.read_metadata(file)
        at = metadata.schema.names.index(column)
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(at).statistics
            if statistics is None or not statistics.has_min_max or statistics.null_count != 0:
                return None
            try:
                lows.append(statistics.min)
                highs.append(statistics.max)
            except (OverflowError, ValueError):  # Python's calendar lacks the day
                return None
    return min(lows), max(highs)


def may_have_key(stats: object, key: pa.Table) -> bool:
    """True if a file with these JSON statistics may have the row `key`; NULL matches any file."""
    return _may_have_nulls(stats, key.column_names) or not _are_apart(
        _stated(stats, key.schema), [_point(column) for column in key.columns]
    )


def _may_have_nulls(stats: object, names: Sequence[str]) -> bool:
    try:
        counts = json.loads(str(stats or "{}")).get("nullCount") or {}
        return any(counts.get(name) != 0 for name in names)
    except (ValueError, AttributeError):
        return True


def _point(column: pa.ChunkedArray) -> Bounds | None:
    with suppress(OverflowError, ValueError):  # Python's calendar lacks the day
        if any(test(column.type) for test in _BOUNDED):
            value = column[0].as_py()
            return value, value
    return None


def _stated(stats: object, key: Iterable[pa.Field]) -> list[Bounds | None]:
    fields = list(key)
    try:
        document = json.loads(str(stats or "{}"))
        low, high = (document.get(side) or {} for side in ("minValues", "maxValues"))
        return [
            _widened(
                (_value(low.get(each.name), each.type), _value(high.get(each.name), each.type))
            )
            for each in fields
        ]
    except (ValueError, AttributeError):
        return [None] * len(fields)


def _are_apart(file: Sequence[Bounds | None], keys: Sequence[Bounds | None]) -> bool:
    return any(
        one is not None and other is not None and (one[1] < other[0] or one[0] > other[1])
        for one, other in zip(file, keys, strict=True)
    )


def _widened(stated: Bounds) -> Bounds | None:
    """Bounds that allow for times rounded to milliseconds; None if one is missing."""
    low, high = stated
    if low is None or high is None:
        return None
    if not isinstance(low, datetime):
        return low, high
    try:
        return low - _ROUNDED, high + _ROUNDED
    except OverflowError:
        return None


def _value(text: object, kind: pa.DataType) -> int | date | None:
    if pa.types.is_integer(kind):
        return text if isinstance(text, int) and not isinstance(text, bool) else None
    if not isinstance(text, str):
        return None
    if pa.types.is_date(kind):
        return date.fromisoformat(text)
    if not pa.types.is_timestamp(kind):
        return None
    moment = datetime.fromisoformat(text)
    return moment if (moment.tzinfo is None) == (kind.tz is None) else None


def _column(actions: pa.Table, side: str, column: pa.Field) -> list[Any]:
    nothing = [None] * actions.num_rows
    kind = actions.schema.field(side).type if side in actions.schema.names else pa.struct([])
    at = kind.get_field_index(column.name)
    if at < 0 or kind.field(at).type != column.type:
        return nothing
    if not any(test(column.type) for test in _BOUNDED):
        return nothing
    with suppress(OverflowError, ValueError):  # Python's calendar lacks the day
        return list(pc.struct_field(actions.column(side), [at]).to_pylist())
    return nothing


_KIND = "kind"
_PLACE = ("file", "row")
_MOST_APPENDED_BYTES = 64 << 20  # of staged files, which the driver reads whole


@contextmanager
def commit_settings(
    spark: SparkSession, app_id: str, version: int, metadata: Mapping[str, Any]
) -> Iterator[None]:
    """Set the user metadata of the session's next commit only."""
    settings = {
        "spark.databricks.delta.commitInfo.userMetadata": json.dumps(
            metadata, separators=(",", ":")
        ),
        "spark.databricks.delta.write.txnAppId": app_id,
        "spark.databricks.delta.write.txnVersion": str(version),
    }
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


def change_schema(rows: pa.Schema) -> pa.Schema:
    types = [(f"c{at}", item.type) for at, item in enumerate(rows)]
    return pa.schema([*types, (_KIND, pa.int8())])


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Rows of one batch that replace others by key.

    `files` have `change_schema`, none is empty, and their names have the order of emission.
    """

    files: Sequence[str]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_new: bool = False  # no row of the job has one of these keys


@dataclass(frozen=True, slots=True)
class Kept:
    """Files with replaced rows, as named in the log, and their remaining rows."""

    files: tuple[str, ...] = ()
    rows: tuple[pa.RecordBatch, ...] = ()


class MergedOutput:
    """The output of one job under one app id, with the newest row of each key."""

    def __init__(self, path: TablePath, app_id: str, appends: Appends, spark: SparkSession) -> None:
        self.log = OutputLog(path, app_id, appends, spark.newSession())
        self._appends = appends

        key = [column for _, _, column in self._key]
        self._bounds = KeyBounds(self.log.versions, key)
        self._is_exact = all(is_exact(column.type) for column in key)

    def merge(self, batch: int, epoch: int, changes: MergeSource) -> int:
        return self.log.commit_once(batch, epoch, partial(self._save, changes))

    def _save(self, changes: MergeSource, table: Seen, txn: int) -> int:
        if self._replaces_nothing(changes, table):
            return self._append(changes, table, txn)
        if isinstance(self.log.path, Path):
            return self._merge(changes, table, txn)
        staged = self._staged(changes)
        kept = self._kept(staged, self._bounds_of(changes), table)
        return self._write(txn, table, changes.metadata, staged, kept)

    def _replaces_nothing(self, changes: MergeSource, table: Seen) -> bool:
        is_plain = self._appends.are_columnar(table.rules) and self.log.writer.takes_entries(table)
        if not (self._is_exact and is_plain):
            return False
        if sum(Path(file).stat().st_size for file in changes.files) > _MOST_APPENDED_BYTES:
            return False
        if changes.is_new or not changes.files:
            return True
        return not self._bounds.may_hold(table, self._bounds_of(changes))

    def _bounds_of(self, changes: MergeSource) -> list[Bounds | None]:
        return [bounds_of(changes.files, each, column.type) for each, _, column in self._key]

    def _append(self, changes: MergeSource, table: Seen, txn: int) -> int:
        return self._write(txn, table, changes.metadata, self._staged(changes), Kept())

    def _write(
        self,
        txn: int,
        table: Seen,
        metadata: Mapping[str, Any],
        staged: pa.Table,
        kept: Kept,
    ) -> int:
        epoch, batch = epoch_of_txn(txn), batch_of_txn(txn)
        assert batch is not None, "the number is a batch's"
        with self.log.shared.stage(self.log.schema, FileOrigin(epoch, batch, 0, 0)) as stage:
            for rows in (*kept.rows, *self._rows_left(staged)):
                stage.write(rows)
            file = stage.finish()
        batches = self.log.batches
        ours = (
            Transaction(batches.spark_id, txn),
            Transaction(batches.fence_id, epoch),
        )
        added = () if file is None else (file,)
        commit = Commit(ours, added, kept.files, metadata, is_blind=False)
        return self.log.writer.write(table, commit)

    def _kept(self, staged: pa.Table, bounds: Sequence[Bounds | None], table: Seen) -> Kept:
        paths = self._bounds.files_with(table, bounds)
        if paths is None:
            paths = paths_of(self.log.versions.whole(table))
        keys = [staged.column(each) for each, _, _ in self._key]
        files, rows = [], []
        for path in sorted(paths):
            (there,) = self.log.files.read_files([self.log.path / unquote(path)])
            held = there.select(self.log.schema.names).cast(self.log.schema)
            left = _without(held, [held.column(name) for _, name, _ in self._key], keys)
            if left.num_rows < held.num_rows:
                files.append(path)
                rows += left.combine_chunks().to_batches()
        return Kept(tuple(files), tuple(rows))

    def _staged(self, changes: MergeSource) -> pa.Table:
        files = sorted(changes.files, key=lambda file: Path(file).name)
        tables = [pq.read_table(file, partitioning=None) for file in files]
        return pa.concat_tables(tables or [change_schema(self.log.schema).empty_table()])

    def _rows_left(self, staged: pa.Table) -> Iterator[pa.RecordBatch]:
        left = rows_left(staged, [each for each, _, _ in self._key], _KIND).drop_columns([_KIND])
        for rows in left.combine_chunks().to_batches():
            yield pa.RecordBatch.from_arrays(rows.columns, schema=self.log.schema)

    def _merge(self, changes: MergeSource, table: Seen, txn: int) -> int:
        spark = self.log.spark
        if not changes.files:
            nothing = SparkAppend(spark.no_rows(self.log.schema), 0, changes.metadata)
            return spark.save(table, txn, nothing)
        before, app_id = int(table.version()), self.log.batches.spark_id
        with (
            spark.refusals(txn),
            commit_settings(spark.session, app_id, txn, changes.metadata),
        ):
            self._execute(changes)
        version, _ = spark.committed_as(txn, range(before + 1, self.log.version() + 1))
        return version

    def _execute(self, changes: MergeSource) -> None:
        values: dict[str, str | Column] = {
            quoted(name): f"s.c{at}" for at, name in enumerate(self.log.schema.names)
        }
        table = SparkTable.forPath(self.log.spark.session, str(self.log.path)).alias("t")
        gone = f"s.{_KIND} = {DELETE}"
        (
            table.merge(self._newest(changes).alias("s"), self._same_key(changes))
            .whenMatchedDelete(condition=gone)
            .whenMatchedUpdate(set=values)
            .whenNotMatchedInsert(condition=f"NOT ({gone})", values=values)
            .execute()
        )

    @property
    def _key(self) -> list[tuple[str, str, pa.Field]]:
        places = {name: at for at, name in enumerate(self.log.schema.names)}
        key = self._appends.merge_key
        return [(f"c{places[n]}", n, self.log.schema.field(n)) for n in key]

    def _newest(self, changes: MergeSource) -> DataFrame:
        schema = spark_schema(change_schema(self.log.schema))
        rows = self.log.spark.session.read.schema(schema).parquet(*changes.files)
        file, row = (f.col(f"_metadata.{name}") for name in ("file_name", "row_index"))
        placed = rows.select("*", file.alias(_PLACE[0]), row.alias(_PLACE[1]))
        window = Window.partitionBy(*(staged for staged, _, _ in self._key)).orderBy(
            *(f.col(name).desc() for name in _PLACE)
        )
        ranked = placed.withColumn("rank", f.row_number().over(window))
        return ranked.where(f.col("rank") == 1).drop("rank", *_PLACE)

    def _same_key(self, changes: MergeSource) -> Column:
        """Equal keys within the ranges of the files, so that Delta skips other files."""
        terms = []
        for staged, name, column in self._key:
            mine, theirs = f.col(f"s.{staged}"), f.col(f"t.{quoted(name)}")
            terms.append(theirs.eqNullSafe(mine) if column.nullable else theirs == mine)
            bounds = bounds_of(changes.files, staged, column.type)
            if bounds is not None:
                low, high = (_literal(bound, column.type) for bound in bounds)
                terms += [theirs >= low, theirs <= high]
        return reduce(and_, terms)


def _without(rows: pa.Table, own: Sequence[pa.Array], keys: Sequence[pa.Array]) -> pa.Table:
    pairs = zip(own, keys, strict=True)
    codes = exact_codes([whole(pa.chunked_array([*a.chunks, *b.chunks], a.type)) for a, b in pairs])
    return rows.filter(pa.array(~np.isin(codes[: rows.num_rows], codes[rows.num_rows :])))


def _literal(value: int | date, kind: pa.DataType) -> Column:
    """Times go as text, since values would use this process's time zone."""
    if isinstance(value, int):
        return f.lit(value)
    if pa.types.is_date(kind):
        return f.lit(value.isoformat()).cast("date")
    return f.lit(value.isoformat()).cast("timestamp_ntz" if kind.tz is None else "timestamp")
