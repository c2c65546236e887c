"""The table of seconds by which files are ordered and slow tests known."""

from types import SimpleNamespace

import pytest

from tests.support.durations import (
    SLOW_S,
    Durations,
    Measured,
    Recorder,
    TimeLeft,
    lane_of,
    shares_of,
    unit,
)


@pytest.fixture
def table(tmp_path):
    """Where the table of a project with two files of tests is."""
    (tmp_path / "tests").mkdir()
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / "tests" / name).touch()
    return tmp_path / "tests" / "durations.json"


def measured(*tests):
    """Of tests: name, marks, seconds of a phase."""
    made = Measured()
    for name, marks, took_s in tests:
        made.add(f"tests/{name}", marks, took_s)
    return made


def test_a_run_replaces_what_it_has_measured_and_keeps_the_rest(table):
    Durations(table).record(
        measured(
            ("test_a.py::one", (), 1.23),
            ("test_a.py::two", ("matrix",), 40),
            ("test_b.py::one", (), 0.01),
        )
    )
    Durations(table).record(measured(("test_a.py::one", (), 2)))
    (table.parent / "test_b.py").unlink()
    read = Durations(table)
    assert [read.seconds("tests/test_a.py", lane) for lane in ("test", "matrix")] == [2, 40]
    assert read.seconds("tests/test_a.py", "experiment") is None
    assert read.seconds("tests/test_b.py", "test") == 0
    read.record(measured())
    assert Durations(table).seconds("tests/test_b.py", "test") is None, "the file has gone"


def test_a_pure_function_is_slow_if_its_tests_are_on_average(table):
    first = (
        ("test_a.py::quick[1]", (), 2 * SLOW_S),
        ("test_a.py::quick[2]", (), 0),
        ("test_a.py::quick[3]", (), 0),
        ("test_a.py::slow", (), SLOW_S / 2),  # its set-up
        ("test_a.py::slow", (), SLOW_S / 2),
        ("test_a.py::with_servers", ("servers",), 9),
        ("test_a.py::in_ci", ("matrix",), 9),
        ("test_a.py::left_to_ci", ("matrix", "slow"), 9),
        ("test_b.py::slow", (), 9),
    )
    Durations(table).record(measured(*first))
    kept = {"tests/test_b.py::slow", "tests/test_a.py::left_to_ci"}
    assert Durations(table).slow == {*kept, "tests/test_a.py::slow"}
    Durations(table).record(measured(("test_a.py::slow", (), 0), ("test_a.py::quick[1]", (), 9)))
    assert Durations(table).slow == {*kept, "tests/test_a.py::quick"}


def test_all_phases_of_all_tests_of_a_file_count(table):
    recorder = Recorder(Durations(table))
    for node, marks, took_s in (("one", {}, 1), ("one", {}, 2), ("two[x]", {"matrix": 1}, 4)):
        report = SimpleNamespace(nodeid=f"tests/test_a.py::{node}", keywords=marks, duration=took_s)
        recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    read = Durations(table)
    assert [read.seconds("tests/test_a.py", lane) for lane in ("test", "matrix")] == [3, 4]


def test_a_lane_is_that_of_the_rarest_mark():
    marks = [(), ("servers",), ("matrix", "servers"), ("experiment", "matrix")]
    assert [lane_of(names) for names in marks] == ["test", "test", "matrix", "experiment"]


def test_shares_take_about_the_same_time_and_what_is_quick_is_in_each():
    seconds = {"a": 60, "b": 40, "c": 30, "d": 20, "e": 20, "f": 10, "quick": 9.9}
    shares = shares_of(seconds, 3)
    assert shares.keys() == seconds.keys() - {"quick"}
    totals = [sum(seconds[each] for each in shares if shares[each] == own) for own in (1, 2, 3)]
    assert sorted(totals) == [60, 60, 60]
    assert set(shares_of(seconds, 1).values()) == {1}


def test_experiments_at_small_scale_are_listed_one_by_one():
    assert unit("tests/e2e/test_join.py::test_a[b::c]") == "tests/e2e/test_join.py"
    alone = "tests/reliability/test_small_scale.py::test_each[laws]"
    assert unit(alone) == alone


@pytest.mark.parametrize(
    ("now_s", "times_slower", "expected_s", "is_enough"),
    [
        (0, 1, 499, True),  # others run beside it: twice its time is needed
        (0, 1, 501, False),
        (0, 8, 100, True),
        (0, 8, 200, False),
        (999, 8, 0, True),
        (1000, 1, 0, False),
    ],
)
def test_no_test_begins_that_could_not_end_in_time(now_s, times_slower, expected_s, is_enough):
    left = TimeLeft(1000, lambda: now_s)
    left.add(10_000, times_slower * 10_000)
    left.add(0, 10_000_000)  # of which no run has recorded anything
    assert left.is_enough_for(expected_s) is is_enough


def test_without_a_limit_each_test_begins():
    assert TimeLeft(float("inf")).is_enough_for(1e9)
