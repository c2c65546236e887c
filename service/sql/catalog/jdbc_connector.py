"""The connector `jdbc`: a table of MySQL, MariaDB or PostgreSQL as a dimension.

A table of MySQL or MariaDB is `mysql-cdc`, unless it has an interval in which it is read again.
"""

import re
from dataclasses import replace
from urllib.parse import unquote

from joins.plan.durations import duration_text
from joins.plan.plan import (
    Database,
    Field,
    MysqlCdcSource,
    MysqlTls,
    PolledSource,
    TlsMode,
)
from joins.plan.types import TypeName
from service.sql.catalog.mysql_connector import (
    BARE_OPTIONS,
    IDENTIFIER,
    NOT_WRITTEN,
    SYSTEM_SCHEMAS,
)
from service.sql.catalog.option import Option, TableRole, duration, ignored
from service.sql.catalog.option_values import Connector, Endpoints, Home, OptionValues, literal
from service.sql.catalog.watermarks import JOIN_OPTIONS
from service.sql.grammar.syntax import CreateTable, OptionNode
from service.sql.text.script import Edit, Script

_NAME = r"[A-Za-z0-9_$-]{1,64}"
_URL = re.compile(
    r"jdbc:(?P<kind>mysql|mariadb|postgresql)://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,252}))"
    rf"(?::(?P<port>\d{{1,5}}))?/(?P<database>{_NAME})(?:\?(?P<query>[^#]*))?"
)
_TLS_OF_URL = {
    "sslmode=disabled": TlsMode.DISABLED,
    "sslmode=preferred": TlsMode.PREFERRED,
    "sslmode=required": TlsMode.REQUIRED,
    "sslmode=verify_ca": TlsMode.VERIFY_CA,
    "sslmode=verify_identity": TlsMode.VERIFY_IDENTITY,
    "sslmode=disable": TlsMode.DISABLED,
    "sslmode=require": TlsMode.REQUIRED,
    "sslmode=trust": TlsMode.REQUIRED,
    "sslmode=verify-ca": TlsMode.VERIFY_CA,
    "sslmode=verify-full": TlsMode.VERIFY_IDENTITY,
    "ssl=true": TlsMode.VERIFY_IDENTITY,  # of PostgreSQL's driver
    "usessl=false": TlsMode.DISABLED,
    "usessl=true": TlsMode.REQUIRED,
    "requiressl=true": TlsMode.REQUIRED,
    "verifyservercertificate=true": TlsMode.VERIFY_CA,
}
JDBC_URLS = ("jdbc:mysql:", "jdbc:mariadb:", "jdbc:postgresql:")
OTHER_DATABASE = (
    "Let Debezium write the table into a topic, and declare 'kafka' with 'format' = "
    "'debezium-json' and a PRIMARY KEY."
)
_INTERVAL, _COLUMN, _WHOLE = (
    "scan.refresh-interval",
    "scan.refresh-column",
    "scan.whole-refresh-interval",
)
_DEFAULT_INTERVAL_MS = 300_000
_DIMENSION = frozenset((TableRole.DIMENSION,))
_GROWING = frozenset(
    (
        TypeName.SMALLINT,
        TypeName.INT,
        TypeName.BIGINT,
        TypeName.TIMESTAMP,
        TypeName.TIMESTAMP_LTZ,
    )
)
_OPTIONS = (
    Option(
        "url",
        "Of a dimension: jdbc:postgresql://host:port/database, jdbc:mysql://… or jdbc:mariadb://…; "
        "sslmode, ssl and useSSL decide about TLS, currentSchema names PostgreSQL's schema, other "
        "parameters have no effect. A login in it is that of 'username' and 'password'.",
        required=True,
    ),
    Option(
        "table-name",
        "The table; database.table for one of another database, of PostgreSQL schema.table for one "
        "outside the user's search path.",
        required=True,
    ),
    *BARE_OPTIONS,
    duration(
        _INTERVAL,
        "How often the table is read again; 5 min for PostgreSQL when missing. A table of MySQL or "
        "MariaDB follows the binlog when it is missing.",
        "1 s to 365 d, such as 5 min",
        roles=_DIMENSION,
    ),
    Option(
        _COLUMN,
        "A column that grows with each change of a row, such as the time of its last change: only "
        "rows whose value is not below the greatest one seen are read each "
        "'scan.refresh-interval'. What it does not show, deletions first, a whole read finds. All "
        "rows are read each time when it is missing.",
        form="a column of an integer or timestamp type",
        roles=_DIMENSION,
    ),
    duration(
        _WHOLE,
        "With 'scan.refresh-column': how often all rows are read.",
        "1 s to 365 d, such as 1 h",
        default="1 h",
        roles=_DIMENSION,
    ),
    *JOIN_OPTIONS,
    *ignored("jdbc"),
    *NOT_WRITTEN,
)


def _endpoints(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    parts = _URL.fullmatch(values.required("url"))
    if parts is None:
        raise values.error(
            "url",
            'option "url" is not jdbc:postgresql://host:port/database, jdbc:mysql://… or '
            "jdbc:mariadb://… with one host",
            hint="Write jdbc:mysql://host:3306/database or jdbc:postgresql://host:5432/database, "
            "the login as 'username' and 'password'.",
        )
    parameters = [unquote(each) for each in (parts["query"] or "").split("&") if each]
    is_postgres = parts["kind"] == "postgresql"
    if not is_postgres and not values.is_set(_INTERVAL):
        values.require_beside(_COLUMN, _INTERVAL)
        return Endpoints(dimension=_followed(values, parts, parameters))
    return Endpoints(dimension=_polled(values, fields, parts, parameters))


def _followed(values: OptionValues, parts: re.Match[str], parameters: list[str]) -> MysqlCdcSource:
    database, table = _table_of(values, parts["database"], parameters, is_postgres=False)
    values.notes.append(
        f'Table "{values.table}" is jdbc and is read as mysql-cdc: it is copied whole and follows '
        "the binlog, for which its user needs SELECT, REPLICATION SLAVE and REPLICATION CLIENT; "
        f"with '{_INTERVAL}' it is read again instead, with SELECT alone."
    )
    return MysqlCdcSource(
        hostname=parts["host"],
        port=int(parts["port"] or 3306),
        username=values.required("username"),
        password=values.required("password"),
        database=database,
        table=table,
        changelog_partitions=values.number("changelog.partitions"),
        tls=MysqlTls(_tls_of_url(parameters)),
    )


def _polled(
    values: OptionValues,
    fields: tuple[Field, ...],
    parts: re.Match[str],
    parameters: list[str],
) -> PolledSource:
    is_postgres = parts["kind"] == "postgresql"
    database, table = _table_of(values, parts["database"], parameters, is_postgres=is_postgres)
    column = values.text(_COLUMN)
    types = {field.name: field.type.name for field in fields}
    if column is not None and types.get(column) not in _GROWING:
        raise values.error(
            _COLUMN,
            f'option "{_COLUMN}" is "{column}", expected a column of the table of an integer or '
            "timestamp type",
            hint="Name a column that grows with each change of a row; or remove the option, and "
            "all rows are read each time.",
        )
    if values.is_set(_WHOLE):
        values.require_beside(_WHOLE, _COLUMN)
    refresh_ms = values.milliseconds_if_set(_INTERVAL) or _DEFAULT_INTERVAL_MS
    rows = "all rows" if column is None else f"rows with new values of {column}, and less often all"
    values.notes.append(
        f'Table "{values.table}" is jdbc and is copied whole, then {rows} are read each '
        f"{duration_text(refresh_ms)} ('{_INTERVAL}'): between two reads a record meets the rows "
        "of the earlier one, where a lookup in Flink asks the database."
    )
    return PolledSource(
        Database.POSTGRESQL if is_postgres else Database.MYSQL,
        hostname=parts["host"],
        port=int(parts["port"] or (5432 if is_postgres else 3306)),
        username=values.required("username"),
        password=values.required("password"),
        database=database,
        table=table,
        refresh_ms=refresh_ms,
        column=column,
        whole_refresh_ms=values.milliseconds(_WHOLE),
        changelog_partitions=values.number("changelog.partitions"),
        tls=MysqlTls(_tls_of_url(parameters)),
    )


def _table_of(
    values: OptionValues, database: str, parameters: list[str], *, is_postgres: bool
) -> tuple[str, str]:
    """Database, and table; of PostgreSQL the table has its schema in front, if one is named."""
    name = values.required("table-name")
    names = re.sub(r'[`"]', "", name).split(".")
    is_system = not is_postgres and re.fullmatch(
        f"(?i:{SYSTEM_SCHEMAS})", names[0] if names[1:] else database
    )
    if len(names) > 2 or is_system or not all(re.fullmatch(IDENTIFIER, each) for each in names):
        raise values.error(
            "table-name",
            f'option "table-name" is "{name}", expected a table, or schema.table, not of '
            "a system database",
            hint="Name one table, with its schema in front where it needs one.",
        )
    if not is_postgres:
        return names[0] if len(names) > 1 else database, names[-1]
    schemas = [each.partition("=")[2] for each in parameters if each.startswith("currentSchema=")]
    if len(names) == 1 and schemas:
        names = [schemas[-1].partition(",")[0], *names]
    return database, ".".join(names)


_LOGIN = re.compile(
    r"(?P<scheme>jdbc:(?:mysql|mariadb|postgresql)://)"
    r"(?:(?P<user>[^:/?]*)(?::(?P<password>[^/?]*))?@)?(?P<rest>[^?]*)(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_OF_LOGIN = {"user": "username", "password": "password"}


def without_login(script: Script, table: CreateTable) -> CreateTable:
    """The table of `jdbc` with the login of its URL as options."""
    nodes = {node.key: node for node in table.options}
    connector, url = nodes.get("connector"), nodes.get("url")
    parts = None if url is None else _LOGIN.fullmatch(url.value)
    if connector is None or connector.value != "jdbc" or url is None or parts is None:
        return table
    login = {key: parts[key] for key in _OF_LOGIN if parts[key] is not None}
    parameters = []
    for each in (parts["query"] or "").split("&"):
        key, _, value = each.partition("=")
        if key.lower() in _OF_LOGIN:
            login[key.lower()] = value
        elif each:
            parameters.append(each)
    if not login:
        return table
    plain = parts["scheme"] + parts["rest"] + ("?" + "&".join(parameters) if parameters else "")
    made = {_OF_LOGIN[key]: unquote(value) for key, value in login.items()}
    twice = next((key for key in made if key in nodes), None)
    if twice is not None:
        alike = all(nodes[key].value == value for key, value in made.items() if key in nodes)
        sure = alike and set(made) <= set(nodes)
        raise script.error(
            url.value_at,
            f'option "url" has a login beside option "{twice}"',
            hint="Remove the login from the URL.",
            edit=Edit(url.value_at, url.end, literal(plain), sure=sure),
        )
    user = made.get("username")
    named = "" if user is None else f", 'username' = {literal(user)}"
    inside = (url.value_at, f"{literal(plain)}{named}, 'password' = ", "")
    nodes_of_login = [
        # Inside the URL's literal no other value begins.
        OptionNode(key, value, url.at, url.value_at + place, url.end, inside)
        for place, (key, value) in enumerate(made.items(), 1)
    ]
    options = [replace(url, value=plain) if node is url else node for node in table.options]
    return replace(table, options=(*options, *nodes_of_login))


def _tls_of_url(parameters: list[str]) -> TlsMode:
    """The last parameter about TLS decides; a stricter one is never weakened by `useSSL`."""
    modes = [_TLS_OF_URL[each.lower()] for each in parameters if each.lower() in _TLS_OF_URL]
    order = list(TlsMode)
    return max(modes, key=order.index, default=TlsMode.PREFERRED)


JDBC = Connector("jdbc", _OPTIONS, _endpoints, Home.DATABASE)
