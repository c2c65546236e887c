"""SQL types of columns and the Arrow types that carry them everywhere in the data path."""

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa


class TypeName(StrEnum):
    """Flink's names of the scalar types that Sluice carries."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    BYTES = "BYTES"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"


@dataclass(frozen=True, slots=True)
class SqlType:
    """A scalar SQL type.

    Attributes:
        name: the type without its parameters; CHAR and VARCHAR are STRING, BINARY and VARBINARY are
            BYTES.
        precision: digits of a DECIMAL (1 to 38), fractional digits of TIME and TIMESTAMP, else 0.
        scale: digits after the point of a DECIMAL, else 0.
    """

    name: TypeName
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        if self.name is TypeName.DECIMAL:
            return f"DECIMAL({self.precision}, {self.scale})"
        return self.name.value


_ARROW: dict[TypeName, pa.DataType] = {
    TypeName.BOOLEAN: pa.bool_(),
    TypeName.TINYINT: pa.int8(),
    TypeName.SMALLINT: pa.int16(),
    TypeName.INT: pa.int32(),
    TypeName.BIGINT: pa.int64(),
    TypeName.FLOAT: pa.float32(),
    TypeName.DOUBLE: pa.float64(),
    TypeName.STRING: pa.string(),
    TypeName.BYTES: pa.binary(),
    TypeName.DATE: pa.date32(),
    TypeName.TIME: pa.int64(),
    TypeName.TIMESTAMP: pa.timestamp("us"),
    TypeName.TIMESTAMP_LTZ: pa.timestamp("us", tz="UTC"),
}


def arrow_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type that carries `sql_type`; TIME is int64 microseconds since midnight, signed."""
    if sql_type.name is TypeName.DECIMAL:
        return pa.decimal128(sql_type.precision, sql_type.scale)
    return _ARROW[sql_type.name]
