"""Event time of a job: watermarks go from partitions to inputs to the operator.

Each partition of the stream, and of a versioned dimension's changelog, is a channel of a valve; the
valves are the inputs of one combined status. `watermark/` defines how channels combine. This module
decides which channel receives what, and when:

- Within a batch the stream goes before the dimensions, so that a dimension's new watermark makes no
  record of the batch late.
- A partition with records turns active before its watermark counts. A batch applies its watermarks
  in ascending order, so that it leaves no partition behind; with a watermark for each record, in
  the order of the records.
- A partition read up to the stream's end has the watermark `END_OF_TIME`.
- A partition read up to its backlog's end changes to processing time at the end of that batch, or
  once the clock has reached its watermark. Its later records have no watermark.
- A partition without records, read or not, for longer than its timeout is idle, by the batch's
  clock. So a partition whose records wait for a table (`join.max-staleness`) is not. The records
  of a dimension are as old as their commit.
- A partition without records, read or not, for longer than its maximum wait follows the batch's
  clock.
- Event time ends when the stream has ended and its dimensions are idle.

A stream without watermarks is in processing time. So is a dimension without them, because its
snapshot is complete before the first batch. The result depends only on the pinned state, on the
records of the batch and on its clock.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from joins.durable.pins import offsets_text, offsets_value
from joins.plan.stream_topics import PROBE, is_file
from watermark.errors import StateFormatError
from watermark.model import (
    END_OF_TIME,
    PROCESSING_TIME,
    Progress,
    Watermark,
    WatermarkStatus,
    clamp,
)
from watermark.valve import ChannelState, CombinedWatermarkStatus, StatusWatermarkValve

Steps = Mapping[int, Sequence[tuple[int, int]]]
"""Partition → (offset, watermark in milliseconds) of the records that have raised it, in order."""


@dataclass(frozen=True, slots=True)
class EventInput:
    """One input of the operator; `idle_timeout_ms` is None for partitions that are never idle.

    `max_wait_ms` is None for partitions that never follow the clock; the others do `bound_ms`
    further behind it.
    """

    name: str
    has_watermarks: bool = True
    idle_timeout_ms: int | None = None
    max_wait_ms: int | None = None
    bound_ms: int = 0


@dataclass(frozen=True, slots=True)
class Heard:
    """News of one channel."""

    watermark_ms: int | None  # greatest watermark, None before the first
    # changes when records arrive: for the stream the batch number, for a dimension the commit time
    # of its newest records; None if unknown
    records: int | None


@dataclass(frozen=True, slots=True)
class BatchInput:
    """What one batch says about progress."""

    now_ms: int
    partitions: Iterable[int] = ()  # all partitions of the stream
    # only the partitions with records in the batch
    heard: Mapping[int, Heard] = field(default_factory=dict)
    ended: Iterable[int] = ()  # partitions read up to the stream's end
    # name → partition of its changelog → news
    dimensions: Mapping[str, Mapping[int, Heard]] = field(default_factory=dict)
    steps: Steps | None = None  # None if only the greatest watermark of the batch counts
    backlog_read: Collection[int] = ()  # partitions read up to the backlog's end after the batch
    backlog_read_before: Collection[int] = ()  # the same before the batch
    unread: Collection[int] = ()  # partitions with records behind the batch


@dataclass(frozen=True, slots=True)
class Merged:
    """The operator's watermark before and after a batch."""

    before: Watermark
    after: Watermark
    # with a watermark for each record: partition → (offset, the operator's watermark for the
    # records from there on), ascending
    by_partition: Mapping[int, tuple[tuple[int, int], ...]]
    # with a watermark for each record: (partition, offset, the operator's watermark after that
    # record) for each record that raises it, in order of arrival
    steps: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel's state.

    `active_at_ms` is when its newest record came (of the stream the batch's clock, of a dimension
    the commit), or when the channel was made.
    """

    input: EventInput
    partition: int
    state: ChannelState
    active_at_ms: int | None


class EventChannels:
    """Valves, their channels and the operator's watermark; for one thread.

    The stream's input is the first. `state` is a value of `snapshot`; `StateFormatError` if it is
    damaged or has other inputs.
    """

    def __init__(
        self, inputs: Sequence[EventInput], state: Mapping[str, Any] | None = None
    ) -> None:
        self.inputs = tuple(inputs)
        self._combined = CombinedWatermarkStatus([each.name for each in inputs])
        self._valves = {each.name: StatusWatermarkValve(()) for each in inputs}
        self._active_at: dict[str, dict[int, int]] = {each.name: {} for each in inputs}
        self._noted: dict[str, dict[int, int | None]] = {each.name: {} for each in inputs}
        self._now_ms = 0
        if state is not None:
            self._restore(state)

    @property
    def watermark(self) -> Watermark:
        return self._combined.last_output

    def watermark_of(self, name: str) -> Watermark:
        if name in self._combined.inputs:
            return self._combined.watermark_of(name)
        return self._valves[name].last_output

    def status_of(self, name: str) -> WatermarkStatus:
        return self._valves[name].status

    def channels(self) -> tuple[ChannelView, ...]:
        return tuple(
            ChannelView(each, at, state, self._active_at[each.name].get(at))
            for each in self.inputs
            for state in self._valves[each.name].channels()
            for at in (int(state.channel.rpartition("/")[2]),)
        )

    def has_ended(self) -> bool:
        watermark = self.watermark_of(PROBE)
        return watermark == END_OF_TIME or watermark.use_processing_time

    # Batches

    def take(self, batch: BatchInput) -> Merged:
        """Apply a batch; the result depends only on the state and the batch."""
        before = self.watermark
        self._now_ms = batch.now_ms
        by_partition: Mapping[int, tuple[tuple[int, int], ...]] = {}
        steps: tuple[tuple[int, int, int], ...] = ()
        stream, *dimensions = self.inputs
        for each in dimensions:
            if not each.has_watermarks:
                self._know(each, set())  # the snapshot is complete before any batch
        self._know(stream, _channels_of(batch.partitions))
        heard, steps_there = _in_event_time(batch)
        if stream.has_watermarks and steps_there is not None:
            by_partition, steps = self._take_steps(stream, heard, steps_there)
        else:
            self._take_greatest(stream, heard)
        self._end(stream, batch.ended)
        self._switch(stream, batch.backlog_read)
        busy = {*batch.ended, *batch.backlog_read, *batch.unread}
        self._rest(stream, busy)
        self._follow_clock(stream, busy)
        for each in dimensions:
            heard = batch.dimensions.get(each.name, {})
            self._know(each, set(heard))
            self._take_greatest(each, heard)
            self._rest(each, set())
        self._end_beside_idle(dimensions)
        return Merged(before, self.watermark, by_partition, steps)

    def _know(self, each: EventInput, partitions: set[int]) -> None:
        """Make the channels exactly these; an input without watermarks is in processing time."""
        valve, active_at = self._valves[each.name], self._active_at[each.name]
        if not each.has_watermarks:
            self._say(each, (PROCESSING_TIME,))
            return
        continues = bool(active_at) and all(map(is_file, active_at))  # the topics begin
        for partition in sorted(partitions - set(active_at)):
            valve.add_channel(_channel(each, partition))
            active_at[partition] = self._now_ms
            if continues:
                self._raise(each, partition, valve.last_output.timestamp_ms)
        for partition in sorted(set(active_at) - partitions):
            valve.remove_channel(_channel(each, partition))
            del active_at[partition]
            self._noted[each.name].pop(partition, None)

    def _take_greatest(self, each: EventInput, heard: Mapping[int, Heard]) -> None:
        if not each.has_watermarks:
            return
        for partition, news in sorted(heard.items()):
            self._notice(each, partition, news)
        watermarks = [(h.watermark_ms, p) for p, h in heard.items() if h.watermark_ms is not None]
        for watermark_ms, partition in sorted(watermarks):
            self._raise(each, partition, watermark_ms)

    def _take_steps(
        self, stream: EventInput, heard: Mapping[int, Heard], steps: Steps
    ) -> tuple[dict[int, tuple[tuple[int, int], ...]], tuple[tuple[int, int, int], ...]]:
        """Apply each record: partitions ascending, in a partition by offset.

        In processing time there are no steps: all records see the watermark from before the batch.
        """
        if self.watermark.use_processing_time:
            self._take_greatest(stream, heard)
            return {}, ()
        steps_of: dict[int, tuple[tuple[int, int], ...]] = {}
        places: list[tuple[int, int, int]] = []
        for partition, news in sorted(heard.items()):
            self._notice(stream, partition, news)
            merged = [(0, self.watermark.timestamp_ms)]
            for offset, watermark_ms in steps.get(partition, ()):
                self._raise(stream, partition, watermark_ms)
                now = self.watermark.timestamp_ms
                if now > merged[-1][1]:
                    merged.append((offset + 1, now))
                    places.append((partition, offset, now))
            steps_of[partition] = tuple(merged)
        return steps_of, tuple(places)

    def _notice(self, each: EventInput, partition: int, heard: Heard) -> None:
        noted, active_at = self._noted[each.name], self._active_at[each.name]
        if heard.records is not None and noted.get(partition) != heard.records:
            noted[partition] = heard.records
            at_ms = self._now_ms
            if each is not self.inputs[0]:  # as old as its commit, however often it is looked at
                at_ms = max(active_at[partition], min(at_ms, heard.records))
            active_at[partition] = at_ms
            self._mark(each, partition, WatermarkStatus.ACTIVE)

    def _raise(self, each: EventInput, partition: int, watermark_ms: int) -> None:
        """Ignore lower watermarks, and all watermarks of a channel in processing time."""
        channel, valve = _channel(each, partition), self._valves[each.name]
        last = valve.watermark_of(channel)
        if watermark_ms > last.timestamp_ms and not last.use_processing_time:
            watermark = Watermark(watermark_ms)
            self._say(each, valve.input_watermark(channel, watermark, now_ms=self._now_ms))

    def _end(self, stream: EventInput, ended: Iterable[int]) -> None:
        if not stream.has_watermarks:
            return
        for partition in sorted(ended):
            self._mark(stream, partition, WatermarkStatus.ACTIVE)
            self._raise(stream, partition, END_OF_TIME.timestamp_ms)

    def _end_beside_idle(self, dimensions: Sequence[EventInput]) -> None:
        """After the stream's end, remove dimensions still in event time if all of them are idle."""
        ended = self.watermark_of(PROBE) == END_OF_TIME
        if not ended or self.watermark == END_OF_TIME:
            return
        others = [
            each.name
            for each in dimensions
            if not self.watermark_of(each.name).use_processing_time
            and self.watermark_of(each.name) != END_OF_TIME
        ]
        if all(self.status_of(name) is WatermarkStatus.IDLE for name in others):
            for name in others:
                self._combined.remove_channel(name)
            self._combined.emit()

    def _switch(self, stream: EventInput, partitions: Collection[int]) -> None:
        """Change to processing time once the clock has reached both the channel and the valve.

        Source: FLIP-326, "WatermarkToDataOutput": time in the future is no processing time.
        """
        if not stream.has_watermarks:
            return
        valve = self._valves[stream.name]
        for partition in sorted(set(partitions) & set(self._active_at[stream.name])):
            channel = _channel(stream, partition)
            told_ms = (valve.watermark_of(channel).timestamp_ms, valve.last_output.timestamp_ms)
            if max(told_ms) <= self._now_ms:
                progress = valve.input_watermark(channel, PROCESSING_TIME, now_ms=self._now_ms)
                self._say(stream, progress)

    def _rest(self, each: EventInput, others: set[int]) -> None:
        if each.idle_timeout_ms is None or not each.has_watermarks:
            return
        for partition, at_ms in sorted(self._active_at[each.name].items()):
            if self._now_ms - at_ms > each.idle_timeout_ms and partition not in others:
                self._mark(each, partition, WatermarkStatus.IDLE)

    def _follow_clock(self, stream: EventInput, others: set[int]) -> None:
        """Raise quiet partitions but `others`; `watermark.reference` defines it (`BoundedWait`)."""
        wait_ms = stream.max_wait_ms
        if wait_ms is None or not stream.has_watermarks:
            return
        for partition, at_ms in sorted(self._active_at[stream.name].items()):
            if self._now_ms - at_ms > wait_ms and partition not in others:
                behind_ms = wait_ms + stream.bound_ms
                self._raise(stream, partition, clamp(self._now_ms - behind_ms))

    def _mark(self, each: EventInput, partition: int, status: WatermarkStatus) -> None:
        self._say(each, self._valves[each.name].input_status(_channel(each, partition), status))

    def _say(self, each: EventInput, promises: Sequence[Progress]) -> None:
        """Pass an input's progress to the operator, which ignores all after `END_OF_TIME`."""
        if self.watermark == END_OF_TIME:
            return
        for progress in promises:
            if isinstance(progress, Watermark):
                self._combined.input_watermark(each.name, progress, now_ms=self._now_ms)
            else:
                self._combined.input_status(each.name, progress)

    # Over batches and restarts

    def snapshot(self) -> dict[str, Any]:
        return {
            "combined": self._combined.snapshot(),
            "valves": {name: valve.snapshot() for name, valve in self._valves.items()},
            "active_at_ms": {name: offsets_text(value) for name, value in self._active_at.items()},
            "records": {name: offsets_text(value) for name, value in self._noted.items()},
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        try:
            if set(state["valves"]) != set(self._valves):
                raise KeyError(*state["valves"])
            self._combined.restore(state["combined"])
            for name, valve in self._valves.items():
                valve.restore(state["valves"][name])
                self._active_at[name] = offsets_value(state["active_at_ms"][name])
                self._noted[name] = offsets_value(state["records"][name])
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise StateFormatError(
                "stored watermarks of the job's channels are damaged or of another format",
                hint="Restore the job's directory from a backup, or submit the job again.",
            ) from exc


def _channels_of(partitions: Iterable[int]) -> set[int]:
    """Without the files once topics are read: they have ended, and the topics go on from them."""
    every = set(partitions)
    return {each for each in every if not is_file(each)} or every


def _in_event_time(batch: BatchInput) -> tuple[Mapping[int, Heard], Steps | None]:
    """Drop the watermarks of partitions that had passed their backlog before the batch."""
    if not batch.backlog_read_before:
        return batch.heard, batch.steps
    silent = set(batch.backlog_read_before)
    heard = {
        partition: replace(value, watermark_ms=None) if partition in silent else value
        for partition, value in batch.heard.items()
    }
    if batch.steps is None:
        return heard, None
    return heard, {p: () if p in silent else value for p, value in batch.steps.items()}


def _channel(each: EventInput, partition: int) -> str:
    return f"{each.name}/{partition}"
