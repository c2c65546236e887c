"""Keys that a source has met, and the file that they outlive the process in."""

from pathlib import Path

import numpy as np

from joins.adapters.topic.appended_file import AppendedFile
from joins.kernels.topic.keys import KEY_BYTES, KeyHashes, KnownKeys

_PART = 1 << 18  # keys that are read at once


class KeyFile:
    """`KnownKeys` that outlive the process, as far as their number was kept elsewhere.

    Args:
        path: of the file.
        kept: how many of its keys count; what is behind them was never kept.
    """

    def __init__(self, path: Path, kept: int) -> None:
        self._file = AppendedFile(path, KEY_BYTES, kept)
        self._keys = KnownKeys(path.parent)
        for part in self._file.parts(_PART):
            self._keys.load(part)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, keys: KeyHashes, number: int) -> np.ndarray:
        known, new = self._keys.add(keys, np.full(len(keys[0]), number, np.int32))
        self._file.append(new)
        return known

    def save(self) -> int:
        return self._file.save()

    def remove(self) -> None:
        self._file.remove()
