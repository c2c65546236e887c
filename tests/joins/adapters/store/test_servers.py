"""Servers on files that others run: those that lose conditional puts in silence are found out."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from joins.adapters.store_path import prove_conditional_puts
from joins.plan.errors import StoreRefusedError
from service.embedded.java import Java
from tests.support.s3_servers import S3Server, s3proxy, versity_gateway

pytestmark = pytest.mark.experiment
Running = Callable[[Path, Java], AbstractContextManager[S3Server]]
TRIALS = 2
LOSING: dict[str, Running] = {
    "s3proxy_2_6": s3proxy,
    "versity_1_7": lambda directory, _: versity_gateway(directory, "v1.7.0"),
}


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path, java: Java) -> Iterator[S3Server]:
    with request.param(tmp_path, java) as running:
        yield running


def refusals(server: S3Server) -> list[str]:
    """What submissions say, each of a bucket that was not proven."""
    said = []
    for _ in range(TRIALS):
        try:
            prove_conditional_puts(server.new_bucket())
        except StoreRefusedError as refused:
            said.append(refused.message)
    return said


@pytest.mark.parametrize("server", LOSING.values(), ids=LOSING, indirect=True)
def test_a_server_that_looks_first_and_writes_then_is_refused(server: S3Server) -> None:
    said = refusals(server)
    assert len(said) == TRIALS, said
    assert all("does not keep conditional puts" in each for each in said), said


@pytest.mark.parametrize(
    "server", [lambda directory, _: versity_gateway(directory, "v1.8.0")], indirect=True
)
def test_a_server_that_locks_the_key_is_taken(server: S3Server) -> None:
    assert refusals(server) == []
