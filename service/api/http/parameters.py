"""Refuses query parameters that an address does not have: a misspelt filter would list all.

One that has a single value and is there twice is refused, too: programs differ in which they take.
"""

from typing import get_args, get_origin

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
    known = {
        field.alias: field.field_info for field in fields if isinstance(field.field_info, Query)
    }
    unknown = sorted(request.query_params.keys() - known.keys())
    if unknown:
        expected = ", ".join(sorted(known)) or "none"
        raise HTTPException(
            400, f'query parameter "{unknown[0][:100]}" is unknown, expected {expected}'
        )
    for name, info in known.items():
        times = len(request.query_params.getlist(name))
        if times > 1 and not _takes_several(info.annotation):
            raise HTTPException(400, f'query parameter "{name}" is there {times} times, expected 1')


def _takes_several(annotation: object) -> bool:
    return any(get_origin(part) is list for part in (annotation, *get_args(annotation)))
