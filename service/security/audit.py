"""The audit log: requests and their outcomes as JSON lines, bounded in size.

It contains the path of a request, never query, headers or body; tokens are cut to their ids.
Commands that use the job store directly write to the same file. A line is durable before its
request is answered. Appends are serialized; several threads share a sync.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog

from joins.kernels.local_files import append_line, sync
from service.config import Settings
from service.security.tokens import without_secrets

KEPT_FILES = 4  # besides the current one
_TEXT_LIMIT = 300
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line."""

    who: str  # name of the token, "local" without tokens, "anonymous", or a user of the machine
    token_id: str | None
    address: str  # the client's address; "this machine" for a command on the job store
    method: str  # HTTP method, or the words of a command
    object: str  # path of the request, or of the created object
    outcome: str  # done, refused or failed
    status: int | None = None  # of the answer; None for a command
    repeated: int = 0  # number of similar refusals omitted before this line


class AuditLog:
    """The file `audit.jsonl` of a data directory; several processes may write to it."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.data_dir / "audit.jsonl"
        self._limit_bytes = settings.audit_max_mib << 20

    @property
    def path(self) -> Path:
        return self._path

    def write(self, entry: AuditEntry) -> None:
        """Append one line durably; a disk error is logged and does not fail the request."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"format_version": 1, "time": at, **asdict(entry)}
        for name in ("who", "address", "method", "object"):
            line[name] = without_secrets(str(line[name]))[:_TEXT_LIMIT]
        text = json.dumps(line, separators=(",", ":")) + "\n"
        try:
            with self._open() as descriptor:
                is_new = os.fstat(descriptor).st_size == 0
                append_line(descriptor, text.encode())
                if is_new:
                    sync(self._path.parent)
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # others append while this one syncs
                os.fsync(descriptor)
        except OSError as exc:
            _log.error("audit log cannot be written", path=str(self._path), error=exc.strerror)

    @contextmanager
    def _open(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        while True:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not self._is_current(descriptor):
                    continue  # rotated by another process
                if os.fstat(descriptor).st_size < self._limit_bytes:
                    yield descriptor
                    return
                for number in range(KEPT_FILES, 0, -1):
                    older = self._path if number == 1 else self._numbered(number - 1)
                    if older.exists():
                        older.replace(self._numbered(number))
            finally:
                os.close(descriptor)

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
