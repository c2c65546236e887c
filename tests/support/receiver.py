"""A server on loopback that keeps what is posted to it, for exporters."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.http_server import Answer, Asked, answering


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

    def answer(asked: Asked) -> Answer:
        is_packed = asked.headers.get("content-encoding") == "gzip"
        status = found.answers.pop(0) if found.answers else 200
        if status == 200:
            body = gzip.decompress(asked.body) if is_packed else asked.body
            found.bodies.append((asked.path, body))
        return status, {}, b""

    with answering(answer) as found.url:
        yield found
