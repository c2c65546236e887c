"""Inspections in forks of a process that has loaded what they need.

The product starts a process for each, which loads modules for seconds. Here such a process asks the
loaded one for a fork that reads and writes in its place. It runs with `-I -S`: standard library
only, at the top of this file.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def warm_inspections(directory: Path) -> Iterator[tuple[str, ...]]:
    """The command of an inspection; the loaded process ends with the block, or with this thread."""
    from service.embedded import launch

    place = str(directory / "inspections")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        bound = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), sys.executable]
        loaded = subprocess.Popen(
            [*bound, "-m", "tests.support.warm_inspections", str(listening.fileno())],
            pass_fds=[listening.fileno()],
            cwd=Path(__file__).parents[2],
        )
    try:
        yield (sys.executable, "-I", "-S", __file__, place)
    finally:
        loaded.kill()
        loaded.wait()


def serve(descriptor: int) -> None:
    from service.jobs.inspect import __main__ as program
    from service.jobs.inspect import tables  # noqa: F401 (the program loads it late)

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks are not waited for
    listening = socket.socket(fileno=descriptor)
    while True:
        connection, _ = listening.accept()
        with connection:
            if os.fork():
                continue
            message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
            for own, stream in enumerate(streams):
                os.dup2(stream, own)
            request = json.loads(message)
            os.environ.clear()
            os.environ.update(request["environment"])
            sys.argv[1:] = request["arguments"]
            code = 1
            try:
                code = program.main()
            finally:
                sys.stdout.flush()
                connection.send(bytes([code]))
                os._exit(code)


def ask(place: str, arguments: list[str]) -> int:
    """The exit code of an inspection that has this process's streams and environment."""
    request = {"arguments": arguments, "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
        code = connection.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(int(sys.argv[1]))
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
