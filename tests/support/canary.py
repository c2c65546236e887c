"""Looks for a secret where none may be: in files, and in what processes show."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil


def files_with(secret: str, *roots: Path) -> list[Path]:
    """Files below `roots` that contain `secret`; those that vanish meanwhile do not count."""
    found = []
    for root in roots:
        for path in _files(root):
            with suppress(FileNotFoundError):
                if path.is_file() and secret.encode() in path.read_bytes():
                    found.append(path)
    return found


def _files(root: Path) -> Iterator[Path]:
    """What is below `root`, or `root` itself; a directory that vanishes meanwhile is left out."""
    if root.is_file():
        yield root
    for directory, _, names in os.walk(root):
        yield from (Path(directory) / name for name in names)


def processes_with(secret: str, pids: Iterable[int]) -> list[str]:
    return [name for pid in pids for name, shown in _shown(psutil.Process(pid)) if secret in shown]


def _shown(process: psutil.Process) -> Iterator[tuple[str, str]]:
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            yield f"{member.pid} {member.name()}", f"{member.cmdline()} {member.environ()}"
