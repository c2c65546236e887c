"""Real services for the tests: one of each a session, started when the first test asks."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.config import Settings
from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.class_archive import provide_class_archive
from service.embedded.database import MariaDb
from service.embedded.jarlock import JarSet
from service.embedded.jars import JarCache
from service.embedded.java import Java, find_java


@pytest.fixture(scope="session")
def java() -> Java:
    """The Java of this machine; child processes, Spark's too, get it from here on."""
    found = find_java(Settings.load().cache_dir)
    os.environ.update(found.environment())
    return found


@pytest.fixture(scope="session")
def jar_cache(java: Java) -> JarCache:
    return JarCache(Settings.load().cache_dir, java)


@pytest.fixture(scope="session")
def spark_jars(jar_cache: JarCache) -> list[Path]:
    """What `spark.jars` needs: Delta and Kafka."""
    return jar_cache.jars(JarSet.SPARK)


@pytest.fixture(scope="session")
def class_archive(java: Java, jar_cache: JarCache, spark_jars: list[Path]) -> Path | None:
    """What runners' JVMs map, made when it is not there."""
    return provide_class_archive(jar_cache.directory, java, spark_jars)


@pytest.fixture(scope="session")
def broker_jars(jar_cache: JarCache) -> list[Path]:
    return jar_cache.jars(JarSet.BROKER)


@pytest.fixture(scope="session")
def database_home(jar_cache: JarCache) -> Path:
    return jar_cache.database_home()


@pytest.fixture(scope="session")
def kafka(
    tmp_path_factory: pytest.TempPathFactory, java: Java, broker_jars: list[Path]
) -> Iterator[KafkaBroker]:
    """A running broker that all tests share: use topics with names of your own."""
    directory = tmp_path_factory.mktemp("kafka")
    with KafkaBroker(directory, java, broker_jars, BrokerSettings(heap="384m")) as broker:
        yield broker


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory, database_home: Path) -> Iterator[MariaDb]:
    """A running database that all tests share: use a schema of your own."""
    with MariaDb(tmp_path_factory.mktemp("mariadb"), database_home) as database:
        yield database
