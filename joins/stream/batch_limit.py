"""How many records a micro-batch may have, so that it stays near a number of bytes.

Spark's Kafka source limits the records of a batch, not their bytes. So the limit is the bytes over
the average size of a record: of what earlier batches have read, else of what the topic stores. A
topic may store its records compressed; where a batch turns out much heavier than it should be, and
not for a single record, the query is started again with a smaller limit. A record that is larger
than the limit passes all the same.
"""

import threading
from collections.abc import Mapping

_TOLERANCE = 2
_SMALL_BYTES = 1 << 10


class BatchLimit:
    """The limit of one job's probe; `record` comes from Spark's batch thread."""

    def __init__(self, max_records: int, max_bytes: int) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._in_use = 0
        self._given_average = 0.0
        self._too_high = False
        self._is_full = False
        self._seen_records = 0
        self._seen_bytes = 0

    def begin(self, average_bytes: float | None) -> int:
        """Records of a batch at the most, from now on: at least one.

        Args:
            average_bytes: of a record, None if nothing is known of them.
        """
        with self._lock:
            self._given_average = average_bytes or 0.0
            self._in_use = self._records(self._average())
            self._too_high = False
            return self._in_use

    def _average(self) -> float:
        """The greater of what was given and what was seen, 0 while nothing is known."""
        return max(self._given_average, self._seen_average())

    def _seen_average(self) -> float:
        return self._seen_bytes / self._seen_records if self._seen_records else 0.0

    def _records(self, average_bytes: float) -> int:
        if average_bytes == 0:
            return self._max_records
        return max(1, min(self._max_records, int(self._max_bytes // average_bytes)))

    def record(self, counts: Mapping[str, int]) -> None:
        """A batch has read `records` with so many `bytes`."""
        records, size = counts.get("records", 0), counts.get("bytes", 0)
        with self._lock:
            self._seen_records += records
            self._seen_bytes += size
            self._is_full = 2 * records >= self._in_use > 0
            heavy = records > 1 and size > _TOLERANCE * self._max_bytes
            fitting = self._records(self._seen_average())
            self._too_high = self._too_high or (heavy and _TOLERANCE * fitting <= self._in_use)

    def is_of_small_records(self) -> bool:
        """Whether a record has at most 1 KiB, on average; not while nothing is known of them."""
        with self._lock:
            return 0 < self._average() <= _SMALL_BYTES

    def is_draining(self) -> bool:
        """Whether the newest batch was at least half full: more records wait than arrive."""
        with self._lock:
            return self._is_full

    def is_too_high(self) -> bool:
        """Whether batches are so heavy that the query should begin again with a lower limit."""
        with self._lock:
            return self._too_high
