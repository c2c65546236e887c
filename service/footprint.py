"""What the control plane's process leaves out, to stay small, and what it keeps for good."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType


class _WithoutPandas(MetaPathFinder):
    """Says of pandas that it is not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out of this process", name=fullname)


def leave_out_pandas() -> None:
    """Let pyarrow do without pandas in this process: 45 MiB that only PySpark's workers need.

    pyarrow loads it, where it is installed, when it first makes a value of Python an Arrow value.
    Call it before anything of ours is loaded that does so at import.
    """
    sys.meta_path.insert(0, _WithoutPandas())


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
