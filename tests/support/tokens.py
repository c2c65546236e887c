"""A token endpoint: gives tokens to one client, with or without a signature and TLS."""

import base64
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs

from tests.support.http_server import Answer, Asked, answering
from tests.support.token_key import TokenKey, unsigned

CLIENT, CLIENT_SECRET = "sluice-client", "s/e:c+ret"


class TokenEndpoint:
    """What it is asked, and how it answers.

    Args:
        key: what its tokens are signed with; None: they are not.

    Attributes:
        status: of its answers, where the client is the right one.
        body: of its answers, instead of a token.
        life_s: how long its tokens hold.
        audience: whom its tokens are for.
        forms: what it was asked, the oldest first.
    """

    def __init__(self, key: TokenKey | None) -> None:
        self._sign = unsigned if key is None else key.signed
        self.url = ""
        self.status = 200
        self.body: bytes | None = None
        self.life_s = 600
        self.audience = "kafka"
        self.forms: list[dict[str, list[str]]] = []

    def login(self) -> dict[str, str]:
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
        }

    def answer(self, asked: Asked) -> Answer:
        self.forms.append(parse_qs(asked.body.decode()))
        expected = base64.b64encode(f"{CLIENT}:{CLIENT_SECRET}".encode()).decode()
        if asked.headers.get("authorization") != f"Basic {expected}":
            return 401, {}, b'{"error":"invalid_client"}'
        if self.body is not None:
            return self.status, {}, self.body
        now = time.time()
        claims = {"sub": "ann", "aud": self.audience, "iat": now - 1, "exp": now + self.life_s}
        given = {"access_token": self._sign(claims), "token_type": "Bearer"}
        return self.status, {}, json.dumps({**given, "expires_in": self.life_s}).encode()


@contextmanager
def token_endpoint(
    key: TokenKey | None = None, tls: tuple[Path, Path] | None = None
) -> Iterator[TokenEndpoint]:
    """It answers while the block runs; `tls` is its certificate and the key of that."""
    endpoint = TokenEndpoint(key)
    context = None
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
    with answering(endpoint.answer, tls=context) as address:
        endpoint.url = f"{address}/realms/x/token"
        yield endpoint
