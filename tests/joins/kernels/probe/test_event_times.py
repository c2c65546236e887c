"""Event time of records: the numbers that watermarks are made of."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from joins.kernels.probe.event_times import EventTimes, OperatorWatermarks, Rises, late_records
from joins.plan.stream_topics import StreamTopics
from watermark import MAX_TIMESTAMP, MIN_TIMESTAMP


def times(*records):
    """Of (partition, offset, watermark); the rowtime does not matter."""
    table = np.array(records, dtype=np.int64).reshape(-1, 3)
    said = table[:, 2]
    rows = np.arange(len(table))
    return EventTimes(rows, table[:, 0], table[:, 1], said, said, said > MIN_TIMESTAMP)


def test_only_records_that_say_more_than_all_before_them_are_steps():
    rises = Rises()
    rises.add(times((0, 5, 7), (0, 6, 7), (0, 7, 9), (3, 0, MIN_TIMESTAMP), (3, 1, -4)))
    rises.add(times((0, 8, 8), (0, 9, 10), (3, 2, -5), (3, 3, -3)))
    assert rises.steps == {0: [[5, 7], [7, 9], [9, 10]], 3: [[1, -4], [3, -3]]}


BEFORE = {
    "it_stands_still_within_a_batch": (None, [4, 4, 4, 4]),
    "from_the_offset_on": ({0: [(10, 5), (12, 7)], 1: [(0, 8)]}, [5, 7, 7, 8]),
    "before_the_first_step_it_is_the_batchs": ({0: [(12, 7)]}, [4, 7, 7, 4]),
}


@pytest.mark.parametrize(("merged", "expected"), BEFORE.values(), ids=BEFORE)
def test_each_record_sees_the_watermark_before_it(merged, expected):
    records = times((0, 11, 0), (0, 12, 0), (0, 99, 0), (1, 3, 0))
    assert OperatorWatermarks.of(4, merged).before(records).tolist() == expected


def test_a_late_record_says_what_it_was_behind_as_far_as_that_is_a_date():
    instant = pa.timestamp("us", tz="UTC")
    arrivals = pa.table(
        {
            "_partition": pa.array([1, 1, 1], pa.int32()),
            "_offset": pa.array([7, 8, 9], pa.int64()),
            "_timestamp": pa.array([None, 5, 5], instant),
            "_value": pa.array([b"a", b"b", b"c"]),
            "_time": pa.array([-1, 1, 2]),
            "_wm": pa.array([0, MIN_TIMESTAMP, MAX_TIMESTAMP]),
        }
    )
    found = late_records(arrivals, StreamTopics.one("clicks"), "window").to_pylist()
    assert [each["watermark"] for each in found] == [datetime(1970, 1, 1, tzinfo=UTC), None, None]
    assert found[0]["event_time"] == datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    assert [each["offset"] for each in found] == [7, 8, 9]
    assert {each["reason"] for each in found} == {"window"}
    assert late_records(arrivals.slice(0, 0), StreamTopics.one("clicks"), "join").num_rows == 0
