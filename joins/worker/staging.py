"""What a task tells the driver: one JSON line, instead of rows that would become JVM objects."""

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from joins.durable.failpoints import Failpoints
from joins.kernels.probe.files import FileOrigin, StagedFile
from joins.plan.errors import IndexDirectoryError, IndexLockedError, StoppingError

_Frame = TypeVar("_Frame")
REPORT_SCHEMA = pa.schema([("report", pa.string())])
REPORT_DDL = "report string"
RECORDS_WORTH_A_TASK = 5_000
ARROW_BATCH_BYTES = 64 << 20  # above 2 GiB a batch would fail
_NO_ARROW_LIMIT = (1 << 31) - 1  # with this value Spark does not ask
ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ARROW_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
OWN_ARROW_LIMITS = "spark.sluice.ownArrowLimits"
"""Setting of a session: which of these two settings its user has chosen, who is not overruled."""
_NO_ROOM = re.compile(r"Index(Directory|DiskFull|Locked)Error: (.+)")


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The outcome of one task of a micro-batch.

    Attributes:
        files: table name → staged file of this task.
        counts: name → number, summed over tasks by `merge_reports`.
        detail: what else the task has to say, as JSON values.
    """

    files: Mapping[str, StagedFile] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)

    def to_batch(self) -> pa.RecordBatch:
        """This report as the one row that the task emits."""
        return pa.record_batch([[json.dumps(asdict(self))]], schema=REPORT_SCHEMA)

    @staticmethod
    def from_json(text: str) -> "TaskReport":
        """The report that `to_batch` wrote."""
        value: dict[str, Any] = json.loads(text)
        return TaskReport(
            files={name: StagedFile(**file) for name, file in value["files"].items()},
            counts=value["counts"],
            detail=value["detail"],
        )


@dataclass(frozen=True, slots=True)
class BatchReport:
    """All tasks' reports of one micro-batch together."""

    files: Mapping[str, tuple[StagedFile, ...]]
    counts: Mapping[str, int]
    details: tuple[Mapping[str, Any], ...]


def merge_reports(texts: Iterable[str]) -> BatchReport:
    """Sum counts and collect files and details, in task order."""
    files: dict[str, list[StagedFile]] = {}
    counts: dict[str, int] = {}
    details: list[Mapping[str, Any]] = []
    for report in map(TaskReport.from_json, texts):
        for name, file in report.files.items():
            files.setdefault(name, []).append(file)
        for name, count in report.counts.items():
            counts[name] = counts.get(name, 0) + count
        details.append(report.detail)
    return BatchReport(
        {name: tuple(staged) for name, staged in files.items()}, counts, tuple(details)
    )


class BatchTurns:
    """Lets a stop wait for the batches that run, and keeps new ones from starting."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._stopping = False

    def guarded(
        self, run_batch: Callable[[_Frame, int], None], on_error: Callable[[Exception], None]
    ) -> Callable[[_Frame, int], None]:
        """`run_batch` for foreachBatch; `on_error` sees an exception before it becomes text."""

        def run(frame: _Frame, batch: int) -> None:
            with self._changed:
                if self._stopping:
                    raise StoppingError(f"batch {batch} does not start", hint="The job is stopped.")
                self._running += 1
            try:
                run_batch(frame, batch)
            except Exception as exc:
                on_error(exc)
                raise
            finally:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

        return run

    def stop(self, *, timeout_s: float) -> bool:
        """Let no batch start any more; returns whether the running ones ended in time."""
        with self._changed:
            self._stopping = True
            return self._changed.wait_for(lambda: self._running == 0, timeout_s)


@dataclass(frozen=True, slots=True)
class QueryGuards:
    """What every streaming query of ours runs under.

    Attributes:
        on_error: why a batch failed, before Spark turns it into text.
    """

    failpoints: Failpoints
    turns: BatchTurns
    on_error: Callable[[Exception], None]

    def guarded(self, run_batch: Callable[[_Frame, int], None]) -> Callable[[_Frame, int], None]:
        """`run_batch` for foreachBatch, or for a loop of ours."""
        return self.turns.guarded(run_batch, self.on_error)


def in_few_tasks(frame: DataFrame, records: int) -> DataFrame:
    """`frame` of so many records, in no more tasks than they are worth.

    A task costs 20 ms of a core before its first record; Spark has one for each Kafka partition.
    """
    return frame.coalesce(max(1, -(-records // RECORDS_WORTH_A_TASK)))


def limit_arrow_batches(frame: DataFrame, *, by_bytes: bool) -> None:
    """How `frame`, of a `foreachBatch`, is cut into Arrow batches on its way to the workers.

    Asking at each row how large its batch has become costs a quarter of a JVM's time (profiled), so
    small records are only counted. An Arrow batch cannot have 2 GiB: the task fails, and the retry
    must ask. A limit of bytes that the user has chosen stays; with a number of records that the
    user has chosen, counting may limit nothing.
    """
    conf = frame.sparkSession.conf
    own = (conf.get(OWN_ARROW_LIMITS, "") or "").split(",")
    if ARROW_BYTES not in own:
        ask = by_bytes or ARROW_RECORDS in own
        conf.set(ARROW_BYTES, str(ARROW_BATCH_BYTES if ask else _NO_ARROW_LIMIT))


def collect_reports(frame: DataFrame) -> BatchReport:
    """Run `frame`, whose rows are reports, and merge them."""
    return merge_reports(row.report for row in frame.collect())


def no_room(error: Exception) -> IndexDirectoryError | None:
    """The error of a worker whose node cannot write its index; Spark passes it on as text."""
    match = _NO_ROOM.search(str(error))
    if match is None:
        return None
    kind = IndexLockedError if match[1] == "Locked" else IndexDirectoryError
    return kind(match[2], hint=kind.HINT)


def current_origin(epoch: int, batch: int) -> FileOrigin:
    """The origin of files that this task writes; only inside a Spark task."""
    context = TaskContext.get()
    if context is None:
        return FileOrigin(epoch, batch, 0, 0)
    return FileOrigin(epoch, batch, context.partitionId(), context.taskAttemptId())
