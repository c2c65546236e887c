"""HEAD: each address that answers GET answers it, too: the same head, and no body."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Heads:
    """The middleware that asks for GET instead and keeps the body back; streams end at once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        get_scope = {**scope, "method": "GET"}
        answered = asyncio.Event()

        async def receive_or_leave() -> Message:
            """After the head the client is gone, as far as a stream can see."""
            if answered.is_set():
                return {"type": "http.disconnect"}
            received = asyncio.ensure_future(receive())
            left = asyncio.ensure_future(answered.wait())
            await asyncio.wait((received, left), return_when=asyncio.FIRST_COMPLETED)
            left.cancel()
            if received.done():
                return await received
            received.cancel()
            return {"type": "http.disconnect"}

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope["route"] = get_scope.get("route")  # for those who count requests by it
                await send(message)
            elif not answered.is_set():
                answered.set()
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(get_scope, receive_or_leave, send_head)
