"""Records, and the elements that flow between operators."""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from watermark.checks import checked, refused
from watermark.errors import InvalidParameterError
from watermark.model import Progress, Watermark, WatermarkStatus

Value: TypeAlias = Any
"""What users put into records: nothing here looks inside."""


@dataclass(frozen=True, slots=True)
class Record:
    """A value with its event time.

    Attributes:
        timestamp_ms: epoch milliseconds, None for a record that has no event time. `MIN_TIMESTAMP`,
            which an assigner gives to records without one, is late from the start.

    Raises:
        InvalidParameterError: the timestamp is no int.
    """

    value: Value
    timestamp_ms: int | None = None

    def __post_init__(self) -> None:
        if self.timestamp_ms is not None and type(self.timestamp_ms) is not int:
            raise refused("Record", "timestamp_ms", self.timestamp_ms, "int or None")


@checked
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


@checked
@dataclass(frozen=True, slots=True)
class SideRecord:
    """A record that leaves through the side output `tag`."""

    tag: OutputTag
    record: Record


Element = Record | SideRecord | Progress


def stored_elements(elements: Iterable[Element]) -> list[tuple[object, ...]]:
    """Elements of a source as plain values, for its snapshot.

    >>> elements_of(stored_elements([Record("a", 5), WatermarkStatus.IDLE]))
    [Record(value='a', timestamp_ms=5), <WatermarkStatus.IDLE: 'idle'>]
    """
    return [_stored(each) for each in elements]


def elements_of(stored: Iterable[Sequence[Any]]) -> list[Any]:
    """The elements that `stored_elements` was given.

    Raises:
        KeyError, TypeError, ValueError, InvalidParameterError: it is no such list.
    """
    return [_KINDS[kind](*fields) for kind, *fields in stored]


_KINDS: dict[str, Callable[..., Element]] = {
    "record": Record,
    "watermark": Watermark,
    "status": WatermarkStatus,
}


def _stored(element: Element) -> tuple[object, ...]:
    if isinstance(element, Watermark):
        return ("watermark", element.timestamp_ms, element.use_processing_time)
    if isinstance(element, WatermarkStatus):
        return ("status", element.value)
    assert isinstance(element, Record), "sources have no side outputs"
    return ("record", deepcopy(element.value), element.timestamp_ms)
