"""Append-only files of entries of one size."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from joins.durable.stored import stored_files
from joins.kernels.topic.keys import KEY_BYTES, TIME_BYTES, KeyHashes, KnownKeys, RowTimes, Times
from joins.plan.errors import CheckpointError


class AppendedFile:
    """A file of entries that outlive the process, up to a count stored elsewhere.

    An entry has `size` bytes; `kept` entries are valid, and the rest of the file is ignored.
    """

    def __init__(self, path: Path, size: int, kept: int) -> None:
        self.path = path
        self._size = size
        self._saved = kept
        self._unsaved: list[bytes] = []

    def load(self) -> bytes:
        """The valid entries; CheckpointError if the file has fewer."""
        return b"".join(self.parts(max(1, self._saved)))

    def parts(self, entries: int) -> Iterator[bytes]:
        """Like `load`, `entries` at a time."""
        size = self._saved * self._size
        if not size:
            return
        if not self.path.exists() or self.path.stat().st_size < size:
            raise self._short()
        with self.path.open("rb") as file:
            for first in range(0, self._saved, entries):
                yield file.read(min(entries, self._saved - first) * self._size)

    def at(self, position: int, count: int) -> bytes:
        """Saved bytes; CheckpointError if the file has fewer."""
        data = b""
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(position)
            data = file.read(count)
        if len(data) < count:
            raise self._short()
        return data

    def _short(self) -> CheckpointError:
        return CheckpointError(
            f'file "{self.path}" has fewer than {self._saved:,} entries',
            hint="Restore the job's directory, or submit the job again.",
        )

    def append(self, data: bytes) -> None:
        self._unsaved.append(data)

    def save(self) -> int:
        """Make the entries durable; returns their number."""
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
        stored = stored_files(self.path)
        if stored is not None:
            stored.remove_parts(self.path)
        self.path.unlink(missing_ok=True)


_PART = 1 << 18  # keys per read


class KeyFile:
    """Durable `KnownKeys`; `kept` is the number of valid keys in the file."""

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


_SPARE = 1_000_000


class TimeFile:
    """Durable `RowTimes`: a file with an entry for each change.

    A file with more than two entries a key and `spare` more is replaced by another, which begins
    with one entry a key. A number follows `path`; `kept` is the file's number, and its valid
    entries.
    """

    def __init__(self, path: Path, kept: tuple[int, int], spare: int = _SPARE) -> None:
        self._path = path
        self._spare = spare
        self._number, count = kept
        self._file = self._numbered(count)
        self._numbered(0, self._number - 1).remove()
        self._old: AppendedFile | None = None
        self._times = RowTimes(path.parent)
        for part in self._file.parts(_PART):
            self._times.load(part)

    def take(self, keys: KeyHashes, times: Times) -> Times:
        before, new = self._times.take(keys, times)
        self._file.append(new)
        return before

    def before(self, keys: KeyHashes, times: Times) -> Times:
        return self._times.before(keys, times)

    def known(self) -> Iterator[tuple[KeyHashes, Times]]:
        return self._times.known()

    def save(self) -> tuple[int, int]:
        """Make all durable; number of the file and of its entries."""
        if self._old is not None:
            self._old.remove()  # the previous save recorded that it is not needed
            self._old = None
        count = self._file.save()
        if count > 2 * len(self._times) + self._spare:
            self._old, self._number = self._file, self._number + 1
            self._file = self._numbered(0)
            count = 0
            for part in self._times.parts():
                self._file.append(part)
                count = self._file.save()
        return self._number, count

    def _numbered(self, count: int, number: int | None = None) -> AppendedFile:
        which = self._number if number is None else number
        path = self._path.with_name(f"{self._path.name}-{which}")
        return AppendedFile(path, TIME_BYTES, count)
