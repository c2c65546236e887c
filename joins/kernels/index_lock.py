"""The lock of an index directory: one process of a node writes there, the others wait.

The operating system gives a lock back when its holder is gone, whatever ended it; what the lock
file says of the holder is for messages only.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path

import structlog

from joins.errors import IndexLockedError
from joins.kernels.room import Room

_log = structlog.get_logger(__name__)

HELD_AT_MOST_S = 300.0
"""How long one holder is waited for: far more than a build takes, for what it does is not seen."""
_POLL_S = (0.001, 0.1)  # at first, and at the most
_HOLDER_BYTES = 1024


@contextmanager
def exclusive(directory: Path, *, held_at_most_s: float = HELD_AT_MOST_S) -> Iterator[None]:
    """Hold the lock of `directory`, which is created, against other processes and threads.

    A holder that is killed gives it up. A lock file that was removed meanwhile locks nobody out.

    Raises:
        IndexDirectoryError: the directory cannot be written.
        IndexLockedError: one other holder has had the lock for `held_at_most_s` since it was seen.
    """
    with ExitStack() as stack:
        while True:
            try:
                directory.mkdir(parents=True, exist_ok=True)
                handle = stack.enter_context((directory / "lock").open("ab+", buffering=0))
                _wait_for(handle, directory, held_at_most_s)
                held, there = os.fstat(handle.fileno()), (directory / "lock").stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise Room(directory).error(error) from error
            if (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino):
                break
        _tell(handle, {"pid": os.getpid(), "since_ns": time.time_ns()})
        try:
            yield
        finally:
            _tell(handle, None)


def _wait_for(handle: FileIO, directory: Path, held_at_most_s: float) -> None:
    """Take the lock; whoever must wait for another process says so, for that one may be halted."""
    holder: bytes | None = None
    seen_at, pause_s = time.monotonic(), _POLL_S[0]
    while not _is_taken(handle):
        found = os.pread(handle.fileno(), _HOLDER_BYTES, 0)
        if holder is None:
            _log.info(
                "another process writes the index; it is waited for",
                directory=str(directory),
                holder=_named(found),
                at_most_s=held_at_most_s,
            )
        if found != holder:
            holder, seen_at = found, time.monotonic()
        if time.monotonic() - seen_at >= held_at_most_s:
            raise IndexLockedError(
                f'{_named(holder)} on node "{socket.gethostname()}" has held the lock '
                f'"{directory / "lock"}" of a lookup index for {held_at_most_s:g} s',
                hint=IndexLockedError.HINT,
            )
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _POLL_S[1])


def _is_taken(handle: FileIO) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _tell(handle: FileIO, holder: dict[str, int] | None) -> None:
    """Write down who holds the lock; a full disk keeps nobody from holding it."""
    with suppress(OSError):
        handle.truncate(0)
        if holder is not None:
            handle.write(json.dumps(holder).encode())


def _named(holder: bytes) -> str:
    """The holder, as far as the lock file tells."""
    try:
        return f"process {int(json.loads(holder)['pid'])}"
    except (ValueError, KeyError, TypeError):
        return "a process that is not known"
