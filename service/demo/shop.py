"""The servers and data of `sluice demo` and `sluice up`: users in MariaDB, clicks in Kafka."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer

from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import Java, find_java
from service.embedded.server import DatabaseSettings, side_by_side

_READY_TIMEOUT_S = 300.0  # a busy laptop may be slow, and a server that dies is seen at once


@dataclass(frozen=True, slots=True)
class Binaries:
    """Programs of the servers, in the cache."""

    java: Java
    broker_jars: tuple[Path, ...]
    database_home: Path


def provide(cache_dir: Path) -> Binaries:
    """Fill the cache, including what Spark needs later. Raises EmbeddedError."""
    cache_dir.mkdir(parents=True, exist_ok=True)
    java = find_java(cache_dir)
    cache = JarCache(cache_dir, java)
    cache.jars(JarSet.SPARK)
    return Binaries(java, tuple(cache.jars(JarSet.BROKER)), cache.database_home())


@dataclass(frozen=True, slots=True)
class DebeziumBinaries:
    """Programs of PostgreSQL and of Kafka Connect with Debezium, in the cache."""

    connect_jars: tuple[Path, ...]
    postgres_home: Path


def provide_debezium(cache_dir: Path, java: Java) -> DebeziumBinaries:
    cache = JarCache(cache_dir, java)
    return DebeziumBinaries(tuple(cache.jars(JarSet.CONNECT)), cache.postgres_home())


@contextmanager
def servers(directory: Path, binaries: Binaries) -> Iterator[tuple[KafkaBroker, MariaDb]]:
    patient = BrokerSettings(ready_timeout_s=_READY_TIMEOUT_S)
    broker = KafkaBroker(directory / "kafka", binaries.java, binaries.broker_jars, patient)
    database = MariaDb(
        directory / "mariadb",
        binaries.database_home,
        DatabaseSettings(ready_timeout_s=_READY_TIMEOUT_S),
    )
    with side_by_side(broker, database):
        yield broker, database


TOPIC = "clicks"
_ABSENT_EVERY = 20
_TICK_S = 0.02

JOB_SQL = """\
CREATE TABLE user_info (user_id BIGINT, gender STRING, name STRING, PRIMARY KEY (user_id) NOT
ENFORCED) WITH ('connector'='mysql-cdc', 'hostname'='{host}', 'port'='{port}', 'username'='{user}',
'password'='{password}',
      'database-name'='shop', 'table-name'='user_info');
CREATE TABLE click_event (user_id BIGINT, item_id BIGINT, proctime AS PROCTIME())
WITH ('connector'='kafka', 'topic'='{topic}', 'properties.bootstrap.servers'='{servers}',
      'format'='json', 'scan.startup.mode'='earliest-offset');
CREATE TABLE enriched (user_id BIGINT, item_id BIGINT, gender STRING, name STRING)
WITH ('connector'='delta', 'path'='enriched');
INSERT INTO enriched
SELECT c.user_id, c.item_id, u.gender, u.name FROM click_event AS c
LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;
"""


def job_sql(database: MariaDb, bootstrap_servers: str) -> str:
    return JOB_SQL.format(
        host=database.host,
        port=database.port,
        user=database.cdc_user,
        password=database.cdc_password,
        topic=TOPIC,
        servers=bootstrap_servers,
    )


def create_users(database: MariaDb, rows: int) -> None:
    """Create `shop.user_info` with users 1 to `rows`; no gender is NULL."""
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop CHARACTER SET utf8mb4")
        cursor.execute(
            "CREATE TABLE shop.user_info (user_id BIGINT PRIMARY KEY, gender VARCHAR(8) NOT NULL,"
            " name VARCHAR(64) NOT NULL)"
        )
        if rows > 0:
            cursor.execute("USE shop")
            cursor.execute(
                "INSERT INTO user_info SELECT seq, IF(seq % 2, 'F', 'M'), CONCAT('user ', seq)"
                f" FROM seq_1_to_{rows}"
            )


@dataclass(frozen=True, slots=True)
class Edits:
    """The demo's changes after the gate has opened."""

    renamed: tuple[int, ...]
    deleted: tuple[int, ...]


def edit_users(database: MariaDb, rows: int) -> Edits:
    """Rename three users and delete two, so that the next clicks show it."""
    renamed = tuple(range(1, min(rows, 3) + 1))
    deleted = tuple(range(4, min(rows, 5) + 1))
    with database.connect("shop") as connection, connection.cursor() as cursor:
        for user in renamed:
            cursor.execute(
                "UPDATE user_info SET name = %s WHERE user_id = %s", (f"renamed {user}", user)
            )
        for user in deleted:
            cursor.execute("DELETE FROM user_info WHERE user_id = %s", (user,))
    return Edits(renamed, deleted)


def create_topic(bootstrap_servers: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        admin.create_topics({TOPIC: {"num_partitions": 2, "replication_factor": 1}})
    finally:
        admin.close()


class Clicks:
    """Sends clicks at a steady rate on its own thread; one in twenty has an unknown user."""

    def __init__(self, bootstrap_servers: str, *, users: int, per_second: int) -> None:
        self._servers = bootstrap_servers
        self._users = users
        self._per_second = per_second
        self._stopping = threading.Event()
        self._favourites: tuple[int, ...] = ()
        self._thread = threading.Thread(target=self._run, name="clicks", daemon=True)
        self.sent = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def favour(self, users: tuple[int, ...]) -> None:
        self._favourites = users

    def _run(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._servers, acks="all", linger_ms=5)
        started = time.monotonic()
        while not self._stopping.wait(_TICK_S):
            due = int((time.monotonic() - started) * self._per_second)
            for number in range(self.sent, due):
                producer.send(TOPIC, value=self._click(number), partition=number % 2)
            self.sent = max(self.sent, due)
        producer.flush()
        producer.close()

    def _click(self, number: int) -> bytes:
        favourites = self._favourites
        if favourites and number % 10 == 0:
            user = favourites[(number // 10) % len(favourites)]
        elif number % _ABSENT_EVERY == 7:
            user = self._users + 1 + number
        else:
            user = 1 + (number * 7919) % max(self._users, 1)
        return json.dumps({"user_id": user, "item_id": number}).encode()
