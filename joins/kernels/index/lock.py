"""The lock of an index directory, which one process of a node holds, and the room on its disk.

The system releases it when the process ends; the content of the lock file is for messages only.
"""

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import NoReturn

import structlog

from joins.kernels.local_files import is_full, take_lock
from joins.plan.errors import IndexDirectoryError, IndexDiskFullError, IndexLockedError


@dataclass(frozen=True, slots=True)
class Room:
    """Disk space that an index needs in its directory; `needed_bytes` is None if unknown."""

    directory: Path
    needed_bytes: int | None = None

    def check(self) -> None:
        """Raise IndexDiskFullError if there is less than needed; one system call."""
        if self.needed_bytes is None:
            return
        free = free_bytes(self.directory)
        if free < self.needed_bytes:
            raise self._full(f"{_mib(free)} MiB are free")

    def error(self, error: OSError) -> IndexDirectoryError:
        if is_full(error):
            return self._full(f"{error.strerror}, with {_mib(free_bytes(self.directory))} MiB free")
        return IndexDirectoryError(
            f"{self._where()} cannot be written: {error.strerror or error}",
            hint=IndexDirectoryError.HINT,
        )

    def _where(self) -> str:
        return f'index directory "{self.directory}" on node "{socket.gethostname()}"'

    def _full(self, have: str) -> IndexDiskFullError:
        need = "more room" if self.needed_bytes is None else f"{_mib(self.needed_bytes)} MiB more"
        return IndexDiskFullError(
            f"{self._where()} needs {need}: {have}",
            hint="Free space on its disk, or name a directory on a larger one in SLUICE_INDEX_DIR; "
            "the runner then builds the index. It is smaller if the query uses fewer columns of "
            "the table.",
            needed_bytes=self.needed_bytes,
        )


def free_bytes(directory: Path) -> int:
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return 0


def _mib(size: int) -> int:
    return -(-size // (1 << 20))


_log = structlog.get_logger(__name__)

HELD_AT_MOST_S = 300.0
"""How long one holder is waited for that seems to work: far more than a build takes."""
STOOD_STILL_S = 30.0
"""How long a holder is waited for that neither computes nor wakes up: it is halted, or hangs."""
_POLL_S = (0.001, 0.1)  # at first, and at the most
_HOLDER_BYTES = 1024
_STILL = "lock.still"
_RUNNABLE = "R"


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of a wait: for one holder since first seen, and for one that stands still."""

    held_s: float = HELD_AT_MOST_S
    still_s: float = STOOD_STILL_S


@contextmanager
def exclusive(directory: Path, *, patience: Patience | None = None) -> Iterator[None]:
    """Hold the lock of `directory`, which is created, against other processes and threads.

    A killed holder releases it, and a removed lock file locks out no process. A holder that stood
    still is not waited for again before it moves: a retried task on the same node fails at once.
    Raises IndexDirectoryError if the directory cannot be written, IndexLockedError if `patience`
    ends.
    """
    with ExitStack() as stack:
        while True:
            try:
                directory.mkdir(parents=True, exist_ok=True)
                handle = stack.enter_context((directory / "lock").open("ab+", buffering=0))
                _Wait(handle, directory, patience or Patience()).until_taken()
                held, there = os.fstat(handle.fileno()), (directory / "lock").stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise Room(directory).error(error) from error
            if (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino):
                break
        with suppress(OSError):
            (directory / _STILL).unlink()
        _tell(handle, {"pid": os.getpid(), "pids": _pids(), "since_ns": time.time_ns()})
        try:
            yield
        finally:
            _tell(handle, None)


class _Wait:
    def __init__(self, handle: FileIO, directory: Path, patience: Patience) -> None:
        self._handle = handle
        self._directory = directory
        self._patience = patience
        self._holder: bytes | None = None
        self._seen_at = self._moved_at = time.monotonic()
        self._progress: list[int] | None = None

    def until_taken(self) -> None:
        """Take the lock; a wait for another process is logged, as that process may be halted."""
        pause_s = _POLL_S[0]
        while not take_lock(self._handle.fileno()):
            self._look()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _POLL_S[1])

    def _look(self) -> None:
        now, holder = time.monotonic(), os.pread(self._handle.fileno(), _HOLDER_BYTES, 0)
        progress = _progress(holder)
        if self._holder is None:
            _log.info(
                "another process writes the index; it is waited for",
                directory=str(self._directory),
                holder=_named(holder),
                at_most_s=self._patience.held_s,
            )
            if progress is not None and self._was_still() == _still_text(holder, progress):
                self._give_up(holder, "stands still since another task has waited for it")
        if holder != self._holder:
            self._holder, self._seen_at = holder, now
            self._progress, self._moved_at = None, now
        if progress is None or progress != self._progress:
            self._progress, self._moved_at = progress, now
        elif now - self._moved_at >= self._patience.still_s:
            with suppress(OSError):
                (self._directory / _STILL).write_text(_still_text(holder, progress))
            self._give_up(holder, f"has stood still for {self._patience.still_s:g} s")
        if now - self._seen_at >= self._patience.held_s:
            self._give_up(holder, f"has held it for {self._patience.held_s:g} s")

    def _was_still(self) -> str | None:
        try:
            return (self._directory / _STILL).read_text()
        except (OSError, ValueError):
            return None

    def _give_up(self, holder: bytes, reason: str) -> NoReturn:
        raise IndexLockedError(
            f'{_named(holder)} on node "{socket.gethostname()}" has the lock '
            f'"{self._directory / "lock"}" of a lookup index and {reason}',
            hint=IndexLockedError.HINT,
        )


def _still_text(holder: bytes, progress: list[int]) -> str:
    return json.dumps([holder.decode(errors="replace"), progress])


def _progress(holder: bytes) -> list[int] | None:
    """CPU time of the holder and its number of sleeps, which grow while it works.

    None if it is unknown, or waits for a CPU. Source: proc(5), /proc/PID/stat and /proc/PID/status.
    """
    try:
        numbers = json.loads(holder)
        if numbers["pids"] != _pids():
            return None
        home = Path("/proc") / str(int(numbers["pid"]))
        state, *fields = (home / "stat").read_text().rpartition(")")[2].split()
        if state == _RUNNABLE:
            return None
        status = (home / "status").read_text()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    slept = re.search(r"^voluntary_ctxt_switches:\s+(\d+)$", status, re.MULTILINE)
    return [int(fields[10]), int(fields[11]), int(slept[1]) if slept else 0]


def _pids() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _tell(handle: FileIO, holder: dict[str, int | str] | None) -> None:
    """Write down who holds the lock; a full disk does not prevent the lock."""
    with suppress(OSError):
        handle.truncate(0)
        if holder is not None:
            handle.write(json.dumps(holder).encode())


def _named(holder: bytes) -> str:
    try:
        return f"process {int(json.loads(holder)['pid'])}"
    except (ValueError, KeyError, TypeError):
        return "a process that is not known"
