"""Topics of rows without Debezium: with a primary key, without one, with times of records."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.debezium.changes import BadRecord, ChangeRows, RecordFault, RecordKind
from joins.kernels.expressions.casts import mask_of
from joins.kernels.formats.decoders import RecordColumns, SchemasOf, one_a_record
from joins.kernels.formats.parsed import ParsedRows
from joins.plan.formats import SOURCE_TIMESTAMP
from joins.plan.plan import COORDINATES, Field, MetadataField
from joins.plan.types import arrow_type


class TopicDecoder(Protocol):
    """What makes changes of records."""

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        """The changes of `records`, of which `key` and `value` (binary) are read."""


class PlacedRowDecoder:
    """Gives the rows of `decoder`, which know no key, partition and offset of their records."""

    def __init__(self, decoder: TopicDecoder) -> None:
        self._decoder = decoder

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        """The changes of `records`; their key is `COORDINATES`, the last columns of the rows."""
        changes = self._decoder.decode(records)
        places = (records.column("partition"), records.column("offset"))
        columns = [
            place.cast(arrow_type(item.type))
            for place, item in zip(places, COORDINATES, strict=True)
        ]
        names = [item.name for item in COORDINATES]
        after = pa.RecordBatch.from_arrays(
            [*changes.after.columns, *columns], names=[*changes.after.schema.names, *names]
        )
        return replace(changes, key=after.select(names), after=after)


_NO_ROW = "its value is null, which is no row: this table's rows are not deleted by records"


class KeyedRowDecoder:
    """Reads the records of one topic; such a topic has no marks of snapshots.

    Args:
        columns: the declared ones.
        primary_key: names of columns.
        deletes_by_null: a null value deletes the row of its key, which is the primary key; else it
            is bad.
        schemas: of the registries of schemas.
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
        """The changes of `records`, of which `key` and `value` (binary) are read."""
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
            self._refuse_other_keys(own, key, bad)
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

    @staticmethod
    def _refuse_other_keys(
        own: pa.RecordBatch, of_rows: pa.RecordBatch, bad: dict[int, tuple[RecordFault, str]]
    ) -> None:
        for of_key, of_row in zip(own.columns, of_rows.columns, strict=True):
            for row in np.flatnonzero(mask_of(pc.not_equal(of_key, of_row))).tolist():
                bad.setdefault(row, (RecordFault.KEY, "its key is not that of its row"))

    def _keys(
        self, keys: pa.Array, rows: np.ndarray, bad: dict[int, tuple[RecordFault, str]]
    ) -> pa.RecordBatch:
        """The primary keys of the `rows`, NULL elsewhere."""
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
    """The columns `fields` of what was read of `rows`, NULL in the other rows of `count`.

    Beside them what is wrong with rows.
    """
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
    """Gives the rows of `decoder` the `columns`, as their last ones, deleted rows too."""

    def __init__(self, decoder: TopicDecoder, columns: Sequence[MetadataField]) -> None:
        self._decoder = decoder
        self._columns = tuple(columns)

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        """The changes of `records`, of which `timestamp` is read, too."""
        changes = self._decoder.decode(records)
        columns = [
            _time(records, changes, each.key).cast(arrow_type(each.type)) for each in self._columns
        ]
        names = [each.name for each in self._columns]
        after = pa.RecordBatch.from_arrays(
            [*changes.after.columns, *columns], names=[*changes.after.schema.names, *names]
        )
        return replace(changes, after=after)


def _time(records: pa.RecordBatch, changes: ChangeRows, key: str) -> pa.Array:
    if key == SOURCE_TIMESTAMP:
        return changes.source_ts_ms.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    return records.column("timestamp").cast(pa.timestamp("us", "UTC"))
