"""Checks that a server's binlog has every change of a table, and that Sluice may read it.

Submission, `sluice doctor`, each new snapshot and each opened binlog file run the same checks.
docs/how-to/own-kafka-and-database.md lists what cannot be checked.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND, ER

from joins.adapters.mysql.connection import (
    NAMES,
    MysqlConnectionConfig,
    connected,
    first_known,
    is_mariadb,
    rows,
    tables_of,
    translated,
    variables,
)
from joins.adapters.mysql.position import STATUS_OF_BINLOG, binlog_status
from joins.plan.errors import (
    SnapshotNeededError,
    SourceError,
    SourceUnavailableError,
    suggestion,
)
from joins.plan.types import quoted

# Setting, required value, versions that have it.
_REQUIRED = (
    ("binlog_format", "ROW", ""),
    ("binlog_row_image", "FULL", ""),
    ("binlog_row_metadata", "FULL", "MySQL 8.0.1 and MariaDB 10.5"),
)
_FILTERS = ("Binlog_Do_DB", "Binlog_Ignore_DB")
_LOGS_WHAT_IT_REPLICATES = ("log_slave_updates", "log_replica_updates")
_OF_REPLICAS = (*_LOGS_WHAT_IT_REPLICATES, "wsrep_on", "gtid_slave_pos")
_TRIGGERS = "slave_run_triggers_for_rbr"
_NATIVE_KEYS = "innodb_native_foreign_keys"
# Engines whose rows only the server changes, and which log each change. Others are not known to:
# rows of MERGE, FEDERATED, SPIDER, CONNECT, NDB or S3 change elsewhere, MEMORY loses its rows with
# the server, BLACKHOLE has none.
_ENGINES = ("InnoDB", "MyISAM", "Aria")
NOT_PERMITTED = frozenset(
    {
        ER.SPECIFIC_ACCESS_DENIED_ERROR,
        ER.TABLEACCESS_DENIED_ERROR,
        ER.COLUMNACCESS_DENIED_ERROR,
        ER.DBACCESS_DENIED_ERROR,
    }
)
_TABLE = f"{NAMES} WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
# A line of SHOW CREATE TABLE; information_schema hides foreign keys from users that may only read.
_CASCADE = re.compile(
    r"^\s*CONSTRAINT `((?:[^`]|``)+)` FOREIGN KEY .* ON (DELETE|UPDATE)"
    r" (CASCADE|SET NULL|SET DEFAULT)\b",
    re.MULTILINE,
)
_FIRST_EVENT = 4  # of a binlog file; the bytes before it identify the format
_DO_NOT_WAIT = 1  # for events that are not written yet
_KNOWS_GTIDS = 4  # otherwise a MariaDB converts such events
_BINLOG_REFUSED = 1236
_OUR_ID_IS_TAKEN = re.compile(r"same server_?(?:uu)?id", re.IGNORECASE)
_TOO_BIG = re.compile(r"max_allowed_packet", re.IGNORECASE)
_ACCESS_DENIED = (1227, 1045)
_WITHOUT = (
    "; or declare the table as 'jdbc' with 'scan.refresh-interval', which reads it again and again "
    "with SELECT alone"
)


def require_logged(connection: "Connection[Any]", config: MysqlConnectionConfig) -> None:
    """Raise SourceError unless all changes of the table reach the server's binlog."""
    _require_table(connection, config)
    _require_settings(connection, config)
    _require_no_filter(connection, config)
    _require_replicated_changes(connection, config)
    _require_no_cascades(connection, config)


def check_logged(config: MysqlConnectionConfig) -> None:
    """Like `require_logged` for a followed table: SnapshotNeededError instead.

    A server that does not answer, such as one that refuses the user, shows nothing of its binlog.
    """
    with connected(config) as connection:
        try:
            for name in tables_of(connection, config):
                require_logged(connection, config.at(*name))
        except SourceError as exc:
            raise SnapshotNeededError(
                exc.message, hint=f"{exc.hint} The table is then copied again by itself."
            ) from exc


def table_name(config: MysqlConnectionConfig) -> str:
    return f'table "{config.database}.{config.table}"'


@contextmanager
def needing(
    config: MysqlConnectionConfig, grant: str, target: str, otherwise: str = ""
) -> Iterator[None]:
    try:
        yield
    except pymysql.err.MySQLError as exc:
        if exc.args[0] not in NOT_PERMITTED:
            raise
        raise SourceError(
            f'user "{config.username}" lacks {grant} on {target} of server "{config.server}"',
            hint=f"Run GRANT {grant} ON {target} TO that user{otherwise}.",
        ) from exc


# The table
# ----------------------------------------------------------------------------------------------


def _require_table(connection: "Connection[Any]", config: MysqlConnectionConfig) -> None:
    """Require a base table of that exact name and of an engine that logs all changes."""
    tables = rows(connection, _TABLE, config.database, config.table)
    exact = [row for row in tables if row[:2] == (config.database, config.table)]
    if not tables:
        raise missing_table(connection, config)
    if not exact:
        database, table = tables[0][:2]
        raise SourceError(
            f'{table_name(config)} has other names in the binlog: "{database}.{table}"',
            hint=f"Write 'database-name' = '{database}' and 'table-name' = '{table}'.",
        )
    _, _, kind, engine = exact[0]
    if kind != "BASE TABLE":
        raise SourceError(
            f"{table_name(config)} is a {str(kind).lower()}, expected a base table, "
            "the only kind whose rows are in the binlog",
            hint="Name a base table in the table-name option.",
        )
    if engine not in _ENGINES:
        raise SourceError(
            f"{table_name(config)} has engine {engine}, expected {', '.join(_ENGINES)}, "
            "whose changes are all in the binlog",
            hint="Name the table that has the rows itself, or run ALTER TABLE "
            f"{quoted(config.database)}.{quoted(config.table)} ENGINE=InnoDB.",
        )


def missing_table(connection: "Connection[Any]", config: MysqlConnectionConfig) -> SourceError:
    schemas = [str(name) for (name,) in rows(connection, _SCHEMAS)]
    if config.database not in schemas:
        otherwise = "Check the database-name option and the user's grants."
        return SourceError(
            f'database "{config.database}" is not on server "{config.server}", '
            f'or user "{config.username}" may not see it',
            hint=suggestion(config.database, schemas, otherwise),
        )
    seen = rows(
        connection,
        "SELECT TABLE_NAME FROM information_schema.TABLES"
        " WHERE TABLE_SCHEMA = %s AND TABLE_TYPE = 'BASE TABLE'",
        config.database,
    )
    otherwise = "Check the table-name option and the user's grants."
    return SourceError(
        f'{table_name(config)} does not exist, or user "{config.username}" may not read it',
        hint=suggestion(config.table, (str(name) for (name,) in seen), otherwise),
    )


_SCHEMAS = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA"


def _require_no_cascades(connection: "Connection[Any]", config: MysqlConnectionConfig) -> None:
    """Storage engines that execute foreign keys themselves do not log the changes."""
    table = f"{quoted(config.database)}.{quoted(config.table)}"
    with needing(config, "SELECT", table):
        definition = str(rows(connection, f"SHOW CREATE TABLE {table}")[0][1])
    cascade = _CASCADE.search(definition)
    if cascade is None or logs_cascades(variables(connection, "version", _NATIVE_KEYS)):
        return
    name, event, rule = cascade.groups()
    raise SourceError(
        f'{table_name(config)} has foreign key "{name}" with ON {event} {rule}, '
        "whose changes the server does not write to its binlog",
        hint=f"Make it ON {event} RESTRICT, and let the application or a trigger change the "
        "rows, or use MySQL 9.6 or later with innodb_native_foreign_keys=OFF.",
    )


def logs_cascades(settings: dict[str, str]) -> bool:
    """True if a server logs the changes of foreign keys; MySQL does from 9.6 on."""
    version = settings["version"]
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or "mariadb" in version.lower():
        return False
    is_new = (int(numbers[1]), int(numbers[2])) >= (9, 6)
    return is_new and settings.get(_NATIVE_KEYS, "OFF").upper() in ("OFF", "0")


# The server
# ----------------------------------------------------------------------------------------------


def _require_settings(connection: "Connection[Any]", config: MysqlConnectionConfig) -> None:
    names = [name for name, *_ in _REQUIRED]
    settings = variables(connection, "log_bin", "version", _TRIGGERS, *names)
    if settings.get("log_bin", "").upper() not in ("ON", "1"):
        raise _wrong_setting(
            config,
            ("log_bin", settings.get("log_bin", "unknown"), "ON"),
            "Start the server with --log-bin",
        )
    for name, expected, since in _REQUIRED:
        if name not in settings and since:
            raise SourceError(
                f'database server "{config.server}" has version {settings.get("version")}, '
                f'which has no setting "{name}": its binlog does not name the columns',
                hint=f"Use a later version: {since} are the first to have it.",
            )
        if settings.get(name, "").upper() != expected:
            value = settings.get(name, "unknown")
            raise _wrong_setting(config, (name, value, expected), _set_global(name, expected))
    if settings.get(_TRIGGERS, "").upper() == "YES":
        shown = (_TRIGGERS, "YES", "NO, LOGGING or ENFORCE")
        raise _wrong_setting(config, shown, _set_global(_TRIGGERS, "LOGGING"))


def _set_global(name: str, value: str) -> str:
    return (
        f"Run SET GLOBAL {name}={value}, put it into the server's configuration and let writers "
        "connect again"
    )


def _wrong_setting(
    config: MysqlConnectionConfig, setting: tuple[str, str, str], change: str
) -> SourceError:
    name, value, expected = setting
    return SourceError(
        f'database server "{config.server}" has setting "{name}" = {value}, expected {expected}',
        hint=f"{change}.",
    )


def _require_no_filter(connection: "Connection[Any]", config: MysqlConnectionConfig) -> None:
    """Filters go by a statement's default database, so no database is surely logged completely."""
    grant = "BINLOG MONITOR" if is_mariadb(connection) else "REPLICATION CLIENT"
    with needing(config, grant, "*.*", _WITHOUT):
        status = first_known(connection, STATUS_OF_BINLOG) or [{}]
    for column in _FILTERS:
        value = str(status[0].get(column) or "")
        if value:
            option = column.lower().replace("_", "-")
            raise SourceError(
                f'database server "{config.server}" logs some databases only: {option} is '
                f'"{value}", expected nothing',
                hint=f"Start the server without --{option}.",
            )


def _require_replicated_changes(
    connection: "Connection[Any]", config: MysqlConnectionConfig
) -> None:
    """Changes from other servers must be in the binlog of a replica or Galera node."""
    settings = variables(connection, *_OF_REPLICAS)
    logs = [settings[name] for name in _LOGS_WHAT_IT_REPLICATES if name in settings]
    if logs and all(value.upper() in ("ON", "1") for value in logs):
        return
    option = "log-slave-updates" if is_mariadb(connection) else "log-replica-updates"
    if settings.get("wsrep_on", "").upper() in ("ON", "1"):
        raise _not_logged(config, "is a node of a Galera cluster", option)
    statements = _REPLICATION_OF_MARIADB if is_mariadb(connection) else _REPLICATION_OF_MYSQL
    try:
        if first_known(connection, statements):
            raise _not_logged(config, "is a replica", option)
    except pymysql.err.MySQLError as exc:
        if exc.args[0] not in NOT_PERMITTED:
            raise
        running = dict(rows(connection, "SHOW GLOBAL STATUS LIKE 'Slaves_running'"))
        if any(int(count) for count in running.values()):
            raise _not_logged(config, "is a replica", option) from exc
        if settings.get("gtid_slave_pos"):
            raise SourceError(
                f'database server "{config.server}" was a replica, and user "{config.username}" '
                f"may not see whether it still is; it does not log what it replicates",
                hint="Run GRANT SLAVE MONITOR ON *.* TO that user, or start the server with "
                f"--{option}.",
            ) from exc


_REPLICATION_OF_MARIADB = ("SHOW ALL SLAVES STATUS", "SHOW SLAVE STATUS")
_REPLICATION_OF_MYSQL = ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")


def _not_logged(config: MysqlConnectionConfig, what: str, option: str) -> SourceError:
    return SourceError(
        f'database server "{config.server}" {what} that does not log what comes from others: '
        f'setting "{option.replace("-", "_")}" = OFF, expected ON',
        hint=f"Start the server with --{option}, or name the server that the changes come from.",
    )


# The stream
# ----------------------------------------------------------------------------------------------


def require_replication(
    connection: "Connection[Any]", config: MysqlConnectionConfig, *, server_id: int
) -> None:
    """Request the newest binlog and read its first packet; only `close` is valid afterwards.

    The server ends another stream with the same `server_id`. SourceError if the user may not read
    the binlog.
    """
    status = binlog_status(connection)
    assert status is not None, "whether there is a binlog is checked first"
    request = struct.pack("<IHI", _FIRST_EVENT, _DO_NOT_WAIT, server_id) + status[0].encode()
    rows(connection, "SET @master_binlog_checksum = @@global.binlog_checksum")
    rows(connection, f"SET @mariadb_slave_capability = {_KNOWS_GTIDS}")
    protocol: Any = connection  # PyMySQL's protocol methods have no stubs
    try:
        protocol._execute_command(COMMAND.COM_BINLOG_DUMP, request)
        protocol._read_packet()
    except pymysql.err.MySQLError as exc:
        raise stream_error(config, exc) from exc
    except OSError as exc:
        raise lost(config, str(exc)) from exc


def stream_error(config: MysqlConnectionConfig, exc: pymysql.err.MySQLError) -> SourceError:
    code = exc.args[0] if exc.args else 0
    if code == _BINLOG_REFUSED:
        return _refused(config, str(exc.args[1]))
    if code in _ACCESS_DENIED and code != _ACCESS_DENIED[1]:
        return SourceError(
            f'user "{config.username}" lacks REPLICATION SLAVE on *.* of server "{config.server}"',
            hint=f"Run GRANT REPLICATION SLAVE ON *.* TO that user{_WITHOUT}.",
        )
    return translated(config, exc)


def _refused(config: MysqlConnectionConfig, why: str) -> SourceError:
    message = f'database server "{config.server}" cannot give the binlog from our position: {why}'
    if _OUR_ID_IS_TAKEN.search(why):
        return SourceError(
            message,
            hint="Another replica has our server id: give the table another server-id option.",
        )
    if _TOO_BIG.search(why):
        return SourceError(message, hint="Raise max_allowed_packet of the server; we try again.")
    return SnapshotNeededError(
        message,
        hint="The binlog was purged, reset or restored; the table is copied again by itself. Keep "
        "the binlog longer (binlog_expire_logs_seconds) to avoid it.",
    )


def lost(config: MysqlConnectionConfig, why: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f'the binlog connection to database server "{config.server}" was lost: {why}',
        hint="Wait for the server, or restart it; we connect again by ourselves.",
    )
