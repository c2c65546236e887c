"""`/v1/jobs`: plan, submit, list, show, stop, start and remove jobs."""

import codecs
import os
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from service.api.http.access import OPERATOR, VIEWER
from service.api.routes.inspection import inspect
from service.api.services import AskedBy, IdempotencyKey, Injected, JobId, Services
from service.api.views import submission_warning
from service.errors import JobConflictError, JobNotFoundError, SubmissionError
from service.jobs.store.job import REMOVAL_FAILED, DesiredState, JobState
from service.jobs.store.layout import JobLayout
from service.jobs.store.plan_codec import dump
from service.jobs.store.plans import JobPlans
from service.jobs.store.rows import JobFilter
from service.jobs.submit import submission
from service.jobs.supervise.runner_process import tail_before
from service.jobs.update.updates import UpdateDraft
from service.schemas.jobs import JobDetail, JobPage, RemovalView, Submission
from service.schemas.progress import (
    ChangeView,
    FindingView,
    JobUpdate,
    Migratable,
    MigrationView,
    PlanView,
    RowsPreview,
    ScriptCheck,
    UpdateView,
    Validation,
)
from service.sql.answers.explain import explain, tree
from watermark.errors import SluiceError

_LOG_BLOCK_BYTES = 256 * 1024
_REMOVAL_WAIT_S = 10.0
_PREVIEW_S = 30.0
_POLL_S = 0.05
router = APIRouter(prefix="/v1/jobs", tags=["jobs"], dependencies=[VIEWER])


@router.post(
    "",
    status_code=201,
    summary="Submit a job",
    dependencies=[OPERATOR],
    responses={201: {"headers": {"Location": {"schema": {"type": "string"}}}}},
)
def submit_job(
    body: Submission, response: Response, services: Injected, idempotency_key: IdempotencyKey = None
) -> JobDetail:
    """Plan the script, check the systems that it names, store the job and start its runner."""
    request = submission.SubmissionRequest(body.sql, body.name, idempotency_key, append=body.append)
    job = services.submissions.submit(request)
    services.supervisor.wake()
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return services.detail(job)


async def _job_filter(
    state: Annotated[list[JobState] | None, Query(max_length=20)] = None,
    desired_state: Annotated[list[DesiredState] | None, Query(max_length=8)] = None,
    name: Annotated[str | None, Query(max_length=100, description="The whole name.")] = None,
    search: Annotated[
        str | None,
        Query(max_length=100, description="Part of the name, or start of the id."),
    ] = None,
) -> JobFilter:
    return JobFilter(tuple(state or ()), tuple(desired_state or ()), name, search)


@router.get("", summary="List jobs")
def list_jobs(
    services: Injected,
    job_filter: Annotated[JobFilter, Depends(_job_filter)],
    cursor: Annotated[str | None, Query(pattern=r"^[0-9a-f-]{36}$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    recent: Annotated[bool, Query(description="Include rates of the last 30 minutes.")] = False,
) -> JobPage:
    """Jobs, newest first, page by page; a repeated filter matches any of its values."""
    jobs = services.store.page(job_filter, before=cursor, limit=limit + 1)
    items = services.listed(jobs[:limit], recent=recent)
    return JobPage(items=items, next_cursor=items[-1].id if len(jobs) > limit else None)


@router.get("/{job_id}", summary="Show a job")
def show_job(job_id: JobId, services: Injected) -> JobDetail:
    """Phase, snapshot progress, watermarks, held records, versions, lag, and reason for waiting."""
    return services.detail(services.store.get(job_id))


@router.delete(
    "/{job_id}",
    status_code=204,
    summary="Remove a job",
    dependencies=[OPERATOR],
    response_model=None,
    responses={
        200: {"model": RemovalView, "description": "Removed, except for part of its output."},
        202: {"model": JobDetail, "description": "The removal is in progress."},
    },
)
def remove_job(
    job_id: JobId,
    services: Injected,
    output: Annotated[bool, Query(description="Also delete the job's output.")] = False,
    topics: Annotated[bool, Query(description="Delete the job's topics, too.")] = True,
) -> Response:
    """Stop the job and delete its topics, tables, index and checkpoint.

    With `output`, also delete Delta tables that only this job created and wrote. Without `topics`
    the cluster of the job's topics is not asked: it may be gone.
    """
    marker = services.layout(job_id).leave_topics
    with suppress(FileNotFoundError):  # the directory is gone already
        marker.unlink() if topics else marker.touch()  # before the first attempt looks
    try:
        services.store.want(job_id, DesiredState.REMOVED, remove_output=output)
    except JobNotFoundError:
        if not services.supervisor.left(job_id):
            raise
        return _removed(job_id, services)
    services.supervisor.remove(job_id)
    deadline = time.monotonic() + _REMOVAL_WAIT_S
    while time.monotonic() < deadline:
        try:
            job = services.store.get(job_id)
        except JobNotFoundError:
            return _removed(job_id, services)
        if job.reason.startswith(REMOVAL_FAILED):
            break
        time.sleep(_POLL_S)
    return JSONResponse(
        services.detail(job).model_dump(mode="json", by_alias=True), status_code=202
    )


def _removed(job_id: str, services: Services) -> Response:
    left = services.supervisor.left(job_id)
    return JSONResponse(RemovalView(left=left).model_dump()) if left else Response(status_code=204)


@router.get("/{job_id}/log", summary="Show the runner's log", response_class=PlainTextResponse)
def show_log(
    job_id: JobId,
    services: Injected,
    offset: Annotated[int | None, Query(ge=0, description="First byte; default: the end.")] = None,
) -> Response:
    """A block of the log; the header `Sluice-Next-Offset` is the start of the next one."""
    services.store.get(job_id)
    text, next_offset = _log_block(services.layout(job_id), offset)
    headers = {"Sluice-Next-Offset": str(next_offset)}
    return PlainTextResponse(text, headers=headers)


def _log_block(layout: JobLayout, offset: int | None) -> tuple[bytes, int]:
    try:
        with layout.runner_log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            first = max(0, size - _LOG_BLOCK_BYTES) if offset is None else offset
            file.seek(0 if first > size else first)
            begin, block = file.tell(), file.read(_LOG_BLOCK_BYTES)
            whole = codecs.utf_8_decode(block, "replace", False)[1]  # the rest is half a character
            text, end = block[:whole], begin + whole
            if offset is None and first == 0:
                text = tail_before(layout.runner_log, _LOG_BLOCK_BYTES - len(text)) + text
            return text, end
    except FileNotFoundError:
        return b"", 0


@router.post(":validate", summary="Check a script", dependencies=[OPERATOR])
def validate_script(body: ScriptCheck, services: Injected) -> Validation:
    """Plan the script and, unless `outside` is false, check the systems it names; store nothing."""
    drafted = services.submissions.draft(
        body.sql, body.name, outside=body.outside, append=body.append
    )
    return Validation(
        valid=True,
        name=drafted.plan.name,
        outside=body.outside,
        warnings=[submission_warning(text) for text in drafted.warnings],
    )


@router.post(":migrate", summary="Change a script of Flink", dependencies=[OPERATOR])
def migrate_script(body: Migratable, services: Injected) -> MigrationView:
    """Change what is sure, with a comment for each change; store nothing, reach no other system."""
    migration = services.submissions.migrate(body.sql)
    return MigrationView(
        accepted=migration.is_accepted,
        sql=migration.sql,
        changes=list(migration.changes),
        left=[FindingView(**asdict(each)) for each in migration.left],
        warnings=[submission_warning(text) for text in migration.warnings],
    )


@router.post(":plan", summary="Show the plan of a script", dependencies=[OPERATOR])
def plan_script(body: Submission, services: Injected) -> PlanView:
    """Plan the script without contacting other systems; store nothing."""
    drafted = services.submissions.draft(body.sql, body.name, outside=False)
    lines = explain(drafted.plan)
    return PlanView(
        name=drafted.plan.name,
        lines=lines,
        text="\n".join(lines),
        tree="\n".join(tree(drafted.plan)),
        warnings=[submission_warning(text) for text in drafted.warnings],
        plan=orjson.loads(services.submissions.dump(drafted.plan)),
    )


@router.post("/{job_id}:stop", status_code=202, summary="Stop a job", dependencies=[OPERATOR])
def stop_job(job_id: JobId, services: Injected, by: AskedBy) -> JobDetail:
    """Stop the runner after its batch; the job keeps its position."""
    return services.want(job_id, DesiredState.STOPPED, by=by)


@router.post(
    "/{job_id}:start",
    status_code=202,
    summary="Start a stopped or failed job",
    dependencies=[OPERATOR],
)
def start_job(job_id: JobId, services: Injected) -> JobDetail:
    """Continue where the job stopped; also continues a paused job."""
    return services.want(job_id, DesiredState.RUNNING)


@router.post(
    "/{job_id}:pause", status_code=202, summary="Pause a job that runs", dependencies=[OPERATOR]
)
def pause_job(job_id: JobId, services: Injected, by: AskedBy) -> JobDetail:
    """Stop the runner after its batch; the stream's records stay in Kafka."""
    return services.want(job_id, DesiredState.PAUSED, by=by)


@router.post(
    "/{job_id}:resume", status_code=202, summary="Resume a paused job", dependencies=[OPERATOR]
)
def resume_job(job_id: JobId, services: Injected) -> JobDetail:
    """Continue after the last committed batch; no effect on a running job."""
    return services.want(job_id, DesiredState.RUNNING, resume=True)


@router.post("/{job_id}:update", status_code=200, summary="Change a job", dependencies=[OPERATOR])
def update_job(job_id: JobId, body: JobUpdate, services: Injected) -> UpdateView:
    """Give the job another plan. Its runner takes it once its batch is committed.

    Copies of tables, offsets and the output stay. With `preview`, only show what would change.
    """
    updates, layout = services.updates, services.layout(job_id)
    now = JobPlans(layout).newest_number
    if body.of_plan is not None and body.of_plan != now:
        raise JobConflictError(
            f'job "{job_id}" has plan {now}, expected plan {body.of_plan}',
            hint="Look at the difference again.",
        )
    if body.sql is not None and body.to_plan is not None:
        raise SubmissionError(
            "a change has both a script and an older plan", hint="Name one of them."
        )
    if body.sql is not None:
        draft = updates.draft(job_id, body.sql)
    else:
        draft = updates.draft_rollback(job_id, body.to_plan)
    if not body.preview:
        updates.store(job_id, draft)
        services.supervisor.wake()
    applied = bool(draft.changes) and not body.preview
    return UpdateView(
        job_id=job_id,
        plan=draft.plan.number if applied else now,
        new_plan=draft.plan.number if draft.changes else None,
        applied=applied,
        accepted=not draft.refused,
        changes=[
            ChangeView(
                kind=change.kind.value,
                of=change.of,
                accepted=change.is_accepted,
                reason=change.reason,
                hint=change.hint,
            )
            for change in draft.changes
        ],
        warnings=list(draft.warnings),
        rows=_previewed(services, job_id, draft, body.batches) if body.preview else [],
    )


def _previewed(
    services: Services, job_id: str, draft: UpdateDraft, batches: int
) -> list[RowsPreview]:
    """What the draft changes in rows of past batches; empty where it changes none."""
    if draft.refused or not draft.changes_rows or not batches:
        return []
    question = {"plan": dump(draft.plan).decode(), "batches": batches, "within_s": _PREVIEW_S}
    try:
        answer = inspect(services, job_id, ["preview"], timeout_s=2 * _PREVIEW_S, question=question)
    except SluiceError as exc:  # the update itself is possible all the same
        sinks = [insert.sink_table for insert in draft.plan.inserts]
        return [RowsPreview(sink_table=sink, reason=exc.message) for sink in sinks]
    return [RowsPreview.model_validate(each) for each in answer["inserts"]]
