"""Arrivals: the records of an event batch behind the scan, as its later stages exchange them.

A row is one living record: its own columns, whose names begin with `_`, then the probe's columns
that the later stages read. The probe's columns are called `c0`, `c1`, … here, and each says in its
metadata which one it is: users name their columns as they like, files and tables may not. So rows
that wait in files may be read by a plan that carries other columns, as long as it finds its own.
"""

from dataclasses import dataclass

import pyarrow as pa

from joins.plan.errors import CheckpointError
from joins.plan.plan import Field
from joins.plan.types import arrow_type

PARTITION = "_partition"
OFFSET = "_offset"
TIMESTAMP = "_timestamp"
VALUE = "_value"
TIME = "_time"
WATERMARK = "_wm"

_NAME = b"column"
RECORD = pa.schema(
    [
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        (TIMESTAMP, pa.timestamp("us", tz="UTC")),
        (VALUE, pa.binary()),
    ]
)
"""The record's own columns, under these names."""

EVENT_TIME = pa.schema([(TIME, pa.int64()), (WATERMARK, pa.int64())])
"""Next to them in jobs with event time: rowtime, and the operator's watermark before the record."""


@dataclass(frozen=True, slots=True)
class ArrivalColumns:
    """Which columns arrivals have.

    Attributes:
        carried: the probe's columns that are read behind the scan.
        event_time: whether `EVENT_TIME` follows.
    """

    carried: tuple[Field, ...]
    event_time: bool

    @property
    def own(self) -> pa.Schema:
        return pa.schema([*RECORD, *(EVENT_TIME if self.event_time else ())])

    @property
    def schema(self) -> pa.Schema:
        columns = [
            pa.field(f"c{at}", arrow_type(item.type), metadata={_NAME: item.name.encode()})
            for at, item in enumerate(self.carried)
        ]
        return pa.schema([*self.own, *columns])

    def carried_of(self, arrivals: pa.RecordBatch) -> dict[str, pa.Array]:
        columns = arrivals.columns[len(self.own) :]
        return {item.name: column for item, column in zip(self.carried, columns, strict=True)}

    def read(self, stored: pa.RecordBatch, path: object) -> pa.RecordBatch:
        """`stored` with the columns of `schema`; `path` is the file for the message.

        Raises:
            CheckpointError: it lacks one of them.
        """
        places = {
            (item.metadata or {}).get(_NAME, b"").decode(): at
            for at, item in enumerate(stored.schema)
        }
        names = [*self.own.names, *(item.name for item in self.carried)]
        numbers = [stored.schema.get_field_index(name) for name in self.own.names]
        numbers += [places.get(item.name, -1) for item in self.carried]
        if -1 in numbers:
            raise CheckpointError(
                f'file "{path}" of records that wait has no column "{names[numbers.index(-1)]}"',
                hint="It was written for another plan; restore the job's directory as it was.",
            )
        columns = [stored.column(at) for at in numbers]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """`rows` with these values in the column `name`, which comes last if it is new."""
    at = rows.schema.get_field_index(name)
    if at < 0:
        return rows.append_column(name, values)
    return rows.set_column(at, rows.schema.field(at), values)
