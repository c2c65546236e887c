"""How long tests take, as a run has recorded it: orders files, and tells which tests are slow.

`tests/durations.json` has the seconds by file and lane, and the functions of pure tests that take
`SLOW_S` or more on average. `--record-durations` replaces what a run measures.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[1] / "durations.json"
ONE_BY_ONE = ("test_small_scale.py",)  # their tests go to any worker
SLOW_S = 0.3
TEST, LANES = "test", ("experiment", "matrix")
_DEAR_S = 10.0  # a unit that takes less is in every share
_LEAST_TIMES = 2.0  # other tests run beside it
_SEEN_S = 10.0  # one short test says little about the machine


def unit(nodeid: str) -> str:
    """The file of a test, or the test where each may run on its own."""
    file = nodeid.partition("::")[0]
    return nodeid if file.rpartition("/")[2] in ONE_BY_ONE else file


def lane_of(names: Iterable[str]) -> str:
    """The lane of a test with these marks."""
    return next((lane for lane in LANES if lane in names), TEST)


@dataclass
class Measured:
    """What a run has taken: seconds by file (`unit`) and lane; of pure functions, by test."""

    files: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    functions: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, nodeid: str, marks: Iterable[str], took_s: float) -> None:
        names = set(marks)
        self.files[unit(nodeid), lane_of(names)] += took_s
        if "slow" in names or not names & {"servers", *LANES}:
            tests = self.functions[function_of(nodeid)]
            tests[nodeid] = tests.get(nodeid, 0.0) + took_s

    def is_slow(self, function: str) -> bool:
        tests = self.functions[function]
        return sum(tests.values()) / len(tests) >= SLOW_S


def function_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


class Durations:
    """The recorded table."""

    def __init__(self, recorded: Path = RECORDED) -> None:
        self._path = recorded
        self._files: dict[str, dict[str, float]] = {}
        self.slow: frozenset[str] = frozenset()
        if recorded.exists():
            table = json.loads(recorded.read_text(encoding="utf-8"))
            self._files, self.slow = table["files"], frozenset(table["slow"])

    def seconds(self, unit: str, lane: str) -> float | None:
        """Over all phases of its tests; None if no run has recorded those of this lane."""
        return self._files.get(unit, {}).get(lane)

    def record(self, measured: Measured) -> None:
        """Write the table with what was measured; files that have gone leave it."""
        for (name, lane), took_s in measured.files.items():
            self._files.setdefault(name, {})[lane] = round(took_s, 1)
        kept = self.slow - measured.functions.keys()
        self.slow = kept | set(filter(measured.is_slow, measured.functions))
        files = {name: self._files[name] for name in sorted(self._files) if self._exists(name)}
        slow = [name for name in sorted(self.slow) if self._exists(name)]
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(files[name])}" for name in files)
        names = ",\n".join(map(json.dumps, slow))
        text = f'{{"files": {{\n{lines}\n}},\n"slow": [\n{names}\n]}}\n'
        self._path.write_text(text, encoding="utf-8")

    def _exists(self, name: str) -> bool:
        return (self._path.parents[1] / name.partition("::")[0]).exists()


def shares_of(seconds: Mapping[str, float], count: int) -> dict[str, int]:
    """The share, 1 to `count`, of each unit that takes long; shares take about the same time."""
    shares: dict[str, int] = {}
    totals = dict.fromkeys(range(1, count + 1), 0.0)
    dear = [name for name in sorted(seconds) if seconds[name] >= _DEAR_S]
    for name in sorted(dear, key=lambda name: -seconds[name]):
        shares[name] = min(totals, key=lambda share: totals[share])
        totals[shares[name]] += seconds[name]
    return shares


class TimeLeft:
    """Whether a test can end by `ends_at` (Unix seconds) on a machine as slow as this one is."""

    def __init__(self, ends_at: float, now: Callable[[], float] = time.time) -> None:
        self._ends_at, self._now = ends_at, now
        self._took_s = self._expected_s = _SEEN_S

    def is_enough_for(self, expected_s: float) -> bool:
        times_slower = max(_LEAST_TIMES, self._took_s / self._expected_s)
        return self._now() + times_slower * expected_s < self._ends_at

    def add(self, expected_s: float, took_s: float) -> None:
        """Learn from a test; one that no run has recorded tells nothing."""
        if expected_s:
            self._took_s += took_s
            self._expected_s += expected_s


class Recorder:
    """Measures the tests of a run, and records it when the run ends."""

    def __init__(self, durations: Durations) -> None:
        self._durations, self._measured = durations, Measured()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._measured.add(report.nodeid, report.keywords, report.duration)

    def pytest_sessionfinish(self) -> None:
        self._durations.record(self._measured)
