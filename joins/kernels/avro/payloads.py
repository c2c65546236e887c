"""Keys and values in Confluent's wire format as payloads in JSON, with the types of their schemas.

A value is a zero byte, the number of its schema in four bytes, and Avro.

Source: Confluent, "Formats, serializers and deserializers", "Wire format".
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.avro.schema import DEEPEST, Program
from joins.kernels.avro.transcode import DONE, FULL, Machine, write_rows
from joins.kernels.compiled import one_at_a_time
from joins.kernels.debezium import tokens
from joins.kernels.debezium.connect import ConnectType
from joins.kernels.debezium.payloads import NO_SCHEMA, Payloads
from joins.kernels.debezium.raw import RawValues
from joins.kernels.json.plain import ABSENT

Rows = npt.NDArray[np.int64]

WriterSchema = Callable[[int], str | None]
"""The schema of that number in JSON; None if there is none; ValueError if it is not read."""

_HEADER_BYTES = 5
_HEX_GUID = re.compile(rb"[0-9a-f]{32}")
_ROOM = 8  # bytes of JSON for a byte of Avro, to begin with
_ROW_ROOM = 64
_LARGEST = 1 << 26  # of one value in JSON


@dataclass(slots=True)
class AvroMemory:
    """The schemas that were seen in the keys, or the values, of a topic.

    Attributes:
        schema_of: asks for one; what it raises goes through.
    """

    schema_of: WriterSchema
    _programs: dict[int, Program | str] = field(default_factory=dict)

    def unwrapped(self, values: RawValues) -> Payloads:
        """The payloads of `values`, and the numbers of their schemas."""
        schemas = np.full(len(values), NO_SCHEMA, np.int64)
        tokens.schema_ids(values.firsts, values.lasts, schemas)
        firsts, lasts = values.firsts.copy(), np.full(len(values), ABSENT, np.int64)
        reasons: dict[int, str] = {}
        kept: tuple[object, ...] = ()
        odd = np.flatnonzero((schemas == NO_SCHEMA) & (values.lasts >= 0))
        reasons.update((row, _form_of(values.at(row))) for row in odd.tolist())
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
                    return f"nobody has schema {number}"  # it may come
                known = Program.of(schema)
            except ValueError as exc:
                known = f"its schema {number} cannot be read: {exc}"
            self._programs[number] = known
        return known


def _form_of(value: bytes) -> str:
    shown = value[:5].hex(" ") or "nothing"
    return _other_form(value) or (
        f"it is not in Confluent's wire format, a byte 0 and four bytes of the schema's id, but "
        f"begins with {shown}; ids in a header of the record are not read"
    )


def _other_form(value: bytes) -> str | None:
    """What another registry's, or another, serializer has written; None if that is not seen."""
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
    """Values of one schema, which they do not name.

    Attributes:
        program: of the schema.
    """

    program: Program

    def unwrapped(self, values: RawValues) -> Payloads:
        """The payloads of `values`, all of the schema 0."""
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
    """Values of one schema as JSON, behind a header of so many bytes; `ABSENT` of broken ones."""
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
