"""Records of Avro as declared columns."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from joins.kernels.avro.payloads import AvroMemory, OneSchema, WriterSchema
from joins.kernels.avro.schema import Program
from joins.kernels.debezium.changes import RecordFault
from joins.kernels.debezium.columns import ColumnReader
from joins.kernels.debezium.faults import Faults
from joins.kernels.debezium.options import DebeziumOptions
from joins.kernels.debezium.raw import RawValues
from joins.kernels.debezium.row_reader import RowPlace, RowReader
from joins.kernels.formats.parsed import BadRow, ParsedRows
from joins.plan.plan import Field
from joins.plan.types import arrow_type


class AvroRows:
    """Reads values of one topic, for one thread; it remembers the schemas that it has seen."""

    def __init__(
        self,
        columns: Sequence[Field],
        schema: WriterSchema | str,
        *,
        null_if_missing: bool = True,
    ) -> None:
        """A reader of the declared `columns`.

        Args:
            columns: those of which a record has some, by name.
            schema: asks for the schema of a number, and what it raises goes through; or the schema
                of all values, which are without Confluent's header then.
            null_if_missing: a column that a record does not have is NULL; else the record is bad.
        """
        self._columns = tuple(columns)
        self._memory: OneSchema | AvroMemory = (
            OneSchema(Program.of(schema)) if isinstance(schema, str) else AvroMemory(schema)
        )
        self._reader = ColumnReader(DebeziumOptions(null_if_missing=null_if_missing))

    def parse(self, values: pa.Array) -> ParsedRows:
        """The rows of `values` (binary, nullable), as `parse` gives those of JSON."""
        raw = RawValues.of(values)
        faults = Faults.of(len(raw))
        payloads = self._memory.unwrapped(raw)
        faults.add_all(RecordFault.UNREADABLE, payloads.reasons)
        missing = np.flatnonzero(payloads.values.kinds() == 0)
        faults.add_all(RecordFault.UNREADABLE, dict.fromkeys(missing.tolist(), "it has no value"))
        rows = RowReader(self._reader, payloads.schemas, self._memory.type_of, faults)
        chosen = np.ones(len(raw), np.bool_)
        place = RowPlace(self._columns, "", RecordFault.COLUMN)
        read = rows.read(payloads.values, chosen, place)
        good = faults.sound[read.rows]
        schema = pa.schema([(item.name, arrow_type(item.type)) for item in self._columns])
        if self._columns:
            batch = pa.RecordBatch.from_arrays(read.columns, schema=schema)
        else:
            empty = pa.array([{}] * len(read.rows), pa.struct([]))
            batch = pa.RecordBatch.from_struct_array(empty)
        bad = tuple(BadRow(each.row, each.reason) for each in faults.records())
        return ParsedRows(batch.filter(pa.array(good)), pa.array(read.rows[good]), bad)
