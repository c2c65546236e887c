"""Refuses query parameters that an address does not have: a misspelt filter would list all."""

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

_OURS = ("/v1/", "/jobs/")  # a page may keep its own state in its address


async def check_query(request: Request) -> None:
    """Let pass what the address knows.

    Raises:
        HTTPException: 400; nothing has been done. The value is not repeated.
    """
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    if not route.path.startswith(_OURS):
        return
    fields = get_flat_params(route.dependant)
    known = {field.alias for field in fields if isinstance(field.field_info, Query)}
    unknown = sorted(request.query_params.keys() - known)
    if unknown:
        expected = ", ".join(sorted(known)) or "none"
        raise HTTPException(
            400, f'query parameter "{unknown[0][:100]}" is unknown, expected {expected}'
        )
