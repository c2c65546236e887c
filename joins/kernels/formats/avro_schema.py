"""Schemas of Avro: read into programs for the compiled writer, and derived from declared columns.

Source: Avro 1.12, "Schema declaration"; `connect.*` of Confluent's AvroConverter; Flink's format
`avro`, "Data Type Mapping", and the record names of its `AvroSchemaConverter`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from joins.kernels.debezium.options import (
    DECIMAL,
    DOUBLE_BITS,
    FLOAT_BITS,
    SOURCE_TYPE,
    UNION_TYPE,
    ConnectType,
)
from joins.plan.formats import SCHEMA, RecordFormat
from joins.plan.plan import Field
from joins.plan.types import Member, TypeName

Rows = npt.NDArray[np.int64]

NULL, BOOLEAN, LONG, FLOAT, DOUBLE, BYTES, STRING, RECORD, ENUM, ARRAY, MAP, UNION, FIXED = range(
    13
)
KIND, FIRST, COUNT = range(3)
"""Columns of `Program.nodes`."""

_PLAIN = {
    "null": (NULL, "null"),
    "boolean": (BOOLEAN, "boolean"),
    "int": (LONG, "int32"),
    "long": (LONG, "int64"),
    "float": (FLOAT, FLOAT_BITS),
    "double": (DOUBLE, DOUBLE_BITS),
    "bytes": (BYTES, "bytes"),
    "string": (STRING, "string"),
}
_LOGICAL = {
    ("bytes", "decimal"): DECIMAL,
    ("int32", "date"): "io.debezium.time.Date",
    ("int32", "time-millis"): "io.debezium.time.Time",
    ("int64", "time-micros"): "io.debezium.time.MicroTime",
    ("int64", "timestamp-millis"): "avro.timestamp-millis",
    ("int64", "timestamp-micros"): "avro.timestamp-micros",
    ("int64", "timestamp-nanos"): "avro.timestamp-nanos",
    ("int64", "local-timestamp-millis"): "io.debezium.time.Timestamp",
    ("int64", "local-timestamp-micros"): "io.debezium.time.MicroTimestamp",
    ("int64", "local-timestamp-nanos"): "io.debezium.time.NanoTimestamp",
}
"""By the type below and the annotation; readers of Avro ignore it on another type."""
_NULLS: tuple[object, ...] = ("null", {"type": "null"})
DEEPEST = 32
_MOST_NODES = 10_000
LEGACY_TIMESTAMPS = "timestamp_mapping.legacy"
_RECORD = "org.apache.flink.avro.generated.record"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MILLIS_DIGITS = 3
_AS_DERIVED = (
    "Correct the format's option schema, or remove it: the schema is derived of the columns then."
)
_DERIVED: Mapping[TypeName, str] = {
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


@dataclass(frozen=True, slots=True)
class Program:
    """A schema as arrays for the compiled writer."""

    nodes: Rows  # a row a type: kind, first part in `parts`, number of parts (of FIXED its bytes)
    # a row a part: its node, and start and end of its text in `texts`: a field's name in JSON with
    # a colon, or an enum's symbol in JSON
    parts: Rows
    texts: bytes
    connect: ConnectType  # the type of the whole

    @classmethod
    def of(cls, schema: str) -> "Program":
        """The program of a JSON schema; raises ValueError if it is invalid or recursive."""
        builder = _Builder()
        try:
            root, connect = builder.node(json.loads(schema), "", 0)
        except (TypeError, KeyError, AttributeError, RecursionError) as exc:
            raise ValueError(f"it is no schema of Avro: {exc}") from exc
        assert root == 0, "the whole comes first"
        nodes = np.array(builder.nodes, np.int64).reshape(-1, 3)
        parts = np.array(builder.parts, np.int64).reshape(-1, 3)
        return cls(nodes, parts, b"".join(builder.texts), connect)

    def reads(self, other: "Program") -> bool:
        return (
            np.array_equal(self.nodes, other.nodes)
            and np.array_equal(self.parts, other.parts)
            and self.texts == other.texts
            and self.connect == other.connect
        )


@dataclass(slots=True)
class _Builder:
    nodes: list[tuple[int, int, int]] = field(default_factory=list)
    parts: list[tuple[int, int, int]] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    _size: int = 0
    _named: dict[str, tuple[Mapping[str, Any], str]] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    def node(self, schema: object, space: str, depth: int) -> tuple[int, ConnectType]:
        """Number and type of a schema; `space` is the enclosing namespace."""
        if depth >= DEEPEST or len(self.nodes) > _MOST_NODES:
            raise ValueError("it is nested too deeply")
        if isinstance(schema, str):
            return self._called(schema, space, depth)
        if isinstance(schema, list):
            return self._union(schema, space, depth)
        if not isinstance(schema, dict):
            raise ValueError(f"{schema!r:.60} is no type of Avro")
        return self._declared(schema, space, depth)

    def _declared(
        self, schema: Mapping[str, Any], space: str, depth: int
    ) -> tuple[int, ConnectType]:
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.node(kind, space, depth + 1)
        if kind in ("record", "enum", "fixed"):
            return self._defined(schema, space, depth)
        if kind in ("array", "map"):
            return self._list(schema, space, depth)
        number, connect = self._called(kind, space, depth)
        return number, _described(connect, schema)

    def _add(self, kind: int) -> int:
        self.nodes.append((kind, 0, 0))
        return len(self.nodes) - 1

    def _close(
        self, number: int, parts: Sequence[tuple[int, str]], count: int | None = None
    ) -> None:
        first = len(self.parts)
        for part, text in parts:
            data = text.encode()
            self.parts.append((part, self._size, self._size + len(data)))
            self.texts.append(data)
            self._size += len(data)
        kind = self.nodes[number][KIND]
        self.nodes[number] = (kind, first, len(parts) if count is None else count)

    def _called(self, name: str, space: str, depth: int) -> tuple[int, ConnectType]:
        if name in _PLAIN:
            kind, connect = _PLAIN[name]
            return self._add(kind), ConnectType(connect)
        full = name if "." in name or not space else f"{space}.{name}"
        known = self._named.get(full) or self._named.get(name)
        if known is None:
            raise ValueError(f'there is no type "{name}"')
        return self._made(*known, full, depth)

    def _defined(
        self, schema: Mapping[str, Any], space: str, depth: int
    ) -> tuple[int, ConnectType]:
        name = str(schema["name"])
        space = name.rpartition(".")[0] or str(schema.get("namespace", space) or "")
        full = name if "." in name or not space else f"{space}.{name}"
        self._named[full] = schema, space
        return self._made(schema, space, full, depth)

    def _made(
        self, schema: Mapping[str, Any], space: str, full: str, depth: int
    ) -> tuple[int, ConnectType]:
        if full in self._open:
            raise ValueError(f'the type "{full}" is a part of itself')
        if schema["type"] == "fixed":
            number = self._add(FIXED)
            self._close(number, (), int(schema["size"]))
            return number, _described(ConnectType("bytes"), schema)
        if schema["type"] == "enum":
            number = self._add(ENUM)
            self._close(number, [(number, json.dumps(str(each))) for each in schema["symbols"]])
            return number, ConnectType("string", schema.get("connect.name"))
        number = self._add(RECORD)
        self._open.append(full)
        parts: list[tuple[int, str]] = []
        types: dict[str, ConnectType] = {}
        for item in schema["fields"]:
            part, types[item["name"]] = self.node(item["type"], space, depth + 1)
            parts.append((part, f"{json.dumps(item['name'])}:"))
        self._open.pop()
        self._close(number, parts)
        return number, _described(ConnectType("struct", fields=types), schema)

    def _list(self, schema: Mapping[str, Any], space: str, depth: int) -> tuple[int, ConnectType]:
        is_map = schema["type"] == "map"
        number = self._add(MAP if is_map else ARRAY)
        item = schema["values" if is_map else "items"]
        part, connect = self.node(item, space, depth + 1)
        self._close(number, [(part, "")])
        return number, _described(ConnectType(schema["type"], items=connect), schema)

    def _union(self, branches: list[object], space: str, depth: int) -> tuple[int, ConnectType]:
        """A union; one of NULL and one type has that type.

        Values of other unions are objects whose member has the type's name: `{"string": "x"}`.
        """
        number = self._add(UNION)
        is_plain = sum(branch not in _NULLS for branch in branches) < 2
        parts: list[tuple[int, str]] = []
        types: dict[str, ConnectType] = {}
        for branch in branches:
            is_wrapped = not is_plain and branch not in _NULLS
            wrapper = self._add(RECORD) if is_wrapped else -1
            part, connect = self.node(branch, space, depth + 1 + is_wrapped)
            if connect.type == "null":
                parts.append((part, ""))
                continue
            name = _branch_name(branch)
            name = name if name not in types else f"{name} {len(types)}"
            types[name] = connect
            if is_wrapped:
                self._close(wrapper, [(part, f"{json.dumps(name)}:")])
            parts.append((wrapper if is_wrapped else part, ""))
        self._close(number, parts)
        if is_plain and types:
            return number, next(iter(types.values()))
        return number, ConnectType(UNION_TYPE, UNION_TYPE, fields=types)


def _branch_name(branch: object) -> str:
    if isinstance(branch, dict):
        return str(branch.get("name") or branch["type"])
    return str(branch)


def _is_decimal(schema: Mapping[str, Any]) -> bool:
    """As Avro has it: else the annotation is ignored."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    return isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision > 0


def _described(connect: ConnectType, schema: Mapping[str, Any]) -> ConnectType:
    logical = _LOGICAL.get((connect.type, str(schema.get("logicalType"))))
    if logical == DECIMAL and not _is_decimal(schema):
        logical = None
    name = schema.get("connect.name") or logical
    scale = schema.get("scale", 0) if name == DECIMAL else None
    precision = schema.get("precision") if name == DECIMAL else None
    parameters = schema.get("connect.parameters") or {}
    return ConnectType(
        str(schema.get("connect.type") or connect.type),
        name or connect.name,
        scale if isinstance(scale, int) else None,
        precision if isinstance(precision, int) else None,
        parameters.get(SOURCE_TYPE),
        connect.optional,
        connect.fields,
        connect.items,
    )


class NoAvroError(ValueError):
    """Columns without a counterpart in Flink's formats of Avro."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def is_legacy(form: RecordFormat) -> bool:
    """True if TIMESTAMP is an instant in ms and TIMESTAMP_LTZ unsupported (the default)."""
    return form.text(LEGACY_TIMESTAMPS, "true").lower() == "true"


def avro_schema(columns: Sequence[Field], *, legacy: bool) -> str:
    """The JSON schema of `columns`; raises NoAvroError if a name or a type is not in Avro."""
    members = [Member(item.name, item.type, item.nullable) for item in columns]
    schema = _Derivation(legacy).record(members, _RECORD)
    return json.dumps(schema, separators=(",", ":"))


def schema_to_write(form: RecordFormat, columns: Sequence[Field]) -> str:
    """The format's schema, else the derived one; raises NoAvroError if it does not fit."""
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
    legacy: bool
    names: set[str] = field(default_factory=set)

    def record(self, members: Sequence[Member], name: str) -> dict[str, Any]:
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
        if kind.name in _DERIVED:
            return _DERIVED[kind.name]
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
