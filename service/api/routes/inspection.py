"""Batches, rows and checks of a job, read from its files in a separate process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from joins.plan.stream_topics import NAME
from service.api.http.access import OPERATOR, VIEWER
from service.api.services import Injected, JobId, Services
from service.schemas.inspection import (
    BatchReplay,
    BatchView,
    CheckReport,
    CheckView,
    RowExplanation,
)
from service.schemas.progress import BatchPage

_TIMEOUT_S = 60.0
_REPLAY_TIMEOUT_S = 300.0
_LARGEST = 2**63 - 1
BatchNumber = Annotated[int, Path(ge=0, le=_LARGEST)]
TOPIC_NAME = f"^{NAME}$"
Topic = Annotated[str, Path(pattern=TOPIC_NAME)]
Sink = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=255,
        pattern=r"^[^\x00-\x1f]+$",
        description="For a statement set: sink table or number of an INSERT; default: the first.",
    ),
]
router = APIRouter(tags=["inspection"], dependencies=[VIEWER])


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Position of a record; parsed from the path."""

    partition: int
    offset: int
    topic: str | None = None

    def arguments(self) -> list[str]:
        topic = [] if self.topic is None else [f"--topic={self.topic}"]
        return [*topic, f"--partition={self.partition}", f"--offset={self.offset}"]


async def _place(
    partition: Annotated[int, Path(ge=0, le=2**31 - 1)],
    offset: Annotated[int, Path(ge=0, le=_LARGEST)],
) -> RecordPlace:
    return RecordPlace(partition, offset)


Place = Annotated[RecordPlace, Depends(_place)]


def inspect(
    services: Services,
    job_id: str,
    arguments: Sequence[str],
    *,
    timeout_s: float | None = None,
    question: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The answer of an inspection; raises as `Inspector.ask`, JobNotFoundError without the job."""
    services.store.get(job_id)
    job_dir = services.layout(job_id).job_dir
    return services.inspector.ask(
        job_dir, arguments, timeout_s=timeout_s or _TIMEOUT_S, question=question
    )


def _of_sink(sink: str | None) -> list[str]:
    return [] if sink is None else [f"--sink={sink}"]


@router.get("/v1/jobs/{job_id}/batches", summary="List batches")
def list_batches(
    job_id: JobId,
    services: Injected,
    cursor: Annotated[int | None, Query(ge=0, le=_LARGEST)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> BatchPage:
    """Batches below `cursor`, newest first: offsets, pin, counts and freshness."""
    arguments = [f"--limit={limit}", *([] if cursor is None else [f"--below={cursor}"])]
    return BatchPage.model_validate(inspect(services, job_id, ["batches", *arguments]))


@router.get("/v1/jobs/{job_id}/batches/{number}", summary="Show a batch")
def show_batch(job_id: JobId, number: BatchNumber, services: Injected) -> BatchView:
    """Offsets, versions and time of the batch's pin, and its commit."""
    batch = inspect(services, job_id, ["batch", f"--number={number}"])
    return BatchView.model_validate(batch)


@router.post(
    "/v1/jobs/{job_id}/batches/{number}:replay",
    summary="Repeat a batch and compare",
    dependencies=[OPERATOR],
)
def replay_batch(
    job_id: JobId,
    number: BatchNumber,
    services: Injected,
    diff: Annotated[bool, Query(description="List the rows that differ.")] = False,
    sink: Sink = None,
) -> BatchReplay:
    """Join the batch again with its pin; nothing is written."""
    arguments = ["replay", f"--batch={number}", *(["--diff"] if diff else []), *_of_sink(sink)]
    replay = inspect(services, job_id, arguments, timeout_s=_REPLAY_TIMEOUT_S)
    return BatchReplay.model_validate(replay)


@router.get("/v1/jobs/{job_id}/rows/{topic}/{partition}/{offset}", summary="Explain a record")
def explain_row(
    job_id: JobId, topic: Topic, place: Place, services: Injected, sink: Sink = None
) -> RowExplanation:
    """The record's batch and pin, the table rows that it met, and its output rows."""
    arguments = [f"--topic={topic}", *place.arguments(), *_of_sink(sink)]
    explanation = inspect(services, job_id, ["explain-row", *arguments])
    return RowExplanation.model_validate(explanation)


@router.get("/v1/jobs/{job_id}/doctor", summary="Examine a job")
def examine_job(job_id: JobId, services: Injected) -> CheckReport:
    """Check checkpoint, tables, versions, privileges, disk, clock, requests and leases."""
    return check_report(inspect(services, job_id, ["doctor"]))


@router.get("/v1/doctor", summary="Examine the machine")
def examine_machine(services: Injected) -> CheckReport:
    """Check Python, Java, jars, disk and ports."""
    return check_report(services.inspector.ask(None, ["doctor"], timeout_s=_TIMEOUT_S))


def check_report(report: dict[str, Any]) -> CheckReport:
    checks = [CheckView.model_validate(check) for check in report["checks"]]
    return CheckReport(ok=all(check.ok is not False for check in checks), checks=checks)
