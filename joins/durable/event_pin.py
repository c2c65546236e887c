"""What the pin of an event batch says beside that of others: time and state before the batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ABSENT: Any = ...  # of what an older runner's pin does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPin:
    """Time and state before one event batch; the first fields are those of an `EventState`.

    Attributes:
        clock_ms: of the batch itself.
        at_end: partitions of a bounded stream that were read to their end.
        backlog: partitions behind the job's backlog, by `read` and `read_before`.
        dimensions: versioned dimension → partition → its watermark, and when it was heard.
        state_versions: table of the state → its version before the batch.
    """

    watermark: int = ABSENT
    processing_time: bool = ABSENT
    window_watermark: int = ABSENT
    clock_ms: int = ABSENT
    has_ended: bool = ABSENT
    channels: Mapping[str, Any] | None = ABSENT
    waiting: int = ABSENT
    late: int = ABSENT
    fired: int = ABSENT
    at_end: Sequence[int] = ABSENT
    backlog: Mapping[str, Sequence[int]] = ABSENT
    dimensions: Mapping[str, Mapping[str, Any]] = ABSENT
    state_versions: Mapping[str, int] = ABSENT

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "EventPin":
        return cls(**{name: value[name] for name in cls.__slots__ if name in value})

    def as_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value is not ABSENT}
