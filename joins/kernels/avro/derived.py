"""The schema of Avro that a table has: as Flink derives it from the declared columns, or given.

Source: Flink's documentation of the format `avro`, "Data Type Mapping"; names of records are those
of its `AvroSchemaConverter`, so that either reads what the other one writes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from joins.kernels.avro.schema import Program
from joins.plan.formats import SCHEMA, RecordFormat
from joins.plan.plan import Field
from joins.plan.types import Member, TypeName

LEGACY_TIMESTAMPS = "timestamp_mapping.legacy"
_RECORD = "org.apache.flink.avro.generated.record"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MILLIS_DIGITS = 3
_AS_DERIVED = (
    "Correct the format's option schema, or remove it: the schema is derived of the columns then."
)
_PLAIN: Mapping[TypeName, str] = {
    TypeName.BOOLEAN: "boolean",
    TypeName.TINYINT: "int",
    TypeName.SMALLINT: "int",
    TypeName.INT: "int",
    TypeName.BIGINT: "long",
    TypeName.FLOAT: "float",
    TypeName.DOUBLE: "double",
    TypeName.STRING: "string",
    TypeName.BYTES: "bytes",
}


class NoAvroError(ValueError):
    """Columns that Flink's formats of Avro do not have; says which, and what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def is_legacy(form: RecordFormat) -> bool:
    """Whether TIMESTAMP is an instant in milliseconds, and TIMESTAMP_LTZ nothing, as by default."""
    return form.text(LEGACY_TIMESTAMPS, "true").lower() == "true"


def avro_schema(columns: Sequence[Field], *, legacy: bool) -> str:
    """The schema in JSON.

    Args:
        columns: the declared ones.
        legacy: as `is_legacy`.

    Raises:
        NoAvroError: a name or a type is none of Avro.
    """
    members = [Member(item.name, item.type, item.nullable) for item in columns]
    schema = _Derivation(legacy).record(members, _RECORD)
    return json.dumps(schema, separators=(",", ":"))


def schema_to_write(form: RecordFormat, columns: Sequence[Field]) -> str:
    """The schema of the rows that a sink writes: the one that the format names, or the derived one.

    Raises:
        NoAvroError: as `avro_schema`; or rows as they are written are none of the named schema.
    """
    derived = avro_schema(columns, legacy=is_legacy(form))
    named = form.text(SCHEMA)
    if not named:
        return derived
    try:
        is_alike = Program.of(named).reads(Program.of(derived))
    except ValueError as exc:
        raise NoAvroError(f"the schema cannot be read: {exc}", _AS_DERIVED) from exc
    if not is_alike:
        raise NoAvroError(
            f"the schema is not of these columns, whose types are those of {derived[:2_000]}",
            _AS_DERIVED,
        )
    return named


@dataclass(frozen=True, slots=True)
class _Derivation:
    """Schemas as JSON.

    Attributes:
        legacy: as `is_legacy`.
        names: of the records so far.
    """

    legacy: bool
    names: set[str] = field(default_factory=set)

    def record(self, members: Sequence[Member], name: str) -> dict[str, Any]:
        """A row with these fields; `name` is that of the record."""
        if name in self.names:
            raise NoAvroError(
                f'two columns are ROWs that Avro calls "{name.rpartition(".")[2]}"',
                "Name one of them, or a field on the way there, otherwise.",
            )
        self.names.add(name)
        fields = []
        for member in members:
            if not _NAME.fullmatch(member.name):
                raise NoAvroError(
                    f'column "{member.name}" has a name that Avro does not have',
                    "Use letters, digits and _ in its name, with no digit at the beginning.",
                )
            default = {"default": None} if member.nullable else {}
            kind = self._nullable(member, f"{name}_{member.name}")
            fields.append({"name": member.name, "type": kind, **default})
        space, _, own = name.rpartition(".")
        return {"type": "record", "name": own, "namespace": space, "fields": fields}

    def _nullable(self, member: Member, name: str) -> Any:  # noqa: ANN401 - JSON
        kind = self._type(member, name)
        return ["null", kind] if member.nullable else kind

    def _type(self, member: Member, name: str) -> Any:  # noqa: ANN401 - JSON
        kind = member.type
        if kind.name in _PLAIN:
            return _PLAIN[kind.name]
        if kind.name is TypeName.ROW:
            return self.record(kind.members, name)
        if kind.name is TypeName.ARRAY:
            return {"type": "array", "items": self._nullable(kind.members[0], name)}
        if kind.name is TypeName.MAP:
            return {"type": "map", "values": self._nullable(kind.members[1], name)}
        if kind.name is TypeName.DECIMAL:
            scaled = {"precision": kind.precision, "scale": kind.scale}
            return {"type": "bytes", "logicalType": "decimal", **scaled}
        logical = self._time(member)
        carrier = "int" if logical in ("date", "time-millis") else "long"
        return {"type": carrier, "logicalType": logical}

    def _time(self, member: Member) -> str:
        kind, shown = member.type, f'column "{member.name}" is '
        in_millis = kind.precision <= _MILLIS_DIGITS
        if kind.name is TypeName.DATE:
            return "date"
        if kind.name is TypeName.TIME:
            if not in_millis:
                raise NoAvroError(
                    f"{shown}TIME({kind.precision}), and Avro counts milliseconds here",
                    "Declare TIME(3).",
                )
            return "time-millis"
        has_zone = kind.name is TypeName.TIMESTAMP_LTZ
        if self.legacy and (has_zone or not in_millis):
            raise NoAvroError(
                f"{shown}{kind.name}({kind.precision}), and with {LEGACY_TIMESTAMPS} Avro has only "
                "TIMESTAMP(3)",
                f"Set the format's option {LEGACY_TIMESTAMPS} to 'false', or declare TIMESTAMP(3).",
            )
        unit = "millis" if in_millis else "micros"
        return f"{'' if has_zone or self.legacy else 'local-'}timestamp-{unit}"
