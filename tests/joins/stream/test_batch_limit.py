"""The bytes of a micro-batch: how many records may be in it, and when that was too many."""

import pytest

from joins.stream.batch_limit import BatchLimit

MIB = 1 << 20
RECORDS = {
    "nothing_is_known": (None, 1_000),
    "an_empty_topic": (0.0, 1_000),
    "small_records": (100.0, 1_000),
    "records_of_4_kib": (4096.0, 256),
    "a_little_less_than_the_limit": (MIB - 1, 1),
    "records_above_the_limit_pass_one_by_one": (5.0 * MIB, 1),
}


@pytest.mark.parametrize(("average", "records"), RECORDS.values(), ids=RECORDS)
def test_a_batch_has_as_many_records_as_fit_and_at_least_one(average, records):
    assert BatchLimit(1_000, MIB).begin(average) == records


def test_records_are_small_by_what_is_known_of_them():
    limit = BatchLimit(1_000, MIB)
    assert not limit.is_of_small_records(), "nothing is known"
    limit.begin(100.0)
    assert limit.is_of_small_records()
    limit.record({"records": 10, "bytes": 20_000})
    assert not limit.is_of_small_records(), "the topic was compressed"


def test_a_backlog_is_drained_while_batches_are_half_full():
    limit = BatchLimit(1_000, MIB)
    limit.begin(None)
    assert not limit.is_draining()
    for records, draining in ((1_000, True), (500, True), (499, False), (1_000, True), (3, False)):
        limit.record({"records": records, "bytes": 1})
        assert limit.is_draining() == draining


HEAVY = {
    "before_the_query_runs": (None, {"records": 100, "bytes": 9 * MIB}, False),
    "as_expected": (4096.0, {"records": 256, "bytes": MIB}, False),
    "a_little_heavier": (4096.0, {"records": 256, "bytes": 2 * MIB}, False),
    "the_topic_was_compressed": (4096.0, {"records": 256, "bytes": 10 * MIB}, True),
    "nothing_was_known": (0.0, {"records": 1_000, "bytes": 3 * MIB}, True),
    "one_huge_record": (4096.0, {"records": 1, "bytes": 50 * MIB}, False),
    "an_old_writer_that_does_not_count": (4096.0, {"joined": 5}, False),
    "no_smaller_limit_would_help": (MIB, {"records": 2, "bytes": 9 * MIB}, False),
}


@pytest.mark.parametrize(("average", "counts", "high"), HEAVY.values(), ids=HEAVY)
def test_a_limit_is_too_high_when_a_batch_was_much_heavier(average, counts, high):
    limit = BatchLimit(1_000, MIB)
    if average is not None:
        limit.begin(average)
    limit.record(counts)
    assert limit.is_too_high() is high


def test_what_a_batch_has_shown_lowers_the_limit_for_good():
    limit = BatchLimit(1_000, MIB)
    assert limit.begin(4096.0) == 256
    limit.record({"records": 256, "bytes": 8 * MIB})
    assert limit.begin(4096.0) == 32
    assert not limit.is_too_high()
    limit.record({"records": 32, "bytes": MIB})
    assert limit.begin(5000.0) == 32


def test_one_huge_record_among_many_does_not_lower_the_limit():
    limit = BatchLimit(1_000, MIB)
    limit.begin(4096.0)
    for size in (*[MIB] * 10, 3 * MIB):
        limit.record({"records": 256, "bytes": size})
    assert not limit.is_too_high()
