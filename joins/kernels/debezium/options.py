"""What says how Debezium writes values: the connector's options and Kafka Connect's schemas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

import orjson

DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE_SCALE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
SOURCE_TYPE = "__debezium.source.column.type"
BITS = "io.debezium.data.Bits"
UNION_TYPE = "union"  # of several types, whose values are objects with the type's name
FLOAT_BITS, DOUBLE_BITS = "float bits", "double bits"  # types whose values are written as integers


@dataclass(frozen=True, slots=True)
class ConnectType:
    """The type of a value.

    Attributes:
        type: `int8` … `int64`, `float`, `double`, `boolean`, `string`, `bytes`, `array`, `map`,
            `struct`.
        name: of the logical type, if it is one.
        scale: of a DECIMAL.
        precision: of a DECIMAL, where the schema tells it.
        source_type: of the database's column, where the connector propagates it.
        fields: of a struct, or the types of a union, by name.
        items: of an array its elements, of a map its values.
    """

    type: str
    name: str | None = None
    scale: int | None = None
    precision: int | None = None
    source_type: str | None = None
    optional: bool = True
    fields: Mapping[str, "ConnectType"] = field(default_factory=dict)
    items: "ConnectType | None" = None

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Self:
        """The type that a schema describes.

        Raises:
            ValueError: it is no schema of Connect.
        """
        kind, name = schema.get("type"), schema.get("name")
        if not isinstance(kind, str) or not isinstance(name, str | None):
            raise ValueError("the schema has no type")
        parameters = _mapping(schema.get("parameters"))
        scale, precision = parameters.get("scale"), parameters.get("connect.decimal.precision")
        parts = schema.get("fields") or []
        if not isinstance(parts, list):
            raise ValueError("the schema's fields are no array")
        item = schema.get("values" if kind == "map" else "items")
        return cls(
            kind,
            name,
            int(scale) if isinstance(scale, str | int) else None,
            int(precision) if isinstance(precision, str | int) else None,
            parameters.get(SOURCE_TYPE),
            bool(schema.get("optional")),
            {str(_mapping(each).get("field")): cls.of(each) for each in parts},
            None if item is None else cls.of(_mapping(item)),
        )

    @classmethod
    def parsed(cls, text: bytes) -> Self | None:
        """The type that a schema in JSON describes; None of `null`.

        Raises:
            ValueError: it is no schema of Connect.
        """
        schema = orjson.loads(text)
        return None if schema is None else cls.of(_mapping(schema))

    def __str__(self) -> str:
        return self.name or self.type


def _mapping(value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("the schema is no object")
    return value


UNAVAILABLE_VALUE = "__debezium_unavailable_value"


class SpecialValues(StrEnum):
    """What becomes of infinite times and NaN: the record is bad, NULL, or the last or first day."""

    FAIL = "fail"
    NULL = "null"
    LAST_DAY = "last-day"


class ValueLayout(StrEnum):
    """What a value of a topic is: the whole envelope, or what ExtractNewRecordState makes of it."""

    ENVELOPE = "envelope"
    FLAT = "flat"


class DecimalHandling(StrEnum):
    """`decimal.handling.mode`: base64 of the unscaled value, a text, or a number."""

    PRECISE = "precise"
    STRING = "string"
    DOUBLE = "double"


class BigintUnsignedHandling(StrEnum):
    """`bigint.unsigned.handling.mode`: what does not fit 63 bits is negative, or a decimal.

    `UNKNOWN` is none of Debezium's: nobody has said.
    """

    UNKNOWN = "unknown"
    LONG = "long"
    PRECISE = "precise"


class TimePrecision(StrEnum):
    """`time.precision.mode`: the unit of times by the column's precision, or one for all."""

    ADAPTIVE_TIME_MICROSECONDS = "adaptive_time_microseconds"
    ADAPTIVE = "adaptive"
    CONNECT = "connect"
    ISOSTRING = "isostring"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    STRUCTURED = "structured"


class BinaryHandling(StrEnum):
    """`binary.handling.mode`: of `bytes` JSON has base64, too."""

    BYTES = "bytes"
    BASE64 = "base64"
    BASE64_URL_SAFE = "base64-url-safe"
    HEX = "hex"


@dataclass(frozen=True, slots=True)
class CapturedName:
    """The table whose records are read; what is None is not looked at.

    Attributes:
        table: its name.
        schema: the schema of a database that has some, like PostgreSQL.
        database: the database.
    """

    table: str
    schema: str | None = None
    database: str | None = None


@dataclass(frozen=True, slots=True)
class DebeziumOptions:
    """How values of a topic are to be read.

    Attributes:
        layout: envelopes, or rows.
        schema_include: whether keys and values carry their schema; None: each tells by itself.
        decimal_handling: what a text is for a DECIMAL, without a schema.
        bigint_unsigned: what a BIGINT UNSIGNED is, which is declared as DECIMAL(20, 0). While that
            is unknown, what may be one or a real DECIMAL(20, 0) is bad: a negative integer, and
            without a schema a text where `decimal_handling` says that it is decimal.
        time_precision: what a number is for a TIME or TIMESTAMP, without a schema. The adaptive
            modes go by the precision of the declared type: it must be that of the database.
        binary_handling: what a text is for BYTES, without a schema that says `bytes`.
        bit_columns: columns that are BIT(n) in the database: without a schema they look like BYTES,
            which `binary_handling` is about, but are always base64.
        unavailable_value: what stands for a large value that was not changed.
        special_values: what becomes of infinite times, and of NaN and infinity for a DECIMAL.
        field_prefix: of what a flat record has beside the row (`__op`, `__deleted`).
        null_if_missing: a declared column that a record does not have is NULL; else it is bad.
        table: whose records are read, those of others are `RecordKind.OTHER_TABLE`, and one that
            does not tell its table is bad; None: any.
    """

    layout: ValueLayout = ValueLayout.ENVELOPE
    schema_include: bool | None = None
    decimal_handling: DecimalHandling = DecimalHandling.PRECISE
    bigint_unsigned: BigintUnsignedHandling = BigintUnsignedHandling.UNKNOWN
    time_precision: TimePrecision = TimePrecision.ADAPTIVE_TIME_MICROSECONDS
    binary_handling: BinaryHandling = BinaryHandling.BYTES
    bit_columns: frozenset[str] = frozenset()
    unavailable_value: str = UNAVAILABLE_VALUE
    special_values: SpecialValues = SpecialValues.FAIL
    field_prefix: str = "__"
    null_if_missing: bool = False
    table: CapturedName | None = None
