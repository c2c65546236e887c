"""Plants the faults of `tests/mutations.toml`, one at a time, and runs the tests that find them.

    python -m tests.mutations              # all of them, those of pure tests in a few minutes
    python -m tests.mutations --only NAME  # one

The faults are planted into a copy of the tracked files. A fault is found if one of its tests fails;
without a fault all of these tests pass. The last line is a JSON object: `ok`, `cases`, `found`.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests/mutations.toml"
LIMIT_S = 600.0
FAILED = 1
"""Exit status of pytest when tests ran and failed; 2 and above mean that they did not run."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """Replace `before`, which occurs once in `file`, by `after`; one of `tests` then fails."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def planted(self, source: str) -> str:
        """The text of the file with the fault.

        Raises:
            ValueError: the text to replace does not occur exactly once.
        """
        if source.count(self.before) != 1:
            raise ValueError(f"{self.name}: {self.file} has {self.before!r} not exactly once")
        return source.replace(self.before, self.after)


def mutations() -> list[Mutation]:
    listed = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return [Mutation(name, **{**each, "tests": (*each["tests"],)}) for name, each in listed.items()]


class Copy:
    """A copy of the tracked files in which tests run; the environment is that of this process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._clock = time.time()
        tracked = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout.decode()
        for name in filter(None, tracked.split("\0")):
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copy2(ROOT / name, target)
        (directory / ".venv").symlink_to(ROOT / ".venv")
        tested = self._python("-c", "import watermark; print(watermark.__file__)").stdout.strip()
        assert Path(tested).is_relative_to(directory), f"the tests would run on {tested}"

    def outcome(self, mutation: Mutation) -> dict[str, object]:
        """What the tests say of a planted fault."""
        path = self._directory / mutation.file
        source = path.read_text(encoding="utf-8")
        self._write(path, mutation.planted(source))
        try:
            status, failed = self.run(mutation.tests)
        finally:
            self._write(path, source)
        return {
            "fault": mutation.name,
            "found": status == FAILED and bool(failed),
            "status": status,
            "by": failed,
        }

    def run(self, tests: Iterable[str]) -> tuple[int, list[str]]:
        ran = self._python(
            *("-m", "pytest", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-m", ""),
            *tests,
        )
        return ran.returncode, re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+)", ran.stdout, re.MULTILINE)

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [sys.executable, *arguments],
                cwd=self._directory,
                env={**os.environ, "PYTHONPATH": str(self._directory)},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            return subprocess.CompletedProcess(exc.cmd, 99, "", "")

    def _write(self, path: Path, text: str) -> None:
        self._clock += 2
        path.write_text(text, encoding="utf-8")
        os.utime(path, (self._clock, self._clock))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--only", metavar="NAME", help="plant this fault alone")
    only = parser.parse_args().only
    chosen = [each for each in mutations() if only in (None, each.name)]
    if not chosen:
        parser.error(f"no fault is named {only!r}; see tests/mutations.toml")
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        copy = Copy(Path(name).resolve())
        status, failed = copy.run(sorted({test for each in chosen for test in each.tests}))
        sys.stdout.write(json.dumps({"fault": None, "status": status, "by": failed}) + "\n")
        found = 0
        for each in chosen:
            outcome = copy.outcome(each)
            found += bool(outcome["found"])
            sys.stdout.write(json.dumps(outcome) + "\n")
            sys.stdout.flush()
    ok = status == 0 and found == len(chosen)
    sys.stdout.write(json.dumps({"ok": ok, "cases": len(chosen), "found": found}) + "\n")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
