"""What a task tells the driver: one JSON line, instead of rows that would become JVM objects."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from joins.kernels.probe.files import FileOrigin, StagedFile
from joins.plan.errors import (
    IndexDirectoryError,
    IndexLockedError,
    RecordsExpiredError,
    SourceError,
    SourceUnavailableError,
    StoreRefusedError,
    StoreUnavailableError,
)
from watermark.errors import SluiceError

REPORT_SCHEMA = pa.schema([("report", pa.string())])
REPORT_DDL = "report string"
_NO_ROOM = re.compile(r"Index(Directory|DiskFull|Locked)Error: (.+)")
_READING = {
    error.__name__: error
    for error in (
        *(RecordsExpiredError, SourceError, SourceUnavailableError),
        *(StoreRefusedError, StoreUnavailableError),
    )
}
_HINT = "hint: "
_TOLD = re.compile(rf"\b({'|'.join(_READING)}): (.+)\n{_HINT}(.+)")


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


def no_room(error: Exception) -> IndexDirectoryError | None:
    """The error of a worker whose node cannot write its index; Spark passes it on as text."""
    match = _NO_ROOM.search(str(error))
    if match is None:
        return None
    kind = IndexLockedError if match[1] == "Locked" else IndexDirectoryError
    return kind(match[2], hint=kind.HINT)


@contextmanager
def telling_hints() -> Iterator[None]:
    """In a task: an error of ours is told with its hint, which `reading_error` finds again."""
    try:
        yield
    except SluiceError as exc:
        exc.add_note(f"{_HINT}{exc.hint}")
        raise


def reading_error(error: Exception) -> SourceError | RecordsExpiredError | None:
    """Why a worker could not read records, or reach a store; Spark passes it on as text."""
    match = _TOLD.search(str(error))
    return None if match is None else _READING[match[1]](match[2], hint=match[3])


def current_origin(epoch: int, batch: int) -> FileOrigin:
    """The origin of files that this task writes; only inside a Spark task."""
    context = TaskContext.get()
    if context is None:
        return FileOrigin(epoch, batch, 0, 0)
    return FileOrigin(epoch, batch, context.partitionId(), context.taskAttemptId())
