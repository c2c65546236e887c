"""Scripts with what must come of them: the files of tests/service/sql/cases.

The first lines of a file are `-- key: value`. `-- with: a b … c` puts the statements `a` and `b` of
tests/service/sql/preludes.sql in front of those of the file, and `c` behind them.
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
    parts = re.split(r"^-- (\w+)\n", PRELUDES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def prelude_names(text: str) -> tuple[list[str], list[str]]:
    named = _WITH.search(text)
    front, _, back = named[1].partition("…") if named else ("", "", "")
    return front.split(), back.split()


def with_preludes(text: str) -> str:
    front, back = ("".join(preludes()[n] for n in names) for names in prelude_names(text))
    return _WITH.sub(lambda _: front, text, count=1) + back


def sql_cases(kind: str = "") -> dict[str, str]:
    texts = {
        path.stem: path.read_text(encoding="utf-8") for path in sorted(DIRECTORY.glob("*.sql"))
    }
    return {
        name: with_preludes(text)
        for name, text in texts.items()
        if text.startswith(f"-- {kind}: " if kind else "-- ")
    }
