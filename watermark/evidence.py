"""On what evidence a table is called complete."""

from enum import StrEnum


class Evidence(StrEnum):
    """Why a table counts as complete; shown wherever the opening is shown."""

    IN_BAND_WATERMARK = "in_band_watermark"
    BOUNDED_INPUT_ENDED = "bounded_input_ended"
    END_OFFSETS = "end_offsets"
    LAST_SNAPSHOT_ROW = "last_snapshot_row"
    TABLE_SCAN_COMPLETED = "table_scan_completed"
    FIRST_STREAMED_CHANGE = "first_streamed_change"
    CONNECTOR_OFFSETS = "connector_offsets"
    TABLE_TRUNCATED = "table_truncated"
    SNAPSHOT_SKIPPED = "snapshot_skipped"
    OPERATOR_OVERRIDE = "operator_override"


class Quiet(StrEnum):
    """Why no row of a snapshot of somebody else can still be on its way into the topic."""

    ROWS_COUNTED = "rows_counted"
    PARTITIONS_ENDED = "partitions_ended"
    CONNECTOR_OFFSETS = "connector_offsets"
    SETTLE_TIME = "settle_time"
    NO_SNAPSHOT = "no_snapshot"
    OPERATOR_OVERRIDE = "operator_override"
