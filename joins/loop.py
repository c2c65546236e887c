"""A loop of batches on a thread, and the turns that let a stop wait for the running batch.

The Spark jobs of a step run in the loop's pool; stopping the loop cancels them.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from joins.durable.failpoints import Failpoints
from joins.plan.errors import StoppingError
from joins.worker.work import enter_pool


class BatchTurns:
    """Lets a stop wait for the running batches, and keeps new ones from starting."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._stopping = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold while a batch runs; raises StoppingError if none may start."""
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
    """What every loop of a job runs under; a step holds `lock`."""

    failpoints: Failpoints
    turns: BatchTurns
    on_error: Callable[[Exception], None]
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold while a step runs; reports its error. Raises StoppingError if none may start."""
        try:
            with self.lock, self.turns.turn():
                yield
        except Exception as exc:
            self.on_error(exc)
            raise


_JOIN_S = 10.0
_log = structlog.get_logger(__name__)


class Steps(Protocol):
    """The steps of a loop: its thread makes all calls, those of `recover` and `step` in a turn."""

    def recover(self) -> None:
        """Find where the previous loop stopped."""

    def step(self) -> bool:
        """Run a batch if there is a reason for one; returns True if there was."""

    def wait(self) -> None:
        """Return when there may be a reason for a batch, after half a second at the latest."""

    def close(self) -> None:
        """Close all resources."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """Names of the thread and Spark's pool; least time from one step's start to the next."""

    name: str
    pool: str
    trigger_ms: int


class Loop:
    """One run of a loop."""

    def __init__(
        self,
        spark: SparkSession,
        steps: Steps,
        settings: LoopSettings,
        guards: LoopGuards,
        cancel: Callable[[], None] = lambda: None,
    ) -> None:
        """`cancel` ends what a step runs outside Spark's jobs."""
        self._spark = spark
        self._steps = steps
        self._settings = settings
        self._guards = guards
        self._cancel = cancel
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._has_progressed = False
        self._group = f"{settings.name}-{id(self)}"
        self._thread = threading.Thread(target=self._work, name=settings.name, daemon=True)

    def start(self) -> "Loop":
        self._thread.start()
        return self

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    @property
    def has_progressed(self) -> bool:
        return self._has_progressed

    @property
    def error(self) -> Exception | None:
        return self._error

    def end(self) -> None:
        self._stopping.set()

    def stop(self) -> None:
        """Stop the loop; the next loop repeats an interrupted batch."""
        self.end()
        self._cancel()
        try:
            self._spark.sparkContext.cancelJobGroup(self._group)
        except (PySparkException, Py4JError, OSError) as exc:  # also a JVM that is gone
            _log.warning("jobs of a batch were not cancelled", error=str(exc))
        self._thread.join(_JOIN_S)

    def _work(self) -> None:
        context = self._spark.sparkContext
        try:
            enter_pool(self._spark, self._settings.pool)
            context.setJobGroup(self._group, self._settings.name, interruptOnCancel=True)
            self._turn(self._steps.recover)
            while not self._stopping.is_set():
                began = time.monotonic()
                if not self._turn(self._steps.step):
                    self._steps.wait()
                self._has_progressed = True
                rest_s = self._settings.trigger_ms / 1000 - (time.monotonic() - began)
                self._stopping.wait(max(0.0, rest_s))
        except Exception as exc:  # whatever it is, the loop has ended by it
            self._error = None if self._stopping.is_set() else exc
        finally:
            self._steps.close()

    def _turn(self, work: Callable[[], object]) -> bool:
        with self._guards.turn():
            return self._stopping.is_set() or bool(work())
