"""Wire models of tokens."""

from typing import Annotated

from pydantic import Field

from service.schemas.document import Body, Document, OrNewer
from service.security.tokens import (
    DEFAULT_DAYS,
    MOST_DAYS,
    NAME_PATTERN,
    TokenScope,
    TokenState,
)


class TokenRequest(Body):
    """A token to make."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, description="Whose it is, for the audit log.")]
    scope: Annotated[TokenScope, Field(description="Each includes those before it.")]
    expires_in_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] = DEFAULT_DAYS


class TokenView(Document):
    """A token without its secret."""

    id: str
    name: str
    scope: Annotated[TokenScope, OrNewer]
    state: Annotated[TokenState, OrNewer]
    created_by: str
    created_at_ms: int
    expires_at_ms: int
    revoked_at_ms: int | None
    last_used_at_ms: Annotated[int | None, Field(description="To the minute.")]


class CreatedToken(TokenView):
    """A new token; its text is shown here and never again."""

    token: Annotated[str, Field(description="Send it as Authorization: Bearer <token>.")]


class TokenPage(Document):
    """Tokens, the newest first; ended ones are kept for 90 days."""

    items: list[TokenView]
    next_cursor: int | None
