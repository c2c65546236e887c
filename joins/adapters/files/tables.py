"""The files of a table as a session reads them: those of a directory, or of a Delta version."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from joins.adapters.delta.feed_rows import DataFile, files_of, read_rows
from joins.adapters.delta.source import check_source_table
from joins.adapters.files.listing import FileFeedConfig, FileStamp, list_files, stamp_of
from joins.adapters.files.readers import read_file
from joins.kernels.table_path import TablePath
from joins.plan.errors import SnapshotNeededError, SourceError
from joins.plan.plan import FileSource, declared_fields


class SourceFiles(Protocol):
    """Files that are read once; errors as `list_files` and `read_file`."""

    def listed(self) -> tuple[FileStamp, ...]:
        """All files, sorted by path."""

    def stamp(self, path: str) -> FileStamp | None:
        """The file as it is now, None if it is missing."""

    def rows(self, path: str) -> Iterator[pa.RecordBatch]:
        """Wire columns of the declared fields."""


class DirectoryFiles:
    """A file, or a directory of files."""

    def __init__(self, root: Path, source: FileSource, config: FileFeedConfig) -> None:
        self._root = root
        self._source = source
        self._fields = declared_fields(config.fields)

    def listed(self) -> tuple[FileStamp, ...]:
        return list_files(self._root)

    def stamp(self, path: str) -> FileStamp | None:
        return stamp_of(self._root, path)

    def rows(self, path: str) -> Iterator[pa.RecordBatch]:
        return read_file(self._root / path, self._source, self._fields)


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


def table_files(config: FileFeedConfig) -> SourceFiles:
    if config.source is None:
        assert config.version is not None, "submission has resolved it"
        return VersionFiles(config.path, config.version, config)
    assert isinstance(config.path, Path), "files are in a directory"
    return DirectoryFiles(config.path, config.source, config)
