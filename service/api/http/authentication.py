"""Who a request is from: the token that it sends, or the machine's own user without tokens.

All tokens are held in memory and read again when they are two seconds old, so a request costs a
hash and no query. What another process changes in the store counts after that time.
"""

import asyncio
import time
from collections.abc import Mapping

import structlog

from service.api.http.access import Caller
from service.api.http.limits import Lockouts
from service.errors import StoreError, UnauthorizedError
from service.jobs.store.rows import now_ms
from service.jobs.store.token_store import TokenStore
from service.security.tokens import AccessToken, TokenScope, TokenState, parse

LOCAL = "local"
_FRESH_S = 2.0
_USE_NOTED_MS = 60_000
_SCHEME = "bearer "
_LONGEST = 512
_log = structlog.get_logger(__name__)


class Authenticator:
    """Knows the tokens; for the one event loop of a control plane."""

    def __init__(self, tokens: TokenStore, *, required: bool) -> None:
        self._store = tokens
        self._required = required
        self._known: Mapping[str, AccessToken] = {}
        self._read_at = -_FRESH_S
        self._changes = self._read_changes = 0
        self._reading = asyncio.Lock()
        self._lockouts = Lockouts()
        self._noted_ms: dict[str, int] = {}
        self._notes: set[asyncio.Task[None]] = set()

    async def caller(self, header: str | None, address: str) -> Caller:
        """Who sends this Authorization header from this address.

        Raises:
            UnauthorizedError: it has to send a token that can be used.
            TooManyRequestsError: it has failed too often.
            StoreError: the tokens cannot be read.
        """
        if header is None:
            if self._required:
                raise UnauthorizedError("request has no token", hint=_HOW, invalid=False)
            return Caller(LOCAL, TokenScope.ADMIN, address)
        await self._refresh()
        token_id, secret = _credentials(header)
        token = self._known.get(token_id)
        key = f"{address} {token_id if token is not None else ''}"
        self._lockouts.check(key)
        try:
            valid_token = _checked(token, secret)
        except UnauthorizedError:
            self._lockouts.failed(key)
            raise
        self._lockouts.succeeded(key)
        self._note_use(valid_token)
        return Caller(valid_token.name, valid_token.scope, address, valid_token.id)

    async def still(self, caller: Caller) -> bool:
        """Whether the token that a caller has shown can still be used; for answers that go on.

        Raises:
            StoreError: the tokens cannot be read.
        """
        if caller.token_id is None:
            return True
        await self._refresh()
        token = self._known.get(caller.token_id)
        return token is not None and token.state(now_ms()) is TokenState.ACTIVE

    def forget(self) -> None:
        self._changes += 1

    async def _refresh(self) -> None:
        async with self._reading:
            now, changes = time.monotonic(), self._changes
            if now - self._read_at < _FRESH_S and changes == self._read_changes:
                return
            tokens = await asyncio.to_thread(self._store.all)
            self._known = {token.id: token for token in tokens}
            self._read_at, self._read_changes = now, changes

    def _note_use(self, token: AccessToken) -> None:
        """Keep when the token was last used, to the minute, without letting the request wait."""
        at_ms = now_ms()
        noted_ms = max(self._noted_ms.get(token.id, 0), token.last_used_at_ms or 0)
        if at_ms - noted_ms < _USE_NOTED_MS:
            return
        self._noted_ms[token.id] = at_ms
        task = asyncio.create_task(self._keep_use(token.id, at_ms))
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

    async def _keep_use(self, token_id: str, at_ms: int) -> None:
        try:
            await asyncio.to_thread(self._store.note_use, token_id, at_ms)
        except StoreError as exc:
            _log.warning("last use of an API key was not kept", id=token_id, error=exc.message)


_HOW = (
    "Send the header Authorization: Bearer <token>; commands take it from SLUICE_TOKEN_FILE "
    "or SLUICE_TOKEN."
)


def _credentials(header: str) -> tuple[str, str]:
    """Id and secret; empty ones fit no token."""
    text = header[:_LONGEST]
    if not text.lower().startswith(_SCHEME):
        return "", ""
    return parse(text[len(_SCHEME) :].strip()) or ("", "")


def _checked(token: AccessToken | None, secret: str) -> AccessToken:
    if token is None or not token.fits(secret):
        raise UnauthorizedError(
            "token is not one of this control plane's",
            hint="Check SLUICE_TOKEN and SLUICE_TOKEN_FILE, and that this is the right server.",
        )
    state = token.state(now_ms())
    if state is not TokenState.ACTIVE:
        raise UnauthorizedError(
            f'token "{token.name}" ({token.id}) is {state}',
            hint="Ask an admin for a new one: sluice tokens create.",
        )
    return token
