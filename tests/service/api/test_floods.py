"""Floods of connections: one address locks nobody out, and neither logs nor files run over."""

import asyncio
import logging
import os
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from service.api.http import connections
from service.api.http.connections import ConnectionSeats, raise_file_limit
from service.api.http.exposure import Peers
from service.config import Settings
from service.embedded.process import free_port
from service.logs import OfLibraries, PerMinute
from tests.support.control_plane import ROOT, control_plane
from tests.support.wait import wait_until

HALF = b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@contextmanager
def half_sent(address, many, *, source="127.0.0.1"):
    """So many connections with half a head each."""
    with ExitStack() as stack:
        for _ in range(many):
            made = socket.create_connection(address, timeout=60, source_address=(source, 0))
            stack.callback(made.close)
            made.sendall(HALF)
        yield


def answered(address, *, source="127.0.0.1"):
    """The status line of a request on a new connection."""
    with socket.create_connection(address, timeout=60, source_address=(source, 0)) as made:
        made.sendall(WHOLE)
        received = b""
        while part := made.recv(65_536):
            received += part
    return received.partition(b"\r\n")[0]


def address_of(plane):
    return ("127.0.0.1", httpx.URL(plane.url).port)


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"], ids=["same", "another"])
def test_half_sent_heads_of_one_address_lock_nobody_out(tmp_path, monkeypatch, source):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 16)
    with control_plane(tmp_path) as plane, half_sent(address_of(plane), 40):
        assert answered(address_of(plane), source=source) == b"HTTP/1.1 200 OK"


def test_when_all_places_are_taken_others_wait_and_come_in_when_one_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 4)
    with control_plane(tmp_path, request_timeout_s=1) as plane, ExitStack() as stack:
        for each in range(2, 6):
            stack.enter_context(half_sent(address_of(plane), 1, source=f"127.0.0.{each}"))
        assert answered(address_of(plane), source="127.0.0.9") == b"HTTP/1.1 200 OK"


def test_an_address_has_a_quarter_and_gives_up_what_rests():
    async def take():
        ended = []
        seats = ConnectionSeats(8, Peers(Settings()))
        first, second = (
            seats.take("10.0.0.1", lambda each=each: ended.append(each)) for each in "ab"
        )
        assert seats.take("10.0.0.1", lambda: None) is not None
        assert ended == ["a"]
        seats.give_back(first)  # known already
        second.connection = Busy()
        third = seats.take("10.0.0.1", lambda: None)
        assert third is not None
        third.connection = Busy()
        assert seats.take("10.0.0.1", lambda: None) is None
        assert seats.take("10.0.0.2", lambda: None) is not None
        seats.give_back(second)
        assert seats.take("10.0.0.1", lambda: None) is not None

    asyncio.run(take())


class Busy:
    """A connection on which a request is being answered."""

    rests = False


def test_a_trusted_proxy_brings_many_people():
    async def take():
        seats = ConnectionSeats(8, Peers(Settings(trusted_proxies="10.0.0.5")))
        assert all(seats.take("10.0.0.5", lambda: None) is not None for _ in range(8))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await seats.free()

    asyncio.run(take())


def test_the_limit_of_open_files_is_raised_to_what_the_machine_allows(processes):
    code = (
        "import resource; from service.api.http.connections import raise_file_limit\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 300))\n"
        "print(raise_file_limit(), resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "300 (300, 300)"
    assert raise_file_limit() <= resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def reaches(address):
    try:
        return answered(address) == b"HTTP/1.1 200 OK"
    except OSError:
        return False


def nonsense(address):
    with socket.create_connection(address, timeout=60) as made:
        made.sendall(b"\x16\x03\x01 no HTTP\r\n\r\n")
        made.recv(65_536)


def variables(data_dir):
    return {**os.environ, "SLUICE_DATA_DIR": str(data_dir), "PYTHONPATH": str(ROOT)}


def test_a_flood_on_few_files_is_outlived_and_few_lines_are_written(processes, tmp_path):
    """Half-sent heads and nonsense from four addresses, more than the process has files."""
    log, port = tmp_path / "log", free_port()
    command = [sys.executable, "-m", "service.cli", "serve", "--port", str(port)]
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 256))  # noqa: E731
    with log.open("wb") as err:
        served = subprocess.Popen(
            command, cwd=ROOT, stderr=err, stdout=err, preexec_fn=few, env=variables(tmp_path)
        )
    try:
        address = ("127.0.0.1", port)
        wait_until(lambda: reaches(address), deadline_s=60, what="control plane")
        with ExitStack() as stack:
            for each in range(2, 5):
                stack.enter_context(half_sent(address, 100, source=f"127.0.0.{each}"))
            for _ in range(200):
                nonsense(address)
            assert answered(address) == b"HTTP/1.1 200 OK"
    finally:
        served.terminate()
        served.wait(60)
    lines = log.read_text().splitlines()
    assert sum("Invalid HTTP request" in line for line in lines) == 1
    assert sum("too many connections" in line for line in lines) == 1
    assert len(lines) < 20, lines


def test_a_line_of_a_library_comes_once_a_minute_and_says_how_many_were_left_out():
    now = [0.0]
    lines = OfLibraries()
    lines._seen = PerMinute(lambda: now[0])

    def written(name, text, *values):
        record = logging.LogRecord(name, logging.WARNING, "", 0, text, values, None)
        return record.getMessage() if lines.filter(record) else None

    assert [written("uvicorn.error", "bad %s", each) for each in range(3)] == ["bad 0", None, None]
    assert written("uvicorn.error", "worse") == "worse"
    assert [written("service.api", "ours") for _ in range(2)] == ["ours", "ours"]
    now[0] = 60.0
    assert written("uvicorn.error", "bad %s", 9) == "bad 9 (2 more of these were left out)"
