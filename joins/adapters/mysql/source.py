"""A MySQL or MariaDB table as a source: the checks before a snapshot starts and after a statement.

A statement of the binlog leaves a captured table followed if it changes no captured value, and the
table still fits its declaration.
"""

import random
from collections.abc import Iterable, Mapping
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import ER

from joins.adapters.mysql.charsets import is_readable
from joins.adapters.mysql.connection import (
    MysqlConnectionConfig,
    connected,
    is_mariadb,
    rows,
    tables_of,
    variables,
)
from joins.adapters.mysql.replication import (
    NOT_PERMITTED,
    missing_table,
    needing,
    require_logged,
    require_replication,
    table_name,
)
from joins.adapters.mysql.statements import effect_of
from joins.adapters.mysql.table import (
    SIZED_TYPES,
    CapturedTable,
    MysqlColumn,
    ServerColumn,
    capture,
    fits,
    metadata_column,
    one_table,
    reads_alike,
)
from joins.adapters.mysql.tokens import (
    Effect,
    Matching,
    Modes,
    Statement,
    Target,
    folded,
    readings,
)
from joins.kernels.calendar.zones import UTC
from joins.plan.errors import (
    DefinitionError,
    ServerChangedError,
    SnapshotNeededError,
    SourceError,
    SourceUnavailableError,
)
from joins.plan.plan import Field
from joins.plan.types import quoted

_OLD_FORMAT = "mariadb-5.3"  # in the comment of such a type
_SERVER_IDS = (1_000_000, 2**32 - 1)
_COLUMNS = (
    "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, NUMERIC_PRECISION, NUMERIC_SCALE,"
    " c.CHARACTER_SET_NAME, GENERATION_EXPRESSION, c.COLLATION_NAME, MAXLEN"
    " FROM information_schema.COLUMNS c"
    " LEFT JOIN information_schema.CHARACTER_SETS s ON s.CHARACTER_SET_NAME = c.CHARACTER_SET_NAME"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION"
)
_KEY = (
    "SELECT COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX"
)


def _check_zone(
    config: MysqlConnectionConfig, columns: tuple[MysqlColumn, ...], key: tuple[str, ...]
) -> None:
    """Refuse a key of local times: where a clock is set back, two instants would be one key."""
    for column in columns:
        if column.zone != UTC and column.captured.name in key:
            raise DefinitionError(
                f'key column "{column.captured.name}" of {table_name(config)} is an instant, '
                f"declared TIMESTAMP with server-time-zone {column.zone}",
                hint="Declare it as TIMESTAMP_LTZ, or remove 'server-time-zone'.",
            )


def check_source(
    config: MysqlConnectionConfig,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
    *,
    server_id: int | None = None,
) -> CapturedTable:
    """Check server, tables, keys and columns without changes; returns the captured table.

    `server_id` must be free; None skips that check. SourceUnavailableError if the server cannot be
    reached, SourceError if a setting, a grant, a table, its key or its columns do not fit.
    """
    with connected(config) as connection:
        parts = [
            _checked(connection, config.at(*name), fields, primary_key)
            for name in tables_of(connection, config)
        ]
        if server_id is not None:
            _check_server_id(connection, config, server_id)
        require_replication(connection, config, server_id=_some_server_id())
    return parts[0] if config.pattern is None else one_table(config.pattern, parts)


def _checked(
    connection: "Connection[Any]",
    config: MysqlConnectionConfig,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
) -> CapturedTable:
    require_logged(connection, config)
    server_columns = _server_columns(connection, config)
    _check_storage(config, server_columns)
    table = _captured(connection, config, server_columns, fields, primary_key)
    _check_readable(connection, config)
    if not is_mariadb(connection):
        _check_lockable(connection, config)
    return table


def check_readable_table(
    config: MysqlConnectionConfig, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> CapturedTable:
    """As `check_source`, of a table that is only read by queries: SELECT is enough."""
    with connected(config) as connection:
        server_columns = _server_columns(connection, config)
        if not server_columns:
            raise missing_table(connection, config)
        table = _captured(connection, config, server_columns, fields, primary_key)
        _check_readable(connection, config)
    return table


def _captured(
    connection: "Connection[Any]",
    config: MysqlConnectionConfig,
    server_columns: list[ServerColumn],
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
) -> CapturedTable:
    ours = {item.name: metadata_column(item) for item in config.metadata}
    theirs = tuple(item for item in fields if item.name not in ours)
    columns = capture(table_name(config), theirs, server_columns, config.zone)
    names = tuple(name for name in primary_key if name not in ours)
    key = _check_key(connection, config, columns, names)
    _check_zone(config, columns, key)
    by_name = ours | {column.captured.name: column for column in columns}
    return CapturedTable(
        config.database,
        config.table,
        tuple(by_name[item.name] for item in fields),
        (*(name for name in primary_key if name in ours), *key),
    )


def choose_server_id(config: MysqlConnectionConfig) -> int:
    """A server id that no visible replica uses."""
    with connected(config) as connection:
        used = _used_server_ids(connection)
    return next(candidate for candidate in iter(_some_server_id, None) if candidate not in used)


def estimate_rows(config: MysqlConnectionConfig) -> int:
    """Approximate number of rows, by the server's statistics."""
    with connected(config) as connection:
        estimates = [
            row
            for name in tables_of(connection, config)
            for row in rows(
                connection,
                "SELECT TABLE_ROWS FROM information_schema.TABLES"
                " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
                *name,
            )
        ]
    return sum(int(count or 0) for (count,) in estimates)


def _server_columns(
    connection: "Connection[Any]", config: MysqlConnectionConfig
) -> list[ServerColumn]:
    described = rows(connection, _COLUMNS, config.database, config.table)
    sources = computed_from({str(row[0]): str(row[6] or "") for row in described})
    return [
        ServerColumn(
            name=str(name),
            data_type=str(data_type).lower(),
            column_type=str(column_type),
            precision=int(precision or 0),
            scale=int(scale or 0),
            charset=None if charset is None else str(charset),
            computed_from=sources[str(name)],
            collation=None if collation is None else str(collation),
            is_readable=charset is None or is_readable(str(charset), int(most)),
        )
        for name, data_type, column_type, precision, scale, charset, _, collation, most in described
    ]


def computed_from(expressions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The columns that each column is computed from, transitively; an expression may be empty."""
    sources = {name: _named(text, expressions) for name, text in expressions.items()}
    for _ in sources:  # the longest chain has so many steps
        sources = {name: own.union(*(sources[one] for one in own)) for name, own in sources.items()}
    return {name: tuple(sorted(own)) for name, own in sources.items()}


def _named(expression: str, columns: Iterable[str]) -> set[str]:
    if not expression:
        return set()
    words = {folded(t.text) for tokens in readings(expression, Modes()) for t in tokens}
    return {name for name in columns if not words or folded(name) in words}


def _check_storage(config: MysqlConnectionConfig, columns: list[ServerColumn]) -> None:
    """Refuse columns whose values have no recognisable end in the binlog."""
    for column in columns:
        if _OLD_FORMAT in column.column_type:
            raise SourceError(
                f'{table_name(config)} has column "{column.name}" of type {column.column_type}, '
                "a format whose length the binlog does not tell",
                hint="Run SET GLOBAL mysql56_temporal_format=ON, then "
                f"ALTER TABLE {config.database}.{config.table} FORCE.",
            )
        if column.data_type not in SIZED_TYPES:
            raise SourceError(
                f'{table_name(config)} has column "{column.name}" of type {column.column_type}, '
                "whose values cannot be found in the binlog",
                hint="Store the column in another type, or in another table.",
            )


def _check_key(
    connection: "Connection[Any]",
    config: MysqlConnectionConfig,
    columns: tuple[MysqlColumn, ...],
    declared: tuple[str, ...],
) -> tuple[str, ...]:
    """The key's declared names in the server's order."""
    key_rows = rows(connection, _KEY, config.database, config.table)
    key = tuple(str(name) for name, _ in key_rows)
    names = {column.server.name: column.captured.name for column in columns}
    if not key:
        raise SourceError(
            f"{table_name(config)} has no primary key",
            hint="Add a primary key to the table; changes cannot be told apart without one.",
        )
    if any(part is not None for _, part in key_rows):
        raise SourceError(
            f"{table_name(config)} has a primary key over the first characters of a column",
            hint="Use whole columns in the primary key.",
        )
    if {names.get(name, "") for name in key} != set(declared):
        raise DefinitionError(
            f"{table_name(config)} has primary key ({', '.join(key)}), "
            f"declared ({', '.join(declared)})",
            hint=f"Declare PRIMARY KEY ({', '.join(key)}) NOT ENFORCED, with these columns.",
        )
    inexact = [c for c in columns if c.server.name in key and c.server.data_type == "float"]
    if inexact:
        raise SourceError(
            f'{table_name(config)} has FLOAT column "{inexact[0].server.name}" in its primary key',
            hint="Use an exact type in the primary key.",
        )
    return tuple(names[name] for name in key)


def _check_readable(connection: "Connection[Any]", config: MysqlConnectionConfig) -> None:
    table = f"{quoted(config.database)}.{quoted(config.table)}"
    with needing(config, "SELECT", table):
        rows(connection, f"SELECT * FROM {table} LIMIT 0")


def is_readable_table(config: MysqlConnectionConfig) -> bool:
    """False if there is no such table; SourceError if the user may not read it."""
    with connected(config) as connection:
        try:
            _check_readable(connection, config)
        except pymysql.err.MySQLError as exc:
            if exc.args[0] not in (ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR):
                raise
            return False
    return True


def _check_lockable(connection: "Connection[Any]", config: MysqlConnectionConfig) -> None:
    table = f"{quoted(config.database)}.{quoted(config.table)}"
    with needing(config, "LOCK TABLES", table):
        rows(connection, f"LOCK TABLES {table} READ")
        rows(connection, "UNLOCK TABLES")


def _check_server_id(
    connection: "Connection[Any]", config: MysqlConnectionConfig, server_id: int
) -> None:
    if server_id in _used_server_ids(connection):
        raise SourceError(
            f'server id {server_id} is in use at server "{config.server}"',
            hint="Choose another server-id, or leave the option out and we choose one.",
        )


def _used_server_ids(connection: "Connection[Any]") -> set[int]:
    own = int(variables(connection, "server_id")["server_id"])
    for statement in ("SHOW REPLICAS", "SHOW SLAVE HOSTS"):
        try:
            return {own, *(int(row[0]) for row in rows(connection, statement))}
        except pymysql.err.MySQLError as exc:
            if exc.args[0] not in (ER.PARSE_ERROR, *NOT_PERMITTED):
                raise
    return {own}


def _some_server_id() -> int:
    return random.SystemRandom().randint(*_SERVER_IDS)


# Statements
# ----------------------------------------------------------------------------------------------


def require_followed(
    statement: Statement, connection: MysqlConnectionConfig, table: CapturedTable
) -> None:
    """Raise SnapshotNeededError if a statement has, or may have, changed rows of the table.

    SourceUnavailableError if the server does not answer questions about the table.
    """
    if table.pattern is None:
        return _require_one_followed(statement, connection, table)
    if _effect(statement, Matching(table.database, table.table, ())) is Effect.NONE:
        return
    for part in table.parts:
        _require_one_followed(statement, connection.at(part.database, part.table), part)
    known = frozenset((folded(part.database), folded(part.table)) for part in table.parts)
    others = Matching(table.database, table.table, (), known=known)
    if _effect(statement, others) is not Effect.NONE:
        raise appeared(table, f'it is named by "{statement.text[:120]}"')


def appeared(table: CapturedTable, what: str) -> SnapshotNeededError:
    return SnapshotNeededError(
        f'another table matches "{table.database}.{table.table}": {what}',
        hint="No action is needed: all tables that match are copied again by themselves.",
    )


def _effect(statement: Statement, target: Target) -> Effect:
    return effect_of(statement.schema, statement.text, target, statement.modes)


def _require_one_followed(
    statement: Statement, connection: MysqlConnectionConfig, table: CapturedTable
) -> None:
    theirs = [column.server for column in table.columns if not column.metadata]
    columns = tuple(column.name for column in theirs)
    sources = tuple(one for column in theirs for one in column.computed_from)
    effect = _effect(statement, Target(table.database, table.table, columns, sources))
    if effect is Effect.NONE or (effect is Effect.ALTERED and still_fits(connection, table)):
        return
    raise SnapshotNeededError(
        f'table "{table.database}.{table.table}" cannot be followed: {effect.value} '
        f'by "{statement.text[:120]}"',
        hint=_HINTS[effect],
    )


def still_fits(connection: MysqlConnectionConfig, table: CapturedTable) -> bool:
    fields = tuple(Field(c.name, c.sql_type) for c in table.captured)
    try:
        now = check_source(connection, fields, table.primary_key)
    except (SourceUnavailableError, ServerChangedError):
        raise
    except SourceError:
        return False
    return fits(table, now) and reads_alike(table, now)


_HINTS = {
    Effect.ALTERED: "Undo the change and the table is copied again by itself, or submit the job "
    "again with the new definition.",
    Effect.CONVERTED: "The table is copied again by itself once its columns fit the declaration: "
    "undo the change if they do not, or submit the job again with the new definition.",
    Effect.REPLACED: "The table is copied again by itself, once it is there. No copy is needed "
    "behind DELETE, unlike TRUNCATE, nor behind ALTER TABLE, gh-ost or pt-online-schema-change "
    "that keep the values of the job's columns.",
    Effect.UNLOGGED: "The table is copied again by itself; let writers use binlog_format=ROW to "
    "avoid it.",
    Effect.UNKNOWN: "The table is copied again by itself, since the statement is not one that is "
    "known to leave it as it is.",
}
