"""Tokens in the job store."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict

import sqlalchemy as sa

from service.errors import TokenLimitError, TokenNotFoundError
from service.jobs.store.job import now_ms
from service.jobs.store.rows import StoredText
from service.security.tokens import DAY_MS, AccessToken, NewToken, TokenScope, TokenState, issue

MOST_ACTIVE = 1000
_KEPT_AFTER_END_MS = 90 * DAY_MS
_TOKENS = sa.Table(
    "tokens",
    sa.MetaData(),
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("name", StoredText),
    sa.Column("scope", sa.String(16)),
    sa.Column("digest", sa.LargeBinary),
    sa.Column("created_by", StoredText),
    sa.Column("created_at_ms", sa.BigInteger),
    sa.Column("expires_at_ms", sa.BigInteger),
    sa.Column("revoked_at_ms", sa.BigInteger),
    sa.Column("last_used_at_ms", sa.BigInteger),
)
_Connections = Callable[[], AbstractContextManager[sa.Connection]]


class TokenStore:
    """The tokens of a job store; safe for several threads and processes."""

    def __init__(self, reading: _Connections, writing: _Connections) -> None:
        self._reading = reading
        self._writing = writing

    def create(self, new: NewToken) -> tuple[AccessToken, str]:
        """Create a token; only the return value has its text. Long-expired tokens are deleted.

        Raises TokenLimitError if there are too many.
        """
        at_ms = now_ms()
        token, text = issue(new, at_ms)
        with self._writing() as connection:
            _forget(connection, at_ms - _KEPT_AFTER_END_MS)
            active = sum(one.state(at_ms) is TokenState.ACTIVE for one in _all(connection))
            if active >= MOST_ACTIVE:
                raise TokenLimitError(
                    f"there are {active} tokens that can be used, expected less than {MOST_ACTIVE}",
                    hint="Revoke unused tokens; the list says when each was last used.",
                )
            connection.execute(sa.insert(_TOKENS).values(asdict(token)))
        return token, text

    def all(self) -> list[AccessToken]:
        with self._reading() as connection:
            return _all(connection)

    def usable(self) -> bool:
        at_ms = now_ms()
        return any(token.state(at_ms) is TokenState.ACTIVE for token in self.all())

    def revoke(self, token_id: str) -> AccessToken:
        """End a token, idempotently. Raises TokenNotFoundError."""
        unrevoked = (_TOKENS.c.id == token_id, _TOKENS.c.revoked_at_ms.is_(None))
        with self._writing() as connection:
            connection.execute(sa.update(_TOKENS).where(*unrevoked).values(revoked_at_ms=now_ms()))
            tokens = [token for token in _all(connection) if token.id == token_id]
        if not tokens:
            raise TokenNotFoundError(
                f'token "{token_id}" does not exist',
                hint="Run sluice tokens ls to see the tokens and their ids.",
            )
        return tokens[0]

    def note_use(self, token_id: str, at_ms: int) -> None:
        with self._writing() as connection:
            connection.execute(
                sa.update(_TOKENS).where(_TOKENS.c.id == token_id).values(last_used_at_ms=at_ms)
            )


def _all(connection: sa.Connection) -> list[AccessToken]:
    query = sa.select(_TOKENS).order_by(_TOKENS.c.created_at_ms.desc(), _TOKENS.c.id)
    return [
        AccessToken(**{**row, "scope": TokenScope(row["scope"])})
        for row in connection.execute(query).mappings()
    ]


def _forget(connection: sa.Connection, before_ms: int) -> None:
    ended = sa.or_(_TOKENS.c.expires_at_ms < before_ms, _TOKENS.c.revoked_at_ms < before_ms)
    connection.execute(sa.delete(_TOKENS).where(ended))
