"""Processes of tests start without pandas: pyarrow would load it, a third of what a start takes."""

import sys

_PROGRAM = """
import runpy, sys
from service.footprint import leave_out
leave_out("pandas")
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def quick_start(module: str) -> tuple[str, ...]:
    """The command of `python -m module`."""
    return (sys.executable, "-c", _PROGRAM, module)
