"""The values that travel with the records: watermarks and statuses.

A stream starts at `MIN_TIMESTAMP`, so a record with that timestamp is late from the start; a
source that has ended says `MAX_TIMESTAMP`. Times are signed 64-bit milliseconds since the Unix
epoch, UTC; Python's integers do not overflow, so sums are clamped where they are made.

>>> Watermark(7)
Watermark(timestamp_ms=7, use_processing_time=False)
>>> Watermark(2**70) == END_OF_TIME
True
>>> add_clamped(MAX_TIMESTAMP, 1) == MAX_TIMESTAMP
True
"""

from dataclasses import dataclass
from enum import Enum, StrEnum

from watermark.errors import InvalidParameterError


class Evidence(StrEnum):
    """Why a table counts as complete."""

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
    """Why no row of a connector's snapshot can still be on its way into the topic."""

    ROWS_COUNTED = "rows_counted"
    PARTITIONS_ENDED = "partitions_ended"
    CONNECTOR_OFFSETS = "connector_offsets"
    SETTLE_TIME = "settle_time"
    NO_SNAPSHOT = "no_snapshot"
    OPERATOR_OVERRIDE = "operator_override"


MIN_TIMESTAMP = -(2**63)
MAX_TIMESTAMP = 2**63 - 1


def clamp(timestamp_ms: int) -> int:
    """Clamp to the signed 64-bit range.

    >>> clamp(-(2**80)) == MIN_TIMESTAMP, clamp(5)
    (True, 5)
    """
    if timestamp_ms > MAX_TIMESTAMP:
        return MAX_TIMESTAMP
    return MIN_TIMESTAMP if timestamp_ms < MIN_TIMESTAMP else timestamp_ms


def add_clamped(timestamp_ms: int, duration_ms: int) -> int:
    return clamp(timestamp_ms + duration_ms)


@dataclass(frozen=True, slots=True)
class Watermark:
    """A promise that no record at or before this time is still to come.

    With `use_processing_time` the time follows the wall clock from here on, for good, and
    `timestamp_ms` is the last effective time: `(t, true)` requires t <= now, so it means the same
    as `(MIN_TIMESTAMP, true)`. Timestamps are clamped to 64 bits.

    Source: FLIP-326, "Public Interfaces" 1.
    """

    timestamp_ms: int
    use_processing_time: bool = False

    def __post_init__(self) -> None:
        timestamp_ms = self.timestamp_ms
        if type(timestamp_ms) is not int:
            raise InvalidParameterError(
                f"watermark timestamp {timestamp_ms!r} is not a whole number of milliseconds",
                hint="Give epoch milliseconds as an int.",
            )
        if type(self.use_processing_time) is not bool:
            raise InvalidParameterError(
                f"watermark has use_processing_time {self.use_processing_time!r}, expected a bool",
                hint="Give True for processing time, False for event time.",
            )
        if not MIN_TIMESTAMP <= timestamp_ms <= MAX_TIMESTAMP:
            object.__setattr__(self, "timestamp_ms", clamp(timestamp_ms))


class WatermarkStatus(Enum):
    """ACTIVE if records and watermarks are expected from a channel."""

    ACTIVE = "active"
    IDLE = "idle"


Progress = Watermark | WatermarkStatus

START_OF_TIME = Watermark(MIN_TIMESTAMP)
"""Start of each stream: no promise yet."""

END_OF_TIME = Watermark(MAX_TIMESTAMP)
"""Watermark of a source that has ended."""

PROCESSING_TIME = Watermark(MIN_TIMESTAMP, use_processing_time=True)
"""From here on the clock is the time."""
