"""A Delta table as a source: what it is, and everything that is checked before it is read."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from joins.adapters.delta.types import (
    Item,
    Place,
    complaints,
    declarable,
    matching,
    place_of,
)
from joins.adapters.store.delta_tables import delta_options, store_faults
from joins.kernels.changelog.envelope import CapturedColumn
from joins.kernels.json.wire import declared_encoding
from joins.kernels.table_path import TablePath
from joins.plan.errors import DefinitionError, SourceError, SourceUnavailableError, of_columns
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from watermark.errors import SluiceError

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
    """A declared column and where its values are.

    Attributes:
        name: the declared one, as in the records.
        source_name: as in the table's schema.
        place: in data files.
        is_partition: its values are in the log, not in the data files.
    """

    name: str
    type: SqlType
    source_name: str
    place: Place
    is_partition: bool


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table at one version, checked.

    Attributes:
        table_id: of its metadata; a table that was created anew has another one.
        columns: in the order of the declaration.
    """

    path: TablePath
    table_id: str
    version: int
    columns: tuple[DeltaColumn, ...]


def captured_columns(fields: tuple[Field, ...]) -> tuple[CapturedColumn, ...]:
    return tuple(CapturedColumn(f.name, f.type, declared_encoding(f.type)) for f in fields)


def load_table(path: TablePath, version: int | None = None) -> DeltaTable:
    """The table at `version`, the newest one by default.

    Raises:
        SourceUnavailableError: there is no table now.
        SourceError: it cannot be read.
    """
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
    """Check everything that can be wrong with the table; nothing is changed.

    Args:
        path: of the table's root.
        fields: the declared columns.
        primary_key: the declared key; that it is one is the user's word.
        version: which one to look at, None for the newest.

    Raises:
        SourceUnavailableError: there is no table now.
        SourceError: its protocol, its columns or their types do not do.
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
    """Each declared field with the column that it names, by case if need be."""
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
