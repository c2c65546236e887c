"""Scripts with what must come of them: the files of tests/service/sql/cases.

The first lines of a file are `-- key: value`. `-- with: a b` puts the tables `a` and `b` of
tests/service/sql/preludes.sql in front of its statements.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path

DIRECTORY = Path(__file__).parents[1] / "service/sql/cases"
PRELUDES = DIRECTORY.with_name("preludes.sql")
_WITH = re.compile(r"^-- with: (.*)\n", re.MULTILINE)


@functools.cache
def preludes() -> Mapping[str, str]:
    """Name -> CREATE TABLE."""
    parts = re.split(r"^-- (\w+)\n", PRELUDES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def prelude_names(text: str) -> list[str]:
    """The tables that a case names."""
    named = _WITH.search(text)
    return [] if named is None else named[1].split()


def with_preludes(text: str) -> str:
    """The whole script of a case."""
    tables = "".join(preludes()[name] for name in prelude_names(text))
    return _WITH.sub(lambda _: tables, text, count=1)


def sql_cases(kind: str = "") -> dict[str, str]:
    """Name -> script; of one kind those that begin with `-- kind: `."""
    texts = {
        path.stem: path.read_text(encoding="utf-8") for path in sorted(DIRECTORY.glob("*.sql"))
    }
    return {
        name: with_preludes(text)
        for name, text in texts.items()
        if text.startswith(f"-- {kind}: " if kind else "-- ")
    }
