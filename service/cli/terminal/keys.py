"""Keys that are pressed while something is shown, each at once and without an echo."""

import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

QUIT = "q"


@contextmanager
def typed_keys() -> Iterator[Callable[[float], Iterable[str]]]:
    """Gives a function that waits so many seconds for keys, and gives those that were pressed."""
    if not sys.stdin.isatty():
        yield _nobody
        return
    import termios  # a system without it has no terminal that this could be one of
    import tty

    before: list[Any] = termios.tcgetattr(sys.stdin)

    def pressed(seconds: float) -> Iterable[str]:
        if not select.select([sys.stdin], [], [], seconds)[0]:
            return ""
        return _read_keys()

    tty.setcbreak(sys.stdin)
    try:
        yield pressed
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _read_keys() -> str:
    typed = os.read(sys.stdin.fileno(), 64)
    return "" if typed.startswith(b"\x1b") else typed.decode(errors="replace") or "q"


def _nobody(seconds: float) -> Iterable[str]:
    time.sleep(seconds)
    return ""
