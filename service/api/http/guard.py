"""Middleware that checks each request before FastAPI: origin, identity, rate, route, scope, size.

For a change it also checks that this control plane leads. Every answer gets the security headers;
changes and refusals are audited. HEAD requests are answered as GET without a body.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.http import problems
from service.api.http.access import READING, Authenticator, Caller, Rule, Rules
from service.api.http.connections import HEAD_LIMIT_BYTES, HEADERS
from service.api.http.exposure import Peers
from service.api.http.limits import Flights, Rates
from service.config import Settings
from service.errors import UnauthorizedError
from service.jobs.store.token_store import TokenStore
from service.logs import PerMinute
from service.security.audit import AuditEntry, AuditLog
from watermark.errors import SluiceError


class Heads:
    """Middleware that answers HEAD as GET without the body; streams end at once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        get_scope = {**scope, "method": "GET"}
        answered = asyncio.Event()

        async def receive_or_leave() -> Message:
            """Reports a disconnect after the head, which ends streams."""
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
                scope["route"] = get_scope.get("route")  # the request counters read it
                await send(message)
            elif not answered.is_set():
                answered.set()
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(get_scope, receive_or_leave, send_head)


BODY_LIMIT_BYTES = 1 << 20
_STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
_CREDENTIALS = frozenset({"token", "access_token", "api_key", "apikey", "authorization"})
_REFUSED = (401, 403, 429)
_ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class _RequestHead:
    method: str
    path: str
    query: str
    headers: Mapping[bytes, bytes]
    peer: str
    address: str

    @property
    def has_body(self) -> bool:
        length = self.headers.get(b"content-length", b"0")
        return length != b"0" or b"transfer-encoding" in self.headers


class Gate:
    """Decides about requests; one for each control plane, used on its event loop."""

    def __init__(
        self,
        settings: Settings,
        tokens: TokenStore,
        rules: Rules,
        require_leader: Callable[[], None],
    ) -> None:
        self.authenticator = Authenticator(tokens, required=settings.tokens_required)
        self.body_timeout_s = settings.request_timeout_s
        self.headers = (*HEADERS, _STRICT_TRANSPORT) if settings.tls_cert else HEADERS
        self.peers = Peers(settings)
        self.flights = Flights(settings.max_requests)
        self.journal = Journal(AuditLog(settings), settings.audit)
        self._rates = Rates(settings.requests_per_s)
        self.rules = rules
        self._require_leader = require_leader

    def head(self, scope: Scope) -> _RequestHead:
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        peer = str((scope.get("client") or ("",))[0])
        query = scope["query_string"].decode("latin-1")
        address = self.peers.address(peer, headers)
        return _RequestHead(scope["method"], scope["path"], query, headers, peer, address)

    async def identify(self, head: _RequestHead, rule: Rule | None) -> Caller:
        """The caller; anonymous on public routes.

        Raises:
            SluiceError: wrong origin or proxy, or no valid token.
            HTTPException: 400, a token in the query.
        """
        self.peers.check_page(head.headers)
        for name, value in parse_qsl(head.query, keep_blank_values=True, max_num_fields=None):
            if name.lower() in _CREDENTIALS or value.startswith("slc_"):
                raise HTTPException(400, "the query contains a token, which logs would record")
        if rule is not None and rule.scope is None:
            return Caller(_ANONYMOUS, None, head.address)
        self.peers.check_way(head.peer)
        header = head.headers.get(b"authorization")
        text = None if header is None else header.decode("latin-1")
        try:
            return await self.authenticator.caller(text, head.address)
        except UnauthorizedError:
            self._rates.take(head.address)
            raise

    def admit(self, caller: Caller, head: _RequestHead, rule: Rule | None) -> None:
        """Return if this caller may proceed.

        Raises:
            SluiceError: rate exceeded, scope too small, or another control plane leads.
            HTTPException: 404, 405 or 413.
        """
        self._rates.take(caller.token_id or head.address)
        if rule is None:
            methods = self.rules.methods(head.path)
            allow = {"Allow": ", ".join(methods)} if methods else None
            raise HTTPException(405 if methods else 404, headers=allow)
        caller.require(rule.scope)
        if _declared_bytes(head.headers) > BODY_LIMIT_BYTES:
            raise HTTPException(413)
        if head.method not in READING:
            self._require_leader()


class Journal:
    """Audits changes, refusals, and reads if configured; refusals once a second per address."""

    def __init__(self, log: AuditLog, extent: str) -> None:
        self._log = log
        self._extent = extent
        self._refusals = PerMinute(every_s=1.0)

    async def note(
        self, head: _RequestHead, caller: Caller | None, status: int, made: str | None
    ) -> None:
        """Write the outcome of a request durably; `caller` is None if it was refused."""
        refused = caller is None or status in _REFUSED
        is_plain_read = head.method in READING and status not in _REFUSED
        if self._extent == "off" or (self._extent == "changes" and is_plain_read):
            return
        repeated = self._refusals.due(head.address) if refused else 0  # None: this one is omitted
        if repeated is None:
            return
        outcome = "refused" if refused else ("done" if status < 400 else "failed")
        who = _ANONYMOUS if caller is None else caller.name
        token_id = None if caller is None else caller.token_id
        what = made or head.path
        entry = AuditEntry(
            who, token_id, head.address, head.method, what, outcome, status, repeated
        )
        await asyncio.to_thread(self._log.write, entry)


class Guard:
    """The middleware around all routes; passes only HTTP."""

    def __init__(self, app: ASGIApp, *, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = self._gate.head(scope)
        seen = _GuardedRequest(self._gate, head, send)
        try:
            fields = sum(len(name) + len(value) + len(": \r\n") for name, value in scope["headers"])
            if len(scope["raw_path"]) + len(scope["query_string"]) + fields > HEAD_LIMIT_BYTES:
                raise HTTPException(431, headers={"Connection": "close"})
            with self._gate.flights.one_more(head.address):
                rule = self._gate.rules.find(head.method, head.path)
                seen.caller = await self._gate.identify(head, rule)
                self._gate.admit(seen.caller, head, rule)
                scope.setdefault("state", {})["caller"] = seen.caller
                body = _RequestBody(receive, self._gate.body_timeout_s)
                await self._app(scope, body.receive, seen.send)
        except (SluiceError, HTTPException) as exc:  # the app answers its own errors
            await _refusal(exc, head)(scope, receive, seen.send)
        finally:
            await seen.end()


class _GuardedRequest:
    def __init__(self, gate: Gate, head: _RequestHead, send: Send) -> None:
        self.caller: Caller | None = None
        self._gate = gate
        self._head = head
        self._send = send
        self._noted = False

    async def send(self, message: Message) -> None:
        """Pass a part of the answer on; the first one is audited and gets the headers."""
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            present = {name.lower() for name, _ in headers}
            message["headers"] = headers + [h for h in self._gate.headers if h[0] not in present]
            made = next((value for name, value in headers if name.lower() == b"location"), None)
            text = None if made is None else made.decode("latin-1")
            await self._note(message["status"], text)
        await self._send(message)

    async def end(self) -> None:
        await self._note(500, None)

    async def _note(self, status: int, made: str | None) -> None:
        if not self._noted:
            self._noted = True
            await self._gate.journal.note(self._head, self.caller, status, made)


class _RequestBody:
    def __init__(self, receive: Receive, timeout_s: float) -> None:
        self._receive = receive
        self._deadline = time.monotonic() + timeout_s
        self._bytes = 0
        self._complete = False

    async def receive(self) -> Message:
        """The next part; raises HTTPException 408 or 413, which FastAPI passes to our handlers."""
        if self._complete:
            return await self._receive()  # only the disconnect follows
        try:
            async with asyncio.timeout(max(0.0, self._deadline - time.monotonic())):
                message = await self._receive()
        except TimeoutError as exc:
            raise HTTPException(408, headers={"Connection": "close"}) from exc
        self._bytes += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._bytes > BODY_LIMIT_BYTES:
            raise HTTPException(413, headers={"Connection": "close"})
        return message


def _refusal(exc: SluiceError | HTTPException, head: _RequestHead) -> Response:
    if isinstance(exc, SluiceError):
        answer = problems.of_error(exc, head.path)
    else:
        answer = problems.refused(exc, head.method, head.path)
    if head.has_body:
        answer.headers["Connection"] = "close"
    return answer


def _declared_bytes(headers: Mapping[bytes, bytes]) -> int:
    text = headers.get(b"content-length", b"")
    return int(text) if text.isdigit() and len(text) < 20 else 0
