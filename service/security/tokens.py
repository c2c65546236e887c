"""Tokens of the REST API, and the credentials of its clients.

A token is ``slc_<id>_<secret>``, shown once; the store has a keyed hash. A fast hash suffices, as
the secret has 256 random bits.
"""

import hmac
import os
import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

from service.errors import ConfigError, SubmissionError

TOKEN, TOKEN_FILE, CA_FILE = "SLUICE_TOKEN", "SLUICE_TOKEN_FILE", "SLUICE_CA_FILE"
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Credentials:
    """A client's token and trusted authorities; read from the environment only.

    On the command line other users of the machine could read a token, and the settings are passed
    on to runners.
    """

    token: str | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError for a token that no header can carry."""
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ConfigError(
                "token has characters that no token has",
                hint=f"Set {TOKEN} to the token that sluice tokens create printed.",
            )

    @classmethod
    def of_environment(cls) -> Self:
        """From SLUICE_TOKEN or SLUICE_TOKEN_FILE, and SLUICE_CA_FILE; raises ConfigError."""
        token = os.environ.get(TOKEN, "").strip() or _token_of_file()
        ca_file = os.environ.get(CA_FILE)
        return cls(token or None, Path(ca_file) if ca_file else None)


def _token_of_file() -> str | None:
    name = os.environ.get(TOKEN_FILE)
    if not name:
        return None
    try:
        with Path(name).open(encoding="ascii") as file:
            token = file.read(_MOST_BYTES).strip()
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise ConfigError(
            f'token file "{name}" cannot be read: {why}',
            hint=f"Correct {TOKEN_FILE}, or unset it where no token is needed.",
        ) from exc
    if not token or len(token.split()) != 1:
        raise ConfigError(
            f'token file "{name}" does not contain exactly one token',
            hint="Write only the token that sluice tokens create printed into it.",
        )
    return token


DAY_MS = 86_400_000
DEFAULT_DAYS = 90
MOST_DAYS = 3650
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$"
_FORM = re.compile(r"slc_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_SHOWN = re.compile(r"(slc_[0-9a-f]{0,16})[A-Za-z0-9_-]*")


class TokenScope(StrEnum):
    """Scopes; each includes the previous ones."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, needed: "TokenScope") -> bool:
        order = list(TokenScope)
        return order.index(self) >= order.index(needed)


class TokenState(StrEnum):
    """States of a token."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A stored token; `digest` is a keyed hash, `last_used_at_ms` is to the minute.

    `created_by` is the name of a token, or a user of the machine.
    """

    id: str
    name: str
    scope: TokenScope
    digest: bytes = field(repr=False)
    created_by: str
    created_at_ms: int
    expires_at_ms: int
    revoked_at_ms: int | None = None
    last_used_at_ms: int | None = None

    def state(self, now_ms: int) -> TokenState:
        if self.revoked_at_ms is not None:
            return TokenState.REVOKED
        return TokenState.ACTIVE if now_ms < self.expires_at_ms else TokenState.EXPIRED

    def fits(self, secret: str) -> bool:
        return hmac.compare_digest(self.digest, _digest(self.id, secret))


@dataclass(frozen=True, slots=True)
class NewToken:
    """The request for a token that is valid for `days`."""

    name: str
    scope: TokenScope
    days: int = DEFAULT_DAYS
    created_by: str = ""


def issue(new_token: NewToken, now_ms: int) -> tuple[AccessToken, str]:
    """A new token and its text, which is not stored; raises SubmissionError for a bad name."""
    if not re.fullmatch(NAME_PATTERN, new_token.name):
        raise SubmissionError(
            f'token name "{new_token.name[:100]}" is invalid, expected letters, digits, " ._-"',
            hint="Name the user of the token in at most 100 characters.",
        )
    token_id = secrets.token_hex(8)
    secret = secrets.token_urlsafe(32)
    token = AccessToken(
        id=token_id,
        name=new_token.name,
        scope=new_token.scope,
        digest=_digest(token_id, secret),
        created_by=new_token.created_by,
        created_at_ms=now_ms,
        expires_at_ms=now_ms + new_token.days * DAY_MS,
    )
    return token, f"slc_{token_id}_{secret}"


def parse(text: str) -> tuple[str, str] | None:
    match = _FORM.fullmatch(text)
    return None if match is None else (match[1], match[2])


def without_secrets(text: str) -> str:
    return _SHOWN.sub(r"\1…", text)


def _digest(token_id: str, secret: str) -> bytes:
    return hmac.digest(token_id.encode(), secret.encode(), "sha256")
