"""The combine rule: one watermark from many channels, for the valve and the combined status.

- A channel in processing time counts as active and takes no part in the minimum.
- While any channel is in event time, the result is the minimum over the active ones among those;
  idle ones do not hold it back. Without any in event time (and with at least one channel), it is
  `(MIN_TIMESTAMP, true)`. An idle channel in event time therefore keeps the result out of
  processing time.
- The result never decreases and never leaves processing time. It gets there when the clock has
  reached the last promise, which may come from a removed channel.
- A channel at `MAX_TIMESTAMP` has ended. It takes no part while another one has not ended: the
  others make the result and the status. `MAX_TIMESTAMP` is the result when every channel in event
  time has ended. An idle channel therefore finds its records on time when it returns.
- When all channels that take part are idle, the result is the maximum over them.

Source: FLIP-326, "Proposed Changes" 6 and 7, and its table; ended channels: FLINK-38477 and
docs/adr/0102-combine-all-channels-in-one-valve-without-those-that-ended.md.
"""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush, heapreplace
from typing import Any

from watermark.checks import refused
from watermark.errors import (
    FutureWatermarkError,
    InvalidParameterError,
    UnknownChannelError,
    WatermarkRegressionError,
    reading_state,
)
from watermark.model import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    PROCESSING_TIME,
    START_OF_TIME,
    Progress,
    Watermark,
    WatermarkStatus,
)

_NOTHING: tuple[Progress, ...] = ()


class Channel:
    """The mutable record of one channel; only `Combination` writes it."""

    __slots__ = ("aligned", "idle", "name", "number", "processing", "queued", "timestamp_ms")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number  # unique for the life of the combination, the tie-break of the heap
        self.timestamp_ms = MIN_TIMESTAMP  # of its last false watermark
        self.processing = False  # its last watermark had `use_processing_time`
        self.idle = False  # its last status; without effect while `processing`
        self.aligned = False  # it takes part in the minimum; never once it has ended
        self.queued = False  # the heap has an entry for it, at or below `timestamp_ms`

    @property
    def has_ended(self) -> bool:
        return self.timestamp_ms == MAX_TIMESTAMP and not self.processing

    @property
    def watermark(self) -> Watermark:
        return Watermark(MIN_TIMESTAMP if self.processing else self.timestamp_ms, self.processing)


class Combination:
    """Channels and their combined watermark.

    The heap holds one entry for each channel that takes part, at or below that channel's time. An
    input that does not come from the channel at its top changes one number only.
    """

    def __init__(self, names: Iterable[str], *, laggards_hold_back: bool) -> None:
        self.last = START_OF_TIME  # the newest result
        self.status = WatermarkStatus.ACTIVE  # the newest status that went downstream
        # a channel that returns from idleness behind `last` stops progress until it has caught up
        # (inputs of an operator); otherwise it is left out until then (channels of a valve)
        self.laggards_hold_back = laggards_hold_back
        self.channels: dict[str, Channel] = {}
        self._heap: list[tuple[int, int, Channel]] = []
        self._numbers = 0
        self._in_event_time = 0
        self._not_ended = 0  # among those in event time
        self._active = 0
        self._active_ended = 0  # among the active ones
        self._clock_ms = MIN_TIMESTAMP
        self._membership_changed = False
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Add an active channel at `MIN_TIMESTAMP`; InvalidParameterError if the name is taken."""
        if name in self.channels:
            raise InvalidParameterError(
                f'channel "{name}" was declared twice', hint="Give each channel its own name."
            )
        channel = Channel(name, self._numbers)
        self._numbers += 1
        self.channels[name] = channel
        self._in_event_time += 1
        self._not_ended += 1
        self._active += 1
        self._membership_changed = True
        self._align(channel)

    def remove(self, name: str) -> None:
        """Remove a channel; the result moves with the next input at the earliest."""
        channel = self.channel(name)
        del self.channels[name]
        self._active -= not channel.idle or channel.processing
        if not channel.processing:
            self._in_event_time -= 1
            self._not_ended -= not channel.has_ended
            self._active_ended -= channel.has_ended and not channel.idle
        channel.aligned = False
        self._membership_changed = True

    def channel(self, name: str) -> Channel:
        """Raises UnknownChannelError."""
        try:
            channel = self.channels.get(name)
        except TypeError as exc:
            raise refused("channels", "name", name, "str") from exc
        if channel is None:
            known = ", ".join(f'"{each}"' for each in list(self.channels)[:8])
            raise UnknownChannelError(
                f'channel "{name}" is unknown; known: {known or "none"}',
                hint="Declare the channel before its first watermark.",
            )
        return channel

    def input_watermark(self, name: str, watermark: Watermark, now_ms: int) -> tuple[Progress, ...]:
        """Apply the newest watermark of `name` (see `advance`); returns the output downstream."""
        try:
            channel = self.channels[name]
        except (KeyError, TypeError):
            channel = self.channel(name)
        return self.emit() if self.advance(channel, watermark, now_ms) else _NOTHING

    def input_status(self, name: str, status: WatermarkStatus) -> tuple[Progress, ...]:
        return self.emit() if self.set_status(self.channel(name), status) else _NOTHING

    def advance(self, channel: Channel, watermark: Watermark, now_ms: int) -> bool:
        """Apply a channel's watermark; True if the result may have changed.

        A false watermark on an idle channel is discarded. A true one makes the channel active.

        Raises:
            WatermarkRegressionError: the channel went back.
            FutureWatermarkError: processing time was claimed before the clock is there.
        """
        if type(watermark) is not Watermark or type(now_ms) is not int:
            raise _no_watermark(channel, watermark, now_ms)
        timestamp_ms = watermark.timestamp_ms
        if watermark.use_processing_time or channel.processing:
            return self._switch(channel, watermark, now_ms)
        if channel.idle:
            return self._membership_changed
        before_ms = channel.timestamp_ms
        if timestamp_ms <= before_ms:
            if timestamp_ms < before_ms:
                raise _went_back(channel, timestamp_ms)
            return self._membership_changed
        channel.timestamp_ms = timestamp_ms
        if timestamp_ms == MAX_TIMESTAMP:
            channel.aligned = False
            self._not_ended -= 1
            self._active_ended += 1
            return True
        if not channel.aligned:
            self._align(channel)
        # Only the channel at the top of the heap can raise the minimum.
        return self._membership_changed or (bool(self._heap) and self._heap[0][2] is channel)

    def set_status(self, channel: Channel, status: WatermarkStatus) -> bool:
        """True if the result may have changed."""
        if not isinstance(status, WatermarkStatus):
            raise refused(f'channel "{channel.name}"', "status", status, "WatermarkStatus")
        idle = status is WatermarkStatus.IDLE
        if channel.idle is idle:
            return self._membership_changed
        channel.idle = idle
        if channel.processing:
            return True
        self._active += -1 if idle else 1
        if channel.has_ended:
            self._active_ended += -1 if idle else 1
        if idle:
            channel.aligned = False
        else:
            self._align(channel)
        return True

    def emit(self) -> tuple[Progress, ...]:
        """The changes since the last call, in order."""
        self._membership_changed = False
        result = self._result()
        idle = not self._is_active()
        status = WatermarkStatus.IDLE if idle else WatermarkStatus.ACTIVE
        if status is self.status:
            return _NOTHING if result is None else (result,)
        self.status = status
        if result is None:
            return (status,)
        # ACTIVE goes before the watermark that it announces, IDLE after the last one.
        return (result, status) if idle else (status, result)

    def lowest_ms(self) -> int | None:
        """The minimum over the channels that take part now, None if there are none."""
        if self._in_event_time and not self._not_ended:
            return MAX_TIMESTAMP
        heap = self._heap
        while heap:
            timestamp_ms, number, channel = heap[0]
            if not channel.aligned:
                heappop(heap)
                channel.queued = False
            elif channel.timestamp_ms != timestamp_ms:
                heapreplace(heap, (channel.timestamp_ms, number, channel))
            else:
                return timestamp_ms
        return None

    def snapshot(self) -> dict[str, object]:
        return {
            "last": (self.last.timestamp_ms, self.last.use_processing_time),
            "idle": self.status is WatermarkStatus.IDLE,
            "clock_ms": self._clock_ms,
            "channels": [
                (each.name, each.timestamp_ms, each.processing, each.idle, each.aligned)
                for each in self.channels.values()
            ],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], *, laggards_hold_back: bool) -> "Combination":
        """Continues from a `snapshot`; raises StateFormatError."""
        combination = cls((), laggards_hold_back=laggards_hold_back)
        with reading_state("channels"):
            combination.last = Watermark(*state["last"])
            combination.status = WatermarkStatus.IDLE if state["idle"] else WatermarkStatus.ACTIVE
            combination._clock_ms = state["clock_ms"]
            for fields in state["channels"]:
                combination._restore_channel(*fields)
        return combination

    def _restore_channel(
        self, name: str, timestamp_ms: int, processing: bool, idle: bool, aligned: bool
    ) -> None:
        self.add(name)
        channel = self.channels[name]
        channel.timestamp_ms = timestamp_ms
        channel.processing, channel.idle = processing, idle
        channel.aligned = aligned and not channel.has_ended
        self._not_ended -= processing or channel.has_ended
        self._in_event_time -= processing
        self._active -= idle and not processing
        self._active_ended += channel.has_ended and not idle
        if channel.aligned and not channel.queued:
            channel.queued = True
            heappush(self._heap, (timestamp_ms, channel.number, channel))

    def _result(self) -> Watermark | None:
        if self.last.use_processing_time or not self.channels:
            return None
        if not self._in_event_time:
            if self.last.timestamp_ms > self._clock_ms:
                return None  # a removed channel had promised more: wait for the clock
            self.last = PROCESSING_TIME
            self._heap.clear()
            return self.last
        lowest_ms = self.lowest_ms() if self._is_active() else self._maximum()
        if lowest_ms is None or lowest_ms <= self.last.timestamp_ms:
            return None
        self.last = Watermark(lowest_ms)
        return self.last

    def _switch(self, channel: Channel, watermark: Watermark, now_ms: int) -> bool:
        if not watermark.use_processing_time:
            raise _left_processing_time(channel, watermark)
        # A clock that steps back must not turn a repeated watermark into one of the future.
        self._clock_ms = max(self._clock_ms, now_ms)
        promised_ms = max(watermark.timestamp_ms, channel.timestamp_ms)
        if promised_ms > self._clock_ms:
            raise _in_the_future(channel, promised_ms, self._clock_ms)
        if channel.processing:
            waits = not self._in_event_time and not self.last.use_processing_time
            return self._membership_changed or waits
        self._in_event_time -= 1
        self._not_ended -= not channel.has_ended
        self._active_ended -= channel.has_ended and not channel.idle
        self._active += channel.idle
        channel.processing = True
        channel.aligned = False
        return True

    def _align(self, channel: Channel) -> None:
        last = self.last
        if last.use_processing_time or channel.has_ended:
            return
        if channel.timestamp_ms < last.timestamp_ms and not self.laggards_hold_back:
            return
        channel.aligned = True
        if not channel.queued:
            channel.queued = True
            heappush(self._heap, (channel.timestamp_ms, channel.number, channel))

    def _is_active(self) -> bool:
        """True if a channel that takes part is active; all take part when all have ended."""
        ended = self._in_event_time - self._not_ended
        if ended < len(self.channels):
            return self._active > self._active_ended
        return self._active > 0

    def _maximum(self) -> int:
        times = [each.timestamp_ms for each in self.channels.values() if not each.has_ended]
        return max(times, default=MAX_TIMESTAMP)


def _no_watermark(channel: Channel, watermark: object, now_ms: object) -> InvalidParameterError:
    where = f'channel "{channel.name}"'
    if isinstance(watermark, Watermark):
        return refused(where, "now_ms", now_ms, "int")
    return refused(where, "watermark", watermark, "Watermark")


def _went_back(channel: Channel, timestamp_ms: int) -> WatermarkRegressionError:
    return WatermarkRegressionError(
        f'channel "{channel.name}" went back from {channel.timestamp_ms} ms to {timestamp_ms} ms',
        hint="Send watermarks through a monotonic output, and restart a job after a rewind.",
    )


def _left_processing_time(channel: Channel, watermark: Watermark) -> WatermarkRegressionError:
    return WatermarkRegressionError(
        f'channel "{channel.name}" left processing time at {watermark.timestamp_ms} ms',
        hint="Restart the job; if it recurs, the connector repeated its snapshot.",
    )


def _in_the_future(channel: Channel, promised_ms: int, now_ms: int) -> FutureWatermarkError:
    return FutureWatermarkError(
        f'channel "{channel.name}" claimed processing time with {promised_ms} ms promised, '
        f"which is after now ({now_ms} ms)",
        hint="Compare the clocks of source and runner, and check the unit: it is milliseconds.",
    )
