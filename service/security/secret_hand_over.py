"""Hands over what a child process of ours needs and nobody else may see.

Environments are inherited and shown, so that a child gets none of `SLUICE_SECRET_*` that way. Those
that its job's plan refers to are on its standard input, in a file that exists in memory only, and
beside them what an inspection is asked; the child takes both at its start and closes the file,
before it starts processes of its own.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.errors import SecretError
from service.jobs.store.layout import JobLayout
from service.security.secrets import of_environment, receive, references

_STANDARD_INPUT = 0


@contextmanager
def handed_over(job_dir: Path | None, question: Mapping[str, Any] | None = None) -> Iterator[int]:
    """The standard input of a child that works on the job of `job_dir`."""
    values = {} if job_dir is None else _of_plan(JobLayout(job_dir).plan)
    if not values and question is None:
        descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    else:
        descriptor = _in_memory({"secrets": values, "question": question})
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def take_over() -> dict[str, Any] | None:
    """Take what was handed over to this process; called first, before anything is started.

    Returns:
        The question, None if there is none.
    """
    try:
        if not stat.S_ISREG(os.fstat(_STANDARD_INPUT).st_mode):
            return None
        with open(_STANDARD_INPUT, "rb", closefd=False) as file:
            document = json.load(file)
        receive(document["secrets"])
        question: dict[str, Any] | None = document["question"]
    except (OSError, ValueError, LookupError, TypeError):  # not ours: a person has redirected it
        return None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STANDARD_INPUT)
    os.close(nothing)
    return question


def _of_plan(plan: Path) -> dict[str, str]:
    """What the environment provides of what the plan refers to; faults are the child's to tell."""
    try:
        names = references(plan.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}
    values = {name: _or_none(name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _or_none(name: str) -> str | None:
    try:
        return of_environment(name)
    except SecretError:
        return None


def _in_memory(document: Mapping[str, Any]) -> int:
    descriptor = os.memfd_create("hand-over", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(json.dumps(document).encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
