"""A file of entries of one size that is only appended to."""

import os
from collections.abc import Iterator
from pathlib import Path

from joins.durable.stored import stored_files
from joins.plan.errors import CheckpointError


class AppendedFile:
    """Entries that outlive the process, as far as their number was kept elsewhere.

    Args:
        path: of the file.
        size: bytes of an entry.
        kept: how many of its entries count; what is behind them was never kept.
    """

    def __init__(self, path: Path, size: int, kept: int) -> None:
        self.path = path
        self._size = size
        self._saved = kept
        self._unsaved: list[bytes] = []

    def load(self) -> bytes:
        """The entries that count.

        Raises:
            CheckpointError: the file has fewer.
        """
        return b"".join(self.parts(max(1, self._saved)))

    def parts(self, entries: int) -> Iterator[bytes]:
        """The entries that count, so many at once.

        Raises:
            CheckpointError: the file has fewer.
        """
        size = self._saved * self._size
        if not size:
            return
        if not self.path.exists() or self.path.stat().st_size < size:
            raise CheckpointError(
                f'file "{self.path}" has fewer than {self._saved:,} keys',
                hint="Restore the job's directory, or submit the job anew.",
            )
        with self.path.open("rb") as file:
            for first in range(0, self._saved, entries):
                yield file.read(min(entries, self._saved - first) * self._size)

    def append(self, data: bytes) -> None:
        self._unsaved.append(data)

    def save(self) -> int:
        """Make the entries durable; how many they are."""
        data = b"".join(self._unsaved)
        if data:
            stored = stored_files(self.path)
            if stored is not None:
                stored.append(self.path, self._saved * self._size, data)
            with self.path.open("r+b" if self.path.exists() else "w+b") as file:
                file.seek(self._saved * self._size)
                file.truncate()
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._saved += len(data) // self._size
            self._unsaved = []
        return self._saved

    def remove(self) -> None:
        """Remove the file; the entries are not needed any more."""
        stored = stored_files(self.path)
        if stored is not None:
            stored.remove_parts(self.path)
        self.path.unlink(missing_ok=True)
