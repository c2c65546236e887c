"""A load whose rows show by themselves how old the table was that they met.

A writer numbers its changes of one row and notes when each was acknowledged. Records of that row
come all the time. The oracle reads the output and the records' times in Kafka, and no pin: a record
written at t must have met every change that was acknowledged before t - bound.
"""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil

from tests.support.bulk import BulkProducer
from tests.support.shop import click

KEY = 1
_PARTITIONS = 2
Numbers = np.ndarray[Any, np.dtype[np.int64]]


@contextmanager
def halted(processes: Sequence[psutil.Process]) -> Iterator[None]:
    """Processes that stand still meanwhile."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


@dataclass
class Load:
    """Changes of the row and clicks of it, each on a thread, and when changes were acknowledged.

    `topic` has two partitions; `each` records are sent at once, four times for each change.
    """

    change: Callable[[int], None]
    servers: str
    topic: str
    bound_ms: int
    record: Callable[[int], dict[str, Any]] = lambda number: click(KEY, number)
    each: int = 1
    every_s: float = 0.6
    acknowledged_ms: list[int] = field(default_factory=list)
    sent: int = 0
    errors: list[str] = field(default_factory=list)
    _written: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Partition → first offset and time of the records that were sent at once."""
    _ends: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=each, daemon=True) for each in (self._write, self._click)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ends.set()
            for thread in threads:
                thread.join(60)

    def _write(self) -> None:
        while not self._ends.wait(self.every_s):
            try:
                self.change(len(self.acknowledged_ms) + 1)
            except Exception as exc:  # shown in the result, or expected
                self.errors.append(repr(exc))
                continue
            self.acknowledged_ms.append(time.time_ns() // 1_000_000)

    def _click(self) -> None:
        with BulkProducer(self.servers, self.topic) as producer:
            while not self._ends.wait(self.every_s / 4):
                numbers = range(self.sent, self.sent + self.each)
                now_ms = time.time_ns() // 1_000_000
                values: dict[int, list[bytes | None]] = {p: [] for p in range(_PARTITIONS)}
                for number in numbers:
                    values[number % _PARTITIONS].append(json.dumps(self.record(number)).encode())
                for partition, first in producer.send(values, at_ms=now_ms).items():
                    self._written.setdefault(partition, []).append((first, now_ms))
                self.sent = numbers.stop

    def stale_rows(self, rows: list[dict[str, Any]]) -> list[str]:
        """Rows that had not met a change which was acknowledged before their time - bound."""
        partition, offset = ([row[name] for row in rows] for name in ("_partition", "_offset"))
        seen = [int(row["name"]) if row["name"].isdigit() else 0 for row in rows]
        return self.stale(*(np.array(each, np.int64) for each in (partition, offset, seen)))

    def stale(self, partition: Numbers, offset: Numbers, seen: Numbers) -> list[str]:
        """As `stale_rows`, of the places of rows and the numbers of the changes that they met."""
        acknowledged = np.array(self.acknowledged_ms, np.int64)
        found = []
        for number, sent in sorted(self._written.items()):
            here = partition == number
            first, at_ms = np.array(sent, np.int64).T
            written = at_ms[np.searchsorted(first, offset[here], "right") - 1]
            owed = np.searchsorted(acknowledged, written - self.bound_ms, "right")
            for at in np.flatnonzero(seen[here] < owed):
                found.append(
                    f"record {offset[here][at]} of {written[at]} saw {seen[here][at]}, "
                    f"owed {owed[at]}"
                )
        return found
