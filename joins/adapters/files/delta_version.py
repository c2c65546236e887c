"""The data files of one version of a Delta table, as a session reads them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from joins.adapters.delta.feed_rows import DataFile, files_of, read_rows
from joins.adapters.delta.source import check_source_table
from joins.adapters.files.listing import FileFeedConfig, FileStamp
from joins.kernels.table_path import TablePath
from joins.plan.errors import SnapshotNeededError, SourceError


class VersionFiles:
    """The data files of one version of a Delta table, which never change."""

    def __init__(self, path: TablePath, version: int, config: FileFeedConfig) -> None:
        with _of_version(version):
            self._table = check_source_table(
                path, config.fields, config.primary_key, version=version
            )
            files, _ = files_of(self._table)
        self._files: dict[str, DataFile] = {file.path: file for file in files}
        self._version = version

    def listed(self) -> tuple[FileStamp, ...]:
        return tuple(FileStamp(path, 0, self._version) for path in self._files)

    def stamp(self, path: str) -> FileStamp | None:
        return FileStamp(path, 0, self._version)

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
