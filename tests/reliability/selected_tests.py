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
_SAID = 1_000  # characters of what a test failed with: the end tells the most


def _files_with(mark: str) -> list[str]:
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
    skipped = [_name(case) for case in ran if case.find("skipped") is not None]
    broken = {
        _name(case): said.get("message", "")[-_SAID:]
        for case in ran
        for said in (*case.findall("failure"), *case.findall("error"))
    }
    cases = len(ran) - len(skipped)  # what a machine lacks is told, and judged by no one
    return result(
        lab,
        experiment,
        cases,
        cases - len(broken),
        (),
        ok=done.returncode == 0,
        exit_code=done.returncode,
        broken=broken,
        skipped=skipped,
    )


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname')}.{case.get('name')}"
