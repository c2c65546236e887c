"""The process that forks Spark's Python workers, with the needed modules loaded.

Spark ends idle workers each minute and replaces killed ones: loading the modules takes a new worker
2 s, in which its batch waits. A worker collects all garbage after each task, which takes 30 ms with
the modules and nothing once they are frozen (both measured).

Spark starts it for its first task. A session on this machine prepares one before, which loads the
modules while the JVM starts; the process that Spark then starts hands over to it and only waits.
"""

import gc
import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from joins.adapters.process.parent import bind_to_parent
from joins.kernels.local_files import OwnDirectory

MODULE = "joins.worker.daemon"
"""What Spark runs; a living runner asks for it by this name, also behind an upgrade."""
LOADED = (
    "pyarrow.acero",  # of the first `group_by`
    "pyspark.worker",
    "joins.sinks.console",
    "joins.sinks.delta",
    "joins.sinks.kafka",
    "joins.dimension.build_side",
    "joins.worker.event_task",
    "joins.worker.resident",
    "joins.worker.topic_reader",
    "joins.source.chunk_reader",
)
COMPILED = (
    "joins.kernels.records.encode",
    "joins.kernels.records.decode",
    "joins.kernels.json.plain",
    "joins.adapters.mysql.text",
)
SOCKET = "PYTHON_WORKERS_PREPARED_AT"
"""The variable with the path of the socket at which a prepared process waits."""

SOCKETS = "PYTHON_WORKER_FACTORY_SOCK_DIR"
"""Spark's variable with the directory of the sockets at which its Python processes are."""

COMPILE = "--compile"
"""Asks for nothing but that all is compiled, for an archive that nodes are sent."""

_PREPARED = "--prepared"
_STANDARD = (0, 1, 2)
_WAIT_S = 600


def command(path: Path) -> list[str]:
    return [sys.executable, "-m", MODULE, _PREPARED, str(path)]


def main(arguments: Sequence[str]) -> None:
    if arguments and arguments[0] == COMPILE:
        _load()
        return
    if arguments and arguments[0] == _PREPARED:
        _wait_for_spark(Path(arguments[1]))
    elif _is_handed_over(os.environ.get(SOCKET)):
        return
    else:
        _load()
    from pyspark.daemon import manager  # a process that hands over loads nothing

    with place_for_sockets():
        manager()


@contextmanager
def place_for_sockets() -> Iterator[None]:
    """Replace the directory of Spark's worker sockets, unless it is private, by a new one.

    Its name is short: the path of a socket has fewer than 104 bytes.
    """
    directory = os.environ.get(SOCKETS)
    if directory is None or _is_private(directory):
        yield
        return
    with OwnDirectory("run", Path("/tmp")) as own:
        os.environ[SOCKETS] = str(own)
        yield


def _is_private(directory: str) -> bool:
    with suppress(OSError):
        status = os.stat(directory)
        return status.st_uid == os.getuid() and not status.st_mode & 0o077
    return False


def _load() -> None:
    gc.disable()  # nothing that is loaded is garbage: looking for it takes a tenth of the time
    for name in LOADED:
        import_module(name)
    for name in COMPILED:
        import_module(name).warm_up()
    gc.freeze()
    gc.enable()


def _is_handed_over(path: str | None) -> bool:
    """Hand over to the process prepared at `path`, and wait for its end; False if there is none."""
    if path is None:
        return False
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(path)
        except OSError:
            return False
        place = {"argv": sys.argv, "environment": dict(os.environ), "directory": os.getcwd()}
        socket.send_fds(link, [b" "], _STANDARD)
        link.sendall(json.dumps(place).encode())
        link.shutdown(socket.SHUT_WR)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in _STANDARD[:2]:  # by their ends Spark and the other know of each other
            os.dup2(nothing, descriptor)
        with suppress(OSError):
            link.recv(1)
    return True


def _wait_for_spark(path: Path) -> None:
    """Load the modules and take the place of the first process that connects."""
    bind_to_parent()
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.bind(str(path))
        waiting.listen(1)
        waiting.settimeout(_WAIT_S)
        _load()
        try:
            link, _ = waiting.accept()
        except TimeoutError:
            sys.exit(f"nothing of Spark needed Python workers within {_WAIT_S} s")
        finally:
            path.unlink(missing_ok=True)  # a later daemon loads without it
    _take_place(link)
    os.register_at_fork(after_in_child=link.close)  # it ends with this process, not with a worker


def _take_place(link: socket.socket) -> None:
    """Replace the process at the other end, which Spark has started."""
    _, descriptors, _, _ = socket.recv_fds(link, 1, len(_STANDARD))
    parts = []
    while part := link.recv(1 << 16):
        parts.append(part)
    place = json.loads(b"".join(parts))
    for standard, descriptor in zip(_STANDARD, descriptors, strict=True):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.chdir(place["directory"])
    os.environ.clear()
    os.environ.update(place["environment"])
    sys.argv = place["argv"]
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path += [entry for entry in entries if entry and entry not in sys.path]


if __name__ == "__main__":
    main(sys.argv[1:])
