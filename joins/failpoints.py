"""Deterministic faults along the batch protocol, off by default.

`SLUICE_FAILPOINTS` is a list `<point>=<action>[@<n>]` separated by `;`: at the n-th passage
(default 1) of the point the action happens, once in the life of the process. Actions: `kill`
(SIGKILL to this process), `stop` (SIGSTOP), `raise` (`FailpointError`), `enospc`
(`OSError(ENOSPC)`).

Points: `C1` before Spark's offset log is used, `C2` offset log seen, before the pin; `C3` after the
    pin; `C4` index attached;
`C5` join started; `C6` staged, before dead letters; `C7` after dead letters, before the output;
`C8` after the output's commit; `C9` after progress is stored; `C11` before the changelog's commit;
`C12` after it, before watermarks are forwarded. `C10` lies inside Spark (delete the last entry of
its commit log after a stop instead).
"""

import errno
import os
import signal
import threading

from joins.errors import JoinError

POINTS = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C11", "C12")
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
        if point not in POINTS or action not in ACTIONS or not (passage or "1").isdigit():
            raise JoinError(
                f'failpoint "{item}" is not <point>=<action>[@<n>]',
                hint=f"Points are {', '.join(POINTS)}; actions are {', '.join(ACTIONS)}.",
            )
        points[point] = (action, int(passage or "1"))
    return points


class Failpoints:
    """The planted faults of one process; `hit` costs a dictionary look-up when none is planted."""

    def __init__(self, text: str = "") -> None:
        self._points = parse_failpoints(text)
        self._passages: dict[str, int] = {}
        self._lock = threading.Lock()

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
            if self._passages[point] != wanted:
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
