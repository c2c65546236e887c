"""Notifications of a connector: the shapes of its code and of its documentation."""

import json

import pytest

from joins.kernels.debezium.notifications import (
    ScanStatus,
    SnapshotEvent,
    SnapshotFamily,
    SnapshotNotification,
    UnknownNotification,
    read_notification,
)

KEY = b'{"id":"n"}'
INITIAL, INCREMENTAL = SnapshotFamily.INITIAL, SnapshotFamily.INCREMENTAL


def notice(event, family="Initial Snapshot", timestamp=5, **data):
    whole = {"id": "n", "type": event, "aggregate_type": family, "timestamp": timestamp}
    return whole | {"additional_data": data}


def read(value, key=KEY):
    text = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return read_notification(key, text)


def of(family, event, **more):
    return SnapshotNotification(family, SnapshotEvent(event), "n", timestamp_ms=5, **more)


KNOWN = {
    "started": (
        notice("STARTED", connector_name="shop"),
        of(INITIAL, "STARTED", connector="shop"),
    ),
    "time_as_text": (notice("COMPLETED", timestamp="5"), of(INITIAL, "COMPLETED")),
    "with_a_schema": (
        {"schema": {}, "payload": notice("SKIPPED")},
        of(INITIAL, "SKIPPED"),
    ),
    "table_as_the_code_tells_it": (
        notice(
            "TABLE_SCAN_COMPLETED",
            scanned_collection="shop.items",
            data_collections="shop.items,shop.users",
            total_rows_scanned="12",
            status="SUCCEEDED",
        ),
        of(
            INITIAL,
            "TABLE_SCAN_COMPLETED",
            table="shop.items",
            tables=("shop.items", "shop.users"),
            rows=12,
            status=ScanStatus.SUCCEEDED,
        ),
    ),
    "table_as_the_documentation_tells_it": (
        notice("TABLE_SCAN_COMPLETED", data_collection="shop.items", total_rows_scanned=0),
        of(INITIAL, "TABLE_SCAN_COMPLETED", table="shop.items", rows=0),
    ),
    "progress": (
        notice("IN_PROGRESS", data_collections="a.b, a.c", current_collection_in_progress="a.c"),
        of(INITIAL, "IN_PROGRESS", tables=("a.b", "a.c"), table="a.c"),
    ),
    "chunk": (
        notice(
            "TABLE_CHUNK_COMPLETED", scanned_collection="a.b", chunk_index="1", total_chunks="4"
        ),
        of(INITIAL, "TABLE_CHUNK_COMPLETED", table="a.b", chunk=(1, 4)),
    ),
    "incremental_without_a_key": (
        notice(
            "TABLE_SCAN_COMPLETED",
            "Incremental Snapshot",
            scanned_collection="a.b",
            status="NO_PRIMARY_KEY",
        ),
        of(INCREMENTAL, "TABLE_SCAN_COMPLETED", table="a.b", status=ScanStatus.NO_PRIMARY_KEY),
    ),
    "incremental_progress_has_more": (
        notice("IN_PROGRESS", "Incremental Snapshot", last_processed_key="[5]"),
        of(INCREMENTAL, "IN_PROGRESS", more={"last_processed_key": "[5]"}),
    ),
    "without_data": (notice("ABORTED") | {"additional_data": None}, of(INITIAL, "ABORTED")),
}


@pytest.mark.parametrize(("value", "expected"), KNOWN.values(), ids=KNOWN)
def test_a_notification_is_read(value, expected):
    assert read(value) == expected


def test_the_id_may_be_in_the_key_alone():
    value = {name: each for name, each in notice("STARTED").items() if name != "id"}
    assert read(value).id == "n"


UNKNOWN = {
    "no_value": (None, "no value"),
    "no_json": (b"{", "invalid JSON"),
    "no_utf_8": (b"\xff", "invalid JSON"),
    "no_object": ([1], "no object"),
    "another_family": (notice("STARTED", "Streaming"), "aggregate_type"),
    "another_event": (notice("EXPLODED"), '"type"'),
    "another_status": (notice("TABLE_SCAN_COMPLETED", data_collection="a", status="OK"), "status"),
    "a_count_that_is_none": (
        notice("TABLE_SCAN_COMPLETED", data_collection="a", total_rows_scanned="many"),
        "total_rows_scanned",
    ),
    "a_scan_of_no_table": (notice("TABLE_SCAN_COMPLETED"), "the scanned table"),
    "a_scan_of_one_of_two": (
        notice("TABLE_SCAN_COMPLETED", data_collections="a,b"),
        "the scanned table",
    ),
    "a_time_that_is_none": (notice("STARTED", timestamp="soon"), "timestamp"),
    "data_that_are_none": (notice("STARTED") | {"additional_data": [1]}, "additional_data"),
    "an_id_that_is_none": (notice("STARTED") | {"id": 5}, "no id"),
}


@pytest.mark.parametrize(("value", "reason"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_understood_is_told(value, reason):
    unknown = read(value)
    assert isinstance(unknown, UnknownNotification)
    assert reason in unknown.reason
