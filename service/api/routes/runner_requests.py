"""Asks a runner to do something and waits a little for its answer."""

import threading
from typing import Any

from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from service.api.routes.jobs import Services
from service.errors import AnsweredError, RunnerAbsentError
from service.jobs.store.job import JobState
from service.jobs.store.runner_files import REPLAY_DEAD_LETTERS, Asked, RequestAnswer, RequestBox
from service.schemas.inspection import RefusalView, RequestView

LATER: dict[str, Any] = {
    "model": RequestView,
    "description": "The runner goes on with it; `GET /v1/jobs/{id}/requests/{request}` follows it.",
    "headers": {"Location": {"schema": {"type": "string"}}},
}
_WAIT_S = 10.0
_seats = threading.BoundedSemaphore(8)  # of the server's threads, so many may wait for runners


def ask_runner(services: Services, job_id: str, request: Asked, model: type[BaseModel]) -> Response:
    """The runner's result as a document of `model`, or an answer 202 when it takes longer.

    Raises:
        RunnerAbsentError: nobody would carry it out.
        AnsweredError: the runner has refused.
    """
    job = services.store.get(job_id)
    has_ended = job.state is JobState.FINISHED
    answers = has_ended and request.kind == REPLAY_DEAD_LETTERS
    if not (answers or services.supervisor.runner_of(job_id).alive):
        hint = "Start the job with sluice jobs resume; a STALLED job has a runner soon again."
        if has_ended:
            hint = "It has finished, so there is nothing to decide; its dead letters can be joined."
        raise RunnerAbsentError(f'job "{job_id}" has no runner that could do this', hint=hint)
    box = services.requests(job_id)
    request_id = box.send(request)
    if answers:
        services.supervisor.ask(job_id)
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
    result = model.model_validate(_result(answer))
    return JSONResponse(result.model_dump(mode="json", by_alias=True))


def request_view(box: RequestBox, request_id: str) -> RequestView | None:
    """The request as the API shows it; None if there is none."""
    answer = box.answer(request_id)
    if answer is None:
        known = box.sent(request_id)
        return RequestView(id=request_id, status="waiting") if known else None
    if answer.error is not None:
        error = answer.error
        refusal = RefusalView(type=error.type, message=error.message, hint=error.hint)
        return RequestView(id=request_id, status="refused", error=refusal)
    return RequestView(id=request_id, status="done", result=dict(answer.result or {}))


def _result(answer: RequestAnswer) -> dict[str, Any]:
    if answer.error is not None:
        error = answer.error
        raise AnsweredError(error.message, hint=error.hint, kind=error.type)
    return dict(answer.result or {})
