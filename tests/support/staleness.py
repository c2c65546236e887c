"""A load whose rows show by themselves how old the table was that they met.

A writer numbers its changes of one row and notes when each was acknowledged. Records of that row
come all the time. The oracle reads the output and the records' times in Kafka, and no pin: a record
written at t must have met every change that was acknowledged before t - bound.
"""

import signal
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil

from tests.support.shop import click
from tests.support.topics import consume, produce

KEY = 1
EVERY_S = 0.2


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
    """Changes of the row and clicks of it, each on a thread, and when changes were acknowledged."""

    change: Callable[[int], None]
    servers: str
    topic: str
    bound_ms: int
    record: Callable[[int], dict[str, Any]] = lambda number: click(KEY, number)
    acknowledged_ms: list[int] = field(default_factory=list)
    sent: int = 0
    errors: list[str] = field(default_factory=list)
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
        while not self._ends.wait(EVERY_S):
            try:
                self.change(len(self.acknowledged_ms) + 1)
            except Exception as exc:  # shown in the result, or expected
                self.errors.append(repr(exc))
                continue
            self.acknowledged_ms.append(time.time_ns() // 1_000_000)

    def _click(self) -> None:
        while not self._ends.wait(EVERY_S / 4):
            produce(self.servers, self.topic, [self.record(self.sent)])
            self.sent += 1

    def stale_rows(self, rows: list[dict[str, Any]]) -> list[str]:
        """Rows that had not met a change which was acknowledged before their time - bound."""
        written_ms = {
            (each.partition, each.offset): each.timestamp
            for each in consume(self.servers, self.topic)
        }
        found = []
        for row in rows:
            at_ms = written_ms[row["_partition"], row["_offset"]]
            owed = bisect_right(self.acknowledged_ms, at_ms - self.bound_ms)
            seen = int(row["name"]) if row["name"].isdigit() else 0
            if seen < owed:
                found.append(f"record {row['_offset']} of {at_ms} saw {seen}, owed {owed}")
        return found
