"""Turns: what a step of a loop runs under, so that a stop can wait for it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from joins.durable.failpoints import Failpoints
from joins.plan.errors import StoppingError


class BatchTurns:
    """Lets a stop wait for the batches that run, and keeps new ones from starting."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._stopping = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """While a batch runs.

        Raises:
            StoppingError: none may start any more.
        """
        with self._changed:
            if self._stopping:
                raise StoppingError("no batch starts any more", hint="The job is stopped.")
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def stop(self, *, timeout_s: float) -> bool:
        with self._changed:
            self._stopping = True
            return self._changed.wait_for(lambda: self._running == 0, timeout_s)


@dataclass(frozen=True, slots=True)
class LoopGuards:
    """What every loop of a job runs under.

    Attributes:
        on_error: why a step failed.
        lock: held while a step runs.
    """

    failpoints: Failpoints
    turns: BatchTurns
    on_error: Callable[[Exception], None]
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """While a step runs; its error is told and goes on.

        Raises:
            StoppingError: none may begin any more.
        """
        try:
            with self.lock, self.turns.turn():
                yield
        except Exception as exc:
            self.on_error(exc)
            raise
