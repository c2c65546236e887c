"""The broker and the database that `sluice demo` and `sluice up` run on."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import DatabaseSettings, MariaDb
from service.embedded.jarlock import JarSet
from service.embedded.jars import JarCache
from service.embedded.java import Java, find_java
from service.embedded.server import side_by_side

_READY_TIMEOUT_S = 300.0  # a busy laptop may be slow, and a server that dies is seen at once


@dataclass(frozen=True, slots=True)
class Binaries:
    """What has to be on the machine; fetched where it is not."""

    java: Java
    broker_jars: tuple[Path, ...]
    database_home: Path


def provide(cache_dir: Path) -> Binaries:
    """Fill the cache where it is not full, also with what Spark needs later.

    Raises:
        EmbeddedError: there is no Java, or something cannot be fetched.
    """
    cache_dir.mkdir(parents=True, exist_ok=True)
    java = find_java(cache_dir)
    cache = JarCache(cache_dir, java)
    cache.jars(JarSet.SPARK)
    return Binaries(java, tuple(cache.jars(JarSet.BROKER)), cache.database_home())


@dataclass(frozen=True, slots=True)
class DebeziumBinaries:
    """What has to be on the machine for a PostgreSQL whose changes Debezium writes."""

    connect_jars: tuple[Path, ...]
    postgres_home: Path


def provide_debezium(cache_dir: Path, java: Java) -> DebeziumBinaries:
    """Fetch Kafka Connect with Debezium's connectors, and PostgreSQL, where they are not there.

    Raises:
        JarCacheError: something cannot be fetched.
    """
    cache = JarCache(cache_dir, java)
    return DebeziumBinaries(tuple(cache.jars(JarSet.CONNECT)), cache.postgres_home())


@contextmanager
def servers(directory: Path, binaries: Binaries) -> Iterator[tuple[KafkaBroker, MariaDb]]:
    """A broker and a database with their data below `directory`, until the block ends.

    They start side by side: each waits for a disk or for itself most of the time.

    Raises:
        ServerStartError: one of them does not start.
    """
    patient = BrokerSettings(ready_timeout_s=_READY_TIMEOUT_S)
    broker = KafkaBroker(directory / "kafka", binaries.java, binaries.broker_jars, patient)
    database = MariaDb(
        directory / "mariadb",
        binaries.database_home,
        DatabaseSettings(ready_timeout_s=_READY_TIMEOUT_S),
    )
    with side_by_side(broker, database):
        yield broker, database
