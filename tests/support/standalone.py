"""A standalone Spark master and workers of one core, each as if on a machine with its address.

A worker, and all that it starts, sees neither the checkout, nor the directories that it is told not
to see, nor those of other workers: empty file systems that take nothing lie over them, in a mount
namespace of its own. What it shares with others is the network.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from joins.kernels.compiled import kept_in
from joins.worker import daemon
from service.embedded.java import Java
from service.embedded.process import free_port
from tests.support.jvm import QUICK_JVM
from tests.support.rig import descendants
from tests.support.wait import wait_until

ROOT = Path(__file__).parents[2]
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
COMPILED = "compiled"
"""The directory of native code in the archive."""
NODE_DISK = "NODE_DISK"
"""The variable with the directory of a node."""
_HOME = Path(pyspark.__file__).parent
_SPARK = {
    "SPARK_HOME": str(_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
}
_PACKAGES = ("watermark", "joins", "service")
_MEMORY = "640m"
_HIDE = "mount -t tmpfs -o ro none {}"


@dataclass(frozen=True)
class Node:
    """One worker: its disk, and its process."""

    directory: Path
    process: subprocess.Popen[bytes]

    def running(self, part: str) -> list[psutil.Process]:
        return descendants(psutil.Process(self.process.pid), part)

    def lose(self) -> None:
        """The machine is gone, and its disk with it."""
        processes = [psutil.Process(self.process.pid)]
        processes += processes[0].children(recursive=True)
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self.process.wait()
        psutil.wait_procs(processes, timeout=10)
        shutil.rmtree(self.directory)


@dataclass(frozen=True)
class Cluster:
    """A master, its address and its workers."""

    master: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class NodeWorld:
    """What workers find around them.

    Attributes:
        hidden: directories that they do not see.
        environment: variables that they have; the project is in none of them.
    """

    hidden: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def packed_wheel(directory: Path) -> Path:
    """An archive for `spark.archives` of what the project's wheel installs, without what it needs.

    The wheel is built from a copy of the sources; native code is in the archive, too, compiled here
    if this user has not compiled it before.
    """
    source = directory / "source"
    for name in _PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(source))
    (wheel,) = directory.glob("*.whl")
    site, archive = directory / "site", directory / "sluice.tar.gz"
    _pip("install", "--no-deps", "--no-index", "--target", str(site), str(wheel))
    shutil.copytree(kept_in(), site / COMPILED)
    places = {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(site / COMPILED)}
    compiling = [sys.executable, "-m", daemon.MODULE, daemon.COMPILE]
    subprocess.run(compiling, check=True, cwd=site, env={**os.environ, **places})
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(site, arcname=".")
    return archive


def executor_conf(archive: Path) -> dict[str, str]:
    return {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.archives": f"{archive}#sluice",
        "spark.executorEnv.PYTHONPATH": "sluice",
        "spark.executorEnv.NUMBA_CACHE_DIR": f"sluice/{COMPILED}",
    }


def _pip(*words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True
    )


@contextmanager
def running_cluster(
    directory: Path, java: Java, world: NodeWorld, *, workers: int
) -> Iterator[Cluster]:
    """A master and workers that have registered; all are gone afterwards."""
    directory.mkdir()
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    words = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    with ExitStack() as stack:
        log = directory / "master.log"
        command = [str(_HOME / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master"]
        stack.enter_context(_running(java, log, {}, [*command, *words]))
        wait_until(lambda: "I have been elected leader" in log.read_text(), what="a master")
        homes = [directory / f"127.0.0.{number}" for number in range(1, workers + 1)]
        for home in homes:
            home.mkdir()
        nodes = []
        for home in homes:
            unseen = [*world.hidden, *(other for other in homes if other != home)]
            node = _node(java, home, master, NodeWorld(unseen, world.environment))
            nodes.append(stack.enter_context(node))
        wait_until(
            lambda: log.read_text().count("Registering worker") == workers, what="all workers"
        )
        yield Cluster(master, tuple(nodes))


@contextmanager
def _node(java: Java, home: Path, master: str, world: NodeWorld) -> Iterator[Node]:
    words = ("--host", home.name, "--cores", "1", "--memory", _MEMORY, "--webui-port", "0")
    program = "org.apache.spark.deploy.worker.Worker"
    command = [str(_HOME / "bin" / "spark-class"), program, *words]
    command += ["--work-dir", str(home / "work"), master]
    unseen = [*world.hidden, *(ROOT / name for name in _PACKAGES)]
    steps = [_HIDE.format(shlex.quote(str(each))) for each in unseen]
    script = " && ".join([*steps, f"exec {shlex.join(command)}"])
    environment = {
        **world.environment,
        NODE_DISK: str(home),
        "SPARK_LOCAL_IP": home.name,
        "HOME": str(home),
        "TMPDIR": str(home),
        "SPARK_LOCAL_DIRS": str(home / "spark"),
    }
    (home / "spark").mkdir()
    root = () if os.geteuid() == 0 else ("--map-root-user",)
    isolated = ["unshare", *root, "--mount", "sh", "-c", script]
    with _running(java, home / "log", environment, isolated) as process:
        yield Node(home, process)


@contextmanager
def _running(
    java: Java, log: Path, environment: Mapping[str, str], command: Sequence[str]
) -> Iterator[subprocess.Popen[bytes]]:
    variables = {**os.environ, **java.environment(), **_SPARK, **environment}
    variables.pop("PYTHONPATH", None)
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=variables)
    try:
        yield process
    finally:
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
        process.kill()
        process.wait()
