"""The examples of the documents: their directories, their program, and what their pages say."""

import shlex
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tests.support.hints import ROOT
from tests.support.program import run_program

DIRECTORY = ROOT / "docs/examples"
CAPTURED = DIRECTORY / "orders-and-credit"  # its table is PostgreSQL's, by way of Debezium
SCRIPTS = sorted(path.parent for path in DIRECTORY.glob("*/script.sql"))


def prepare_program() -> ModuleType:
    """`prepare.py`, which fills in addresses."""
    spec = spec_from_file_location("prepare", DIRECTORY / "prepare.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_commands(text: str, example: Path, bootstrap: str) -> None:
    """What a part of a page says to type about topics."""
    for line in text.split("\n"):
        if not line.startswith("    sluice topic "):
            continue
        command, _, file = line.strip().partition(" < ")
        given = (example / file).read_bytes() if file else b""
        _, *words = shlex.split(command)
        done = run_program(*words, given=given, SLUICE_KAFKA_BOOTSTRAP_SERVERS=bootstrap)
        assert done.returncode == 0, done.stderr
