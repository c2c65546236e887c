"""State of event time between two batches, and how a batch changes it.

The pin has the state before a batch, the last commit to the state tables the state after it, both
as the same JSON values. This module is pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from joins.adapters.delta.state_log import StateFile
from joins.batch.event_channels import (
    BatchInput,
    ChannelView,
    EventChannels,
    EventInput,
    Heard,
    Merged,
    Steps,
)
from joins.durable.pins import ABSENT, EventPin
from joins.plan.plan import JoinPlan, WatermarkSpec, Windowing
from joins.plan.stream_topics import NO_TOPICS, PROBE, StreamTopics, input_name, place_json
from watermark.model import END_OF_TIME, MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark, WatermarkStatus


@dataclass(frozen=True, slots=True)
class EventSpec:
    """The part of a plan that decides about time."""

    inputs: tuple[EventInput, ...]  # of the operator, the stream's first
    waits: bool  # True if records wait for a watermark
    window: Windowing | None
    on_event: bool  # True if each record's watermark holds for the next one of its partition
    late_wait_ms: int | None = None  # how long unmatched records wait; None without the option
    late_correct_ms: int = 0  # how long after that a row still corrects the output
    waited: tuple[str, ...] = ()  # the dimensions whose rows they wait for

    @classmethod
    def of(cls, plan: JoinPlan) -> "EventSpec":
        if plan.late_wait_ms is not None:
            return cls(
                inputs=(EventInput(PROBE, has_watermarks=False),),
                waits=True,
                window=None,
                on_event=False,
                late_wait_ms=plan.late_wait_ms,
                late_correct_ms=plan.late_correct_ms or 0,
                waited=tuple(sorted({join.dimension for join in plan.late_joins})),
            )
        timed = {join.dimension for join in plan.joins if join.time is not None}
        dimensions = [each for each in plan.dimensions if each.name in timed]
        watermark = plan.probe.watermark
        return cls(
            inputs=(
                _input(PROBE, watermark),
                *(_input(each.name, each.watermark) for each in dimensions),
            ),
            waits=bool(timed),
            window=plan.window,
            on_event=watermark is not None and watermark.on_event,
        )

    @property
    def versioned(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.inputs[1:] if each.has_watermarks)

    def waited_versions(self, versions: Mapping[str, int]) -> dict[str, int]:
        return {name: versions[name] for name in self.waited}

    @property
    def counts_quiet_time(self) -> bool:
        """True if it matters for how long a partition of the stream has no records."""
        stream = self.inputs[0]
        return stream.max_wait_ms is not None or stream.idle_timeout_ms is not None

    @property
    def follows_clock(self) -> bool:
        return self.window is not None and self.window.time is None


def _input(name: str, watermark: WatermarkSpec | None) -> EventInput:
    if watermark is None:
        return EventInput(name, has_watermarks=False)
    return EventInput(
        name,
        idle_timeout_ms=watermark.idle_timeout_ms,
        max_wait_ms=watermark.max_wait_ms,
        bound_ms=watermark.bound_ms,
    )


LATE_SUMS = ("late_matched", "late_expired", "late_corrected")


@dataclass(frozen=True, slots=True)
class EventState:
    """Time and sums between two batches."""

    # the operator's, in milliseconds; `MIN_TIMESTAMP` before the first one and in processing time
    watermark: int = MIN_TIMESTAMP
    # every input is in processing time: nothing waits, nothing is late
    processing_time: bool = False
    # fires windows; in processing time the clock of the newest batch, for windows of processing
    # time one millisecond less
    window_watermark: int = MIN_TIMESTAMP
    clock_ms: int = 0  # of the newest batch; it never goes back
    has_ended: bool = False
    # snapshot of `EventChannels`, None at the beginning
    channels: Mapping[str, Any] | None = field(default=None, repr=False)
    waiting: int = 0
    late: int = 0
    fired: int = 0
    # sums of late rows that left with a match (`late_matched`), at their bound (`late_expired`) and
    # with a match after it (`late_corrected`), and the versions they were looked up in (`tried`);
    # None without `join.late-rows.wait`
    late_rows: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        if self.late_rows is None:
            del values["late_rows"]
        return values

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "EventState":
        return cls(**{name: value[name] for name in cls.__slots__ if name in value})

    @classmethod
    def before(cls, event: EventPin) -> "EventState":
        return cls(**{name: getattr(event, name) for name in cls.__slots__})

    def tried(self, versions: Mapping[str, int]) -> bool:
        """True if waiting rows have been looked up in these versions."""
        return self.late_rows is not None and self.late_rows["tried"] == versions

    @property
    def partitions(self) -> frozenset[str]:
        """The partitions of the stream that a batch has seen."""
        return frozenset(() if self.channels is None else self.channels["active_at_ms"][PROBE])

    @property
    def release_ms(self) -> int:
        return MAX_TIMESTAMP if self.processing_time else self.watermark

    def counted(self, counts: Mapping[str, int]) -> "EventState":
        waiting = self.waiting + counts.get("waited", 0) - counts.get("released", 0)
        late_rows = self.late_rows
        if late_rows is not None:
            known = [name for name in LATE_SUMS if name in late_rows or name in counts]
            sums = {name: late_rows.get(name, 0) + counts.get(name, 0) for name in known}
            late_rows = {**late_rows, **sums}
        return replace(
            self,
            late_rows=late_rows,
            waiting=waiting,
            late=self.late + counts.get("late", 0),
            fired=self.fired + counts.get("fired", 0),
        )


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a batch advances the time; `channels` is the state after it."""

    before: EventState
    after: EventState
    merged: Merged
    channels: EventChannels

    def is_due(self, next_waiting_ms: int | None, next_window_ms: int | None) -> bool:
        """True if rows or windows are due, or the stream's time ends.

        Also if something waits and a partition is new: its quiet time counts from a batch on.
        """
        if self.after.has_ended and not self.before.has_ended:
            return True
        if next_waiting_ms is None and next_window_ms is None:
            return False
        return (
            (next_waiting_ms is not None and next_waiting_ms <= self.after.release_ms)
            or (next_window_ms is not None and next_window_ms <= self.after.window_watermark)
            or bool(self.after.partitions - self.before.partitions)
        )


def advance(spec: EventSpec, before: EventState, batch: BatchInput) -> Advance:
    """Apply `batch` to `before`; deterministic.

    Raises:
        StateFormatError: the channels in `before` are damaged.
    """
    channels = EventChannels(spec.inputs, before.channels)
    merged = channels.take(batch)
    processing_time = merged.after.use_processing_time
    watermark = merged.after.timestamp_ms
    if spec.late_wait_ms is not None:
        processing_time = False
        watermark = max(before.watermark, batch.now_ms - spec.late_wait_ms)
    after = replace(
        before,
        watermark=watermark,
        processing_time=processing_time,
        window_watermark=max(before.window_watermark, _window_watermark(spec, batch, merged)),
        clock_ms=max(before.clock_ms, batch.now_ms),
        has_ended=channels.has_ended(),
        channels=channels.snapshot(),
    )
    return Advance(before, after, merged, channels)


def _window_watermark(spec: EventSpec, batch: BatchInput, merged: Merged) -> int:
    if spec.follows_clock:
        return batch.now_ms - 1
    return batch.now_ms if merged.after.use_processing_time else merged.after.timestamp_ms


def batch_input(
    event: EventPin,
    partitions: Iterable[int],
    steps: Steps | None,
    heard: Mapping[int, Heard] | None = None,
) -> BatchInput:
    backlog = {} if event.backlog is ABSENT else event.backlog
    return BatchInput(
        now_ms=event.clock_ms,
        partitions=partitions,
        heard=heard or {},
        ended=event.at_end,
        dimensions={
            name: {int(p): Heard(*watermark) for p, watermark in watermarks.items()}
            for name, watermarks in event.dimensions.items()
        },
        steps=steps,
        backlog_read=backlog.get("read", ()),
        backlog_read_before=backlog.get("read_before", ()),
        unread=() if event.unread is ABSENT else event.unread,
    )


@dataclass(frozen=True, slots=True)
class EventView:
    """A consistent, immutable view for the status."""

    spec: EventSpec
    state: EventState
    channels: EventChannels  # as a batch without records would leave them now
    next_waiting_ms: int | None  # time of the first waiting record, None if none waits
    next_window_ms: int | None  # when the next window is due, None if none is open
    waiting_files: tuple[StateFile, ...]
    window_files: tuple[StateFile, ...]
    is_drained: bool  # a bounded stream is read, nothing waits and nothing is open
    # partition of the stream → the offset where processing time begins, None without
    backlog: Mapping[int, int] | None = None
    topics: StreamTopics = NO_TOPICS

    def as_json(self) -> dict[str, Any]:
        state, windowed = self.state, self.spec.window is not None
        by_clock = state.processing_time or self.spec.late_wait_ms is not None
        stream = self.spec.inputs[0]
        emit = "on-event" if self.spec.on_event else "on-periodic"
        return {
            "watermark_ms": None if self.spec.waited else shown_ms(state.watermark),
            "use_processing_time": by_clock,
            "window_watermark_ms": shown_ms(state.window_watermark) if windowed else None,
            "emit": emit if stream.has_watermarks else None,
            "inputs": [self._input_json(each.name) for each in self.spec.inputs],
            "channels": [
                {**_channel_json(view, self._backlog_end(view)), **self._where(view)}
                for view in self.channels.channels()
            ],
            "waiting_rows": state.waiting,
            "waiting_bytes": sum(file.size_bytes for file in self.waiting_files),
            "oldest_waiting_ms": self.next_waiting_ms,
            "next_window_ms": self.next_window_ms,
            "window_rows": sum(file.rows for file in self.window_files),
            "late_records": state.late,
            "fired_rows": state.fired,
            "state_files": {
                "waiting": len(self.waiting_files),
                "windows": len(self.window_files),
            },
            "waits_for": self.waits_for(),
            "late_rows": self._late_rows(),
        }

    def _late_rows(self) -> dict[str, Any] | None:
        if self.spec.late_wait_ms is None:
            return None
        sums = self.state.late_rows or dict.fromkeys(LATE_SUMS, 0)
        return {
            "wait_ms": self.spec.late_wait_ms,
            "tables": list(self.spec.waited),
            "matched": sums["late_matched"],
            "expired": sums["late_expired"],
            "correct_ms": self.spec.late_correct_ms or None,
            "corrected": sums.get("late_corrected", 0),
        }

    def _where(self, view: ChannelView) -> dict[str, Any]:
        if view.input.name != PROBE or not self.topics.are_several:
            return {"channel": view.state.channel, "topic": None, "partition": view.partition}
        place = self.topics.place(view.partition)
        return {"channel": f"{PROBE}/{place}", **place_json(self.topics, view.partition)}

    def _backlog_end(self, view: ChannelView) -> int | None:
        if self.backlog is None or view.input.name != PROBE:
            return None
        return self.backlog.get(view.partition, 0)

    def _input_json(self, name: str) -> dict[str, Any]:
        watermark = self.channels.watermark_of(name)
        return {
            "input": name,
            "watermark_ms": shown_ms(watermark.timestamp_ms),
            "use_processing_time": watermark.use_processing_time,
            "status": self.channels.status_of(name).name,
        }

    def waits_for(self) -> dict[str, Any] | None:
        """The partition that holds back rows or windows, and by how much; None if nothing waits."""
        due_ms, what = self._next_due()
        slowest = self._slowest() if due_ms is not None else None
        if due_ms is None or slowest is None:
            return None
        watermark_ms = shown_ms(slowest.state.watermark.timestamp_ms)
        name, where = slowest.input.name, self._where(slowest)
        partition = where["channel"].removeprefix(f"{name}/")
        whose = input_name(name)
        behind_ms = None if watermark_ms is None else max(0, self._front(due_ms) - watermark_ms)
        far = "has said nothing yet" if behind_ms is None else f"is {_duration(behind_ms)} behind"
        return {
            **where,
            "input": name,
            "watermark_ms": watermark_ms,
            "behind_ms": behind_ms,
            "text": f"{what} for the watermark of {whose}, partition {partition}, which {far}",
        }

    def _next_due(self) -> tuple[int | None, str]:
        if self.next_waiting_ms is not None:
            count = self.state.waiting
            return self.next_waiting_ms, f"{count:,} record{'s wait' if count != 1 else ' waits'}"
        by_clock = self.spec.follows_clock or self.state.processing_time
        if self.next_window_ms is not None and not by_clock:
            return self.next_window_ms, "open windows wait"
        return None, ""

    def _front(self, due_ms: int) -> int:
        stream_ms = self.channels.watermark_of(PROBE).timestamp_ms
        return due_ms if stream_ms == MAX_TIMESTAMP else max(due_ms, stream_ms)

    def _slowest(self) -> ChannelView | None:
        every = self.channels.channels()
        views = [
            view
            for view in every
            if view.state.status is WatermarkStatus.ACTIVE
            and view.state.aligned
            and not view.state.watermark.use_processing_time
        ]
        if not views:  # beside ended partitions the idle ones hold back
            ended = {view.input.name for view in every if view.state.watermark == END_OF_TIME}
            views = [
                view
                for view in every
                if view.input.name in ended and view.state.status is WatermarkStatus.IDLE
            ]
        inputs = {view.input.name: self.channels.watermark_of(view.input.name) for view in views}
        slowest = min(inputs, key=lambda name: inputs[name].timestamp_ms, default=None)
        held = [view for view in views if view.input.name == slowest]
        return min(held, key=lambda view: view.state.watermark.timestamp_ms, default=None)


def _channel_json(view: ChannelView, backlog: int | None) -> dict[str, Any]:
    watermark: Watermark = view.state.watermark
    return {
        "input": view.input.name,
        "watermark_ms": shown_ms(watermark.timestamp_ms),
        "use_processing_time": watermark.use_processing_time,
        "backlog_end": backlog,
        "status": "ENDED" if watermark == END_OF_TIME else view.state.status.name,
        "aligned": view.state.aligned,
        "active_at_ms": view.active_at_ms,
        "idle_timeout_ms": view.input.idle_timeout_ms,
        "max_wait_ms": view.input.max_wait_ms,
    }


def shown_ms(timestamp_ms: int) -> int | None:
    return None if timestamp_ms == MIN_TIMESTAMP else timestamp_ms


def _duration(millis: int) -> str:
    if millis < 1_000:
        return f"{millis} ms"
    seconds = millis // 1_000
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
