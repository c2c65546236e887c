"""The combine rule again, slow and from scratch."""

from dataclasses import dataclass

from watermark.model import (
    END_OF_TIME,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    PROCESSING_TIME,
    START_OF_TIME,
    Watermark,
    WatermarkStatus,
)


@dataclass
class ModelChannel:
    timestamp_ms: int = MIN_TIMESTAMP
    processing: bool = False
    idle: bool = False

    @property
    def active(self):
        return self.processing or not self.idle

    @property
    def has_ended(self):
        return self.timestamp_ms == MAX_TIMESTAMP and not self.processing


class CombineModel:
    def __init__(self, names, *, laggards_hold_back):
        self.channels = {name: ModelChannel() for name in names}
        self.laggards_hold_back = laggards_hold_back
        self.last = START_OF_TIME
        self.status = WatermarkStatus.ACTIVE

    def watermark(self, name, watermark):
        channel = self.channels[name]
        if watermark.use_processing_time:
            channel.processing = True
        elif not channel.idle:
            channel.timestamp_ms = watermark.timestamp_ms
        return self.evaluate()

    def set_status(self, name, status):
        self.channels[name].idle = status is WatermarkStatus.IDLE
        return self.evaluate()

    def evaluate(self):
        new = self.combined()
        moved = (
            new is not None
            and not self.last.use_processing_time
            and (new.use_processing_time or new.timestamp_ms > self.last.timestamp_ms)
        )
        if moved:
            self.last = new
        active = any(each.active for each in self.taking_part())
        status = WatermarkStatus.ACTIVE if active else WatermarkStatus.IDLE
        changed = [status] if status is not self.status else []
        self.status = status
        if not active:
            return ([new] if moved else []) + changed
        return changed + ([new] if moved else [])

    def taking_part(self):
        return [each for each in self.channels.values() if not each.has_ended] or list(
            self.channels.values()
        )

    def combined(self):
        in_event_time = [each for each in self.channels.values() if not each.processing]
        if not in_event_time:
            return PROCESSING_TIME
        if all(each.has_ended for each in in_event_time):
            return END_OF_TIME
        there = self.taking_part()
        if not any(each.active for each in there):
            return Watermark(max(each.timestamp_ms for each in there))
        times = [
            each.timestamp_ms
            for each in there
            if not each.processing
            and each.active
            and (self.laggards_hold_back or each.timestamp_ms >= self.last.timestamp_ms)
        ]
        return Watermark(min(times)) if times else None
