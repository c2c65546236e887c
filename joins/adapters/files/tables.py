"""The files of a table as a session reads them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from joins.adapters.files.listing import FileFeedConfig, FileStamp, list_files, stamp_of
from joins.adapters.files.readers import read_file
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


def table_files(config: FileFeedConfig) -> SourceFiles:
    if config.source is None:
        from joins.adapters.files.delta_version import VersionFiles  # most tables are no history

        assert config.version is not None, "submission has resolved it"
        return VersionFiles(config.path, config.version, config.fields, config.primary_key)
    assert isinstance(config.path, Path), "files are in a directory"
    return DirectoryFiles(config.path, config.source, config)
