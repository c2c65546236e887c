"""Hints of refused scripts, followed: `-- fixed: old => new` in a case, or a name that was meant.

A case may say how its hint is followed, one replacement a line, applied in turn to what stands
behind the first lines. Where the hint is `Did you mean "x"?`, the name at the error's place is
replaced by it. What comes of it is planned.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.sql.planner.planner import plan_script
from service.sql.text.script import SqlError
from tests.support.hints import ROOT, Site, sites

_FIXED = "-- fixed: "
_MEANT = re.compile(r'Did you mean "(.*)"\?')
_NAME = re.compile(r"'(?:[^']|'')*'|`[^`]*`|\w+")


def says_how(case: str) -> bool:
    return f"\n{_FIXED}" in case or "Did you mean" in case.partition("\n")[0]


def followed(case: str) -> str:
    """The script of `case` changed as its hint says."""
    lines = case.split("\n")
    edits = [line.removeprefix(_FIXED) for line in lines if line.startswith(_FIXED)]
    if not edits:
        return _with_the_name_that_was_meant(case)
    script = "\n".join(line for line in lines[1:] if not line.startswith(_FIXED))
    for edit in edits:
        old, arrow, new = edit.partition(" => ")
        if not arrow:
            old, new = edit.removesuffix(" =>"), ""
        assert old in script, f"{old!r} is not in the case"
        at = script.rindex(old) if old == ";" else script.index(old)
        script = script[:at] + new + script[at + len(old) :]
    return script


def _with_the_name_that_was_meant(case: str) -> str:
    error = refusal(case)
    assert error is not None
    meant = _MEANT.fullmatch(error.hint)
    assert meant is not None, error.hint
    lines = case.split("\n")
    line = lines[error.line - 1]
    found = _NAME.match(line, error.column - 1)
    assert found is not None, "no name is at the error's place"
    quote = found[0][0] if found[0][0] in "'`" else ""
    lines[error.line - 1] = line[: found.start()] + quote + meant[1] + quote + line[found.end() :]
    return "\n".join(lines)


def refusal(script: str) -> SqlError | None:
    """Why `script` is not planned; a script that only has no job in it is fine."""
    try:
        plan_script(script)
    except SqlError as error:
        jobless = ("the script has no INSERT INTO", "the script is empty")
        return None if any(told in error.message for told in jobless) else error
    return None


class Sites:
    """The places of service/sql that give hints, and which of them a refusal came from."""

    def __init__(self) -> None:
        self.all = [site for site in sites() if site.path.startswith("service/sql/")]
        self._by_path: dict[str, list[Site]] = {}
        for site in self.all:
            self._by_path.setdefault(str(ROOT / site.path), []).append(site)
        self._newest: list[tuple[str, int]] = []

    @contextmanager
    def watched(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Within, each refusal is known by the calls that led to it."""
        made = SqlError.__init__

        def noting(error: SqlError, *args: str, **more: object) -> None:
            frame = sys._getframe(1)
            calls = []
            while frame is not None:
                calls.append((frame.f_code.co_filename, frame.f_lineno))
                frame = frame.f_back
            self._newest = calls
            made(error, *args, **more)

        with monkeypatch.context() as patched:
            patched.setattr(SqlError, "__init__", noting)
            yield

    def of_newest(self) -> Site | None:
        """Where the newest refusal got its hint."""
        for name, line in self._newest:
            there = [s for s in self._by_path.get(name, []) if s.first <= line <= s.last]
            if there:
                return min(there, key=lambda site: site.last - site.first)
        return None
