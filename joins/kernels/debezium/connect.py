"""Schemas of Kafka Connect, as its JSON converter writes them in front of each value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
