"""Event time of a changelog: how far each partition's rows are, as of every commit.

A partition's watermark is the greatest value of the WATERMARK FOR expression over its rows so far.
Rows of a copy that is not complete in their partition do not count yet: until its watermark record,
rows of the copy with any rowtime may follow. A row whose rowtime is NULL or too far ahead of the
clock gives no watermark; it is counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.ticks import micros, millis
from joins.kernels.expressions.casts import mask_of
from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from joins.plan.plan import WatermarkSpec

_MOST_MS = 2**53  # far beyond all timestamps
_NULLS, _FUTURE = "event:null-rowtimes", "event:future-rowtimes"


@dataclass(frozen=True, slots=True)
class ChangelogEventTime:
    """What the rows of a changelog up to some version say of event time.

    Attributes:
        watermarks: partition → the greatest value, milliseconds, of complete copies.
        pending: partition → (generation, greatest value) of rows of copies that are not complete.
        null_rowtimes: rows without a rowtime, which are no versions.
        future_rowtimes: rows whose rowtime was too far ahead.
    """

    watermarks: Mapping[int, int] = field(default_factory=dict)
    pending: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    null_rowtimes: int = 0
    future_rowtimes: int = 0

    def counters(self) -> dict[str, int]:
        """All of it as named numbers, which a table's log keeps with a commit."""
        named = {f"event:watermark:{at}": ms for at, ms in self.watermarks.items()}
        for at, (generation, ms) in self.pending.items():
            named[f"event:pending:{at}"] = ms
            named[f"event:pending-generation:{at}"] = generation
        counts = {_NULLS: self.null_rowtimes, _FUTURE: self.future_rowtimes}
        return named | {name: count for name, count in counts.items() if count}

    @staticmethod
    def names(partitions: Iterable[int]) -> list[str]:
        kinds = ("watermark", "pending", "pending-generation")
        return [_NULLS, _FUTURE, *(f"event:{kind}:{at}" for at in partitions for kind in kinds)]

    @classmethod
    def of_counters(cls, counters: Mapping[str, int]) -> "ChangelogEventTime":
        """What `counters` gave."""
        by_kind: dict[str, dict[int, int]] = {}
        for name, value in counters.items():
            if name not in (_NULLS, _FUTURE):
                _, kind, at = name.split(":")
                by_kind.setdefault(kind, {})[int(at)] = value
        generations = by_kind.get("pending-generation", {})
        pending = {at: (generations[at], ms) for at, ms in by_kind.get("pending", {}).items()}
        watermarks = by_kind.get("watermark", {})
        return cls(watermarks, pending, counters.get(_NULLS, 0), counters.get(_FUTURE, 0))

    def after(
        self, digest: "EventDigest", marks: Mapping[int, tuple[int, int]]
    ) -> "ChangelogEventTime":
        """The state behind a commit; `marks` has each partition's newest watermark record then."""
        pending = dict(self.pending)
        watermarks = dict(self.watermarks)
        for (at, generation), ms in digest.greatest.items():
            known = pending.get(at, (generation, ms))
            if generation <= _complete(marks, at):
                watermarks[at] = max(ms, watermarks.get(at, ms))
            else:
                pending[at] = (max(generation, known[0]), max(ms, known[1]))
        for at, (generation, ms) in list(pending.items()):
            if generation <= _complete(marks, at):
                watermarks[at] = max(ms, watermarks.get(at, ms))
        return replace(
            self,
            watermarks=watermarks,
            pending=pending,
            null_rowtimes=self.null_rowtimes + digest.null_rowtimes,
            future_rowtimes=self.future_rowtimes + digest.future_rowtimes,
        )


class EventDigest:
    """Sums up what changelog rows say of event time, in any order."""

    def __init__(self) -> None:
        self.greatest: dict[tuple[int, int], int] = {}  # (partition, generation) → milliseconds
        self.null_rowtimes = 0
        self.future_rowtimes = 0

    def take(self, batch: pa.RecordBatch, spec: WatermarkSpec, clock_ms: int) -> None:
        """Count the rows of `batch`, which has the declared columns; `clock_ms` is now."""
        rows = batch.filter(pc.not_equal(batch.column("_op"), "w"))
        if rows.num_rows == 0:
            return
        time = rows.column(spec.rowtime)
        limit = micros(np.array([min(clock_ms + spec.max_future_ms, _MOST_MS)]))[0]
        ahead = mask_of(pc.greater(time.view(pa.int64()), pa.scalar(int(limit))))
        self.null_rowtimes += time.null_count
        self.future_rowtimes += int(ahead.sum())
        scope = Scope(lambda column: rows.column(column.name), rows.num_rows, clock_ms)
        values = evaluate_rows(spec.expression, scope).values
        usable = mask_of(values.is_valid()) & mask_of(time.is_valid()) & ~ahead
        if not usable.any():
            return
        rowtimes = values.filter(pa.array(usable))
        coordinates = rows.filter(pa.array(usable)).select(["_partition", "_generation"])
        coordinate_rows = np.column_stack([column.to_numpy() for column in coordinates.columns])
        places, run = np.unique(coordinate_rows, axis=0, return_inverse=True)
        greatest = np.full(len(places), np.iinfo(np.int64).min)
        np.maximum.at(greatest, run.reshape(-1), millis(rowtimes))
        for place, ms in zip(places.tolist(), greatest.tolist(), strict=True):
            self._raise((place[0], place[1]), ms)

    def _raise(self, place: tuple[int, int], ms: int) -> None:
        self.greatest[place] = max(ms, self.greatest.get(place, ms))

    def to_json(self) -> dict[str, Any]:
        return {
            "greatest": [[*place, ms] for place, ms in self.greatest.items()],
            "null_rowtimes": self.null_rowtimes,
            "future_rowtimes": self.future_rowtimes,
        }

    def merge(self, value: Mapping[str, Any]) -> None:
        """Add another task's digest of the same batch."""
        for partition, generation, ms in value["greatest"]:
            self._raise((partition, generation), ms)
        self.null_rowtimes += value["null_rowtimes"]
        self.future_rowtimes += value["future_rowtimes"]


def _complete(marks: Mapping[int, tuple[int, int]], partition: int) -> int:
    return marks[partition][0] if partition in marks else -1
