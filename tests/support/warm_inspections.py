"""Inspections in forks of a process that has loaded what they need.

The product starts a process for each, which loads modules for seconds. Here such a process asks the
loaded one for a fork that reads and writes in its place. It runs with `-I -S`: standard library
only, at the top of this file.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Lock, Thread

_ONE_AT_A_TIME = Lock()  # lanes of one process ask at the same time


def warm_inspections() -> tuple[str, ...]:
    """The command of an inspection; what is loaded ends with this process."""
    with _ONE_AT_A_TIME:
        return _started()


@cache
def _started() -> tuple[str, ...]:
    place = f"inspections-of-{os.getpid()}"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(_address(place))
    listening.listen()
    Thread(target=_load_when_asked, args=(listening,), daemon=True).start()
    return (sys.executable, "-I", "-S", __file__, place)


def _address(place: str) -> str:
    return f"\0{place}"  # not a file: nothing is left of it


def _load_when_asked(listening: socket.socket) -> None:
    """The loaded process ends with this thread."""
    from service.embedded import launch

    asked = select.poll()  # select() takes no descriptor above 1,023
    asked.register(listening, select.POLLIN)
    asked.poll()
    bound = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), sys.executable]
    with subprocess.Popen(
        [*bound, "-m", "tests.support.warm_inspections", str(listening.fileno())],
        pass_fds=[listening.fileno()],
        cwd=Path(__file__).parents[2],
    ) as loaded:
        atexit.register(_end, loaded)


def _end(loaded: "subprocess.Popen[bytes]") -> None:
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
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
            for own, stream in enumerate(streams):
                os.dup2(stream, own)
            request = json.loads(message)
            os.environ.clear()
            os.environ.update(request["environment"])
            sys.argv[1:] = request["arguments"]
            Thread(target=_end_with, args=(connection,), daemon=True).start()
            code = 1
            try:
                code = program.main()
            finally:
                sys.stdout.flush()
                connection.send(bytes([code]))
                os._exit(code)


def _end_with(connection: socket.socket) -> None:
    """End the fork with the process that asked: that one is killed if it takes too long."""
    connection.recv(1)
    os._exit(1)


def ask(place: str, arguments: list[str]) -> int:
    """The exit code of an inspection that has this process's streams and environment."""
    request = {"arguments": arguments, "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(_address(place))
        socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
        code = connection.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(int(sys.argv[1]))
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
