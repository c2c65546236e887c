"""Records that wait come close to the end of their topic's retention, or a job keeps up with it."""

import pytest

from joins.stream import watches
from joins.stream.watches import RetentionWatch
from watermark.gate import HeldOffsets, LossRisk, Retention


class OneTopic:
    """A topic of one partition, as brokers tell it."""

    def __init__(self, retention):
        self.limits = retention
        self.bytes = None

    def retention(self, _):
        return self.limits

    def partition_bytes(self, _):
        return None if self.bytes is None else {0: self.bytes}

    def first_since(self, _):
        return {}


def looks(topic, monkeypatch, *views):
    """What each look warns of, given start, end and begin of the partition."""
    monkeypatch.setattr(watches, "_EVERY_S", 0.0)
    watch = RetentionWatch(topic)
    risks = []
    for start, end, begin in views:
        watch.look(HeldOffsets.of(start={0: start}, end={0: end}, retention_begin={0: begin}))
        risks.append([each.risk for each in watch.warnings])
    return risks


KEEPS_UP = [(1_000 + at, 1_005 + at, at) for at in range(0, 100_000, 10_000)]
NEAR = [(1_000, 2_000, 0), (1_000, 9_000, 500), (1_000, 9_500, 900)]
LOOKS = {  # bytes of the topic, what is seen of it, and what each look warns of
    "a_job_keeps_up_with_a_full_topic": (1_000, KEEPS_UP, [[]] * len(KEEPS_UP)),
    "records_fill_the_topic": (1_000, [(1_000, 1_850, 900)], [[LossRisk.SIZE]]),
    "a_job_keeps_up_with_a_begin_that_follows_it": (None, KEEPS_UP, [[]] * len(KEEPS_UP)),
    "a_begin_comes_close_to_records": (None, NEAR, [[], [], [LossRisk.OFFSETS]]),
}


@pytest.mark.parametrize(("size", "views", "warned"), LOOKS.values(), ids=LOOKS)
def test_only_records_that_may_be_lost_are_warned_of(monkeypatch, size, views, warned):
    topic = OneTopic(Retention(max_bytes=1_000))
    topic.bytes = size
    assert looks(topic, monkeypatch, *views) == warned
