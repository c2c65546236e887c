"""`/v1/jobs/{id}/dimensions` and `/preview`: what a job joins with, and what it has written.

Tables are read by an inspection, a process apart. Who accepts `application/vnd.apache.arrow.stream`
gets the rows as an Arrow stream, and headers say what JSON says around them.
"""

import base64
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel

from joins.plan.errors import QuestionError
from service.api.http.access import VIEWER
from service.api.http.checks import wants
from service.api.routes.inspection import Sink
from service.api.services import Injected, JobId, Services
from service.schemas.tables import (
    DimensionChanges,
    DimensionHistory,
    DimensionList,
    DimensionRows,
    Preview,
)

ARROW = "application/vnd.apache.arrow.stream"
_TIMEOUT_S = 60.0
_LARGEST = 2**63 - 1
_MOST_KEYS = 100
_HEADERS = {
    "version": "Sluice-Version",
    "from_version": "Sluice-From-Version",
    "to_version": "Sluice-To-Version",
    "next_cursor": "Sluice-Next-Cursor",
}
_STREAM: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_RESPONSES: dict[int | str, dict[str, Any]] = {200: {"content": {ARROW: _STREAM}}}
Found = TypeVar("Found", bound=BaseModel)
TableName = Annotated[str, Path(min_length=1, max_length=255, description="As in the script.")]
Version = Annotated[int | None, Query(ge=0, le=_LARGEST, description="The newest if left out.")]
Limit = Annotated[int, Query(ge=1, le=1_000)]
Accept = Annotated[str, Header(include_in_schema=False)]
PageCursor = Annotated[
    str | None,
    Query(
        max_length=16_384,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="next_cursor of the page before: goes on in the same versions.",
    ),
]
Keys = Annotated[
    list[str] | None,
    Query(
        max_length=_MOST_KEYS,
        description="Only rows with these keys: a value as rows show it, of a composite key a JSON "
        "array in key order or a JSON object.",
    ),
]
router = APIRouter(prefix="/v1/jobs", tags=["tables"], dependencies=[VIEWER])


def ask(services: Services, job_id: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """What an inspection says of the job's tables.

    Raises:
        JobNotFoundError: there is no such job.
        ServiceError: see `Inspector.ask`.
    """
    services.store.get(job_id)
    job_dir = services.layout(job_id).job_dir
    return services.inspector.ask(job_dir, ["tables"], timeout_s=_TIMEOUT_S, question=question)


def _rendered(answer: dict[str, Any], model: type[Found]) -> Found | Response:
    """An answer as it was asked for."""
    stream = answer.get("arrow")
    if stream is None:
        return model.model_validate(answer)
    headers = {_HEADERS[n]: str(v) for n, v in answer.items() if n in _HEADERS and v is not None}
    return Response(base64.b64decode(stream), media_type=ARROW, headers=headers)


@router.get("/{job_id}/dimensions", summary="List the tables that a job joins with")
def list_dimensions(job_id: JobId, services: Injected) -> DimensionList:
    """Columns, key, the versions that can be read, and the one that the newest batch has met."""
    return DimensionList.model_validate(ask(services, job_id, {"what": "dimensions"}))


@router.get(
    "/{job_id}/dimensions/{table}",
    summary="Show rows of a table at a version",
    response_model=DimensionRows,
    responses=_RESPONSES,
)
def show_rows(
    job_id: JobId,
    table: TableName,
    services: Injected,
    key: Keys = None,
    version: Version = None,
    limit: Limit = 100,
    cursor: PageCursor = None,
    accept: Accept = "",
) -> DimensionRows | Response:
    """Rows as the join saw them at that version: those of some keys, or a page in key order."""
    if cursor is not None and (key or version is not None):
        raise QuestionError(
            "a cursor goes with neither key nor version",
            hint="Send the cursor and the limit alone: the cursor names the version.",
        )
    question = {"what": "rows", "table": table, "keys": key or None, "version": version}
    question |= {"limit": limit, "cursor": cursor, "arrow": wants(accept, ARROW)}
    return _rendered(ask(services, job_id, question), DimensionRows)


@router.get(
    "/{job_id}/dimensions/{table}/changes",
    summary="Compare two versions of a table",
    response_model=DimensionChanges,
    responses=_RESPONSES,
)
def show_changes(
    job_id: JobId,
    table: TableName,
    services: Injected,
    first: Annotated[
        int | None, Query(alias="from", ge=0, le=_LARGEST, description="Needed without a cursor.")
    ] = None,
    last: Annotated[
        int | None, Query(alias="to", ge=0, le=_LARGEST, description="The newest if left out.")
    ] = None,
    limit: Limit = 100,
    cursor: PageCursor = None,
    accept: Accept = "",
) -> DimensionChanges | Response:
    """Rows that were inserted, updated or deleted; an Arrow stream has `_change_type`, as Delta's.

    A row that was written again with the same values is no change.
    """
    if (cursor is None) == (first is None) or (cursor is not None and last is not None):
        raise QuestionError(
            'either "from" or a cursor says where the comparison begins',
            hint='Give "from" (and "to") for the first page, the cursor alone for the next ones.',
        )
    question = {"what": "changes", "table": table, "from": first, "to": last}
    question |= {"limit": limit, "cursor": cursor, "arrow": wants(accept, ARROW)}
    return _rendered(ask(services, job_id, question), DimensionChanges)


@router.get("/{job_id}/dimensions/{table}/history", summary="Tell which versions changed a key")
def show_history(
    job_id: JobId,
    table: TableName,
    services: Injected,
    key: Annotated[
        str | None,
        Query(description="As for the rows of a table. Needed without a cursor."),
    ] = None,
    limit: Limit = 100,
    cursor: PageCursor = None,
) -> DimensionHistory:
    """The row of one key before and after each version that changed it, the newest first.

    It goes back to the oldest version that is kept, and the last page tells what that one has.
    """
    if (cursor is None) == (key is None):
        raise QuestionError(
            "either a key or a cursor says whose history it is",
            hint='Give "key" for the first page, the cursor alone for the next ones.',
        )
    question = {"what": "history", "table": table, "key": key, "limit": limit, "cursor": cursor}
    return DimensionHistory.model_validate(ask(services, job_id, question))


@router.get(
    "/{job_id}/preview",
    summary="Show the newest rows of the output",
    response_model=Preview,
    responses=_RESPONSES,
)
def show_preview(
    job_id: JobId,
    services: Injected,
    limit: Limit = 20,
    sink: Sink = None,
    accept: Accept = "",
) -> Preview | Response:
    """Newest batch first, each batch with its pin and counts; other sinks than delta answer 409."""
    question = {"what": "preview", "limit": limit, "sink": sink, "arrow": wants(accept, ARROW)}
    return _rendered(ask(services, job_id, question), Preview)
