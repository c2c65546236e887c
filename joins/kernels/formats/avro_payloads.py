"""Avro as payloads in JSON with the types of their schemas, and as declared columns.

Source: Confluent, "Formats, serializers and deserializers", "Wire format": a zero byte, the id of
the schema in four bytes, and Avro.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.compiled import one_at_a_time
from joins.kernels.debezium import tokens
from joins.kernels.debezium.changes import Faults, RecordFault
from joins.kernels.debezium.columns import ColumnReader
from joins.kernels.debezium.decoder import RowPlace, RowReader
from joins.kernels.debezium.options import ConnectType, DebeziumOptions
from joins.kernels.debezium.raw import NO_SCHEMA, Payloads, RawValues
from joins.kernels.formats.avro_schema import DEEPEST, Program
from joins.kernels.formats.avro_transcode import DONE, FULL, Machine, write_rows
from joins.kernels.formats.parsed import BadRow, ParsedRows, batch_of
from joins.kernels.json.plain import ABSENT
from joins.plan.plan import Field
from joins.plan.types import arrow_type

Rows = npt.NDArray[np.int64]

WriterSchema = Callable[[int], str | None]
"""Gives the schema of an id in JSON; None if it does not exist; ValueError if unreadable."""

_HEADER_BYTES = 5
_HEX_GUID = re.compile(rb"[0-9a-f]{32}")
_ROOM = 8  # bytes of JSON for a byte of Avro, to begin with
_ROW_ROOM = 64
_LARGEST = 1 << 26  # of one value in JSON


@dataclass(slots=True)
class AvroMemory:
    """Values in the wire format; caches their schemas. Errors of `schema_of` pass through."""

    schema_of: WriterSchema
    _programs: dict[int, Program | str] = field(default_factory=dict)

    def unwrapped(self, values: RawValues) -> Payloads:
        schemas = np.full(len(values), NO_SCHEMA, np.int64)
        tokens.schema_ids(values.firsts, values.lasts, schemas)
        firsts, lasts = values.firsts.copy(), np.full(len(values), ABSENT, np.int64)
        reasons: dict[int, str] = {}
        kept: tuple[object, ...] = ()
        odd = np.flatnonzero((schemas == NO_SCHEMA) & (values.lasts >= 0))
        for row in odd.tolist():
            value = values.at(row)
            shown = value[:5].hex(" ") or "nothing"
            reasons[row] = _other_form(value) or (
                f"it is not in Confluent's wire format, a byte 0 and four bytes of the schema's "
                f"id, but begins with {shown}; ids in a header of the record are not read"
            )
        for number in np.unique(schemas).tolist():
            if number == NO_SCHEMA:
                continue
            rows = np.flatnonzero(schemas == number)
            program = self._program(number)
            if isinstance(program, str):
                others = ((row, _other_form(values.at(row))) for row in rows.tolist())
                reasons.update((row, form or program) for row, form in others)
                continue
            written = _written(values.take(rows), program)
            firsts[rows], lasts[rows] = written.firsts, written.lasts
            kept += written.kept
            for row in rows[written.lasts == ABSENT].tolist():
                other = _other_form(values.at(row))
                reasons[row] = other or f"it is not what its schema {number} says"
        return Payloads(RawValues(firsts, lasts, kept), schemas, reasons)

    def type_of(self, number: int) -> ConnectType | None:
        known = self._programs.get(number)
        return known.connect if isinstance(known, Program) else None

    def _program(self, number: int) -> Program | str:
        known = self._programs.get(number)
        if known is None:
            try:
                schema = self.schema_of(number)
                if schema is None:
                    return f"the registry does not have schema {number}"  # it may come
                known = Program.of(schema)
            except ValueError as exc:
                known = f"its schema {number} cannot be read: {exc}"
            self._programs[number] = known
        return known


def _other_form(value: bytes) -> str | None:
    """Describes the wire format of another registry or serializer; None if it is not recognised."""
    if len(value) >= 18 and value[0] == 3 and value[1] in (0, 5):
        schema = UUID(bytes=value[2:18])
        return (
            f"it is in the wire format of AWS Glue, with schema version {schema}, not Confluent's"
        )
    if len(value) >= 17 and value[0] == 1:
        schema = UUID(bytes=value[1:17])
        return (
            f"it names its schema by the GUID {schema}, not by Confluent's id of four bytes; "
            "let the producer write ids"
        )
    if value[:4] == bytes(4) and _HEX_GUID.match(value, 4):
        schema = UUID(value[4:36].decode())
        return (
            f"it is in the wire format of Azure's registry, with schema {schema}, not Confluent's"
        )
    if len(value) >= 9 and value[:5] == bytes(5):
        number = int.from_bytes(value[1:9], "big")
        return (
            f"it names its schema by the id {number} of eight bytes, as Apicurio's serializers do; "
            "set apicurio.registry.id-handler of the producer to the Legacy4ByteIdHandler"
        )
    return None


@dataclass(frozen=True, slots=True)
class OneSchema:
    """Values of one schema, without a header."""

    program: Program

    def unwrapped(self, values: RawValues) -> Payloads:
        there = np.flatnonzero(values.lasts >= 0)
        firsts, lasts = values.firsts.copy(), np.full(len(values), ABSENT, np.int64)
        written = _written(values.take(there), self.program, header=0)
        firsts[there], lasts[there] = written.firsts, written.lasts
        broken = there[written.lasts == ABSENT].tolist()
        reasons = dict.fromkeys(broken, "it is not what the schema of the declared columns says")
        raw = RawValues(firsts, lasts, written.kept)
        return Payloads(raw, np.zeros(len(values), np.int64), reasons)

    def type_of(self, _: int) -> ConnectType | None:
        return self.program.connect


def warm_up() -> None:
    values = RawValues.of(pa.array([bytes(_HEADER_BYTES + 1)], pa.binary()))
    with one_at_a_time():
        AvroMemory(lambda _: '"int"').unwrapped(values)


def _written(values: RawValues, program: Program, header: int = _HEADER_BYTES) -> RawValues:
    """Values of one schema as JSON, after a header of `header` bytes; `ABSENT` if broken."""
    starts, count = values.firsts + header, len(values)
    texts = np.frombuffer(program.texts, np.uint8)
    size = int((values.lasts - starts).sum()) * _ROOM + count * (len(texts) + _ROW_ROOM)
    out = np.empty(size, np.uint8)
    kept: tuple[object, ...] = ()
    stack = np.empty((DEEPEST, 3), np.int64)
    firsts, lasts = np.zeros(count, np.int64), np.full(count, ABSENT, np.int64)
    bounds, row = np.zeros(count + 1, np.int64), 0
    while True:
        machine = Machine(program.nodes, program.parts, texts.ctypes.data, out, stack)
        stop, outcome = write_rows(starts[row:], values.lasts[row:], machine, bounds[row:])
        stop += row
        kept = (*kept, out) if stop > row else kept
        firsts[row:stop] = bounds[row:stop] + out.ctypes.data
        lasts[row:stop] = bounds[row + 1 : stop + 1] + out.ctypes.data
        row = stop
        if outcome == DONE:
            return RawValues(firsts, lasts, kept)
        if outcome == FULL and (bounds[row] or len(out) < _LARGEST):
            out = np.empty(min(max(2 * len(out), _ROW_ROOM), _LARGEST), np.uint8)
            bounds[row] = 0  # what is written stays where it is, the rest goes elsewhere
        else:
            bounds[row + 1] = bounds[row]
            row += 1


class AvroRows:
    """Reads the columns of a topic's values, on one thread; it caches schemas."""

    def __init__(
        self,
        columns: Sequence[Field],
        schema: WriterSchema | str,
        *,
        null_if_missing: bool = True,
    ) -> None:
        """A reader of `columns`, which match the record's fields by name.

        `schema` looks up the schema of an id, or is the schema of all values, which then have no
        header. With `null_if_missing` a missing column is NULL, else the record is bad.
        """
        self._columns = tuple(columns)
        self._memory: OneSchema | AvroMemory = (
            OneSchema(Program.of(schema)) if isinstance(schema, str) else AvroMemory(schema)
        )
        self._reader = ColumnReader(DebeziumOptions(null_if_missing=null_if_missing))

    def parse(self, values: pa.Array) -> ParsedRows:
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
        batch = batch_of(read.columns, schema, len(read.rows))
        bad = tuple(BadRow(each.row, each.reason) for each in faults.records())
        return ParsedRows(batch.filter(pa.array(good)), pa.array(read.rows[good]), bad)
