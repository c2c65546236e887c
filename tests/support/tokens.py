"""A token endpoint: gives tokens to one client, with or without a signature and TLS."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.support.token_key import TokenKey, unsigned

CLIENT, CLIENT_SECRET = "sluice-client", "s/e:c+ret"


class TokenEndpoint:
    """What it is asked, and how it answers.

    Args:
        key: what its tokens are signed with; None: they are not.
        tls: its certificate and the key of that; None: it has no TLS.

    Attributes:
        status: of its answers, where the client is the right one.
        body: of its answers, instead of a token.
        life_s: how long its tokens hold.
        audience: whom its tokens are for.
        forms: what it was asked, the oldest first.
    """

    def __init__(self, key: TokenKey | None = None, tls: tuple[Path, Path] | None = None) -> None:
        self._sign = unsigned if key is None else key.signed
        self._scheme = "http" if tls is None else "https"
        self.status = 200
        self.body: bytes | None = None
        self.life_s = 600
        self.audience = "kafka"
        self.forms: list[dict[str, list[str]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/realms/x/token"

    def login(self) -> dict[str, str]:
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
        }

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
        self.forms.append(form)
        expected = base64.b64encode(f"{CLIENT}:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {expected}":
            return 401, b'{"error":"invalid_client"}'
        if self.body is not None:
            return self.status, self.body
        now = time.time()
        claims = {"sub": "ann", "aud": self.audience, "iat": now - 1, "exp": now + self.life_s}
        token = self._sign(claims)
        return self.status, json.dumps(
            {"access_token": token, "token_type": "Bearer", "expires_in": self.life_s}
        ).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                form = parse_qs(self.rfile.read(length).decode())
                status, body = endpoint.answer(self.headers.get("Authorization", ""), form)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

        return Handler

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def token_endpoint(
    key: TokenKey | None = None, tls: tuple[Path, Path] | None = None
) -> Iterator[TokenEndpoint]:
    """It answers while the block runs."""
    endpoint = TokenEndpoint(key, tls)
    thread = threading.Thread(target=endpoint.serve, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.close()
        thread.join()
