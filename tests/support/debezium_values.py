"""A model of Debezium's converters: what a value of a database becomes in JSON, mode by mode.

It is written after the documentation, one value at a time, and shares nothing with the decoder.
"""

import base64
import json
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal

EPOCH = datetime.fromisoformat("1970-01-01")
WIDE = Context(prec=80)  # of decimals: by default 28 digits are kept
CONNECT, TIME = "org.apache.kafka.connect.data", "io.debezium.time"


@dataclass(frozen=True)
class Written:
    """A value in JSON, and the schema that Connect has of it.

    Attributes:
        value: what `json.dumps` takes; a `Raw` is written as it is.
        schema: without the name of the field.
    """

    value: object
    schema: dict = field(default_factory=dict)


class Raw(str):
    """A number as it is to be written."""


def text_of(value, *, ascii_only=False):
    """JSON as the converter writes it, without blanks."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        members = (
            f"{json.dumps(name, ensure_ascii=ascii_only)}:{text_of(member, ascii_only=ascii_only)}"
            for name, member in value.items()
        )
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(text_of(each, ascii_only=ascii_only) for each in value)}]"
    return json.dumps(value, ensure_ascii=ascii_only)


def _schema(kind, name=None, **more):
    named = {} if name is None else {"name": name, "version": 1}
    return {"type": kind, "optional": True, **named, **more}


def integer(value, bits=64):
    return Written(value, _schema(f"int{bits}"))


def boolean(value, *, as_number=False):
    if as_number:
        return Written(None if value is None else int(value), _schema("int16"))
    return Written(value, _schema("boolean"))


def string(value, name=None):
    return Written(value, _schema("string", name))


def double(value, kind="double"):
    if value is None:
        return Written(None, _schema(kind))
    named = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value))
    if named is not None:
        return Written(named, _schema(kind))
    digits = repr(value)
    if "e" in digits:
        mantissa, exponent = digits.split("e")
        mantissa += "" if "." in mantissa else ".0"
        digits = f"{mantissa}E{int(exponent)}"
    return Written(Raw(digits), _schema(kind))


def base64_of(value):
    return base64.b64encode(value).decode()


def unscaled(number):
    size = max(1, (number.bit_length() + 8) // 8)
    return base64_of(number.to_bytes(size, "big", signed=True))


def decimal(value, scale, mode="precise"):
    """`mode` is `decimal.handling.mode`, or `numeric` for the converter's `decimal.format`."""
    if mode in ("precise", "numeric"):
        schema = _schema("bytes", f"{CONNECT}.Decimal", parameters={"scale": str(scale)})
    else:
        schema = _schema("string" if mode == "string" else "double")
    if value is None:
        return Written(None, schema)
    if mode == "precise":
        return Written(unscaled(int(value.scaleb(scale, WIDE))), schema)
    if mode == "double":
        return Written(double(float(value)).value, schema)
    text = format(value, f".{scale}f")
    return Written(text if mode == "string" else Raw(text), schema)


def variable_decimal(value):
    schema = _schema("struct", "io.debezium.data.VariableScaleDecimal")
    if value is None:
        return Written(None, schema)
    scale = max(0, -value.as_tuple().exponent)
    return Written({"scale": scale, "value": unscaled(int(value.scaleb(scale, WIDE)))}, schema)


def unsigned(value, mode="long"):
    """BIGINT UNSIGNED."""
    if mode == "precise":
        return decimal(None if value is None else Decimal(value), 0)
    wrapped = None if value is None else value - (1 << 64) if value >= 1 << 63 else value
    return Written(wrapped, _schema("int64"))


def binary(value, mode="bytes"):
    schema = _schema("bytes" if mode == "bytes" else "string")
    if value is None:
        return Written(None, schema)
    if mode == "hex":
        return Written(value.hex(), schema)
    if mode == "base64-url-safe":
        return Written(base64.urlsafe_b64encode(value).decode(), schema)
    return Written(base64_of(value), schema)


def day(value, mode):
    if mode == "structured":
        names = ("year", "month", "day")
        parts = None if value is None else {name: getattr(value, name) for name in names}
        return Written(parts, _schema("struct", f"{TIME}.StructuredDate"))
    if mode == "isostring":
        text = None if value is None else f"{value.isoformat()}Z"
        return Written(text, _schema("string", f"{TIME}.IsoDate"))
    days = None if value is None else (value - EPOCH.date()).days
    return Written(days, _schema("int32", f"{CONNECT if mode == 'connect' else TIME}.Date"))


def _unit(mode, precision, *, of_time):
    """Name of the type without its family, and microseconds of one."""
    if mode == "connect":
        return "connect", 1000
    if mode == "nanoseconds":
        return "Nano", None
    is_micro = mode == "microseconds" or precision > 3
    is_micro |= of_time and mode == "adaptive_time_microseconds"
    return ("Micro", 1) if is_micro else ("", 1000)


def _counted(micros, mode, precision, family):
    prefix, unit = _unit(mode, precision, of_time=family == "Time")
    name = f"{CONNECT}.{family}" if prefix == "connect" else f"{TIME}.{prefix}{family}"
    if micros is None:
        return Written(None, _schema("int64", name))
    return Written(micros * 1000 if unit is None else micros // unit, _schema("int64", name))


def _fraction(micros):
    digits = f"{micros % 1_000_000:06}".rstrip("0")
    return f".{digits}" if digits else ""


def clock(micros, mode, precision):
    """A time of the day in microseconds."""
    if mode == "isostring":
        text = None if micros is None else f"{clock_text(micros)}Z"
        return Written(text, _schema("string", f"{TIME}.IsoTime"))
    if mode == "structured":
        parts = None
        if micros is not None:
            seconds, rest = divmod(micros, 1_000_000)
            parts = {"hour": seconds // 3600, "minute": seconds // 60 % 60, "second": seconds % 60}
            parts["nanos"] = rest * 1000
        return Written(parts, _schema("struct", f"{TIME}.StructuredTime"))
    return _counted(micros, mode, precision, "Time")


def clock_text(micros):
    seconds = micros // 1_000_000
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + _fraction(micros)


def moment(value, mode, precision):
    """A timestamp without a zone."""
    if mode == "isostring":
        return Written(_iso(value), _schema("string", f"{TIME}.IsoTimestamp"))
    if mode == "structured":
        return Written(_parts(value), _schema("struct", f"{TIME}.StructuredTimestamp"))
    return _counted(None if value is None else micros_of(value), mode, precision, "Timestamp")


def instant(value, mode):
    """A timestamp with a zone, in UTC."""
    if mode == "structured":
        parts = _parts(value)
        if parts is not None:
            parts |= {"offsetSeconds": 0, "zoneId": "Z"}
        return Written(parts, _schema("struct", f"{TIME}.StructuredZonedTimestamp"))
    return Written(_iso(value), _schema("string", f"{TIME}.ZonedTimestamp"))


def micros_of(value):
    span = value - EPOCH
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def _iso(value):
    if value is None:
        return None
    seconds = value.replace(microsecond=0).isoformat()
    return f"{seconds}{_fraction(value.microsecond)}Z"


def _parts(value):
    if value is None:
        return None
    names = ("year", "month", "day", "hour", "minute", "second")
    return {name: getattr(value, name) for name in names} | {"nanos": value.microsecond * 1000}


def array(elements, item):
    values = None if elements is None else [each.value for each in elements]
    return Written(values, _schema("array", items=item.schema))


def text_map(value, mode="json"):
    """`hstore`."""
    if mode == "map":
        inner = _schema("string")
        return Written(value, _schema("map", keys={"type": "string"}, values=inner))
    text = None if value is None else json.dumps(value, ensure_ascii=False)
    return Written(text, _schema("string", "io.debezium.data.Json"))


def envelope(row, *, op="c", wrapped=False, source=None, before=None):
    """The value of a record with this row, a `Written` by column, as JSON can be made of it."""
    block = {"snapshot": "false", "ts_ms": 5, "db": "shop", "table": "items"} | (source or {})
    whole = {
        "before": None if before is None else {name: each.value for name, each in before.items()},
        "after": None if row is None else {name: each.value for name, each in row.items()},
        "source": block,
        "op": op,
        "ts_ms": 6,
    }
    if not wrapped:
        return whole
    fields = [each.schema | {"field": name} for name, each in (row or before).items()]
    struct = {"type": "struct", "fields": fields, "optional": True}
    parts = [struct | {"field": "before"}, struct | {"field": "after"}]
    return {"schema": {"type": "struct", "fields": parts, "optional": False}, "payload": whole}


def key_of(row, names, *, wrapped=False):
    """The key of a record."""
    key = {name: row[name].value for name in names}
    if not wrapped:
        return key
    fields = [row[name].schema | {"field": name} for name in names]
    return {"schema": {"type": "struct", "fields": fields, "optional": False}, "payload": key}
