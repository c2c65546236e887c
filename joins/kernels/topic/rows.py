"""Topics of rows without Debezium: with a primary key, without one, with times of records."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.debezium.changes import BadRecord, ChangeRows, RecordFault, RecordKind
from joins.kernels.expressions.casts import mask_of
from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from joins.kernels.formats.decoders import RecordColumns, SchemasOf, one_a_record
from joins.kernels.formats.parsed import ParsedRows
from joins.plan.formats import SOURCE_TIMESTAMP
from joins.plan.plan import COORDINATES, ComputedField, Field, MetadataField
from joins.plan.types import arrow_type, unqualified

_WITH_ROW = (RecordKind.READ, RecordKind.CREATE, RecordKind.UPDATE)
_NO_ROW = "its value is null, which is no row: this table's rows are not deleted by records"


class TopicDecoder(Protocol):
    """Decodes records of a topic into changes."""

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        """The changes of `records`, of which `key` and `value` (binary) are read."""


class PlacedRowDecoder:
    """For topics without a primary key: the key of each row is its partition and offset."""

    def __init__(self, decoder: TopicDecoder) -> None:
        self._decoder = decoder

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        """As `decoder`; `COORDINATES` are the key and the last columns of the rows."""
        changes = self._decoder.decode(records)
        places = [records.column("partition"), records.column("offset")]
        after = _with_columns(changes.after, COORDINATES, places)
        return replace(changes, key=after.select([item.name for item in COORDINATES]), after=after)


class KeyedRowDecoder:
    """Decodes topics whose records are rows with a primary key; they have no snapshot marks.

    A null value deletes the row of its key if `deletes_by_null` is set, else it is bad.
    """

    def __init__(
        self,
        columns: RecordColumns,
        primary_key: Sequence[str],
        *,
        deletes_by_null: bool,
        schemas: SchemasOf | None = None,
    ) -> None:
        by_name = {item.name: item for item in columns.fields}
        self._columns = columns
        self._key = tuple(by_name[name] for name in primary_key)
        self._deletes = deletes_by_null
        self._schemas = schemas

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        count = records.num_rows
        is_gone = mask_of(records.column("value").is_null())
        bad: dict[int, tuple[RecordFault, str]] = {}
        rows = np.flatnonzero(~is_gone)
        chosen = records.take(pa.array(rows))
        whole = one_a_record(self._columns.read(chosen, self._columns.names, self._schemas))
        after, reasons = _spread(whole, rows, count, self._columns.fields)
        bad |= {row: (RecordFault.COLUMN, reason) for row, reason in reasons.items()}
        key = after.select([item.name for item in self._key])
        gone = np.flatnonzero(is_gone)
        of_key = self._columns.key
        if self._deletes and of_key is not None and of_key.is_in_value:
            own = self._keys(records.column("key"), np.arange(count), bad)
            for of_key, of_row in zip(own.columns, key.columns, strict=True):
                for row in np.flatnonzero(mask_of(pc.not_equal(of_key, of_row))).tolist():
                    bad.setdefault(row, (RecordFault.KEY, "its key is not that of its row"))
            key = own
        elif self._deletes and len(gone):
            own = self._keys(records.column("key"), gone, bad)
            is_deleted = pa.array(is_gone)
            columns = [
                pc.if_else(is_deleted, one, other)
                for one, other in zip(own.columns, key.columns, strict=True)
            ]
            key = pa.RecordBatch.from_arrays(columns, schema=own.schema)
        else:
            bad.update((int(row), (RecordFault.LAYOUT, _NO_ROW)) for row in gone)
        kinds = np.where(is_gone, RecordKind.DELETE.value, RecordKind.UPDATE.value).astype(object)
        kinds[list(bad)] = RecordKind.BAD.value
        nothing = pa.nulls(count, pa.string())
        return ChangeRows(
            kind=pa.array(kinds.tolist(), pa.string()),
            key=key,
            after=after,
            before=None,
            snapshot=nothing,
            source_ts_ms=pa.nulls(count, pa.int64()),
            position=pa.nulls(count, pa.binary()),
            connector=nothing,
            database=nothing,
            schema=nothing,
            table=nothing,
            bad=tuple(BadRecord(row, *bad[row]) for row in sorted(bad)),
        )

    def _keys(
        self, keys: pa.Array, rows: np.ndarray, bad: dict[int, tuple[RecordFault, str]]
    ) -> pa.RecordBatch:
        names = [item.name for item in self._key]
        read = self._columns.read_keys(keys.take(pa.array(rows)), names, self._schemas)
        spread, reasons = _spread(read, rows, len(keys), self._key)
        bad |= {row: (RecordFault.KEY, reason) for row, reason in reasons.items()}
        return spread


def _spread(
    parsed: ParsedRows,
    rows: np.ndarray,
    count: int,
    fields: Sequence[Field],
) -> tuple[pa.RecordBatch, dict[int, str]]:
    """The parsed `rows` as `fields` of `count` records, NULL elsewhere; and reasons by record."""
    reasons = {int(rows[one.row]): one.reason for one in parsed.bad}
    places = rows[parsed.row_index.to_numpy()]
    for row in np.setdiff1d(rows, places).tolist():
        reasons.setdefault(row, "it has no row, and each record of a table has one")
    spread = np.full(count, -1, np.int64)
    spread[places] = np.arange(len(places))
    taken = pa.array(spread, mask=spread < 0)
    columns = []
    for item, values in zip(fields, parsed.batch.columns, strict=True):
        if not item.nullable and values.null_count:
            for row in places[mask_of(values.is_null())].tolist():
                reasons[row] = f'column "{item.name}": it is missing or NULL'
        columns.append(values.take(taken).cast(arrow_type(item.type)))
    names = [item.name for item in fields]
    return pa.RecordBatch.from_arrays(columns, names=names), reasons


class RecordTimeDecoder:
    """Appends times of the records as `columns` to the rows of `decoder`, deleted rows too."""

    def __init__(self, decoder: TopicDecoder, columns: Sequence[MetadataField]) -> None:
        self._decoder = decoder
        self._columns = tuple(columns)

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        changes = self._decoder.decode(records)
        times = [_time(records, changes, each.key) for each in self._columns]
        return replace(changes, after=_with_columns(changes.after, self._columns, times))


class ComputedTimeDecoder:
    """Appends computed columns to the rows of `decoder`; a row for which one fails is bad."""

    def __init__(self, decoder: TopicDecoder, columns: Sequence[ComputedField]) -> None:
        self._decoder = decoder
        self._columns = tuple(columns)

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        changes = self._decoder.decode(records)
        bad = {one.row: one for one in changes.bad}
        has_row = mask_of(pc.is_in(changes.kind, pa.array([kind.value for kind in _WITH_ROW])))
        after, columns = changes.after, []
        for item in self._columns:
            scope = Scope(lambda column: after.column(column.name), len(changes.kind), 0)
            result = evaluate_rows(unqualified(item.expression), scope)
            columns.append(result.values)
            for row, reason in result.errors.items():
                if has_row[row]:
                    text = f'column "{item.name}": {reason}'
                    bad.setdefault(row, BadRecord(row, RecordFault.COLUMN, text))
        fields = [Field(item.name, item.expression.type) for item in self._columns]
        kinds = changes.kind.to_pylist()
        for row in bad:
            kinds[row] = RecordKind.BAD.value
        return replace(
            changes,
            kind=pa.array(kinds, pa.string()),
            after=_with_columns(after, fields, columns),
            bad=tuple(bad[row] for row in sorted(bad)),
        )


def _with_columns(
    rows: pa.RecordBatch, items: Sequence[Field | MetadataField], columns: Sequence[pa.Array]
) -> pa.RecordBatch:
    for item, column in zip(items, columns, strict=True):
        rows = rows.append_column(item.name, column.cast(arrow_type(item.type)))
    return rows


def _time(records: pa.RecordBatch, changes: ChangeRows, key: str) -> pa.Array:
    if key == SOURCE_TIMESTAMP:
        return changes.source_ts_ms.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    return records.column("timestamp").cast(pa.timestamp("us", "UTC"))
