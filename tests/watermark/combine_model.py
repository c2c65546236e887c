"""The combine rule again, slow and from scratch."""

from dataclasses import dataclass

from watermark.model import (
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
        active = any(each.active for each in self.channels.values())
        status = WatermarkStatus.ACTIVE if active else WatermarkStatus.IDLE
        changed = [status] if status is not self.status else []
        self.status = status
        if not active:
            return ([new] if moved else []) + changed
        return changed + ([new] if moved else [])

    def combined(self):
        channels = self.channels.values()
        in_event_time = [each for each in channels if not each.processing]
        if not in_event_time:
            return PROCESSING_TIME
        if not any(each.active for each in channels):
            times = [each.timestamp_ms for each in in_event_time]
            result = max(times)
        else:
            times = [
                each.timestamp_ms
                for each in in_event_time
                if each.active
                and (self.laggards_hold_back or each.timestamp_ms >= self.last.timestamp_ms)
            ]
            if not times:
                return None
            result = min(times)
        ended = all(each.timestamp_ms == MAX_TIMESTAMP for each in in_event_time)
        return Watermark(result if ended else min(result, MAX_TIMESTAMP - 1))
