"""Records of a stream of changes: the row that each brings, or the key whose row it deletes."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.envelope import CapturedColumn, Op, decode
from joins.kernels.debezium.changes import ChangeRows, RecordKind
from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.formats.decoders import RecordColumns, SchemasOf
from joins.kernels.formats.parsed import BadRow, ParsedRows, batch_of
from joins.plan.formats import OF_CHANGES

_ROWS = (RecordKind.READ, RecordKind.CREATE, RecordKind.UPDATE)
_DELETIONS = (RecordKind.DELETE, RecordKind.TOMBSTONE)
_TRUNCATE = "it is a TRUNCATE, which deletes rows whose keys the stream does not name"
_CHANGELOG = "of the captured table"
_UNSENT = "the database did not send the value of a large column, and a stream has no older row"


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The parsed records; `gone` marks the rows that delete their key and have no other column."""

    rows: ParsedRows
    gone: Mask
    source_times: pa.Array  # when the database made each change, in milliseconds


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """How records are read as changes of the rows of `key`; picklable.

    With `are_rows` each record is the newest row of its key, and none deletes. `captured` are the
    columns of a captured table, whose records are those of a changelog.
    """

    columns: RecordColumns
    key: tuple[str, ...]
    are_rows: bool = False
    captured: tuple[CapturedColumn, ...] = ()

    def read(
        self, records: pa.RecordBatch, names: tuple[str, ...], schemas: SchemasOf | None
    ) -> ChangedRows:
        """Columns `names` of the records that bring or delete a row; the others have no row."""
        if self.are_rows:
            rows = self.columns.read(records, names, schemas)
            count = len(rows.row_index)
            return ChangedRows(rows, np.zeros(count, np.bool_), pa.nulls(count, pa.int64()))
        if self.captured:
            return self._captured(records, names)
        changes = self._decoded(records, names, schemas)
        bad = {each.row: each.reason for each in changes.bad}
        truncates = mask_of(pc.equal(changes.kind, RecordKind.TRUNCATE.value))
        bad |= dict.fromkeys(np.flatnonzero(truncates).tolist(), _TRUNCATE)
        if changes.unsent is not None:
            open_rows = np.flatnonzero(changes.unsent.any(axis=1)).tolist()
            bad = {**dict.fromkeys(open_rows, _UNSENT), **bad}
        gone = _is_any(changes, _DELETIONS)
        chosen = gone | _is_any(changes, _ROWS)
        chosen[list(bad)] = False
        index = pa.array(np.flatnonzero(chosen))
        sides = (changes.after, changes.key)
        columns = [sides[name in self.key].column(name).take(index) for name in names]
        schema = pa.schema([(n, c.type) for n, c in zip(names, columns, strict=True)])
        reasons = tuple(BadRow(row, bad[row]) for row in sorted(bad))
        parsed = ParsedRows(batch_of(columns, schema, len(index)), index, reasons)
        return ChangedRows(parsed, gone[chosen], changes.source_ts_ms.take(index))

    def _captured(self, records: pa.RecordBatch, names: tuple[str, ...]) -> ChangedRows:
        decoded = decode(
            records.select(["key", "value", "partition", "offset"]), self.captured, topic=_CHANGELOG
        ).batch
        index = np.flatnonzero(mask_of(pc.not_equal(decoded.column("_op"), Op.WATERMARK.value)))
        changes = decoded.take(pa.array(index))
        parsed = ParsedRows(changes.select(list(names)), pa.array(index), ())
        gone = mask_of(pc.equal(changes.column("_op"), Op.DELETE.value))
        return ChangedRows(parsed, gone, changes.column("_source_ts"))

    def _decoded(
        self, records: pa.RecordBatch, names: tuple[str, ...], schemas: SchemasOf | None
    ) -> ChangeRows:
        """The decoders load numba, so they are imported with the first records."""
        value = self.columns.value
        if value.name not in OF_CHANGES:
            from joins.kernels.topic.rows import KeyedRowDecoder

            keyed = KeyedRowDecoder(self.columns, self.key, deletes_by_null=True, schemas=schemas)
            return keyed.decode(records)
        from joins.kernels.debezium.decoder import DebeziumDecoder
        from joins.kernels.debezium.options import debezium_options
        from joins.kernels.formats.avro_payloads import AvroMemory

        payloads = None
        if value.registry is not None:
            assert schemas is not None, "schemas are asked for"
            schema_of = schemas(value.registry)
            payloads = AvroMemory(schema_of), AvroMemory(schema_of)
        read = [each for each in self.columns.fields if each.name in {*names, *self.key}]
        options = debezium_options(dict(value.options))
        return DebeziumDecoder(read, self.key, options, payloads=payloads).decode(records)


def _is_any(changes: ChangeRows, kinds: tuple[RecordKind, ...]) -> Mask:
    return mask_of(pc.is_in(changes.kind, pa.array([kind.value for kind in kinds])))
