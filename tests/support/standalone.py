"""A standalone Spark master and workers of one core on this machine, from pyspark's own jars.

Each worker has a directory of its own with the project's wheel in it: its Python workers import
that, not the checkout.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from service.embedded.java import Java
from service.embedded.process import free_port
from tests.support.rig import descendants
from tests.support.wait import wait_until

ROOT = Path(__file__).parents[2]
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_HOME = Path(pyspark.__file__).parent
_SPARK = {
    "SPARK_HOME": str(_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
}
_PACKAGES = ("watermark", "joins", "service")
_MEMORY = "640m"


@dataclass(frozen=True)
class Node:
    """One worker: what it has installed, and its process."""

    directory: Path
    process: subprocess.Popen[bytes]

    def running(self, part: str) -> list[psutil.Process]:
        """Its living processes whose command line has the word `part`."""
        return descendants(psutil.Process(self.process.pid), part)


@dataclass(frozen=True)
class Cluster:
    """A master, its address and its workers."""

    master: str
    nodes: tuple[Node, ...]


def build_wheel(directory: Path) -> Path:
    """The project's wheel, built from a copy of its sources."""
    source = directory / "source"
    for name in _PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(source))
    (wheel,) = directory.glob("*.whl")
    return wheel


def _pip(*words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True
    )


@contextmanager
def running_cluster(directory: Path, java: Java, *, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers that have registered; all are gone afterwards."""
    wheel = build_wheel(directory / "wheel")
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    words = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    with ExitStack() as stack:
        log = directory / "master.log"
        stack.enter_context(
            _running(java, log, {}, "org.apache.spark.deploy.master.Master", *words)
        )
        wait_until(lambda: "I have been elected leader" in log.read_text(), what="a master")
        nodes = []
        for number in range(workers):
            home = directory / f"node-{number}"
            _pip("install", "--no-deps", "--no-index", "--target", str(home / "site"), str(wheel))
            nodes.append(stack.enter_context(_node(java, home, master)))
        wait_until(
            lambda: log.read_text().count("Registering worker") == workers, what="all workers"
        )
        yield Cluster(master, tuple(nodes))


@contextmanager
def _node(java: Java, home: Path, master: str) -> Iterator[Node]:
    words = ("--host", "127.0.0.1", "--cores", "1", "--memory", _MEMORY, "--webui-port", "0")
    work = ("--work-dir", str(home / "work"))
    environment = {"PYTHONPATH": str(home / "site"), "TMPDIR": str(home)}
    program = "org.apache.spark.deploy.worker.Worker"
    with _running(java, home / "log", environment, program, *words, *work, master) as process:
        yield Node(home, process)


@contextmanager
def _running(
    java: Java, log: Path, environment: Mapping[str, str], program: str, *words: str
) -> Iterator[subprocess.Popen[bytes]]:
    variables = {**os.environ, **java.environment(), **_SPARK, **environment}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(_HOME / "bin" / "spark-class"), program, *words],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=variables,
        )
    try:
        yield process
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.wait()
