"""Seats: of what takes threads for long, only so much is going on at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from service.errors import BusyError


class Seats:
    """Safe to use from several threads; whoever finds all taken waits for a while, or is refused.

    Args:
        what: of which there are so many, for messages.
        at_once: that are going on.
        waiting: that may wait for one that ends; each holds a thread, too.
        patience_s: how long they wait.
    """

    def __init__(self, what: str, *, at_once: int, waiting: int, patience_s: float) -> None:
        self._what = what
        self._at_once = at_once
        self._patience_s = patience_s
        self._admitted = threading.BoundedSemaphore(at_once + waiting)
        self._free = threading.BoundedSemaphore(at_once)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a seat.

        Raises:
            BusyError: there is none.
        """
        with self._taken(self._admitted, 0.0), self._taken(self._free, self._patience_s):
            yield

    @contextmanager
    def _taken(self, places: threading.BoundedSemaphore, patience_s: float) -> Iterator[None]:
        if not places.acquire(timeout=patience_s):
            raise BusyError(
                f"{self._at_once} {self._what} are running and others wait",
                hint="Ask again when they have ended.",
            )
        try:
            yield
        finally:
            places.release()
