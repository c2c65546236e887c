"""Types of a Delta table's schema: what a column may be declared as, and where its parts are.

A nested column is declared like the table: parts of it may be left out, none may be added. Fields
are found by name as columns are.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from joins.kernels.expressions.casts import mask_of
from joins.kernels.expressions.nested import Parts, assembled, parts_of
from joins.plan.types import SqlType, TypeName, arrow_type, nested_type, quoted

_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_MAPPED_ID = "delta.columnMapping.id"
_FILE_ID = b"PARQUET:field_id"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_INTEGERS = ("byte", "short", "integer", "long")
_INTEGER_TYPES = (TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT)
_DECLARED: dict[str, tuple[TypeName, ...]] = {
    **{name: _INTEGER_TYPES[size:] for size, name in enumerate(_INTEGERS)},
    "boolean": (TypeName.BOOLEAN,),
    "float": (TypeName.FLOAT, TypeName.DOUBLE),
    "double": (TypeName.DOUBLE,),
    "string": (TypeName.STRING,),
    "binary": (TypeName.BYTES,),
    "date": (TypeName.DATE,),
    "time": (TypeName.TIME,),  # of Parquet files; Delta has none
    "timestamp": (TypeName.TIMESTAMP_LTZ, TypeName.TIMESTAMP),
    "timestamp_ntz": (TypeName.TIMESTAMP,),
}
_NESTED = {"struct": TypeName.ROW, "array": TypeName.ARRAY, "map": TypeName.MAP}

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the values of a column, or of a part of one, are in data files.

    Attributes:
        name: in data files and partition values.
        field_id: in data files if the table maps columns by id, else None.
        parts: of a nested type, in the order of its members; only fields of a ROW have names.
    """

    name: str
    field_id: int | None
    parts: tuple["Place", ...] = ()


def matching(name: str, items: Mapping[str, Item]) -> Item | None:
    if name in items:
        return items[name]
    return next((item for key, item in items.items() if key.casefold() == name.casefold()), None)


def place_of(item: Item, declared: SqlType, mode: str) -> Place:
    """Where the values of `item`, which fits `declared`, are; `mode` is that of column mapping."""
    mapping = item.get("metadata", {}) if mode in ("name", "id") else {}
    name = str(mapping.get(_PHYSICAL_NAME, item["name"]))
    field_id = int(mapping[_MAPPED_ID]) if mode == "id" and _MAPPED_ID in mapping else None
    return Place(name, field_id, _parts_of(item["type"], declared, mode))


def _parts_of(kind: Item, declared: SqlType, mode: str) -> tuple[Place, ...]:
    if declared.name is TypeName.ROW:
        fields = _fields(kind)
        members = ((matching(part.name, fields), part.type) for part in declared.members)
        return tuple(place_of(item, type_, mode) for item, type_ in members if item is not None)
    keys = {TypeName.ARRAY: ("elementType",), TypeName.MAP: ("keyType", "valueType")}
    return tuple(
        Place(part.name, None, _parts_of(kind[key], part.type, mode))
        for key, part in zip(keys.get(declared.name, ()), declared.members, strict=True)
    )


def complaints(place: str, kind: object, declared: SqlType) -> Iterator[str]:
    """Why a column, called `place`, of the table's type `kind` cannot be `declared` so."""
    if not isinstance(kind, Mapping) or _NESTED.get(kind["type"]) is not declared.name:
        if not _accepts(kind, declared):
            yield f'column "{place}" is {_type_text(kind)}, declared {declared}'
        return
    if declared.name is TypeName.ROW:
        fields = _fields(kind)
        for part in declared.members:
            item = matching(part.name, fields)
            if item is None:
                yield f'column "{place}" has no field "{part.name}"'
            else:
                yield from complaints(f"{place}.{item['name']}", item["type"], part.type)
        return
    if declared.name is TypeName.ARRAY:
        yield from complaints(f"{place}[]", kind["elementType"], declared.members[0].type)
        return
    key, value = declared.members
    yield from complaints(f"{place}[].key", kind["keyType"], key.type)
    yield from complaints(f"{place}[].value", kind["valueType"], value.type)


def declarable(kind: object) -> str | None:
    """How a column of the table's type `kind` can be declared; None if it cannot be."""
    if isinstance(kind, str):
        if _DECIMAL.fullmatch(kind):
            return kind.upper()
        names = _DECLARED.get(kind, ())
        return names[0].value if names else None
    if not isinstance(kind, Mapping) or kind["type"] not in _NESTED:
        return None
    if kind["type"] == "struct":
        fields = {name: declarable(item["type"]) for name, item in _fields(kind).items()}
        columns = [f"{quoted(name)} {text}" for name, text in fields.items() if text is not None]
        return f"ROW<{', '.join(columns)}>" if columns else None
    if kind["type"] == "array":
        element = declarable(kind["elementType"])
        return None if element is None else f"ARRAY<{element}>"
    value = declarable(kind["valueType"])
    return None if value is None or kind["keyType"] != "string" else f"MAP<STRING, {value}>"


def in_declared_shape(values: pa.Array, kind: SqlType, parts: Sequence[Place]) -> pa.Array:
    """Values of a file with the declared parts in their order; what the file lacks is NULL."""
    if not kind.is_nested:
        return values
    taken = parts_of(values)
    children = taken.children
    if kind.name is TypeName.ROW:
        there = [_where(place, values.type) for place in parts]
        children = [
            pa.nulls(len(values), arrow_type(part.type)) if at < 0 else taken.children[at]
            for at, part in zip(there, kind.members, strict=True)
        ]
    made = [
        in_declared_shape(child, part.type, place.parts)
        for child, part, place in zip(children, kind.members, parts, strict=True)
    ]
    missing = mask_of(values.is_null())
    return assembled(
        Parts(made, taken.lengths), nested_type(kind, [each.type for each in made]), missing
    )


def _where(place: Place, kind: pa.StructType) -> int:
    """Which field of a struct in a file is at `place`; -1 if none is."""
    if place.field_id is None:
        return int(kind.get_field_index(place.name))
    ids = [int((item.metadata or {}).get(_FILE_ID, -1)) for item in kind]
    return ids.index(place.field_id) if place.field_id in ids else -1


def _fields(kind: Item) -> dict[str, Item]:
    return {item["name"]: item for item in kind["fields"]}


def _accepts(kind: object, declared: SqlType) -> bool:
    if not isinstance(kind, str):
        return False
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return declared.name in _DECLARED.get(kind, ())
    precision, scale = int(decimal[1]), int(decimal[2])
    return (
        declared.name is TypeName.DECIMAL
        and declared.scale >= scale
        and declared.precision - declared.scale >= precision - scale
    )


def _type_text(kind: object) -> str:
    """A type as Delta's users write it."""
    if not isinstance(kind, Mapping):
        return str(kind)
    if kind["type"] == "struct":
        fields = (f"{name}: {_type_text(item['type'])}" for name, item in _fields(kind).items())
        return f"struct<{', '.join(fields)}>"
    if kind["type"] == "array":
        return f"array<{_type_text(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_type_text(kind['keyType'])}, {_type_text(kind['valueType'])}>"
    return str(kind["type"])
