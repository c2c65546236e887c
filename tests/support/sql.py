"""Statements on a real MariaDB."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from service.embedded.database import MariaDb
from tests.support.topics import unique_name


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
