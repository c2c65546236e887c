"""The workers' half of `join.late-rows.wait`: look up waiting rows again, answer and hold.

The last stage of a batch answers the waiting rows that have a match now or are due, then the
batch's records, and writes the unmatched records as waiting rows. A waiting row lacks a match in
the versions that were tried before. So where a key alone decides (`waited_columns`), only rows are
looked up whose key is in a segment of the index that the tried version does not have.
"""

import json
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.durable.pins import Pin
from joins.kernels.expressions.casts import Mask
from joins.kernels.index.dimension_index import ChangedKeys
from joins.kernels.index.hash_table import Hashes
from joins.kernels.index.index import DimensionIndex
from joins.kernels.probe.arrival_files import (
    PARTITION,
    WATERMARK,
    Released,
    Rows,
    WaitingFile,
    filtered,
    in_order,
    times_of,
    with_column,
)
from joins.kernels.probe.event_times import LATE_RECORDS, UNMATCHED, late_records
from joins.kernels.probe.files import FileOrigin, ParquetStage, SharedTable
from joins.kernels.probe.probe import (
    BatchContext,
    JoinedBatch,
    LateAnswer,
    ProbeKernelSpec,
    join_or_hold,
    join_released,
    key_hashes,
    lacking_match,
    may_match,
    waited_columns,
)
from joins.kernels.table_path import TablePath
from joins.worker.probe_task import ProbeTask, TaskCounts, pinned_context, pinned_indexes
from joins.worker.staging import current_origin
from joins.worker.topic_reader import TopicReader
from joins.worker.window_task import LATE
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP

WAITING = "waiting/"
"""Prefix of the name of a staged file of waiting rows, before its partition."""
REMOVED = "removed"
"""Name in a report's detail: the files of waiting rows that the task has rewritten or emptied."""
LATE_CORRECTED = "late_corrected"
"""Name of a count: rows that replace those with NULL of earlier batches."""
_FILES = pa.schema([("waiting", pa.string())])


@dataclass(frozen=True, slots=True)
class LateRows:
    """One task's part of a batch with late rows; `read_from` is where waiting rows are read."""

    probe: ProbeTask
    root: TablePath
    read_from: TablePath
    spill: Path
    late: SharedTable

    def answers(
        self, batches: Iterator[pa.RecordBatch], pin: Pin, counts: TaskCounts
    ) -> Iterator[JoinedBatch]:
        """The rows of what `LateReader` reads: waiting rows that leave, and records."""
        task = _Answering(self, pin, counts)
        with ExitStack() as stack:
            late = stack.enter_context(self.late.stage(LATE_RECORDS, task.origin))
            waiting = stack.enter_context(_WaitingFiles(task))
            for rows in batches:
                if rows.schema.equals(_FILES):
                    part = json.loads(rows.column(0)[0].as_py())
                    for answer in task.released(part, waiting):
                        until = pa.scalar(pin.batch_timestamp_ms, pa.int64())
                        clock = pa.repeat(until, answer.dropped.num_rows)
                        dropped = with_column(answer.dropped, WATERMARK, clock)
                        late.write(late_records(dropped, self.probe.kernel.topics, UNMATCHED))
                        yield answer.joined
                    continue
                counts.read(rows)
                answer = join_or_hold(self.probe.kernel, rows, task.indexes, task.context)
                for number, mine in _by_partition(answer.held):
                    waiting.write(str(number), mine)
                counts.answered(answer.joined)
                counts.add("waited", answer.held.num_rows)
                yield answer.joined
            waiting.finish()
            counts.stage(LATE, late.finish())


@dataclass(slots=True)
class _Answering:
    """One task, while it runs."""

    late: LateRows
    pin: Pin
    counts: TaskCounts
    origin: FileOrigin = field(init=False)
    context: BatchContext = field(init=False)
    indexes: Mapping[str, DimensionIndex] = field(init=False)
    # the changes since the tried versions, by alias; None if all waiting rows are looked up
    changed: Mapping[str, ChangedKeys] | None = field(init=False)

    def __post_init__(self) -> None:
        probe = self.late.probe
        self.origin = current_origin(probe.epoch, self.pin.batch)
        self.context = pinned_context(self.pin)
        self.indexes = pinned_indexes(probe, self.pin)
        tried = (self.pin.of_event.late_rows or {}).get("tried")
        self.changed = None
        self.counts.add(LATE_CORRECTED, 0)  # also a batch without corrections says so
        if tried is not None and waited_columns(probe.kernel):
            self.changed = probe.changed_since(tried, self.indexes)

    def stage(self) -> ParquetStage:
        schema = self.late.probe.kernel.arrivals.schema
        return ParquetStage(self.late.root, schema, self.origin, short_lived=True)

    def released(self, part: Mapping[str, Any], waiting: "_WaitingFiles") -> Iterator[LateAnswer]:
        """The answers of the rows of one partition that leave, by offset.

        `part` is `{"partition", "files": [{"path", "rewrite", "due"}], "after", "upto", "gone"}`.
        Rows after `after` and up to `upto` are due. Those up to `after` have gone out with NULL,
        and those up to `gone` are not corrected any more. A file that loses rows is removed; its
        other rows go to a new one.
        """
        kernel, removed = self.late.probe.kernel, self.counts.detail.setdefault(REMOVED, [])
        with Released(self.late.spill, kernel.arrivals, self.origin) as released:
            for each in part["files"]:
                path = self.late.read_from / each["path"]
                file = WaitingFile(path, kernel.arrivals, _NEW_ROWS.of(path, kernel))
                if not (each["rewrite"] or each["due"] or self._may_leave(file)):
                    continue
                leaves = self._leaves(
                    file, int(part["after"]), int(part["upto"]), int(part["gone"])
                )
                is_rewritten = each["rewrite"] or bool((~leaves.stays).any())
                if is_rewritten:
                    removed.append(each["path"])
                elif not leaves.answered.any():
                    continue
                at = 0
                for rows in _all_of(file):
                    here = slice(at, at + rows.num_rows)
                    at += rows.num_rows
                    if leaves.answered[here].any():
                        released.copy(filtered(rows, leaves.answered[here]))
                    if is_rewritten:
                        kept = filtered(rows, leaves.stays[here])
                        waiting.write(f"{part['partition']}/kept", kept)
            for rows in in_order(released.and_then(()), _every, _equal):
                is_out = times_of(rows) <= int(part["after"])
                if is_out.any():
                    yield self._corrected(filtered(rows, is_out))
                if not is_out.all():
                    yield self._left(filtered(rows, ~is_out))

    def _left(self, rows: pa.RecordBatch) -> LateAnswer:
        answer = join_released(self.late.probe.kernel, rows, self.indexes, self.context)
        living = rows.num_rows - answer.joined.dead_letters.num_rows
        self.counts.add("released", rows.num_rows)
        self.counts.add("late_expired", answer.expired)
        self.counts.add("late_matched", living - answer.expired)
        self.counts.add(LATE, answer.dropped.num_rows)
        self.counts.answered(answer.joined)
        return answer

    def _corrected(self, rows: pa.RecordBatch) -> LateAnswer:
        """Rows that have gone out with NULL, and were counted then."""
        answer = join_released(self.late.probe.kernel, rows, self.indexes, self.context)
        dead = answer.joined.dead_letters.num_rows
        self.counts.add(LATE_CORRECTED, rows.num_rows - dead)
        self.counts.add("joined", answer.joined.rows.num_rows)
        self.counts.add("dead_letters", dead)
        return answer

    def _may_leave(self, file: WaitingFile) -> bool:
        """False if no row of `file` has a match; none of them is due."""
        if self.changed is None:
            return True
        hashes = _HASHES.of(file, self.late.probe.kernel, self.changed)
        return any(self.changed[alias].may_have(each) for alias, each in hashes.items())

    def _leaves(self, file: WaitingFile, after_ms: int, upto_ms: int, gone_ms: int) -> "_Leaves":
        kernel = self.late.probe.kernel
        times, keys = file.carried(waited_columns(kernel))
        if self.changed is None:
            matched = ~self._lacking(file, np.ones(len(times), dtype=np.bool_))
        else:
            hashes = _HASHES.of(file, kernel, self.changed, keys)
            matched = may_match(kernel, keys, hashes, self.changed)
            if len(kernel.joins) > 1 and matched.any():
                matched &= ~self._lacking(file, matched)
        due = (times > after_ms) & (times <= upto_ms)
        is_of_use = times > gone_ms
        answered = due | (matched & is_of_use)
        stays = ~answered & is_of_use
        to_correct = due & ~matched & is_of_use
        if to_correct.any():
            stays |= self._lacking(file, to_correct, answered=True)
        return _Leaves(answered, stays)

    def _lacking(self, file: WaitingFile, chosen: Mask, *, answered: bool = False) -> Mask:
        """True for those of the `chosen` rows that live and lack a match, as `lacking_match`."""
        lacking, at = np.zeros(len(chosen), dtype=np.bool_), 0
        for rows in _all_of(file):
            mine = np.flatnonzero(chosen[at : at + rows.num_rows])
            if len(mine):
                part = rows if len(mine) == rows.num_rows else rows.take(pa.array(mine))
                task = (self.late.probe.kernel, part, self.indexes, self.context)
                lacking[at + mine] = lacking_match(*task, answered=answered)
            at += rows.num_rows
        return lacking


@dataclass(frozen=True, slots=True)
class _Leaves:
    """Of the rows of a file those that are answered, and those that go on to wait.

    A row that is answered at its bound waits for a correction, if the job has some.
    """

    answered: Mask
    stays: Mask


class _KeyHashes:
    """Hashes of the keys of waiting files: those that were used last, of a limited size."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._kept = OrderedDict[tuple[Any, ...], dict[str, Hashes]]()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        return len(self._kept)

    def of(
        self,
        file: WaitingFile,
        kernel: ProbeKernelSpec,
        changed: Mapping[str, ChangedKeys],
        keys: Mapping[str, pa.Array] | None = None,
    ) -> dict[str, Hashes]:
        """The hashes of `file`, whose `keys` are read unless they are passed."""
        key = (str(file.path), kernel.joins)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        if keys is None:
            _, keys = file.carried(waited_columns(kernel))
        hashes = key_hashes(kernel, keys, changed)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = hashes
                self._bytes += _size_of(hashes)
            while self._bytes > self._limit:
                self._bytes -= _size_of(self._kept.popitem(last=False)[1])
        return hashes


def _size_of(hashes: Mapping[str, Hashes]) -> int:
    return sum(each.nbytes for each in hashes.values())


class _NewRows:
    """The rows of the waiting files that this process has written last, up to a size."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._kept = OrderedDict[tuple[str, Any], list[pa.RecordBatch]]()
        self._bytes = 0
        self._lock = threading.Lock()

    def of(self, path: TablePath, kernel: ProbeKernelSpec) -> Sequence[pa.RecordBatch]:
        with self._lock:
            return self._kept.get((str(path), kernel.carried), ())

    def put(self, path: TablePath, kernel: ProbeKernelSpec, rows: list[pa.RecordBatch]) -> None:
        with self._lock:
            self._kept[str(path), kernel.carried] = rows
            self._bytes += sum(each.nbytes for each in rows)
            while self._bytes > self._limit:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= sum(each.nbytes for each in oldest)


_HASHES = _KeyHashes(32 << 20)
_NEW_ROWS = _NewRows(64 << 20)
_MOST_KEPT_BYTES = 32 << 20  # of one task
_SYNCED_AT_ONCE = 4


class _WaitingFiles(AbstractContextManager["_WaitingFiles"]):
    """The new files of waiting rows of a task, which become durable together."""

    def __init__(self, task: _Answering) -> None:
        self._task = task
        self._open = ExitStack()
        self._stages: dict[str, ParquetStage] = {}
        self._rows = defaultdict[str, list[pa.RecordBatch]](list)
        self._bytes = 0

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def write(self, name: str, rows: pa.RecordBatch) -> None:
        if name not in self._stages:
            self._stages[name] = self._open.enter_context(self._task.stage())
        self._stages[name].write(rows)
        self._bytes += rows.nbytes
        if rows.num_rows and self._bytes <= _MOST_KEPT_BYTES:
            self._rows[name].append(rows)

    def finish(self) -> None:
        with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:  # one commit of the file system's journal
            files = list(pool.map(ParquetStage.finish, self._stages.values()))
        for name, file in zip(self._stages, files, strict=True):
            self._task.counts.stage(WAITING + name, file)
            rows = self._rows[name]
            if file is not None and file.rows == sum(each.num_rows for each in rows):
                _NEW_ROWS.put(self._task.late.root / file.path, self._task.late.probe.kernel, rows)


def _by_partition(rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    partitions = rows.column(PARTITION).to_numpy()
    for number in sorted(pc.unique(rows.column(PARTITION)).to_pylist()):
        yield number, filtered(rows, partitions == number)


def _all_of(file: WaitingFile) -> Iterator[pa.RecordBatch]:
    return file.between(MIN_TIMESTAMP, MAX_TIMESTAMP)


def _every(times: Rows) -> Mask:
    return np.ones(len(times), dtype=np.bool_)


def _equal(times: Rows) -> Rows:
    return np.zeros(len(times), dtype=np.int64)


def answer_items(
    waiting: Mapping[int, Mapping[str, Any]], parts: list[dict[int, tuple[int, int]]]
) -> list[str]:
    """Items of `LateReader`: waiting rows of a partition come before its first records."""
    items: list[dict[str, Any]] = [{"waiting": [], "ranges": dict(part)} for part in parts]
    first = {p: item for item in reversed(items) for p in item["ranges"]}
    alone: dict[str, Any] = {"waiting": [], "ranges": {}}
    for partition, part in sorted(waiting.items()):
        first.get(partition, alone)["waiting"].append(part)
    if alone["waiting"] or not items:
        items.append(alone)
    return [json.dumps(item) for item in items]


def waiting_item(part: Mapping[str, Any]) -> pa.RecordBatch:
    """What `LateRows.answers` takes for the waiting rows of one partition."""
    return pa.record_batch([pa.array([json.dumps(part)])], schema=_FILES)


@dataclass(frozen=True, slots=True)
class LateReader:
    """Reads files of waiting rows and the ranges of records that a task gets; picklable."""

    reader: TopicReader

    def __call__(self, items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The input of `LateRows.answers` for all `answer_items`; raises as `TopicReader`."""
        for batch in items:
            for text in batch.column(0).to_pylist():
                item = json.loads(text)
                yield from map(waiting_item, item["waiting"])
                if item["ranges"]:
                    ranges = pa.array([json.dumps(item["ranges"])])
                    yield from self.reader(iter([pa.record_batch([ranges], names=["item"])]))
