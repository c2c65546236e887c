"""Where a bounded stream ends: offsets are cut there, and a job knows when it is there."""

from dataclasses import replace

import pytest

from joins.durable.probe_lives import Life
from joins.plan.stream_topics import StreamTopics
from joins.stream.bounds import behind_backlog, cut, is_reached, resumption, up_to_backlog
from joins.stream.guards import Marks, TopicView

END = {0: 10, 1: 0}
CUT = {
    "without_an_end": ({0: 99, 3: 1}, None, {0: 99, 3: 1}),
    "before_it": ({0: 9, 1: 0}, END, {0: 9, 1: 0}),
    "beyond_it": ({0: 11, 1: 7}, END, {0: 10, 1: 0}),
    "a_partition_that_came_later": ({0: 10, 1: 0, 2: 5}, END, {0: 10, 1: 0}),
    "a_partition_that_is_gone": ({0: 10}, END, {0: 10}),
}


@pytest.mark.parametrize(("offsets", "end", "left"), CUT.values(), ids=CUT)
def test_offsets_are_cut_at_the_end(offsets, end, left):
    assert cut(offsets, end) == left


REACHED = {
    "never_without_an_end": ({0: 99}, None, False),
    "one_partition_is_short": ({0: 9, 1: 0}, END, False),
    "all_are_there": ({0: 10, 1: 0}, END, True),
    "nothing_to_read_of_a_partition": ({0: 10}, END, True),
    "beyond": ({0: 10, 1: 3, 2: 1}, END, True),
    "no_partition_at_all": ({}, {}, True),
}


@pytest.mark.parametrize(("offsets", "end", "answer"), REACHED.values(), ids=REACHED)
def test_the_end_is_reached_when_every_partition_is_there(offsets, end, answer):
    assert is_reached(offsets, end) is answer


BACKLOGS = {
    "no_backlog": ({0: 3}, {0: 99, 1: 5}, None, {0: 99, 1: 5}, []),
    "within_it": ({0: 3, 1: 0}, {0: 9, 1: 0}, END, {0: 9, 1: 0}, [1]),
    "never_across_its_end": ({0: 3, 1: 0}, {0: 99, 1: 5}, END, {0: 10, 1: 5}, [0, 1]),
    "behind_it_all_is_read": ({0: 10, 1: 5}, {0: 99, 1: 7}, END, {0: 99, 1: 7}, [0, 1]),
    "a_partition_that_came_later_has_none": ({0: 3}, {0: 5, 2: 8}, END, {0: 5, 2: 8}, [2]),
    "it_starts_behind_it": ({0: 50, 1: 0}, {0: 50, 1: 0}, END, {0: 50, 1: 0}, [0, 1]),
}


@pytest.mark.parametrize(("start", "there", "end", "upto", "read"), BACKLOGS.values(), ids=BACKLOGS)
def test_no_batch_reads_across_the_end_of_a_backlog(start, there, end, upto, read):
    assert up_to_backlog(start, there, end) == upto
    assert behind_backlog(upto, end) == read


LIFE = Life(
    "probe", 0, StreamTopics.one("clicks", "id-1"), {0: 10, 1: 0}, end_offsets={0: 50, 1: 20}
)
DONE = {0: 30, 1: 10}
SEEN = Marks({0: 50, 1: 20})
RESUMED = {
    "all_is_there": (TopicView(("id-1",), {0: 0, 1: 0}, {0: 50, 1: 20}), SEEN, {0: 50, 1: 20}),
    "records_before_the_end_are_lost": (
        TopicView(("id-1",), {0: 0, 1: 0}, {0: 40, 1: 20}),
        Marks({0: 50, 1: 20}, {0: 40}),
        {0: 40, 1: 20},
    ),
    "joined_records_are_lost_too": (
        TopicView(("id-1",), {0: 0, 1: 0}, {0: 5, 1: 20}),
        Marks({0: 50, 1: 20}, {0: 5}),
        {0: 5, 1: 20},
    ),
    "the_end_was_not_written_yet": (
        TopicView(("id-1",), {0: 0, 1: 0}, {0: 40, 1: 20}),
        Marks({0: 45, 1: 20}, {0: 40}),
        {0: 50, 1: 20},
    ),
    "retention_was_faster": (
        TopicView(("id-1",), {0: 50, 1: 0}, {0: 50, 1: 20}),
        SEEN,
        {0: 50, 1: 20},
    ),
    "a_partition_is_gone": (TopicView(("id-1",), {0: 0}, {0: 50}), SEEN, {0: 50}),
    "a_transaction_is_open": (
        TopicView(("id-1",), {0: 0, 1: 0}, {0: 35, 1: 20}, {0: 50}),
        SEEN,
        {0: 50, 1: 20},
    ),
    "another_topic_with_an_open_transaction": (
        TopicView(("id-2",), {0: 0, 1: 0}, {0: 7, 1: 0}, {0: 9}),
        SEEN,
        {0: 7, 1: 0},
    ),
    "another_topic": (
        TopicView(("id-2",), {0: 0, 1: 0, 2: 0}, {0: 7, 1: 0, 2: 3}),
        SEEN,
        {0: 7, 1: 0, 2: 3},
    ),
}


@pytest.mark.parametrize(("view", "marks", "end"), RESUMED.values(), ids=RESUMED)
def test_a_new_life_ends_where_there_is_something_to_wait_for(view, marks, end):
    resumed = resumption(LIFE, DONE, marks, view)
    assert resumed.end_offsets == end
    assert all(resumed.start_offsets[p] <= last for p, last in end.items())
    assert resumption(replace(LIFE, end_offsets=None), DONE, marks, view).end_offsets is None
    backlog = replace(LIFE, end_offsets=None, backlog_offsets=LIFE.end_offsets)
    assert resumption(backlog, DONE, marks, view).backlog_offsets == end
