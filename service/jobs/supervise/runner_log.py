"""The log of a runner stays bounded while it runs: what is above the limit goes to `runner.log.1`.

All processes of a runner have the file open to append, so it is emptied, not renamed. Rows of
`print` wait meanwhile and none is lost; of what another process writes in that very instant a line
may be.
"""

import fcntl
import os
import shutil
import threading
from pathlib import Path
from typing import TextIO

LOG_LIMIT_BYTES = 16 << 20
_LOOK_BYTES = 1 << 20


def older(log: Path) -> Path:
    return log.with_name(log.name + ".1")


def tail_before(log: Path, count: int) -> bytes:
    """The last bytes, `count` at the most, of what was in `log` before."""
    try:
        with older(log).open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - count))
            return opened.read(count)
    except FileNotFoundError:
        return b""


class RunnerLog:
    """Standard output of a runner, for rows that are printed; threads may share it.

    Args:
        log: the file that it should be.
        stream: standard output; another one, such as a terminal, is left as it is.
        limit: bytes of the file.
    """

    def __init__(self, log: Path, stream: TextIO, limit: int = LOG_LIMIT_BYTES) -> None:
        self._log = log
        self._stream = stream
        self._limit: int | None = limit
        self._written = 0
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        """Write whole lines."""
        with self._lock:
            count = self._stream.write(text)
            self._written += count
            if self._written >= _LOOK_BYTES:
                self._bound()
            return count

    def keep_all(self) -> None:
        self._limit = None

    def flush(self) -> None:
        with self._lock:
            self._bound()

    def _bound(self) -> None:
        self._stream.flush()
        self._written = 0
        try:
            descriptor = self._stream.fileno()
            status = os.fstat(descriptor)
            if (
                self._limit is not None
                and status.st_size > self._limit
                and self._is_ours(descriptor, status)
            ):
                self._move(descriptor)
        except OSError:  # it is no file, or the disk is full: the log goes on
            return

    def _is_ours(self, descriptor: int, status: os.stat_result) -> bool:
        appends = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
        return bool(appends) and os.path.samestat(status, self._log.stat())

    def _move(self, descriptor: int) -> None:
        aside = self._log.with_name(self._log.name + ".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with self._log.open("rb") as source, open(os.open(aside, flags, 0o600), "wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            aside.replace(older(self._log))
            shutil.copyfileobj(source, copy)  # what has come since
            copy.flush()
            os.ftruncate(descriptor, 0)
