"""The data files of one version of a Delta table, as a session reads them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from joins.adapters.delta.feed_rows import DataFile, bounds_of, files_of, read_rows
from joins.adapters.delta.source import check_source_table
from joins.adapters.files.listing import FileStamp
from joins.kernels.table_path import TablePath
from joins.plan.errors import SnapshotNeededError, SourceError
from joins.plan.plan import Field, ListedFile


class VersionFiles:
    """The data files of one version of a Delta table, which never change."""

    def __init__(
        self,
        path: TablePath,
        version: int,
        fields: tuple[Field, ...],
        primary_key: tuple[str, ...] = (),
    ) -> None:
        with _of_version(version):
            self._table = check_source_table(path, fields, primary_key, version=version)
            files, _ = files_of(self._table)
        self._files: dict[str, DataFile] = {file.path: file for file in files}
        self._version = version

    def listed(self) -> tuple[FileStamp, ...]:
        return tuple(FileStamp(path, 0, self._version) for path in self._files)

    def stamp(self, path: str) -> FileStamp | None:
        return FileStamp(path, 0, self._version)

    def sized(self) -> tuple[ListedFile, ...]:
        """All files by path; a row that a deletion vector removes has no number."""
        files = self._files.values()
        return tuple(ListedFile(each.path, each.size_bytes, each.rows) for each in files)

    def bounds(self, path: str, column: str) -> tuple[Any, Any]:
        """As `value_bounds`."""
        with _of_version(self._version):
            return bounds_of(self._table, self._files[path], column)

    def rows(self, path: str) -> Iterator[pa.RecordBatch]:
        with _of_version(self._version):
            yield from read_rows(self._table, self._files[path])


@contextmanager
def _of_version(version: int) -> Iterator[None]:
    """A version that is gone does not come back; a table that is followed would be copied again."""
    try:
        yield
    except SnapshotNeededError as exc:
        raise SourceError(
            exc.message,
            hint=f"Submit the job again with a later 'history.version' than {version}, and keep "
            "the log and the files of a version until a job has read it.",
        ) from exc
