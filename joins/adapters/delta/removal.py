"""Removes a Delta table that a job created, unless other programs have written to it.

The first entry names the creator, and every other entry must have the job's transactions. The files
in the log, files with the job's tag and the log are removed, the first entry last, so that an
interrupted removal continues. Other files stay.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from joins.adapters.delta.entries import LogEntries, transactions
from joins.adapters.delta.versions import CREATOR
from joins.adapters.store_path import StorePath
from joins.kernels.probe.files import FileOrigin, writer_tag
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError

_LOG_FILE = re.compile(r"\.?\d{20}\..+|\.?_last_checkpoint(\.crc)?|_commit_[0-9a-f-]+\.json\.tmp")


def remove_table(root: TablePath, app_id: str, writers: Sequence[str]) -> str | None:
    """Remove the table at `root` if the job created it and no other program has written to it.

    `app_id` is the prefix of the transactions of all of the job's commits; `writers` are app ids of
    logs whose uncommitted files go, too. Returns what is left and why, None for nothing. After an
    error the next call continues.
    """
    if isinstance(root, StorePath):
        return _remove_stored(root, app_id, writers)
    assert isinstance(root, Path), "what is in no store is in a directory"
    try:
        _remove_empty(root / "_delta_log", root.parent)  # where an earlier call has ended
        if not root.is_dir():
            return None
        theirs = _not_ours(root, app_id)
        if theirs is not None:
            return f'delta table "{root}" is kept: {theirs}'
        tags = {writer_tag(each) for each in writers}
        for file in _data_files(root, tags):
            file.unlink(missing_ok=True)
            _remove_empty(file.parent, root)
        # Newest entry first
        directory = root / "_delta_log"
        log_files = [path for path in directory.iterdir() if _LOG_FILE.fullmatch(path.name)]
        first = [path for path in log_files if path.name == f"{0:020d}.json"]
        for path in (*sorted(set(log_files) - set(first), reverse=True), *first):
            path.unlink(missing_ok=True)
        _remove_empty(directory, directory.parent)
        _remove_empty(root, root.parent)
        return _left(root)
    except OSError as exc:
        raise SinkError(
            f'delta table "{root}" cannot be removed: {exc}',
            hint="Make its directory writable for this user, or remove the table yourself.",
        ) from exc


def _not_ours(root: TablePath, app_id: str) -> str | None:
    """Why the table is not the job's alone; None if it is."""
    log = LogEntries(root)
    numbers = log.numbers()
    if not numbers:
        return "the job has not created it"
    if numbers[0] != 0:
        return "its log does not say any more who has created it"
    if _creator(log.read(0)) != app_id:
        return "the job has not created it"
    for version in numbers:
        if not _is_ours(log.read(version), app_id):
            return f"version {version} was committed by somebody else"
    return None


def _remove_stored(root: StorePath, app_id: str, writers: Sequence[str]) -> str | None:
    """The same in an object store, which has no directories."""
    objects = {file.key: file for file in root.below()}
    if not objects:
        return None
    theirs = _not_ours(root, app_id)
    if theirs is not None:
        return f'delta table "{root}" is kept: {theirs}'
    tags = {writer_tag(each) for each in writers}
    named = {(root / unquote(path)).key for path in _paths(LogEntries(root))}
    log = f"{(root / '_delta_log').key}/"
    for key, file in list(objects.items()):
        origin = FileOrigin.of_name(file.name)
        is_tagged = origin is not None and origin.writer in tags and file.parent.key == root.key
        if not key.startswith(log) and (key in named or is_tagged):
            objects.pop(key).unlink(missing_ok=True)
    first = f"{log}{0:020d}.json"
    for key in sorted(objects, key=lambda key: (key != first, key), reverse=True):
        if key.startswith(log) and _LOG_FILE.fullmatch(key.removeprefix(log)):
            objects.pop(key).unlink(missing_ok=True)
    for leftover in objects.values():
        return f'path "{root}" is kept: the job has not made "{leftover}"'
    return None


def _paths(log: LogEntries) -> Iterator[str]:
    for version in log.numbers():
        for action in log.read(version):
            data = action.get("add") or action.get("cdc")
            if data is not None:
                yield data["path"]


def _creator(entry: Sequence[Mapping[str, Any]]) -> object:
    creators = (action["commitInfo"].get(CREATOR) for action in entry if "commitInfo" in action)
    return next(creators, None)


def _is_ours(entry: Sequence[Mapping[str, Any]], app_id: str) -> bool:
    if _creator(entry) == app_id:
        return True
    return any(name == app_id or name.startswith(f"{app_id}:") for name in transactions(entry))


def _data_files(root: Path, tags: set[str]) -> Iterator[Path]:
    real = root.resolve()
    for path in _paths(LogEntries(root)):
        file = root / unquote(path)
        inside = file.parent.resolve().is_relative_to(real)
        is_data = inside and "_delta_log" not in file.parts[len(root.parts) :]
        if is_data and (file.is_file() or file.is_symlink()):
            yield file
    for file in list(root.iterdir()):
        origin = FileOrigin.of_name(file.name)
        if origin is not None and origin.writer in tags:
            yield file


def _remove_empty(directory: Path, below: Path) -> None:
    """Remove `directory` and its parents below `below` while they are empty."""
    while directory != below and not directory.is_symlink():
        if directory.exists() and next(directory.iterdir(), None) is not None:
            return
        with suppress(OSError):  # it is gone, or a file system begins there
            directory.rmdir()
        directory = directory.parent


def _left(root: Path) -> str | None:
    if not root.is_dir():
        return None
    leftover = next((path for path in root.rglob("*") if not path.is_dir()), root)
    return f'directory "{root}" is kept: the job has not made "{leftover}"'
