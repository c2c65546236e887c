"""The part of `sluice up --with postgres`: a PostgreSQL whose changes Debezium writes to Kafka."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.demo.servers import DebeziumBinaries
from service.embedded.broker import KafkaBroker
from service.embedded.connect import KafkaConnect
from service.embedded.debezium import postgres_connector, publish
from service.embedded.java import Java
from service.embedded.postgres import SUPERUSER, PostgreSql
from service.jobs.store.layout import write_private

CUSTOMERS = 1000
_NAME = "shop"  # of the database, of the connector, and the first part of its topics
_TOPIC_TIMEOUT_S = 120.0
_STATEMENTS = (
    "CREATE TABLE customers (id BIGINT PRIMARY KEY, name TEXT NOT NULL, credit NUMERIC(10, 2))",
    "INSERT INTO customers SELECT n, 'customer ' || n, n / 100.0"
    f" FROM generate_series(1, {CUSTOMERS}) AS n",
)
_SCRIPT = """\
-- Five orders a second of a generator, joined with a topic that Debezium fills from PostgreSQL.
-- Change a row of the table customers, and the orders from then on show it.
SET 'pipeline.name' = 'captured';
CREATE TABLE customers (
  id BIGINT, name STRING, credit DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'shop.public.customers',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'debezium-json',
  'snapshot.notifications.topic' = 'shop.notifications'
);
CREATE TABLE orders (customer_id BIGINT, amount BIGINT, proctime AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '5',
  'fields.customer_id.min' = '1', 'fields.customer_id.max' = '{customers}',
  'fields.amount.min' = '1', 'fields.amount.max' = '100'
);
CREATE TABLE enriched (customer_id BIGINT, amount BIGINT, name STRING, credit DECIMAL(10, 2))
WITH ('connector' = 'print');
INSERT INTO enriched
SELECT o.customer_id, o.amount, c.name, c.credit FROM orders AS o
LEFT JOIN customers FOR SYSTEM_TIME AS OF o.proctime AS c ON o.customer_id = c.id;
"""


@dataclass(frozen=True, slots=True)
class CapturedShop:
    """A database, the Connect that captures it, and a job that joins what it writes.

    Attributes:
        client_file: what a client of the database connects with, as JSON; of its owner only.
    """

    postgres: PostgreSql
    connect: KafkaConnect
    script: Path
    client_file: Path

    def places(self) -> dict[str, str]:
        return {
            "postgres": f"{self.postgres.host}:{self.postgres.port}",
            "postgres_options": str(self.client_file),
            "connect": self.connect.url,
            "postgres_script": str(self.script),
        }


@contextmanager
def captured_shop(
    directory: Path, java: Java, binaries: DebeziumBinaries, kafka: KafkaBroker
) -> Iterator[CapturedShop]:
    """Start both on the data below `directory`; the connector has begun when the block begins.

    Raises:
        ServerStartError: one of them does not start, or the connector writes nothing.
    """
    postgres = PostgreSql(directory / "postgres", binaries.postgres_home)
    connect = KafkaConnect(
        directory / "connect", java, binaries.connect_jars, kafka.bootstrap_servers
    )
    with postgres, connect:
        if not (directory / "connect" / "connectors" / f"{_NAME}.json").exists():
            _create_shop(postgres)
            config = postgres_connector(postgres, prefix=_NAME, name=_NAME)
            connect.connectors.put(_NAME, config)
            topic = f"{_NAME}.public.customers"
            connect.await_topic(_NAME, topic, timeout_s=_TOPIC_TIMEOUT_S)
        client_file = directory / "postgres.json"
        client_file.unlink(missing_ok=True)
        write_private(client_file, _client_options(postgres).encode())
        script = directory / "captured.sql"
        if not script.exists():  # it may have been edited
            text = _SCRIPT.format(servers=kafka.bootstrap_servers, customers=CUSTOMERS)
            script.write_text(text, encoding="utf-8")
        yield CapturedShop(postgres, connect, script, client_file)


def _create_shop(postgres: PostgreSql) -> None:
    """Make the database anew: an earlier start may have ended in the middle."""
    connection = postgres.connect()
    connection.cursor().execute(f"DROP DATABASE IF EXISTS {_NAME} WITH (FORCE)")
    connection.cursor().execute(f"CREATE DATABASE {_NAME}")
    connection.close()
    connection = postgres.connect(_NAME)
    for statement in _STATEMENTS:
        connection.cursor().execute(statement)
    connection.close()
    publish(postgres, prefix=_NAME, name=_NAME)


def _client_options(postgres: PostgreSql) -> str:
    options = {
        "host": postgres.host,
        "port": postgres.port,
        "user": SUPERUSER,
        "password": postgres.root_password,
        "database": _NAME,
    }
    return json.dumps(options, indent=2) + "\n"
