"""Turns every error into `application/problem+json` (RFC 9457) with a `hint`.

| status | when |
|---|---|
| 400 | the body is not JSON, a parameter is malformed, or the query contains a token |
| 401 | the token is missing or invalid |
| 403 | the token's scope is too small, or Host or Origin is not this control plane |
| 404, 405 | no such address, job, table, batch, record or method |
| 406 | the Accept header permits no media type of the address |
| 408 | the body did not arrive in time |
| 409 | conflict with the job's state or an earlier idempotency key, or the runner refused |
| 410 | the record or table version existed and has expired |
| 413 | the body is larger than 1 MiB |
| 415 | the body is not declared as JSON |
| 422 | the script, or a system that it names, cannot be used |
| 429 | too many requests or failed logins of one caller |
| 431 | the head of the request is larger than 32 KiB |
| 500 | an internal error; details are in the log |
| 503 | no job store, a full disk, too many requests, or another control plane leads |
"""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from joins.kernels.local_files import is_full
from joins.plan.causes import cause_of
from joins.plan.errors import DiskFullError, NotReplayableError, QuestionError
from service.api.http.checks import unreadable
from service.errors import (
    AnsweredError,
    BusyError,
    ForbiddenError,
    InspectionError,
    JobConflictError,
    JobNotFoundError,
    StandbyError,
    StoreError,
    TableNotFoundError,
    TokenLimitError,
    TokenNotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
    VertexNotFoundError,
)
from watermark.errors import SluiceError

MEDIA_TYPE = "application/problem+json"
_log = structlog.get_logger(__name__)
_STATUS: dict[type[SluiceError], int] = {
    QuestionError: 400,
    JobNotFoundError: 404,
    VertexNotFoundError: 404,
    TableNotFoundError: 404,
    JobConflictError: 409,
    NotReplayableError: 409,
    StoreError: 503,
    DiskFullError: 503,
    StandbyError: 503,
    BusyError: 503,
    InspectionError: 503,
    UnauthorizedError: 401,
    ForbiddenError: 403,
    TokenNotFoundError: 404,
    TokenLimitError: 409,
    TooManyRequestsError: 429,
}
# Python renamed these with RFC 9110; the `type` must not change
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
_STATUS_OF_ANSWER = {
    "question": 400,
    **dict.fromkeys(("unknown-batch", "unknown-topic", "unknown-letter"), 404),
    **dict.fromkeys(("unknown-dimension", "unknown-version"), 404),
    **dict.fromkeys(
        ("nothing-to-acknowledge", "batch-not-committed", "not-replayable", "request"), 409
    ),
    "not-readable": 409,
    **dict.fromkeys(("pinned-version-expired", "records-expired", "version-expired"), 410),
    "source-unavailable": 503,
}
_RETRY_AFTER_S = "5"
_SHOWN = 300
_EXTENSIONS = ("line", "column", "excerpt", "findings", "state", "desired_state", "leader_url")
_HINT_OF_ID = "GET /v1/jobs?search=NAME lists jobs with their ids."
_HINTS = {
    400: "Correct the request; GET /openapi.json describes every address.",
    404: "GET /openapi.json lists the addresses.",
    405: "Use one of the methods in the Allow header.",
    406: "Omit the Accept header, or accept application/json.",
    408: "Send the body without pauses; SLUICE_REQUEST_TIMEOUT_S is the limit.",
    413: "Send at most 1 MiB; a script may have 64 KiB.",
    415: "Send JSON with the header Content-Type: application/json.",
    422: "Correct the request; GET /openapi.json describes every address.",
    431: "Send fewer or shorter headers, and a shorter address.",
    500: "Report the error with the log of the control plane.",
    503: "Retry later.",
}


def problem(
    status: int,
    detail: str,
    hint: str,
    *,
    kind: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> JSONResponse:
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    content = {
        "type": f"urn:sluice:problem:{kind or title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
        "detail": detail,
        "hint": hint,
        **(more or {}),
    }
    headers = {"Retry-After": _RETRY_AFTER_S} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return JSONResponse(content, status_code=status, media_type=MEDIA_TYPE, headers=headers)


def register(app: FastAPI) -> None:
    app.add_exception_handler(SluiceError, _ours)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(OSError, _refused_by_system)
    app.add_exception_handler(Exception, _unexpected)


def of_error(exc: SluiceError, path: str) -> JSONResponse:
    extensions = {name: getattr(exc, name, None) for name in _EXTENSIONS}
    more = {name: value for name, value in extensions.items() if value}
    more |= {"instance": path, **({"cause": exc.detail} if exc.detail else {})}
    if isinstance(exc, AnsweredError):
        status = _STATUS_OF_ANSWER.get(exc.kind, 422)
        return problem(status, exc.message, exc.hint, kind=exc.kind, more=more)
    status = next((code for kind, code in _STATUS.items() if isinstance(exc, kind)), 422)
    answer = problem(status, exc.message, exc.hint, kind=exc.fault, more=more)
    answer.headers.update(_headers(exc))
    return answer


def _headers(exc: SluiceError) -> dict[str, str]:
    if isinstance(exc, TooManyRequestsError):
        return {"Retry-After": str(max(1, math.ceil(exc.retry_after_s)))}
    if isinstance(exc, UnauthorizedError):
        error = ', error="invalid_token"' if exc.invalid else ""
        return {"WWW-Authenticate": f'Bearer realm="sluice"{error}'}
    return {}


def refused(exc: HTTPException, method: str, path: str) -> JSONResponse:
    """The answer for an HTTPException; a long address is cut."""
    path = path[:_SHOWN]
    details = {
        404: f'address "{path}" does not exist',
        405: f'address "{path}" does not support {method}',
        408: "request body did not arrive in time",
        413: "request body is larger than 1 MiB",
        431: "head of the request is larger than 32 KiB",
    }
    hint = _HINTS.get(exc.status_code, _HINTS[400])
    detail = unreadable(exc) or details.get(exc.status_code, str(exc.detail))
    answer = problem(exc.status_code, detail, hint, more={"instance": path})
    answer.headers.update(exc.headers or {})
    return answer


async def _ours(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, SluiceError)
    return of_error(exc, request.url.path)


async def _http(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, HTTPException)
    return refused(exc, request.method, request.url.path)


async def _invalid(request: Request, exc: Exception) -> JSONResponse:
    """Name the wrong part of the request without its value, which may be a password."""
    assert isinstance(exc, RequestValidationError)
    first = exc.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    path = {"instance": request.url.path}
    if (
        request.method in ("POST", "PUT")
        and media_type != "application/json"
        and first["loc"] == ("body",)
    ):
        detail = f'content type is "{media_type}", expected "application/json"'
        return problem(415, detail, _HINTS[415], more=path)
    if first["type"] == "json_invalid":
        return problem(400, "request body is not valid JSON", _HINTS[400], more=path)
    if first["loc"] == ("path", "job_id"):
        detail = f'"{str(first["input"])[:_SHOWN]}" is no id of a job, expected a UUID'
        return problem(400, detail, _HINT_OF_ID, more=path)
    status = 422 if first["loc"][0] == "body" else 400
    return problem(status, f'"{place}": {first["msg"]}', _HINTS[status], more=path)


async def _refused_by_system(request: Request, exc: Exception) -> JSONResponse:
    if is_full(exc):
        return of_error(cause_of(exc, "request was not carried out"), request.url.path)
    raise exc


async def _unexpected(request: Request, exc: Exception) -> JSONResponse:
    _log.error("request failed", path=request.url.path, error=type(exc).__name__, exc_info=exc)
    detail = "unexpected error in the control plane"
    return problem(500, detail, _HINTS[500], more={"instance": request.url.path})
