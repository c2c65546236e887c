"""A broker and a database of one's own, outside of pytest."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.config import Settings
from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import DatabaseSettings, MariaDb
from service.embedded.jarlock import JarSet
from service.embedded.jars import JarCache
from service.embedded.java import find_java


@contextmanager
def running_services(
    directory: Path,
    broker: BrokerSettings | None = None,
    database: DatabaseSettings | None = None,
) -> Iterator[tuple[KafkaBroker, MariaDb]]:
    """Both below `directory`, ended with the block; Spark's Java and jars are provided, too."""
    settings = Settings.load()
    java = find_java(settings.cache_dir)
    os.environ.update(java.environment())
    cache = JarCache(settings.cache_dir, java)
    cache.jars(JarSet.SPARK)
    with (
        KafkaBroker(directory / "kafka", java, cache.jars(JarSet.BROKER), broker) as kafka,
        MariaDb(directory / "mariadb", cache.database_home(), database) as mariadb,
    ):
        yield kafka, mariadb
