"""Progress of the probe: counts of committed batches, and the offsets of its topic."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.stream_cluster import GroupOffsets, StreamCluster
from joins.batch.batches import FinishedBatch
from joins.durable.checkpoint import PROGRESS_DAMAGED, Checkpoint, write_json_atomically
from joins.durable.pins import Pin
from joins.durable.probe_lives import Life, ProbeLives
from joins.plan.errors import CheckpointError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics, of_kafka
from joins.stream.bounds import cut
from joins.stream.guards import Reach, TopicView, look_at
from joins.stream.watches import RetentionWatch, TransactionWatch, warning_json
from watermark.gate import HeldOffsets

_WINDOW_S = 10.0
_LEAST_S = 1.0  # a shorter time gives no useful rate
_FOLLOWS_S = 0.25  # a batch that begins later than this after the last one had no record before


@dataclass(frozen=True, slots=True)
class _EndedBatch:
    begun_at_s: float
    ended_at_s: float
    records: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Times:
    begun_at_s: float | None = None
    ended: tuple[_EndedBatch, ...] = ()


class Pace:
    """Records and rows per second, and durations, of the batches that this runner has finished.

    Times are seconds of one monotonic clock. One thread may write while another reads.
    """

    def __init__(self) -> None:
        self._times = _Times()  # replaced as a whole, for readers on other threads

    def begin(self, now_s: float) -> None:
        self._times = _Times(now_s, self._times.ended)

    def end(self, now_s: float, records: int, rows: int = 0) -> None:
        """Count the running batch; does nothing if `begin` was not called."""
        times = self._times
        if times.begun_at_s is None:
            return
        kept = (each for each in times.ended if now_s - each.ended_at_s <= _WINDOW_S)
        self._times = _Times(None, (*kept, _EndedBatch(times.begun_at_s, now_s, records, rows)))

    @property
    def batch_ms(self) -> int | None:
        """Milliseconds from the newest batch's pin to its commit; None before the first."""
        if not (ended := self._times.ended):
            return None
        return round(1000 * (ended[-1].ended_at_s - ended[-1].begun_at_s))

    @property
    def latency_ms(self) -> int | None:
        """Milliseconds from a record's arrival to the newest commit, at most.

        A record that just missed a batch waits for its end, then for the batch that follows.
        """
        if not (ended := self._times.ended):
            return None
        newest, begun_at_s = ended[-1], ended[-1].begun_at_s
        if len(ended) > 1 and begun_at_s - ended[-2].ended_at_s <= _FOLLOWS_S:
            begun_at_s = ended[-2].begun_at_s
        return round(1000 * (newest.ended_at_s - begun_at_s))

    def records_per_s(self, now_s: float) -> float | None:
        """Over the last ten seconds, or over the newest batch if it took longer.

        A running batch lowers the rate only once it takes clearly longer than the previous one.
        """
        return self._per_second(now_s, lambda batch: batch.records)

    def rows_per_s(self, now_s: float) -> float | None:
        """As `records_per_s`, of rows written."""
        return self._per_second(now_s, lambda batch: batch.rows)

    def _per_second(self, now_s: float, of: Callable[[_EndedBatch], int]) -> float | None:
        times = self._times
        if not (known := times.ended):
            return None
        until_s = _until(times.begun_at_s, known[-1], now_s)
        ended = [each for each in known if until_s - each.ended_at_s <= _WINDOW_S]
        if not ended:
            return 0.0
        span_s = max(_LEAST_S, until_s - ended[0].begun_at_s)
        return sum(map(of, ended)) / span_s


def _until(begun_at_s: float | None, newest: _EndedBatch, now_s: float) -> float:
    if begun_at_s is None:
        return now_s
    patience_s = _WINDOW_S + 2 * (newest.ended_at_s - newest.begun_at_s)
    return begun_at_s if now_s - begun_at_s <= patience_s else now_s


_COUNTED = ("joined", "matched", "unmatched", "dead_letters", "records", "bytes", "late", "fired")


@dataclass(frozen=True, slots=True)
class ProbeCounts:
    """What the probe has committed; in the next pin, and later in `progress.json`."""

    batch: int | None = None
    joined: int = 0
    matched: int = 0
    unmatched: int = 0
    dead_letters: int = 0
    records: int = 0
    bytes: int = 0  # of the values of the records
    late: int = 0  # records behind the watermark
    fired: int = 0  # rows of windows
    next_offsets: Mapping[int, int] = field(default_factory=dict)
    at_ms: int = 0  # when the batch was counted; 0 if an earlier release has counted it

    def after(self, batch: FinishedBatch) -> "ProbeCounts":
        offsets, now_ms = dict(batch.pin.end_offsets), time.time_ns() // 1_000_000
        if self.batch is not None and batch.pin.batch <= self.batch:
            return replace(self, next_offsets=offsets)
        counts = {name: getattr(self, name) + batch.counts.get(name, 0) for name in _COUNTED}
        return ProbeCounts(batch.pin.batch, **counts, next_offsets=offsets, at_ms=now_ms)

    def sums(self) -> dict[str, int]:
        """For the next pin, by which `follow` finds them again; empty before the first batch."""
        if self.batch is None:
            return {}
        counted = {name: getattr(self, name) for name in _COUNTED}
        return {"batch": self.batch, **counted, "at_ms": self.at_ms}

    def as_json(self) -> dict[str, Any]:
        offsets = {str(partition): offset for partition, offset in self.next_offsets.items()}
        return {**self.sums(), "next_offsets": offsets}


@dataclass(frozen=True, slots=True)
class CommittedProbe:
    """What the newest counted batch has left; before this runner's first batch only `counts`."""

    counts: ProbeCounts
    newest: Pin | None = None
    stages_ms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """Offsets of the topic at the newest look."""

    end_offsets: Mapping[int, int] = field(default_factory=dict)
    begin_offsets: Mapping[int, int] = field(default_factory=dict)
    # of the records that wait for the gate, None until a look measures them
    held_bytes: int | None = None
    # wall clock; None before the first look and after a look that failed or found another topic
    at_ms: int | None = None


class ProbeProgress:
    """Counts and offsets of one job's probe.

    The loop's thread calls `record` and `begins`, the main loop all that looks at the topic; any
    thread may read. Related numbers are one frozen value, which a reader takes once.
    """

    # reads better long: all numbers that a status has of the stream, under one lock.

    def __init__(self, checkpoint: Checkpoint, lives: ProbeLives, kafka: KafkaOptions) -> None:
        self._checkpoint = checkpoint
        self._lives = lives
        topics = lives.current.topics
        self._cluster = StreamCluster(KafkaCluster(kafka, keep_open=True), topics)
        self.looked_at_s = float("-inf")  # by the monotonic clock
        self._pinned: Pin | None = None
        self.pace = Pace()
        self.retention = RetentionWatch(self._cluster)
        self.transactions = TransactionWatch(self._cluster)
        self._group = None if kafka.reported_group is None else GroupOffsets(kafka, topics)
        self.stored = self._read_counts()  # what the file has
        self.committed = CommittedProbe(self.stored)
        self.ends = TopicEnds()

    @property
    def counts(self) -> ProbeCounts:
        return self.committed.counts

    def _read_counts(self) -> ProbeCounts:
        value = self._checkpoint.read_progress()
        if value is None:
            return ProbeCounts()
        try:
            del value["format_version"]
            offsets = {int(p): int(o) for p, o in value.pop("next_offsets").items()}
            batch = value.pop("batch")
            counts = {name: int(value.pop(name, 0)) for name in (*_COUNTED, "at_ms")}
            if value:
                raise ValueError(f"unknown {', '.join(sorted(value))}")
            return ProbeCounts(
                None if batch is None else int(batch), **counts, next_offsets=offsets
            )
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            message = (
                f'file "{self._checkpoint.progress_file}" is damaged: {type(exc).__name__} {exc}'
            )
            raise CheckpointError(message, hint=PROGRESS_DAMAGED) from exc

    def begins(self, pin: Pin) -> None:
        self._pinned = pin
        self.pace.begin(time.monotonic())

    def record(self, batch: FinishedBatch) -> None:
        counts = self.counts.after(batch)
        self.committed = CommittedProbe(counts, batch.pin, batch.stages_ms)
        records, rows = (batch.counts.get(name, 0) for name in ("records", "joined"))
        self.pace.end(time.monotonic(), records, rows)
        self._report()

    def follow(self, pin: Pin | None) -> None:
        """Take the counts before `pin`, the newest one, unless those of the file are newer."""
        if pin is None or not pin.before:
            return
        done, batch = self.counts.batch, pin.before["batch"]
        if done is None or done < batch:
            sums = {name: pin.before.get(name, 0) for name in (*_COUNTED, "at_ms")}
            counts = ProbeCounts(batch, **sums, next_offsets=dict(pin.start_offsets))
            self.committed = CommittedProbe(counts)

    def store(self) -> None:
        """Write what was counted; the newest pin has what came before it, too."""
        counts = self.counts
        write_json_atomically(self._checkpoint.progress_file, counts.as_json(), lazily=True)
        self.stored = counts

    def _report(self) -> None:
        if self._group is not None:
            there = self.ends.end_offsets.keys()
            self._group.report({p: o for p, o in self.next_offsets.items() if p in there})

    @property
    def next_offsets(self) -> dict[int, int]:
        return _next_offsets(self._lives.current, self.counts)

    def average_bytes(self) -> float | None:
        """Mean bytes of a record in earlier batches, else as the topic stores them."""
        if (counts := self.counts).records:
            return counts.bytes / counts.records
        stored = self._cluster.size_bytes()
        begin, end = (
            sum(of_kafka(offsets).values())
            for offsets in (
                self._cluster.beginning_offsets(),
                self._cluster.high_watermarks(),
            )
        )
        return None if stored is None or end <= begin else stored / (end - begin)

    def reach(self, *, running: bool) -> Reach:
        """Offsets of the probe; `running` if a batch may have read more than is committed."""
        pinned, life, counts = self._pinned, self._lives.current, self.counts
        committed = _next_offsets(life, counts)
        done = max(-1 if counts.batch is None else counts.batch, life.first_batch - 1)
        if not running or pinned is None or pinned.batch <= done:
            return Reach(committed, committed)
        return Reach(committed, {**committed, **pinned.end_offsets})

    def start_offsets(self) -> dict[int, int]:
        start, end = self._lives.current.start_offsets, self._lives.current.end_offsets
        there = self.ends.end_offsets or start if end is None else end
        return {p: start.get(p, 0) for p in there}

    def held(self) -> HeldOffsets:
        start = self._lives.current.topics.read_of(self.next_offsets)
        ends = self.ends
        for partition in ends.end_offsets:
            start.setdefault(partition, 0)
        return HeldOffsets.of(start=start, end=ends.end_offsets, retention_begin=ends.begin_offsets)

    def look_soon(self) -> None:
        self.looked_at_s = float("-inf")

    def look(self, *, holding: bool) -> TopicView:
        """Look at the topic's offsets up to the stream's end; records beyond it may come and go.

        `holding` if records wait for the gate: then their size is read too. `joins.stream.guards`
        interprets the view.

        Raises:
            SourceUnavailableError: no broker answers.
        """
        self.looked_at_s, self.ends = time.monotonic(), replace(self.ends, at_ms=None)
        view = self._up_to_the_end(look_at(self._cluster))
        topics = self._lives.current.topics
        if topics.missing_in(view.topic_ids):
            return view
        is_known = view.is_of(topics)
        self.ends = TopicEnds(
            topics.read_of(view.end_offsets),
            topics.read_of(view.begin_offsets),
            self._cluster.size_bytes() if holding and is_known else self.ends.held_bytes,
            time.time_ns() // 1_000_000 if is_known else None,
        )
        if is_known:
            self.retention.look(self.held())
            self.transactions.look(view)
            self._report()
        return view

    def _up_to_the_end(self, view: TopicView) -> TopicView:
        life = self._lives.current
        if not view.is_of(life.topics):
            return view
        begin, end, high = (
            cut(offsets, life.end_offsets)
            for offsets in (view.begin_offsets, view.end_offsets, view.high_watermarks)
        )
        behind = {p: offset for p, offset in high.items() if offset > end[p]}
        return TopicView(view.topic_ids, begin, end, behind)

    def warnings(self) -> list[dict[str, object]]:
        losses = [
            warning_json(self._cluster.topics, warning) for warning in self.retention.warnings
        ]
        group = None if self._group is None else self._group.warning()
        return losses if group is None else [*losses, group]

    def read_topics(self, topics: StreamTopics) -> None:
        self._cluster.topics = topics
        self.ends = replace(
            self.ends,
            end_offsets=topics.read_of(self.ends.end_offsets),
            begin_offsets=topics.read_of(self.ends.begin_offsets),
        )
        if self._group is not None:
            self._group.read(topics)

    def close(self) -> None:
        self._cluster.close()
        if self._group is not None:
            self._group.close()


def _next_offsets(life: Life, counts: ProbeCounts) -> dict[int, int]:
    if counts.batch is None or counts.batch < life.first_batch:
        return dict(life.start_offsets)
    return {**life.start_offsets, **counts.next_offsets}
