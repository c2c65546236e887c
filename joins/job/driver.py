"""One Spark driver that several runners share: a process of its own, to which they attach.

A runner keeps its Python side for itself: plan, checkpoint, commits, secrets. Of the driver it has
a session, and the jobs that carry its tag.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from joins.adapters.delta.output import keep_rows_out_of_logs
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.job.session import PYTHON, SparkSettings, remove_directories, start_session
from joins.plan.errors import JoinError
from joins.worker.work import TAG

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_LOOK_S = 0.05


def run_driver(settings: SparkSettings, address: Path) -> int:
    """Start a JVM for others and wait until it ends; returns its exit code.

    Args:
        settings: of its session.
        address: the file that says where it is, once it is ready; its directory is this user's
            alone, for whoever knows it can do all that the driver can.

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


def attach_session(address: Path, job_id: str, is_coming: Callable[[], bool]) -> SparkSession:
    """A session of a driver that `run_driver` runs; what an earlier runner has left there ends.

    Args:
        address: the file that says where the driver is.
        job_id: the tag of the job's Spark jobs.
        is_coming: whether to go on waiting for the driver.

    Raises:
        JoinError: the driver is not there.
    """
    try:
        session = _attached(_await(address, is_coming)).newSession()
        session.conf.set(TAG, job_id)
        session.sparkContext.cancelJobsWithTag(job_id)
    except Exception as exc:
        raise JoinError(
            f"the shared spark driver cannot be used: {exc}",
            hint="It is started again with its runners; if this stays, read host/host.log below "
            "the data directory, or set SLUICE_RUNNERS=own.",
        ) from exc
    return session


def _await(address: Path, is_coming: Callable[[], bool]) -> dict[str, Any]:
    while True:
        content = read_json(address)
        if content is not None:
            return content
        if not is_coming():
            raise TimeoutError("it has not started")
        time.sleep(_LOOK_S)


def _attached(where: dict[str, Any]) -> SparkSession:
    os.environ.update({_PORT: str(where["port"]), _SECRET: where["secret"]})
    launch: Any = launch_gateway  # which launches nothing where these two are
    try:
        gateway = launch()
    finally:
        for name in (_PORT, _SECRET):  # children of this process need not know it
            del os.environ[name]
    jvm = gateway.jvm
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    conf = SparkConf(_jvm=jvm, _jconf=java.getConf())
    os.environ["PYSPARK_PYTHON"] = conf.get(PYTHON, sys.executable)
    return SparkSession(SparkContext(jsc=java, gateway=gateway, conf=conf))
