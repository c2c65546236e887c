"""Keys and values of Debezium as changes of the declared columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.compiled import one_at_a_time
from joins.kernels.debezium import tokens
from joins.kernels.debezium.changes import ChangeRows, Faults, RecordFault, RecordKind
from joins.kernels.debezium.columns import MAY_BE_UNSENT, UNKNOWN, ColumnReader
from joins.kernels.debezium.envelopes import (
    CODES,
    KINDS,
    WITH_ROW,
    Changes,
    envelopes,
    flat_rows,
)
from joins.kernels.debezium.options import (
    BITS,
    ConnectType,
    DebeziumOptions,
    UnsentValues,
    ValueLayout,
)
from joins.kernels.debezium.raw import (
    JsonPayloads,
    Members,
    PayloadReader,
    RawValues,
    member_counts,
    members_of,
)
from joins.kernels.expressions.casts import mask_of
from joins.kernels.formats.parsed import batch_of
from joins.kernels.json.plain import ABSENT
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName, array_type, arrow_type

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_BIT_COLUMN = ConnectType("bytes", BITS)
_DELETE, _TOMBSTONE = CODES[RecordKind.DELETE], CODES[RecordKind.TOMBSTONE]
_KEYED = [*WITH_ROW, _DELETE, _TOMBSTONE]
_WITH_BEFORE = [CODES[RecordKind.UPDATE], _DELETE]
_OTHER_ROW = "its key is not that of the row before: the row of that key would stay"
_OTHER_KEY = "it has other columns than the declared primary key"


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Columns of the records at the positions `rows`, which ascend."""

    rows: Rows
    columns: list[pa.Array]

    def spread(self, visible: Mask) -> list[pa.Array]:
        """The columns for all records; NULL without a row or unless `visible`."""
        if len(self.rows) == len(visible) and visible.all():
            return self.columns
        places = np.full(len(visible), -1, np.int64)
        places[self.rows] = np.arange(len(self.rows))
        places[~visible] = -1
        taken = pa.array(places, mask=places < 0)
        return [column.take(taken) for column in self.columns]


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Fields of the rows to read.

    `member` is the schema's field of these rows, empty if the schema is that of the row. `fault` is
    the fault of an unreadable column.
    """

    fields: Sequence[Field]
    member: str
    fault: RecordFault


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads rows of records in groups of one schema; unreadable records go to `faults`.

    `schemas` has the number of each record's schema, `type_of` looks up its type. `unsent` receives
    the records without a column's value; None makes them faults.
    """

    columns: ColumnReader
    schemas: Rows
    type_of: Callable[[int], ConnectType | None]
    faults: Faults
    unsent: dict[str, list[int]] | None = None

    def read(
        self, objects: RawValues, chosen: Mask, place: RowPlace, *, is_bare: bool = False
    ) -> PlacedRows:
        """Columns of the `chosen` objects without a fault; a bare one is the only column."""
        names = [item.name for item in place.fields]
        rows = np.flatnonzero(chosen & self.faults.sound)
        numbers = self.schemas[rows]
        groups = np.unique(numbers).tolist()
        if not groups:
            empty = [pa.nulls(0, arrow_type(item.type)) for item in place.fields]
            return PlacedRows(rows, empty)
        parts, order = [], []
        for number in groups:
            own = rows if len(groups) == 1 else rows[numbers == number]
            connect = self.type_of(number)
            if connect is not None and place.member:
                connect = connect.fields.get(place.member, UNKNOWN)
            values = objects if len(own) == len(objects) else objects.take(own)
            known: Mapping[str, ConnectType] | None = None
            if is_bare:
                members = Members({names[0]: values}, {})
                known = None if connect is None else {names[0]: connect}
            else:
                members = members_of(values, names)
                known = None if connect is None else connect.fields
            reasons = {int(own[at]): said for at, said in members.reasons.items()}
            self.faults.add_all(place.fault, reasons)
            parts.append(
                [
                    self._column(members[item.name], own, item, known, place.fault)
                    for item in place.fields
                ]
            )
            order.append(own)
        if len(parts) == 1:
            return PlacedRows(rows, parts[0])
        back = pa.array(np.argsort(np.concatenate(order)))
        columns = [pa.concat_arrays(each).take(back) for each in zip(*parts, strict=True)]
        return PlacedRows(rows, columns)

    def _column(
        self,
        values: RawValues,
        rows: Rows,
        item: Field,
        fields: Mapping[str, ConnectType] | None,
        fault: RecordFault,
    ) -> pa.Array:
        connect = None if fields is None else fields.get(item.name, UNKNOWN)
        if connect is None and item.name in self.columns.options.bit_columns:
            connect = _BIT_COLUMN
        if not self.columns.options.null_if_missing:
            for at in np.flatnonzero((values.lasts == ABSENT) & self.faults.sound[rows]).tolist():
                self.faults.add(fault, int(rows[at]), f'there is no column "{item.name}"')
        unsent = self.columns.unavailable(values, item.type)
        is_open = self.unsent is not None and item.type.name in MAY_BE_UNSENT
        if self.unsent is not None and is_open and unsent.any():
            self.unsent.setdefault(item.name, []).extend(rows[unsent].tolist())
            values = RawValues(values.firsts, np.where(unsent, ABSENT, values.lasts), values.kept)
        for at in np.flatnonzero(unsent & (not is_open)).tolist():
            said = f'column "{item.name}": the database did not send it'
            self.faults.add(RecordFault.UNAVAILABLE, int(rows[at]), said)
        checked = self.columns.read(values, item.type, connect)
        for at in np.flatnonzero(checked.failed & self.faults.sound[rows]).tolist():
            said = self.columns.refused(values.shown(at), item.type, connect)
            self.faults.add(fault, int(rows[at]), f'column "{item.name}": {said}')
        return checked.values


class DebeziumDecoder:
    """Decodes records of one topic, on one thread; it caches schemas."""

    def __init__(
        self,
        columns: Sequence[Field],
        primary_key: Sequence[str],
        options: DebeziumOptions | None = None,
        *,
        before: Sequence[str] = (),
        payloads: tuple[PayloadReader, PayloadReader] | None = None,
    ) -> None:
        """A decoder of `columns`, the declared ones; records may have more.

        `before` names the columns of `ChangeRows.before`. `payloads` are the readers of keys and of
        values; None for JSON.
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
        """Decodes `key` and `value` (binary); faults of records are in `ChangeRows.bad`."""
        options, faults = self._options, Faults.of(records.num_rows)
        values, keys = (RawValues.of(records.column(name)) for name in ("value", "key"))
        payloads = self._values.unwrapped(values)
        faults.add_all(RecordFault.UNREADABLE, payloads.reasons)
        if options.layout is ValueLayout.ENVELOPE:
            changes = envelopes(payloads, options.table, faults)
        else:
            changes = flat_rows(payloads, options.table, faults)
        rows = RowReader(self._reader, payloads.schemas, self._values.type_of, faults)
        unsent: dict[str, list[int]] | None = None
        if options.unsent_values is UnsentValues.LAST_VERSION:
            unsent = {}
        after = self._after_rows(changes, replace(rows, unsent=unsent))
        key = self._key_columns(self._read_keys(keys, changes, faults), after, changes, rows)
        before = None
        if self._before.fields:
            has_before = np.isin(changes.codes, _WITH_BEFORE) & (changes.before.lasts >= 0)
            before = rows.read(changes.before, has_before, self._before)
        sound = faults.sound
        codes = np.where(sound, changes.codes, CODES[RecordKind.BAD])
        keyed = PlacedRows(np.arange(len(codes)), key).spread(sound & np.isin(codes, _KEYED))
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
            unsent=self._unsent(unsent or {}, len(codes)),
        )

    def _unsent(self, rows: Mapping[str, Sequence[int]], count: int) -> Mask | None:
        if not rows:
            return None
        unsent = np.zeros((count, len(self._after.fields)), np.bool_)
        for at, item in enumerate(self._after.fields):
            unsent[list(rows.get(item.name, ())), at] = True
        return unsent

    def _member(self, name: str) -> str:
        return name if self._options.layout is ValueLayout.ENVELOPE else ""

    def _after_rows(self, changes: Changes, rows: RowReader) -> PlacedRows:
        after = rows.read(changes.after, np.isin(changes.codes, WITH_ROW), self._after)
        for column, values in zip(self._after.fields, after.columns, strict=True):
            if not column.nullable and values.null_count:
                is_open = np.isin(after.rows, (rows.unsent or {}).get(column.name, ()))
                for row in after.rows[mask_of(values.is_null()) & ~is_open].tolist():
                    said = f'column "{column.name}": it is NULL, and declared NOT NULL'
                    rows.faults.add(RecordFault.COLUMN, row, said)
        return after

    def _read_keys(self, keys: RawValues, changes: Changes, faults: Faults) -> PlacedRows:
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
            read = reader.read(values, has_key, self._key, is_bare=True)
        else:
            read = reader.read(values, has_key, self._key)
            others = dict.fromkeys(np.flatnonzero(~own.sound).tolist(), "")
            is_other = member_counts(values, others) != len(self._key.fields)
            own.where(RecordFault.KEY, has_key & is_other, _OTHER_KEY)
        for bad in own.records():
            faults.add(bad.fault, int(rows[bad.row]), f"its key: {bad.reason}")
        return PlacedRows(rows[read.rows], read.columns)

    def _key_columns(
        self, read: PlacedRows, after: PlacedRows, changes: Changes, rows: RowReader
    ) -> list[pa.Array]:
        """The key of all records: the record's key, or else the key columns of its row."""
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
        is_told = np.isin(changes.codes, _WITH_BEFORE) & (changes.before.lasts >= 0)
        lenient = replace(rows, faults=Faults.of(count))
        was = lenient.read(changes.before, is_told, self._old_key).spread(visible)
        columns = []
        for own, of_new, of_old, before in zip(read.spread(visible), new, old, was, strict=True):
            differs = pc.and_(is_both, pc.fill_null(pc.not_equal(own, of_new), True))
            faults.where(RecordFault.KEY, mask_of(differs), "its key is not that of its row")
            key = pc.if_else(pa.array(has_key), own, pc.coalesce(of_new, of_old))
            contradicts = pc.fill_null(pc.not_equal(key, before), False)
            faults.where(RecordFault.KEY, mask_of(contradicts), _OTHER_ROW)
            missing = np.isin(changes.codes, _KEYED) & mask_of(key.is_null())
            faults.where(RecordFault.KEY, missing, "it has no key")
            columns.append(key)
        return columns


def _batch(fields: Sequence[Field], columns: list[pa.Array], count: int) -> pa.RecordBatch:
    schema = pa.schema([(item.name, arrow_type(item.type)) for item in fields])
    return batch_of(columns, schema, count)


def warm_up() -> None:
    by_type = {
        SqlType(TypeName.BIGINT): "1",
        SqlType(TypeName.STRING): '""',
        SqlType(TypeName.DECIMAL, 10, 2): '"AA=="',
        SqlType(TypeName.DATE): '"1970-01-01"',
        SqlType(TypeName.TIME, 6): '"00:00:00"',
        SqlType(TypeName.TIMESTAMP_LTZ, 6): '"1970-01-01T00:00:00Z"',
        SqlType(TypeName.BYTES): '"AA=="',
        array_type(SqlType(TypeName.BOOLEAN)): "[true]",
    }
    names = [f"c{at}" for at in range(len(by_type))]
    row = ",".join(f'"{name}":{value}' for name, value in zip(names, by_type.values(), strict=True))
    value = f'{{"schema":null,"payload":{{"op":"c","after":{{{row}}},"source":{{}}}}}}'
    records = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b'{"c0":1}'] * 2, pa.binary()),
            "value": pa.array([value.encode()] * 2, pa.binary()),
        }
    )
    columns = [Field(name, kind) for name, kind in zip(names, by_type, strict=True)]
    with one_at_a_time():
        DebeziumDecoder(columns, names[:1]).decode(records)
