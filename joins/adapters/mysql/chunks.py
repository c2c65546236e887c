"""The snapshot of a table in chunks: their bounds, and the reader that runs on workers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
from pymysql.connections import Connection

from joins.adapters.mysql.connection import (
    MysqlConnectionConfig,
    SafeConnection,
    connected,
    rows,
)
from joins.adapters.mysql.table import CapturedTable, MysqlColumn
from joins.adapters.mysql.text import result_columns, select_expression, wire_column
from joins.kernels.changelog.envelope import BinlogPosition, encode_snapshot
from joins.plan.types import quoted

_NUMBERS = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "double", "year"}
)
_BY_NUMBER = frozenset(
    {"enum", "set", "bit"}
)  # they sort by number but compare with texts as texts
_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows with `after` < key <= `through`, in key order.

    Bounds are key values as text (hexadecimal for binary), None before the first and after the last
    chunk. A bound of several tables begins with the number of one; with nothing behind it, it is
    before the first row there.
    """

    after: tuple[str, ...] | None
    through: tuple[str, ...] | None

    def as_text(self) -> str:
        return json.dumps([self.after, self.through])

    @classmethod
    def from_text(cls, text: str) -> Self:
        after, through = (None if b is None else tuple(b) for b in json.loads(text))
        return cls(after, through)


@dataclass(frozen=True, slots=True)
class SnapshotTask:
    """What a worker needs to read chunks of a snapshot, from LOW's server only; picklable."""

    config: MysqlConnectionConfig
    table: CapturedTable
    low: BinlogPosition
    generation: int
    partitions: int


def chunk_bounds(
    config: MysqlConnectionConfig,
    table: CapturedTable,
    *,
    rows_each: int,
    after: tuple[str, ...] | None = None,
) -> Iterator[Chunk]:
    """Chunks of at most `rows_each` rows after `after`, lazily; the last is open-ended."""
    with connected(config) as connection:
        yield from bounds_on(connection, table, rows_each=rows_each, after=after)


def bounds_on(
    connection: "Connection[Any]",
    table: CapturedTable,
    *,
    rows_each: int,
    after: tuple[str, ...] | None = None,
) -> Iterator[Chunk]:
    number, inside = _place(table, after)
    for at, part in enumerate(table.parts[number:], number):
        while (through := _next_bound(connection, part, inside, rows_each)) is not None:
            bound = (str(at), *through) if table.shards else through
            yield Chunk(after, bound)
            after, inside = bound, through
        is_last = at == len(table.parts) - 1
        yield Chunk(after, None if is_last else (str(at + 1),))
        after, inside = (str(at + 1),), None


def _place(
    table: CapturedTable, bound: tuple[str, ...] | None
) -> tuple[int, tuple[str, ...] | None]:
    """Which of the tables a bound is in, and the key there; None before its first row."""
    if bound is None or not table.shards:
        return 0, bound
    number, *key = bound
    return int(number), tuple(key) or None


def snapshot_chunk_records(task: SnapshotTask, chunk: Chunk) -> Iterator[pa.RecordBatch]:
    """The records `[key: binary, value: binary, partition: int32]` of one chunk, in no order.

    SourceUnavailableError if the server cannot be reached (the chunk may be read again),
    SnapshotNeededError if another server answers.
    """
    for wire in read_chunk(task.config, task.table, chunk):
        yield encode_snapshot(
            wire,
            task.table.primary_key,
            task.low,
            generation=task.generation,
            partitions=task.partitions,
        )


def read_chunk(
    config: MysqlConnectionConfig, table: CapturedTable, chunk: Chunk
) -> Iterator[pa.RecordBatch]:
    """The rows of one chunk as wire columns, a few MiB at a time; errors as the records."""
    with connected(config) as connection:
        yield from chunk_on(connection, table, chunk)


def chunk_on(
    connection: SafeConnection, table: CapturedTable, chunk: Chunk
) -> Iterator[pa.RecordBatch]:
    number, after = _place(table, chunk.after)
    last, through = _place(table, chunk.through)
    if chunk.through is None:
        last = len(table.parts) - 1
    elif through is None:
        last -= 1
    for at, part in enumerate(table.parts[number : last + 1], number):
        conditions = [
            *_comparison(part, after if at == number else None, ">"),
            *_comparison(part, through if at == last else None, "<="),
        ]
        where = " AND ".join(f"({condition})" for condition in conditions) or "TRUE"
        yield from rows_where(connection, part, where)


def rows_where(
    connection: SafeConnection, table: CapturedTable, where: str
) -> Iterator[pa.RecordBatch]:
    """Rows of one table of the server."""
    theirs = [column for column in table.columns if not column.metadata]
    selected = ", ".join(map(select_expression, theirs))
    statement = f"SELECT {selected} FROM {_name(table)} WHERE {where}"
    names = [column.name for column in table.captured]
    pairs = zip(names, table.constants(), strict=True)
    ours = {name: pa.scalar(constant) for name, constant in pairs if constant is not None}
    for raw in result_columns(connection, statement, len(theirs)):
        wire = {
            column.captured.name: wire_column(values, column)
            for values, column in zip(raw, theirs, strict=True)
        }
        wire |= {name: pa.repeat(constant, len(raw[0])) for name, constant in ours.items()}
        yield pa.RecordBatch.from_arrays([wire[name] for name in names], names=names)


def _next_bound(
    connection: "Connection[Any]",
    table: CapturedTable,
    after: tuple[str, ...] | None,
    rows_each: int,
) -> tuple[str, ...] | None:
    keys = [quoted(column.server.name) for column in table.key_columns]
    bounds = ", ".join(_bound_expression(column) for column in table.key_columns)
    where = "".join(f" WHERE {condition}" for condition in _comparison(table, after, ">"))
    bound_rows = rows(
        connection,
        f"SELECT {bounds} FROM {_name(table)}{where} "
        f"ORDER BY {', '.join(keys)} LIMIT 2 OFFSET {rows_each - 1}",
    )
    if len(bound_rows) < 2:  # the bound and one row after it
        return None
    return tuple(str(value) for value in bound_rows[0])


def _bound_expression(column: MysqlColumn) -> str:
    name = quoted(column.server.name)
    if column.server.data_type in _BINARY:
        return f"HEX({name})"
    if column.server.data_type in _BY_NUMBER:
        return f"{name} + 0"
    if column.server.data_type in _NUMBERS:
        return name if column.server.data_type == "double" else f"CAST({name} AS CHAR)"
    return f"CAST({name} AS CHAR CHARACTER SET utf8mb4)"


def _literal(column: MysqlColumn, text: str) -> str:
    kind = column.server.data_type
    if kind in _BINARY:
        return f"x'{text}'"
    if kind in _NUMBERS or kind in _BY_NUMBER:
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _comparison(
    table: CapturedTable, bound: tuple[str, ...] | None, operator: str
) -> Iterator[str]:
    """The condition on the key, column by column, so that the server can use its index."""
    if bound is None:
        return
    strict = operator[0]
    alternatives: list[str] = []
    equal: list[str] = []
    columns = table.key_columns
    for position, (column, text) in enumerate(zip(columns, bound, strict=True)):
        name, literal = quoted(column.server.name), _literal(column, text)
        last = position == len(columns) - 1
        beyond = f"{name} {operator if last else strict} {literal}"
        alternatives.append(" AND ".join([*equal, beyond]))
        equal.append(f"{name} = {literal}")
    yield " OR ".join(alternatives)


def _name(table: CapturedTable) -> str:
    return f"{quoted(table.database)}.{quoted(table.table)}"
