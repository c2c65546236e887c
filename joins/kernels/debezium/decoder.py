"""Keys and values of Debezium as changes of the declared columns."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.compiled import one_at_a_time
from joins.kernels.debezium import tokens
from joins.kernels.debezium.changes import ChangeRows, RecordFault, RecordKind
from joins.kernels.debezium.columns import ColumnReader
from joins.kernels.debezium.envelopes import (
    CODES,
    KINDS,
    WITH_ROW,
    Changes,
    envelopes,
    flat_rows,
)
from joins.kernels.debezium.faults import Faults
from joins.kernels.debezium.options import DebeziumOptions, ValueLayout
from joins.kernels.debezium.payloads import JsonPayloads, PayloadReader, counts_of
from joins.kernels.debezium.raw import RawValues
from joins.kernels.debezium.row_reader import PlacedRows, RowPlace, RowReader
from joins.kernels.expressions.casts import mask_of
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName, array_type, arrow_type

Mask = npt.NDArray[np.bool_]

_DELETE, _TOMBSTONE = CODES[RecordKind.DELETE], CODES[RecordKind.TOMBSTONE]
_KEYED = [*WITH_ROW, _DELETE, _TOMBSTONE]
_WITH_BEFORE = [CODES[RecordKind.UPDATE], _DELETE]
_OTHER_ROW = "its key is not that of the row before: the row of that key would stay"
_OTHER_KEY = "it has other columns than the declared primary key"


class DebeziumDecoder:
    """Reads the records of one topic, for one thread; it remembers the schemas that it has seen."""

    def __init__(
        self,
        columns: Sequence[Field],
        primary_key: Sequence[str],
        options: DebeziumOptions | None = None,
        *,
        before: Sequence[str] = (),
        payloads: tuple[PayloadReader, PayloadReader] | None = None,
    ) -> None:
        """A decoder.

        Args:
            columns: the declared ones, which a record may have more than.
            primary_key: names of columns; none of a table without a key.
            options: Debezium's defaults if there are none.
            before: the columns of `ChangeRows.before`.
            payloads: take keys and values apart; None: they are JSON.
        """
        by_name = {column.name: column for column in columns}
        self._options = options or DebeziumOptions()
        key = [by_name[name] for name in primary_key]
        self._after = RowPlace(tuple(columns), self._member("after"), RecordFault.COLUMN)
        self._old_key = RowPlace(key, self._member("before"), RecordFault.KEY)
        self._key = RowPlace(key, "", RecordFault.KEY)
        old = [by_name[name] for name in before]
        self._before = RowPlace(old, self._member("before"), RecordFault.COLUMN)
        self._reader = ColumnReader(self._options)
        include = self._options.schema_include
        self._keys, self._values = payloads or (JsonPayloads(include), JsonPayloads(include))

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        """The changes of `records`, of which `key` and `value` (binary) are read.

        It does not raise for data: what is wrong with a record is told in `ChangeRows.bad`.
        """
        options, faults = self._options, Faults.of(records.num_rows)
        values, keys = (RawValues.of(records.column(name)) for name in ("value", "key"))
        payloads = self._values.unwrapped(values)
        faults.add_all(RecordFault.UNREADABLE, payloads.reasons)
        if options.layout is ValueLayout.ENVELOPE:
            changes = envelopes(payloads, options.table, faults)
        else:
            changes = flat_rows(payloads, options.field_prefix, options.table, faults)
        rows = RowReader(self._reader, payloads.schemas, self._values.type_of, faults)
        after = self._after_rows(changes, rows)
        key = self._key_columns(self._read_keys(keys, changes, faults), after, changes, rows)
        before = None
        if self._before.fields:
            has_before = np.isin(changes.codes, _WITH_BEFORE) & (changes.before.lasts >= 0)
            before = rows.read(changes.before, has_before, self._before)
        return self._finished(changes, (key, after, before), faults)

    def _member(self, name: str) -> str:
        return name if self._options.layout is ValueLayout.ENVELOPE else ""

    def _after_rows(self, changes: Changes, rows: RowReader) -> PlacedRows:
        after = rows.read(changes.after, np.isin(changes.codes, WITH_ROW), self._after)
        for column, values in zip(self._after.fields, after.columns, strict=True):
            if not column.nullable and values.null_count:
                for row in after.rows[mask_of(values.is_null())].tolist():
                    said = f'column "{column.name}": it is NULL, and declared NOT NULL'
                    rows.faults.add(RecordFault.COLUMN, row, said)
        return after

    def _read_keys(self, keys: RawValues, changes: Changes, faults: Faults) -> PlacedRows:
        """The primary keys of the records that have a key."""
        is_keyed = np.isin(changes.codes, _KEYED) & faults.sound & (keys.lasts >= 0)
        if not self._key.fields:
            return PlacedRows(np.zeros(0, np.int64), [])
        rows = np.flatnonzero(is_keyed)
        own, chosen = Faults.of(len(rows)), keys.take(rows)
        payloads = self._keys.unwrapped(chosen)
        own.add_all(RecordFault.KEY, payloads.reasons)
        reader = RowReader(self._reader, payloads.schemas, self._keys.type_of, own)
        values, has_key = payloads.values, payloads.values.lasts >= 0
        if len(self._key.fields) == 1 and not (values.kinds() == tokens.OBJECT).any():
            read = reader.read_bare(values, has_key, self._key)
        else:
            read = reader.read(values, has_key, self._key)
            others = dict.fromkeys(np.flatnonzero(~own.sound).tolist(), "")
            is_other = counts_of(values, others) != len(self._key.fields)
            own.where(RecordFault.KEY, has_key & is_other, _OTHER_KEY)
        for bad in own.records():
            faults.add(bad.fault, int(rows[bad.row]), f"its key: {bad.reason}")
        return PlacedRows(rows[read.rows], read.columns)

    def _key_columns(
        self, read: PlacedRows, after: PlacedRows, changes: Changes, rows: RowReader
    ) -> list[pa.Array]:
        """The key of all records: of the record's key, or else of its row."""
        faults, count = rows.faults, len(changes.codes)
        visible = np.ones(count, np.bool_)
        has_key, is_new = np.zeros(count, np.bool_), np.isin(changes.codes, WITH_ROW)
        has_key[read.rows] = True
        names = [item.name for item in self._after.fields]
        chosen = [after.columns[names.index(item.name)] for item in self._key.fields]
        new = PlacedRows(after.rows, chosen).spread(visible)
        is_old = (changes.codes == _DELETE) & ~has_key & (changes.before.lasts >= 0)
        old = rows.read(changes.before, is_old, self._old_key).spread(visible)
        is_both = pa.array(has_key & is_new)
        was = self._keys_before(changes, has_key, rows).spread(visible)
        columns = []
        for own, of_new, of_old, before in zip(read.spread(visible), new, old, was, strict=True):
            contradicts = pc.fill_null(pc.not_equal(own, before), False)
            faults.where(RecordFault.KEY, mask_of(contradicts), _OTHER_ROW)
            differs = pc.and_(is_both, pc.fill_null(pc.not_equal(own, of_new), True))
            faults.where(RecordFault.KEY, mask_of(differs), "its key is not that of its row")
            key = pc.if_else(pa.array(has_key), own, pc.coalesce(of_new, of_old))
            missing = np.isin(changes.codes, _KEYED) & mask_of(key.is_null())
            faults.where(RecordFault.KEY, missing, "it has no key")
            columns.append(key)
        return columns

    def _keys_before(self, changes: Changes, has_key: Mask, rows: RowReader) -> PlacedRows:
        is_told = np.isin(changes.codes, _WITH_BEFORE) & has_key & (changes.before.lasts >= 0)
        lenient = replace(rows, faults=Faults.of(len(changes.codes)))
        return lenient.read(changes.before, is_told, self._old_key)

    def _finished(
        self,
        changes: Changes,
        parts: tuple[list[pa.Array], PlacedRows, PlacedRows | None],
        faults: Faults,
    ) -> ChangeRows:
        """What is left, without that of bad records."""
        key, after, before = parts
        sound = faults.sound
        codes = np.where(sound, changes.codes, CODES[RecordKind.BAD])
        everywhere = np.arange(len(codes))
        keyed = PlacedRows(everywhere, key).spread(sound & np.isin(codes, _KEYED))
        return ChangeRows(
            kind=pa.array([kind.value for kind in KINDS], pa.string()).take(pa.array(codes)),
            key=_batch(self._key.fields, keyed, len(codes)),
            after=_batch(self._after.fields, after.spread(sound), len(codes)),
            before=None
            if before is None
            else _batch(self._before.fields, before.spread(sound), len(codes)),
            snapshot=changes.source.snapshot,
            source_ts_ms=changes.source.ts_ms,
            position=changes.source.position,
            connector=changes.source.connector,
            database=changes.source.database,
            schema=changes.source.schema,
            table=changes.source.table,
            bad=faults.records(),
        )


def _batch(fields: Sequence[Field], columns: list[pa.Array], count: int) -> pa.RecordBatch:
    if not fields:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
    schema = pa.schema([(item.name, arrow_type(item.type)) for item in fields])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def warm_up() -> None:
    """Compile, or read what another process of this node has compiled."""
    kinds = (
        SqlType(TypeName.BIGINT),
        SqlType(TypeName.STRING),
        SqlType(TypeName.DECIMAL, 10, 2),
        SqlType(TypeName.DATE),
        SqlType(TypeName.TIME, 6),
        SqlType(TypeName.TIMESTAMP_LTZ, 6),
        SqlType(TypeName.BYTES),
        array_type(SqlType(TypeName.BOOLEAN)),
    )
    values = [
        "1",
        '""',
        '"AA=="',
        '"1970-01-01"',
        '"00:00:00"',
        '"1970-01-01T00:00:00Z"',
        '"AA=="',
        "[true]",
    ]
    names = [f"c{at}" for at in range(len(kinds))]
    row = ",".join(f'"{name}":{value}' for name, value in zip(names, values, strict=True))
    value = f'{{"schema":null,"payload":{{"op":"c","after":{{{row}}},"source":{{}}}}}}'
    records = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b'{"c0":1}'] * 2, pa.binary()),
            "value": pa.array([value.encode()] * 2, pa.binary()),
        }
    )
    columns = [Field(name, kind) for name, kind in zip(names, kinds, strict=True)]
    with one_at_a_time():
        DebeziumDecoder(columns, names[:1]).decode(records)
