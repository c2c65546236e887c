"""`/v1/tokens` and `/v1/secrets`; only an admin may use them."""

import time
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from service.api.http.access import ADMIN, Caller
from service.api.services import Injected
from service.schemas.tokens import (
    CreatedToken,
    SecretList,
    SecretValue,
    SecretView,
    StoredSecret,
    TokenPage,
    TokenRequest,
    TokenView,
)
from service.security.secrets import KnownSecret, SecretStore
from service.security.tokens import AccessToken, NewToken

tokens_router = APIRouter(prefix="/v1/tokens", tags=["tokens"], dependencies=[ADMIN])
TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", description="As the list names it.")]


@tokens_router.post(
    "",
    status_code=201,
    summary="Create a token",
    responses={201: {"headers": {"Location": {"schema": {"type": "string"}}}}},
)
def create_token(
    body: TokenRequest, request: Request, response: Response, services: Injected
) -> CreatedToken:
    """Create a token; only this answer contains its text."""
    caller = request.state.caller
    assert isinstance(caller, Caller)
    new_token = NewToken(body.name, body.scope, body.expires_in_days, created_by=caller.name)
    token, text = services.store.tokens.create(new_token)
    request.app.state.guard.authenticator.forget()
    response.headers["Location"] = f"/v1/tokens/{token.id}"
    return CreatedToken(**token_view(token).model_dump(), token=text)


@tokens_router.get("", summary="List tokens")
def list_tokens(
    services: Injected,
    cursor: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> TokenPage:
    """Tokens with scope, expiry and last use, newest first, page by page."""
    tokens = services.store.tokens.all()
    items = [token_view(token) for token in tokens[cursor : cursor + limit]]
    more = cursor + limit < len(tokens)
    return TokenPage(items=items, next_cursor=cursor + limit if more else None)


@tokens_router.delete("/{token_id}", status_code=204, summary="Revoke a token")
def revoke_token(token_id: TokenId, request: Request, services: Injected) -> None:
    """Revoke a token at once; idempotent."""
    services.store.tokens.revoke(token_id)
    request.app.state.guard.authenticator.forget()


def token_view(token: AccessToken) -> TokenView:
    return TokenView(
        id=token.id,
        name=token.name,
        scope=token.scope,
        state=token.state(time.time_ns() // 1_000_000),
        created_by=token.created_by,
        created_at_ms=token.created_at_ms,
        expires_at_ms=token.expires_at_ms,
        revoked_at_ms=token.revoked_at_ms,
        last_used_at_ms=token.last_used_at_ms,
    )


secrets_router = APIRouter(prefix="/v1/secrets", tags=["secrets"], dependencies=[ADMIN])
SecretName = Annotated[str, Path(max_length=128, description="As in `${secret:name}`.")]


@secrets_router.get("", summary="List secrets")
def list_secrets(services: Injected) -> SecretList:
    """All secrets that jobs of this control plane can reference, without values."""
    known = SecretStore(services.settings).known()
    directory = str(services.settings.kept_secrets_dir)
    return SecretList(items=[secret_view(secret) for secret in known], directory=directory)


@secrets_router.put("/{name}", summary="Set a secret")
def put_secret(name: SecretName, body: SecretValue, services: Injected) -> StoredSecret:
    """Store a secret in the control plane's directory; runners read it when they start."""
    store = SecretStore(services.settings)
    store.put(name, body.value.get_secret_value())
    kept = next(s for s in store.known() if (s.name, s.source) == (name, "kept"))
    directory = str(services.settings.kept_secrets_dir)
    return StoredSecret(**secret_view(kept).model_dump(), directory=directory)


@secrets_router.delete("/{name}", summary="Remove a secret")
def remove_secret(name: SecretName, services: Injected) -> SecretList:
    """Remove a secret from the control plane's directory; returns the remaining ones."""
    SecretStore(services.settings).remove(name)
    return list_secrets(services)


def secret_view(secret: KnownSecret) -> SecretView:
    return SecretView(
        name=secret.name,
        source=secret.source,
        jobs=list(secret.jobs),
        hidden_by=secret.hidden_by,
    )
