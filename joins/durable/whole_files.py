"""Files of a directory that are there as a whole or not at all."""

import os
import uuid
from pathlib import Path

from joins.kernels.local_files import sync


def write_here(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Replace the file `path` by `content`; durable when this returns.

    Args:
        path: its directory is there.
        content: of the whole file.
        mode: of the new file, less the umask.

    Raises:
        OSError: the file system refused; the old content is untouched.
    """
    aside = _write_aside(path, content, mode)
    try:
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def create_here(path: Path, content: bytes) -> bool:
    """Write the file `path` unless it is already there; durable when this returns.

    Returns:
        True if this call created the file, False if it was there (and is unchanged).

    Raises:
        OSError: the file system refused, or has no links; no file of this call is at `path`.
    """
    aside = _write_aside(path, content, 0o666)
    try:
        os.link(aside, path)
    except FileExistsError:
        if not _is_same(aside, path):
            return False
    finally:
        aside.unlink(missing_ok=True)
    sync(path.parent)
    return True


def _is_same(aside: Path, path: Path) -> bool:
    try:
        return aside.samefile(path)
    except FileNotFoundError:
        return False


def _write_aside(path: Path, content: bytes, mode: int) -> Path:
    aside = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    return aside
