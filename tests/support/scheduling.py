"""Which worker runs which file: the longest first, and tests that share a JVM on few workers."""

from collections import OrderedDict, defaultdict
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.support.durations import LANES, TEST, Durations, unit

NONE, SPARK, RIG = "", "spark", "rig"
"""What a worker starts once and keeps: a Spark; a control plane whose runners share a driver."""
_START_S = 20.0
_UNKNOWN_S = 60.0
_KINDS = {
    **dict.fromkeys(
        (
            "tests/joins/batch/",
            "tests/joins/dimension/",
            "tests/joins/job/",
            "tests/joins/lookback/",
            "tests/joins/sinks/",
            "tests/joins/source/",
            "tests/joins/worker/",
            "tests/joins/test_examples.py",
            "tests/joins/test_loop.py",
            "tests/joins/adapters/delta/test_feed_spark.py",
            "tests/joins/adapters/delta/test_output.py",
            "tests/joins/kernels/probe/test_files.py",
        ),
        SPARK,
    ),
    "tests/e2e/": RIG,
    "tests/reliability/test_small_scale.py": RIG,
}


def kind_of(name: str) -> str:
    return next((kind for part, kind in _KINDS.items() if name.startswith(part)), NONE)


class ByFile(LoadFileScheduling):
    """Gives each worker the longest file of a kind: first of what it has started, else of no kind.

    A worker starts one more for a kind only if those that have it would end behind the others.
    """

    workqueue: OrderedDict[str, dict[str, bool]]

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._durations = Durations()
        marks = config.option.markexpr
        self._lanes = (TEST,) if "not experiment" in marks else LANES if marks else (TEST, *LANES)
        self._started = defaultdict[Any, set[str]](set)

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        kind = self._kind_for(node)
        scope = next(scope for scope in self.workqueue if kind_of(scope) == kind)
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)
        self._started[node].add(kind)

    def _kind_for(self, node: Any) -> str:
        left_s = defaultdict[str, float](float)
        for scope in self.workqueue:
            left_s[kind_of(scope)] += self._expected_s(scope)
        mean_s = sum(left_s.values()) / len(self.nodes)
        kinds = sorted(left_s.keys() - {NONE}, key=lambda kind: -left_s[kind])
        for kind in kinds:
            if kind in self._started[node]:
                return kind
        for kind in kinds:
            others = sum(kind in self._started[each] for each in self.nodes)
            if others and left_s[kind] / others > mean_s + _START_S:
                return kind
            if not others and left_s[kind] + _START_S > mean_s:
                return kind
        return NONE if NONE in left_s else kinds[0]

    def _expected_s(self, scope: str) -> float:
        recorded = (self._durations.seconds(scope, lane) for lane in self._lanes)
        known = [seconds for seconds in recorded if seconds is not None]
        return sum(known) if known else _UNKNOWN_S
