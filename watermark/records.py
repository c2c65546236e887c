"""Records, and the elements that flow between operators."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from watermark.errors import InvalidParameterError
from watermark.model import Progress

Value: TypeAlias = Any
"""What users put into records: nothing here looks inside."""


@dataclass(frozen=True, slots=True)
class Record:
    """A value with its event time.

    Attributes:
        timestamp_ms: epoch milliseconds, None for a record that has no event time. `MIN_TIMESTAMP`,
            which an assigner gives to records without one, is late from the start.
    """

    value: Value
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class OutputTag:
    """Names a side output; its records have the type of what was put in.

    Raises:
        InvalidParameterError: the name is empty.
    """

    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidParameterError(
                'output tag "" has no name', hint="Name the side output, for example late-data."
            )


@dataclass(frozen=True, slots=True)
class SideRecord:
    """A record that leaves through the side output `tag`."""

    tag: OutputTag
    record: Record


Element = Record | SideRecord | Progress
