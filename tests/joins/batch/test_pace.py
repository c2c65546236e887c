"""How fast batches go, by a clock that the test moves."""

import pytest

from joins.batch.probe_progress import Pace

# Each case: (begin, end, records) of batches, the begin of one that runs, the time of the question.
RATES = {
    "nobody_knows_before_the_first_batch": ([], None, 5.0, None),
    "one_batch_counts_from_its_begin": ([(0.0, 2.0, 100)], None, 4.0, 25.0),
    "a_moment_says_no_more_than_a_second": ([(0.0, 0.1, 5)], None, 0.1, 5.0),
    "of_short_batches_the_last_ten_seconds_count": (
        [(at, at + 0.5, 10) for at in range(30)],
        None,
        29.5,
        10 * 11 / 10.5,
    ),
    "a_stream_that_ends_falls_to_nothing": ([(0.0, 1.0, 100)], None, 60.0, 0.0),
    "a_batch_that_runs_does_not_lower_it": ([(0.0, 30.0, 3000)], 30.0, 55.0, 100.0),
    "a_batch_that_hangs_does": ([(0.0, 30.0, 3000)], 30.0, 500.0, 0.0),
}


@pytest.mark.parametrize(("ended", "running", "now", "rate"), RATES.values(), ids=RATES)
def test_records_a_second(ended, running, now, rate):
    pace = Pace()
    for begin, end, records in ended:
        pace.begin(begin)
        pace.end(end, records, 2 * records)
    if running is not None:
        pace.begin(running)
    assert pace.records_per_s(now) == (None if rate is None else pytest.approx(rate))
    assert pace.rows_per_s(now) == (None if rate is None else pytest.approx(2 * rate))


def test_the_time_of_a_batch_is_that_of_the_newest_which_this_runner_has_begun():
    pace = Pace()
    pace.end(1.0, 10)  # begun by the runner before
    assert pace.batch_ms is None
    pace.begin(1.0)
    pace.end(1.25, 10)
    assert pace.batch_ms == 250
    pace.begin(2.0)
    assert pace.batch_ms == 250


LATENCIES = {
    "none": ([], None),
    "first": ([(0.0, 0.2)], 200),
    "follows": ([(0.0, 0.2), (0.21, 0.5)], 500),
    "after_a_pause": ([(0.0, 0.2), (5.0, 5.1)], 100),
}


@pytest.mark.parametrize(("ended", "latency_ms"), LATENCIES.values(), ids=LATENCIES)
def test_a_record_that_just_missed_a_batch_waits_for_two(ended, latency_ms):
    pace = Pace()
    for begin, end in ended:
        pace.begin(begin)
        pace.end(end, 1)
    assert pace.latency_ms == latency_ms
