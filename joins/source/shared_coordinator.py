"""Coordinates a source that another job copies and follows: it knows how far that job is."""

from collections.abc import Callable
from dataclasses import dataclass

from joins.durable.stalls import Stalls
from joins.source.coordinator import SourceCoordinator, SourceView
from watermark.errors import SluiceError

_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class SharedReport:
    """How far the job is that keeps a shared table.

    Attributes:
        view: None before it has told.
        fault: why the table stands still, None while it does not.
    """

    view: SourceView | None = None
    fault: SluiceError | None = None


class SharedCoordinator(SourceCoordinator):
    """Looks at one shared table on its own thread until stopped; it has no process.

    Args:
        dimension: its name.
        look: how far the table is now.
        stalls: where it is noted that the table stands still.
    """

    def __init__(self, dimension: str, look: Callable[[], SharedReport], stalls: Stalls) -> None:
        super().__init__(dimension, stalls)
        self._look = look
        self._report = SharedReport()

    def view(self) -> SourceView | None:
        return self._report.view

    def _run_once(self) -> None:
        noted: str | None = None
        while not self._stopping.is_set():
            self._report = report = self._look()
            fault = report.fault
            if fault is None:
                self._stalls.clear(self.part)
            elif fault.message != noted:
                self._note(fault)
            noted = None if fault is None else fault.message
            self._stopping.wait(_LOOK_S)
