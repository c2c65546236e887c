"""The connector `mysql-cdc`: a table of MySQL or MariaDB as a dimension."""

from joins.plan.plan import Field, MysqlCdcSource, MysqlTls, TlsMode
from service.sql.catalog.connector import Connector, Endpoints, Home
from service.sql.catalog.option import HOST, PEM, Option, OptionType
from service.sql.catalog.option_values import OptionValues
from service.sql.catalog.watermarks import IDLE_OPTION, STALENESS_OPTION

_IDENTIFIER = r"[^\x00-\x1f\x7f`/\\*+?|()\[\]{}^,;]{1,64}"
_IDENTIFIER_FORM = "one name of at most 64 characters, not a pattern"
_SYSTEM_SCHEMAS = "mysql|sys|information_schema|performance_schema"
_OPTIONS = (
    Option(
        "hostname",
        "Host of the MySQL or MariaDB server.",
        required=True,
        pattern=HOST,
        form="a host name or address",
    ),
    Option(
        "port",
        "Port of the server.",
        OptionType.NUMBER,
        default="3306",
        lowest=1,
        highest=65535,
    ),
    Option("username", "User with SELECT and replication grants.", required=True, reference=True),
    Option(
        "password",
        "Its password.",
        required=True,
        credential=True,
        reference=True,
        pattern=r"[^\x00-\x1f\x7f]{0,1024}",
    ),
    Option(
        "database-name",
        "Database of the table; not a system database.",
        required=True,
        pattern=rf"(?i:(?!(?:{_SYSTEM_SCHEMAS})\Z)){_IDENTIFIER}",
        form=_IDENTIFIER_FORM + ", not a system database",
    ),
    Option("table-name", "The table.", required=True, pattern=_IDENTIFIER, form=_IDENTIFIER_FORM),
    Option(
        "database.ssl.mode",
        "TLS of every connection to the server: preferred, disabled, required, or verified by CA, "
        "or also by host name.",
        OptionType.CHOICE,
        default="preferred",
        choices=tuple(TlsMode),
    ),
    Option(
        "database.ssl.ca",
        "CA certificates for the server's certificate, with verify_ca and verify_identity; the "
        "machine's CA store when missing.",
        **PEM,
    ),
    Option("database.ssl.cert", "Client certificate, for an account that requires one.", **PEM),
    Option("database.ssl.key", "Its key, without a passphrase.", credential=True, **PEM),
    Option(
        "server-id",
        "Id of the binlog client, unique among the server's clients; generated when missing.",
        OptionType.NUMBER,
        lowest=1,
        highest=2**32 - 1,
    ),
    Option(
        "scan.incremental.snapshot.chunk.size",
        "Maximum rows of a snapshot chunk.",
        OptionType.NUMBER,
        default="50000",
        lowest=1,
        highest=50_000,
    ),
    Option(
        "changelog.partitions",
        "Partitions of the changelog topic; the service's setting when missing.",
        OptionType.NUMBER,
        lowest=1,
        highest=1024,
    ),
    IDLE_OPTION,
    STALENESS_OPTION,
)


def _endpoints(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    source = MysqlCdcSource(
        hostname=values.required("hostname"),
        port=int(values.required("port")),
        username=values.required("username"),
        password=values.required("password"),
        database=values.required("database-name"),
        table=values.required("table-name"),
        server_id=values.number("server-id"),
        chunk_rows=int(values.required("scan.incremental.snapshot.chunk.size")),
        changelog_partitions=values.number("changelog.partitions"),
        tls=_tls(values),
    )
    return Endpoints(dimension=source)


def _tls(values: OptionValues) -> MysqlTls:
    tls = MysqlTls(
        TlsMode(values.required("database.ssl.mode")),
        ca=values.text("database.ssl.ca"),
        cert=values.text("database.ssl.cert"),
        key=values.text("database.ssl.key"),
    )
    verifies = tls.mode in (TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY)
    if tls.ca is not None and not verifies:
        raise values.error(
            "database.ssl.ca",
            f'option "database.ssl.ca" has no effect with database.ssl.mode {tls.mode}',
            hint="Set 'database.ssl.mode' = 'verify_identity', or 'verify_ca'.",
        )
    values.require_pair("database.ssl.cert", "database.ssl.key")
    if tls.cert is not None and tls.mode in (TlsMode.DISABLED, TlsMode.PREFERRED):
        raise values.error(
            "database.ssl.cert",
            f'option "database.ssl.cert" has no effect with database.ssl.mode {tls.mode}',
            hint="Set 'database.ssl.mode' = 'required', 'verify_ca' or 'verify_identity'.",
        )
    return tls


MYSQL_CDC = Connector("mysql-cdc", _OPTIONS, _endpoints, Home.DATABASE)
