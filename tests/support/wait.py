"""Waiting for a condition with a deadline, instead of sleeping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_POLL_S = 0.05
_REST = 8  # times as long as a look took, so that looking leaves the cores to what is awaited
_MOST_REST_S = 0.5
_PATIENCE = 5  # a deadline is for a machine that does nothing else; a busy one is slower


def wait_until(
    condition: Callable[[], T], *, deadline_s: float = 60.0, what: str = "", poll_s: float = _POLL_S
) -> T:
    """Poll `condition` until it answers something true, and return that answer.

    Raises:
        TimeoutError: it did not within several times `deadline_s`; tells `what` was awaited and
            the last answer.
    """
    patience_s = _PATIENCE * deadline_s
    deadline = time.monotonic() + patience_s
    while True:
        began = time.monotonic()
        answer = condition()
        if answer:
            return answer
        now = time.monotonic()
        if now > deadline:
            awaited = what or getattr(condition, "__name__", "condition")
            raise TimeoutError(f"{awaited} not met within {patience_s} s, last answer {answer!r}")
        time.sleep(max(poll_s, min(_REST * (now - began), _MOST_REST_S)))
