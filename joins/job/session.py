"""The Spark session of one runner: its JVM, its jars and its settings."""

import atexit
import os
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from joins.adapters.delta.output import keep_rows_out_of_logs
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.kernels.local_files import OwnDirectory
from joins.plan.errors import JoinError, SourceUnavailableError
from joins.worker import daemon
from joins.worker.work import TAG

_DAEMON = "spark.python.daemon.module"
PYTHON = "spark.pyspark.python"
"""Setting with the Python of executors; without it they use that of this process."""
_BY_SOCKETS = "spark.python.unix.domain.socket.enabled"
_SOCKETS = "spark.python.unix.domain.socket.dir"
OF_LOCAL_MASTERS = frozenset({"spark.authenticate", "spark.authenticate.secret"})
"""Settings of sessions whose Spark runs on this machine alone."""
_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),  # above 2 GiB a batch would fail
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.scheduler.mode": "FAIR",
    "spark.locality.wait": "0s",  # a batch does not wait for a node that is busy
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.worker.faulthandler.enabled": "true",
    _DAEMON: daemon.MODULE,
    "spark.log.level": "ERROR",
}
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_LONGEST_SOCKET = 103  # bytes of a path, on any system
_NAME_OF_A_SOCKET = len("/sluice-run-01234567/.01234567-0123-0123-0123-012345678901.sock")
_directories: list[OwnDirectory] = []
_SECRET = re.compile("secret|passw|token|credential|key(?!tab)", re.IGNORECASE)
# A pool below its minShare of running tasks goes first, by the part of it that it has: the probe
# gets two tasks for one of the build side, and folds get what is left.
_POOLS = """\
<allocations>
  <pool name="probe"><schedulingMode>FAIR</schedulingMode><minShare>8000</minShare></pool>
  <pool name="build"><schedulingMode>FAIR</schedulingMode><minShare>4000</minShare></pool>
  <pool name="snapshot"><schedulingMode>FAIR</schedulingMode><minShare>2000</minShare></pool>
  <pool name="resident"><schedulingMode>FAIR</schedulingMode><minShare>8000</minShare></pool>
  <pool name="fold"><schedulingMode>FAIR</schedulingMode></pool>
</allocations>
"""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What a session needs from outside."""

    app_name: str
    jars: Sequence[Path]  # of Delta, Kafka and their dependencies
    scratch_directory: Path  # for shuffle and spill files; belongs to the job
    master: str = "local[*,4]"  # by default with 4 attempts a task, so a killed worker is retried
    driver_memory: str = "2g"
    java_home: Path | None = None  # None leaves the choice to Spark's own scripts
    # made by `joins.job.class_warm_up`; the JVM starts faster with it
    class_archive: Path | None = None
    # further Spark settings, which win; Java options are added. Settings whose names look secret
    # are not on the JVM's command line, which every user of the machine can read: the JVM gets them
    # through its authenticated connection, before the Spark context.
    extra: Mapping[str, str] = field(default_factory=dict)
    # tasks that stay: with a local master they have slots beside those of its cores
    residents: int = 0


def start_session(settings: SparkSettings, *, inherit: Sequence[int] = ()) -> SparkSession:
    """Start a JVM and a session in it, on a thread that lives as long as the session.

    The JVM keeps the descriptors in `inherit` open, such as the checkpoint's lock.

    Raises:
        JoinError: the JVM did not start.
    """
    # reads better long: the settings of Spark are one table, some of them made here.
    if settings.java_home is not None:
        os.environ["JAVA_HOME"] = str(settings.java_home)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = settings.extra.get(PYTHON, sys.executable)
    settings.scratch_directory.mkdir(parents=True, exist_ok=True)
    pools = settings.scratch_directory / "pools.xml"
    pools.write_text(_POOLS, encoding="utf-8")
    sockets, owner = worker_sockets()
    conf = SparkConf(loadDefaults=False)
    cores = local_cores(settings.master)
    slots = {} if cores is None else {"spark.default.parallelism": str(cores)}
    master = _with_slots(settings.master, settings.residents)
    conf.setMaster(master).setAppName(settings.app_name)
    values = {
        **_SETTINGS,
        **slots,
        "spark.driver.memory": settings.driver_memory,
        "spark.scheduler.allocation.file": pools.as_uri(),
        "spark.jars": ",".join(str(jar) for jar in settings.jars),
        # Also here: only the classes of this loader can be archived.
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in settings.jars),
        **_archive_options(settings.class_archive),
        "spark.local.dir": str(settings.scratch_directory),
        "spark.sql.warehouse.dir": str(settings.scratch_directory / "warehouse"),
        **_authentication(settings.master),
        **sockets,
        **settings.extra,
    }
    for name, value in values.items():
        if not _SECRET.search(name):
            conf.set(name, value)
    try:
        if settings.master.startswith("local"):
            _prepare_workers(values)
        launch: Any = launch_gateway
        gateway = launch(conf, {"pass_fds": (*inherit, *owner)})
        for name, value in values.items():
            conf.set(name, value)
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except Exception as exc:
        raise JoinError(
            f"spark did not start: {exc}",
            hint="Check JAVA_HOME (Java 17 to 25), spark.master and the runner's log.",
        ) from exc


_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,(\d+))?\])?")


def local_cores(master: str) -> int | None:
    """Cores that a local master uses; None for a cluster."""
    match = _LOCAL.fullmatch(master)
    if match is None:
        return None
    return _processors() if match[1] == "*" else int(match[1] or "1")


def _with_slots(master: str, more: int) -> str:
    cores = local_cores(master)
    if cores is None or more == 0:
        return master
    retries = _LOCAL.fullmatch(master)
    assert retries is not None, "it has cores"
    return f"local[{cores + more},{retries[2] or 1}]"


def _processors() -> int:
    """Processors that this process may use, as a JVM counts them."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = _QUOTA.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return allowed or 1
    return (
        allowed or 1 if quota == "max" else max(1, min(allowed or 1, -(-int(quota) // int(period))))
    )


def _authentication(master: str) -> dict[str, str]:
    """Make Spark's own ports require a secret of this session.

    With `local`, Spark makes it. On a cluster all processes must know it, so the operator sets it.
    """
    if not master.startswith("local"):
        return {}
    own = {"spark.authenticate.secret": secrets.token_hex(32)} if "cluster" in master else {}
    return {"spark.authenticate": "true", **own}


def worker_sockets() -> tuple[dict[str, str], tuple[int, ...]]:
    """Settings that connect JVMs and their Python processes by Unix sockets, also on a cluster.

    By TCP each job waits 40 ms for a delayed acknowledgement. TCP remains if the sockets' directory
    cannot be made or its name is too long. Workers on other machines: see `joins.worker.daemon`.

    Returns:
        Settings of Spark, and the descriptor that the JVM inherits to keep the directory.
    """
    if len(os.fsencode(tempfile.gettempdir())) + _NAME_OF_A_SOCKET > _LONGEST_SOCKET:
        return {}, ()
    try:
        directory = OwnDirectory("run")
    except OSError:
        return {}, ()
    _directories.append(directory)
    return {_BY_SOCKETS: "true", _SOCKETS: str(directory.path)}, (directory.descriptor,)


@atexit.register
def remove_directories() -> None:
    while _directories:
        _directories.pop().remove()


def _prepare_workers(values: Mapping[str, str]) -> None:
    """Start the preparation of Python workers while the JVM starts, which leaves a core to it."""
    os.environ.pop(daemon.SOCKET, None)
    if _SOCKETS in values and values[_DAEMON] == daemon.MODULE:
        path = Path(values[_SOCKETS], "prepared")
        os.environ[daemon.SOCKET] = str(path)
        no_input = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
        os.posix_spawn(
            sys.executable, daemon.command(path), dict(os.environ), file_actions=[no_input]
        )


def _archive_options(archive: Path | None) -> dict[str, str]:
    """Separate from the user's Java options; the JVM ignores an archive that does not fit."""
    if archive is None:
        return {}
    options = f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
    return {"spark.driver.defaultJavaOptions": options}


_GATEWAY_PORT, _GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_LOOK_S = 0.05
_START_S = 120.0  # less than a runner may take until its first report


def run_driver(settings: SparkSettings, address: Path) -> int:
    """Start a JVM for other processes and wait until it ends; returns its exit code.

    Writes its port and secret to `address` once it is ready. Only this user may read the file's
    directory: the secret gives full control of the driver.

    Raises:
        JoinError: the JVM did not start.
    """
    spark = start_session(settings)
    keep_rows_out_of_logs(spark)
    gateway: Any = spark.sparkContext._gateway
    parameters = gateway.java_parameters
    write_json_atomically(address, {"port": parameters.port, "secret": parameters.auth_token})
    try:
        return int(gateway.proc.wait())
    finally:
        remove_directories()


def check_driver(spark: SparkSession) -> None:
    """Raise SourceUnavailableError if the JVM that this process has started has ended.

    The host of a shared driver ends its runners itself.
    """
    gateway: Any = spark.sparkContext._gateway
    code = None if gateway.proc is None else gateway.proc.poll()
    if code is not None:
        raise SourceUnavailableError(
            f"the JVM of the runner has ended with code {code}",
            hint="The runner is started again by itself; if this stays, see that the machine has "
            "memory for SLUICE_SPARK_DRIVER_MEMORY, and read the runner's log.",
        )


def attach_session(address: Path, job_id: str, is_coming: Callable[[], bool]) -> SparkSession:
    """A session on the driver of `run_driver`; cancels Spark jobs of an earlier runner of `job_id`.

    Waits for the driver while `is_coming`; JoinError if it cannot be used, SourceUnavailableError
    if it does not start.
    """
    try:
        session = _attached(_await(address, is_coming)).newSession()
        session.conf.set(TAG, job_id)
        session.sparkContext.cancelJobsWithTag(job_id)
    except SourceUnavailableError:
        raise
    except Exception as exc:
        raise JoinError(
            f"the shared spark driver cannot be used: {exc}",
            hint="It is started again with its runners; if this stays, read host/host.log below "
            "the data directory, or set SLUICE_RUNNERS=own.",
        ) from exc
    return session


def _await(address: Path, is_coming: Callable[[], bool]) -> dict[str, Any]:
    until = time.monotonic() + _START_S
    while (content := read_json(address)) is None:
        if not is_coming():
            raise TimeoutError("it has not started")
        if time.monotonic() > until:
            raise SourceUnavailableError(
                f"the shared spark driver has not started within {_START_S:.0f} s",
                hint="The runner is started again by itself; read host/host.log below the data "
                "directory, or set SLUICE_RUNNERS=own.",
            )
        time.sleep(_LOOK_S)
    return content


def _attached(where: dict[str, Any]) -> SparkSession:
    os.environ.update({_GATEWAY_PORT: str(where["port"]), _GATEWAY_SECRET: where["secret"]})
    launch: Any = launch_gateway  # launches nothing if these two are set
    try:
        gateway = launch()
    finally:
        for name in (_GATEWAY_PORT, _GATEWAY_SECRET):  # children must not inherit them
            del os.environ[name]
    jvm = gateway.jvm
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    conf = SparkConf(_jvm=jvm, _jconf=java.getConf())
    os.environ["PYSPARK_PYTHON"] = conf.get(PYTHON, sys.executable)
    return SparkSession(SparkContext(jsc=java, gateway=gateway, conf=conf))
