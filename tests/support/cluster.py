"""A Spark cluster on this machine, two executors in processes and directories of their own.

`python -m tests.support.cluster DIRECTORY JAR…` joins two batches there; the answer is a JSON line.
"""

import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from joins.adapters.delta.log import DeltaLog, create_table
from joins.job.session import SparkSettings, start_session
from joins.sinks.delta import DeltaSinkWriter
from joins.worker.index_source import DimensionTables
from tests.support.jvm import QUICK_JVM
from tests.support.probe import PIN, clicks, probe_task
from tests.support.topic_work import work_of

ROOT = Path(__file__).parents[2]
RECORDS = 40


def main(directory: Path, jars: list[Path]) -> None:
    task = probe_task(directory)
    place = replace(task.indexes["u"], directory=Path("{SPARK_EXECUTOR_DIRS}/index/users"))
    tables = DimensionTables(directory / "changelog", directory / "current", "app")
    task = replace(task, indexes={"u": place}, tables={"users": tables})
    create_table(directory / "out", task.kernel.output_schema)
    writer = DeltaSinkWriter(DeltaLog(directory / "out", "app"))
    spark = start_session(
        SparkSettings(
            app_name="cluster",
            jars=jars,
            scratch_directory=directory / "scratch",
            master="local-cluster[2,1,1024]",
            driver_memory="512m",
            extra={
                "spark.driver.extraJavaOptions": QUICK_JVM,
                "spark.executor.extraJavaOptions": QUICK_JVM,
                "spark.executor.memory": "512m",
                "spark.executorEnv.PYTHONPATH": str(ROOT),
                "spark.scheduler.minRegisteredResourcesRatio": "1.0",
                "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
                "spark.locality.wait": "0s",
            },
        )
    )
    values = [b'{"user_id":%d}' % (1 + at % 3) for at in range(RECORDS)]
    records = clicks(*values)
    parts = [records.slice(at, RECORDS // 8) for at in range(0, RECORDS, RECORDS // 8)]
    counts, found = [], {}
    for batch, version in ((0, 1), (1, 2)):
        pin = replace(PIN, batch=batch, versions={"users": version})
        report = writer.run(work_of(spark, *parts), task, pin)
        writer.commit(report, pin, task.epoch)
        counts.append(dict(report.counts))
        found[version] = sorted(map(str, directory.glob(f"scratch/**/v{version}.json")))
    secret = spark.sparkContext.getConf().get("spark.authenticate.secret")
    lines = [line for child in psutil.Process().children(recursive=True) for line in said(child)]
    spark.stop()
    answer = {"counts": counts, "manifests": found, "processes": len(lines)}
    answer["with_the_secret"] = [line for line in lines if secret in line]
    sys.stdout.write(json.dumps(answer) + "\n")


def said(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return [" ".join(process.cmdline())]
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(jar) for jar in sys.argv[2:]])
