"""How many records a micro-batch may have, so that it stays near a number of bytes.

A batch is planned by offsets, which tell no bytes. So the limit is the bytes over the average size
of a record: of what earlier batches have read, else of what the topic stores, which may be
compressed. A record that is larger than the limit passes all the same.
"""

import threading
from collections.abc import Mapping


class BatchLimit:
    """The limit of one job's probe; `records` and `record` come from the loop's thread."""

    def __init__(self, max_records: int, max_bytes: int) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._in_use = 0
        self._given_average = 0.0
        self._is_full = False
        self._seen_records = 0
        self._seen_bytes = 0

    def begin(self, average_bytes: float | None) -> None:
        """A loop begins.

        Args:
            average_bytes: of a record, None if nothing is known of them.
        """
        with self._lock:
            self._given_average = average_bytes or 0.0

    def records(self) -> int:
        """Records of the next batch at the most: at least one."""
        with self._lock:
            average_bytes = self._average()
            self._in_use = self._max_records
            if average_bytes > 0:
                self._in_use = max(1, min(self._in_use, int(self._max_bytes // average_bytes)))
            return self._in_use

    def _average(self) -> float:
        seen = self._seen_bytes / self._seen_records if self._seen_records else 0.0
        return max(self._given_average, seen)

    def record(self, counts: Mapping[str, int]) -> None:
        """A batch has read `records` with so many `bytes`."""
        records, size = counts.get("records", 0), counts.get("bytes", 0)
        with self._lock:
            self._seen_records += records
            self._seen_bytes += size
            self._is_full = 2 * records >= self._in_use > 0

    def is_draining(self) -> bool:
        with self._lock:
            return self._is_full
