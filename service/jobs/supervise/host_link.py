"""What a control plane and its runner host speak: a line of JSON each, at a Unix socket.

| the control plane sends | the host answers |
|---|---|
| `{"link": true}`, and stays | nothing; the host goes on while there is a link, or a runner |
| `{"job_dir", "environment"}` with standard input and output | `{"pid"}`; once a byte has come \
that runner begins; `{"exit"}` at its end |
"""

import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BEGIN = b"!"
_SOCKET = "host.sock"
_MOST_BYTES = 1 << 20


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


def send(link: socket.socket, document: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one line, with its first byte the `descriptors`.

    Raises:
        OSError: nobody is at the other end.
    """
    line = json.dumps(document).encode() + b"\n"
    socket.send_fds(link, [line[:1]], descriptors)
    link.sendall(line[1:])


def receive(link: socket.socket, descriptors: int = 0) -> tuple[dict[str, Any], list[int]]:
    """One line, and as many `descriptors` at the most.

    Raises:
        OSError: nobody is at the other end any more, or what came is no line of ours.
    """
    line, received, _, _ = socket.recv_fds(link, 1, descriptors)
    try:
        while line and not line.endswith(b"\n") and len(line) < _MOST_BYTES:
            part = link.recv(1 << 16, socket.MSG_PEEK)
            end = part.find(b"\n") + 1 or len(part)
            line += link.recv(end)
            if not part:
                break
        return dict(json.loads(line)), received
    except BaseException as exc:
        for descriptor in received:
            os.close(descriptor)
        if isinstance(exc, ValueError | TypeError):
            raise ConnectionError("the other end has sent no line of JSON") from exc
        raise
