"""Programs of the project that are no part of a package."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from tests.support.control_plane import ROOT


@cache
def module(path: str) -> ModuleType:
    """The program at `path`, from the project's root, as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded
