"""An HTTP server on loopback that a test answers for."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Asked:
    """A request; names of `headers` are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body."""


@contextmanager
def answering(
    answer: Callable[[Asked], Answer], *, port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """A server that answers while the block runs, and its address."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            sent = self.rfile.read(int(headers.get("content-length", 0)))
            status, told, body = answer(Asked(self.command, self.path, headers, sent))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **told}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 (the names that http.server asks for)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
