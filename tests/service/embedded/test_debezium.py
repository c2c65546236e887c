"""Connect with Debezium, and PostgreSQL: start, stop, start again, and what they send."""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pg8000.dbapi
import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.connect import ConnectSettings, KafkaConnect
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import Java
from service.embedded.postgres import PostgreSql
from service.embedded.process import ServerStartError, free_port
from service.embedded.server import DatabaseSettings, EmbeddedServer
from tests.support.apicurio import ApicurioRegistry
from tests.support.debezium import mariadb_source, postgres_source, run_postgres
from tests.support.topics import create_topic
from tests.support.wait import wait_until

USERS = (
    "CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR(20))",
    "INSERT INTO users VALUES (1, 'Ada'), (2, 'Grace')",
)
SOURCES = {"mariadb": mariadb_source, "postgres": postgres_source}


def test_a_postgres_keeps_rows_port_and_passwords(tmp_path: Path, jar_cache: JarCache) -> None:
    home = jar_cache.postgres_home()
    with PostgreSql(tmp_path, home) as database:
        run_postgres(database, "CREATE TABLE t (id INT)", "INSERT INTO t VALUES (7)")
        before = (database.port, database.root_password, database.cdc_password)
        assert database.pid is not None
        os.kill(database.pid, signal.SIGQUIT)  # no checkpoint: the log is replayed
        wait_until(lambda: not database.running, what="end of the database")
        database.start()
        assert run_postgres(database, "SELECT id FROM t") == [[7]]
        with pytest.raises(ServerStartError, match="another process has it"):
            PostgreSql(tmp_path, home).start()
    with PostgreSql(tmp_path, home) as again:
        assert (again.port, again.root_password, again.cdc_password) == before
        assert run_postgres(again, "SELECT id FROM t") == [[7]]
    assert [path.name for path in tmp_path.glob("*password*")] == []


def test_the_cdc_user_of_postgres_reads_and_replicates_and_nothing_more(
    postgres: PostgreSql,
) -> None:
    assert run_postgres(postgres, "SHOW wal_level") == [["logical"]]
    for password in ("", "wrong"):
        with pytest.raises(pg8000.dbapi.DatabaseError, match="password authentication failed"):
            pg8000.dbapi.connect("cdc", host=postgres.host, port=postgres.port, password=password)
    connection = pg8000.dbapi.connect(
        "cdc",
        host=postgres.host,
        port=postgres.port,
        password=postgres.cdc_password,
        database="postgres",
    )
    with pytest.raises(pg8000.dbapi.DatabaseError, match="permission denied"):
        connection.cursor().execute("CREATE TABLE mine (id INT)")
    connection.close()


@pytest.mark.parametrize("kind", SOURCES)
def test_a_connector_copies_a_table_then_follows_it_also_over_a_restart(
    kind: str,
    own_connect: KafkaConnect,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    postgres: PostgreSql,
) -> None:
    database = {"mariadb": mariadb, "postgres": postgres}[kind]
    connect = own_connect
    with SOURCES[kind](connect, kafka, database, *USERS) as source:
        source.start()
        source.await_snapshot()
        source.await_records("users", 2)
        connect.stop()
        source.sql("UPDATE users SET name = 'Lovelace' WHERE id = 1")
        connect.start()
        source.sql("DELETE FROM users WHERE id = 2")
        records = source.await_records("users", 5)
        ops = sorted(
            "-" if r.value is None else json.loads(r.value)["payload"]["op"] for r in records
        )
        assert ops == ["-", "d", "r", "r", "u"]
        wait_until(lambda: len(source.offsets()) == 1, what="a committed offset")
        connect.await_topic(source.prefix, source.topic("users"), timeout_s=30)
        with pytest.raises(ServerStartError, match="has written nothing") as caught:
            connect.await_topic(source.prefix, "nowhere", timeout_s=0.1)
        assert f'"{connect.log}"' in caught.value.hint
        assert connect.log.read_text()


@pytest.mark.experiment
@pytest.mark.parametrize("kind", SOURCES)
def test_snapshots_are_repeated_in_every_way_that_operators_have(
    kind: str,
    connect: KafkaConnect,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    postgres: PostgreSql,
) -> None:
    database = {"mariadb": mariadb, "postgres": postgres}[kind]
    topic = create_topic(kafka.bootstrap_servers)
    settings = {
        "signal.enabled.channels": "source,kafka",
        "signal.kafka.topic": topic,
        "signal.poll.interval.ms": "200",
        "signal.kafka.bootstrap.servers": kafka.bootstrap_servers,
    }
    empty = "CREATE TABLE empty (id BIGINT PRIMARY KEY)"
    with SOURCES[kind](
        connect, kafka, database, *USERS, empty, signals=True, settings=settings
    ) as source:
        source.start()
        source.await_snapshot()
        source.await_records("users", 2)
        source.snapshot_again("one", "incremental", "users")
        source.await_notification("Incremental Snapshot", "COMPLETED")
        source.await_records("users", 4)
        source.snapshot_again("two", "blocking", "users")
        source.await_records("users", 6)
        source.signal_by_kafka(
            topic,
            "execute-snapshot",
            **{"data-collections": [source.collection("users")], "type": "incremental"},
        )
        source.await_notification("Incremental Snapshot", "COMPLETED", count=2)
        source.await_records("users", 8)
        source.begin_anew()
        source.await_snapshot(count=3)  # a blocking one is told as an initial one, too
        records = source.await_records("users", 10)
        marks = Counter(json.loads(r.value)["payload"]["source"]["snapshot"] for r in records)
        assert marks["incremental"] == 4
        assert marks["last"] == 3 - (kind == "mariadb" and marks["last_in_data_collection"])
        empty_table = source.collection("empty")
        scans = [
            one["additional_data"]["total_rows_scanned"]
            for one in source.notifications()
            if one["additional_data"].get("scanned_collection") == empty_table
        ]
        assert scans == ["0", "0"], "nothing but this tells of an empty table"


def test_a_port_in_use_is_told_and_another_one_is_taken(
    tmp_path: Path, java: Java, jar_cache: JarCache, connect: KafkaConnect, postgres: PostgreSql
) -> None:
    home, jars = jar_cache.postgres_home(), jar_cache.jars(JarSet.CONNECT)

    def servers(port: int | None) -> list[EmbeddedServer]:
        at = ConnectSettings(port=port)
        return [
            PostgreSql(tmp_path / "p", home, DatabaseSettings(port=port)),
            KafkaConnect(tmp_path / "c", java, jars, connect.bootstrap_servers, at),
            ApicurioRegistry(tmp_path / "r", java, jar_cache.registry_home(), port=port),
        ]

    for server in servers(postgres.port):
        with pytest.raises(ServerStartError, match="address already in use") as caught:
            server.start()
        assert "choose another port" in caught.value.hint
    (server,) = servers(free_port())[:1]
    with server:
        assert server.healthy()


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root another user is needed")
def test_root_without_setpriv_is_told_what_to_install(
    tmp_path: Path, jar_cache: JarCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = PostgreSql(tmp_path, jar_cache.postgres_home())
    with monkeypatch.context() as without:
        without.setenv("PATH", "/nowhere")
        with pytest.raises(ServerStartError, match="no setpriv") as caught:
            database.start()
    assert "util-linux" in caught.value.hint
    with database:
        assert database.healthy()
