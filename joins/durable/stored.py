"""Durable files of jobs with a store: written to the store first, then to the directory.

| below the job's location | content |
|---|---|
| `shared/…` | what a job has once, for all its runners: plan, pins, leases, requests, claims |
| `epoch-<n>/…` | what runner n replaces; complete once `epoch-<n>/complete` exists |
| `parts/…` | files that grow: `<file>/<offset>-<epoch>` |

Readers use the directory. ADR-0095 explains why this is correct over several machines.
"""

import json
import os
import socket
import time
import uuid
from pathlib import Path
from typing import Any

import structlog

from joins.kernels.local_files import sync
from joins.kernels.table_path import ObjectPath
from joins.plan.errors import FencedError
from watermark.errors import SluiceError


def write_here(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Replace `path` durably, in a directory; an OSError leaves the old content untouched."""
    aside = _write_aside(path, content, mode)
    try:
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def create_here(path: Path, content: bytes) -> bool:
    """Write `path` durably unless it exists; True if this call did.

    Raises OSError without links.
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


CHECKPOINT = "checkpoint"
CLAIMS = f"{CHECKPOINT}/epochs"
PLAN = "plan.json"
PLANS = "plans"
REQUESTS = "requests"
COMPLETE = "complete"
_SHARED = (
    f"{PLANS}/",
    f"{CLAIMS}/",
    f"{CHECKPOINT}/pins/",
    f"{CHECKPOINT}/leases/",
    f"{REQUESTS}/",
)
_LAZILY_S = 2.0
_log = structlog.get_logger(__name__)


def is_shared(name: str) -> bool:
    return name == PLAN or name.startswith(_SHARED)


class StoredFiles:
    """A job's files, as one process writes them; without `epoch` only shared ones. Thread-safe."""

    def __init__(self, directory: Path, place: ObjectPath, epoch: int | None = None) -> None:
        self.directory = directory
        self.place = place
        self.epoch = epoch
        self._put_at_s: dict[str, float] = {}
        self._behind: dict[str, bytes] = {}

    @property
    def shared(self) -> ObjectPath:
        return self.place / "shared"

    @property
    def parts(self) -> ObjectPath:
        return self.place / "parts"

    def area(self, epoch: int) -> ObjectPath:
        return self.place / f"epoch-{epoch:010d}"

    def name(self, path: Path) -> str:
        return path.relative_to(self.directory).as_posix()

    def _object(self, name: str) -> ObjectPath | None:
        if is_shared(name):
            return self.shared / name
        if self.epoch is None or not name.startswith(f"{CHECKPOINT}/"):
            return None
        return self.area(self.epoch) / name

    def put(self, path: Path, content: bytes) -> None:
        """Replace the file in the store; after an OSError the store may have the new content."""
        target = self._object(self.name(path))
        if target is not None:
            target.put(content)

    def put_lazily(self, path: Path, content: bytes) -> None:
        """Replace the file in the store unless that was done just now; then `flush` does it."""
        name = self.name(path)
        self._behind[name] = content
        if time.monotonic() - self._put_at_s.get(name, -_LAZILY_S) >= _LAZILY_S:
            self._catch_up(name)

    def flush(self) -> None:
        for name in list(self._behind):
            self._catch_up(name)

    def _catch_up(self, name: str) -> None:
        content, target = self._behind.pop(name), self._object(name)
        self._put_at_s[name] = time.monotonic()
        if target is None:
            return
        try:
            target.put(content)
        except (OSError, SluiceError) as exc:
            self._behind.setdefault(name, content)
            _log.warning("file is put into the store later", file=name, error=str(exc))

    def create(self, path: Path, content: bytes) -> bytes:
        """Put a file unless the store has it; returns the store's content. Raises as `put`."""
        target = self._object(self.name(path))
        if target is None or target.create(content):
            return content
        return target.read_bytes()

    def append(self, path: Path, offset: int, data: bytes) -> None:
        """Put the file's tail, which begins at `offset`; raises as `put`."""
        if self.epoch is not None:
            (self.parts / self.name(path) / f"{offset:020d}-{self.epoch:010d}").put(data)

    def remove(self, *paths: Path) -> None:
        """Remove the files that the store has; raises as `put`."""
        for path in paths:
            self._behind.pop(self.name(path), None)
        targets = [target for path in paths if (target := self._object(self.name(path)))]
        if targets:
            self.place.unlink_all(targets)

    def remove_parts(self, path: Path) -> None:
        """Remove all parts of a file; raises as `put`."""
        self.place.unlink_all(list((self.parts / self.name(path)).iterdir()))

    def check_epoch(self) -> None:
        """Raise FencedError if a newer runner has claimed an epoch; OSError as `put`."""
        assert self.epoch is not None, "a runner asks, which has one"
        claim = self.shared / CLAIMS / f"{self.epoch + 1}.json"
        try:
            holder = claim.read_bytes()
        except FileNotFoundError:
            return
        raise FencedError(
            f'job "{self.directory.name}" belongs to epoch {self.epoch + 1}{_holder(holder)}, this '
            f"runner is {self.epoch}",
            hint="A newer runner of the job has taken over; this one ends.",
        )


def claim_content() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "control_plane_pid": os.getppid(),
        "at_ms": time.time_ns() // 1_000_000,
    }


def _holder(content: bytes) -> str:
    try:
        claim = json.loads(content)
        return f' of process {int(claim["pid"])} on "{claim["host"]}"'
    except (ValueError, KeyError, TypeError):
        return ""


# Which files are stored
# ------------------------------------------------------------------------------------------------

_kept: dict[Path, StoredFiles] = {}


def keep_stored(files: StoredFiles) -> None:
    _kept[files.directory] = files


def stored_files(path: Path) -> StoredFiles | None:
    if not _kept:
        return None
    return next((_kept[each] for each in path.parents if each in _kept), None)


def stop_storing(directory: Path) -> None:
    files = _kept.pop(directory, None)
    if files is not None:
        files.flush()


def all_stored() -> list[StoredFiles]:
    return list(_kept.values())
