"""The process that Python workers are forked from: prepared, handed over, and replaced."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from joins.worker import daemon
from tests.support.wait import wait_until


def parents_of_workers(spark: SparkSession) -> set[int]:
    numbers = spark.sparkContext.parallelize(range(4), 2)
    return set(numbers.mapPartitions(_parent).collect())


def _parent(_: Iterator[int]) -> Iterator[int]:
    yield os.getppid()


def forked_from(spark: SparkSession) -> psutil.Process:
    (parent,) = parents_of_workers(spark)
    return psutil.Process(parent)


def test_workers_are_forked_from_the_process_that_was_prepared(spark):
    prepared = forked_from(spark)
    if "--prepared" not in prepared.cmdline():
        pytest.skip("another test has killed it: this session's later daemons load by themselves")
    assert prepared.ppid() == os.getpid()


def test_a_killed_one_is_replaced_by_one_that_loads_by_itself(spark):
    for _ in range(2):
        killed = forked_from(spark)
        workers = killed.children()
        for process in (killed, *workers):
            process.send_signal(signal.SIGKILL)
        psutil.wait_procs([killed], timeout=120)
        successor = forked_from(spark)
        assert successor.pid != killed.pid
        assert "--prepared" not in successor.cmdline()


@pytest.mark.parametrize("found", ["no directory", "one that others can touch"])
def test_where_spark_s_directory_is_not_ours_sockets_are_in_a_private_one(
    monkeypatch, tmp_path, found
):
    told = tmp_path / "of the driver"
    if found != "no directory":
        told.mkdir(mode=0o777)
        told.chmod(0o777)
    monkeypatch.setenv(daemon.SOCKETS, str(told))
    with daemon.place_for_sockets():
        place = Path(os.environ[daemon.SOCKETS])
        assert place != told
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert len(os.fsencode(place / f".{uuid.uuid4()}.sock")) < 104
    assert not place.exists()


def test_where_spark_s_directory_is_ours_sockets_are_in_it(monkeypatch, tmp_path):
    tmp_path.chmod(0o700)
    monkeypatch.setenv(daemon.SOCKETS, str(tmp_path))
    with daemon.place_for_sockets():
        assert os.environ[daemon.SOCKETS] == str(tmp_path)


@pytest.fixture
def short():
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        yield Path(directory)


def test_what_hands_over_loads_nothing_and_ends_with_the_other(short, processes):
    path = short / "s"
    environment = {**os.environ, daemon.SOCKET: str(path), "PYTHON_UNIX_DOMAIN_ENABLED": "true"}
    environment["PYTHON_WORKER_FACTORY_SOCK_DIR"] = str(short)
    prepared = subprocess.Popen(daemon.command(path), stdin=subprocess.DEVNULL)
    wait_until(path.exists, what="it listens")
    started = subprocess.Popen(
        [sys.executable, "-m", daemon.MODULE, "pyspark.worker"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    length = int.from_bytes(started.stdout.read(4), "big")
    told = started.stdout.read(length).decode()
    assert told.startswith(str(short)), "the prepared one has told where it listens"
    assert not path.exists()
    names = {os.path.basename(each.path) for each in psutil.Process(started.pid).memory_maps()}
    assert not [name for name in names if name.startswith(("libarrow", "llvmlite"))]
    started.stdin.close()
    prepared.wait(120)
    assert started.wait(120) == 0
    started.stdout.close()


@pytest.mark.parametrize("path", [None, "/nowhere/at/all"])
def test_without_somebody_who_waits_it_loads_by_itself(path):
    assert daemon._is_handed_over(path) is False
