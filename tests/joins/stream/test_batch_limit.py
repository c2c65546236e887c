"""The bytes of a micro-batch: how many records may be in it."""

import pytest

from joins.stream.bounds import BatchLimit

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
    limit = BatchLimit(1_000, MIB)
    limit.begin(average)
    assert limit.records() == records


def test_a_backlog_is_drained_while_batches_are_half_full():
    limit = BatchLimit(1_000, MIB)
    limit.records()
    assert not limit.is_draining()
    for records, draining in ((1_000, True), (500, True), (499, False), (1_000, True), (3, False)):
        limit.record({"records": records, "bytes": 1})
        assert limit.is_draining() == draining


def test_what_batches_have_shown_lowers_the_limit_of_the_next_one():
    limit = BatchLimit(1_000, MIB)
    limit.begin(4096.0)
    assert limit.records() == 256
    limit.record({"records": 256, "bytes": 8 * MIB})
    assert limit.records() == 32
    limit.record({"records": 32, "bytes": MIB})
    limit.begin(5000.0)
    assert limit.records() == 32


def test_records_that_become_large_count_at_once_after_a_long_time():
    limit = BatchLimit(1_000, MIB)
    limit.record({"records": 10**9, "bytes": 10**11})
    assert limit.records() == 1_000
    limit.record({"records": 1_000, "bytes": 128 * MIB})
    assert limit.records() == 7
    limit.record({"records": 0, "bytes": 0})
    assert limit.records() == 7
    limit.record({"records": 7, "bytes": 700})
    assert limit.records() == 1_000


def test_batches_of_an_old_writer_that_counts_nothing_change_nothing():
    limit = BatchLimit(1_000, MIB)
    limit.begin(4096.0)
    limit.record({"joined": 5})
    assert limit.records() == 256
