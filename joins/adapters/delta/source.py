"""A Delta table as a source: configuration, state, types, and checks before reading."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from joins.adapters.delta.versions import delta_options, store_faults
from joins.adapters.store_path import DocumentPath
from joins.kernels.changelog.envelope import BinlogPosition, CapturedColumn
from joins.kernels.expressions.casts import mask_of
from joins.kernels.expressions.nested import Parts, assembled, parts_of
from joins.kernels.json.wire import declared_encoding
from joins.kernels.table_path import TablePath
from joins.plan.errors import DefinitionError, SourceError, SourceUnavailableError, of_columns
from joins.plan.plan import Field, KafkaOptions
from joins.plan.types import SqlType, TypeName, arrow_type, nested_type, quoted
from watermark.errors import SluiceError


@dataclass(frozen=True, slots=True)
class DeltaFeedConfig:
    """Configuration of a `delta` dimension's process; `kafka` has the changelog topic."""

    path: DocumentPath
    fields: tuple[Field, ...]
    primary_key: tuple[str, ...]
    kafka: KafkaOptions
    partitions: int
    state_file: Path
    monitor_interval_ms: int
    freshness_s: float = 1.0


@dataclass(frozen=True, slots=True)
class DeltaFeedState:
    """Durable state of a `delta` source; Kafka has acknowledged everything that it counts."""

    epoch: int  # grows with the generation, when versions stop being comparable
    generation: int
    table_id: str
    snapshot_version: int  # the copied version; `copied` once it is complete
    files_total: int
    rows_total: int  # rows of that version
    version: int  # the newest version whose changes are all sent
    commit: str | None  # digest of that version's log entry, None if the log does not have it
    files_done: int = 0  # of its `files_total` files, in the order of their paths
    copied: bool = False
    needed: str | None = None  # why a new snapshot is needed, else None

    def place(self, version: int) -> BinlogPosition:
        return BinlogPosition(self.epoch, version, 0)


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
    "time": (TypeName.TIME,),  # in Parquet files; Delta has none
    "timestamp": (TypeName.TIMESTAMP_LTZ, TypeName.TIMESTAMP),
    "timestamp_ntz": (TypeName.TIMESTAMP,),
}
_NESTED = {"struct": TypeName.ROW, "array": TypeName.ARRAY, "map": TypeName.MAP}

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the values of a column or nested member are in data files."""

    name: str  # in data files and partition values
    field_id: int | None  # in data files if the table maps columns by id, else None
    # members of a nested type in order; only fields of a ROW have names
    parts: tuple["Place", ...] = ()


def matching(name: str, items: Mapping[str, Item]) -> Item | None:
    if name in items:
        return items[name]
    return next((item for key, item in items.items() if key.casefold() == name.casefold()), None)


def place_of(item: Item, declared: SqlType, mode: str) -> Place:
    """Where the values of `item`, which fits `declared`, are, for a mode of column mapping."""
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
    """Why a column at `place` of the table's type `kind` cannot be `declared` so."""
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
    """The declaration for a column of the table's type `kind`; None if there is none."""
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
    """Values of a file with the declared members in order; missing members are NULL."""
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


_READ_FEATURES = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
)
_OLD_READERS = 2  # the newest reader version that has no list of features
_MAPPING_MODE = "delta.columnMapping.mode"
_NO_KEY = (TypeName.FLOAT, TypeName.DOUBLE)
_SHOWN = 300
_NO_PARTITION = ("timestamp", "timestamp_ntz", "binary")


@dataclass(frozen=True, slots=True)
class DeltaColumn:
    """A declared column and its location; partition values are in the log."""

    name: str
    type: SqlType
    source_name: str
    place: Place
    is_partition: bool


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A checked table at one version; `table_id` changes when the table is recreated."""

    path: TablePath
    table_id: str
    version: int
    columns: tuple[DeltaColumn, ...]


def captured_columns(fields: tuple[Field, ...]) -> tuple[CapturedColumn, ...]:
    return tuple(CapturedColumn(f.name, f.type, declared_encoding(f.type)) for f in fields)


def load_table(path: TablePath, version: int | None = None) -> DeltaTable:
    """The table at `version` (default: the newest); SourceUnavailableError if there is no table."""
    try:
        with store_faults(path):
            return DeltaTable(str(path), version=version, storage_options=delta_options(path))
    except SluiceError:
        raise
    except TableNotFoundError as exc:
        raise SourceUnavailableError(
            f'there is no delta table at "{path}"',
            hint="Check the path option; if the table was removed, create it again, and it is "
            "copied again by itself.",
        ) from exc
    except (DeltaError, OSError) as exc:
        what = "" if version is None else f" at version {version}"
        raise SourceError(
            f'delta table "{path}" cannot be read{what}: {exc}',
            hint="Its log is damaged, may not be read by this user, or needs a newer reader.",
        ) from exc


def check_source_table(
    path: TablePath,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
    *,
    version: int | None = None,
) -> SourceTable:
    """Check the table at `version` (default: the newest) against its declaration.

    SourceUnavailableError if there is no table, SourceError if its protocol, columns or types do
    not fit. The key's uniqueness is not checked.
    """
    table = load_table(path, version)
    _check_protocol(path, table)
    metadata = table.metadata()
    mode = metadata.configuration.get(_MAPPING_MODE, "none")
    partitions = frozenset(metadata.partition_columns)
    items = {item["name"]: item for item in json.loads(table.schema().to_json())["fields"]}
    columns = tuple(
        _column(declared, item, mode, is_partition=item["name"] in partitions)
        for declared, item in _matched(path, fields, items)
    )
    inexact = [c.name for c in columns if c.name in primary_key and c.type.name in _NO_KEY]
    if inexact:
        raise DefinitionError(
            f'delta table "{path}" is declared with {_declared(columns, inexact[0])} column '
            f'"{inexact[0]}" in its primary key',
            hint="Use an exact type in the primary key.",
        )
    return SourceTable(path, str(metadata.id), int(table.version()), columns)


def _declared(columns: tuple[DeltaColumn, ...], name: str) -> str:
    return next(str(column.type) for column in columns if column.name == name)


def _check_protocol(path: TablePath, table: DeltaTable) -> None:
    protocol = table.protocol()
    denied = sorted(set(protocol.reader_features or ()) - _READ_FEATURES)
    if not denied and protocol.min_reader_version > _OLD_READERS + 1:
        denied = [f"reader version {protocol.min_reader_version}"]
    if denied:
        raise SourceError(
            f'delta table "{path}" uses {", ".join(denied)}, which cannot be read as a dimension',
            hint="Drop the table feature, or copy the table to one without it.",
        )


def _matched(
    path: TablePath, fields: tuple[Field, ...], items: Mapping[str, Item]
) -> list[tuple[Field, Item]]:
    matches = {f.name: matching(f.name, items) for f in fields}
    missing = [name for name, item in matches.items() if item is None]
    if missing:
        raise DefinitionError(
            f'delta table "{path}" has no column {_listed(missing)}',
            hint=of_columns(missing[0], items),
        )
    pairs = [(f, item) for f in fields if (item := matches[f.name]) is not None]
    reasons = {f: list(complaints(item["name"], item["type"], f.type)) for f, item in pairs}
    wrong = [(f, item) for f, item in pairs if reasons[f]]
    if wrong:
        texts = [(f.name, declarable(item["type"])) for f, item in wrong]
        expected = [f"{name} {text}"[:_SHOWN] for name, text in texts if text is not None]
        why = "; ".join(each[:_SHOWN] for f, _ in wrong for each in reasons[f])
        raise DefinitionError(
            f'delta table "{path}" does not fit its declaration: {why}',
            hint=f"Declare {', '.join(expected)}."
            if expected
            else "Leave these columns out of the declaration.",
        )
    return pairs


def _column(declared: Field, item: Item, mode: str, *, is_partition: bool) -> DeltaColumn:
    if is_partition and item["type"] in _NO_PARTITION:
        raise SourceError(
            f'partition column "{item["name"]}" is {item["type"]}, whose values in the log are '
            "not exact",
            hint="Leave the column out of the declaration.",
        )
    place = place_of(item, declared.type, mode)
    return DeltaColumn(declared.name, declared.type, item["name"], place, is_partition)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
