"""What our processes leave out, to stay small and quick, and what they keep for good."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType


class _Without(MetaPathFinder):
    """Says of a package that it is not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == self._package:
            raise ModuleNotFoundError(f"{fullname} is left out of this process", name=fullname)


def leave_out(package: str) -> None:
    """Let others do without a package in this process that they load wherever it is installed.

    pyarrow loads pandas when it first makes a value of Python an Arrow value: 45 MiB that only
    PySpark's workers need. HTTP clients load trio, a third of the time that a command takes. Call
    it before anything of ours is loaded that does so.
    """
    sys.meta_path.insert(0, _Without(package))


@contextmanager
def kept_for_good() -> Iterator[None]:
    """What is loaded within stays for the life of the process, and is no concern of the collector.

    A full collection looks at all objects while every thread stands still: 110 ms for what a
    control plane has loaded, every ten seconds at 100 requests a second (measured). Whoever asks
    in that time waits. Afterwards it looks only at what has come since.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        gc.collect()  # over next to nothing: the collector's idea of what is old is that of now
