"""The listed files of a table, and the configuration and state of the process that reads them."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from joins.adapters.store_path import DocumentPath
from joins.kernels.changelog.envelope import BinlogPosition
from joins.plan.errors import DefinitionError, SourceError, SourceUnavailableError
from joins.plan.plan import Field, FileSource, KafkaOptions

CORRECT = (
    "Correct the file; the table is then read again. Or declare what the file has in a new job."
)


def bad_value(file: Path, place: str, reason: str) -> DefinitionError:
    return DefinitionError(f'{place} of file "{file}" cannot be taken: {reason}', hint=CORRECT)


@contextmanager
def readable(file: Path, what: str) -> Iterator[None]:
    """Translate a reader's errors: SourceUnavailableError if the file is gone, else SourceError."""
    try:
        yield
    except FileNotFoundError as exc:
        raise SourceUnavailableError(
            f'file "{file}" was removed before it was read',
            hint="Put it back, or put another file there; the table is then read again.",
        ) from exc
    except (pa.ArrowException, OSError) as exc:
        raise SourceError(
            f'file "{file}" cannot be read as {what}: {str(exc)[:300]}',
            hint="Correct 'format' or the file, and let this user read it.",
        ) from exc


_HIDDEN = (".", "_")  # like Flink
_DELTA_LOG = "_delta_log"
_MOST_FILES = 100_000


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file as listed; `path` is relative to the table's path, empty for that file itself."""

    path: str
    size: int
    modified_ns: int


def stamp_of(root: Path, path: str) -> FileStamp | None:
    """The stamp of `path` below `root`, None if it is missing; SourceError if it is no file."""
    try:
        there = (root / path).stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(there.st_mode):
        raise SourceError(
            f'"{root / path}" is not a regular file',
            hint="Put a file there that can be read more than once.",
        )
    return FileStamp(path, there.st_size, there.st_mtime_ns)


def list_files(root: Path) -> tuple[FileStamp, ...]:
    """The files at `root`, sorted by path, including those of subdirectories.

    Skips names that begin with a dot or an underscore. SourceUnavailableError without files.
    """
    try:
        return tuple(_stamps(root)) if root.is_dir() else (_single(root),)
    except OSError as exc:
        raise SourceError(
            f'"{root}" cannot be listed: {exc.strerror or exc}',
            hint="Let this user read the files and their directories.",
        ) from exc


def _single(root: Path) -> FileStamp:
    stamp = stamp_of(root, "")
    if stamp is None:
        raise SourceUnavailableError(
            f'there is no file and no directory at "{root}"',
            hint="Check the path option; if it was removed, put it there again.",
        )
    return stamp


def _stamps(root: Path) -> Iterator[FileStamp]:
    if (root / _DELTA_LOG).is_dir():
        raise SourceError(
            f'"{root}" is a delta table, of which not every file counts',
            hint="Write 'connector' = 'delta' and the same path, without a format.",
        )
    paths = sorted(_paths(root))
    if not paths:
        raise SourceUnavailableError(
            f'directory "{root}" has no file',
            hint="Put the files there first; a table without rows is a file without rows.",
        )
    real = root.resolve()
    for path in paths:
        if any("\ud800" <= character <= "\udfff" for character in path):
            raise SourceError(
                f'the name of file "{root / path}" is not UTF-8', hint="Give the file another name."
            )
        if not (root / path).resolve().is_relative_to(real):
            raise SourceError(
                f'"{root / path}" is a link that leads out of its directory',
                hint="Put the file itself there.",
            )
        stamp = stamp_of(root, path)
        if stamp is None:
            raise SourceUnavailableError(
                f'"{root / path}" was removed while its directory was listed, or is a link that '
                "leads nowhere",
                hint="Remove such a link; the directory is listed again by itself.",
            )
        yield stamp


def _paths(root: Path) -> Iterator[str]:
    left = _MOST_FILES
    for directory, names, files in os.walk(root, onerror=_raise):
        names[:] = [name for name in names if not name.startswith(_HIDDEN)]
        link = next(
            (each for each in map(Path(directory).joinpath, names) if each.is_symlink()), None
        )
        if link is not None:
            raise SourceError(
                f'"{link}" is a link to a directory',
                hint="Put the directory itself there.",
            )
        visible = [name for name in files if not name.startswith(_HIDDEN)]
        left -= len(visible)
        if left < 0:
            raise SourceError(
                f'"{root}" has more than {_MOST_FILES:,} files',
                hint="Write the table into fewer, larger files, or as a delta table.",
            )
        yield from (str((Path(directory) / name).relative_to(root)) for name in visible)


def _raise(error: OSError) -> None:
    raise error


@dataclass(frozen=True, slots=True)
class FileFeedConfig:
    """Configuration of a reader of files; `kafka` has the changelog topic.

    Without a `source` they are the files of the `version` of a Delta table.
    """

    path: DocumentPath
    source: FileSource | None
    fields: tuple[Field, ...]
    primary_key: tuple[str, ...]
    kafka: KafkaOptions
    partitions: int
    state_file: Path
    # a TIMESTAMP_LTZ column whose maximum the state has; None without one
    newest_of: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class FileFeedState:
    """Durable state of a dimension of files; Kafka has acknowledged what it counts."""

    generation: int  # of the rows; grows when the files are read again
    files: tuple[FileStamp, ...]  # as listed, sorted by path
    files_done: int = 0  # number of files sent
    rows: int = 0  # number of their rows
    newest_ms: int | None = None  # greatest value of the column `newest_of` in them
    # `message` and `hint` of a file that cannot be read, until the files change
    refused: Mapping[str, str] | None = None
    needed: str | None = None  # why the files must be read again

    @property
    def is_copied(self) -> bool:
        return self.needed is None and self.files_done == len(self.files)

    @property
    def place(self) -> BinlogPosition:
        return BinlogPosition(self.generation - 1, 0, 0)

    @property
    def progress(self) -> dict[str, int]:
        return {
            "generation": self.generation,
            "rows": self.rows,
            "files_done": self.files_done,
            "files_total": len(self.files),
        }
