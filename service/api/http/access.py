"""Who may use which address: each route declares its scope, and what declares none is denied.

A router or a route has one line, such as ``dependencies=[VIEWER]``; the strictest one counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from re import Pattern
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount, compile_path

from service.errors import ForbiddenError
from service.security.tokens import TokenScope

READING = frozenset({"GET", "HEAD"})
PLAIN: Mapping[str, TokenScope | None] = {
    "/openapi.json": TokenScope.VIEWER
}  # routes that are not FastAPI's


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Attributes:
        name: the token's name; "local" on loopback without tokens; "anonymous" for what is public.
        scope: what it may do; None is only what is public.
        address: where it asks from.
    """

    name: str
    scope: TokenScope | None
    address: str
    token_id: str | None = None

    def require(self, needed: TokenScope | None) -> None:
        """Return if this caller may do what needs this scope.

        Raises:
            ForbiddenError: it may not.
        """
        if needed is None or (self.scope is not None and self.scope.includes(needed)):
            return
        has = "no scope" if self.scope is None else f'scope "{self.scope}"'
        raise ForbiddenError(
            f'token "{self.name}" has {has}, expected "{needed}"',
            hint=f"Use a token with scope {needed}; an admin makes one with sluice tokens create.",
        )


@dataclass(frozen=True, slots=True)
class _Declaration:
    """A dependency that names the scope of its route, and holds the caller to it once more."""

    scope: TokenScope | None

    async def __call__(self, request: Request) -> None:
        caller = request.state.caller  # (absent if the guard was bypassed: that must fail)
        assert isinstance(caller, Caller)
        caller.require(self.scope)


PUBLIC = Depends(_Declaration(None))
VIEWER = Depends(_Declaration(TokenScope.VIEWER))
OPERATOR = Depends(_Declaration(TokenScope.OPERATOR))
ADMIN = Depends(_Declaration(TokenScope.ADMIN))


@dataclass(frozen=True, slots=True)
class Rule:
    """Which requests are for a route, and what they need; without a scope it is public."""

    path: str
    pattern: Pattern[str]
    methods: frozenset[str]
    scope: TokenScope | None


@dataclass(frozen=True, slots=True)
class Rules:
    """All that may be asked; what is not here is not passed on."""

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
        AssertionError: a route declares no scope, or changes something below scope operator.
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
    """Write into an OpenAPI document which operation needs which scope."""
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
