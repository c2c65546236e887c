"""Deterministic faults along the batch protocol, off by default.

`SLUICE_FAILPOINTS` is a list `<point>=<action>[@<n>]` separated by `;`: at the n-th passage of the
point (default 1) in a process the action happens, once in the life of the job. Actions: `kill`
(SIGKILL to this process), `stop` (SIGSTOP), `raise` (`FailpointError`), `enospc`
(`OSError(ENOSPC)`).

| point | where |
|---|---|
| C2 | Spark's offset log has the batch, its pin is not written |
| C3 | the pin is durable |
| C4 | the driver has attached the index |
| C5 | a worker has attached the index and begins to join |
| C6 | everything is staged, nothing is committed |
| C7 | the dead letters are committed, the output is not |
| C8 | the output is committed |
| C9 | progress is stored, Spark's commit log has no entry |
| C11 | changes are staged, the changelog's commit has not begun |
| C12 | the changelog is committed, watermarks and index do not know it |

C1 and C10 lie inside Spark: delete the last entry of its offset log or commit log after a stop
instead.
"""

import errno
import os
import re
import signal
import threading
from pathlib import Path

from joins.errors import JoinError

POINTS = ("C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C11", "C12")
ACTIONS = ("kill", "stop", "raise", "enospc")


class FailpointError(JoinError):
    """A planted fault, asked for by SLUICE_FAILPOINTS."""


def parse_failpoints(text: str) -> dict[str, tuple[str, int]]:
    """`{point: (action, passage)}` of a SLUICE_FAILPOINTS value.

    Raises:
        JoinError: unknown point or action, or a passage that is not a positive number.
    """
    points: dict[str, tuple[str, int]] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        point, _, rest = item.partition("=")
        action, _, passage = rest.partition("@")
        counts = re.fullmatch("[1-9][0-9]*", passage or "1")
        if point not in POINTS or action not in ACTIONS or not counts:
            raise JoinError(
                f'failpoint "{item}" is not <point>=<action>[@<n>]',
                hint=f"Points are {', '.join(POINTS)}; actions are {', '.join(ACTIONS)}.",
            )
        points[point] = (action, int(passage or "1"))
    return points


class Failpoints:
    """The planted faults of one job; `hit` costs a dictionary look-up when none is planted.

    Picklable: a worker counts its own passages, and shares with the runner what has happened.
    """

    def __init__(self, text: str = "", markers: Path | None = None) -> None:
        self._text = text
        self._markers = markers
        self._points = parse_failpoints(text)
        self._passages: dict[str, int] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["Failpoints"], tuple[str, Path | None]]:
        return Failpoints, (self._text, self._markers)

    def _first_time(self, point: str) -> bool:
        """Whether the job has not met `point` before; durable from here on."""
        if self._markers is None:
            return True
        self._markers.mkdir(parents=True, exist_ok=True)
        try:
            (self._markers / point).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def hit(self, point: str) -> None:
        """Pass `point`; the planted action happens at its passage.

        Raises:
            FailpointError: action `raise`.
            OSError: action `enospc`.
        """
        if point not in self._points:
            return
        action, wanted = self._points[point]
        with self._lock:
            self._passages[point] = self._passages.get(point, 0) + 1
            if self._passages[point] != wanted or not self._first_time(point):
                return
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif action == "enospc":
            raise OSError(errno.ENOSPC, "no space left on device (planted)", point)
        else:
            raise FailpointError(
                f'failpoint "{point}" was reached at passage {wanted}',
                hint="Unset SLUICE_FAILPOINTS unless you are testing.",
            )
