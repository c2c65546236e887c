"""What tests of the data path share: one Spark, and a topic for a test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from joins.job.session import SparkSettings, start_session
from joins.worker.channel import Listener
from joins.worker.resident_pool import ResidentPool
from service.embedded.broker import KafkaBroker
from service.embedded.java import Java
from tests.support.foreign_topics import Connector
from tests.support.jvm import QUICK_JVM
from tests.support.topics import create_topic, delete_topics


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


@pytest.fixture
def topic(request: pytest.FixtureRequest, kafka: KafkaBroker) -> Iterator[str]:
    """An empty topic of two partitions, or as many as the file has in `PARTITIONS`."""
    count = getattr(request.module, "PARTITIONS", 2)
    name = create_topic(kafka.bootstrap_servers, partitions=count)
    yield name
    delete_topics(kafka.bootstrap_servers, name)


@pytest.fixture
def connector(request: pytest.FixtureRequest, kafka: KafkaBroker) -> Iterator[Connector]:
    """The topic of a Debezium connector, with as many partitions."""
    made = Connector(kafka.bootstrap_servers, getattr(request.module, "PARTITIONS", 2))
    yield made
    made.close()
