"""Topics of JSON rows with a primary key: each record is its row, a null value is none."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.debezium.changes import BadRecord, ChangeRows, RecordFault, RecordKind
from joins.kernels.expressions.casts import mask_of
from joins.kernels.json.rows import json_schema, parse
from joins.plan.plan import Field
from joins.plan.types import arrow_type


class KeyedRowDecoder:
    """Reads the records of one topic; such a topic has no marks of snapshots.

    Args:
        fields: the declared columns.
        primary_key: names of columns.
        deletes_by_null: a null value deletes the row of its key, which is an object of the primary
            key; else it is bad.
    """

    def __init__(
        self, fields: Sequence[Field], primary_key: Sequence[str], *, deletes_by_null: bool
    ) -> None:
        by_name = {item.name: item for item in fields}
        self._fields = tuple(fields)
        self._key = tuple(by_name[name] for name in primary_key)
        self._deletes = deletes_by_null

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        """The changes of `records`, of which `key` and `value` (binary) are read."""
        count = records.num_rows
        is_gone = mask_of(records.column("value").is_null())
        bad: dict[int, tuple[RecordFault, str]] = {}
        rows = np.flatnonzero(~is_gone)
        after = self._read(records.column("value"), rows, self._fields, bad)
        key = after.select([item.name for item in self._key])
        gone = np.flatnonzero(is_gone)
        if len(gone) and not self._deletes:
            bad.update((int(row), (RecordFault.LAYOUT, "its value is null")) for row in gone)
        elif len(gone):
            own = self._read(records.column("key"), gone, self._key, bad, RecordFault.KEY)
            chosen = pa.array(is_gone)
            columns = [
                pc.if_else(chosen, of_key, of_row)
                for of_key, of_row in zip(own.columns, key.columns, strict=True)
            ]
            key = pa.RecordBatch.from_arrays(columns, schema=own.schema)
        kinds = np.where(is_gone, RecordKind.DELETE.value, RecordKind.UPDATE.value)
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
            database=nothing,
            schema=nothing,
            table=nothing,
            bad=tuple(BadRecord(row, *bad[row]) for row in sorted(bad)),
        )

    def _read(
        self,
        texts: pa.Array,
        rows: np.ndarray,
        fields: Sequence[Field],
        bad: dict[int, tuple[RecordFault, str]],
        fault: RecordFault = RecordFault.COLUMN,
    ) -> pa.RecordBatch:
        """The columns `fields` of the objects in `rows`, NULL elsewhere."""
        parsed = parse(texts.take(pa.array(rows)), json_schema(fields))
        for one in parsed.bad:
            bad[int(rows[one.row])] = (fault, one.reason)
        places = rows[parsed.row_index.to_numpy()]
        spread = np.full(len(texts), -1, np.int64)
        spread[places] = np.arange(len(places))
        taken = pa.array(spread, mask=spread < 0)
        columns = []
        for item, values in zip(fields, parsed.batch.columns, strict=True):
            if not item.nullable and values.null_count:
                for row in places[mask_of(values.is_null())].tolist():
                    bad[row] = (fault, f'column "{item.name}": it is missing or NULL')
            columns.append(values.take(taken).cast(arrow_type(item.type)))
        names = [item.name for item in fields]
        return pa.RecordBatch.from_arrays(columns, names=names)
