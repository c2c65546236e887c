"""Topics of rows without a primary key: each record is a row of its own, known by its place."""

from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from joins.kernels.debezium.changes import ChangeRows
from joins.plan.plan import COORDINATES
from joins.plan.types import arrow_type


class RowDecoder(Protocol):
    """What makes rows of records."""

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        """The changes of `records`."""


class PlacedRowDecoder:
    """Gives the rows of `decoder`, which know no key, partition and offset of their records."""

    def __init__(self, decoder: RowDecoder) -> None:
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
