"""The runner that writes down when its resident tasks worked: `timed_runner FILE ARGUMENTS…`.

A line of FILE has the seconds of Unix time of one call's begin and end, as the driver sees them.
"""

import sys
import time
from pathlib import Path
from typing import Any

from joins.worker.resident_pool import ResidentPool
from service.jobs import runner


def spans_of(file: Path) -> list[tuple[float, float]]:
    """The calls in `file`, in the order of their begin."""
    lines = file.read_text().splitlines() if file.exists() else []
    pairs = ([float(each) for each in line.split()] for line in lines)
    return sorted((began, ended) for began, ended in pairs)


def main() -> None:
    """Measure the calls, then be the runner."""
    spans = Path(sys.argv.pop(1)).open("a", buffering=1)  # noqa: SIM115 (the runner's life)
    answer: Any = ResidentPool._answer_to

    def timed(pool: ResidentPool, *call: Any) -> Any:
        began = time.time()
        try:
            return answer(pool, *call)
        finally:
            spans.write(f"{began} {time.time()}\n")

    ResidentPool._answer_to = timed  # type: ignore[method-assign]
    runner.main()


if __name__ == "__main__":
    main()
