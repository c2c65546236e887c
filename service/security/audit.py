"""The audit log: who has asked for what, and what came of it; JSON lines, appended, bounded.

Only the path of a request is kept, never its query, headers or body, and tokens are cut to their
ids. Commands that work on the job store directly write to the same file.

A line is on disk before its request is answered: what was answered is audited, also after a power
failure. Lines are appended one after the other, and synced by several threads together.
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

KEPT_FILES = 4  # beside the one that is written
_TEXT_LIMIT = 300
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line.

    Attributes:
        who: name of the token, "local" without tokens, "anonymous", or a user of the machine.
        token_id: id of the token; None without one.
        address: where the request came from; "this machine" for a command on the job store.
        method: of the request; of a command its words.
        object: path of the request, or what it has made.
        outcome: done, refused or failed.
        status: of the answer; None for a command.
        repeated: as many alike were left out since the last one that was written.
    """

    who: str
    token_id: str | None
    address: str
    method: str
    object: str
    outcome: str
    status: int | None = None
    repeated: int = 0


class AuditLog:
    """The file `audit.jsonl` of a data directory; several processes may write to it."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.data_dir / "audit.jsonl"
        self._limit_bytes = settings.audit_max_mib << 20

    @property
    def path(self) -> Path:
        return self._path

    def write(self, entry: AuditEntry) -> None:
        """Append one line, durable when this returns.

        A disk that takes none is logged and stops nobody.
        """
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
        """The file, locked and with room in it."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        while True:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not self._is_current(descriptor):
                    continue  # somebody has just moved it away
                if os.fstat(descriptor).st_size < self._limit_bytes:
                    yield descriptor
                    return
                self._move_away()
            finally:
                os.close(descriptor)

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def _move_away(self) -> None:
        for number in range(KEPT_FILES, 0, -1):
            older = self._path if number == 1 else self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
