"""A job's output as a Delta table: appends by Spark's writer, for the sinks of `joins.sinks.delta`.

`DeltaLog` has the columnar commits. A commit by Spark carries one transaction: an app id and a
number, `txn_number`, which packs the runner's epoch and the batch. If another runner commits under
the app id meanwhile, Delta raises a conflict. If the table has this number or a higher one, Delta
skips the write without an error: `committed_as` looks for the commit in the log afterwards.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from joins.adapters.delta.commit import EPOCH_KEY, epoch_of_txn, txn_number
from joins.adapters.delta.entries import added_files, transactions
from joins.adapters.delta.features import Appends, WriterChoice
from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.versions import Seen
from joins.kernels.table_path import TablePath, row_count
from joins.plan.errors import ConstraintViolatedError, SinkError

_log = structlog.get_logger(__name__)
# Delta's messages end with the row's values, which must not leak.
_VIOLATIONS = (
    re.compile(r"\[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES\] (CHECK constraint .*) violated by row"),
    re.compile(
        r"\[DELTA_NOT_NULL_CONSTRAINT_VIOLATED\] (NOT NULL) constraint violated for (.*?)\."
    ),
    re.compile(r"\[DELTA_EXCEED_CHAR_VARCHAR_LIMIT\] [\s\S]*?Failed check: (.*)\."),
    re.compile(r"\[EXCEED_LIMIT_LENGTH\] Exceeds (char/varchar type length limitation: \d+)"),
)
_TELL_ROWS = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.delta.files.DeltaFileFormatWriter",
    "org.apache.spark.util.Utils",
)
_TELL_ROWS_HERE = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_JAVA_EXCEPTION = re.compile(r"\b((?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error))\b")


def spark_schema(schema: pa.Schema) -> StructType:
    nullable = pa.schema([item.with_nullable(True) for item in schema])
    return from_arrow_schema(nullable, prefer_timestamp_ntz=True)


def keep_rows_out_of_logs(spark: SparkSession) -> dict[str, Any]:
    """Disable Spark's loggers that print rows that violate a constraint; returns old levels.

    Loggers of PySpark stay off: they only repeat the text of the exception that is raised.
    """
    for name in _TELL_ROWS_HERE:
        PySparkLogger.getLogger(name).disabled = True
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    levels = {name: log4j.LogManager.getLogger(name).getLevel() for name in _TELL_ROWS}
    _set_levels(spark, dict.fromkeys(levels, log4j.Level.OFF))
    return levels


def _set_levels(spark: SparkSession, levels: Mapping[str, Any]) -> None:
    jvm: Any = spark._jvm
    for name, level in levels.items():
        jvm.org.apache.logging.log4j.core.config.Configurator.setLevel(name, level)


class _LogsOfWrites:
    """Spark's loggers while it writes: the JVM has one level a logger for overlapping writes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writes = 0
        self._levels: dict[str, Any] = {}  # from before the first of the running writes

    @contextmanager
    def without_rows(self, spark: SparkSession) -> Iterator[None]:
        with self._lock:
            if self._writes == 0:
                self._levels = keep_rows_out_of_logs(spark)
            self._writes += 1
        try:
            yield
        finally:
            with self._lock:
                self._writes -= 1
                if self._writes == 0:
                    _set_levels(spark, self._levels)


_logs = _LogsOfWrites()


@dataclass(frozen=True, slots=True)
class SparkAppend:
    """Rows for Spark's writer, with the names of the output's columns."""

    rows: DataFrame
    count: int
    metadata: Mapping[str, Any] = field(default_factory=dict)


class SparkCommits:
    """Commits through Spark's writer to the table of one log."""

    def __init__(self, log: DeltaLog, session: SparkSession) -> None:
        self._log = log
        self.session = session

    def no_rows(self, schema: pa.Schema) -> DataFrame:
        return self.session.createDataFrame([], spark_schema(schema))

    def save(self, table: Seen, txn: int, append: SparkAppend) -> int:
        """Commit behind `table`, the newest version, and verify the log; returns the version."""
        before = int(table.version())
        text = json.dumps(dict(append.metadata), separators=(",", ":"))
        options = {
            "txnAppId": self._log.batches.spark_id,
            "txnVersion": str(txn),
            "userMetadata": text,
        }
        writer = append.rows.write.format("delta").mode("append").options(**options)
        with self.refusals(txn):
            writer.save(str(self._log.path))
        version, entry = self.committed_as(txn, range(before + 1, self._log.version() + 1))
        self._check_rows(version, entry, append.count)
        return version

    def check_batch(self, batch: int, expected: int) -> None:
        """Raise SinkError if Spark committed `batch` with another number of rows."""
        version = self._log.batches.version_of(batch)
        if version is None:
            return  # clean-up has removed the entry
        entry = self._log.versions.commit_entry(version)
        if self._log.batches.spark_id in transactions(entry):
            self._check_rows(version, entry, expected)

    def _check_rows(self, version: int, entry: Sequence[Mapping[str, Any]], expected: int) -> None:
        """Require that a commit added `expected` rows.

        Spark has committed by then, so a batch that a retry finds in the log is checked again.
        """
        added = sum(self._rows_in(action) for action in added_files(entry))
        if added != expected:
            raise SinkError(
                f'version {version} of delta table "{self._log.path}" adds {added} rows, '
                f"expected {expected}",
                hint="Submit the job again with another 'path': this table does not have what "
                "Spark was given.",
            )

    @contextmanager
    def refusals(self, txn: int) -> Iterator[None]:
        """Translate the block's Spark errors: FencedError, ConstraintViolatedError or SinkError.

        They and the logs show no values of rows.
        """
        try:
            with _logs.without_rows(self.session):
                yield
        except (PySparkException, Py4JError) as exc:
            self._log.batches.check_epoch(epoch_of_txn(txn))
            # `from None`: a traceback would show Spark's text, which may show values of the row.
            raise (self._violation(str(exc)) or self._refused(exc)) from None

    def committed_as(self, txn: int, versions: range) -> tuple[int, list[dict[str, Any]]]:
        """Version and entry of the commit, which must be one of `versions`."""
        mine = {"appId": self._log.batches.spark_id, "version": txn}
        for version in reversed(versions):
            entry = self._log.versions.commit_entry(version)
            if any(mine.items() <= a["txn"].items() for a in entry if "txn" in a):
                return version, entry
        self._log.batches.check_epoch(epoch_of_txn(txn))
        raise SinkError(
            f'delta table "{self._log.path}" does not show a commit that succeeded',
            hint="Another program writes under this job's app id, or removes entries of the "
            "table's log; stop it.",
        )

    def _rows_in(self, action: Mapping[str, Any]) -> int:
        stats = json.loads(action.get("stats") or "{}")
        if "numRecords" in stats:
            return int(stats["numRecords"])
        return row_count(self._log.path / unquote(action["path"]))

    def _violation(self, text: str) -> ConstraintViolatedError | None:
        """Spark's message about a violated constraint, without a value of the row."""
        for pattern in _VIOLATIONS:
            match = pattern.search(text)
            if match is not None:
                return ConstraintViolatedError(
                    f"a row violates {' of '.join(match.groups())} of delta table "
                    f'"{self._log.path}"',
                    hint="Drop or change the constraint, or submit a job that leaves such rows "
                    "out with WHERE; the runner retries the batch, of which nothing is written.",
                )
        return None

    def _refused(self, error: Exception) -> SinkError:
        """Names Spark's error condition, or the exception's class."""
        text = str(error)
        match = _CONDITION.search(text) or _JAVA_EXCEPTION.search(text)
        name = type(error).__name__ if match is None else match[1]
        return SinkError(
            f'spark cannot write to delta table "{self._log.path}": {name}',
            hint="Look this error up in the documentation of Spark and Delta; the runner retries "
            "the batch.",
        )


class OutputLog(DeltaLog):
    """The output of one job under one app id: a `DeltaLog` that can also commit through Spark."""

    def __init__(self, path: TablePath, app_id: str, appends: Appends, spark: SparkSession) -> None:
        super().__init__(path, app_id, appends)
        self._appends = appends
        self.schema = appends.rows
        self.spark = SparkCommits(self, spark)

    def choice(self) -> WriterChoice:
        """The writer that the newest version needs; SinkError if it cannot have the job's rows."""
        with self.versions.lock:
            return self._appends.choose(self.path, self.versions.fresh().rules)

    def commit_epoch(self, epoch: int) -> None:
        """Fence older runners, as `DeltaLog` does.

        A table that needs Spark's writer may have features for which delta-rs cannot commit even an
        entry without files; then Spark commits one.
        """
        if not self.choice().is_spark:
            super().commit_epoch(epoch)
            return
        with self.versions.lock:
            table = self.versions.fresh()
            self.batches.check_epoch(epoch, table)
            if self._has_epoch(table, epoch):
                return
            try:
                self._write_epoch(table, epoch, for_spark=True)
            except SinkError as exc:
                _log.info("spark commits the epoch", path=str(self.path), why=exc.message)
                self._commit_epoch_by_spark(epoch)

    def _commit_epoch_by_spark(self, epoch: int) -> None:
        """Commit again while an older runner's batch lands between the look and the commit."""
        nothing = self.spark.no_rows(self.schema)
        table = self.versions.fresh()
        while not self._has_epoch(table, epoch):
            self.batches.check_epoch(epoch, table)
            txn = txn_number(epoch, self.batches.last_in_log(table))
            self.spark.save(table, txn, SparkAppend(nothing, 0, {EPOCH_KEY: epoch}))
            table = self.versions.fresh()

    def _has_epoch(self, table: Seen, epoch: int) -> bool:
        """True if the newest number is this epoch's, with the newest batch of the log."""
        expected = txn_number(epoch, self.batches.last_in_log(table))
        return table.numbers[self.batches.spark_id] == expected

    def append(self, batch: int, epoch: int, append: SparkAppend) -> int:
        return self.commit_once(batch, epoch, partial(self.spark.save, append=append))

    def commit_once(self, batch: int, epoch: int, save: Callable[[Seen, int], int]) -> int:
        """Have `save` commit `batch` through Spark once and verify the log; the table's version.

        `save` gets the newest version and the transaction number, and returns the commit's version.
        FencedError, ConstraintViolatedError (nothing is written), SinkError if it failed or is not
        in the log.
        """
        with self.versions.lock:
            table = self.versions.fresh()
            if self.batches.has(batch, epoch, table):
                return int(table.version())
            return save(table, txn_number(epoch, batch))

    def _may_checkpoint(self) -> bool:
        """False for tables whose checkpoints delta-rs may not write: Spark writes them."""
        return self._appends.are_columnar(self.versions.fresh().rules)
