"""Authentication by token, and the scope that each route requires.

A router or a route declares its scope, such as ``dependencies=[VIEWER]``; the strictest one counts,
and an app with a route that declares none is not created. Tokens are cached in memory for two
seconds, so a request costs a hash and no query, and changes by another process take effect then.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from re import Pattern
from typing import Any

import structlog
from fastapi import Depends, FastAPI, Request
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount, compile_path

from service.api.http.limits import Lockouts
from service.errors import ForbiddenError, StoreError, UnauthorizedError
from service.jobs.store.job import now_ms
from service.jobs.store.token_store import TokenStore
from service.security.tokens import AccessToken, TokenScope, TokenState, parse

READING = frozenset({"GET", "HEAD"})
PLAIN: Mapping[str, TokenScope | None] = {
    "/openapi.json": TokenScope.VIEWER
}  # routes that are not FastAPI's


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    name: str  # the token's name; "local" on loopback without tokens; "anonymous" on public routes
    scope: TokenScope | None  # None permits public routes only
    address: str
    token_id: str | None = None

    def require(self, needed: TokenScope | None) -> None:
        """Raise ForbiddenError if this caller's scope does not include `needed`."""
        if needed is None or (self.scope is not None and self.scope.includes(needed)):
            return
        has = "no scope" if self.scope is None else f'scope "{self.scope}"'
        raise ForbiddenError(
            f'token "{self.name}" has {has}, expected "{needed}"',
            hint=f"Use a token with scope {needed}; an admin makes one with sluice tokens create.",
        )


@dataclass(frozen=True, slots=True)
class _Declaration:
    """A dependency that declares the scope of its route and checks the caller a second time."""

    scope: TokenScope | None

    async def __call__(self, request: Request) -> None:
        caller = request.state.caller  # absent if the guard was bypassed: that must fail
        assert isinstance(caller, Caller)
        caller.require(self.scope)


PUBLIC = Depends(_Declaration(None))
VIEWER = Depends(_Declaration(TokenScope.VIEWER))
OPERATOR = Depends(_Declaration(TokenScope.OPERATOR))
ADMIN = Depends(_Declaration(TokenScope.ADMIN))


@dataclass(frozen=True, slots=True)
class Rule:
    """A route's path and methods, and the scope that it requires; None is public."""

    path: str
    pattern: Pattern[str]
    methods: frozenset[str]
    scope: TokenScope | None


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of all routes; a request that matches none is refused."""

    rules: tuple[Rule, ...]

    def find(self, method: str, path: str) -> Rule | None:
        fitting = (rule for rule in self.rules if method in rule.methods)
        return next((rule for rule in fitting if rule.pattern.match(path)), None)

    def methods(self, path: str) -> list[str]:
        of_path = (rule.methods for rule in self.rules if rule.pattern.match(path))
        return sorted(frozenset().union(*of_path))


def secure(app: FastAPI, plain: Mapping[str, TokenScope | None] = PLAIN) -> Rules:
    """The rules of all routes of `app`; call it when the last router is included.

    Args:
        app: with all its routes.
        plain: scopes of routes and mounts that are not FastAPI's, by path; None is public.

    Raises:
        AssertionError: a route declares no scope, or a changing one less than operator.
    """
    rules = tuple(_rule(context, plain) for context in iter_route_contexts(app.routes))
    for rule in rules:
        changing = rule.methods - READING
        if changing and (rule.scope is None or not rule.scope.includes(TokenScope.OPERATOR)):
            raise AssertionError(
                f"{'/'.join(sorted(changing))} {rule.path} changes something: OPERATOR or ADMIN"
            )
    return Rules(rules)


def describe(document: dict[str, Any], rules: Rules) -> None:
    """Add the scope that each operation requires to an OpenAPI document."""
    document["components"]["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "Not needed on loopback, unless SLUICE_AUTH_REQUIRED is set.",
        }
    }
    scopes = {(rule.path, method): rule.scope for rule in rules.rules for method in rule.methods}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            scope = scopes[path, method.upper()]
            operation["security"] = [] if scope is None else [{}, {"token": [scope.value]}]


def _rule(context: Any, plain: Mapping[str, TokenScope | None]) -> Rule:  # noqa: ANN401 (route contexts have no public type)
    path = str(context.path)
    if isinstance(context.original_route, Mount):
        pattern = compile_path(path.rstrip("/") + "/{path:path}")[0]
        return Rule(path, pattern, READING, _plain_scope(path, plain))
    methods = frozenset(context.methods or READING)
    if "GET" in methods:
        methods |= READING
    declared = [
        depends.dependency.scope
        for depends in getattr(context, "dependencies", [])
        if isinstance(depends.dependency, _Declaration)
    ]
    if not declared:
        return Rule(path, context.path_regex, methods, _plain_scope(path, plain))
    scopes = [scope for scope in declared if scope is not None]
    strictest = max(scopes, key=list(TokenScope).index, default=None)
    return Rule(path, context.path_regex, methods, strictest)


def _plain_scope(path: str, plain: Mapping[str, TokenScope | None]) -> TokenScope | None:
    if path not in plain:
        raise AssertionError(f"{path} declares no scope: add dependencies=[VIEWER], or another")
    return plain[path]


LOCAL = "local"
_FRESH_S = 2.0
_USE_NOTED_MS = 60_000
_SCHEME = "bearer "
_LONGEST = 512
_log = structlog.get_logger(__name__)


class Authenticator:
    """Checks tokens; belongs to the event loop of a control plane."""

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
        """The caller for this Authorization header and address.

        Raises:
            UnauthorizedError: the token is missing, unknown, expired or revoked.
            TooManyRequestsError: locked out after repeated failures.
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
        """Whether the caller's token is still active; for event streams.

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
        """Store the token's last use, to the minute, in the background."""
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
            _log.warning("last use of a token was not stored", id=token_id, error=exc.message)


_HOW = (
    "Send the header Authorization: Bearer <token>; commands take it from SLUICE_TOKEN_FILE "
    "or SLUICE_TOKEN."
)


def _credentials(header: str) -> tuple[str, str]:
    """Id and secret; empty strings, which match no token, if the header is malformed."""
    text = header[:_LONGEST]
    if not text.lower().startswith(_SCHEME):
        return "", ""
    return parse(text[len(_SCHEME) :].strip()) or ("", "")


def _checked(token: AccessToken | None, secret: str) -> AccessToken:
    if token is None or not token.fits(secret):
        raise UnauthorizedError(
            "token does not belong to this control plane",
            hint="Check SLUICE_TOKEN and SLUICE_TOKEN_FILE, and that this is the right server.",
        )
    state = token.state(now_ms())
    if state is not TokenState.ACTIVE:
        raise UnauthorizedError(
            f'token "{token.name}" ({token.id}) is {state}',
            hint="Request a new one from an admin: sluice tokens create.",
        )
    return token
