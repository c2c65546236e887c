"""A small disk of its own, in memory: it is filled and emptied like any other."""

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import pytest

_BLOCK = 1 << 20
_LOG_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A file system with a file that nobody needs, which takes what is left of it."""

    root: Path

    @property
    def ballast(self) -> Path:
        return self.root / "somebody-elses.log"

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Somebody else's log takes all that is left, again and again, until it is deleted."""
        with self.ballast.open("ab", buffering=0) as file:
            _take_all(file)
            writer = threading.Thread(target=self._go_on, args=(file,))
            writer.start()
            try:
                yield
            finally:
                self.ballast.unlink(missing_ok=True)
                writer.join()

    def _go_on(self, file: FileIO) -> None:
        while self.ballast.exists():
            _take_all(file)
            time.sleep(_LOG_EVERY_S)
        file.truncate(0)  # its writer has it open, and goes away like one that is restarted


def _take_all(file: FileIO) -> None:
    size = _BLOCK
    while size:
        try:
            file.write(bytes(size))
        except OSError:
            size //= 2


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
