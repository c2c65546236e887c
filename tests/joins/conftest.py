"""One Spark for all tests of the data path."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from joins.job.session import SparkSettings, start_session
from joins.worker.channel import Listener
from joins.worker.resident_pool import ResidentPool
from service.embedded.java import Java
from tests.support.jvm import QUICK_JVM


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory,
    java: Java,
    spark_jars: list[Path],
    class_archive: Path | None,
) -> Iterator[SparkSession]:
    """A local session with Delta and Kafka; tests share it, so they leave no tables behind."""
    settings = SparkSettings(
        app_name="tests",
        jars=spark_jars,
        scratch_directory=tmp_path_factory.mktemp("spark"),
        master="local[2,4]",
        residents=4,  # of two pools: one of all tests of the pool, one of the test itself
        driver_memory="1g",
        java_home=java.home,
        class_archive=class_archive,
        extra={
            "spark.driver.extraJavaOptions": QUICK_JVM,
            # Of a few rows: plans are made for longer than they run.
            "spark.sql.shuffle.partitions": "1",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
        },
    )
    session = start_session(settings)
    yield session
    session.stop()


@pytest.fixture
def lonely(spark: SparkSession) -> Iterator[ResidentPool]:
    """A pool without a Spark job, for residents of this process."""
    pool = ResidentPool(spark, 1, timeout_s=60.0)
    pool._listener = Listener(spark.sparkContext, "residents", pool._serve)
    yield pool
    pool.close()
