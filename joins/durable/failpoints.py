"""Deterministic faults along the batch protocol, off by default.

`SLUICE_FAILPOINTS` is a list `<point>=<action>[@<n>|#<batch>]` separated by `;`. The action happens
at the n-th passage of the point in a process (default 1), or when that batch passes it, once per
job. A passage triggers at most one entry. Actions: `kill` (SIGKILL to this process), `stop`
(SIGSTOP), `raise` (`FailpointError`), `enospc` (`OSError(ENOSPC)`). `POINTS` describes each point.
"""

import errno
import os
import re
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

from joins.plan.errors import JoinError

POINTS = {
    "C1": "a loop begins, the newest pin was not looked at",
    "C2": "the batch is planned, its pin is not written",
    "C3": "the pin is durable; tasks may join already",
    "C4": "the driver has attached the index",
    "C5": "a worker has attached the index and begins the last stage",
    "C6": "everything is staged, nothing is committed",
    "C7": "the dead letters are committed, the output is not",
    "C8": "the output is committed",
    "C9": "the batch is counted, the loop does not go on yet",
    "C10": "the loop goes on behind the batch",
    "C11": "changes are staged, the changelog's commit has not begun",
    "C12": "the changelog is committed, watermarks and index do not know it",
    "C13": "the state of an event batch is committed, its output is not",
    "C14": "one output of several is committed, the next one is not",
    "C15": "a transaction has all records of a batch, and is not committed",
    "C16": "a transaction is committed, the note of its batch is not written",
    "F1": "records of a topic's table are acknowledged, a step of its journal is not written",
    "F2": "the step of the journal is durable",
}
ACTIONS = ("kill", "stop", "raise", "enospc")


class FailpointError(JoinError, fault="failpoint"):
    """A planted fault, asked for by SLUICE_FAILPOINTS."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """An entry of SLUICE_FAILPOINTS; `text` names its marker, `passage` is None with a batch."""

    text: str
    point: str
    action: str
    passage: int | None
    batch: int | None

    def is_due(self, passage: int, batch: int | None) -> bool:
        if self.passage is not None:
            return passage == self.passage
        return batch == self.batch


_ENTRY = re.compile(
    rf"({'|'.join(POINTS)})=({'|'.join(ACTIONS)})(?:@([1-9][0-9]*)|#(0|[1-9][0-9]*))?"
)


def parse_failpoints(text: str) -> tuple[PlannedFault, ...]:
    """Parse SLUICE_FAILPOINTS; JoinError for an unknown point or action, or a bad passage."""
    faults = []
    for item in filter(None, (part.strip() for part in text.split(";"))):
        match = _ENTRY.fullmatch(item)
        if match is None:
            raise JoinError(
                f'failpoint "{item}" is not <point>=<action>[@<n>|#<batch>]',
                hint=f"Points are {', '.join(POINTS)}; actions are {', '.join(ACTIONS)}.",
            )
        point, action, passage, batch = match.groups()
        number = None if batch is None else int(batch)
        at = int(passage or "1") if batch is None else None
        faults.append(PlannedFault(item, point, action, at, number))
    return tuple(faults)


class Failpoints:
    """The planted faults of one job; `hit` costs a dictionary look-up when none is planted.

    Picklable: a worker counts its own passages, but shares the markers of faults that happened.
    """

    def __init__(self, text: str = "", markers: Path | None = None) -> None:
        self._text = text
        self._markers = markers
        self._faults: dict[str, list[PlannedFault]] = {}
        for fault in parse_failpoints(text):
            self._faults.setdefault(fault.point, []).append(fault)
        self._passages: dict[str, int] = {}
        self._met: set[str] = set()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["Failpoints"], tuple[str, Path | None]]:
        return Failpoints, (self._text, self._markers)

    def _first_time(self, fault: PlannedFault) -> bool:
        """Durably record `fault`; True if the job has not met it before."""
        if fault.text in self._met:
            return False
        self._met.add(fault.text)
        if self._markers is None:
            return True
        self._markers.mkdir(parents=True, exist_ok=True)
        try:
            (self._markers / fault.text).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _take(self, point: str, batch: int | None) -> PlannedFault | None:
        with self._lock:
            passage = self._passages[point] = self._passages.get(point, 0) + 1
            for fault in self._faults[point]:
                if fault.is_due(passage, batch) and self._first_time(fault):
                    return fault
        return None

    def hit(self, point: str, batch: int | None = None) -> None:
        """Pass `point`: FailpointError (`raise`), OSError (`enospc`) or a signal, if planted."""
        fault = self._take(point, batch) if point in self._faults else None
        if fault is None:
            return
        if fault.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.action == "stop":
            # a signal to the process could let this thread run on for a moment
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        elif fault.action == "enospc":
            raise OSError(errno.ENOSPC, "no space left on device (planted)", point)
        else:
            raise FailpointError(
                f'failpoint "{fault.text}" was reached',
                hint="Unset SLUICE_FAILPOINTS unless you are testing.",
            )
