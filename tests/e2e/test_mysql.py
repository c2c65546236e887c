"""A table of a real MySQL as a dimension, by our own reader and by Debezium's connector."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from service.embedded.connect import KafkaConnect
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import Java
from tests.support.debezium import mariadb_source
from tests.support.mysql import MySql, mysql_home
from tests.support.rig import Rig, kafka_table
from tests.support.shop import CLICKS_DDL, click
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
ROWS = 3_000
USERS = (
    "CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR(40), price DECIMAL(9,2), seen "
    "DATETIME(3), at TIMESTAMP(6) NULL, kind ENUM('a','ü') , more JSON, raw VARBINARY(9))",
    "SET SESSION cte_max_recursion_depth = 10000",
    "INSERT INTO users WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
    f"{ROWS}) SELECT i, CONCAT('user ', i, ' 🐬'), i / 100, '2024-02-29 12:30:01.5', "
    "'2024-02-29 12:30:01.25', 'ü', JSON_OBJECT('n', i), x'00ff' FROM n",
)
COLUMNS = (
    "id BIGINT, name STRING, price DECIMAL(9,2), seen TIMESTAMP(3), at TIMESTAMP_LTZ(6), "
    "kind STRING, more STRING, raw BYTES, PRIMARY KEY (id) NOT ENFORCED"
)


@dataclass(frozen=True)
class Users:
    """The table in a schema, and the options of its dimension."""

    schema: str
    options: str


@pytest.fixture(scope="module")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    with MySql(tmp_path_factory.mktemp("mysql"), mysql_home()) as server:
        yield server


@pytest.fixture(scope="module")
def worker(
    tmp_path_factory: pytest.TempPathFactory, java: Java, jar_cache: JarCache, rig: Rig
) -> Iterator[KafkaConnect]:
    jars = [*jar_cache.jars(JarSet.CONNECT), *jar_cache.jars(JarSet.MYSQL)]
    directory = tmp_path_factory.mktemp("connect")
    with KafkaConnect(directory, java, jars, rig.kafka.bootstrap_servers) as running:
        yield running


@pytest.fixture
def by_cdc(mysql: MySql) -> Iterator[Users]:
    with new_schema(mysql, *USERS) as schema:
        yield Users(
            schema,
            f"'connector'='mysql-cdc', 'hostname'='127.0.0.1', 'port'='{mysql.port}', "
            f"'username'='{mysql.cdc_user}', 'password'='{mysql.cdc_password}', "
            f"'database-name'='{schema}', 'table-name'='users'",
        )


@pytest.fixture
def by_debezium(rig: Rig, mysql: MySql, worker: KafkaConnect) -> Iterator[Users]:
    settings = {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.ssl.mode": "preferred",
    }
    with mariadb_source(worker, rig.kafka, mysql, *USERS, settings=settings) as source:
        source.start()
        source.await_snapshot()
        yield Users(
            source.schema,
            f"'connector'='kafka', 'topic'='{source.topic('users')}', 'format'='debezium-json', "
            f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}', "
            f"'snapshot.notifications.topic'='{source.notification_topic}'",
        )


@pytest.mark.parametrize("reader", ["by_cdc", "by_debezium"])
def test_a_table_of_mysql_is_copied_and_followed(
    rig: Rig, mysql: MySql, request: pytest.FixtureRequest, reader: str
) -> None:
    users: Users = request.getfixturevalue(reader)
    clicks, path = create_topic(rig.kafka.bootstrap_servers), unique_name("mysql")
    produce(rig.kafka.bootstrap_servers, clicks, [click(1, 1), click(ROWS, 2), click(ROWS + 1, 3)])
    sql = (
        f"CREATE TABLE users ({COLUMNS}) WITH ({users.options});"
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + "CREATE TABLE enriched (item_id BIGINT, name STRING, price DECIMAL(9,2), "
        "seen TIMESTAMP(3), at TIMESTAMP_LTZ(6), kind STRING, more STRING, raw BYTES) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, u.name, u.price, u.seen, u.at, u.kind, u.more, "
        "u.raw FROM click_event AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.id;"
    )
    with rig.job(sql) as job:
        job.wait_joining()
        rows = {row["item_id"]: row for row in job.wait_output(path, 3)}
        assert (rows[1]["name"], rows[2]["name"]) == ("user 1 🐬", f"user {ROWS} 🐬")
        assert rows[3]["name"] is None
        assert (str(rows[1]["price"]), rows[1]["kind"], rows[1]["raw"]) == (
            "0.01",
            "ü",
            b"\0\xff",
        )
        assert rows[1]["seen"].isoformat() == "2024-02-29T12:30:01.500000"
        assert rows[1]["at"].timestamp() == 1709209801.25
        assert rows[1]["more"].replace(" ", "") == '{"n":1}'
        before = job.status()["dimensions"][0]["index_version"]
        run_sql(
            mysql,
            "UPDATE users SET name = 'changed', price = 2 WHERE id = 1",
            f"DELETE FROM users WHERE id = {ROWS}",
            f"INSERT INTO users (id, name) VALUES ({ROWS + 1}, 'new')",
            schema=users.schema,
        )

        def followed(status):
            return status["dimensions"][0]["index_version"] > before

        job.wait_for(followed, "the changes are there")
        job.wait_for(lambda s: s["dimensions"][0]["streamed_records"] >= 3, "all of them")
        job.wait_for(
            lambda s: s["dimensions"][0]["index_version"] == s["versions"]["users"], "indexed"
        )
        values = [click(1, 4), click(ROWS, 5), click(ROWS + 1, 6)]
        produce(rig.kafka.bootstrap_servers, clicks, values)
        rows = {row["item_id"]: row["name"] for row in job.wait_output(path, 6)}
        assert {item: rows[item] for item in (4, 5, 6)} == {4: "changed", 5: None, 6: "new"}
