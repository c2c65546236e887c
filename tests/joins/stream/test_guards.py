"""Guards of the stream: which fault is found, which one goes away, and where to go on."""

from dataclasses import replace

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.durable.probe_lives import Gap, Life
from joins.plan.errors import (
    GuardError,
    LogsDisagreeError,
    OffsetsWentBackError,
    PartitionsMissingError,
    PinnedVersionExpiredError,
    RecordsExpiredError,
    RecordsLostError,
    SinkError,
    TopicIdentityChangedError,
    TopicMissingError,
)
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import SPAN, StreamTopic, StreamTopics
from joins.stream.bounds import resumption
from joins.stream.guards import (
    Marks,
    Reach,
    TopicGuard,
    TopicView,
    look_at,
    records_expired,
    wrong_topic,
)
from service.embedded.broker import KafkaBroker
from tests.support.topics import create_topic, delete_topics, produce
from tests.support.wait import wait_until

LIFE = Life("probe", 0, StreamTopics.one("clicks", "id-1"), {0: 10, 1: 0})
VIEW = TopicView(("id-1",), {0: 0, 1: 0}, {0: 50, 1: 20})
AT = Reach({0: 30, 1: 10}, {0: 30, 1: 10})


def guard(tmp_path, life=LIFE):
    return TopicGuard(tmp_path / "guards.json", life)


def found(tmp_path, view, reach=AT, seen=VIEW):
    watched = guard(tmp_path)
    watched.observe(seen, AT)
    assert watched.fault() is None
    watched.observe(view, reach)
    return watched.fault()


def view(begin=VIEW.begin_offsets, end=VIEW.end_offsets, topic_id="id-1"):
    return TopicView((topic_id,), begin, end)


FOUND = {
    "the_same": (VIEW, None),
    "more": (view(end={0: 60, 1: 20}), None),
    "a_new_partition": (view(begin={0: 0, 1: 0, 2: 0}, end={0: 50, 1: 20, 2: 5}), None),
    "read_records_removed": (view(begin={0: 30, 1: 10}), None),
    "a_transaction_is_open": (
        TopicView(("id-1",), {0: 0, 1: 0}, {0: 5, 1: 20}, {0: 55}),
        None,
    ),
    "back_behind_an_open_transaction": (
        TopicView(("id-1",), {0: 0, 1: 0}, {0: 5, 1: 20}, {0: 49}),
        OffsetsWentBackError,
    ),
    "gone": (TopicView((None,)), TopicMissingError),
    "another_one": (view(topic_id="id-2", end={0: 500, 1: 500}), TopicIdentityChangedError),
    "no_partition_1": (view(begin={0: 0}, end={0: 50}), PartitionsMissingError),
    "back": (view(end={0: 49, 1: 20}), OffsetsWentBackError),
    "back_before_the_output": (view(end={0: 20, 1: 20}), OffsetsWentBackError),
    "one_unread_record_removed": (view(begin={0: 31, 1: 0}), RecordsLostError),
    "a_new_partition_without_its_beginning": (
        view(begin={0: 0, 1: 0, 2: 1}, end={0: 50, 1: 20, 2: 5}),
        RecordsLostError,
    ),
}


@pytest.mark.parametrize(("later", "error"), FOUND.values(), ids=FOUND)
def test_a_look_tells_what_has_happened(tmp_path, later, error):
    fault = found(tmp_path, later)
    assert (None if fault is None else type(fault)) is error
    if fault is not None:
        assert "clicks" in fault.message
        assert fault.hint.endswith(".")
        assert fault.choices


def test_records_that_a_running_batch_may_have_read_are_not_lost_yet(tmp_path):
    removed = view(begin={0: 40, 1: 0})
    assert found(tmp_path, removed, Reach(AT.committed, {0: 40, 1: 10})) is None
    assert isinstance(found(tmp_path / "b", removed, AT), RecordsLostError)


def test_an_end_below_the_output_is_found_without_an_earlier_look(tmp_path):
    watched = guard(tmp_path)
    watched.observe(view(end={0: 29, 1: 20}), AT)
    assert isinstance(watched.fault(), OffsetsWentBackError)


@pytest.mark.parametrize("gone", [TopicView((None,)), view(begin={0: 0}, end={0: 50})])
def test_what_is_back_unchanged_clears_its_fault(tmp_path, gone):
    watched = guard(tmp_path)
    for each in (VIEW, gone, VIEW):
        watched.observe(each, AT)
    assert watched.fault() is None


def test_a_topic_that_comes_back_as_another_one_does_not(tmp_path):
    watched = guard(tmp_path)
    for each in (VIEW, TopicView((None,)), view(topic_id="id-2")):
        watched.observe(each, AT)
    assert isinstance(watched.fault(), TopicIdentityChangedError)


@pytest.mark.parametrize(
    "bad",
    [view(topic_id="id-2"), view(end={0: 40, 1: 20}), view(begin={0: 45, 1: 0})],
    ids=["identity", "back", "lost"],
)
def test_a_fault_stays_though_all_looks_well_again_also_after_a_restart(tmp_path, bad):
    watched = guard(tmp_path)
    for each in (VIEW, bad, view(end={0: 90, 1: 90})):
        watched.observe(each, AT)
    kept = watched.fault()
    assert isinstance(kept, GuardError)
    again = guard(tmp_path)
    assert type(again.fault()) is type(kept)
    assert again.fault().message == kept.message


def test_a_new_life_begins_without_faults_and_forgets_those_of_the_old_one(tmp_path):
    watched = guard(tmp_path)
    watched.observe(view(topic_id="id-2", end={0: 3, 1: 4}), AT)
    later = replace(
        LIFE,
        directory="probe-2",
        topics=StreamTopics.one("clicks", "id-2"),
        start_offsets={0: 0, 1: 0},
    )
    watched.begin(later, view(topic_id="id-2", end={0: 3, 1: 4}))
    assert watched.fault() is None
    assert guard(tmp_path, later).fault() is None
    assert guard(tmp_path, later).marks.high == {0: 3, 1: 4}


def test_batches_report_faults_too_but_not_every_error_is_one(tmp_path):
    watched = guard(tmp_path)
    watched.report(SinkError("no", hint="No."))
    assert watched.fault() is None
    watched.report(PinnedVersionExpiredError("old", hint="Old."))
    assert watched.fault().choices == ("repin",)
    watched.report(LogsDisagreeError("other", hint="Other."))
    assert isinstance(watched.fault(), LogsDisagreeError)
    watched.observe(view(topic_id="id-2"), AT)
    assert isinstance(watched.fault(), TopicIdentityChangedError), "the gravest is told"


TWO = StreamTopics((StreamTopic("clicks", "id-1"), StreamTopic("visits", "id-2")))
OF_TWO = Life("probe", 0, TWO, {0: 10, SPAN: 5, SPAN + 1: 0})
VIEW_OF_TWO = TopicView(
    ("id-1", "id-2"), {0: 0, SPAN: 0, SPAN + 1: 0}, {0: 50, SPAN: 20, SPAN + 1: 7}
)
AT_OF_TWO = Reach(*[{0: 30, SPAN: 10, SPAN + 1: 7}] * 2)
FOUND_OF_TWO = {
    "one_is_gone": (TopicView(("id-1", None)), TopicMissingError, 'topic "visits" is gone'),
    "both_are_gone": (TopicView((None, None)), TopicMissingError, 'topic "clicks" is gone'),
    "one_is_another": (
        replace(VIEW_OF_TWO, topic_ids=("id-1", "id-9")),
        TopicIdentityChangedError,
        'topic "visits" has id id-9, expected id-2; the old one was last seen to end at '
        "{0: 20, 1: 7}",
    ),
    "one_is_gone_and_the_other_another": (
        TopicView(("id-9", None)),
        TopicMissingError,
        'topic "visits" is gone',
    ),
    "a_partition_is_missing": (
        replace(VIEW_OF_TWO, end_offsets={0: 50, SPAN: 20}),
        PartitionsMissingError,
        'topic "visits" does not show partition 1',
    ),
    "back": (
        replace(VIEW_OF_TWO, end_offsets={0: 50, SPAN: 19, SPAN + 1: 7}),
        OffsetsWentBackError,
        'topic "visits" partition 0 ends at offset 19, expected 20 or more',
    ),
    "lost": (
        replace(VIEW_OF_TWO, begin_offsets={0: 30, SPAN: 12, SPAN + 1: 0}),
        RecordsLostError,
        'topic "visits" partition 0 begins at offset 12, but is joined up to 10 only',
    ),
}


@pytest.mark.parametrize(("now", "error", "message"), FOUND_OF_TWO.values(), ids=FOUND_OF_TWO)
def test_the_first_fault_of_several_topics_names_topic_and_partition(tmp_path, now, error, message):
    watched = guard(tmp_path, OF_TWO)
    watched.observe(VIEW_OF_TWO, AT_OF_TWO)
    assert watched.fault() is None
    watched.observe(now, AT_OF_TWO)
    assert type(watched.fault()) is error
    assert message in watched.fault().message


def test_topics_that_come_later_are_watched_with_what_was_seen_of_the_others(tmp_path):
    watched = guard(tmp_path, replace(OF_TWO, topics=LIFE.topics, start_offsets={0: 10}))
    watched.observe(TopicView(("id-1",), {0: 0}, {0: 60}), AT_OF_TWO)
    watched.continues(OF_TWO)
    assert guard(tmp_path, OF_TWO).marks.high == {0: 60}
    watched.observe(VIEW_OF_TWO, AT_OF_TWO)
    assert isinstance(watched.fault(), OffsetsWentBackError), "the first topic ended at 60 before"
    assert watched.marks.high == {0: 60, SPAN: 20, SPAN + 1: 7}


def test_a_topic_that_was_created_again_is_joined_from_its_beginning_and_others_go_on():
    view = replace(VIEW_OF_TWO, topic_ids=("id-1", "id-9"), begin_offsets={0: 0, SPAN: 3})
    view = replace(view, end_offsets={0: 50, SPAN: 8})
    marks = Marks({0: 50, SPAN: 20, SPAN + 1: 7})
    bounded = replace(OF_TWO, end_offsets={0: 40, SPAN: 15, SPAN + 1: 7})
    resumed = resumption(bounded, AT_OF_TWO.committed, marks, view)
    assert resumed.start_offsets == {0: 30, SPAN: 3}
    assert resumed.gaps == (Gap(SPAN, 10, 20),)
    assert resumed.end_offsets == {0: 40, SPAN: 8}
    assert [gap.as_json(TWO) for gap in resumed.gaps] == [
        {"topic": "visits", "partition": 0, "from": 10, "to": 20}
    ]


WITHOUT = TWO.identified(["id-1", None])
WITHOUT_ONE = TopicView(("id-1", None), {0: 0}, {0: 50})


def test_the_others_go_on_without_a_topic_that_is_gone():
    """Until it is there again: the same one from where it was left, another from its beginning."""
    marks = Marks({0: 50, SPAN: 20, SPAN + 1: 7})
    bounded = replace(OF_TWO, end_offsets={0: 40, SPAN: 15, SPAN + 1: 7})
    resumed = resumption(bounded, AT_OF_TWO.committed, marks, WITHOUT_ONE)
    assert resumed.gaps == (Gap(SPAN, 10, 20),)
    assert resumed.start_offsets == {0: 30, SPAN: 20, SPAN + 1: 7}
    assert resumed.end_offsets == {0: 40}
    later = replace(OF_TWO, topics=WITHOUT, start_offsets=resumed.start_offsets)
    assert WITHOUT.read_of(later.start_offsets) == {0: 30}
    done = {**resumed.start_offsets, 0: 44}
    same = resumption(later, done, Marks({0: 50}), VIEW_OF_TWO)
    assert (same.start_offsets, same.gaps) == ({0: 44, SPAN: 20, SPAN + 1: 7}, ())
    another = replace(VIEW_OF_TWO, topic_ids=("id-1", "id-9"))
    assert resumption(later, done, Marks({0: 50}), another).start_offsets == {
        0: 44,
        SPAN: 0,
        SPAN + 1: 0,
    }


IDS_WITHOUT = {
    "still_gone": (WITHOUT_ONE, None, ""),
    "the_same_is_back": (VIEW_OF_TWO, TopicIdentityChangedError, 'topic "visits" is there again'),
    "another_is_there": (
        replace(VIEW_OF_TWO, topic_ids=("id-1", "id-9")),
        TopicIdentityChangedError,
        'topic "visits" is there again, with id id-9',
    ),
    "the_other_is_gone": (TopicView((None, None)), TopicMissingError, 'topic "clicks" is gone'),
}


@pytest.mark.parametrize(("now", "error", "message"), IDS_WITHOUT.values(), ids=IDS_WITHOUT)
def test_a_topic_that_is_gone_is_a_fault_once_it_is_there_again(tmp_path, now, error, message):
    watched = guard(tmp_path, replace(OF_TWO, topics=WITHOUT))
    watched.observe(now, Reach({0: 30}, {0: 30}))
    fault = watched.fault()
    assert (None if fault is None else type(fault)) is error
    assert message in ("" if fault is None else fault.message)


def test_a_missing_topic_may_be_left_out_where_another_one_is_there(tmp_path):
    hints = []
    for ids in (("id-1", None), (None, None)):
        watched = guard(tmp_path, OF_TWO)
        watched.observe(TopicView(ids), AT_OF_TWO)
        hints.append(watched.fault().hint)
    assert ["without it" in hint for hint in hints] == [True, False]


RESUMED = {
    "nothing_lost": (VIEW, Marks({0: 50, 1: 20}), {0: 30, 1: 10}, ()),
    "removed": (
        view(begin={0: 45, 1: 0}),
        Marks({0: 50, 1: 20}),
        {0: 45, 1: 10},
        (Gap(0, 30, 45),),
    ),
    "another_topic": (
        view(begin={0: 0, 1: 0, 2: 0}, topic_id="id-2"),
        Marks({0: 50, 1: 10}),
        {0: 0, 1: 0, 2: 0},
        (Gap(0, 30, 50),),
    ),
    "ended_before_the_output": (
        view(end={0: 60, 1: 20}),
        Marks({0: 50, 1: 20}, {0: 25}),
        {0: 25, 1: 10},
        (Gap(0, 30, 50),),
    ),
    "ended_before_what_was_seen": (
        view(end={0: 60, 1: 20}),
        Marks({0: 50, 1: 20}, {0: 40}),
        {0: 30, 1: 10},
        (Gap(0, 40, 50),),
    ),
    "a_partition_is_gone": (
        view(begin={0: 0}, end={0: 50}),
        Marks({0: 50, 1: 20}),
        {0: 30, 1: 20},
        (Gap(1, 10, 20),),
    ),
    "a_partition_was_added": (
        view(begin={0: 0, 1: 0, 2: 4}, end={0: 50, 1: 20, 2: 9}),
        Marks({0: 50, 1: 20}),
        {0: 30, 1: 10, 2: 4},
        (Gap(2, 0, 4),),
    ),
}


@pytest.mark.parametrize(("now", "marks", "start", "gaps"), RESUMED.values(), ids=RESUMED)
def test_a_new_life_goes_on_where_the_output_ends_or_where_something_is(now, marks, start, gaps):
    resumed = resumption(LIFE, AT.committed, marks, now)
    assert dict(resumed.start_offsets) == start
    assert resumed.gaps == gaps


def test_records_that_a_batch_did_not_find_are_lost():
    error = records_expired(LIFE.topics, RecordsExpiredError("offsets {0: 3} are gone", hint="-"))
    assert "offsets {0: 3} are gone" in error.message
    assert "the gap is recorded" in error.hint


def test_looks_at_a_real_topic_and_at_its_successor(kafka: KafkaBroker):
    servers = kafka.bootstrap_servers
    topic = create_topic(servers, partitions=2)
    cluster = KafkaCluster(KafkaOptions(servers, topic), keep_open=True)
    stream = StreamCluster(cluster, StreamTopics.one(topic))
    try:
        produce(servers, topic, [{"n": 1}, {"n": 2}], partition=1)
        first = look_at(stream)
        assert (dict(first.begin_offsets), dict(first.end_offsets)) == ({0: 0, 1: 0}, {0: 0, 1: 2})
        life = Life("probe", 0, stream.identified(), {0: 0, 1: 0})
        assert wrong_topic(life, first.topic_ids, {}) is None
        delete_topics(servers, topic)
        wait_until(lambda: look_at(stream) == TopicView((None,)), what="the topic is gone")
        assert isinstance(wrong_topic(life, (None,), {}), TopicMissingError)
        create_topic(servers, topic, partitions=2)
        known = ((None,), first.topic_ids)
        wait_until(lambda: look_at(stream).topic_ids not in known, what="the new topic")
        changed = wrong_topic(life, look_at(stream).topic_ids, {})
        assert isinstance(changed, TopicIdentityChangedError)
    finally:
        cluster.close()
