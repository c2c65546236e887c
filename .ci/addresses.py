"""Fail when a file names a package registry: where packages come from is the machine's business."""

import re
import subprocess
import sys
from pathlib import Path

# Each name has one letter in brackets, so that this file does not name what it looks for.
ADDRESS = re.compile(
    rb"pyp[i]\.org|pythonh[o]sted\.org|repo1?\.m[a]ven\.|maven\.apach[e]\.org/maven2|maven\.googl[e]|"
    rb"registry\.npmj[s]|ghc[r]\.io|dock[e]r\.io|qua[y]\.io|repository\.apach[e]\.org|conda\.anacond[a]|"
    rb"--(?:extra-)?index-ur[l]|--find[-]links|--trusted[-]host",
    re.IGNORECASE,
)
ROOT = Path(__file__).parents[1]
SKIPPED = {
    ".git",
    ".venv",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
}


def files() -> list[Path]:
    """What git tracks or would track; without git, everything but caches."""
    listing = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    try:
        names = subprocess.run(listing, capture_output=True, check=True).stdout.decode().split("\0")
        return [ROOT / name for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        found = (path for path in ROOT.rglob("*") if path.is_file())
        return [path for path in found if not SKIPPED & set(path.relative_to(ROOT).parts)]


def main() -> int:
    """Name each line with an address; 1 if there is one."""
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {match.group().decode()}"
        for path in files()
        if path.is_file()
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1)
        if (match := ADDRESS.search(line))
    ]
    for hit in hits:
        sys.stderr.write(f"registry address in {hit}\n")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
