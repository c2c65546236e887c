"""Translates exceptions of libraries, the file system and the JVM into Sluice errors.

The message is one sentence; the exception's own text is the error's `detail`. An exception in a
task reaches the driver as a line of its traceback, `fault_line`, where `fault_in` finds it.
"""

import errno
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from joins.plan.errors import (
    DiskFullError,
    FileSystemError,
    JoinError,
    NetworkError,
    OutOfMemoryError,
    PermissionDeniedError,
)
from watermark.errors import SluiceError, redacted

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NETWORK = frozenset(
    {
        *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT),
        *(errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETUNREACH, errno.ENETDOWN, errno.ENETRESET),
        *(errno.EADDRNOTAVAIL, errno.ENOTCONN, errno.ESHUTDOWN, errno.EADDRINUSE),
    }
)
_FILES = frozenset({errno.EMFILE, errno.ENFILE})
_ERRNO = re.compile(r"\[errno (\d{1,3})\]|\(os error (\d{1,3})\)", re.IGNORECASE)
_NAMED = re.compile(r"\[Errno \d+\] [^:\n]*: ['\"]([^'\"\n]{1,300})['\"]")
_TEXTS = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        (r"No space left on device|There is not enough space", errno.ENOSPC),
        (r"Disk quota exceeded", errno.EDQUOT),
        (r"OutOfMemoryError|Cannot allocate memory|\bMemoryError\b", errno.ENOMEM),
        (r"ArrowMemoryError", errno.ENOMEM),
        (r"Read-only file system", errno.EROFS),
        (r"AccessDeniedException|AccessControlException|Permission denied", errno.EACCES),
        (r"Operation not permitted", errno.EPERM),
        (r"Too many open files", errno.EMFILE),
        (r"Connection refused", errno.ECONNREFUSED),
        (r"Connection reset", errno.ECONNRESET),
        (r"Broken pipe", errno.EPIPE),
        (r"SocketTimeoutException|TimeoutError|[Tt]imed out", errno.ETIMEDOUT),
        (r"No route to host|UnknownHostException|gaierror", errno.EHOSTUNREACH),
        (r"Network is unreachable", errno.ENETUNREACH),
        (r"Input/output error", errno.EIO),
    )
)
_TOLD = re.compile(r"sluice-fault: (\{.*\})")
_MOST_DETAIL = 2_000
_AGAIN = "the runner tries the work again."
_HINT = (
    "Check disk, mount and permissions of what the detail names, for the user of Sluice; the "
    "runner tries the work again."
)


def cause_of(error: BaseException, what: str) -> SluiceError:
    """`error` itself if it is a Sluice error, else a translation of it or its cause.

    The message begins with `what`, an event such as `probe query ended`.
    """
    for each in _chain(error):
        ours = each if isinstance(each, SluiceError) else fault_in(str(each))
        if ours is not None:
            return ours
    for each in _chain(error):
        code, name = _code_of(each)
        if code is not None:
            return _of_code(code, name, what, detail_of(error))
    return JoinError(
        f"{what}: {_sentence(error)}",
        hint="The runner tries again; if this stays, look at the detail and the runner's log.",
        detail=detail_of(error),
    )


def fault_line(error: BaseException, what: str) -> str:
    ours = cause_of(error, what)
    parts = {name: getattr(ours, name) for name in ("fault", "message", "hint", "detail")}
    return "sluice-fault: " + json.dumps(parts)


def fault_in(text: str) -> SluiceError | None:
    """The error in the line that `fault_line` wrote; None if `text` has none."""
    match = _TOLD.search(text)
    if match is None:
        return None
    try:
        parts: dict[str, Any] = json.JSONDecoder().raw_decode(match[1])[0]
        kind, texts = _kind_of(parts["fault"]), (parts["message"], parts["hint"])
    except (ValueError, KeyError, TypeError):
        return None
    error = kind(str(texts[0]), hint=str(texts[1]))
    error.detail = str(parts.get("detail", ""))
    return error


def detail_of(error: BaseException) -> str:
    text = redacted(f"{type(error).__name__}: {error}".strip())
    return text if len(text) <= _MOST_DETAIL else f"…{text[-_MOST_DETAIL:]}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _code_of(error: BaseException) -> tuple[int | None, str | None]:
    if isinstance(error, MemoryError):
        return errno.ENOMEM, None
    if isinstance(error, OSError) and error.errno in errno.errorcode:
        name = error.filename2 or error.filename
        return error.errno, None if name is None else os.fsdecode(name)
    text = str(error)
    named = _NAMED.search(text)
    numbered = _ERRNO.search(text)
    if numbered is not None:
        return int(numbered[1] or numbered[2]), None if named is None else named[1]
    of_text = next((code for pattern, code in _TEXTS if pattern.search(text)), None)
    if of_text is None and isinstance(error, ConnectionError | TimeoutError):
        of_text = errno.ETIMEDOUT if isinstance(error, TimeoutError) else errno.ECONNABORTED
    if of_text is None and type(error).__name__ == "gaierror":
        of_text = errno.EHOSTUNREACH
    return of_text, None if named is None else named[1]


def _of_code(code: int, name: str | None, what: str, detail: str) -> JoinError:
    text = os.strerror(code)
    place = "" if name is None else f' "{name}"'
    if code in NO_ROOM:
        where = "a disk" if name is None else f"the disk of{place}"
        message = f"{what}: {where} is full ({text})"
        return DiskFullError(message, hint=DiskFullError.HINT, detail=detail)
    if code == errno.EROFS:
        message = f"{what}: the file system of{place or ' a directory'} is read-only"
        return PermissionDeniedError(message, hint=_HINT, detail=detail)
    if code in _DENIED:
        message = f"{what}: this user may not use{place or ' a file'} ({text})"
        return PermissionDeniedError(message, hint=_HINT, detail=detail)
    if code == errno.ENOMEM:
        return OutOfMemoryError(
            f"{what}: a process has no memory left",
            hint="Free memory on that machine, or raise SLUICE_SPARK_DRIVER_MEMORY if the detail "
            f"names the Java heap; {_AGAIN}",
            detail=detail,
        )
    if code in _NETWORK:
        return NetworkError(
            f"{what}: a server cannot be reached ({text})",
            hint="Check that the servers of the job run and that this machine reaches them; "
            + _AGAIN,
            detail=detail,
        )
    if code in _FILES:
        message = f"{what}: too many files are open ({text})"
        hint = "Raise the limit of open files (ulimit -n), and start the control plane again."
        return FileSystemError(message, hint=hint, detail=detail)
    return FileSystemError(
        f"{what}: the system refuses{place or ' an operation'} ({text})",
        hint=_HINT,
        detail=detail,
    )


def _kind_of(fault: str) -> type[SluiceError]:
    left = [JoinError]
    for kind in left:
        if kind.fault == fault:
            return kind
        left.extend(kind.__subclasses__())
    return JoinError


def _sentence(error: BaseException) -> str:
    lines = [line.strip() for line in redacted(str(error)).split("\n") if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    line = (errors or lines or [type(error).__name__])[-1 if errors else 0]
    return line[:300]
