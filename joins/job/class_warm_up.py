"""Makes a class archive: ``python -m joins.job.class_warm_up ARCHIVE JAVA_HOME SCRATCH JAR…``.

It runs a little of all that Spark and Delta do for a job; the JVM writes the loaded classes into
ARCHIVE as it ends. A JVM with the archive saves a third of its start and first batches.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from joins.job.session import SparkSettings, start_session


def main() -> None:
    """Make the archive; the caller checks that the file exists."""
    archive, java_home, scratch, *jars = map(Path, sys.argv[1:])
    settings = SparkSettings(
        app_name="warm up",
        jars=jars,
        scratch_directory=scratch,
        master="local[2]",
        driver_memory="1g",
        java_home=java_home,
        extra={"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}"},
    )
    spark = start_session(settings)
    _write_and_merge(spark, scratch / "table")
    jvm: Any = spark._jvm
    with contextlib.suppress(Py4JError, OSError):  # the connection ends with the JVM
        jvm.System.exit(0)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _write_and_merge(spark: SparkSession, path: Path) -> None:
    rows = spark.range(100).selectExpr("id", "cast(id AS string) AS name")
    rows.write.format("delta").save(str(path))
    table = DeltaTable.forPath(spark, str(path))
    merge = table.alias("t").merge(rows.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    kept = table.toDF().mapInArrow(_same, "id long, name string").persist()
    kept.filter("id > 3").groupBy("name").count().collect()
    kept.unpersist()


if __name__ == "__main__":
    main()
