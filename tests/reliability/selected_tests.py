"""Experiments that are tests of the suite, selected by a mark and run by pytest."""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from tests.reliability.experiment import Lab, result
from tests.support.control_plane import ROOT

_AT_A_TIME = 2


def _files_with(mark: str) -> list[str]:
    """The files that name `mark`: each process of pytest would read all others, too."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path) for path in files if mark in path.read_text(encoding="utf-8")]


def run_selected(
    lab: Lab, experiment: str, mark: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Every test with `mark`, two files at a time; what pytest says goes to standard error."""
    report = lab.directory / "report.xml"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-m", mark, f"--junitxml={report}"),
            *(f"--numprocesses={_AT_A_TIME}", "--dist=loadfile", "--no-loadscope-reorder"),
            *_files_with(mark),
        ],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=sys.stderr,
        check=False,
    )
    ran = ElementTree.parse(report).getroot().findall(".//testcase")
    failed = [
        case for case in ran if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = [case for case in ran if case.find("skipped") is not None]
    passed = len(ran) - len(failed) - len(skipped)
    names = [f"{case.get('classname')}.{case.get('name')}" for case in (*failed, *skipped)]
    return result(lab, experiment, len(ran), passed, (), ok=done.returncode == 0, not_passed=names)
