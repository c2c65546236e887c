"""Reads rows of some keys at one position of the binlog, to send them again there."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from joins.adapters.mysql.connection import MysqlConnectionConfig, connected
from joins.adapters.mysql.position import begin_read
from joins.adapters.mysql.row_images import Row, wire_rows
from joins.adapters.mysql.table import CapturedTable
from joins.kernels.changelog.envelope import BinlogPosition
from joins.kernels.json.encode import encode_objects
from joins.kernels.json.wire import Encoding
from joins.plan.errors import RepairError
from joins.plan.types import quoted

WRITE_AGAIN = (
    "Write each row again at the source, for instance by an UPDATE that changes it; or submit the "
    "job again, which copies the whole table."
)
_KEYS_EACH = 500
_ALIKE = (Encoding.INTEGER, Encoding.UNSIGNED, Encoding.STRING, Encoding.BYTES)


@dataclass(frozen=True, slots=True)
class Repair:
    """An order to send rows again; keys are JSON, as in the changelog topic."""

    id: str
    keys: tuple[str, ...]  # of rows to send as the source has them
    # of rows that only the copy has: they are deleted unless the source has them now
    extra: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowsAt:
    """What the source has at `position`: rows as wire columns, and keys without a row."""

    position: BinlogPosition
    rows: tuple[pa.RecordBatch, ...]
    deleted: pa.RecordBatch


def require_repairable(table: CapturedTable) -> None:
    """RepairError if a key's value in JSON is not one that the server compares with the column."""
    for column in table.key_columns:
        is_alike = column.captured.encoding in _ALIKE
        if not is_alike or column.server.data_type in ("bit", "enum", "set", "year"):
            raise RepairError(
                f'rows of table "{table.database}.{table.table}" cannot be read by their key: '
                f'"{column.server.name}" is a {column.server.column_type}, not an integer, a text '
                "or bytes",
                hint=WRITE_AGAIN,
            )


def read_rows_at(
    config: MysqlConnectionConfig, table: CapturedTable, epoch: int, repair: Repair
) -> RowsAt:
    """One consistent read; RepairError if the table has none, else errors of `connected`."""
    from joins.adapters.mysql.chunks import rows_where  # it loads a compiler

    columns = table.primary_key
    rows: list[pa.RecordBatch] = []
    with connected(config) as connection:
        mark, is_repeatable = begin_read(config, connection, epoch)
        if not is_repeatable:
            raise RepairError(
                f'table "{table.database}.{table.table}" has no transactions, so its rows have no '
                "position",
                hint=WRITE_AGAIN,
            )
        keys = [json.loads(key) for key in (*repair.keys, *repair.extra)]
        for part in table.parts:
            theirs = [key for key in keys if _is_of(part, key)]
            for first in range(0, len(theirs), _KEYS_EACH):
                some = theirs[first : first + _KEYS_EACH]
                where = " OR ".join(_is_key(part, key) for key in some)
                rows += rows_where(connection, part, where)
    texts = [text for batch in rows for text in encode_objects(batch.select(columns)).to_pylist()]
    there = {tuple(json.loads(text).values()) for text in texts}
    extra = keys[len(repair.keys) :]
    gone = [key for key in extra if tuple(key[name] for name in columns) not in there]
    return RowsAt(
        mark.position, tuple(rows), wire_rows([_key_row(table, key) for key in gone], table)
    )


def _is_of(part: CapturedTable, key: Mapping[str, Any]) -> bool:
    names = zip((column.name for column in part.captured), part.constants(), strict=True)
    return all(key[name] == text for name, text in names if text is not None and name in key)


def _is_key(table: CapturedTable, key: Mapping[str, Any]) -> str:
    equal = (
        f"{quoted(column.server.name)} = {_literal(value)}"
        for column, value in zip(table.columns, _key_row(table, key), strict=True)
        if value is not None and not column.metadata
    )
    return f"({' AND '.join(equal)})"


def _key_row(table: CapturedTable, key: Mapping[str, Any]) -> Row:
    """A row with nothing but its key, as from the binlog."""
    row: Row = [None] * len(table.columns)
    for at, column in enumerate(table.captured):
        if column.name in table.primary_key:
            value = key[column.name]
            row[at] = base64.b64decode(value) if column.encoding is Encoding.BYTES else value
    return row


def _literal(value: Any) -> str:  # noqa: ANN401 (a value of a Row)
    """Texts and bytes by their bytes, which no mode of the server reads otherwise."""
    if isinstance(value, int):
        return str(value)
    return (
        f"x'{value.hex()}'" if isinstance(value, bytes) else f"_utf8mb4 x'{value.encode().hex()}'"
    )
