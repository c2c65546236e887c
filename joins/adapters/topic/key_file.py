"""Keys that a source has met, in memory and in a file that is only appended to."""

from pathlib import Path

import numpy as np

from joins.adapters.topic.appended_file import AppendedFile
from joins.kernels.changelog.known_keys import KnownKeys, kept_size
from joins.kernels.index.hashing import Hashes


class KeyFile:
    """`KnownKeys` that outlive the process, as far as their number was kept elsewhere.

    Args:
        path: of the file.
        kept: how many of its keys count; what is behind them was never kept.
    """

    def __init__(self, path: Path, kept: int) -> None:
        self._file = AppendedFile(path, kept_size(), kept)
        self._keys = KnownKeys()
        data = self._file.load()
        if data:
            self._keys.load(data)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, hashes: Hashes, number: int) -> np.ndarray:
        """Meet keys with one number; the number that each came with first."""
        known, new = self._keys.add(hashes, np.full(len(hashes), number, np.int32))
        self._file.append(new)
        return known

    def save(self) -> int:
        """Make the keys durable; how many they are."""
        return self._file.save()

    def remove(self) -> None:
        """Remove the file; the keys are not needed any more."""
        self._file.remove()
