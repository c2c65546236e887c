"""Refuses bodies that are too large and what another web site could make a browser send to us."""

from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.problems import problem

BODY_LIMIT_BYTES = 1 << 20
_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)


class LoopbackGuard:
    """Passes requests whose Host and Origin (if any) are ours: no DNS rebinding, no CSRF."""

    def __init__(self, app: ASGIApp, *, host: str) -> None:
        self._app = app
        self._names = _LOCAL_NAMES | {host}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403 or hand the request on; every answer gets the security headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        detail = self._refusal(headers)
        if detail is None:
            await self._app(scope, _limited(receive), send_with_headers)
            return
        answer = problem(403, detail, "Use the control plane's own address, from this machine.")
        await answer(scope, receive, send_with_headers)

    def _refusal(self, headers: dict[bytes, str]) -> str | None:
        host = headers.get(b"host", "")
        if _name(f"//{host}") not in self._names:
            return f'host "{host[:100]}" is not this control plane'
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return f'origin "{origin[:100]}" may not use this control plane'
        return None


def _limited(receive: Receive) -> Receive:
    received_bytes = 0

    async def receive_within_limit() -> Message:
        nonlocal received_bytes
        message = await receive()
        received_bytes += len(message.get("body", b""))
        if received_bytes > BODY_LIMIT_BYTES:
            raise HTTPException(413)  # FastAPI, which reads the body, hands it to our handler
        return message

    return receive_within_limit


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
