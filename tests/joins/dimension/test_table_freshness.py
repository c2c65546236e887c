"""What a table proves: answers meet the ends of the changelog, and survive restarts and losses."""

import time

from joins.dimension.freshness import TableFreshness
from watermark.freshness import Proof, ProofKind
from watermark.model import Watermark


def answered(freshness, time_ms, topic=0):
    freshness.answered(Proof(time_ms, {"at": time_ms}), topic)


def test_an_answer_counts_once_what_was_there_is_committed():
    freshness = TableFreshness()
    answered(freshness, 10)
    assert freshness.at({0: 99}, has_ended=False) is None

    freshness.placed(freshness.waiting(), 0, {0: 7}, {})

    assert freshness.at({0: 6}, has_ended=False) is None
    assert freshness.at({0: 7}, has_ended=False).time_ms == 10


def test_an_answer_that_comes_after_the_look_waits_for_the_next_one():
    freshness = TableFreshness()
    answered(freshness, 10)
    count = freshness.waiting()
    answered(freshness, 20)

    freshness.placed(count, 0, {0: 7}, {})
    assert freshness.at({0: 7}, has_ended=False).time_ms == 10

    freshness.placed(freshness.waiting(), 0, {0: 7}, {})
    assert freshness.at({0: 7}, has_ended=False).time_ms == 20


def test_answers_stay_few_while_a_build_side_stands_still():
    freshness = TableFreshness()
    for time_ms in range(1, 5_001):
        answered(freshness, time_ms)
    assert freshness.waiting() < 5_000

    freshness.placed(freshness.waiting(), 0, {0: 7}, {})
    answered(freshness, 6_000)
    freshness.placed(freshness.waiting(), 0, {0: 8}, {})

    assert freshness.at({0: 7}, has_ended=False).time_ms < 5_000
    assert freshness.at({0: 8}, has_ended=False).time_ms == 6_000


def test_what_a_lost_topic_had_is_never_proven():
    """The new topic's offsets are higher, but its records are not those of the lost one."""
    freshness = TableFreshness()
    answered(freshness, 10)
    freshness.placed(1, 0, {0: 7}, {})
    answered(freshness, 20)
    freshness.placed(1, 0, {0: 12}, {0: 7})
    answered(freshness, 30)  # of the first topic, which is lost now

    freshness.placed(freshness.waiting(), 1, {0: (1 << 40) + 3}, {0: 7})

    assert freshness.at({0: (1 << 40) + 9}, has_ended=False).time_ms == 10

    answered(freshness, 40, topic=1)
    freshness.placed(1, 1, {0: (1 << 40) + 3}, {0: 7})
    assert freshness.at({0: (1 << 40) + 3}, has_ended=False).time_ms == 40


def test_a_restart_goes_on_from_the_newest_pin():
    freshness = TableFreshness()
    freshness.restore(Proof(10, {"at": 10}))

    assert freshness.at({0: 3}, has_ended=False).time_ms == 10
    assert freshness.at(None, has_ended=False).time_ms == 10

    answered(freshness, 20)
    freshness.placed(1, 0, {0: 7}, {})
    assert freshness.at({0: 3}, has_ended=False).time_ms == 10
    assert freshness.at({0: 7}, has_ended=False).time_ms == 20


def test_a_source_that_has_ended_is_always_as_of_now():
    freshness, before_ms = TableFreshness(), time.time_ns() // 1_000_000

    proof = freshness.at({}, has_ended=True)

    assert proof.time_ms >= before_ms
    assert proof.kind is ProofKind.ENDED


def test_a_shared_table_has_what_its_job_hands_on():
    freshness = TableFreshness()
    freshness.handed_on(Proof(10, {"at": 10}, {0: 7}))

    assert freshness.at({0: 6}, has_ended=False) is None
    assert freshness.at({0: 7}, has_ended=False).time_ms == 10

    freshness.handed_on(Proof(20, {}, kind=ProofKind.ENDED))
    assert freshness.at({0: 7}, has_ended=False).kind is ProofKind.ENDED


def test_a_channel_carries_the_time_of_what_it_has_committed():
    freshness = TableFreshness()
    assert freshness.channel(0, 9, has_ended=False) is None
    assert freshness.said() is None
    answered(freshness, 10)
    freshness.placed(1, 0, {0: 7, 1: 3}, {})
    answered(freshness, 20)

    assert freshness.channel(0, 7, has_ended=False) == Watermark(10, use_processing_time=True)
    assert freshness.channel(1, 2, has_ended=False) is None
    assert freshness.said() == Watermark(20, use_processing_time=True)


def test_channels_of_a_source_that_has_ended_follow_the_clock():
    freshness, before_ms = TableFreshness(), time.time_ns() // 1_000_000

    assert freshness.channel(0, 0, has_ended=True).timestamp_ms >= before_ms

    freshness.handed_on(Proof(20, {}, kind=ProofKind.ENDED))
    assert freshness.channel(0, 0, has_ended=False).timestamp_ms >= before_ms
    assert freshness.said().timestamp_ms >= before_ms
