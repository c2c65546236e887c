"""Binds itself to its parent's life, then becomes the command in its arguments.

Run as ``python -I -S launch.py PARENT_PID COMMAND…``: it asks the kernel for SIGKILL at the
parent's end, checks that the parent still lives, and replaces itself. The kernel sends that signal
when the *thread* that forked us ends, so callers fork from a thread that lives as long as they do
(`service.embedded.process`). Outside Linux, the command runs unbound. It imports no Sluice module,
to start in milliseconds.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _bind_to_parent() -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def main(arguments: list[str]) -> int:
    """Become `arguments[1:]`, unless the parent with pid `arguments[0]` is gone."""
    parent, command = int(arguments[0]), arguments[1:]
    _bind_to_parent()
    if os.getppid() != parent:
        return 1
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
