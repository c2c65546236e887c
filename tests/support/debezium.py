"""Debezium on the shared Connect: connectors of one's own, what they wrote, and how they are told.

All waiting is for a condition: a connector that fails ends a wait at once, with its trace.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pg8000.dbapi

from service.embedded.broker import KafkaBroker
from service.embedded.connect import (
    KafkaConnect,
    connector_settings,
    postgres_connector,
    publish,
)
from service.embedded.database import MariaDb
from service.embedded.postgres import PostgreSql
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume, end_offsets, produce, unique_name
from tests.support.wait import wait_until

SIGNALS = "debezium_signal"
_SIGNAL_TABLE = f"CREATE TABLE {SIGNALS} (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data TEXT)"
Setting = Mapping[str, str]


def mariadb_connector(database: MariaDb, *, prefix: str, schema: str) -> dict[str, str]:
    """Captures all tables of `schema` into topics `prefix.schema.table`."""
    return {
        **connector_settings(prefix),
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.hostname": database.host,
        "database.port": str(database.port),
        "database.user": database.cdc_user,
        "database.password": database.cdc_password,
        "database.ssl.mode": "disable",
        "database.server.id": str(2**16 + zlib.crc32(prefix.encode()) // 2),  # no other replica's
        "database.include.list": schema,
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": f"{prefix}.history",
    }


@dataclass
class DebeziumConnector:
    """A connector that captures one schema, its database and its topics.

    Attributes:
        prefix: its name, and the first part of its topics.
        schema: the MariaDB schema, or the schema in the PostgreSQL database `database_name`.
        config: as it was given to Connect.
    """

    connect: KafkaConnect
    kafka: KafkaBroker
    database: MariaDb | PostgreSql
    prefix: str
    schema: str
    database_name: str
    config: dict[str, str] = field(default_factory=dict)

    # The database

    def sql(self, *statements: str) -> list[Any]:
        if isinstance(self.database, MariaDb):
            return run_sql(self.database, *statements, schema=self.schema)
        return run_postgres(self.database, *statements, name=self.database_name)

    # The connector

    def start(self) -> None:
        self.connect.connectors.put(self.prefix, self.config)
        self.await_running()

    def begin_anew(self, *statements: str) -> None:
        """Forget where it was, so that it takes another initial snapshot, as operators do it.

        It sees nothing of the `statements`, which are carried out while it is stopped.
        """
        connectors = self.connect.connectors
        connectors.stop(self.prefix)
        self.wait(lambda: self.states()[:1] == ["STOPPED"], "the connector has stopped")
        connectors.forget_offsets(self.prefix)
        self.sql(*statements)
        if isinstance(self.database, PostgreSql):
            drop_slots(self.database, self.database_name)
        connectors.resume(self.prefix)
        self.await_running()

    def go_on(self, settings: Setting | None = None) -> None:
        """Start Connect again, from now on with `settings` on top.

        A connector that cannot go on where it was, as MariaDB's before its first row, begins anew.
        """
        connectors = self.connect.connectors
        self.config.update(settings or {})
        connectors.keep(self.prefix, self.config)
        self.connect.start()
        wait_until(self._is_decided, deadline_s=120, what="the connector runs, or has failed")
        if "FAILED" in self.states():
            connectors.stop(self.prefix)
            wait_until(lambda: self.states() == ["STOPPED"], what="the connector has stopped")
            connectors.forget_offsets(self.prefix)
            connectors.resume(self.prefix)
            self.await_running()

    def _is_decided(self) -> bool:
        states = self.states()
        return "FAILED" in states or states == ["RUNNING", "RUNNING"]

    def await_running(self) -> None:
        self.wait(lambda: self.states() == ["RUNNING", "RUNNING"], "the connector runs")

    def states(self) -> list[str]:
        try:
            return self.connect.connectors.states(self.prefix)
        except httpx.HTTPError:
            return []

    def wait(self, condition: Callable[[], Any], what: str, *, deadline_s: float = 90.0) -> Any:
        """The first true answer of `condition`; a connector that fails fails the test at once."""

        def look() -> Any:
            if "FAILED" in self.states():
                raise AssertionError(self.connect.connectors.failure(self.prefix))
            return condition()

        return wait_until(look, deadline_s=deadline_s, what=what)

    def offsets(self) -> list[dict[str, Any]]:
        return self.connect.connectors.offsets(self.prefix)

    # Its topics

    def topic(self, table: str) -> str:
        return f"{self.prefix}.{self.schema}.{table}"

    @property
    def notification_topic(self) -> str:
        return f"{self.prefix}.notifications"

    def records(self, table: str) -> list[Any]:
        return self._records_of(self.topic(table))

    def _records_of(self, topic: str) -> list[Any]:
        servers = self.kafka.bootstrap_servers
        return consume(servers, topic) if any(end_offsets(servers, topic).values()) else []

    def await_records(self, table: str, count: int) -> list[Any]:
        """The records of the table's topic, once there are `count` of them."""
        topic = self.topic(table)

        def there() -> bool:
            ends = end_offsets(self.kafka.bootstrap_servers, topic)
            return sum(ends.values()) >= count

        self.wait(there, f"{count} records in {topic}", deadline_s=90.0)
        return self.records(table)

    def notifications(self) -> list[dict[str, Any]]:
        values = [json.loads(one.value) for one in self._records_of(self.notification_topic)]
        return [value.get("payload", value) for value in values]

    def await_notification(self, aggregate: str, kind: str, *, count: int = 1) -> dict[str, Any]:
        """The `count`-th notification of this kind, such as `Initial Snapshot`, `COMPLETED`."""

        def told() -> dict[str, Any] | None:
            of_kind = [
                one
                for one in self.notifications()
                if (one["aggregate_type"], one["type"]) == (aggregate, kind)
            ]
            return of_kind[count - 1] if len(of_kind) >= count else None

        return self.wait(told, f"notification {aggregate} {kind}")

    def await_snapshot(self, *, count: int = 1) -> None:
        self.await_notification("Initial Snapshot", "COMPLETED", count=count)

    # Signals

    def signal(self, name: str, kind: str, **data: Any) -> None:
        text = json.dumps(data).replace("'", "''")
        self.sql(f"INSERT INTO {SIGNALS} VALUES ('{name}', '{kind}', '{text}')")

    def signal_by_kafka(self, topic: str, kind: str, **data: Any) -> None:
        value = {"id": unique_name("signal"), "type": kind, "data": data}
        produce(self.kafka.bootstrap_servers, topic, [value], keys=[self.prefix.encode()])

    def snapshot_again(self, name: str, kind: str, *tables: str) -> None:
        collections = [self.collection(table) for table in tables]
        self.signal(name, "execute-snapshot", **{"data-collections": collections, "type": kind})

    def collection(self, table: str) -> str:
        return f"{self.schema}.{table}"


def run_postgres(database: PostgreSql, *statements: str, name: str = "postgres") -> list[Any]:
    """Run `statements` as the superuser, each committed, and return the rows of the last one."""
    connection = database.connect(name)
    try:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        return [] if cursor.description is None else list(cursor.fetchall())
    finally:
        connection.close()


@contextmanager
def mariadb_source(
    connect: KafkaConnect,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    *statements: str,
    signals: bool = False,
    settings: Setting | None = None,
) -> Iterator[DebeziumConnector]:
    """A connector, not started, of a schema of its own that `statements` have filled."""
    with new_schema(mariadb, *statements, *([_SIGNAL_TABLE] if signals else [])) as schema:
        prefix = unique_name("dbz")
        config = mariadb_connector(mariadb, prefix=prefix, schema=schema)
        if signals:
            run_sql(
                mariadb,
                f"GRANT INSERT, DELETE ON `{schema}`.{SIGNALS} TO {mariadb.cdc_user}@'127.0.0.1'",
            )
            config["signal.data.collection"] = f"{schema}.{SIGNALS}"
            config["signal.kafka.groupId"] = prefix
        config.update(settings or {})
        made = DebeziumConnector(connect, kafka, mariadb, prefix, schema, schema, config)
        with _ended(made):
            yield made


@contextmanager
def postgres_source(
    connect: KafkaConnect,
    kafka: KafkaBroker,
    postgres: PostgreSql,
    *statements: str,
    signals: bool = False,
    settings: Setting | None = None,
) -> Iterator[DebeziumConnector]:
    """A connector, not started, of a database of its own that `statements` have filled."""
    prefix = name = unique_name("dbz")
    run_postgres(postgres, f"CREATE DATABASE {name}")
    try:
        run_postgres(postgres, "SELECT 1", *statements, name=name)
        publish(postgres, prefix=prefix, name=name)
        config = postgres_connector(postgres, prefix=prefix, name=name)
        if signals:
            grant = f"GRANT INSERT, DELETE ON {SIGNALS} TO {postgres.cdc_user}"
            run_postgres(postgres, _SIGNAL_TABLE, grant, name=name)
            config["signal.data.collection"] = f"public.{SIGNALS}"
            config["signal.kafka.groupId"] = prefix
        config.update(settings or {})
        made = DebeziumConnector(connect, kafka, postgres, prefix, "public", name, config)
        with _ended(made):
            yield made
    finally:
        drop_slots(postgres, name)
        run_postgres(postgres, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextmanager
def _ended(connector: DebeziumConnector) -> Iterator[None]:
    """The connector is removed at the end of the block, and Connect is there for the next test."""
    try:
        yield
    finally:
        connector.connect.start()
        try:
            connector.connect.connectors.remove(connector.prefix)
        except httpx.HTTPStatusError as exc:
            if exc.response.status_code != httpx.codes.NOT_FOUND:  # it was never started
                raise


def drop_slots(postgres: PostgreSql, name: str) -> None:
    """Drop the slots of a database, once nobody uses them any more."""

    def dropped() -> bool:
        try:
            run_postgres(
                postgres,
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                f" WHERE database = '{name}'",
            )
        except pg8000.dbapi.DatabaseError:
            return False
        return True

    wait_until(dropped, what=f"the slots of database {name} are dropped")
