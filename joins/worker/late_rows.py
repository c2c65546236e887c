"""The workers' half of `join.late-rows.wait`: look up waiting rows again, then answer and hold.

`retry` releases waiting rows that have a match now or are due, into scratch files. The last stage
answers these rows and the batch's records, and writes the unmatched records as waiting rows.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from joins.durable.pins import Pin
from joins.kernels.expressions.casts import Mask
from joins.kernels.probe.arrival_files import (
    PARTITION,
    TIME,
    WATERMARK,
    Rows,
    ScratchFiles,
    WaitingFile,
    filtered,
    in_order,
    mapped,
    times_of,
    with_column,
)
from joins.kernels.probe.event_times import LATE_RECORDS, UNMATCHED, late_records
from joins.kernels.probe.files import ParquetStage, SharedTable
from joins.kernels.probe.probe import (
    JoinedBatch,
    LateAnswer,
    join_or_hold,
    join_released,
    lacking_match,
)
from joins.kernels.table_path import TablePath
from joins.worker.probe_task import ProbeTask, TaskCounts, pinned_context, pinned_indexes
from joins.worker.staging import TaskReport, current_origin
from joins.worker.topic_reader import TopicReader
from joins.worker.window_task import LATE
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP

WAITING = "waiting/"
"""Prefix of the name of a staged file of waiting rows, before its partition."""


@dataclass(frozen=True, slots=True)
class LateRows:
    """One task's part of a batch with late rows; `read_from` is where waiting rows are read."""

    probe: ProbeTask
    root: TablePath
    read_from: TablePath
    scratch: TablePath
    late: SharedTable

    # Stage `retry`

    def retry(self, items: Iterator[Mapping[str, Any]], pin: Pin) -> TaskReport:
        """The report of `{"parts": [{"partition", "waiting": [{"path", "rewrite"}]}], "upto"}`.

        Its detail is `{"released": [{"partition", "path", "rows", "bytes"}], "removed":
        [{"path"}]}`. A file that loses rows is removed; its other rows go to a new one.
        """
        counts = TaskCounts()
        origin = current_origin(self.probe.epoch, pin.batch)
        removed: list[dict[str, str]] = []
        kernel = self.probe.kernel
        indexes, context = pinned_indexes(self.probe, pin), pinned_context(pin)
        schema = kernel.arrivals.schema

        def leaves(rows: pa.RecordBatch, upto_ms: int) -> Mask:
            lacking = lacking_match(kernel, rows, indexes, context)
            return ~lacking | (times_of(rows) <= upto_ms)

        with ScratchFiles(self.scratch, schema, origin, by="partition") as released:
            for item in items:
                for part in item["parts"]:
                    with ParquetStage(self.root, schema, origin) as kept:
                        for each in part["waiting"]:
                            goes = partial(leaves, upto_ms=int(item["upto"]))
                            if self._looked_up(each, goes, released, kept):
                                removed.append({"path": each["path"]})
                        counts.stage(WAITING + str(part["partition"]), kept.finish())
            files = released.finish()
        counts.add("released", sum(file["rows"] for file in files))
        return TaskReport(counts.files, counts.values, {"released": files, "removed": removed})

    def _looked_up(
        self,
        each: Mapping[str, Any],
        goes: Callable[[pa.RecordBatch], Mask],
        released: ScratchFiles,
        kept: ParquetStage,
    ) -> bool:
        """True if the file is rewritten; its rows are read again, so that none stays in memory."""
        file = WaitingFile(self.read_from / each["path"], self.probe.kernel.arrivals)
        masks = [goes(rows) for rows in _all_of(file)]
        if not each["rewrite"] and not any(mask.any() for mask in masks):
            return False
        for rows, mask in zip(_all_of(file), masks, strict=True):
            if mask.any():
                released.write(rows.column(PARTITION)[0].as_py(), filtered(rows, mask))
            kept.write(filtered(rows, ~mask))
        return True

    # The last stage

    def answers(
        self, batches: Iterator[pa.RecordBatch], pin: Pin, counts: TaskCounts
    ) -> Iterator[JoinedBatch]:
        """The rows of released rows (batches with `_time`) and of the batch's records."""
        origin = current_origin(self.probe.epoch, pin.batch)
        kernel = self.probe.kernel
        indexes, context = pinned_indexes(self.probe, pin), pinned_context(pin)
        clock = pa.scalar(pin.batch_timestamp_ms, pa.int64())
        held = dict[int, ParquetStage]()
        with ExitStack() as stack:
            late = stack.enter_context(self.late.stage(LATE_RECORDS, origin))
            for rows in batches:
                if rows.schema.get_field_index(TIME) < 0:
                    counts.read(rows)
                    answer = join_or_hold(kernel, rows, indexes, context)
                    for number, mine in _by_partition(answer.held):
                        if number not in held:
                            stage = ParquetStage(self.root, kernel.arrivals.schema, origin)
                            held[number] = stack.enter_context(stage)
                        held[number].write(mine)
                else:
                    answer = join_released(kernel, rows, indexes, context)
                    until = pa.repeat(clock, answer.dropped.num_rows)
                    dropped = with_column(answer.dropped, WATERMARK, until)
                    late.write(late_records(dropped, kernel.topics, UNMATCHED))
                    _count_released(rows.num_rows, answer, counts)
                counts.answered(answer.joined)
                counts.add("waited", answer.held.num_rows)
                yield answer.joined
            for number, stage in sorted(held.items()):
                counts.stage(WAITING + str(number), stage.finish())
            counts.stage(LATE, late.finish())


def _count_released(rows: int, answer: LateAnswer, counts: TaskCounts) -> None:
    counts.add("late_expired", answer.expired)
    counts.add("late_matched", rows - answer.expired - answer.joined.dead_letters.num_rows)
    counts.add(LATE, answer.dropped.num_rows)


def _by_partition(rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    partitions = rows.column(PARTITION).to_numpy()
    for number in np.unique(partitions).tolist():
        yield number, filtered(rows, partitions == number)


def _all_of(file: WaitingFile) -> Iterator[pa.RecordBatch]:
    return file.between(MIN_TIMESTAMP, MAX_TIMESTAMP)


def released_rows(scratch: TablePath, paths: list[str]) -> Iterator[pa.RecordBatch]:
    """Released rows of one partition, by offset."""
    parts = [rows for path in paths for rows in mapped(scratch / path)]
    return in_order(parts, _every, _equal)


def _every(times: Rows) -> Mask:
    return np.ones(len(times), dtype=np.bool_)


def _equal(times: Rows) -> Rows:
    return np.zeros(len(times), dtype=np.int64)


def answer_items(
    released: Mapping[int, list[str]], parts: list[dict[int, tuple[int, int]]]
) -> list[str]:
    """Items of `LateReader`: released files of a partition come before its first records."""
    items: list[dict[str, Any]] = [{"released": [], "ranges": dict(part)} for part in parts]
    first = {p: item for item in reversed(items) for p in item["ranges"]}
    alone: dict[str, Any] = {"released": [], "ranges": {}}
    for partition, paths in sorted(released.items()):
        first.get(partition, alone)["released"].append(paths)
    if alone["released"] or not items:
        items.append(alone)
    return [json.dumps(item) for item in items]


@dataclass(frozen=True, slots=True)
class LateReader:
    """Reads released rows and the ranges of records that a task gets; picklable."""

    reader: TopicReader
    scratch: TablePath

    def __call__(self, items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all `answer_items`; raises as `TopicReader`."""
        for batch in items:
            for text in batch.column(0).to_pylist():
                item = json.loads(text)
                for paths in item["released"]:
                    yield from released_rows(self.scratch, paths)
                if item["ranges"]:
                    ranges = pa.array([json.dumps(item["ranges"])])
                    yield from self.reader(iter([pa.record_batch([ranges], names=["item"])]))
