"""Keys that a source has met, in memory and in a file that is only appended to."""

import os
from pathlib import Path

import numpy as np

from joins.kernels.changelog.known_keys import KnownKeys, kept_size
from joins.kernels.index.hashing import Hashes
from joins.plan.errors import CheckpointError


class KeyFile:
    """`KnownKeys` that outlive the process, as far as their number was kept elsewhere.

    Args:
        path: of the file.
        kept: how many of its keys count; what is behind them was never kept.
    """

    def __init__(self, path: Path, kept: int) -> None:
        self._path = path
        self._keys = KnownKeys()
        self._unsaved: list[bytes] = []
        self._saved = kept
        self._load(kept)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, hashes: Hashes, number: int) -> np.ndarray:
        """Meet keys with one number; the number that each came with first."""
        known, new = self._keys.add(hashes, np.full(len(hashes), number, np.int32))
        self._unsaved.append(new)
        return known

    def save(self) -> int:
        """Make the keys durable; how many they are."""
        data = b"".join(self._unsaved)
        if data:
            with self._path.open("r+b" if self._path.exists() else "w+b") as file:
                file.seek(self._saved * kept_size())
                file.truncate()
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._saved += len(data) // kept_size()
            self._unsaved = []
        return self._saved

    def remove(self) -> None:
        """Remove the file; the keys are not needed any more."""
        self._path.unlink(missing_ok=True)

    def _load(self, kept: int) -> None:
        if not kept:
            return
        size = kept * kept_size()
        data = self._path.read_bytes()[:size] if self._path.exists() else b""
        if len(data) < size:
            raise CheckpointError(
                f'file "{self._path}" has fewer than {kept:,} keys',
                hint="Restore the job's directory, or submit the job anew.",
            )
        self._keys.load(data)
