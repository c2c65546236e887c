"""Topics whose rows have columns that no key and no value has: the times of their records."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from joins.kernels.debezium.changes import ChangeRows
from joins.kernels.topic.rows_by_place import TopicDecoder
from joins.plan.formats import SOURCE_TIMESTAMP
from joins.plan.plan import MetadataField
from joins.plan.types import arrow_type


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
