"""The work of a batch's tasks: what each has of the records, and in which order."""

import os
from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from joins.worker.work import (
    RECORDS_WORTH_A_TASK,
    Work,
    collected,
    nodes_for,
    numbered,
    split,
    spread,
)

SHARES = {
    "all_that_is_there": ({0: 5, 1: 7}, {0: 10, 1: 9}, 100, {0: 10, 1: 9}),
    "each_its_share": ({0: 0, 1: 0}, {0: 900, 1: 100}, 100, {0: 90, 1: 10}),
    "at_least_one": ({0: 0, 1: 0}, {0: 10_000, 1: 3}, 10, {0: 9, 1: 1}),
    "none_of_an_empty_one": ({0: 4, 1: 0}, {0: 4, 1: 50}, 10, {0: 4, 1: 10}),
    "a_new_partition_from_its_beginning": ({0: 4}, {0: 4, 1: 50}, 10, {0: 4, 1: 10}),
}


@pytest.mark.parametrize(("start", "end", "limit", "expected"), SHARES.values(), ids=SHARES)
def test_a_batch_has_a_share_of_each_partition(start, end, limit, expected):
    assert spread(start, end, limit) == expected


BOUNDS = st.tuples(st.integers(0, 50_000), st.integers(0, 50_000)).map(
    lambda each: tuple(sorted(each))
)
RANGES = st.dictionaries(st.integers(0, 9), BOUNDS, max_size=6)


@given(ranges=RANGES, tasks=st.integers(1, 9), whole=st.booleans())
def test_each_record_is_in_one_part_in_the_order_of_its_partition(ranges, tasks, whole):
    parts = split(ranges, tasks, whole=whole)
    joined: dict[int, tuple[int, int]] = {}
    for part in parts:
        assert part
        for partition, (first, end) in part.items():
            assert first < end
            assert joined.get(partition, (0, first))[1] == first, "parts follow each other"
            joined[partition] = (joined.get(partition, (first, 0))[0], end)
    assert joined == {p: bounds for p, bounds in ranges.items() if bounds[0] < bounds[1]}
    if whole:
        assert sum(map(len, parts)) == len(joined)


@given(ranges=RANGES, tasks=st.integers(1, 9))
def test_parts_are_about_equal_and_no_more_than_they_are_worth(ranges, tasks):
    parts = split(ranges, tasks)
    sizes = [sum(end - first for first, end in part.values()) for part in parts]
    assert len(sizes) <= min(tasks, -(-sum(sizes) // RECORDS_WORTH_A_TASK))
    assert max(sizes, default=0) - min(sizes[:-1], default=max(sizes, default=0)) <= 1


def test_a_task_gets_what_is_read_for_its_item(spark):
    def letters(batches):
        for batch in batches:
            for text in batch.column(0).to_pylist():
                yield pa.record_batch([list(text)], names=["letter"])

    def upper(batches):
        for batch in batches:
            yield pa.record_batch([[each.upper() for each in batch.column(0).to_pylist()]], ["x"])

    rows = Work(spark, ["ab", "c"], letters).map(upper, "x string").collect()
    assert [row.x for row in rows] == ["A", "B", "C"]
    rows = Work(spark, ["ab", "c"]).map(upper, "x string").collect()
    assert [row.x for row in rows] == ["AB", "C"], "without a reader: the items"


def texts_of(numbers: Iterable[int], of: bytes = b"") -> Iterator[str]:
    return (str(number + len(of)) for number in numbers)


def test_a_function_that_is_too_large_for_each_task_is_broadcast(spark):
    large = partial(texts_of, of=os.urandom(3 << 20))
    for _ in range(2):
        assert collected(spark.sparkContext, 2, (), large) == [str(3 << 20), str((3 << 20) + 1)]


def test_a_broadcast_that_a_function_names_is_there(spark):
    rows = spark.sparkContext.broadcast(b"12345")

    def lengths(numbers: Iterable[int]) -> Iterator[str]:
        return (str(number + len(rows.value)) for number in numbers)

    assert collected(spark.sparkContext, 2, (), lengths) == ["5", "6"]


def test_a_task_that_fails_says_why(spark):
    def fails(numbers: Iterable[int]) -> Iterator[str]:
        return (str(1 // number) for number in numbers)

    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        collected(spark.sparkContext, 1, (), fails)


def test_a_task_prefers_the_same_node_each_time_and_runs_where_there_is_none(spark):
    context, nodes = spark.sparkContext, ("one", "two", "three")
    assert collected(context, 5, nodes, texts_of) == list("01234"), "nobody is called so"
    placed = numbered(context, 5, nodes)
    preferred = [placed.preferredLocations(part).mkString() for part in placed.partitions()]
    assert preferred == ["one", "two", "three", "one", "two"]
    assert nodes_for(spark) == (), "all is on this machine"
