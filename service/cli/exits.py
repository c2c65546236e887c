"""Exit codes of the command line; scripts may rely on them.

| code | meaning |
|---|---|
| 0 | Done. |
| 1 | Not done, or what was examined (`doctor`, `replay`, `dlq replay`) is not as it should be. |
| 2 | The command line is wrong. |
| 3 | No control plane can be reached. |
| 4 | The control plane does not allow it to whoever asks: no token, or one that may not. |
| 5 | What was waited for has not happened in time; it goes on. |
| 130 | Interrupted; a job that was waited for goes on. |
| 143 | Ended by SIGTERM; `serve` and `up`, which stop in order, end with 0. |
"""

from enum import IntEnum

from service.client import AccessError, RefusedError
from service.errors import UnreachableError, WaitTimeoutError
from watermark.errors import SluiceError


class ExitCode(IntEnum):
    """How a command ended; see the table of this module."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    DENIED = 4
    TIMED_OUT = 5
    INTERRUPTED = 130
    TERMINATED = 143


def exit_code(error: SluiceError) -> ExitCode:
    """The code of a command that ends with `error`."""
    if isinstance(error, UnreachableError):
        return ExitCode.UNREACHABLE
    if isinstance(error, WaitTimeoutError):
        return ExitCode.TIMED_OUT
    if isinstance(error, AccessError):
        return ExitCode.DENIED
    return ExitCode.FAILED


def place_of(error: SluiceError) -> str:
    """The line of the script that is meant, with a caret below it; empty without one."""
    problem = error.problem if isinstance(error, RefusedError) else vars(error)
    return str(problem.get("excerpt") or "")
