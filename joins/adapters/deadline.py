"""A time by which a piece of work with foreign servers is over, whatever they do or do not say.

A server that accepts and says nothing keeps each client waiting for as long as that client has
patience, and one that says a byte now and then keeps it for ever. Within `within` all waiting ends
with the same moment: connections ask how long they may wait, and are cut when the time is over.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from joins.plan.errors import SourceUnavailableError


class Deadline:
    """When all is over; `cut` ends what still waits then."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at_s = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []
        self._is_over = False

    def left_s(self, server: str) -> float:
        """How long an answer of `server` may be waited for.

        Raises:
            SourceUnavailableError: no longer.
        """
        left_s = self._at_s - time.monotonic()
        if self._is_over or left_s <= 0:
            raise SourceUnavailableError(
                f'"{server}" was not asked: the servers asked before it took {self._seconds:g} s',
                hint="See that each server answers; one that is silent holds up the others.",
            )
        return left_s

    def on_end(self, close: Callable[[], None]) -> None:
        """Call `close` when the time is over, unless the work is done before."""
        with self._lock:
            if not self._is_over:
                self._closers.append(close)
                return
        close()

    def cut(self) -> None:
        """The time is over."""
        with self._lock:
            self._is_over = True
            closers, self._closers = self._closers, []
        for close in closers:
            close()


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def current_deadline() -> Deadline | None:
    return _current.get()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What this thread does with servers in the block has these seconds, all together."""
    deadline = Deadline(seconds)
    timer = threading.Timer(seconds, deadline.cut)
    timer.daemon = True
    before = _current.set(deadline)
    timer.start()
    try:
        yield
    finally:
        _current.reset(before)
        timer.cancel()
