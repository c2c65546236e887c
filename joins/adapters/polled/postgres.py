"""Tables of PostgreSQL: connections, checks, and their rows as wire columns by COPY.

Sources: PostgreSQL's documentation, "COPY", "Frontend/Backend Protocol", "Error Codes".
"""

import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socket import SHUT_RDWR
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pg8000.core import CoreConnection
from pg8000.exceptions import DatabaseError, InterfaceError

from joins.adapters.mysql.connection import MysqlConnectionConfig, tls_context
from joins.adapters.network import current_deadline
from joins.adapters.polled.table import Take
from joins.kernels.expressions.casts import from_base64
from joins.kernels.json.wire import to_wire
from joins.plan.errors import DefinitionError, SourceError, SourceUnavailableError, of_columns
from joins.plan.plan import Field, TlsMode
from joins.plan.types import SqlType, TypeName, arrow_type
from watermark.errors import SluiceError

_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 600
_PLAIN_PASSWORD = b"\0\0\0\3"  # the server asks for the password itself
_CHUNK_BYTES = 8 << 20
# Texts as they are read here, whatever the role has set; LOCAL, as a pool may share a session.
_SESSION = (
    "BEGIN READ ONLY; SET LOCAL datestyle = 'ISO'; SET LOCAL timezone = 'UTC';"
    " SET LOCAL client_encoding = 'UTF8'; SET LOCAL extra_float_digits = 3;"
    " SET LOCAL statement_timeout = 0; SET LOCAL standard_conforming_strings = on"
)
_TRY_LATER = ("08", "53", "57", "40", "55P03")
_REFUSED = ("28",)
_NO_GRANT = "42501"
_RELATIONS = (
    "SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text,"
    " GREATEST(c.reltuples, 0)::bigint"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND lower(c.relname) = lower($1)"
    " AND CASE WHEN $2 = '' THEN pg_table_is_visible(c.oid) ELSE lower(n.nspname) = lower($2) END"
)
_COLUMNS = (
    "SELECT a.attname::text, COALESCE(b.typname, t.typname)::text,"
    " format_type(a.atttypid, a.atttypmod)"
    " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
    " LEFT JOIN pg_type b ON b.oid = t.typbasetype"
    " WHERE a.attrelid = $1::bigint AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)
_KEYS = (
    "SELECT array_to_string(ARRAY(SELECT a.attname::text FROM pg_attribute a"
    " WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])"
    " ORDER BY a.attname), chr(1)), i.indisprimary"
    " FROM pg_index i WHERE i.indrelid = $1::bigint AND i.indisunique AND i.indisvalid"
    " AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnatts = i.indnkeyatts"
    " ORDER BY NOT i.indisprimary"
)
_WITHOUT_KEYS = "vmf"  # views and foreign tables
_INTEGERS = {"int2": TypeName.SMALLINT, "int4": TypeName.INT, "int8": TypeName.BIGINT}
_ORDER = (TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT)
_DECLARED: Mapping[str, tuple[TypeName, ...]] = {
    **{name: _ORDER[_ORDER.index(least) :] for name, least in _INTEGERS.items()},
    "bool": (TypeName.BOOLEAN,),
    "numeric": (TypeName.DECIMAL,),
    "float4": (TypeName.FLOAT, TypeName.DOUBLE),
    "float8": (TypeName.DOUBLE,),
    "bytea": (TypeName.BYTES,),
    "date": (TypeName.DATE,),
    "time": (TypeName.TIME,),
    "timestamp": (TypeName.TIMESTAMP,),
    "timestamptz": (TypeName.TIMESTAMP_LTZ,),
}
"""What each type may be declared as; every other one is its text."""
_HINT = "Declare the column as {}, or leave it out."


class _Connection(CoreConnection):  # type: ignore[misc] # has no types
    """A connection that never sends its password in plain text."""

    def handle_AUTHENTICATION_REQUEST(self, data: bytes, context: object) -> None:  # noqa: N802
        if data[:4] == _PLAIN_PASSWORD and not isinstance(self._usock, ssl.SSLSocket):
            raise SourceError(
                "the database server asks for the password itself, over a plain connection",
                hint="Let the server offer TLS and write sslmode=require into 'url', or let it "
                "log the user in by scram-sha-256.",
            )
        super().handle_AUTHENTICATION_REQUEST(data, context)

    def cut(self) -> None:
        """End the connection from another thread, even while it waits."""
        waiting = self._usock
        with suppress(OSError):
            if waiting is not None:
                waiting.shutdown(SHUT_RDWR)

    def rows(self, statement: str, *values: object) -> list[list[Any]]:
        return list(self.execute_unnamed(statement, vals=values).rows or ())


@contextmanager
def connected(config: MysqlConnectionConfig) -> Iterator[_Connection]:
    """A connection in a transaction that only reads; it is closed at the end.

    SourceUnavailableError if it fails or is lost, SourceError if the server refuses the user or a
    statement.
    """
    with _foreign_errors(config):
        deadline, patience_s = current_deadline(), float(_READ_TIMEOUT_S)
        if deadline is not None:
            patience_s = deadline.left_s(config.server)
        connection = _Connection(
            config.username,
            host=config.hostname,
            port=config.port,
            database=config.database,
            password=config.password,
            timeout=min(_CONNECT_TIMEOUT_S, patience_s),
            ssl_context=_tls(config),
            application_name="sluice",
        )
        try:
            connection._usock.settimeout(patience_s)
            if deadline is not None:
                deadline.on_end(config.server, connection.cut)
            connection.execute_simple(_SESSION)
            yield connection
        finally:
            with suppress(InterfaceError, OSError):
                connection.close()


def _tls(config: MysqlConnectionConfig) -> ssl.SSLContext | bool | None:
    """As pg8000 takes it: None tries TLS first, and then goes on without."""
    if config.tls.mode is TlsMode.PREFERRED:
        return None
    return config.tls.mode is not TlsMode.DISABLED and tls_context(config.tls)


@contextmanager
def _foreign_errors(config: MysqlConnectionConfig) -> Iterator[None]:
    try:
        yield
    except SluiceError:
        raise
    except DatabaseError as exc:
        raise _translated(config, exc.args[0] if exc.args else {}) from exc
    except ssl.SSLError as exc:
        raise _no_tls(config, str(exc)) from exc
    except InterfaceError as exc:
        if "refuses SSL" in str(exc):
            raise _no_tls(config, str(exc)) from exc
        if "Authentication method" in str(exc):
            raise SourceError(
                f'database server "{config.server}" logs user "{config.username}" in by another '
                f"way than a password: {exc}",
                hint="Let the server log the user in by scram-sha-256.",
            ) from exc
        raise _unavailable(config, f"{exc} {exc.__cause__ or ''}") from exc
    except OSError as exc:
        raise _unavailable(config, str(exc)) from exc


def _translated(config: MysqlConnectionConfig, answer: Mapping[str, str]) -> SourceError:
    code, text = str(answer.get("C", "")), str(answer.get("M", answer))
    if code.startswith(_TRY_LATER):
        return _unavailable(config, text)
    if code.startswith(_REFUSED):
        return SourceError(
            f'database server "{config.server}" refused user "{config.username}": {text}',
            hint="Check the username and password options, and the server's pg_hba.conf.",
        )
    if code == _NO_GRANT:
        name = ".".join(quoted(each) for each in config.table.split("."))
        return SourceError(
            f'user "{config.username}" may not read {table_name(config)}: {text}',
            hint=f"Run GRANT SELECT ON {name} TO that user, and GRANT USAGE ON its schema.",
        )
    return SourceError(
        f'database server "{config.server}" answered error {code}: {text}',
        hint="Look the error up in PostgreSQL's manual; the server's log may say more.",
    )


def _no_tls(config: MysqlConnectionConfig, text: str) -> SourceError:
    return SourceError(
        f'database server "{config.server}" does not offer TLS as the table asks: {text}',
        hint="Correct sslmode in 'url', or the certificate of the server.",
    )


def _unavailable(config: MysqlConnectionConfig, text: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f'database server "{config.server}" cannot be reached',
        hint="Start the server, or correct 'url'; we try again.",
        detail=text.strip(),
    )


def quoted(name: str) -> str:
    """`name` as an identifier of PostgreSQL."""
    return '"' + name.replace('"', '""') + '"'


def table_name(config: MysqlConnectionConfig) -> str:
    return f'table "{config.table}" of database "{config.database}"'


# What the table is
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A checked table; `columns` are the server's names and types of the declared `fields`."""

    schema: str
    name: str
    rows: int  # an estimate
    fields: tuple[Field, ...]
    columns: tuple[tuple[str, str], ...]

    def column(self, declared: str) -> str:
        """The server's name of a declared column."""
        names = [each.name for each in self.fields]
        return self.columns[names.index(declared)][0]


def check_table(
    config: MysqlConnectionConfig, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> PostgresTable:
    """Check table, key and columns without changes; errors as those of `connected`."""
    with connected(config) as connection:
        return table_on(connection, config, fields, primary_key)


def table_on(
    connection: _Connection,
    config: MysqlConnectionConfig,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
) -> PostgresTable:
    oid, schema, name, kind, estimate = _relation(connection, config)
    types = {str(row[0]): (str(row[1]), str(row[2])) for row in connection.rows(_COLUMNS, oid)}
    columns = []
    for item in fields:
        column = next((each for each in (item.name, item.name.lower()) if each in types), None)
        if column is None:
            raise DefinitionError(
                f'{table_name(config)} has no column "{item.name}"',
                hint=of_columns(item.name, types),
            )
        _check_type(config, item, column, *types[column])
        columns.append((column, types[column][0]))
    names = {item.name: column for item, (column, _) in zip(fields, columns, strict=True)}
    if kind not in _WITHOUT_KEYS:
        _check_key(connection, config, oid, {names[each]: each for each in primary_key})
    nothing = f"SELECT {', '.join(quoted(column) for column, _ in columns)} "
    connection.execute_simple(f"{nothing} FROM {quoted(schema)}.{quoted(name)} LIMIT 0")
    return PostgresTable(schema, name, int(estimate), fields, tuple(columns))


def _relation(connection: _Connection, config: MysqlConnectionConfig) -> list[Any]:
    """The table whose name is written like that, else in lower case, as SQL without quotes."""
    schema, _, table = config.table.rpartition(".")
    known = connection.rows(_RELATIONS, table, schema)
    exact = [row for row in known if row[2] == table and schema in ("", row[1])]
    folded = [row for row in known if row[2] == table.lower()]
    if not (exact or folded):
        raise SourceError(
            f"{table_name(config)} does not exist, or user "
            f'"{config.username}" has it in no schema of its search path',
            hint="Correct 'table-name'; write schema.table for a table of another schema.",
        )
    return list((exact or folded)[0])


def _check_type(
    config: MysqlConnectionConfig, declared: Field, column: str, kind: str, shown: str
) -> None:
    is_text = kind not in _DECLARED
    allowed = (TypeName.STRING,) if is_text else _DECLARED[kind]
    if declared.type.name not in allowed:
        raise DefinitionError(
            f'column "{column}" of {table_name(config)} is {shown}, declared {declared.type}',
            hint=_HINT.format(" or ".join(allowed)),
        )


def _check_key(
    connection: _Connection, config: MysqlConnectionConfig, oid: int, key: Mapping[str, str]
) -> None:
    known = [str(row[0]).split("\1") for row in connection.rows(_KEYS, oid)]
    if any(set(each) == set(key) for each in known):
        return
    if not known:
        raise SourceError(
            f"{table_name(config)} has no primary key and no unique index",
            hint="Add a primary key to the table; rows cannot be told apart without one.",
        )
    raise DefinitionError(
        f"{table_name(config)} has key ({', '.join(known[0])}), declared ({', '.join(key)})",
        hint=f"Declare PRIMARY KEY ({', '.join(known[0])}) NOT ENFORCED, with these columns.",
    )


@dataclass(frozen=True, slots=True)
class _OpenTable:
    connection: _Connection
    table: PostgresTable

    def clock_ms(self) -> int:
        return clock_ms(self.connection)

    def read(self, since: tuple[str, str] | None, take: Take) -> None:
        read_rows(self.connection, self.table, since, take)


@contextmanager
def opened_postgres(
    config: MysqlConnectionConfig, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Iterator[_OpenTable]:
    """Errors as those of `check_table`."""
    with connected(config) as connection:
        yield _OpenTable(connection, table_on(connection, config, fields, primary_key))


# Its rows
# --------------------------------------------------------------------------------------------------


def clock_ms(connection: _Connection) -> int:
    """The server's time."""
    statement = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    return int(connection.rows(statement)[0][0])


def read_rows(
    connection: _Connection, table: PostgresTable, since: tuple[str, str] | None, take: Take
) -> None:
    """Hand the rows over as wire columns, a few MiB at a time: all of one moment.

    With `since`, a declared column and a value as text, those with no smaller one. Errors as those
    of `connected`, DefinitionError for a value that its declared type does not have.
    """
    selected = ", ".join(_selected(quoted(name), kind) for name, kind in table.columns)
    query = f"SELECT {selected} FROM {quoted(table.schema)}.{quoted(table.name)}"
    if since is not None:
        literal = "'" + since[1].replace("'", "''") + "'"
        query += f" WHERE {quoted(table.column(since[0]))} >= {literal}"
    chunks = _Chunks(table, take)
    connection.execute_unnamed(f"COPY ({query}) TO STDOUT (FORMAT csv)", stream=chunks)
    chunks.flush()


def _selected(name: str, kind: str) -> str:
    if kind == "bytea":
        return f"translate(encode({name}, 'base64'), E'\\n', '')"
    return f"{name} AT TIME ZONE 'UTC'" if kind == "timestamptz" else name


@dataclass
class _Chunks:
    """Collects the rows of a COPY, which come one by one, and hands them over in batches."""

    table: PostgresTable
    take: Take
    waiting: list[bytes] = field(default_factory=list)
    bytes_waiting: int = 0

    def write(self, row: bytes) -> None:
        self.waiting.append(row)
        self.bytes_waiting += len(row)
        if self.bytes_waiting >= _CHUNK_BYTES:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            text, self.waiting, self.bytes_waiting = b"".join(self.waiting), [], 0
            self.take(wire_rows(text, self.table.fields))


def wire_rows(text: bytes, fields: Sequence[Field]) -> pa.RecordBatch:
    """Rows in the CSV of COPY as wire columns."""
    names = [str(number) for number in range(len(fields))]
    read = pa.csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False)
    parsing = pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    options = pa.csv.ConvertOptions(
        column_types={name: pa.string() for name in names},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parsed = pa.csv.read_csv(pa.BufferReader(text), read, parsing, options).combine_chunks()
    columns = [
        _wire(column.chunk(0), item) for column, item in zip(parsed.columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[item.name for item in fields])


def _wire(text: pa.StringArray, declared: Field) -> pa.Array:
    if text.null_count and not declared.nullable:
        raise DefinitionError(
            f'column "{declared.name}" has a NULL, declared NOT NULL',
            hint="Declare it without NOT NULL.",
        )
    try:
        return to_wire(_values(text, declared.type), declared.type)
    except pa.ArrowInvalid as exc:
        raise DefinitionError(
            f'a value of column "{declared.name}" is no {declared.type}: {str(exc)[:200]}',
            hint="Declare a type that has all values, or leave the column out; "
            "NaN, 'infinity' and dates BC have none.",
        ) from exc


def _values(text: pa.StringArray, declared: SqlType) -> pa.Array:
    name = declared.name
    if name is TypeName.BYTES:
        return from_base64(text).values
    if name is TypeName.BOOLEAN:
        return pc.equal(text, "t")
    if name is TypeName.TIME:
        days = pc.binary_join_element_wise(pa.scalar("1970-01-01"), text, pa.scalar(" "))
        return days.cast(pa.timestamp("us")).cast(pa.int64())
    if name in (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        return text.cast(pa.timestamp("us"))
    values = text.cast(arrow_type(declared))
    if pa.types.is_floating(values.type) and not pc.all(pc.is_finite(values), min_count=0).as_py():
        raise pa.ArrowInvalid("a changelog has neither NaN nor an infinite number")
    return values
