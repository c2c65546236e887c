"""Databases of job stores, of their own, on the PostgreSQL that all tests share."""

import sqlalchemy as sa

from service.embedded.postgres import SUPERUSER, PostgreSql
from service.jobs.store.database import store_engine
from tests.support.topics import unique_name


def new_store_url(postgres: PostgreSql) -> str:
    """The URL of a new and empty database."""
    name = unique_name("store")
    connection = postgres.connect()
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    address = f"{postgres.host}:{postgres.port}"
    return f"postgresql://{SUPERUSER}:{postgres.root_password}@{address}/{name}"


def empty_store(url: str) -> None:
    """Make a store as it was at first; one that has no tables yet stays so."""
    engine = store_engine(sa.make_url(url))
    with engine.begin() as connection:
        if sa.inspect(connection).has_table("leadership"):
            tables = "events, attachments, job_secrets, jobs, catalog, tokens"
            connection.exec_driver_sql(f"TRUNCATE {tables} RESTART IDENTITY")
            connection.exec_driver_sql(
                "UPDATE leadership SET term = 0, url = '', is_vacant = true, data_dir_id = NULL"
            )
    engine.dispose()
