"""Hands secrets of the control plane's environment over to a child process of ours.

Environments are inherited and shown, so that a child gets none of `SLUICE_SECRET_*` that way. Those
that its job's plan refers to are on its standard input, in a file that exists in memory only; the
child takes them at its start and closes the file, before it starts processes of its own.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from service.errors import SecretError
from service.jobs.layout import JobLayout
from service.secrets import of_environment, receive, references

_STANDARD_INPUT = 0


@contextmanager
def handed_over(job_dir: Path | None) -> Iterator[int]:
    """The standard input of a child that works on the job of `job_dir`."""
    values = {} if job_dir is None else _of_plan(JobLayout(job_dir).plan)
    if not values:
        descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    else:
        descriptor = _in_memory(values)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def take_over() -> None:
    """Take what was handed over to this process; called first, before anything is started."""
    try:
        if not stat.S_ISREG(os.fstat(_STANDARD_INPUT).st_mode):
            return
        with open(_STANDARD_INPUT, "rb", closefd=False) as file:
            receive(json.load(file))
    except (OSError, ValueError):  # not ours: a person has redirected it
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STANDARD_INPUT)
    os.close(nothing)


def _of_plan(plan: Path) -> dict[str, str]:
    """What the environment provides of what the plan refers to; faults are the child's to tell."""
    try:
        names = references(plan.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}
    found = {name: _or_none(name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _or_none(name: str) -> str | None:
    try:
        return of_environment(name)
    except SecretError:
        return None


def _in_memory(values: Mapping[str, str]) -> int:
    descriptor = os.memfd_create("secrets", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(json.dumps(dict(values)).encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
