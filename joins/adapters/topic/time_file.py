"""The newest time of each key's row, in memory and in files that are only appended to."""

from pathlib import Path

from joins.adapters.topic.appended_file import AppendedFile
from joins.kernels.index.hash_table import Hashes
from joins.kernels.topic.keys import TIME_BYTES, RowTimes, Times

_SPARE = 1_000_000


class TimeFile:
    """`RowTimes` that outlive the process, as far as what `save` gave was kept elsewhere.

    A file has an entry for each change. One that has many more than there are keys is followed by
    another, which begins with one for each key.

    Args:
        path: of the files, each of which has a number behind it.
        kept: number of the file, and how many of its entries count.
        spare: how many more entries than two for each key a file may have.
    """

    def __init__(self, path: Path, kept: tuple[int, int], spare: int = _SPARE) -> None:
        self._path = path
        self._spare = spare
        self._number, count = kept
        self._file = self._numbered(count)
        self._numbered(0, self._number - 1).remove()
        self._old: AppendedFile | None = None
        self._times = RowTimes()
        data = self._file.load()
        if data:
            self._times.load(data)

    def take(self, hashes: Hashes, times: Times) -> Times:
        before, new = self._times.take(hashes, times)
        self._file.append(new)
        return before

    def save(self) -> tuple[int, int]:
        """Make all durable; number of the file, and its entries."""
        if self._old is not None:
            self._old.remove()  # that it is not needed was kept since
            self._old = None
        count = self._file.save()
        if count > 2 * len(self._times) + self._spare:
            self._old, self._number = self._file, self._number + 1
            self._file = self._numbered(0)
            self._file.append(self._times.all())
            count = self._file.save()
        return self._number, count

    def _numbered(self, count: int, number: int | None = None) -> AppendedFile:
        which = self._number if number is None else number
        path = self._path.with_name(f"{self._path.name}-{which}")
        return AppendedFile(path, TIME_BYTES, count)
