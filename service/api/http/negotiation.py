"""What a client accepts: one address may have two forms, and one that has neither is refused."""

from fastapi import Request
from fastapi.datastructures import DefaultPlaceholder
from starlette.exceptions import HTTPException

EVENT_STREAM = "text/event-stream"


def accepts(header: str, media_type: str) -> bool:
    """Whether the value of an `Accept` header lets `media_type` pass."""
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
    """Let pass what accepts a form that the address has.

    Raises:
        HTTPException: 406; nothing has been done.
    """
    header = request.headers.get("accept", "").strip()
    offered = _offered(request)
    if header and offered and not any(accepts(header, media_type) for media_type in offered):
        forms = " or ".join(f'"{media_type}"' for media_type in sorted(offered))
        raise HTTPException(406, f'accepted is "{header[:100]}", the address has {forms}')


def _offered(request: Request) -> set[str]:
    """Media types of the route's answers, empty if nobody can know."""
    route = request.scope.get("route")
    declared = getattr(route, "response_class", None)
    answer = declared.value if isinstance(declared, DefaultPlaceholder) else declared
    media_type = getattr(answer, "media_type", None)
    if media_type is None:
        return set()
    described = getattr(route, "responses", {}).get(200, {}).get("content", {})
    return {media_type.partition(";")[0], *described}
