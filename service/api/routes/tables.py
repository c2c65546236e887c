"""`/v1/jobs/{id}/dimensions`, `/outputs` and `/preview`: tables of a job and its output.

An inspection, a separate process, reads the rows. With the Accept header
`application/vnd.apache.arrow.stream` rows come as an Arrow stream, the rest as headers.
"""

import base64
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel

from joins.plan.errors import QuestionError
from joins.plan.plan import JoinPlan
from service.api.http.access import VIEWER
from service.api.http.checks import wants
from service.api.routes.inspection import Sink, inspect
from service.api.services import Injected, JobId, Services
from service.jobs.store.plan_codec import load
from service.schemas.tables import (
    ColumnView,
    DimensionChanges,
    DimensionHistory,
    DimensionList,
    DimensionRows,
    OutputList,
    OutputView,
    Preview,
)

ARROW = "application/vnd.apache.arrow.stream"

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
Version = Annotated[int | None, Query(ge=0, le=_LARGEST, description="Default: the newest.")]
Limit = Annotated[int, Query(ge=1, le=1_000)]
Accept = Annotated[str, Header(include_in_schema=False)]
PageCursor = Annotated[
    str | None,
    Query(
        max_length=16_384,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="next_cursor of the previous page; continues in the same versions.",
    ),
]
Keys = Annotated[
    list[str] | None,
    Query(
        max_length=_MOST_KEYS,
        description="Only rows with these keys, each as rows show it; a composite key is a JSON "
        "array in key order, or a JSON object.",
    ),
]
router = APIRouter(prefix="/v1/jobs", tags=["tables"], dependencies=[VIEWER])


def _ask(services: Services, job_id: str, question: Mapping[str, Any]) -> dict[str, Any]:
    return inspect(services, job_id, ["tables"], question=question)


def _rendered(answer: dict[str, Any], model: type[Found]) -> Found | Response:
    stream = answer.get("arrow")
    if stream is None:
        return model.model_validate(answer)
    headers = {_HEADERS[n]: str(v) for n, v in answer.items() if n in _HEADERS and v is not None}
    return Response(base64.b64decode(stream), media_type=ARROW, headers=headers)


@router.get("/{job_id}/dimensions", summary="List the tables that a job joins with")
def list_dimensions(job_id: JobId, services: Injected) -> DimensionList:
    """Columns, key, readable versions, and the version pinned by the newest batch."""
    return DimensionList.model_validate(_ask(services, job_id, {"what": "dimensions"}))


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
    """Rows at a version as the join saw them: those of some keys, or a page in key order."""
    if cursor is not None and (key or version is not None):
        raise QuestionError(
            "a cursor cannot be combined with key or version",
            hint="Send only cursor and limit: the cursor contains the version.",
        )
    question = {"what": "rows", "table": table, "keys": key or None, "version": version}
    question |= {"limit": limit, "cursor": cursor, "arrow": wants(accept, ARROW)}
    return _rendered(_ask(services, job_id, question), DimensionRows)


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
        int | None, Query(alias="from", ge=0, le=_LARGEST, description="Required without a cursor.")
    ] = None,
    last: Annotated[
        int | None, Query(alias="to", ge=0, le=_LARGEST, description="Default: the newest.")
    ] = None,
    limit: Limit = 100,
    cursor: PageCursor = None,
    accept: Accept = "",
) -> DimensionChanges | Response:
    """Inserted, updated and deleted rows; an Arrow stream has `_change_type`, as in Delta.

    A row rewritten with the same values is not a change.
    """
    if (cursor is None) == (first is None) or (cursor is not None and last is not None):
        raise QuestionError(
            'either "from" or a cursor is required',
            hint='Give "from" (and "to") for the first page, only the cursor for later pages.',
        )
    question = {"what": "changes", "table": table, "from": first, "to": last}
    question |= {"limit": limit, "cursor": cursor, "arrow": wants(accept, ARROW)}
    return _rendered(_ask(services, job_id, question), DimensionChanges)


@router.get("/{job_id}/dimensions/{table}/history", summary="List the versions that changed a key")
def show_history(
    job_id: JobId,
    table: TableName,
    services: Injected,
    key: Annotated[
        str | None,
        Query(description="As for the rows of a table. Required without a cursor."),
    ] = None,
    limit: Limit = 100,
    cursor: PageCursor = None,
) -> DimensionHistory:
    """The row of one key before and after each version that changed it, newest first.

    The last page has the row at the oldest readable version.
    """
    if (cursor is None) == (key is None):
        raise QuestionError(
            "either a key or a cursor is required",
            hint='Give "key" for the first page, only the cursor for later pages.',
        )
    question = {"what": "history", "table": table, "key": key, "limit": limit, "cursor": cursor}
    return DimensionHistory.model_validate(_ask(services, job_id, question))


@router.get("/{job_id}/outputs", summary="List outputs with their columns")
def list_outputs(job_id: JobId, services: Injected) -> OutputList:
    """The columns that each INSERT writes, of any connector."""
    inserts = load(services.store.get(job_id).plan).inserts
    return OutputList(
        items=[
            OutputView(insert=number, table=each.sink_table, columns=_columns_of(each))
            for number, each in enumerate(inserts, start=1)
        ]
    )


def _columns_of(insert: JoinPlan) -> list[ColumnView]:
    return [
        ColumnView(name=each.name, type=str(each.expression.type), nullable=each.nullable)
        for each in insert.output
    ]


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
    """Newest batch first, with pin and counts of each batch; only for delta sinks, else 409."""
    question = {"what": "preview", "limit": limit, "sink": sink, "arrow": wants(accept, ARROW)}
    return _rendered(_ask(services, job_id, question), Preview)
