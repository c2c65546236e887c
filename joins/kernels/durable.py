"""What is written outlives a power failure."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Make a file's content durable, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
