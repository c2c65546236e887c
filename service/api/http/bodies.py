"""What FastAPI lets pass in a body of JSON, and we do not: a key that is there twice, NaN, floods.

Of a key that is there twice programs take the first or the last one, so that what a proxy has
checked need not be what is carried out.
"""

import json
from collections.abc import Mapping
from typing import Any, Never

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

_MOST_KEYS = 100  # each unknown one costs an error of its own
_UNREADABLE: Mapping[type[Exception], str] = {
    UnicodeDecodeError: "request body is not UTF-8",
    RecursionError: "request body is nested too deeply",
    ValueError: "request body has a number that is too long",
}


async def check_body(request: Request) -> None:
    """Let pass what everybody reads alike; what is no JSON at all FastAPI refuses.

    Raises:
        HTTPException: 400; nothing has been done. No value is repeated.
    """
    route = request.scope.get("route")
    if isinstance(route, APIRoute) and route.body_field is not None:
        body = await request.body()  # has been read before
        if body and "json" in request.headers.get("content-type", "").lower():
            json.loads(body, object_pairs_hook=_once, parse_constant=_no_constant)


def unreadable(exc: HTTPException) -> str | None:
    """Why FastAPI could not read a body, if that is what it raises."""
    cause = exc.__cause__
    return next((reason for kind, reason in _UNREADABLE.items() if isinstance(cause, kind)), None)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MOST_KEYS:
        raise HTTPException(
            400, f"an object in the body has {len(pairs)} keys, expected at most {_MOST_KEYS}"
        )
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise HTTPException(400, f'key "{twice[:100]}" is in the body more than once')
    return members


def _no_constant(name: str) -> Never:
    raise HTTPException(400, f"{name} in the body is no JSON, expected a number")
