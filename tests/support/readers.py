"""A reader between any two steps of a writer: what another thread may see while one writes."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


def seen_while(write: Callable[[], object], read: Callable[[], object]) -> list[Any]:
    """What `read` gives before, between all bytecodes of our code in `write`, and behind it.

    Another thread can run between any two of them, so the list has all that it can see.
    """
    seen, errors = [read()], []

    def step(frame: FrameType, event: str, _: object) -> Any:
        if "/joins/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            sys.settrace(None)
            now = read()
            if now != seen[-1]:
                seen.append(now)
            sys.settrace(step)
        return step

    def work() -> None:
        sys.settrace(step)
        try:
            write()
        except Exception as exc:  # told to the test
            errors.append(exc)
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return seen if seen[-1] == read() else [*seen, read()]
