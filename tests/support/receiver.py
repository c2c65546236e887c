"""A server on loopback that keeps what is posted to it, for exporters."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver:
    """What has come, and how it is answered.

    `answers` are the statuses of the next requests; after them all are 200.
    """

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[int] = []
        self.bodies: list[tuple[str, bytes]] = []

    def taken(self) -> list[bytes]:
        found, self.bodies = self.bodies, []
        return [body for _, body in found]


@contextmanager
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            status = found.answers.pop(0) if found.answers else 200
            if status == 200:
                found.bodies.append((self.path, body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
