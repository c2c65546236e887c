"""The log of a runner while it runs: bounded, and its newest lines are there."""

import os

import pytest

from service.jobs.supervise.runner_process import RunnerLog, older, tail_before


@pytest.fixture
def log(tmp_path):
    return tmp_path / "runner.log"


def opened(log, mode=os.O_APPEND):
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | mode, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8")


def lines(first, last):
    return "".join(f"+I[{number:09d}]\n" for number in range(first, last))


def test_a_log_is_bounded_while_rows_are_printed_and_none_of_the_newest_is_lost(log):
    limit, printed = 1 << 20, 0
    with opened(log) as stream, opened(log) as of_a_child:
        bounded = RunnerLog(log, stream, limit)
        for _ in range(60):
            bounded.write(lines(printed, printed + 6_000))
            printed += 6_000
            bounded.flush()
            of_a_child.write("log\n")
            of_a_child.flush()
            assert log.stat().st_size <= limit + len(lines(0, 6_000))
    told = (older(log).read_text() + log.read_text()).replace("log\n", "")
    assert limit < len(told) <= 3 * limit
    assert told == lines(printed - told.count("\n"), printed)
    assert sorted(path.name for path in log.parent.iterdir()) == ["runner.log", "runner.log.1"]
    assert older(log).stat().st_mode & 0o777 == 0o600


def test_a_batch_of_many_rows_is_bounded_too(log):
    with opened(log) as stream:
        bounded = RunnerLog(log, stream, 1 << 20)
        for first in range(0, 600_000, 100):
            bounded.write(lines(first, first + 100))
        assert log.stat().st_size <= 3 << 20


def test_a_preview_is_kept_as_a_whole(log):
    with opened(log) as stream:
        bounded = RunnerLog(log, stream, 1_000)
        bounded.keep_all()
        bounded.write(lines(0, 1_000))
        bounded.flush()
    assert (log.read_text(), older(log).exists()) == (lines(0, 1_000), False)


@pytest.mark.parametrize("case", ["another_file", "not_appended"])
def test_what_is_not_the_log_is_left_as_it_is(log, case):
    log.write_text("")
    other = log.with_name("other")
    with opened(
        other if case == "another_file" else log, os.O_APPEND * (case != "not_appended")
    ) as s:
        RunnerLog(log, s, 10).write(lines(0, 100))
        RunnerLog(log, s, 10).flush()
    assert (other if case == "another_file" else log).read_text() == lines(0, 100)


def test_the_end_of_a_log_goes_back_to_the_part_before(log):
    assert tail_before(log, 5) == b""
    older(log).write_text("0123456789")
    assert (tail_before(log, 4), tail_before(log, 99)) == (b"6789", b"0123456789")
