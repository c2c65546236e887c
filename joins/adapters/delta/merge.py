"""A Delta output whose rows replace others by key: Delta's MERGE under the batch protocol.

A merge carries the same one transaction as an append by Spark's writer, so that it happens once and
a newer runner's commit keeps an older one's out. Only files that may have one of the batch's keys
are read: the range of each key column is part of the condition.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from joins.adapters.delta.commit import spark_version
from joins.adapters.delta.features import Appends
from joins.adapters.delta.output import OutputLog, SparkAppend, spark_schema
from joins.kernels.changelog.row_kinds import DELETE
from joins.plan.types import quoted

_KIND = "kind"
_PLACE = ("file", "row")
_RANGES = (pa.types.is_integer, pa.types.is_date, pa.types.is_timestamp)


@contextmanager
def commit_settings(
    spark: SparkSession, app_id: str, version: int, metadata: Mapping[str, Any]
) -> Iterator[None]:
    """What the next commit of the session `spark` carries; nothing else is written by it."""
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
    """Of a file of changes: the columns of the output, numbered, whatever their names; the kind."""
    types = [(f"c{at}", item.type) for at, item in enumerate(rows)]
    return pa.schema([*types, (_KIND, pa.int8())])


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Rows of one batch that replace others by key.

    Attributes:
        files: of `change_schema`, none of them empty; the names are in the order in which the rows
            were emitted.
        metadata: for the commit.
    """

    files: Sequence[str]
    metadata: Mapping[str, Any] = field(default_factory=dict)


class MergedOutput(OutputLog):
    """The output of one job under one app id, each key with its newest row.

    Args:
        path: its root.
        app_id: of the job's commits to it.
        appends: the rows, and the columns that are their key.
        spark: merges are made in a session of their own.
    """

    def __init__(self, path: Path, app_id: str, appends: Appends, spark: SparkSession) -> None:
        super().__init__(path, app_id, appends, spark.newSession())

    def merge(self, batch: int, epoch: int, changes: MergeSource) -> int:
        """Commit changes as `batch`, once, and see that the log says so.

        Returns:
            The version after the commit; if the batch was there already, the newest version.

        Raises:
            FencedError: a newer runner has taken over.
            ConstraintViolatedError: a row violates what the table asks for; nothing is written.
            SinkError: the commit failed, or the log does not show it.
        """
        with self._lock:
            table = self._fresh()
            self._check_epoch(table, epoch)
            last = self._last(table)
            if last is not None and last >= batch:
                return int(table.version())
            transaction = spark_version(epoch, batch)
            if not changes.files:
                nothing = self._spark.createDataFrame([], spark_schema(self.rows))
                return self._save(table, SparkAppend(nothing, 0, changes.metadata), transaction)
            before = int(table.version())
            with (
                self._refusals(transaction),
                commit_settings(self._spark, self._spark_id, transaction, changes.metadata),
            ):
                self._execute(changes)
            version, _ = self._committed_as(transaction, range(before + 1, self.version() + 1))
            return version

    def _execute(self, changes: MergeSource) -> None:
        values: dict[str, str | Column] = {
            quoted(name): f"s.c{at}" for at, name in enumerate(self.rows.names)
        }
        table = DeltaTable.forPath(self._spark, str(self.path)).alias("t")
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
        """Name in the files, name in the table and field of each column of the key."""
        places = {name: at for at, name in enumerate(self.rows.names)}
        key = self._appends.merge_key
        return [(f"c{places[n]}", n, self.rows.field(n)) for n in key]

    def _newest(self, changes: MergeSource) -> DataFrame:
        """The last change of each key."""
        schema = spark_schema(change_schema(self.rows))
        rows = self._spark.read.schema(schema).parquet(*changes.files)
        file, row = (f.col(f"_metadata.{name}") for name in ("file_name", "row_index"))
        placed = rows.select("*", file.alias(_PLACE[0]), row.alias(_PLACE[1]))
        window = Window.partitionBy(*(staged for staged, _, _ in self._key)).orderBy(
            *(f.col(name).desc() for name in _PLACE)
        )
        ranked = placed.withColumn("rank", f.row_number().over(window))
        return ranked.where(f.col("rank") == 1).drop("rank", *_PLACE)

    def _same_key(self, changes: MergeSource) -> Column:
        """Equal keys, which lie in the ranges of the files: Delta reads no file outside of them."""
        terms = []
        for staged, name, column in self._key:
            mine, theirs = f.col(f"s.{staged}"), f.col(f"t.{quoted(name)}")
            terms.append(theirs.eqNullSafe(mine) if column.nullable else theirs == mine)
            bounds = _bounds(changes.files, staged, column.type)
            if bounds is not None:
                low, high = (_literal(bound, column.type) for bound in bounds)
                terms += [theirs >= low, theirs <= high]
        return reduce(and_, terms)


def _bounds(files: Sequence[str], column: str, kind: pa.DataType) -> tuple[Any, Any] | None:
    """The least and the greatest value of `column`, from the files' statistics.

    None if they do not tell, if a value is NULL, or if Delta keeps no such statistics.
    """
    if not any(test(kind) for test in _RANGES):
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
            except (OverflowError, ValueError):  # a day that Python's calendar does not have
                return None
    return min(lows), max(highs)


def _literal(value: int | date, kind: pa.DataType) -> Column:
    """`value` in Spark; times are text, for values would pass the time zone of this process."""
    if isinstance(value, int):
        return f.lit(value)
    if pa.types.is_date(kind):
        return f.lit(value.isoformat()).cast("date")
    return f.lit(value.isoformat()).cast("timestamp_ntz" if kind.tz is None else "timestamp")
