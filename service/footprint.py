"""What our processes leave out, to stay small and quick, and what they keep for good."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType


class _Without(MetaPathFinder):
    """Reports a package as not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == self._package:
            raise ModuleNotFoundError(f"{fullname} is left out of this process", name=fullname)


def leave_out(package: str) -> None:
    """Hide an optional package from libraries that load it wherever it is installed.

    pyarrow loads pandas when it first converts a Python value: 45 MiB that only PySpark's workers
    need. HTTP clients load trio, a third of a command's time. Call it before they are imported.
    """
    sys.meta_path.insert(0, _Without(package))


@contextmanager
def kept_for_good() -> Iterator[None]:
    """Exempt what is loaded within from garbage collection.

    A full collection stops every thread: 110 ms for what a control plane has loaded, every ten
    seconds at 100 requests a second (measured).
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        gc.collect()  # over next to nothing: the collector's idea of what is old is that of now
