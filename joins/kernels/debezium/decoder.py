"""Keys and values in Debezium's JSON as changes of the declared columns."""

from collections.abc import Sequence

import pyarrow as pa

from joins.kernels.debezium.changes import ChangeRows
from joins.kernels.debezium.options import DebeziumOptions
from joins.plan.plan import Field


class DebeziumDecoder:
    """Reads the records of one topic, for one thread; it remembers the schemas that it has seen."""

    def __init__(
        self,
        columns: Sequence[Field],
        primary_key: Sequence[str],
        options: DebeziumOptions | None = None,
        *,
        before: Sequence[str] = (),
    ) -> None:
        """A decoder.

        Args:
            columns: the declared ones, which a record may have more than.
            primary_key: names of columns; none of a table without a key.
            options: Debezium's defaults if there are none.
            before: the columns of `ChangeRows.before`.
        """
        self._columns = tuple(columns)
        self._primary_key = tuple(primary_key)
        self._options = options or DebeziumOptions()
        self._before = tuple(before)

    def decode(self, records: pa.RecordBatch) -> ChangeRows:
        """The changes of `records`, of which `key` and `value` (binary) are read.

        It does not raise for data: what is wrong with a record is told in `ChangeRows.bad`.
        """
        raise NotImplementedError
