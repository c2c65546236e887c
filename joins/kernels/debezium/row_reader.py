"""Rows in JSON as declared columns: those of one schema are read at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.debezium.changes import RecordFault
from joins.kernels.debezium.columns import UNKNOWN, ColumnReader
from joins.kernels.debezium.connect import BITS, ConnectType
from joins.kernels.debezium.faults import Faults
from joins.kernels.debezium.raw import RawValues, members_of
from joins.kernels.json.plain import ABSENT
from joins.plan.plan import Field
from joins.plan.types import arrow_type

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_BIT_COLUMN = ConnectType("bytes", BITS)


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Columns of some records.

    Attributes:
        rows: the positions of these records, ascending.
    """

    rows: Rows
    columns: list[pa.Array]

    def spread(self, visible: Mask) -> list[pa.Array]:
        """The columns for all records: NULL of those that are not here, or not `visible`."""
        if len(self.rows) == len(visible) and visible.all():
            return self.columns
        places = np.full(len(visible), -1, np.int64)
        places[self.rows] = np.arange(len(self.rows))
        places[~visible] = -1
        taken = pa.array(places, mask=places < 0)
        return [column.take(taken) for column in self.columns]


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Which rows are read, and what they are called.

    Attributes:
        fields: the columns.
        member: of the schema, that these rows have; empty if it is that of the row itself.
        fault: of a column that cannot be read.
    """

    fields: Sequence[Field]
    member: str
    fault: RecordFault


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads rows of records.

    Attributes:
        columns: reads the values.
        schemas: the number of each record's schema.
        type_of: the schema of a number, None if there is none.
        faults: gets the records whose rows cannot be read.
    """

    columns: ColumnReader
    schemas: Rows
    type_of: Callable[[int], ConnectType | None]
    faults: Faults

    def read(self, objects: RawValues, chosen: Mask, place: RowPlace) -> PlacedRows:
        """The columns of the `objects`, one a record, that are `chosen` and have no fault yet."""

        def of_group(rows: Rows, connect: ConnectType | None) -> list[pa.Array]:
            names = [item.name for item in place.fields]
            own = objects if len(rows) == len(objects) else objects.take(rows)
            members = members_of(own, names)
            self.faults.add_all(
                place.fault, {int(rows[at]): said for at, said in members.reasons.items()}
            )
            known = None if connect is None else connect.fields
            return [
                self._column(members[item.name], rows, item, (known, place.fault))
                for item in place.fields
            ]

        return self._by_schema(chosen, place, of_group)

    def read_bare(self, values: RawValues, chosen: Mask, place: RowPlace) -> PlacedRows:
        """The same of values that are the only column themselves."""
        (item,) = place.fields

        def of_group(rows: Rows, connect: ConnectType | None) -> list[pa.Array]:
            known = None if connect is None else {item.name: connect}
            return [self._column(values.take(rows), rows, item, (known, place.fault))]

        return self._by_schema(chosen, place, of_group)

    def _by_schema(
        self,
        chosen: Mask,
        place: RowPlace,
        read: Callable[[Rows, ConnectType | None], list[pa.Array]],
    ) -> PlacedRows:
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
            parts.append(read(own, connect))
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
        more: tuple[Mapping[str, ConnectType] | None, RecordFault],
    ) -> pa.Array:
        """One column of the records `rows`; `more` are the types in their schema, and the fault."""
        fields, fault = more
        connect = None if fields is None else fields.get(item.name, UNKNOWN)
        if connect is None and item.name in self.columns.options.bit_columns:
            connect = _BIT_COLUMN
        if not self.columns.options.null_if_missing:
            for at in np.flatnonzero((values.lasts == ABSENT) & self.faults.sound[rows]).tolist():
                self.faults.add(fault, int(rows[at]), f'there is no column "{item.name}"')
        for at in np.flatnonzero(self.columns.unavailable(values, item.type)).tolist():
            said = f'column "{item.name}": the database did not send it'
            self.faults.add(RecordFault.UNAVAILABLE, int(rows[at]), said)
        checked = self.columns.read(values, item.type, connect)
        for at in np.flatnonzero(checked.failed & self.faults.sound[rows]).tolist():
            said = self.columns.refused(values.shown(at), item.type, connect)
            self.faults.add(fault, int(rows[at]), f'column "{item.name}": {said}')
        return checked.values
