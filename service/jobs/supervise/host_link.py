"""Where a control plane and its runner host meet: a Unix socket, at which they speak JSON lines.

| the control plane sends | the host answers |
|---|---|
| `{"link": true}`, and stays | nothing; the host goes on while there is a link, or a runner |
| `{"job_dir", "environment"}` with standard input and output | `{"pid"}`; once a byte has come \
that runner begins; `{"exit"}` at its end |
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BEGIN = b"!"
_SOCKET = "host.sock"


@contextmanager
def address(directory: Path) -> Iterator[str]:
    """The path of the host's socket, which a system takes however long that of `directory` is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{_SOCKET}"
    finally:
        os.close(descriptor)


def listen(directory: Path) -> socket.socket:
    """The host's end, at which nobody else listens; its directory is this user's alone."""
    (directory / _SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    with address(directory) as path:
        listener.bind(path)
    listener.listen(128)
    return listener


def connect(directory: Path) -> socket.socket | None:
    """A connection to the host; None if there is none."""
    link = socket.socket(socket.AF_UNIX)
    try:
        with address(directory) as path:
            link.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        link.close()
        return None
    except BaseException:
        link.close()
        raise
    return link
