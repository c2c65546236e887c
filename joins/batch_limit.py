"""How many records a micro-batch may have, so that it stays near a number of bytes.

Spark's Kafka source limits the records of a batch, not their bytes. So the limit is the bytes over
the average size of a record: of what earlier batches have read, else of what the topic stores. A
topic may store its records compressed; where a batch turns out much heavier than it should be, the
query is started again with a smaller limit. A record that is larger than the limit passes alone.
"""

import threading
from collections.abc import Mapping

_TOLERANCE = 2.0


class BatchLimit:
    """The limit of one job's probe; `record` comes from Spark's batch thread."""

    def __init__(self, max_records: int, max_bytes: int) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._in_use: int | None = None
        self._seen_bytes: float | None = None

    def begin(self, average_bytes: float | None) -> int:
        """Records of a batch at the most, from now on: at least one.

        Args:
            average_bytes: of a record, None if nothing is known of them.
        """
        with self._lock:
            known = [size for size in (average_bytes, self._seen_bytes) if size]
            self._in_use = self._records(max(known, default=None))
            return self._in_use

    def _records(self, average_bytes: float | None) -> int:
        if average_bytes is None:
            return self._max_records
        return max(1, min(self._max_records, int(self._max_bytes // average_bytes)))

    def record(self, counts: Mapping[str, int]) -> None:
        """A batch has read `records` of so many `bytes`."""
        records, size = counts.get("records", 0), counts.get("bytes", 0)
        if records > 1 and size > _TOLERANCE * self._max_bytes:
            with self._lock:
                self._seen_bytes = max(size / records, self._seen_bytes or 0.0)

    def is_too_high(self) -> bool:
        """Whether batches are so heavy that the query should begin again with a lower limit."""
        with self._lock:
            if self._in_use is None or self._seen_bytes is None:
                return False
            return self._records(self._seen_bytes) < self._in_use
