"""Which files a table is, and whether one is still the file that was listed."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from joins.plan.errors import SourceError, SourceUnavailableError

_HIDDEN = (".", "_")  # as in Flink
_DELTA_LOG = "_delta_log"
_MOST_FILES = 100_000


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file as the file system shows it; one that has changed since looks different.

    Attributes:
        path: relative to the table's path; empty if that is the file itself.
    """

    path: str
    size: int
    modified_ns: int


def stamp_of(root: Path, path: str) -> FileStamp | None:
    """The file `path` of the table at `root` as it is now; None if there is none.

    Raises:
        SourceError: it is a pipe, a device or the like.
    """
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
    """The files of the table at `root`, in the order of their paths.

    Of a directory these are all files in it and in the directories below, but for those whose name,
    or a directory's name, begins with a dot or an underscore.

    Raises:
        SourceUnavailableError: there is no file now.
        SourceError: they cannot be listed, or are something else.
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
