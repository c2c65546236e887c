"""What the runner's JVM shows on its command line, where every user of the machine can read it.

And the archive of classes that it maps, or does not.
"""

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from joins.job import session
from joins.job.session import attach_session, remove_directories, worker_sockets
from joins.plan.errors import SourceUnavailableError
from service.jobs.supervise.runner_process import environment

SECRETS = {
    "spark.hadoop.fs.s3a.secret.key": "open sesame",
    "spark.ssl.keyPassword": "hidden one",
    "spark.myTOKEN": "hidden two",
    "spark.credentials.x": "hidden three",
}
ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
PLAIN = {"spark.sql.shuffle.partitions": "3", ARROW_BYTES: "64m"}
JAVA = {"spark.driver.extraJavaOptions": "-Dours=theirs"}
PROGRAM = """
import json, sys
from pathlib import Path
import psutil
from joins.job.session import SparkSettings, start_session
directory, jars, java_home, archive, extra = json.load(sys.stdin)
settings = SparkSettings("s", [Path(j) for j in jars], Path(directory), "local[1]", "512m",
    Path(java_home), Path(archive), extra)
session = start_session(settings)
shown = []
for child in psutil.Process().children(recursive=True):
    try:
        shown.append(child.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        pass  # a helper of Spark's scripts that has ended
known = {name: session.sparkContext.getConf().get(name) for name in extra}
hadoop = session.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.secret.key")
session.stop()
json.dump([shown, known, hadoop], open(Path(directory) / "told.json", "w"))
"""


def test_secret_settings_reach_spark_but_not_the_command_line(tmp_path, java, spark_jars):
    unfit = tmp_path / "unfit.jsa"
    unfit.write_bytes(b"no archive of this JVM")
    jars = [str(j) for j in spark_jars]
    given = [str(tmp_path), jars, str(java.home), str(unfit), {**SECRETS, **PLAIN, **JAVA}]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(given),
        text=True,
        env=environment(),
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, "an archive that does not fit keeps no JVM from starting"
    assert "jsa" not in done.stdout + done.stderr
    shown, known, hadoop = json.loads((tmp_path / "told.json").read_text())
    words = [word for line in shown for word in line]
    assert known.pop("spark.driver.extraJavaOptions").endswith("-Dours=theirs")
    assert known == {**SECRETS, **PLAIN}
    assert hadoop == "open sesame"
    assert "spark.sql.shuffle.partitions=3" in words
    assert "-Dours=theirs" in words
    assert not [word for word in words if any(value in word for value in SECRETS.values())]


def endpoint_of_a_stranger(spark, conf):
    """What a Spark client with `conf` of its own finds at the driver's port."""
    jvm = spark.sparkContext._jvm
    manager = jvm.org.apache.spark.SecurityManager
    defaults = [getattr(manager, f"$lessinit$greater$default${n}")() for n in (2, 3)]
    security = manager(conf, *defaults)
    client = jvm.org.apache.spark.rpc.RpcEnv.create(
        "stranger", "127.0.0.1", 0, conf, security, True
    )
    try:
        port = int(spark.sparkContext.getConf().get("spark.driver.port"))
        address = jvm.org.apache.spark.rpc.RpcAddress("127.0.0.1", port)
        return client.setupEndpointRef(address, "HeartbeatReceiver").name()
    finally:
        client.shutdown()


def test_the_port_of_a_local_session_answers_nobody_who_does_not_authenticate(spark):
    stranger = spark.sparkContext._jvm.org.apache.spark.SparkConf(False)
    with pytest.raises(Py4JJavaError, match="Exception thrown in awaitResult"):
        endpoint_of_a_stranger(spark, stranger)
    ours = stranger.clone().set("spark.authenticate", "true").set("spark.app.id", "ours")
    assert endpoint_of_a_stranger(spark, ours) == "HeartbeatReceiver", "it has the session's secret"


def test_a_session_maps_the_archive_of_its_classes(spark, java, class_archive):
    if class_archive is None:
        pytest.skip(f"no archive can be made for Java {java.version} here")
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    assert str(class_archive) in Path(f"/proc/{pid}/maps").read_text()


def test_workers_are_reached_by_sockets_that_nobody_else_may_touch(spark):
    directory = Path(spark.sparkContext.getConf().get("spark.python.unix.domain.socket.dir"))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert spark.sparkContext.parallelize([1], 1).map(lambda n: n + 1).collect() == [2]
    assert [path for path in directory.iterdir() if path.is_socket()]


@pytest.mark.parametrize("obstacle", ["a name that is too long", "no directory"])
def test_without_a_directory_for_sockets_workers_are_reached_by_tcp(
    tmp_path, monkeypatch, obstacle
):
    temporary = tmp_path / ("x" * 90)
    if "long" in obstacle:
        temporary.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert worker_sockets() == ({}, ())


def test_the_directory_for_sockets_goes_with_the_sessions_of_its_process(monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        monkeypatch.setattr(session, "_directories", [])
        settings, (descriptor,) = worker_sockets()
        directory = Path(settings["spark.python.unix.domain.socket.dir"])
        assert os.fstat(descriptor).st_ino == next(directory.iterdir()).stat().st_ino
        Path(directory, ".left.sock").touch()
        remove_directories()
        assert not list(Path(short).iterdir())


MASTERS = {
    "local": (1, "local[3,1]"),
    "local[2]": (2, "local[4,1]"),
    "local[3,4]": (3, "local[5,4]"),
    "local-cluster[2,1,1024]": (None, "local-cluster[2,1,1024]"),
    "spark://one:7077": (None, "spark://one:7077"),
}


@pytest.mark.parametrize(("master", "expected"), MASTERS.items(), ids=MASTERS)
def test_resident_tasks_have_slots_beside_those_of_a_local_masters_cores(master, expected):
    assert (session.local_cores(master), session._with_slots(master, 2)) == expected
    assert session._with_slots(master, 0) == master


QUOTAS = {"max 100000": 3, "150000 100000": 2, "1000 100000": 1, "900000 100000": 3, "": 3}


@pytest.mark.parametrize(("quota", "cores"), QUOTAS.items(), ids=QUOTAS)
def test_the_cores_of_this_machine_are_those_that_its_group_may_use(
    quota, cores, monkeypatch, tmp_path
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(session, "_QUOTA", tmp_path / "cpu.max")
    (tmp_path / "cpu.max").write_text(quota)
    assert session.local_cores("local[*,4]") == cores


def test_a_runner_whose_driver_does_not_start_ends_and_says_where_to_look(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_START_S", 0.1)
    with pytest.raises(SourceUnavailableError, match="has not started within") as caught:
        attach_session(tmp_path / "driver.json", "job", lambda: True)
    assert "host/host.log" in caught.value.hint
