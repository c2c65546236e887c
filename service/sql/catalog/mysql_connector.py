"""The connectors `mysql-cdc` and `mysql`: a table of MySQL or MariaDB.

It is a dimension, or a stream of its changes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from joins.kernels.calendar.zones import UTC, known_zone
from joins.plan.plan import (
    DATABASE_NAME,
    OP_TS,
    TABLE_NAME,
    Field,
    MetadataField,
    MysqlCdcSource,
    MysqlTls,
    TableStream,
    TlsMode,
)
from joins.plan.table_patterns import is_pattern, why_unusable
from joins.plan.types import SqlType, TypeName
from service.sql.catalog.option import (
    HOST,
    PARTITIONS,
    PEM,
    Option,
    OptionType,
    ignored,
    only_value,
)
from service.sql.catalog.option_values import Connector, Endpoints, Home, OptionValues, literal
from service.sql.catalog.watermarks import (
    DIMENSION_OPTIONS,
    IDLE_OPTION,
)
from service.sql.grammar.syntax import CreateTable, MetadataColumn, PhysicalColumn
from service.sql.grammar.type_parser import STRING, type_text
from service.sql.text.script import Edit, Script

IDENTIFIER = r"[^\x00-\x1f\x7f`/\\*+?|()\[\]{}^,;]{1,64}"
_NAME = r"[^\x00-\x1f\x7f`/;]{1,256}"
_NAME_FORM = "a name, or a regular expression of at most 256 characters that matches whole names"
SYSTEM_SCHEMAS = "mysql|sys|information_schema|performance_schema"
CHUNK_SIZE = "scan.incremental.snapshot.chunk.size"
MOST_CHUNK_ROWS = 50_000
_WHOLE = "a dimension is copied whole first, and then follows the binlog"
_NOT_WHOLE = (
    "Remove it: a dimension that starts elsewhere lacks the rows that did not change since. "
    "A dimension is copied whole first."
)
_OF_FLINK_CDC = (
    only_value("scan.startup.mode", ("initial",), _WHOLE, _NOT_WHOLE),
    only_value(
        "scan.read-changelog-as-append-only.enabled",
        ("false",),
        "a dimension has the newest row of each key",
        "Remove it: a dimension has the newest row of each key, never all of its changes.",
    ),
    only_value(
        "debezium.snapshot.mode",
        ("initial", "when_needed", "always"),
        _WHOLE,
        _NOT_WHOLE,
    ),
    only_value(
        "debezium.skipped.operations",
        ("t", "none"),
        "a truncated table is empty, and every other change counts",
        "Remove it: a dimension without some of its changes is not its table.",
    ),
    only_value(
        "debezium.binary.handling.mode",
        ("bytes", "none"),
        "a column of bytes is BYTES",
        "Remove it, and write TO_BASE64(column) or HEX(column) in the query.",
    ),
    *(
        only_value(
            f"debezium.{key}.handling.mode",
            ("fail",),
            "what cannot be read stops the table with its reason",
            "Remove it: what cannot be read stops the table with its reason, and is never left "
            "out.",
        )
        for key in (
            "event.processing.failure",
            "event.deserialization.failure",
            "inconsistent.schema",
        )
    ),
    *ignored("mysql-cdc"),
)
_USER = (
    Option("username", "User with SELECT and replication grants.", required=True, reference=True),
    Option(
        "password",
        "Its password.",
        required=True,
        credential=True,
        reference=True,
        pattern=r"[^\x00-\x1f\x7f]{0,1024}",
    ),
)
BARE_OPTIONS = (*_USER, PARTITIONS, IDLE_OPTION)
"""Options of a table whatever names its server."""
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
    *_USER,
    Option(
        "database-name",
        "Database of the table; not a system database. A regular expression such as `db_[0-9]+` "
        "matches several.",
        required=True,
        pattern=rf"(?i:(?!(?:{SYSTEM_SCHEMAS})\Z)){_NAME}",
        form=_NAME_FORM + ", not a system database",
    ),
    Option(
        "table-name",
        "The table. A regular expression such as `t_.*` matches several, whose rows are one table.",
        required=True,
        pattern=_NAME,
        form=_NAME_FORM,
    ),
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
        "Id of the binlog client, unique among the server's clients; generated when missing. Of a "
        "range such as 5400-5408 the first one is used: one client reads the table. Of a number "
        "of 64 bits the lower 32 count, as in Debezium: the protocol has no more.",
        pattern=r"[1-9]\d{0,18}(?:\s*-\s*[1-9]\d{0,18})?",
        form="a number from 1 to 9223372036854775807, or a range such as 5400-5408",
    ),
    Option(
        "server-time-zone",
        "In which a column of the server's type TIMESTAMP, an instant, has the date and the clock "
        "of a TIMESTAMP here; TIMESTAMP_LTZ is the instant itself, and DATETIME is read as it is "
        "stored. UTC when missing.",
        pattern=r"[A-Za-z0-9+:/_-]{1,64}",
        form="a name such as Europe/Berlin, or an offset such as +02:00",
    ),
    Option(
        CHUNK_SIZE,
        f"Maximum rows of a snapshot chunk; a larger number means {MOST_CHUNK_ROWS:,}.",
        OptionType.NUMBER,
        default=str(MOST_CHUNK_ROWS),
        lowest=1,
        highest=2**31 - 1,
    ),
    PARTITIONS,
    IDLE_OPTION,
    *_OF_FLINK_CDC,
    *DIMENSION_OPTIONS,
)


def _endpoints(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    rows = int(values.required(CHUNK_SIZE))
    if rows > MOST_CHUNK_ROWS:
        values.note(CHUNK_SIZE, f"a chunk has {MOST_CHUNK_ROWS} rows at most")
    source = MysqlCdcSource(
        hostname=values.required("hostname"),
        port=int(values.required("port")),
        username=values.required("username"),
        password=values.required("password"),
        database=values.required("database-name"),
        table=values.required("table-name"),
        server_id=_server_id(values),
        chunk_rows=min(rows, MOST_CHUNK_ROWS),
        changelog_partitions=values.number("changelog.partitions"),
        zone=_zone(values),
        tls=_tls(values),
    )
    return Endpoints(TableStream(source, primary_key), source)


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """The columns of a CREATE TABLE that the server's table does not have.

    Attributes:
        node: the statement in which they are physical columns, and part of the key where rows of
            several tables need it.
        fields: these columns.
        notes: what was added to the key.
    """

    node: CreateTable
    fields: tuple[MetadataField, ...] = ()
    notes: tuple[str, ...] = ()


_TYPES = {
    DATABASE_NAME: (STRING,),
    TABLE_NAME: (STRING,),
    OP_TS: tuple(SqlType(TypeName.TIMESTAMP_LTZ, digits) for digits in (3, 0, 1, 2, 4, 5, 6)),
}


_NAMES = {DATABASE_NAME: "database-name", TABLE_NAME: "table-name"}


def table_metadata(
    script: Script, node: CreateTable, connector: Connector, values: OptionValues
) -> TableMetadata:
    """Names that only one table has are not among them: these are constants."""
    if connector not in (MYSQL_CDC, MYSQL):
        return TableMetadata(node)
    several = [key for key, option in _NAMES.items() if _is_pattern(values, option)]
    ours = {
        column.name.text: column
        for column in node.columns
        if isinstance(column, MetadataColumn) and column.key in (*several, OP_TS)
    }
    for column in ours.values():
        require_type(script, column, _TYPES[column.key])
    _check_times(script, node, {name for name, column in ours.items() if column.key == OP_TS})
    names = {column.key: column.name for column in ours.values() if column.key in several}
    _require_names(script, node, values, [key for key in several if key not in names])
    columns = tuple(
        PhysicalColumn(column.name, column.type, nullable=False)
        if isinstance(column, MetadataColumn) and column.name.text in ours
        else column
        for column in node.columns
    )
    declared = [name.text for name in node.primary_key]
    added = [name for name in names.values() if declared and name.text not in declared]
    key = (*added, *node.primary_key)
    note = (
        f'Table "{node.name.text}" has the primary key ({", ".join(name.text for name in key)}): '
        "each of its tables may have the same keys."
    )
    return TableMetadata(
        replace(node, columns=columns, primary_key=key),
        tuple(MetadataField(name, column.key, column.type.type) for name, column in ours.items()),
        (note,) if added else (),
    )


def _check_times(script: Script, node: CreateTable, times: Collection[str]) -> None:
    for name in node.primary_key:
        if name.text in times:
            raise script.error(
                name.at,
                f'primary key column "{name.text}" is the time of a change',
                hint="Remove it from PRIMARY KEY, which has the columns of the server's key.",
            )
    if node.watermark is not None and node.watermark.column.text in times:
        raise script.error(
            node.watermark.column.at,
            f'column "{node.watermark.column.text}" is 1970-01-01 in each row of a copy, so it is '
            "no rowtime",
            hint="Declare a TIMESTAMP(3) column that the application writes with each change.",
        )


def _require_names(
    script: Script, node: CreateTable, values: OptionValues, missing: Sequence[str]
) -> None:
    if not missing:
        return
    new = [f"{key} STRING METADATA FROM '{key}' VIRTUAL" for key in missing]
    first = node.columns[0].name.at
    raise script.error(
        values.nodes[_NAMES[missing[0]]].at,
        f'table "{node.name.text}" has rows of several tables, and no column that says of which',
        hint=f"Declare {' and '.join(new)}, which will be part of the PRIMARY KEY.",
        edit=Edit(first, first, "".join(f"{column}, " for column in new), sure=False),
    )


def _is_pattern(values: OptionValues, option: str) -> bool:
    text = values.required(option)
    if not is_pattern(text):
        return False
    why = why_unusable(text)
    if why is not None:
        node, whole = values.nodes[option], f"({text})"
        edit = Edit(node.value_at, node.end, literal(whole), sure=False)
        raise values.script.error(
            node.at,
            f'option "{option}" is "{text}", which cannot be an expression of names: {why}',
            hint="Write one that matches whole names, such as db_[0-9]+ or (orders|items)_.*.",
            edit=edit if "," not in text and why_unusable(whole) is None else None,
        )
    return True


def require_type(script: Script, column: MetadataColumn, types: tuple[SqlType, ...]) -> None:
    if column.type.type not in types:
        raise script.error(
            column.type.at,
            f'metadata "{column.key}" is {type_text(types[0])}, not {type_text(column.type.type)}',
            hint=f"Declare it as {type_text(types[0])}.",
        )


def _zone(values: OptionValues) -> str:
    text = values.text("server-time-zone")
    zone = UTC if text is None else known_zone(text)
    if zone is None:
        raise values.error(
            "server-time-zone",
            f'option "server-time-zone" is "{text}", which is no time zone',
            hint="Give a name such as Europe/Berlin, or an offset such as +02:00.",
        )
    return UTC if text is None or zone in (UTC, 0) else text


def _server_id(values: OptionValues) -> int | None:
    text = values.text("server-id")
    if text is None:
        return None
    first, *last = (int(part) for part in text.split("-"))
    id_of_protocol = first % 2**32
    if max([first, *last]) >= 2**63 or id_of_protocol == 0 or (last and last[0] < first):
        raise values.error(
            "server-id",
            f'option "server-id" is "{text}", expected an id that the protocol has',
            hint="Give a number from 1 to 4294967295, or a range such as 5400-5408.",
        )
    if last:
        only = f"only {id_of_protocol} of its range has an effect"
        values.note("server-id", f"{only}: one client reads")
    elif id_of_protocol != first:
        values.note("server-id", f"its lower 32 bits are the id, {id_of_protocol}")
    return id_of_protocol


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

NOT_WRITTEN = ignored("never-written")
MYSQL = Connector(
    "mysql",
    (*_OPTIONS, *NOT_WRITTEN),
    _endpoints,
    Home.DATABASE,
)
"""The same table by the name that Alibaba Cloud's Flink has for it."""
