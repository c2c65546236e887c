"""Statements on a real MariaDB."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from joins.adapters.mysql.connection import MysqlConnectionConfig
from service.embedded.database import MariaDb
from tests.support.topics import unique_name


def cdc_connection(
    database: MariaDb, schema: str, table: str = "t", **changes: Any
) -> MysqlConnectionConfig:
    """Of the user of a source; `changes` are other values of its fields."""
    login = database.cdc_user, database.cdc_password
    given = MysqlConnectionConfig("127.0.0.1", database.port, *login, schema, table)
    return replace(given, **changes)


def run_sql(database: MariaDb, *statements: str, schema: str | None = None) -> list[Any]:
    """Run `statements` as root, each committed, and return the rows of the last one."""
    rows: list[Any] = []
    with database.connect(schema) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            rows = list(cursor.fetchall())
    return rows


@contextmanager
def new_schema(database: MariaDb, *statements: str) -> Iterator[str]:
    """A schema with a name of its own, made by `statements`, dropped at the end."""
    name = unique_name("shop")
    run_sql(database, f"CREATE DATABASE `{name}`")
    try:
        run_sql(database, *statements, schema=name)
        yield name
    finally:
        run_sql(database, f"DROP DATABASE IF EXISTS `{name}`")
