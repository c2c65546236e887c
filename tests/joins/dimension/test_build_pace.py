"""The rest between build batches: commits of a drain are as far apart as they should be."""

import pytest

from joins.dimension.build_side import APART_S, BuildPace


class Clock:
    """Time that passes when it is told to, or waited for."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds


def commits(draining: bool, batches_s: list[float]) -> list[float]:
    """When batches that take so long are committed, from the beginning of the first."""
    clock = Clock()
    pace, began_s, found = BuildPace(lambda: draining, clock.wait, clock), clock.now_s, []
    for batch_s in batches_s:
        clock.now_s += batch_s
        found.append(clock.now_s - began_s)
        pace.rest()
    return found


PACES = {
    "nothing_waits": (False, [0.2, 0.3], [0.2, 0.5]),
    "equal_batches_of_a_drain": (True, [0.5, 0.5, 0.5], [0.5, 0.5 + APART_S, 0.5 + 2 * APART_S]),
    "a_longer_one_is_later_by_the_difference": (True, [0.5, 0.75], [0.5, 0.75 + APART_S]),
    "one_that_took_longer_than_the_rest": (True, [3.0, 0.5], [3.0, 3.5]),
}


@pytest.mark.parametrize(("draining", "batches_s", "at_s"), PACES.values(), ids=PACES)
def test_commits_of_the_build_side_are_apart(draining, batches_s, at_s):
    assert commits(draining, batches_s) == pytest.approx(at_s)
