"""Records that wait come close to the end of their topic's retention, or a job keeps up with it."""

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


def test_a_job_that_keeps_up_is_not_warned_of_a_full_topic(monkeypatch):
    topic = OneTopic(Retention(max_bytes=1_000))
    topic.bytes = 1_000
    views = [(1_000 + at, 1_005 + at, at) for at in range(0, 100_000, 10_000)]
    assert looks(topic, monkeypatch, *views) == [[]] * len(views)


def test_records_that_fill_the_topic_are_warned_of(monkeypatch):
    topic = OneTopic(Retention(max_bytes=1_000))
    topic.bytes = 1_000
    assert looks(topic, monkeypatch, (1_000, 1_850, 900)) == [[LossRisk.SIZE]]


def test_a_job_that_keeps_up_is_not_warned_of_a_begin_that_follows_it(monkeypatch):
    topic = OneTopic(Retention(max_bytes=1_000))
    views = [(1_000 + at, 1_005 + at, at) for at in range(0, 100_000, 10_000)]
    assert looks(topic, monkeypatch, *views) == [[]] * len(views)


def test_records_that_a_begin_comes_close_to_are_warned_of(monkeypatch):
    topic = OneTopic(Retention(max_bytes=1_000))
    views = [(1_000, 2_000, 0), (1_000, 9_000, 500), (1_000, 9_500, 900)]
    assert looks(topic, monkeypatch, *views) == [[], [], [LossRisk.OFFSETS]]
