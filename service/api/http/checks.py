"""Checks that FastAPI does not make: Accept header, query parameters, JSON body."""

import json
from collections.abc import Mapping
from typing import Any, Never, get_args, get_origin

from fastapi import Request
from fastapi.datastructures import DefaultPlaceholder
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

EVENT_STREAM = "text/event-stream"


def accepts(header: str, media_type: str) -> bool:
    kind = media_type.partition("/")[0]
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        refused = any(_is_zero(parameter) for parameter in parameters)
        if name in (media_type, f"{kind}/*", "*/*") and not refused:
            return True
    return False


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip() in ("0", "0.0", "0.00", "0.000")


def wants(header: str, media_type: str) -> bool:
    return media_type in header.lower() and accepts(header, media_type)


async def check_accept(request: Request) -> None:
    """Raise 406 unless the Accept header permits a media type of the route."""
    header = request.headers.get("accept", "").strip()
    offered = _offered(request)
    if header and offered and not any(accepts(header, media_type) for media_type in offered):
        forms = " or ".join(f'"{media_type}"' for media_type in sorted(offered))
        raise HTTPException(406, f'Accept is "{header[:100]}", expected {forms}')


def _offered(request: Request) -> set[str]:
    route = request.scope.get("route")
    declared = getattr(route, "response_class", None)
    answer = declared.value if isinstance(declared, DefaultPlaceholder) else declared
    media_type = getattr(answer, "media_type", None)
    if media_type is None:
        return set()
    described = getattr(route, "responses", {}).get(200, {}).get("content", {})
    return {media_type.partition(";")[0], *described}


_OURS = ("/v1/", "/jobs/")  # a page may keep its own state in its address


async def check_query(request: Request) -> None:
    """Raise 400 for an unknown query parameter, or a single-valued one that occurs twice.

    A misspelt filter would otherwise list everything. No value is repeated in the message.
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
        kinds = (info.annotation, *get_args(info.annotation))
        if times > 1 and not any(get_origin(kind) is list for kind in kinds):
            raise HTTPException(400, f'query parameter "{name}" occurs {times} times, expected 1')


_MOST_KEYS = 100  # each unknown key produces an error
_UNREADABLE: Mapping[type[Exception], str] = {
    UnicodeDecodeError: "request body is not UTF-8",
    RecursionError: "request body is nested too deeply",
    ValueError: "request body has a number that is too long",
}


async def check_body(request: Request) -> None:
    """Raise 400 for duplicate keys, NaN and too many keys; FastAPI itself refuses invalid JSON.

    Programs disagree on which duplicate key counts, so a proxy may have checked the other value.
    No value is repeated in the message.
    """
    route = request.scope.get("route")
    if isinstance(route, APIRoute) and route.body_field is not None:
        body = await request.body()  # already read by FastAPI
        if body and "json" in request.headers.get("content-type", "").lower():
            json.loads(body, object_pairs_hook=_once, parse_constant=_no_constant)


def unreadable(exc: HTTPException) -> str | None:
    """The reason why FastAPI could not read a body; None for other errors."""
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
        raise HTTPException(400, f'key "{twice[:100]}" occurs more than once in the body')
    return members


def _no_constant(name: str) -> Never:
    raise HTTPException(400, f"{name} in the body is not JSON, expected a number")
