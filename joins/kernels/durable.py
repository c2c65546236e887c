"""What is written outlives a power failure, and what it means that it cannot be written."""

import os
from pathlib import Path

from joins.plan.causes import NO_ROOM


def is_full(error: object) -> bool:
    """Whether a write has failed for want of room: a disk, a quota or a file has no more."""
    return isinstance(error, OSError) and error.errno in NO_ROOM


def sync(path: Path) -> None:
    """Make a file's content durable, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
