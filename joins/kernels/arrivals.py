"""Arrivals: the records of an event batch behind the scan, as its later stages exchange them.

A row is one living record: the probe's columns that the later stages read, then the record's own,
whose names begin with `_`. The probe's columns are called `c0`, `c1`, … here, and each says in its
metadata which one it is: users name their columns as they like, files and tables may not. So rows
that wait in files may be read by a plan that carries other columns, as long as it finds its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from joins.errors import CheckpointError
from joins.plan import Field
from joins.types import arrow_type

PARTITION = "_partition"
OFFSET = "_offset"
TIMESTAMP = "_timestamp"
VALUE = "_value"
TIME = "_time"
WATERMARK = "_wm"
DUE = "_due"
KEEP = "_keep"

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
"""Behind them in jobs with event time: rowtime, and the operator's watermark before the record."""

WAITING = pa.schema([(DUE, pa.int64()), (KEEP, pa.int64())])
"""Behind them in files of waiting rows: which watermark releases the row, and makes it needless."""


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
    def schema(self) -> pa.Schema:
        """The schema of an arrivals file."""
        columns = [
            pa.field(f"c{at}", arrow_type(item.type), metadata={_NAME: item.name.encode()})
            for at, item in enumerate(self.carried)
        ]
        return pa.schema([*columns, *RECORD, *(EVENT_TIME if self.event_time else ())])

    @property
    def waiting_schema(self) -> pa.Schema:
        """The schema of a file of waiting rows."""
        return pa.schema([*self.schema, *WAITING])

    def batch(self, carried: Sequence[pa.Array], rest: Iterable[pa.Array]) -> pa.RecordBatch:
        """Arrivals of these columns, `carried` in the order of the fields."""
        return pa.RecordBatch.from_arrays([*carried, *rest], schema=self.schema)

    def read(self, stored: pa.Table | pa.RecordBatch, path: str) -> pa.Table | pa.RecordBatch:
        """`stored` with the columns of `schema`; `path` is the file for the message.

        Raises:
            CheckpointError: it lacks one of them.
        """
        places = {
            (item.metadata or {}).get(_NAME, b"").decode(): at
            for at, item in enumerate(stored.schema)
        }
        wanted = [places.get(item.name, -1) for item in self.carried]
        own = self.schema.names[len(wanted) :]
        wanted += [stored.schema.get_field_index(name) for name in own]
        if -1 in wanted:
            missing = [*(item.name for item in self.carried), *own][wanted.index(-1)]
            raise CheckpointError(
                f'file "{path}" of rows that wait has no column "{missing}"',
                hint="It was written for another plan; restore the job's directory as it was.",
            )
        columns = [stored.column(at) for at in wanted]
        return type(stored).from_arrays(columns, schema=self.schema)
