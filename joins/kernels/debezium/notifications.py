"""Notifications of a connector about its snapshots, as documented and as written.

Source: Debezium 3.5, "Sending notifications"; `io.debezium.pipeline.notification`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from joins.kernels.json.each import broken

_TABLE_NAMES = ("scanned_collection", "current_collection_in_progress", "data_collection")
_SHOWN_BYTES = 200
_Word = TypeVar("_Word", bound=StrEnum)


class SnapshotFamily(StrEnum):
    """Kind of snapshot: the notification's `aggregate_type`."""

    INITIAL = "Initial Snapshot"
    INCREMENTAL = "Incremental Snapshot"


class SnapshotEvent(StrEnum):
    """Event in a snapshot: the notification's `type`."""

    STARTED = "STARTED"
    IN_PROGRESS = "IN_PROGRESS"
    PAUSED = "PAUSED"
    RESUMED = "RESUMED"
    TABLE_CHUNK_IN_PROGRESS = "TABLE_CHUNK_IN_PROGRESS"
    TABLE_CHUNK_COMPLETED = "TABLE_CHUNK_COMPLETED"
    TABLE_SCAN_COMPLETED = "TABLE_SCAN_COMPLETED"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"
    SKIPPED = "SKIPPED"


class ScanStatus(StrEnum):
    """Result of the scan of a table."""

    SUCCEEDED = "SUCCEEDED"
    EMPTY = "EMPTY"
    NO_PRIMARY_KEY = "NO_PRIMARY_KEY"
    SKIPPED = "SKIPPED"
    SQL_EXCEPTION = "SQL_EXCEPTION"
    UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"


@dataclass(frozen=True, slots=True)
class SnapshotNotification:
    """A notification about a snapshot; None for what it lacks."""

    family: SnapshotFamily
    event: SnapshotEvent
    id: str  # of the connector; in an incremental snapshot that of the signal
    connector: str | None = None  # its logical name
    timestamp_ms: int | None = None
    # all tables of the snapshot, as the connector names them (`shop.items`)
    tables: tuple[str, ...] = ()
    table: str | None = None
    rows: int | None = None
    status: ScanStatus | None = None
    chunk: tuple[int, int] | None = None  # (index, number of chunks)
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnknownNotification:
    """A record that is no notification about a snapshot, the reason, and its beginning."""

    reason: str
    text: str


def read_notification(
    key: bytes | None, value: bytes | None
) -> SnapshotNotification | UnknownNotification:
    """The notification in a record, with or without a schema in front; it does not raise.

    `key` is an object with the notification's `id`, which is read if the value lacks it.
    """
    try:
        return _notification(_payload(value), key)
    except _NotUnderstoodError as exc:
        return UnknownNotification(str(exc), (value or b"")[:_SHOWN_BYTES].decode(errors="replace"))


class _NotUnderstoodError(Exception): ...


def _payload(text: bytes | None) -> Mapping[str, object]:
    if text is None:
        raise _NotUnderstoodError("it has no value")
    try:
        value = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as exc:
        raise _NotUnderstoodError(broken(exc)) from exc
    if isinstance(value, dict) and set(value) == {"schema", "payload"}:
        value = value["payload"]
    if not isinstance(value, dict):
        raise _NotUnderstoodError("it is no object")
    return value


def _notification(value: Mapping[str, object], key: bytes | None) -> SnapshotNotification:
    family = _one_of(SnapshotFamily, value.get("aggregate_type"), "aggregate_type")
    event = _one_of(SnapshotEvent, value.get("type"), "type")
    more = dict(_texts(value.get("additional_data")))
    table = next((more[name] for name in _TABLE_NAMES if name in more), None)
    collections = more.pop("data_collections", "")
    if event is SnapshotEvent.TABLE_SCAN_COMPLETED and table is None:
        table = collections or None  # of a scan of one table
        if table is None or "," in table:
            raise _NotUnderstoodError("it does not name the scanned table")
    for name in _TABLE_NAMES:
        more.pop(name, None)
    rows, status = more.pop("total_rows_scanned", None), more.pop("status", None)
    index, total = more.pop("chunk_index", None), more.pop("total_chunks", None)
    chunk = None
    if index is not None and total is not None:
        chunk = _number(index, "chunk_index"), _number(total, "total_chunks")
    at = value.get("timestamp")
    return SnapshotNotification(
        family,
        event,
        _id(value, key),
        more.pop("connector_name", None),
        None if at is None else _number(at, "timestamp"),
        tuple(name.strip() for name in collections.split(",") if name.strip()),
        table,
        None if rows is None else _number(rows, "total_rows_scanned"),
        None if status is None else _one_of(ScanStatus, status, "status"),
        chunk,
        more,
    )


def _id(value: Mapping[str, object], key: bytes | None) -> str:
    own = value.get("id")
    if own is None and key is not None:
        own = _payload(key).get("id")
    if not isinstance(own, str):
        raise _NotUnderstoodError("it has no id")
    return own


def _one_of(words: type[_Word], value: object, name: str) -> _Word:
    try:
        return words(str(value))
    except ValueError:
        raise _NotUnderstoodError(f'its "{name}" is {value!r}') from None


def _number(value: object, name: str) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and value.isascii() and value.isdigit()):
        number = int(str(value))
        if 0 <= number < 1 << 63:
            return number
    raise _NotUnderstoodError(f'its "{name}" is {value!r}')


def _texts(value: object) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _NotUnderstoodError('its "additional_data" is no object')
    return {str(name): str(text) for name, text in value.items() if text is not None}
