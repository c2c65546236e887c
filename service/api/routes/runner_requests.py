"""Asks a runner to do something and waits a little for its answer."""

import threading
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from joins.plan.errors import StaleTableError
from service.api.http.access import OPERATOR, VIEWER
from service.api.services import IdempotencyKey, Injected, JobId, Services
from service.errors import AnsweredError, JobConflictError, JobNotFoundError, RunnerAbsentError
from service.jobs.store.job import JobState
from service.jobs.store.runner_files import (
    ACKNOWLEDGE,
    CHOICES,
    REPLAY_DEAD_LETTERS,
    Asked,
    RequestBox,
    read_acknowledgements,
)
from service.schemas.inspection import (
    Acknowledge,
    AcknowledgementPage,
    AcknowledgementView,
    RefusalView,
    RequestView,
)

LATER: dict[str, Any] = {
    "model": RequestView,
    "description": "In progress; `GET /v1/jobs/{id}/requests/{request}` has the result.",
    "headers": {"Location": {"schema": {"type": "string"}}},
}
_WAIT_S = 10.0
_seats = threading.BoundedSemaphore(8)  # server threads that may wait for runners


def ask_runner(services: Services, job_id: str, request: Asked, model: type[BaseModel]) -> Response:
    """The runner's result as a document of `model`, or an answer 202 when it takes longer.

    Raises:
        RunnerAbsentError: the job has no runner.
        AnsweredError: the runner refused.
    """
    box, request_id = send_to_runner(services, job_id, request)
    seated = _seats.acquire(blocking=False)
    try:
        answer = box.wait(request_id, timeout_s=_WAIT_S if seated else 0.0)
    finally:
        if seated:
            _seats.release()
    if answer is None:
        view = RequestView(id=request_id, status="waiting")
        place = {"Location": f"/v1/jobs/{job_id}/requests/{request_id}"}
        return JSONResponse(view.model_dump(mode="json"), status_code=202, headers=place)
    if answer.error is not None:
        error = answer.error
        raise AnsweredError(error.message, hint=error.hint, kind=error.type)
    result = model.model_validate(answer.result or {})
    return JSONResponse(result.model_dump(mode="json", by_alias=True))


def send_to_runner(services: Services, job_id: str, request: Asked) -> tuple[RequestBox, str]:
    """Where the answer will be, and its id; RunnerAbsentError if the job has no runner."""
    job = services.store.get(job_id)
    has_ended = job.state is JobState.FINISHED
    answers = has_ended and request.kind == REPLAY_DEAD_LETTERS
    if not (answers or services.supervisor.runner_of(job_id).alive):
        hint = "Start the job with sluice jobs resume; a STALLED job gets a runner again soon."
        if has_ended:
            hint = "The job has finished; only its dead letters can still be replayed."
        raise RunnerAbsentError(f'job "{job_id}" has no runner for this request', hint=hint)
    box = services.requests(job_id)
    request_id = box.send(request)
    if answers:
        services.supervisor.serve_requests(job_id)
    return box, request_id


def request_view(box: RequestBox, request_id: str) -> RequestView | None:
    """The request as the API shows it; None if it does not exist."""
    answer = box.answer(request_id)
    if answer is None:
        known = box.sent(request_id)
        return RequestView(id=request_id, status="waiting") if known else None
    if answer.error is not None:
        error = answer.error
        refusal = RefusalView(type=error.type, message=error.message, hint=error.hint)
        return RequestView(id=request_id, status="refused", error=refusal)
    return RequestView(id=request_id, status="done", result=dict(answer.result or {}))


RequestId = Annotated[str, Path(pattern=r"^[0-9a-f-]{36}$", description="As a 202 named it.")]
router = APIRouter(prefix="/v1/jobs", tags=["acknowledgements"], dependencies=[VIEWER])


@router.post(
    "/{job_id}:acknowledge",
    summary="Acknowledge the cause of a stall",
    dependencies=[OPERATOR],
    response_model=None,
    responses={200: {"model": AcknowledgementView}, 202: LATER},
)
def acknowledge(
    job_id: JobId, body: Acknowledge, services: Injected, idempotency_key: IdempotencyKey = None
) -> Response:
    """Continue a stalled job as chosen; the decision is recorded with its reason and the loss."""
    choice = _choice(body)
    request = Asked(
        kind=ACKNOWLEDGE,
        body={
            "cause": body.cause,
            "choice": choice,
            "reason": body.reason,
            **({} if body.for_s is None else {"for_s": body.for_s}),
        },
        by=body.by,
        key=idempotency_key,
    )
    return ask_runner(services, job_id, request, AcknowledgementView)


def _choice(body: Acknowledge) -> str:
    if body.cause not in CHOICES:
        raise JobConflictError(
            f'cause "{body.cause}" cannot be acknowledged, expected {", ".join(CHOICES)}',
            hint="Give the type of the job's error, if it is one of these.",
        )
    if (body.cause == StaleTableError.fault) is (body.for_s is None):
        raise JobConflictError(
            f'"for_s" is {body.for_s} with cause "{body.cause}"; it belongs to cause "stale", '
            "and is required there",
            hint="Say for how long records pass, such as --for '10 min'.",
        )
    choices = CHOICES[body.cause]
    if body.choice is not None and body.choice not in choices:
        raise JobConflictError(
            f'choice "{body.choice}" does not belong to cause "{body.cause}", '
            f"expected {', '.join(choices)}",
            hint="Choose one of these, or stop the job.",
        )
    return body.choice or choices[0]


@router.get("/{job_id}/acknowledgements", summary="Show acknowledgements")
def list_acknowledgements(
    job_id: JobId,
    services: Injected,
    cursor: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> AcknowledgementPage:
    """Decisions of operators, oldest first, with reason and lost offsets."""
    services.store.get(job_id)
    acknowledgements = read_acknowledgements(services.layout(job_id).job_dir)
    items = [
        AcknowledgementView.model_validate(a) for a in acknowledgements[cursor : cursor + limit]
    ]
    more = cursor + limit < len(acknowledgements)
    return AcknowledgementPage(items=items, next_cursor=cursor + limit if more else None)


@router.get("/{job_id}/requests/{request_id}", summary="Show a request to the runner")
def show_request(job_id: JobId, request_id: RequestId, services: Injected) -> RequestView:
    """Whether the runner has carried out the request, and the result."""
    services.store.get(job_id)
    view = request_view(services.requests(job_id), request_id)
    if view is None:
        raise JobNotFoundError(
            f'job "{job_id}" has no request "{request_id}"',
            hint="Requests are dropped after a thousand later ones; send it again.",
        )
    return view
