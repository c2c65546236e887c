"""What is written outlives a power failure, and what it means that it cannot be written."""

import os
from pathlib import Path

from joins.plan.causes import NO_ROOM


def is_full(error: object) -> bool:
    return isinstance(error, OSError) and error.errno in NO_ROOM


def sync(path: Path) -> None:
    """Make a file's content durable, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_line(descriptor: int, line: bytes) -> None:
    """Append a line to a file that one process at a time writes: all of it, or nothing.

    What a killed process wrote of a line is closed by a line feed; readers skip it.

    Args:
        descriptor: of the file, open for reading and appending.
        line: with its line feed.

    Raises:
        OSError: the file system refused; the file is as it was.
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
