"""How a connector and its converter write values: what no record says of itself.

A record with a schema tells most of it; these options decide for those without. The defaults are
Debezium's own.

Source: Debezium 3.5, "Connector configuration properties" of MySQL, MariaDB and PostgreSQL.
"""

from dataclasses import dataclass
from enum import StrEnum

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
