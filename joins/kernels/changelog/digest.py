"""State of the build side from changelog rows: marks, positions, offsets, counts, event time.

The table's rows give it again, except for event time, which the table's log keeps.
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
Position = tuple[int, int, int, int]
POSITION_COLUMNS = ("_epoch", "_file", "_pos", "_row")
DIGEST_COLUMNS = ("_op", *POSITION_COLUMNS, "_source_ts", "_partition", "_offset", "_generation")
_COMPACTED_READS = "compacted-reads"
_STREAMED = ("c", "u", "d")


@dataclass(frozen=True, slots=True)
class ChangelogEventTime:
    """Event time of a changelog's rows up to a version."""

    # partition → greatest value of complete copies, milliseconds
    watermarks: Mapping[int, int] = field(default_factory=dict)
    # partition → (generation, greatest value) of incomplete copies
    pending: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    null_rowtimes: int = 0
    future_rowtimes: int = 0  # rows whose rowtime was too far ahead

    def counters(self) -> dict[str, int]:
        """All values as named numbers, which the table's log keeps with a commit."""
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
        """The state after a commit; `marks` are its newest watermark records by partition."""
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
    """Aggregates event time of changelog rows, in any order."""

    def __init__(self) -> None:
        self.greatest: dict[tuple[int, int], int] = {}  # (partition, generation) → milliseconds
        self.null_rowtimes = 0
        self.future_rowtimes = 0

    def take(self, batch: pa.RecordBatch, spec: WatermarkSpec, clock_ms: int) -> None:
        """Counts the rows of `batch` (declared columns); `clock_ms` is now."""
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
        for partition, generation, ms in value["greatest"]:
            self._raise((partition, generation), ms)
        self.null_rowtimes += value["null_rowtimes"]
        self.future_rowtimes += value["future_rowtimes"]


def _complete(marks: Mapping[int, tuple[int, int]], partition: int) -> int:
    return marks[partition][0] if partition in marks else -1


@dataclass(frozen=True, slots=True)
class ChangelogState:
    """State of the committed part of a changelog table."""

    # partition → (generation, offset) of its newest watermark record
    marks: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    # partition → position of its newest streamed change
    high_water: Mapping[int, Position] = field(default_factory=dict)
    # partition → offset after its newest record
    next_offsets: Mapping[int, int] = field(default_factory=dict)
    snapshot_rows: int = 0  # number of `r` records of the newest generation
    generation: int = 0  # of the newest record, 0 before the first
    source_ts_ms: int = 0  # newest source time of a streamed change, 0 before the first
    # of a dimension with event time; not recoverable from rows
    events: ChangelogEventTime = field(default_factory=ChangelogEventTime)

    def is_complete(self, partition: int) -> bool:
        mark = self.marks.get(partition)
        return mark is not None and mark[0] >= self.generation


def compacted_reads(generation: int) -> str:
    return _COMPACTED_READS if generation <= 1 else f"{_COMPACTED_READS}-{generation}"


def reads_of(op: pa.Array, generation: pa.Array) -> dict[int, int]:
    read = pc.filter(generation, pc.equal(op, "r"))
    return {count["values"]: count["counts"] for count in pc.value_counts(read).to_pylist()}


def _positions(batch: pa.RecordBatch) -> np.ndarray:
    columns = [batch.column(name).cast(pa.int64()).fill_null(-1) for name in POSITION_COLUMNS]
    return np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])


def fresh(positions: np.ndarray, seen: Position | None) -> np.ndarray:
    """Rows that are newer than all before them and than `seen`: `bool[rows]`."""
    first = np.array([seen if seen is not None else (-1, -1, -1, -1)], dtype=np.int64)
    everything = np.concatenate([first, positions])
    order = np.lexsort(everything.T[::-1])
    ordered = everything[order]
    steps = np.any(ordered[1:] != ordered[:-1], axis=1)
    ranks = np.empty(len(everything), dtype=np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(steps)])
    before = np.maximum.accumulate(ranks)[:-1]
    return np.asarray(ranks[1:] > before)


class ChangelogDigest:
    """Aggregates changelog batches in the order of each partition, from `high_water` on."""

    def __init__(self, high_water: Mapping[int, Position]) -> None:
        self._high_water = dict(high_water)
        self.marks: dict[int, tuple[int, int]] = {}
        self._next_offsets: dict[int, int] = {}
        self._reads: dict[int, int] = {}
        self.generation = 0
        self.records = 0
        self.streamed = 0
        self.source_ts_ms = 0
        self.low_water: Position | None = None
        """Position of the oldest streamed change that was counted."""
        self.events = EventDigest()

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Counts `batch`; returns it without repeated changes."""
        keep = np.ones(batch.num_rows, dtype=bool)
        streamed = pc.is_in(batch.column("_op"), pa.array(_STREAMED)).to_numpy(zero_copy_only=False)
        partitions = batch.column("_partition").to_numpy(zero_copy_only=False)
        if streamed.any():
            positions = _positions(batch)
            for partition in np.unique(partitions[streamed]).tolist():
                rows = np.flatnonzero(streamed & (partitions == partition))
                keep[rows] = fresh(positions[rows], self._high_water.get(partition))
        offsets = batch.column("_offset").to_numpy(zero_copy_only=False)
        for partition in np.unique(partitions).tolist():
            newest = int(offsets[partitions == partition].max()) + 1
            self._next_offsets[partition] = max(newest, self._next_offsets.get(partition, 0))
        kept = batch if keep.all() else batch.filter(pa.array(keep))
        self.count(kept)
        return kept

    def count(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        self.records += batch.num_rows
        op = batch.column("_op")
        newest_generation = pc.max(batch.column("_generation")).as_py() or 0
        self.generation = max(self.generation, newest_generation)
        self._add_reads(reads_of(op, batch.column("_generation")))
        self._count_marks(batch.filter(pc.equal(op, "w")))
        self._count_streamed(batch.filter(pc.is_in(op, pa.array(_STREAMED))))
        newest = pa.table([batch.column("_partition"), batch.column("_offset")], names=["p", "o"])
        for entry in newest.group_by("p").aggregate([("o", "max")]).to_pylist():
            known = self._next_offsets.get(entry["p"], 0)
            self._next_offsets[entry["p"]] = max(known, entry["o_max"] + 1)

    def _add_reads(self, reads: Mapping[int, int]) -> None:
        for generation, rows in reads.items():
            self._reads[generation] = self._reads.get(generation, 0) + rows

    def _count_marks(self, marks: pa.RecordBatch) -> None:
        rows = marks.select(["_partition", "_generation", "_offset"]).to_pylist()
        for row in rows:
            mark = (row["_generation"], row["_offset"])
            known = self.marks.get(row["_partition"], mark)
            # The first record of a generation is the one that zombies come after.
            newer = mark[0] > known[0] or (mark[0] == known[0] and mark[1] < known[1])
            self.marks[row["_partition"]] = mark if newer else known

    def _count_streamed(self, streamed: pa.RecordBatch) -> None:
        if streamed.num_rows == 0:
            return
        self.streamed += streamed.num_rows
        newest = pc.max(streamed.column("_source_ts")).as_py()
        self.source_ts_ms = max(self.source_ts_ms, newest or 0)
        positions = _positions(streamed)
        partitions = streamed.column("_partition").to_numpy(zero_copy_only=False)
        for partition in np.unique(partitions).tolist():
            own = positions[partitions == partition]
            order = np.lexsort(own.T[::-1])
            self._raise(partition, tuple(own[order[-1]].tolist()))
            self._lower(tuple(own[order[0]].tolist()))

    def _raise(self, partition: int, position: Position) -> None:
        known = self._high_water.get(partition)
        self._high_water[partition] = position if known is None else max(known, position)

    def _lower(self, position: Position) -> None:
        known = self.low_water
        self.low_water = position if known is None else min(known, position)

    def to_json(self) -> dict[str, Any]:
        return {
            "low_water": self.low_water,
            "marks": [[p, *mark] for p, mark in self.marks.items()],
            "high_water": [[p, *position] for p, position in self._high_water.items()],
            "next_offsets": [[p, o] for p, o in self._next_offsets.items()],
            "reads": [[generation, rows] for generation, rows in self._reads.items()],
            "generation": self.generation,
            "records": self.records,
            "streamed": self.streamed,
            "source_ts_ms": self.source_ts_ms,
            "events": self.events.to_json(),
        }

    def merge(self, value: Mapping[str, Any]) -> None:
        for partition, generation, offset in value["marks"]:
            self.marks[partition] = (generation, offset)
        for partition, *position in value["high_water"]:
            self._raise(partition, (position[0], position[1], position[2], position[3]))
        if value["low_water"] is not None:
            epoch, file, pos, row = value["low_water"]
            self._lower((epoch, file, pos, row))
        for partition, offset in value["next_offsets"]:
            self._next_offsets[partition] = max(offset, self._next_offsets.get(partition, 0))
        self._add_reads(dict(value["reads"]))
        self.generation = max(self.generation, value["generation"])
        self.records += value["records"]
        self.streamed += value["streamed"]
        self.source_ts_ms = max(self.source_ts_ms, value["source_ts_ms"])
        self.events.merge(value["events"])

    def state_after(self, before: ChangelogState) -> ChangelogState:
        marks = dict(before.marks)
        for partition, mark in self.marks.items():
            if partition not in marks or mark[0] > marks[partition][0]:
                marks[partition] = mark
        newest = max(before.generation, self.generation)
        read = before.snapshot_rows if before.generation == newest else 0
        return ChangelogState(
            marks=marks,
            high_water={**before.high_water, **self._high_water},
            next_offsets={**before.next_offsets, **self._next_offsets},
            snapshot_rows=read + self._reads.get(newest, 0),
            generation=newest,
            source_ts_ms=max(before.source_ts_ms, self.source_ts_ms),
            events=before.events.after(self.events, marks),
        )
