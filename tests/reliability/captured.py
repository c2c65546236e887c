"""A table as a topic that a real Debezium fills, whose Connect experiments kill and start again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from service.config import Settings
from service.embedded.broker import KafkaBroker
from service.embedded.connect import KafkaConnect
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java
from tests.reliability.experiment import Lab
from tests.reliability.oracle_topic import ForeignTopic
from tests.reliability.processes import kill_hard
from tests.support.debezium import DebeziumConnector, mariadb_source
from tests.support.shop import USERS, USERS_DDL, fill_users
from tests.support.topics import create_topic, end_offsets
from tests.support.wait import wait_until

TABLE = "user_info"
_BACK_S = 120.0
_SNAPSHOT = "Initial Snapshot"


@dataclass
class CapturedUsers:
    """Users 1 to `rows` of a schema of their own, and the connector that captures them.

    Attributes:
        copied_from: records that were in the topic when the newest snapshot can have begun.
    """

    connector: DebeziumConnector
    rows: int
    copied_from: int = 0

    @property
    def schema(self) -> str:
        return self.connector.schema

    @property
    def topic(self) -> ForeignTopic:
        return ForeignTopic(self.connector.kafka.bootstrap_servers, self.connector.topic(TABLE))

    def declared(self) -> str:
        return (
            f"CREATE TABLE {TABLE} ({USERS_DDL}) WITH ('connector'='kafka', "
            f"'topic'='{self.topic.name}', 'format'='debezium-json', "
            f"'properties.bootstrap.servers'='{self.topic.bootstrap_servers}', "
            f"'snapshot.notifications.topic'='{self.connector.notification_topic}');"
        )

    def ends(self) -> dict[int, int]:
        return end_offsets(self.topic.bootstrap_servers, self.topic.name)

    def copied(self) -> int:
        return sum(self.ends().values()) - self.copied_from

    def read_by(self, job_directory: Path) -> int:
        file = _kept_by(job_directory)
        kept = json.loads(file.read_text())["offsets"] if file.exists() else []
        return sum(offset for _, offset in kept) - self.copied_from

    def start(self, job_directory: Path) -> None:
        reads = _kept_by(job_directory)
        wait_until(reads.exists, deadline_s=_BACK_S, what="the job reads the topic")
        self.connector.start()

    def process(self) -> psutil.Process:
        pid = self.connector.connect.pid
        assert pid is not None
        return psutil.Process(pid)

    def kill(self) -> None:
        kill_hard(self.process())
        wait_until(lambda: not self.connector.connect.running, what="Connect is gone")

    def go_on(self) -> None:
        """Start Connect again; a connector that had not copied all of the table begins anew."""
        notifications = self.connector.notifications()
        kinds = [one["type"] for one in notifications if one["aggregate_type"] == _SNAPSHOT]
        if kinds[-1:] != ["COMPLETED"]:
            self.copied_from = sum(self.ends().values())
        self.connector.go_on()


def _kept_by(job_directory: Path) -> Path:
    return job_directory / "checkpoint" / "sources" / f"{TABLE}.json"


@contextmanager
def running_connect(lab: Lab, kafka: KafkaBroker) -> Iterator[KafkaConnect]:
    """A Connect of one's own that writes to `kafka`."""
    settings = Settings.load()
    java = find_java(settings.cache_dir)
    jars = JarCache(settings.cache_dir, java).jars(JarSet.CONNECT)
    with KafkaConnect(lab.place("connect"), java, jars, kafka.bootstrap_servers) as connect:
        yield connect


@contextmanager
def captured_users(
    lab: Lab, kafka: KafkaBroker, rows: int, *, partitions: int, rows_per_s: int | None = None
) -> Iterator[CapturedUsers]:
    """Users that a connector, not started, is to capture.

    Args:
        lab: its database has them.
        kafka: where they are captured to.
        rows: how many.
        partitions: of the topic.
        rows_per_s: how fast they are copied at most, None for as fast as it goes.
    """
    with (
        running_connect(lab, kafka) as connect,
        mariadb_source(connect, kafka, lab.mariadb, USERS, fill_users(rows)) as connector,
    ):
        if rows_per_s is not None:
            connector.config.update(paced(f"{connector.schema}.{TABLE}", rows_per_s))
        found = CapturedUsers(connector, rows)
        create_topic(kafka.bootstrap_servers, found.topic.name, partitions=partitions)
        create_topic(kafka.bootstrap_servers, connector.notification_topic)
        yield found


def paced(table: str, rows_per_s: int) -> dict[str, str]:
    """Settings of a connector that copies no more rows a second: the database sleeps at each."""
    select = f"SELECT * FROM {table} WHERE SLEEP({1 / rows_per_s:f}) = 0"
    overrides = "snapshot.select.statement.overrides"
    return {overrides: table, f"{overrides}.{table}": select}
