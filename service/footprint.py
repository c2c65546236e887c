"""What the control plane's process leaves out, so that it stays small."""

import sys
from collections.abc import Sequence
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
