"""How long files of tests take: recorded by a run, and read to begin with those that take longest.

`tests/durations.json` has the seconds by file and lane. `make test-all ARGS=--record-durations`
writes those of the files that it runs.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[1] / "durations.json"
ONE_BY_ONE = ("test_small_scale.py",)  # their tests go to any worker
LANES = ("experiment", "matrix")


def unit(nodeid: str) -> str:
    """The file of a test, or the test where each may run on its own."""
    file = nodeid.partition("::")[0]
    return nodeid if file.rpartition("/")[2] in ONE_BY_ONE else file


def lane_of(names: Iterable[str]) -> str:
    """The lane of a test with these marks."""
    return next((lane for lane in LANES if lane in names), "test")


class Durations:
    """Seconds by file (`unit`) and lane, over all phases of its tests."""

    def __init__(self, recorded: Path = RECORDED) -> None:
        self._path = recorded
        self._seconds: dict[str, dict[str, float]] = {}
        if recorded.exists():
            self._seconds = json.loads(recorded.read_text(encoding="utf-8"))

    def seconds(self, unit: str, lane: str) -> float | None:
        """None if no run has recorded the tests of this lane."""
        return self._seconds.get(unit, {}).get(lane)

    def record(self, measured: Mapping[tuple[str, str], float]) -> None:
        """Write the table with what was measured; files that have gone leave it."""
        root = self._path.parents[1]
        for (name, lane), took_s in measured.items():
            self._seconds.setdefault(name, {})[lane] = round(took_s, 1)
        lines = [
            f"{json.dumps(name)}: {json.dumps(self._seconds[name])}"
            for name in sorted(self._seconds)
            if (root / name.partition("::")[0]).exists()
        ]
        self._path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


class Recorder:
    """Adds up what the tests of a run take, and records it when the run ends."""

    def __init__(self, durations: Durations) -> None:
        self._durations = durations
        self._measured: dict[tuple[str, str], float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._measured[unit(report.nodeid), lane_of(report.keywords)] += report.duration

    def pytest_sessionfinish(self) -> None:
        self._durations.record(self._measured)
