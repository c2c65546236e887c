"""Local files: durable writes, `flock`, and temporary directories that end with their process."""

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import AbstractContextManager, suppress
from functools import cache
from pathlib import Path

from joins.plan.causes import NO_ROOM


def take_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock of an open file without waiting; False if another process has it.

    Children that inherit the descriptor hold the lock, too.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def give_lock_up(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing it leaves the lock to the child's copy
    os.close(descriptor)


def is_full(error: object) -> bool:
    return isinstance(error, OSError) and error.errno in NO_ROOM


def nearest_existing(path: Path) -> Path:
    """`path`, or its closest parent that exists."""
    return next(place for place in (path, *path.parents) if place.exists())


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@cache
def node_start() -> str:
    """Names the time since this node started: what was written in it needs no sync to be read."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def append_line(descriptor: int, line: bytes) -> None:
    """Append a line (with its line feed) to a file with one writer: all of it, or nothing.

    A line feed closes the partial line of a killed process; readers skip it. Raises OSError and
    leaves the file unchanged. `descriptor` is open for reading and appending.
    """
    end = os.fstat(descriptor).st_size
    is_cut = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
    left = memoryview(b"\n" + line if is_cut else line)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        os.ftruncate(descriptor, end)
        raise


_PREFIX = "sluice-"
_OWNER = "owner.lock"
_UNNAMED_S = 86_400.0  # age of a directory without a lock; versions before made such


class OwnDirectory(AbstractContextManager[Path]):
    """A new directory of this user alone; `kind` is a part of its name.

    `descriptor` is that of its lock, for child processes that use the directory.
    """

    def __init__(self, kind: str, within: Path | None = None) -> None:
        parent = within or Path(tempfile.gettempdir())
        remove_abandoned(parent)
        self._pid = os.getpid()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-", dir=parent))
        new = self.path / f"{_OWNER}.new"  # no other process locks it first
        self.descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        take_lock(self.descriptor)
        new.rename(self.path / _OWNER)

    def remove(self) -> None:
        """Remove it with its content, unless in a process forked from its own."""
        if os.getpid() != self._pid:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def remove_abandoned(parent: Path) -> None:
    """Remove Sluice's directories below `parent` whose processes have all ended."""
    for directory in parent.glob(f"{_PREFIX}*-*"):
        with suppress(OSError):
            status = directory.lstat()
            if directory.is_dir() and status.st_uid == os.getuid() and _is_abandoned(directory):
                shutil.rmtree(directory, ignore_errors=True)


def _is_abandoned(directory: Path) -> bool:
    try:
        descriptor = os.open(directory / _OWNER, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return _is_empty_of_life(directory)
    try:
        return take_lock(descriptor)
    finally:
        os.close(descriptor)


def _is_empty_of_life(directory: Path) -> bool:
    """True for an old directory of sockets without a lock and without an open socket."""
    of_sockets = directory.name.startswith(f"{_PREFIX}{os.getuid()}-")
    if not of_sockets or time.time() - directory.lstat().st_mtime < _UNNAMED_S:
        return False
    try:
        return f"{directory}/" not in Path("/proc/net/unix").read_text(errors="replace")
    except OSError:
        return False
