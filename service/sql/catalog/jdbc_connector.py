"""The connector `jdbc`: a table of MySQL or MariaDB, read as `mysql-cdc`."""

import re
from urllib.parse import unquote

from joins.plan.plan import Field, MysqlCdcSource, MysqlTls, TlsMode
from service.sql.catalog.connector import Connector, Endpoints, Home
from service.sql.catalog.mysql_connector import BARE_OPTIONS
from service.sql.catalog.option import Option, ignored
from service.sql.catalog.option_values import OptionValues

_INDEX = "a dimension's rows are in a local index, which follows the binlog"
_URL = re.compile(
    r"jdbc:(?:mysql|mariadb)://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,252}))"
    r"(?::(?P<port>\d{1,5}))?/(?P<database>[A-Za-z0-9_$-]{1,64})(?:\?(?P<query>[^#]*))?"
)
_TLS = {
    "sslmode=disabled": TlsMode.DISABLED,
    "sslmode=preferred": TlsMode.PREFERRED,
    "sslmode=required": TlsMode.REQUIRED,
    "sslmode=verify_ca": TlsMode.VERIFY_CA,
    "sslmode=verify_identity": TlsMode.VERIFY_IDENTITY,
    "sslmode=disable": TlsMode.DISABLED,
    "sslmode=trust": TlsMode.REQUIRED,
    "sslmode=verify-ca": TlsMode.VERIFY_CA,
    "sslmode=verify-full": TlsMode.VERIFY_IDENTITY,
    "usessl=false": TlsMode.DISABLED,
    "usessl=true": TlsMode.REQUIRED,
    "requiressl=true": TlsMode.REQUIRED,
    "verifyservercertificate=true": TlsMode.VERIFY_CA,
}
MYSQL_URLS = ("jdbc:mysql:", "jdbc:mariadb:")
OTHER_DATABASE = (
    "Let Debezium write the table into a topic, and declare 'kafka' with 'format' = "
    "'debezium-json' and a PRIMARY KEY."
)
_OPTIONS = (
    Option(
        "url",
        "Of a dimension: jdbc:mysql://host:port/database or jdbc:mariadb://…; sslMode and useSSL "
        "decide about TLS, other parameters have no effect. Without a login in it.",
        required=True,
    ),
    Option("table-name", "The table; database.table for one of another database.", required=True),
    *BARE_OPTIONS,
    *ignored(_INDEX, "lookup.*"),
    *ignored(
        "the table is read as mysql-cdc, whole and by its binlog",
        "driver",
        "scan.fetch-size",
        "scan.auto-commit",
        "scan.parallelism",
        "connection.max-retry-timeout",
        "compatible-mode",
    ),
)


def _endpoints(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    url = values.required("url")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise values.error(
            "url",
            'option "url" is not jdbc:mysql://host:port/database or jdbc:mariadb://…, without a '
            "login",
            hint="Write the login as 'username' and 'password', and one host.",
        )
    parameters = [unquote(each) for each in (parts["query"] or "").split("&") if each]
    if any(each.partition("=")[0].lower() in ("user", "password") for each in parameters):
        raise values.error(
            "url",
            'option "url" has a login',
            hint="Write the login as 'username' and 'password', where it is kept as a secret.",
        )
    database, _, table = values.required("table-name").replace("`", "").rpartition(".")
    source = MysqlCdcSource(
        hostname=parts["host"],
        port=int(parts["port"] or 3306),
        username=values.required("username"),
        password=values.required("password"),
        database=database or parts["database"],
        table=table,
        tls=MysqlTls(_tls(parameters)),
    )
    values.notes.append(
        f'Table "{values.table}" is jdbc and is read as mysql-cdc: it is copied whole and follows '
        "the binlog, for which its user needs SELECT, REPLICATION SLAVE and REPLICATION CLIENT."
    )
    return Endpoints(dimension=source)


def _tls(parameters: list[str]) -> TlsMode:
    """The last parameter about TLS decides; a stricter one is never weakened by `useSSL`."""
    modes = [_TLS[each.lower()] for each in parameters if each.lower() in _TLS]
    order = list(TlsMode)
    return max(modes, key=order.index, default=TlsMode.PREFERRED)


JDBC = Connector("jdbc", _OPTIONS, _endpoints, Home.DATABASE)
