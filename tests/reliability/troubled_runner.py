"""The runner with troubles that no user can make: `python -m tests.reliability.troubled_runner …`.

While the file `HELD` is in the job's directory, its build side does not begin a batch. A change to
a row with the text `LOST` in a column is lost between the binlog and the changelog topic.
"""

import sys
import time
from pathlib import Path
from typing import Any

from joins.adapters.mysql.sender import ChangelogSender
from joins.dimension.build_side import BuildSide
from service.jobs import runner

COMMAND = (sys.executable, "-m", "tests.reliability.troubled_runner")
HELD = "hold-the-build-side"
LOST = "an event that is lost"
_LOOK_S = 0.05


def hold_builds(file: Path) -> None:
    step = BuildSide.step

    def held(self: BuildSide) -> bool:
        while file.exists():
            time.sleep(_LOOK_S)
        return step(self)

    BuildSide.step = held  # type: ignore[method-assign]  # the trouble


def lose_changes() -> None:
    append = ChangelogSender._append_change

    def without(self: ChangelogSender, op: str, at_ms: int, before: Any, after: Any) -> None:
        if LOST not in map(_text, after or ()):
            append(self, op, at_ms, before, after)

    ChangelogSender._append_change = without  # type: ignore[method-assign]  # the trouble


def _text(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def main() -> None:
    """Plant both, then be the runner; processes of sources are forked from it."""
    hold_builds(Path(sys.argv[sys.argv.index("--job-dir") + 1]) / HELD)
    lose_changes()
    runner.main()


if __name__ == "__main__":
    main()
