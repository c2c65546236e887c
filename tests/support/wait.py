"""Waiting for a condition with a deadline, instead of sleeping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_POLL_S = 0.05


def wait_until(
    condition: Callable[[], T], *, deadline_s: float = 60.0, what: str = "", poll_s: float = _POLL_S
) -> T:
    """Poll `condition` until it answers something true, and return that answer.

    Raises:
        TimeoutError: it did not within `deadline_s`; tells `what` was awaited and the last answer.
    """
    deadline = time.monotonic() + deadline_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            awaited = what or getattr(condition, "__name__", "condition")
            raise TimeoutError(f"{awaited} not met within {deadline_s} s, last answer {answer!r}")
        time.sleep(poll_s)
