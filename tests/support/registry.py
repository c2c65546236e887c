"""A schema registry on loopback: what Confluent's interface answers for schemas by number."""

import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from tests.support.http_server import Answer, Asked, answering


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

    def answer(asked: Asked) -> Answer:
        sent = asked.body if asked.method == "POST" else None
        status, value = own.answer(asked.path, asked.headers.get("authorization"), sent)
        kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        return status, kind, json.dumps(value).encode()

    with answering(answer, port=port, tls=tls) as own.url:
        yield own
