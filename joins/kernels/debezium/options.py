"""How Debezium writes values: the connector's options and Kafka Connect's schemas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

import orjson

from joins.kernels.strings.regular import compiled

DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE_SCALE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
SOURCE_TYPE = "__debezium.source.column.type"
BITS = "io.debezium.data.Bits"
UNION_TYPE = "union"  # of several types, whose values are objects with the type's name
FLOAT_BITS, DOUBLE_BITS = "float bits", "double bits"  # types whose values are written as integers
UNAVAILABLE_VALUE = "__debezium_unavailable_value"


@dataclass(frozen=True, slots=True)
class ConnectType:
    """Type of a value in a schema of Kafka Connect."""

    # `int8` … `int64`, `float`, `double`, `boolean`, `string`, `bytes`, `array`, `map`, `struct`
    type: str
    name: str | None = None  # of the logical type
    # scale, precision: of a DECIMAL; the schema may lack the precision
    scale: int | None = None
    precision: int | None = None
    source_type: str | None = None  # the database's type, if the connector propagates it
    optional: bool = True
    # of a struct, or the types of a union, by name
    fields: Mapping[str, "ConnectType"] = field(default_factory=dict)
    items: "ConnectType | None" = None  # type of an array's elements or a map's values

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Self:
        """The type in a schema; raises ValueError if it is no schema of Connect."""
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
        """The type in a JSON schema, None for `null`; raises ValueError as `of`."""
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


class SpecialValues(StrEnum):
    """Handling of infinite times and NaN: the record is bad, NULL, or the last or first day."""

    FAIL = "fail"
    NULL = "null"
    LAST_DAY = "last-day"


class UnsentValues(StrEnum):
    """Handling of a value that was not sent: the record is bad, or it is left open."""

    FAIL = "fail"
    LAST_VERSION = "last-version"


class ValueLayout(StrEnum):
    """Values of a topic are envelopes, or rows as ExtractNewRecordState makes them."""

    ENVELOPE = "envelope"
    FLAT = "flat"


class DecimalHandling(StrEnum):
    """`decimal.handling.mode`: base64 of the unscaled value, a text, or a number."""

    PRECISE = "precise"
    STRING = "string"
    DOUBLE = "double"


class BigintUnsignedHandling(StrEnum):
    """Debezium's `bigint.unsigned.handling.mode`; `UNKNOWN`: the option is not set.

    `long` writes numbers beyond 63 bits as negative ones, `precise` writes decimals.
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
    """`binary.handling.mode`; `bytes` is base64 in JSON, too."""

    BYTES = "bytes"
    BASE64 = "base64"
    BASE64_URL_SAFE = "base64-url-safe"
    HEX = "hex"


@dataclass(frozen=True, slots=True)
class CapturedName:
    """The table whose records are read; None parts match any.

    With `is_pattern` its name is a regular expression of whole names, and the tables that match are
    the partitions of one table.
    """

    table: str
    schema: str | None = None
    database: str | None = None
    is_pattern: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self | None:
        """The table that the options of a format name, None without one."""
        table, pattern = options.get("source.table"), options.get("source.table-pattern")
        name = table if pattern is None else pattern
        if name is None:
            return None
        schema, database = options.get("source.schema"), options.get("source.db")
        return cls(name, schema, database, is_pattern=pattern is not None)

    def has(self, table: str) -> bool:
        if not self.is_pattern:
            return table == self.table
        expression = compiled(self.table)
        return expression is not None and expression.fullmatch(table) is not None


@dataclass(frozen=True, slots=True)
class DebeziumOptions:
    """How to read the values of a topic."""

    layout: ValueLayout = ValueLayout.ENVELOPE
    # keys and values carry their schema; None decides by each value
    schema_include: bool | None = None
    # meaning of a text for a DECIMAL without a schema
    decimal_handling: DecimalHandling = DecimalHandling.PRECISE
    # form of a BIGINT UNSIGNED, which is declared as DECIMAL(20, 0). If unknown, an ambiguous value
    # is bad: a negative integer, and without a schema a text that `decimal_handling` makes a
    # decimal.
    bigint_unsigned: BigintUnsignedHandling = BigintUnsignedHandling.UNKNOWN
    # meaning of a number for a TIME or TIMESTAMP without a schema. The adaptive modes use the
    # precision of the declared type, which must be that of the database.
    time_precision: TimePrecision = TimePrecision.ADAPTIVE_TIME_MICROSECONDS
    # meaning of a text for BYTES, without a schema that says `bytes`
    binary_handling: BinaryHandling = BinaryHandling.BYTES
    # BIT(n) columns of the database: without a schema they look like BYTES, but are always base64
    bit_columns: frozenset[str] = frozenset()
    unavailable_value: str = UNAVAILABLE_VALUE  # placeholder of a large value that was not changed
    unsent_values: UnsentValues = UnsentValues.FAIL  # handling of this placeholder
    # handling of infinite times, and of NaN and infinity for a DECIMAL
    special_values: SpecialValues = SpecialValues.FAIL
    null_if_missing: bool = False  # a missing declared column is NULL, else the record is bad
    # records of other tables are `RecordKind.OTHER_TABLE`, records without a table are bad; None
    # reads any
    table: CapturedName | None = None


def debezium_options(options: Mapping[str, str]) -> DebeziumOptions:
    """The format's options in the script, completed by Debezium's defaults."""
    made = DebeziumOptions()
    included = options.get("schema-include")
    return DebeziumOptions(
        layout=ValueLayout(options.get("layout", made.layout)),
        schema_include=None if included is None else included == "true",
        decimal_handling=DecimalHandling(
            options.get("decimal.handling.mode", made.decimal_handling)
        ),
        bigint_unsigned=BigintUnsignedHandling(
            options.get("bigint.unsigned.handling.mode", made.bigint_unsigned)
        ),
        time_precision=TimePrecision(options.get("time.precision.mode", made.time_precision)),
        binary_handling=BinaryHandling(options.get("binary.handling.mode", made.binary_handling)),
        bit_columns=frozenset(filter(None, options.get("bit.columns", "").split(";"))),
        unavailable_value=options.get("unavailable.value.placeholder", made.unavailable_value),
        unsent_values=UnsentValues(options.get("unsent.values", made.unsent_values)),
        special_values=SpecialValues(options.get("special.values", made.special_values)),
        null_if_missing=options.get("fail-on-missing-field", "true") == "false",
        table=CapturedName.of(options),
    )
