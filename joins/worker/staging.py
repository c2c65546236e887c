"""A task's report to the driver: one JSON line, as rows would become JVM objects."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from joins.adapters.registry import shared_schemas
from joins.kernels.probe.files import FileOrigin, StagedFile
from joins.plan.causes import fault_in, fault_line
from joins.plan.connections import RegistryOptions

REPORT_SCHEMA = pa.schema([("report", pa.string())])


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The outcome of one task: files by table, counts to sum, and JSON values."""

    files: Mapping[str, StagedFile] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)

    def to_batch(self) -> pa.RecordBatch:
        return pa.record_batch([[json.dumps(asdict(self))]], schema=REPORT_SCHEMA)

    @staticmethod
    def from_json(text: str) -> "TaskReport":
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


@contextmanager
def telling_cause() -> Iterator[None]:
    """Report a task's errors to the driver by cause; `fault_in` finds it there."""
    try:
        yield
    except Exception as exc:
        if not any(map(fault_in, getattr(exc, "__notes__", ()))):
            exc.add_note(fault_line(exc, "a task failed"))
        raise


def current_origin(epoch: int, batch: int) -> FileOrigin:
    """The origin of files that this task writes; epoch and batch only outside a Spark task."""
    context = TaskContext.get()
    if context is None:
        return FileOrigin(epoch, batch, 0, 0)
    return FileOrigin(epoch, batch, context.partitionId(), context.taskAttemptId())


def task_schemas(options: RegistryOptions) -> Callable[[int], str | None]:
    """Looks up schemas in a registry by number.

    Errors of the lookup reach the driver through this module. Raises SourceError if a certificate
    for the registry cannot be used.
    """

    def schema_of(number: int) -> str | None:
        with telling_cause():
            return shared_schemas(options)(number)

    return schema_of
