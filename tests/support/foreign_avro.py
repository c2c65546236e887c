"""The table `shop.users` as a connector with an Avro converter writes it."""

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import fastavro

from tests.support.registry import Registry

KEY_NUMBER, VALUE_NUMBER = 1, 2
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
_ROW = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
}
_SOURCE = {
    "type": "record",
    "name": "Source",
    "fields": [
        *({"name": name, "type": "string"} for name in ("version", "connector", "db", "table")),
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "snapshot", "type": "string"},
        {"name": "ts_ms", "type": "long"},
    ],
}
VALUE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", _ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": _SOURCE},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": "long"},
    ],
}


def register(registry: Registry) -> None:
    registry.add(KEY_NUMBER, KEY)
    registry.add(VALUE_NUMBER, VALUE)


def writer(number: int, schema: dict[str, Any]) -> Callable[[Any], bytes]:
    """Writes values in Confluent's wire format; bytes stay as they are."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))

    def write(value: Any) -> bytes:
        return value if isinstance(value, bytes) else wire(number, parsed, value)

    return write


def wire(number: int, schema: Any, value: Any) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, value)
    return struct.pack(">bI", 0, number) + body.getvalue()
