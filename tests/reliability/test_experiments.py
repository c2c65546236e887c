"""What the experiments plan; `.ci/run` runs them small, `make reliability` at full scale."""

import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import partial

import pytest

from tests.reliability import event_runs, event_switch, event_time, job_update
from tests.reliability.__main__ import Lanes
from tests.reliability.crash_points import (
    ACTIONS,
    IMPOSSIBLE,
    POINTS,
    POSITIONS,
    all_cases,
    full_runs,
    listing,
)
from tests.reliability.crash_shapes import compare, parts_of
from tests.reliability.event_runs import Run
from tests.reliability.oracle import Verdict
from tests.support.rig import is_alive
from tests.support.wait import wait_until

pytestmark = pytest.mark.matrix


def test_every_combination_is_run_or_has_a_reason() -> None:
    planned = [case for cases in full_runs().values() for case in cases]
    assert sorted(map(str, planned)) == sorted(map(str, all_cases()))
    assert len(planned) >= 100
    total = len(POINTS) * len(ACTIONS) * len(POSITIONS)
    in_table = [case for case in planned if case.action in ACTIONS]
    assert len(in_table) + len(IMPOSSIBLE) * len(POSITIONS) == total
    assert all(any(f"{p} {a}: cannot exist, " in line for line in listing()) for p, a in IMPOSSIBLE)


def test_each_job_with_event_time_meets_every_point_in_three_ways_and_is_killed_at_random() -> None:
    jobs = f": {event_time.JOIN}, {event_time.WINDOWS}, {event_time.BOTH}: "
    lines = [line for line in event_time.listing() if jobs in line]
    for point in event_runs.POINTS:
        for action in ("kill", "raise"):
            assert len(faults_of(lines, f"{point}={action}")) == 3, (point, action)
    assert lines[-1].endswith(": random kills")
    assert [line.partition(":")[0] for line in lines[:3]] == ["kill-1", "raise-1", "enospc-1"]


@pytest.mark.parametrize("job", [event_switch.SWITCH, event_switch.AHEAD])
def test_a_stream_meets_every_point_in_the_batch_that_switches_and_in_the_next_one(
    job: str,
) -> None:
    lines = [line for line in event_time.listing() if f": {job}: " in line]
    switch = min(map(int, faults_of(lines, "C2=kill")))
    for point in event_runs.POINTS:
        met = [faults_of(lines, f"{point}={action}") for action in ("kill", "raise")]
        assert {int(at) for batches in met for at in batches} == {switch, switch + 1}, point


def faults_of(lines: Sequence[str], fault: str) -> list[str]:
    told = [each for line in lines for each in line.rpartition(": ")[2].split()]
    return [each.rpartition("#")[2] for each in told if each.startswith(f"{fault}#")]


def test_a_job_is_changed_around_every_point_before_and_behind_it_and_back() -> None:
    cases = job_update.all_cases()
    assert len(cases) == len(set(cases)) >= 72
    possible = {(c.point, c.action) for c in all_cases() if c.point in job_update.POINTS}
    for moment in (job_update.OLD, job_update.NEW):
        assert {(c.point, c.action) for c in cases if c.moment == moment} == possible
    assert {c.point for c in cases if c.moment == job_update.BACK} == {*job_update.POINTS}


def test_rows_of_shapes_that_are_lost_doubled_or_of_nothing_are_noted() -> None:
    rows = parts_of(b'{"id": 2, "tags": ["a", "b"], "at": "2026-01-01 00:00:02"}')
    assert rows is not None
    assert len(rows) == 4
    assert parts_of(b'{"id":1,"tags":7}') is None
    whole, tag, *others = rows
    verdict = Verdict()
    compare(verdict, "parts", Counter(rows), Counter([tag, tag, *others, (9, "tag", "x", None)]))
    assert (verdict.lost, verdict.duplicate, verdict.phantom) == (1, 1, 1)
    assert str(whole) in verdict.examples[0]
    assert not verdict.ok


def test_a_run_is_chosen_by_its_name_or_with_one_of_its_jobs() -> None:
    planned = [Run("kill-1", ("as-of", "windows"), ("C2=kill#0",)), Run("storm", ("as-of",), (), 3)]
    chosen = partial(event_time.chosen_runs, planned)
    assert chosen(None) == planned
    assert chosen("storm") == planned[1:]
    assert chosen("kill-1 windows") == [Run("kill-1", ("windows",), ("C2=kill#0",))]


def test_a_run_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    planned = [Run("every-point", ("as-of",), ()), Run("commits", ("as-of",), ())]
    with pytest.raises(ValueError, match=r'no run is named "kill-9": every-point, commits'):
        event_time.chosen_runs(planned, "kill-9")


def test_whoever_ends_the_lanes_ends_all_that_runs_in_them(tmp_path, processes) -> None:
    files = [tmp_path / "one", tmp_path / "two"]

    def run(file):
        lanes.run_within(["sh", "-c", f"sleep 1000 & echo $! > {file}; wait"], None)

    with Lanes(2) as lanes:
        lanes.each(run, files)
        wait_until(lambda: all(f.exists() and f.read_text() for f in files), what="both run")
    pids = [int(file.read_text()) for file in files]
    wait_until(lambda: not any(map(is_alive, pids)), what="both are gone")


def test_a_command_that_runs_out_of_its_time_is_ended(processes) -> None:
    with Lanes(1) as lanes, pytest.raises(subprocess.TimeoutExpired):
        lanes.run_within(["sleep", "1000"], 0.1)
