"""`/v1/jobs/{id}:acknowledge` and its kin: decisions that only an operator can make."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from service.api.http.access import OPERATOR, VIEWER
from service.api.routes.jobs import IdempotencyKey, Injected, JobId
from service.api.routes.runner_requests import LATER, ask_runner, request_view
from service.errors import JobConflictError, JobNotFoundError
from service.jobs.store.runner_files import ACKNOWLEDGE, CHOICES, Asked, read_acknowledgements
from service.schemas.inspection import (
    Acknowledge,
    AcknowledgementPage,
    AcknowledgementView,
    RequestView,
)

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
    """Let the job go on as chosen; the decision is kept with its reason and what is lost by it."""
    choice = _choice(body)
    request = Asked(
        kind=ACKNOWLEDGE,
        body={"cause": body.cause, "choice": choice, "reason": body.reason},
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
    choices = CHOICES[body.cause]
    if body.choice is not None and body.choice not in choices:
        raise JobConflictError(
            f'choice "{body.choice}" is none of cause "{body.cause}", '
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
    """What operators have acknowledged, the oldest first, with reason and lost offsets."""
    services.store.get(job_id)
    acknowledgements = read_acknowledgements(services.layout(job_id).job_dir)
    items = [
        AcknowledgementView.model_validate(a) for a in acknowledgements[cursor : cursor + limit]
    ]
    more = cursor + limit < len(acknowledgements)
    return AcknowledgementPage(items=items, next_cursor=cursor + limit if more else None)


@router.get("/{job_id}/requests/{request_id}", summary="Show a request to the runner")
def show_request(job_id: JobId, request_id: RequestId, services: Injected) -> RequestView:
    """Whether the runner has carried it out, and with which result."""
    services.store.get(job_id)
    view = request_view(services.requests(job_id), request_id)
    if view is None:
        raise JobNotFoundError(
            f'job "{job_id}" has no request "{request_id}"',
            hint="Requests are forgotten after a thousand others; send it anew.",
        )
    return view
