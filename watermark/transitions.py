"""State machines as tables: (state, event) → next state; every other pair is an error."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from watermark.errors import InvalidTransitionError

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)


def next_state(
    machine: str, table: Mapping[tuple[State, Event], State], state: State, event: Event
) -> State:
    """Raise InvalidTransitionError if `table` has no such transition."""
    following = table.get((state, event))
    if following is None:
        raise illegal_step(machine, f'state "{state}" has no transition for "{event}"')
    return following


def illegal_step(machine: str, what: str) -> InvalidTransitionError:
    return InvalidTransitionError(
        f"{machine}: {what}", hint="Report this as a defect with the job's event log."
    )
