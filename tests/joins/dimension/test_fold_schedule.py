"""When a fold pays."""

from dataclasses import replace

import pytest

from joins.dimension.fold import SMALL_ROWS, FoldPolicy, FoldSchedule
from joins.kernels.changelog.digest import ChangelogState
from joins.worker.index_source import Folded, fold_metadata

ROWS = SMALL_ROWS + 1_000_000
BEFORE = ChangelogState(next_offsets={0: 600_000, 1: 500_000}, snapshot_rows=ROWS, generation=1)
POLICY = FoldPolicy(share=0.1, latest_s=600.0)


def changed(records: int, **more: int) -> ChangelogState:
    return replace(BEFORE, next_offsets={0: 600_000, 1: 500_000 + records}, **more)


CASES = {
    "nothing_new_is_never_due": (changed(0), 10_000.0, False),
    "few_changes_wait": (changed(99_999), 599.0, False),
    "many_changes_are_due": (changed(100_000), 0.0, True),
    "few_changes_do_not_wait_for_ever": (changed(1), 600.0, True),
    "a_new_generation_is_due": (changed(1, generation=2), 0.0, True),
    "a_small_table_is_folded_each_time": (changed(1, snapshot_rows=SMALL_ROWS), 0.0, True),
}


@pytest.mark.parametrize(("state", "later_s", "due"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("restarted", [False, True])
def test_what_is_due(state: ChangelogState, later_s: float, due: bool, restarted: bool):
    now = [100.0]
    if restarted:
        schedule = FoldSchedule(POLICY, Folded.of(BEFORE), lambda: now[0])
    else:
        schedule = FoldSchedule(POLICY, None, lambda: now[0])
        schedule.folded(BEFORE)
    now[0] += later_s
    assert schedule.is_due(state) is due


def test_the_first_fold_does_not_wait():
    assert FoldSchedule(POLICY).is_due(changed(1))


def test_a_share_of_nothing_never_waits():
    schedule = FoldSchedule(FoldPolicy(share=0.0), Folded.of(BEFORE))
    assert schedule.is_due(changed(1))


def test_a_fold_tells_the_next_runner_how_far_it_went():
    assert [1_100_000, 1] in fold_metadata(7, BEFORE).values()
