"""`/v1/jobs/{id}/dead-letters`: records of the stream that have no rows."""

import base64
import binascii
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from service.api.http.access import OPERATOR, VIEWER
from service.api.routes.inspection import TOPIC_NAME, Place, RecordPlace, inspect
from service.api.routes.runner_requests import LATER, ask_runner
from service.api.services import IdempotencyKey, Injected, JobId
from service.errors import SubmissionError
from service.jobs.store.plan_codec import load
from service.jobs.store.runner_files import REPLAY_DEAD_LETTERS, Asked, not_replayable
from service.schemas.inspection import (
    MOST_MATCHED,
    Correction,
    DeadLetterPage,
    DeadLetterReplayed,
    DeadLettersDiscarded,
    DeadLetterView,
    DiscardDeadLetters,
    LetterName,
    ReplayDeadLetters,
)

_LISTED_VALUE_BYTES = 1024
_SHOWN_VALUE_BYTES = 64 * 1024
_MOST_VALUE_BYTES = 16 << 20


async def _letter_place(
    place: Place,
    topic: Annotated[
        str | None,
        Query(pattern=TOPIC_NAME, description="Required if the stream has several topics."),
    ] = None,
) -> RecordPlace:
    return replace(place, topic=topic)


LetterPlace = Annotated[RecordPlace, Depends(_letter_place)]
router = APIRouter(prefix="/v1/jobs", tags=["dead letters"], dependencies=[VIEWER])


@router.get("/{job_id}/dead-letters", summary="List dead letters")
def list_dead_letters(
    job_id: JobId,
    services: Injected,
    cursor: Annotated[str | None, Query(pattern=r"^\d{1,19}\.\d{1,10}\.\d{1,19}$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    pending: Annotated[
        bool, Query(description="Only those neither replayed nor discarded.")
    ] = False,
    matching: Annotated[
        str | None, Query(min_length=1, max_length=MOST_MATCHED, description="Part of the reason.")
    ] = None,
) -> DeadLetterPage:
    """Dead letters with reason and the start of the value, page by page."""
    arguments = [f"--limit={limit}", f"--value-bytes={_LISTED_VALUE_BYTES}"]
    arguments += [] if cursor is None else [f"--cursor={cursor}"]
    arguments += ["--pending"] if pending else []
    arguments += [] if matching is None else [f"--matching={matching}"]
    page = inspect(services, job_id, ["dead-letters", "list", *arguments])
    return DeadLetterPage.model_validate(page)


@router.get("/{job_id}/dead-letters/{partition}/{offset}", summary="Show a dead letter")
def show_dead_letter(
    job_id: JobId,
    place: LetterPlace,
    services: Injected,
    batch: Annotated[int | None, Query(ge=0, lt=2**63, description="Default: the newest.")] = None,
    value_bytes: Annotated[
        int, Query(ge=0, le=_MOST_VALUE_BYTES, description="Maximum bytes of the value.")
    ] = _SHOWN_VALUE_BYTES,
) -> DeadLetterView:
    """One dead letter with its value."""
    arguments = [*place.arguments(), f"--value-bytes={value_bytes}"]
    arguments += [] if batch is None else [f"--batch={batch}"]
    letter = inspect(services, job_id, ["dead-letters", "show", *arguments])
    return DeadLetterView.model_validate(letter)


@router.post(
    "/{job_id}/dead-letters:replay",
    summary="Join dead letters again",
    dependencies=[OPERATOR],
    response_model=None,
    responses={200: {"model": DeadLetterReplayed}, 202: LATER},
)
def replay_dead_letters(
    job_id: JobId,
    body: ReplayDeadLetters,
    services: Injected,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Join dead letters with the pin of their batch; existing rows are not duplicated."""
    plan = load(services.store.get(job_id).plan)
    if plan.needs_event_batches:
        raise not_replayable(plan)  # also without a runner, which would refuse as well
    request = Asked(REPLAY_DEAD_LETTERS, _selection(body), body.by, idempotency_key)
    return ask_runner(services, job_id, request, DeadLetterReplayed)


@router.post(
    "/{job_id}/dead-letters:discard",
    summary="Discard dead letters",
    dependencies=[OPERATOR],
    response_model=None,
    responses={200: {"model": DeadLettersDiscarded}, 202: LATER},
)
def discard_dead_letters(
    job_id: JobId,
    body: DiscardDeadLetters,
    services: Injected,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Mark dead letters as discarded, with operator and reason; replays then skip them."""
    selection = {**_selection(body), "discard": body.reason}
    request = Asked(REPLAY_DEAD_LETTERS, selection, body.by, idempotency_key)
    return ask_runner(services, job_id, request, DeadLettersDiscarded)


def _selection(body: ReplayDeadLetters | DiscardDeadLetters) -> dict[str, Any]:
    if body.all == (body.records is not None):
        raise SubmissionError(
            'exactly one of "records" and "all" is required',
            hint='Give a list of records, or "all": true.',
        )
    if body.records is None:
        return {"all": True} if body.matching is None else {"all": True, "matching": body.matching}
    if body.matching is not None:
        raise SubmissionError(
            '"matching" cannot be combined with "records"', hint='Give it with "all": true.'
        )
    return {"records": [_record(each) for each in body.records]}


def _record(correction: LetterName) -> dict[str, Any]:
    if not isinstance(correction, Correction):
        return correction.model_dump(exclude_none=True)
    if correction.value is not None and correction.value_base64 is not None:
        raise _unusable(correction, "has two values", "Give value or value_base64.")
    try:
        base64.b64decode(correction.value_base64 or "", validate=True)
    except (binascii.Error, ValueError) as exc:
        raise _unusable(correction, "has an invalid value_base64", "Encode it again.") from exc
    return correction.model_dump(exclude_none=True)


def _unusable(correction: Correction, what: str, hint: str) -> SubmissionError:
    return SubmissionError(
        f"correction of {correction.partition}/{correction.offset} {what}", hint=hint
    )
