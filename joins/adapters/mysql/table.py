"""A captured MySQL or MariaDB table: its columns, their encodings and declarations."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.zones import UTC, local_times
from joins.kernels.changelog.envelope import CapturedColumn
from joins.kernels.json.wire import Encoding
from joins.plan.errors import DefinitionError, of_columns
from joins.plan.plan import DATABASE_NAME, OP_TS, TABLE_NAME, Field, MetadataField
from joins.plan.table_patterns import TablePattern
from joins.plan.types import SqlType, TypeName

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_INTEGER_DIGITS = {8: 3, 16: 5, 24: 8, 32: 10, 64: 20}
_YEAR_BITS = 16
_COMPRESSED = "COMPRESSED*/"  # ends the comment of such a type; a member of ENUM may be the word
_DECLARED_BITS = {
    TypeName.TINYINT: 8,
    TypeName.SMALLINT: 16,
    TypeName.INT: 32,
    TypeName.BIGINT: 64,
}
_ENCODINGS = {
    "year": Encoding.INTEGER,
    "float": Encoding.FLOAT,
    "double": Encoding.DOUBLE,
    "decimal": Encoding.DECIMAL,
    "date": Encoding.DATE,
    "time": Encoding.TIME,
    "datetime": Encoding.DATETIME,
    "timestamp": Encoding.TIMESTAMP,
    **dict.fromkeys(("char", "varchar", "enum", "set", "json"), Encoding.STRING),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), Encoding.STRING),
    **dict.fromkeys(("binary", "varbinary"), Encoding.BYTES),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), Encoding.BYTES),
}
_PLAIN_MATCHES: dict[Encoding, frozenset[TypeName]] = {
    Encoding.BOOLEAN: frozenset({TypeName.BOOLEAN}),
    Encoding.FLOAT: frozenset({TypeName.FLOAT, TypeName.DOUBLE}),
    Encoding.DOUBLE: frozenset({TypeName.DOUBLE}),
    Encoding.STRING: frozenset({TypeName.STRING}),
    Encoding.BYTES: frozenset({TypeName.BYTES}),
    Encoding.DATE: frozenset({TypeName.DATE}),
    Encoding.TIME: frozenset({TypeName.TIME}),
    Encoding.DATETIME: frozenset({TypeName.TIMESTAMP}),
    Encoding.TIMESTAMP: frozenset({TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ}),
}


# Types whose values can be skipped in a row image, captured or not: `images.rows` knows their
# lengths.
SIZED_TYPES = frozenset(
    [
        *(*_INTEGER_BITS, *_ENCODINGS, "bit", "vector"),
        *("uuid", "inet4", "inet6"),
        *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"),
        *("multipolygon", "geometrycollection", "geomcollection"),
    ]
)


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column in `information_schema.columns`: `int` in `int(10) unsigned` is its `data_type`.

    `precision` and `scale` are digits, 0 if none. The server computes it from `computed_from`.
    """

    name: str
    data_type: str
    column_type: str
    precision: int
    scale: int
    charset: str | None
    computed_from: tuple[str, ...] = ()
    collation: str | None = None
    is_readable: bool = True

    @property
    def unsigned(self) -> bool:
        return "unsigned" in self.column_type

    @property
    def zerofill(self) -> bool:
        return "zerofill" in self.column_type

    @property
    def bits(self) -> int:
        if self.data_type == "year":
            return _YEAR_BITS
        return _INTEGER_BITS.get(self.data_type, self.precision)

    @property
    def encoding(self) -> Encoding | None:
        """None for a type that cannot be captured."""
        if self.column_type.endswith(_COMPRESSED):
            return None
        if self.data_type in _INTEGER_BITS:
            big = self.data_type == "bigint" and self.unsigned
            return Encoding.UNSIGNED if big else Encoding.INTEGER
        if self.data_type == "bit":
            return Encoding.BOOLEAN if self.bits == 1 else Encoding.BYTES
        return _ENCODINGS.get(self.data_type)


@dataclass(frozen=True, slots=True)
class MysqlColumn:
    """A captured column: its record member and its definition in the server.

    `zone` is that in which an instant is read as a date and a clock. `metadata` is the key of a
    column that the server does not have, else empty.
    """

    captured: CapturedColumn
    server: ServerColumn
    zone: str = UTC
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several tables whose rows are the rows of one table."""

    database: str
    table: str
    columns: tuple[MysqlColumn, ...]


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A checked table; `primary_key` has declared names in the server's order. Picklable.

    With `shards` its names are expressions that match theirs, and its columns those of the first.
    """

    database: str
    table: str
    columns: tuple[MysqlColumn, ...]
    primary_key: tuple[str, ...]
    shards: tuple[Shard, ...] = ()

    @property
    def parts(self) -> tuple["CapturedTable", ...]:
        """The tables of the server, in the order in which they are copied."""
        if not self.shards:
            return (self,)
        return tuple(
            CapturedTable(shard.database, shard.table, shard.columns, self.primary_key)
            for shard in self.shards
        )

    @property
    def pattern(self) -> TablePattern | None:
        return TablePattern(self.database, self.table) if self.shards else None

    def constants(self, at_s: int = 0) -> list[str | None]:
        """Wire values of the columns that the server does not have, None for all others.

        `at_s` is the time of the change; that of a row of the copy is 0.
        """
        if not any(column.metadata for column in self.columns):
            return [None] * len(self.columns)
        at = f"{dt.datetime.fromtimestamp(at_s, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
        values = {DATABASE_NAME: self.database, TABLE_NAME: self.table, OP_TS: at}
        return [values.get(column.metadata) for column in self.columns]

    @property
    def captured(self) -> tuple[CapturedColumn, ...]:
        return tuple(column.captured for column in self.columns)

    @property
    def key_columns(self) -> tuple[MysqlColumn, ...]:
        """The columns of the server's key, in its order."""
        by_name = {column.captured.name: column for column in self.columns}
        every = (by_name[name] for name in self.primary_key)
        return tuple(column for column in every if not column.metadata)


def fits(table: CapturedTable, now: CapturedTable) -> bool:
    encodings = ([column.captured.encoding for column in one.columns] for one in (table, now))
    return table.primary_key == now.primary_key and next(encodings) == next(encodings)


def reads_alike(table: CapturedTable, now: CapturedTable) -> bool:
    """True if an exact conversion keeps each value; for BIT the server reorders the bytes."""
    bits = ([column.server.data_type == "bit" for column in one.columns] for one in (table, now))
    return next(bits) == next(bits)


def one_table(pattern: TablePattern, parts: Sequence[CapturedTable]) -> CapturedTable:
    """The table that `parts` are parts of; DefinitionError if their rows are not alike."""
    first = parts[0]
    for part in parts[1:]:
        if not (fits(first, part) and reads_alike(first, part)):
            one, other = definitions_that_differ(first, part)
            raise DefinitionError(
                f'table "{part.database}.{part.table}" has {other}, and '
                f'"{first.database}.{first.table}" has {one}: as parts of '
                f'"{pattern.database}.{pattern.table}" they must agree',
                hint="Make their columns the same, or let 'table-name' match only tables that "
                "are alike.",
            )
    shards = tuple(Shard(part.database, part.table, part.columns) for part in parts)
    return CapturedTable(pattern.database, pattern.table, first.columns, first.primary_key, shards)


def parts_that_differ(before: CapturedTable, now: CapturedTable) -> list[str]:
    """The names of tables that are parts of one of the two only."""
    names = ({f"{shard.database}.{shard.table}" for shard in one.shards} for one in (before, now))
    return sorted(next(names) ^ next(names))


def definitions_that_differ(before: CapturedTable, now: CapturedTable) -> tuple[str, str]:
    pairs = [
        (old.server, new.server)
        for old, new in zip(before.columns, now.columns, strict=True)
        if old.captured.encoding is not new.captured.encoding
    ]
    was = [f"{old.name} {old.column_type}" for old, _ in pairs]
    is_now = [f"{new.name} {new.column_type}" for _, new in pairs]
    if before.primary_key != now.primary_key:
        was.append(f"PRIMARY KEY ({', '.join(before.primary_key)})")
        is_now.append(f"PRIMARY KEY ({', '.join(now.primary_key)})")
    return ", ".join(was), ", ".join(is_now)


def advice(table: CapturedTable) -> tuple[str, ...]:
    """Where server and job read a value differently, and what to declare."""
    where = f'table "{table.database}.{table.table}"'
    instants = [
        f'{where}: column "{c.server.name}" is a {c.server.column_type}, an instant, which '
        f"{c.captured.sql_type} gives as the local time in {c.zone}. Declare it "
        f"TIMESTAMP_LTZ({c.captured.sql_type.precision}) to keep the instant."
        for c in table.columns
        if c.server.data_type == "timestamp" and c.captured.sql_type.name is TypeName.TIMESTAMP
    ]
    keys = [
        f'{where}: the server compares key "{c.server.name}" by collation {c.server.collation}, '
        "for which texts of different bytes are equal; a job compares bytes. Write the stream's "
        f"key as the table has it, such as LOWER(…) = {c.captured.name} where the table is in "
        f"lower case, or make the column COLLATE {c.server.charset}_bin."
        for c in table.key_columns
        if c.server.collation is not None and not c.server.collation.endswith("_bin")
    ]
    return (*instants, *keys)


def capture(
    where: str, fields: tuple[Field, ...], server_columns: list[ServerColumn], zone: str = UTC
) -> tuple[MysqlColumn, ...]:
    """The declared `fields` matched with the server's columns; DefinitionError if they differ."""
    exact = {column.name: column for column in server_columns}
    folded = {column.name.casefold(): column for column in server_columns}
    matches = {f.name: exact.get(f.name) or folded.get(f.name.casefold()) for f in fields}
    missing = [name for name, column in matches.items() if column is None]
    if missing:
        raise DefinitionError(
            f"{where} has no column {_listed(missing)}",
            hint=of_columns(missing[0], [c.name for c in server_columns]),
        )
    pairs = [(f, column) for f in fields if (column := matches[f.name]) is not None]
    complaints = [text for f, column in pairs for text in _complaints(f, column)]
    if complaints:
        raise DefinitionError(
            f"{where} does not fit its declaration: {'; '.join(complaints)}",
            hint="Change the declared types to the ones named here.",
        )
    return tuple(_captured(f, column, zone) for f, column in pairs)


def metadata_column(item: MetadataField) -> MysqlColumn:
    """A column that the server does not have."""
    is_time = item.type.name is not TypeName.STRING
    encoding = Encoding.TIMESTAMP if is_time else Encoding.STRING
    kind = "timestamp" if is_time else "varchar"
    server = ServerColumn(item.name, kind, kind, 0, 0, None)
    captured = CapturedColumn(item.name, item.type, encoding)
    return MysqlColumn(captured, server, metadata=item.key)


def _captured(declared: Field, column: ServerColumn, zone: str) -> MysqlColumn:
    assert column.encoding is not None
    own = column.encoding is Encoding.TIMESTAMP and declared.type.name is TypeName.TIMESTAMP
    captured = CapturedColumn(declared.name, declared.type, column.encoding)
    return MysqlColumn(captured, column, zone if own else UTC)


def in_zone(instants: pa.StringArray, zone: str) -> pa.StringArray:
    """Wire instants such as `2026-11-21T06:07:08.9Z`, moved to the clock of a zone."""
    if zone == UTC:
        return instants
    moments = pc.utf8_rtrim(instants, "Z").cast(pa.timestamp("us"))
    clock = pc.replace_substring(local_times(moments, zone).cast(pa.string()), " ", "T")
    return pc.binary_join_element_wise(clock, pa.scalar("Z"), pa.scalar(""))


def _listed(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _complaints(declared: Field, column: ServerColumn) -> Iterator[str]:
    if column.encoding is None:
        yield f'column "{column.name}" is {column.column_type}, which cannot be captured'
    elif not column.is_readable:
        yield f'column "{column.name}" has character set {column.charset}, which we cannot read'
    elif not accepts(column, declared.type):
        yield (
            f'column "{column.name}" is {column.column_type}, declared {declared.type}, '
            f"expected {suggestion(column)}"
        )


def accepts(column: ServerColumn, declared: SqlType) -> bool:
    encoding = column.encoding
    if encoding in (Encoding.INTEGER, Encoding.UNSIGNED):
        if declared.name is TypeName.BOOLEAN:
            return column.column_type.startswith("tinyint(1)")
        if declared.name is TypeName.DECIMAL:
            return declared.precision - declared.scale >= _INTEGER_DIGITS[column.bits]
        needed = column.bits + (1 if column.unsigned else 0)
        return declared.name is TypeName.STRING or _DECLARED_BITS.get(declared.name, 0) >= needed
    if encoding is Encoding.DECIMAL:
        integral = column.precision - column.scale
        fits = declared.scale >= column.scale and declared.precision - declared.scale >= integral
        return declared.name is TypeName.STRING or (declared.name is TypeName.DECIMAL and fits)
    return encoding is not None and declared.name in _PLAIN_MATCHES[encoding]


def suggestion(column: ServerColumn) -> str:
    encoding = column.encoding
    if encoding in (Encoding.INTEGER, Encoding.UNSIGNED):
        needed = column.bits + (1 if column.unsigned else 0)
        wide = [name.value for name, bits in _DECLARED_BITS.items() if bits >= needed]
        return wide[0] if wide else "DECIMAL(20, 0)"
    if encoding is Encoding.DECIMAL:
        narrow = column.precision <= 38  # the most digits of a DECIMAL
        return f"DECIMAL({column.precision}, {column.scale})" if narrow else "STRING"
    if encoding is Encoding.TIMESTAMP:
        return TypeName.TIMESTAMP_LTZ.value
    assert encoding is not None
    return min(_PLAIN_MATCHES[encoding], key=list(TypeName).index).value
