"""A small disk of its own, in memory: it is filled and emptied like any other."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A file system with a file that nobody needs, which takes what is left of it."""

    root: Path

    @property
    def ballast(self) -> Path:
        """What an operator may delete."""
        return self.root / "somebody-elses.log"

    def fill(self) -> None:
        """Take all that is left, to the last byte."""
        with self.ballast.open("ab", buffering=0) as file:
            size = _BLOCK
            while size:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2
            os.fsync(file.fileno())


@contextmanager
def small_disk(directory: Path, mebibytes: int) -> Iterator[SmallDisk]:
    """A disk of that size at `directory`; the test is skipped where this user may mount none."""
    directory.mkdir(parents=True)
    mount = shutil.which("mount")
    options = f"size={mebibytes}m,nr_inodes=0"
    command = [str(mount), "-t", "tmpfs", "-o", options, "sluice-small-disk", str(directory)]
    if mount is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a small disk (tmpfs)")
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
