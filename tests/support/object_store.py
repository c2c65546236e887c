"""A server that speaks S3 (moto), in this process: with or without conditional puts, with faults.

Served one request at a time it keeps conditional puts, and a client that stands still in the middle
of its request holds up no other. Served by threads it looks first and writes then; with bodies in
files, as servers have them, the time between the two is long enough to see.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import BytesIO
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import boto3
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from joins.adapters.store_path import StorePath
from joins.plan.connections import S3_ENDPOINT, S3_KEY, S3_SECRET, StoreOptions

_numbers = count()
_LOGIN = {"aws_access_key_id": "ci-key-id", "aws_secret_access_key": "ci-secret-key"}
Fault = Callable[[Request], Response | None]


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None:
        pass


class ObjectStore:
    """A running server with one empty bucket.

    Attributes:
        bucket: its name.
        fault: answers a request in place of the server, where it gives an answer.
        answers_to_lose: of so many puts the answer is 503, whatever the server has made of them.
        requests: method → how many came.
        sent, received: bytes of bodies.
    """

    def __init__(self, *, threaded: bool = False) -> None:
        # moto is slow to import, and sets what this environment has not
        from moto.server import DomainDispatcherApplication, create_backend_app

        self._app = DomainDispatcherApplication(create_backend_app)
        self._turn: AbstractContextManager[object] = nullcontext() if threaded else Lock()
        self._port = 0
        self.fault: Fault = lambda _: None
        self.answers_to_lose = 0
        self.requests: Counter[str] = Counter()
        self.sent = self.received = 0
        self._is_forgetful = False
        self.start()
        self.client: Any = boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1", **_LOGIN
        )
        self.bucket = f"tables-{next(_numbers)}"  # moto's buckets are those of all its servers
        self.client.create_bucket(Bucket=self.bucket)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def options(self) -> StoreOptions:
        return (
            (S3_ENDPOINT, self.endpoint),
            (S3_KEY, _LOGIN["aws_access_key_id"]),
            (S3_SECRET, _LOGIN["aws_secret_access_key"]),
        )

    @property
    def environment(self) -> dict[str, str]:
        names = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": "us-east-1"}
        return names | {name.upper(): value for name, value in _LOGIN.items()}

    @property
    def warehouse(self) -> str:
        return f"s3://{self.bucket}/lake"

    @property
    def with_options(self) -> str:
        return ", ".join(f"'{name}' = '{value}'" for name, value in self.options)

    def path(self, key: str) -> StorePath:
        return StorePath.of(f"s3://{self.bucket}/{key}", self.options)

    def keys(self, prefix: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def download(self, key: str, directory: Path) -> None:
        """Copy what is below `key` into a directory."""
        for each in self.keys(f"{key}/"):
            file = directory / each.removeprefix(f"{key}/")
            file.parent.mkdir(parents=True, exist_ok=True)
            self.client.download_file(self.bucket, each, str(file))

    def forget_conditions(self) -> None:
        self._is_forgetful = True

    def start(self) -> None:
        """Serve; what is there stays from one time to the next, and so does the port."""
        self._server = make_server(
            "127.0.0.1",
            self._port,
            self._receive,
            threaded=True,
            request_handler=_Quiet,
        )
        self._port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _receive(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = BytesIO(Request(environ).get_data())
        with self._turn:
            return self._serve(environ, start_response)

    def _serve(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        self.requests[request.method] += 1
        self.received += request.content_length or 0
        if f"Credential={_LOGIN['aws_access_key_id']}/" not in request.headers["Authorization"]:
            return Response(status=403)(environ, start_response)
        if self._is_forgetful:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        answer = self.fault(request)
        if answer is not None:
            return answer(environ, start_response)
        if self.answers_to_lose and request.method == "PUT":
            self.answers_to_lose -= 1
            list(self._app(environ, lambda *_: None))
            return Response(status=503)(environ, start_response)
        content = b"".join(self._app(environ, start_response))
        self.sent += len(content)
        return [content]


@contextmanager
def object_store(*, threaded: bool = False) -> Iterator[ObjectStore]:
    """A server; one by threads keeps bodies in files."""
    name, before = "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE", None
    if threaded:
        before = os.environ.get(name)
        os.environ[name] = "1"
    server = ObjectStore(threaded=threaded)
    try:
        yield server
    finally:
        server.close()
        if threaded:
            os.environ.pop(name) if before is None else os.environ.update({name: before})
