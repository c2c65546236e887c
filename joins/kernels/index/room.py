"""Room on the disk of an index: looked at before a write, and what a failed write means."""

import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from joins.kernels.durable import is_full
from joins.plan.errors import IndexDirectoryError, IndexDiskFullError


@dataclass(frozen=True, slots=True)
class Room:
    """What files of an index need on the disk of their directory.

    Attributes:
        needed_bytes: of all files that are written together, None if it is not known.
    """

    directory: Path
    needed_bytes: int | None = None

    def check(self) -> None:
        """See beforehand whether there is room, which costs a system call.

        Raises:
            IndexDiskFullError: there is less than is needed.
        """
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
            "the index is then built by itself. It is smaller if the query uses fewer columns of "
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
