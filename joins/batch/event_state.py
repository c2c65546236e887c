"""What a job with event time knows between two batches, and what a batch makes of it.

The state before a batch is in its pin, the state after it in its last commit to the tables of the
state: both are the same JSON values. Everything here is pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from joins.batch.event_channels import (
    PROBE,
    BatchInput,
    EventChannels,
    EventInput,
    Heard,
    Merged,
    Steps,
)
from joins.durable.event_pin import ABSENT, EventPin
from joins.plan.plan import JoinPlan, WatermarkSpec, Windowing
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP


@dataclass(frozen=True, slots=True)
class EventSpec:
    """What of a plan decides about time.

    Attributes:
        inputs: of the operator, the stream's first.
        waits: whether records wait for a watermark.
        on_event: whether each record's watermark holds for the next one of its partition.
    """

    inputs: tuple[EventInput, ...]
    waits: bool
    window: Windowing | None
    on_event: bool

    @classmethod
    def of(cls, plan: JoinPlan) -> "EventSpec":
        """The one of a plan that needs event batches."""
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

    @property
    def follows_clock(self) -> bool:
        return self.window is not None and self.window.time is None


def _input(name: str, watermark: WatermarkSpec | None) -> EventInput:
    if watermark is None:
        return EventInput(name, has_watermarks=False)
    return EventInput(name, idle_timeout_ms=watermark.idle_timeout_ms)


@dataclass(frozen=True, slots=True)
class EventState:
    """Time and sums between two batches.

    Attributes:
        watermark: the operator's, in milliseconds; `MIN_TIMESTAMP` before the first one, and while
            the clock is the time.
        processing_time: every input is in processing time: nothing waits, nothing is late.
        window_watermark: the one that fires windows; in processing time the clock of the newest
            batch, for windows of processing time less a millisecond.
        clock_ms: of the newest batch; it never goes back.
        has_ended: the stream has no event time to come.
        channels: snapshot of `EventChannels`, None at the beginning.
        waiting: rows that wait.
        late: records so far.
        fired: rows of windows so far.
    """

    watermark: int = MIN_TIMESTAMP
    processing_time: bool = False
    window_watermark: int = MIN_TIMESTAMP
    clock_ms: int = 0
    has_ended: bool = False
    channels: Mapping[str, Any] | None = field(default=None, repr=False)
    waiting: int = 0
    late: int = 0
    fired: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "watermark": self.watermark,
            "processing_time": self.processing_time,
            "window_watermark": self.window_watermark,
            "clock_ms": self.clock_ms,
            "has_ended": self.has_ended,
            "channels": self.channels,
            "waiting": self.waiting,
            "late": self.late,
            "fired": self.fired,
        }

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "EventState":
        return cls(**{name: value[name] for name in cls.__slots__})

    @classmethod
    def before(cls, event: EventPin) -> "EventState":
        return cls(**{name: getattr(event, name) for name in cls.__slots__})

    @property
    def release_ms(self) -> int:
        return MAX_TIMESTAMP if self.processing_time else self.watermark

    def counted(self, counts: Mapping[str, int]) -> "EventState":
        waiting = self.waiting + counts.get("waited", 0) - counts.get("released", 0)
        return replace(
            self,
            waiting=waiting,
            late=self.late + counts.get("late", 0),
            fired=self.fired + counts.get("fired", 0),
        )


@dataclass(frozen=True, slots=True)
class Advance:
    """Where a batch takes the time.

    Attributes:
        channels: as they are then.
    """

    before: EventState
    after: EventState
    merged: Merged
    channels: EventChannels


def advance(spec: EventSpec, before: EventState, batch: BatchInput) -> Advance:
    """What `batch` makes of `before`; the same for the same arguments.

    Raises:
        StateFormatError: the channels in `before` are damaged.
    """
    channels = EventChannels(spec.inputs, before.channels)
    merged = channels.take(batch)
    processing_time = merged.after.use_processing_time
    watermark = merged.after.timestamp_ms
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
    """What a batch says about progress.

    Args:
        event: of its pin.
        partitions: of the stream, all that are there.
        steps: with a watermark for each record.
        heard: of the partitions with records in the batch.
    """
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
    )
