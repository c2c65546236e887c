"""Documents of tokens and secrets."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from service.schemas.document import Body, Document, OrNewer
from service.security.tokens import (
    DEFAULT_DAYS,
    MOST_DAYS,
    NAME_PATTERN,
    TokenScope,
    TokenState,
)

SecretSource = Literal["environment", "directory", "kept"]


class SecretValue(Body):
    """The value of a secret; no answer has it."""

    value: SecretStr = Field(description="One line of text, or PEM texts.")


class SecretView(Document):
    """A secret without its value."""

    name: str
    source: Annotated[SecretSource, OrNewer] = Field(
        description="`environment` and `directory` (`SLUICE_SECRETS_DIR`) are the operator's; "
        "`kept` is the directory of this control plane."
    )
    jobs: list[str] = Field(description="Ids of the jobs whose scripts refer to it.")
    hidden_by: Annotated[SecretSource | None, OrNewer] = Field(
        description="Where a secret of the same name is found first; null without one."
    )


class SecretList(Document):
    """Secrets in the order in which their places are searched."""

    items: list[SecretView]
    directory: str = Field(description="Where the control plane keeps secrets.")


class StoredSecret(SecretView):
    """A secret that was set."""

    directory: str = Field(description="Where the control plane keeps it.")


class TokenRequest(Body):
    """A token to make."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, description="Whose it is, for the audit log.")]
    scope: TokenScope = Field(strict=False, description="Each includes those before it.")
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
    last_used_at_ms: int | None = Field(description="To the minute.")


class CreatedToken(TokenView):
    """A new token; its text is shown here and never again."""

    token: str = Field(description="Send it as Authorization: Bearer <token>.")


class TokenPage(Document):
    """Tokens, the newest first; ended ones are kept for 90 days."""

    items: list[TokenView]
    next_cursor: int | None
