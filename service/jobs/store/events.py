"""The transitions of a job, which its runner appends to `events.jsonl`, one a line."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from joins.kernels.local_files import append_line, sync
from service.jobs.store.layout import JobLayout, write_private

EVENTS_LIMIT_BYTES = 1 << 20
BEFORE = "bytes_before"
_FIRST_LINE_BYTES = 1_024


def append_event(job_dir: Path, event: Mapping[str, Any]) -> None:
    """Append a transition (`at_ms`, `from`, `to`, `cause`) to `events.jsonl`, durably.

    A file that is too large becomes `events.jsonl.1`. The one that follows begins with a line that
    says how much there was before it, so that readers' offsets go on.

    Raises:
        OSError: the file system refused; nothing of the event is there.
    """
    file = JobLayout(job_dir).events
    _begin_anew(file)
    is_new = not file.exists()
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        append_line(descriptor, _line(event))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        sync(file.parent)


def _line(event: Mapping[str, Any]) -> bytes:
    return json.dumps({"format_version": 1, **event}, separators=(",", ":")).encode() + b"\n"


def _begin_anew(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            first = _line({BEFORE: bytes_before(opened) + size})
    except FileNotFoundError:
        return
    if size < EVENTS_LIMIT_BYTES:
        return
    before, aside = file.with_name(f"{file.name}.1"), file.with_name(f"{file.name}.new")
    before.unlink(missing_ok=True)
    os.link(file, before)  # until the new file is in its place, this one is
    write_private(aside, first)
    aside.replace(file)
    sync(file.parent)


def begin_events(job_dir: Path, offset: int) -> None:
    """See that what `append_event` appends is behind `offset`, up to which readers have read.

    A file that ends before is of a runner that was followed on another machine since.
    """
    file = JobLayout(job_dir).events
    try:
        with file.open("rb") as opened:
            end = bytes_before(opened) + os.fstat(opened.fileno()).st_size
    except FileNotFoundError:
        end = 0
    if end < offset:
        write_private(file, _line({BEFORE: offset}))


def bytes_before(events: BinaryIO) -> int:
    """How many bytes of events there were before those in a file, as its first line says."""
    line, _, _ = events.read(_FIRST_LINE_BYTES).partition(b"\n")
    try:
        return int(json.loads(line)[BEFORE])
    except (ValueError, KeyError, TypeError):
        return 0
