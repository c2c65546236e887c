"""Which SQL type a column may be declared with, from its schema or from values in JSON."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from joins.kernels.debezium.connect import (
    DECIMAL,
    DOUBLE_BITS,
    FLOAT_BITS,
    VARIABLE_SCALE_DECIMAL,
    ConnectType,
)
from joins.plan.types import quoted

_TIME, _CONNECT = "io.debezium.time", "org.apache.kafka.connect.data"
_PLAIN = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    FLOAT_BITS: "FLOAT",
    DOUBLE_BITS: "DOUBLE",
    "string": "STRING",
    "bytes": "BYTES",
}
_NAMED = {
    VARIABLE_SCALE_DECIMAL: "DECIMAL(38, 10)",
    f"{_TIME}.Date": "DATE",
    f"{_CONNECT}.Date": "DATE",
    f"{_TIME}.IsoDate": "DATE",
    f"{_TIME}.Time": "TIME(3)",
    f"{_CONNECT}.Time": "TIME(3)",
    f"{_TIME}.MicroTime": "TIME(6)",
    f"{_TIME}.NanoTime": "TIME(6)",
    f"{_TIME}.IsoTime": "TIME(6)",
    f"{_TIME}.ZonedTime": "TIME(6)",
    f"{_TIME}.Timestamp": "TIMESTAMP(3)",
    f"{_CONNECT}.Timestamp": "TIMESTAMP(3)",
    f"{_TIME}.MicroTimestamp": "TIMESTAMP(6)",
    f"{_TIME}.NanoTimestamp": "TIMESTAMP(6)",
    f"{_TIME}.IsoTimestamp": "TIMESTAMP(6)",
    f"{_TIME}.ZonedTimestamp": "TIMESTAMP_LTZ(6)",
    "avro.timestamp-millis": "TIMESTAMP_LTZ(3)",
    "avro.timestamp-micros": "TIMESTAMP_LTZ(6)",
}
_STRUCTURED = {
    "Date": "DATE",
    "Time": "TIME(6)",
    "Timestamp": "TIMESTAMP(6)",
    "ZonedTimestamp": "TIMESTAMP_LTZ(6)",
}
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_DAY = re.compile(r"\d{4}-\d\d-\d\dZ?")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,9})?Z")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_YEARS = 1_990, 2_100  # whoever counts milliseconds or microseconds mostly means these
_DAYS = range(7_000, 48_000)  # 1989 to 2101
_INT = range(-(2**31), 2**31)


@dataclass(frozen=True, slots=True)
class TypeGuess:
    """A type to declare.

    Attributes:
        sql: None if no type can be declared.
        note: what else it may be, or why there is none.
    """

    sql: str | None
    note: str = ""


def of_schema(connect: ConnectType) -> TypeGuess:
    """The type of a column whose schema is known."""
    sql = _sql(connect)
    if sql is None:
        return TypeGuess(None, f"{connect} cannot be declared")
    if connect.name == VARIABLE_SCALE_DECIMAL:
        return TypeGuess(
            sql, "each value has a scale of its own: declare as many digits as it needs"
        )
    if connect.type == "int16":
        return TypeGuess(sql, "BOOLEAN if it is a TINYINT(1) of 0 and 1")
    if (connect.source_type or "").startswith("BIGINT UNSIGNED") and connect.type == "int64":
        return TypeGuess("DECIMAL(20, 0)", "BIGINT UNSIGNED")
    return TypeGuess(sql)


def _sql(connect: ConnectType) -> str | None:
    if connect.name == DECIMAL:
        scale = connect.scale or 0
        return f"DECIMAL({max(connect.precision or 38, scale)}, {scale})" if scale <= 38 else None
    if connect.name in _NAMED:
        return _NAMED[connect.name]
    if (connect.name or "").startswith(f"{_TIME}.Structured"):
        suffix = str(connect.name).removeprefix(f"{_TIME}.Structured")
        return next((sql for word, sql in _STRUCTURED.items() if suffix.startswith(word)), None)
    if connect.type == "array" and connect.items is not None:
        item = _sql(connect.items)
        return None if item is None else f"ARRAY<{item}>"
    if connect.type == "map" and connect.items is not None:
        item = _sql(connect.items)
        return None if item is None else f"MAP<STRING, {item}>"
    if connect.type == "struct":
        parts = {name: _sql(part) for name, part in connect.fields.items()}
        if not parts or None in parts.values():
            return None
        return f"ROW<{', '.join(f'{quoted(name)} {sql}' for name, sql in parts.items())}>"
    return _PLAIN.get(connect.type)


def of_values(values: Sequence[object]) -> TypeGuess:
    """The type of a column without a schema, from its values that are not NULL."""
    if not values:
        return TypeGuess("STRING", "it is NULL in the whole sample")
    if all(isinstance(value, bool) for value in values):
        return TypeGuess("BOOLEAN")
    if all(isinstance(value, int) for value in values):
        return _of_integers([int(value) for value in values if isinstance(value, int)])
    if all(isinstance(value, int | float) for value in values):
        return TypeGuess("DOUBLE", "or DECIMAL(p, s), if the connector writes numbers for it")
    if all(isinstance(value, str) for value in values):
        return _of_texts([str(value) for value in values])
    if all(isinstance(value, list) for value in values):
        items = [item for value in values if isinstance(value, list) for item in value]
        inner = of_values([item for item in items if item is not None])
        return TypeGuess(inner.sql and f"ARRAY<{inner.sql}>", inner.note)
    if all(isinstance(value, dict) for value in values):
        return _of_objects([value for value in values if isinstance(value, dict)])
    return TypeGuess(None, "its values are of several kinds")


def _of_integers(values: Sequence[int]) -> TypeGuess:
    if any(value < 0 for value in values) and any(value > 1 << 62 for value in values):
        return TypeGuess("BIGINT", "or DECIMAL(20, 0), if it is BIGINT UNSIGNED")
    sql = "INT" if all(value in _INT for value in values) else "BIGINT"
    if set(values) <= {0, 1}:
        return TypeGuess(sql, "or BOOLEAN")
    for divisor, kind in ((1_000, "TIMESTAMP(3)"), (1_000_000, "TIMESTAMP(6)")):
        if all(_is_recent(value / divisor) for value in values):
            shown = datetime.fromtimestamp(values[-1] / divisor, UTC).replace(tzinfo=None)
            return TypeGuess(sql, f"or {kind}: {shown.isoformat(' ')}")
    if all(value in _DAYS for value in values):
        shown = datetime.fromtimestamp(values[-1] * 86_400, UTC)
        return TypeGuess(sql, f"or DATE: {shown.date().isoformat()}")
    return TypeGuess(sql)


def _is_recent(seconds: float) -> bool:
    least, greatest = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in _YEARS)
    return least <= seconds < greatest


def _of_texts(values: Sequence[str]) -> TypeGuess:
    for pattern, sql in ((_INSTANT, "TIMESTAMP_LTZ(6)"), (_DAY, "DATE"), (_CLOCK, "TIME(6)")):
        if all(pattern.fullmatch(value) for value in values):
            return TypeGuess(sql)
    if all(_NUMBER.fullmatch(value) for value in values):
        return TypeGuess("STRING", "or DECIMAL(p, s), in decimal.handling.mode=string")
    if any(values) and all(_BASE64.fullmatch(value) for value in values):
        return TypeGuess("STRING", "or DECIMAL(p, s) or BYTES: all values are base64")
    return TypeGuess("STRING")


def _of_objects(values: Sequence[dict[str, object]]) -> TypeGuess:
    if all(value.keys() == {"scale", "value"} for value in values):
        scale = max(int(str(value["scale"])) for value in values)
        return TypeGuess(f"DECIMAL(38, {min(scale, 38)})", "each value has a scale of its own")
    if all({"year", "month", "day"} <= value.keys() for value in values):
        if any("offsetSeconds" in value for value in values):
            return TypeGuess("TIMESTAMP_LTZ(6)")
        return TypeGuess("TIMESTAMP(6)" if any("hour" in value for value in values) else "DATE")
    names = list(dict.fromkeys(name for value in values for name in value))
    inner = {
        name: of_values([value[name] for value in values if value.get(name) is not None])
        for name in names
    }
    if not inner or any(part.sql is None for part in inner.values()):
        return TypeGuess(None, "an object that has no type")
    parts = ", ".join(f"{quoted(name)} {part.sql}" for name, part in inner.items())
    return TypeGuess(f"ROW<{parts}>", "or MAP<STRING, STRING>, if it is an hstore")
