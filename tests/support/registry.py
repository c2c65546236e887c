"""A schema registry on loopback: what Confluent's interface answers for schemas by number."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


class Registry:
    """Its schemas, who may ask, and with which status the next requests are refused."""

    def __init__(self) -> None:
        self.url = ""
        self.schemas: dict[int, dict[str, object]] = {}
        self.subjects: dict[str, int] = {}
        self.user: tuple[str, str] | None = None
        self.closed: set[str] = set()
        self.refusals: list[int] = []
        self.paths: list[str] = []

    def add(self, number: int, schema: object, **more: object) -> None:
        self.schemas[number] = {"schema": json.dumps(schema), **more}

    def _posted(self, path: list[str], schema: str) -> tuple[int, object]:
        """A schema is looked for under a subject, or registered there."""
        subject = unquote(path[1])
        number = next((n for n, s in self.schemas.items() if s["schema"] == schema), None)
        if path[2:] == ["versions"]:
            if subject in self.closed:
                return 409, {"error_code": 409, "message": "Incompatible schema"}
            number = number or max(self.schemas, default=0) + 1
            self.schemas[number] = {"schema": schema}
            self.subjects[subject] = number
            return 200, {"id": number}
        if self.subjects.get(subject) != number or number is None:
            return 404, {"error_code": 40403 if subject in self.subjects else 40401}
        return 200, {"id": number, "schema": schema}

    def answer(
        self, path: str, header: str | None, body: bytes | None = None
    ) -> tuple[int, object]:
        self.paths.append(path)
        if self.refusals:
            return self.refusals.pop(0), {"error_code": 50001}
        if self.user is not None:
            expected = base64.b64encode(":".join(self.user).encode()).decode()
            if header != f"Basic {expected}":
                return 401, {"error_code": 401, "message": "Unauthorized"}
        if body is not None:
            return self._posted(path.split("/")[1:], json.loads(body)["schema"])
        match path.split("/")[1:]:
            case ["schemas", "ids", number]:
                known, code = self.schemas.get(int(number)), 40403
            case ["subjects", subject, "versions", "latest"]:
                known, code = self.schemas.get(self.subjects.get(unquote(subject), -1)), 40401
            case _:
                known, code = None, 404
        return (200, known) if known else (404, {"error_code": code, "message": "Not found"})


@contextmanager
def registry(tls: ssl.SSLContext | None = None, *, port: int = 0) -> Iterator[Registry]:
    own = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, sent: bytes | None) -> None:
            status, value = own.answer(self.path, self.headers["Authorization"], sent)
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    own.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield own
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
