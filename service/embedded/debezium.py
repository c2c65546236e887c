"""Configurations of Debezium's connectors for the embedded databases, as Connect takes them."""

import zlib

from service.embedded.database import MariaDb
from service.embedded.postgres import PostgreSql


def mariadb_connector(database: MariaDb, *, prefix: str, schema: str) -> dict[str, str]:
    """Captures all tables of `schema` into topics `prefix.schema.table`.

    The history of the tables' structure is a file in Connect's working directory.
    """
    return {
        **_common(prefix),
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


def postgres_connector(
    database: PostgreSql, *, prefix: str, name: str, schema: str = "public"
) -> dict[str, str]:
    """Captures all tables of `schema` in the database `name` into topics `prefix.schema.table`.

    It makes a slot of the prefix's name and needs a publication of that name (`publish`).
    """
    return {
        **_common(prefix),
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": database.host,
        "database.port": str(database.port),
        "database.user": database.cdc_user,
        "database.password": database.cdc_password,
        "database.dbname": name,
        "schema.include.list": schema,
        "plugin.name": "pgoutput",
        "slot.name": prefix,
        "publication.name": prefix,
        "publication.autocreate.mode": "disabled",
    }


def publish(database: PostgreSql, *, prefix: str, name: str, schema: str = "public") -> None:
    """Make the publication of all tables of `schema`, also of later ones, that a connector needs.

    The user that captures may not: it owns no table.
    """
    connection = database.connect(name)
    connection.cursor().execute(f'CREATE PUBLICATION "{prefix}" FOR TABLES IN SCHEMA "{schema}"')
    connection.close()


def _common(prefix: str) -> dict[str, str]:
    return {
        "topic.prefix": prefix,
        "tasks.max": "1",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": f"{prefix}.notifications",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
        "poll.interval.ms": "100",
    }
