"""Compiled code is kept where nobody else writes, and never taken from another version."""

import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from joins.kernels.compiled import kept_in, one_at_a_time

OF_A_VERSION = """
from typing import NamedTuple
from joins.kernels.compiled import compiled

class {name}(NamedTuple):
    number: int

@compiled
def twice(one):
    return {factor} * one.number

print(twice({name}(21)))
"""


def variables(tmp_path, **names):
    cleared = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR")
    kept = {name: value for name, value in os.environ.items() if name not in cleared}
    return {**kept, "TMPDIR": str(tmp_path), **{name: str(path) for name, path in names.items()}}


def run(program, environment):
    return subprocess.run(
        [sys.executable, program],
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_another_version_of_a_module_does_not_load_what_the_first_has_left(tmp_path, processes):
    program, environment = tmp_path / "program.py", variables(tmp_path, HOME=tmp_path)
    for name, factor in (("First", 2), ("First", 2), ("Second", 3), ("First", 2)):
        program.write_text(OF_A_VERSION.format(name=name, factor=factor))
        os.utime(program, (1, 1))
        assert run(program, environment) == str(21 * factor)
    assert len(list((tmp_path / ".cache" / "sluice" / "compiled").iterdir())) == 2


def test_a_module_that_was_unpacked_elsewhere_loads_what_is_compiled(tmp_path, processes):
    environment = {**variables(tmp_path, HOME=tmp_path), "NUMBA_DEBUG_CACHE": "1"}
    said = []
    for unpacked in ("one", "other"):
        package, program = tmp_path / unpacked / "package", tmp_path / unpacked / "program.py"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(OF_A_VERSION.format(name="First", factor=2))
        program.write_text("import package")
        said.append(run(program, environment))
    assert all(each.endswith("42") for each in said)
    assert ["data loaded" in each for each in said] == [False, True]


OF_THE_DAEMON = """
from importlib import import_module
from joins.worker.daemon import COMPILED

for name in COMPILED:
    import_module(name).warm_up()
print(*COMPILED)
"""


@pytest.mark.matrix
def test_a_node_that_has_nothing_compiles_all_that_workers_call(tmp_path, processes):
    program = tmp_path / "program.py"
    program.write_text(OF_THE_DAEMON)
    assert "joins.kernels.records.encode" in run(program, variables(tmp_path, HOME=tmp_path))


OF_A_SENDER = """
import sys
import joins.adapters.mysql.binlog
print("numba" in sys.modules)
"""


def test_the_process_that_reads_a_binlog_loads_no_compiler(tmp_path, processes):
    program = tmp_path / "program.py"
    program.write_text(OF_A_SENDER)
    assert run(program, variables(tmp_path, HOME=tmp_path)) == "False"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Home, cache and temporary directory of this test, which `kept_in` looks at."""
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_it_is_kept_in_the_home_of_the_user(places):
    assert kept_in() == places / "home" / ".cache" / "sluice" / "compiled"


def test_a_directory_that_others_can_write_is_not_trusted(places):
    directory = places / "home" / ".cache" / "sluice" / "compiled"
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    assert kept_in() == places / f"sluice-{os.getuid()}"
    (places / f"sluice-{os.getuid()}").chmod(0o770)
    assert kept_in().parent == places
    assert kept_in() != kept_in()  # one of this process, made anew


def test_a_link_to_a_directory_is_not_trusted(places):
    (places / "elsewhere").mkdir()
    (places / "home" / ".cache" / "sluice").mkdir(parents=True)
    (places / "home" / ".cache" / "sluice" / "compiled").symlink_to(places / "elsewhere")
    assert kept_in() == places / f"sluice-{os.getuid()}"


def test_without_a_home_it_is_among_the_temporary_files(places, monkeypatch):
    (places / "file").touch()
    monkeypatch.setenv("HOME", str(places / "file"))
    assert kept_in() == places / f"sluice-{os.getuid()}"


def test_a_process_that_has_halted_while_it_compiles_keeps_no_other_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr("joins.kernels.compiled._KEPT_IN", tmp_path)
    monkeypatch.setattr("joins.kernels.compiled._WAITS_UNTIL", time.monotonic() + 0.3)
    with one_at_a_time(), ThreadPoolExecutor(1) as threads:  # another open file, as of a process
        threads.submit(enter).result(timeout=60)


def test_the_next_process_goes_on_when_the_first_has_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr("joins.kernels.compiled._KEPT_IN", tmp_path)
    monkeypatch.setattr("joins.kernels.compiled._WAITS_UNTIL", math.inf)
    with ThreadPoolExecutor(1) as threads:
        with one_at_a_time():
            second = threads.submit(enter)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.2)
        second.result(timeout=60)


def enter():
    with one_at_a_time():
        return
