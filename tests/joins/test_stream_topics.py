"""Laws of the numbers that partitions of several topics have."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.kernels.records.layout import numbered, topic_names, true_partitions
from joins.plan.errors import CheckpointError, SourceError
from joins.plan.stream_topics import (
    FILES,
    MOST_TOPICS,
    NO_TOPICS,
    SPAN,
    HistoryTopic,
    StreamTopic,
    StreamTopics,
    by_number,
    by_topic,
    in_each,
    index_of,
    is_file,
    partition_of,
    place_json,
    place_name,
    topics_as_json,
    topics_of_json,
)

NAMES = st.text("abcdefgh.-_", min_size=1, max_size=8)
TOPICS = st.lists(
    st.builds(StreamTopic, NAMES, st.text("0123456789abcdef-", max_size=6)),
    min_size=1,
    max_size=12,
    unique_by=lambda topic: topic.name,
).map(lambda topics: StreamTopics(tuple(topics)))
PARTITIONS = st.integers(0, SPAN - 1)


def places(topics: StreamTopics) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(0, len(topics) - 1), PARTITIONS)


@given(st.data(), TOPICS)
def test_each_partition_of_each_topic_has_a_number_of_its_own(data, topics):
    some = data.draw(st.lists(places(topics), unique=True, max_size=20))
    numbers = [topics.number(topics.names[index], partition) for index, partition in some]
    assert len(set(numbers)) == len(some)
    assert [(index_of(n), partition_of(n)) for n in numbers] == some
    assert [topics.topic_of(n) for n in numbers] == [topics.topics[i] for i, _ in some]
    assert sorted(numbers) == [n for _, n in sorted(zip(some, numbers, strict=True))]
    assert all(n < 2**31 for n in numbers), "a number fits where records are columns"


@given(NAMES, PARTITIONS)
def test_a_stream_of_one_topic_has_its_partitions_as_they_are(name, partition):
    topics = StreamTopics.one(name, "id")
    assert topics.number(name, partition) == partition == partition_of(partition)
    assert topics.place(partition) == str(partition)
    assert topics.places({partition: 7}) == {str(partition): 7}
    assert place_json(topics, partition) == {"partition": partition}


@given(st.data(), TOPICS)
def test_values_by_number_are_taken_apart_by_topic_and_put_together_again(data, topics):
    values = data.draw(st.dictionaries(places(topics), st.integers(), max_size=20))
    numbers = {i * SPAN + p: value for (i, p), value in values.items()}
    parts = by_topic(numbers)
    assert list(parts) == sorted({index for index, _ in values})
    whole = {n: v for i, own in parts.items() for n, v in by_number(i, own).items()}
    assert whole == numbers


@given(TOPICS, st.lists(st.builds(StreamTopic, NAMES), max_size=12))
def test_topics_that_come_later_change_no_number(topics, later):
    more = topics.with_more(later)
    assert more.topics[: len(topics)] == topics.topics
    assert set(more.names) == {*topics.names, *(topic.name for topic in later)}
    assert len(set(more.names)) == len(more)
    assert more.with_more(later) == more


@given(TOPICS)
def test_topics_are_read_back_as_they_were_written(topics):
    assert topics_of_json(topics_as_json(topics)) == topics


@given(TOPICS)
def test_more_may_be_said_of_a_topic_than_this_version_knows(topics):
    written = [{**topic, "stream": "s"} for topic in topics_as_json(topics)]
    assert topics_of_json(written) == topics


@given(TOPICS, st.data())
def test_other_ids_leave_names_and_numbers(topics, data):
    ids = data.draw(st.lists(st.none() | st.just("x"), min_size=len(topics), max_size=len(topics)))
    again = topics.identified(ids)
    assert again.names == topics.names
    assert [t.topic_id for t in again.topics] == [
        new or old.topic_id for new, old in zip(ids, topics.topics, strict=True)
    ]


@given(st.data(), TOPICS)
def test_columns_of_numbers_are_columns_of_topics_and_partitions_and_back(data, topics):
    some = data.draw(st.lists(places(topics), max_size=20))
    numbers = pa.array([i * SPAN + p for i, p in some], pa.int32())
    names, partitions = topic_names(topics, numbers), true_partitions(numbers)
    assert names.to_pylist() == [topics.names[i] for i, _ in some]
    assert partitions.to_pylist() == [p for _, p in some]
    assert numbered(topics, names, partitions).to_pylist() == numbers.to_pylist()
    tables = pa.chunked_array([names]), pa.chunked_array([partitions])
    assert numbered(topics, *tables).to_pylist() == numbers.to_pylist()


def test_a_place_of_no_topic_stays_what_it_is():
    topics = StreamTopics((StreamTopic("a"), StreamTopic("b")))
    names, partitions = pa.array(["b", "windows"]), pa.array([1, -3], pa.int32())
    assert numbered(topics, names, partitions).to_pylist() == [SPAN + 1, -3]
    assert (partition_of(-3), topics.number("windows", 0), topics.number("a", -1)) == (
        -3,
        None,
        None,
    )


def test_what_is_given_of_a_partition_holds_in_each_topic():
    topics = StreamTopics((StreamTopic("a"), StreamTopic("b")))
    assert in_each(topics, [(0, 7), (3, 9)]) == ((0, 7), (3, 9), (SPAN, 7), (SPAN + 3, 9))
    assert topics.places(dict(in_each(topics, [(3, 9)]))) == {"a/3": 9, "b/3": 9}
    assert place_json(topics, SPAN + 3) == {"topic": "b", "partition": 3}
    assert place_name(topics, SPAN + 3) == 'topic "b" partition 3'


def test_a_stream_has_no_more_topics_than_there_are_numbers():
    names = [StreamTopic(f"t{n}") for n in range(MOST_TOPICS + 1)]
    most = NO_TOPICS.with_more(names[:-1])
    assert (MOST_TOPICS - 1) * SPAN + SPAN - 1 < 2**31
    assert most.text == "t0, t1, t2, t3, t4, … (2047 topics)"
    with pytest.raises(SourceError, match="2048 topics, expected at most 2047"):
        most.with_more(names)


def test_files_before_the_topics_are_one_more_partition():
    topics = replace(NO_TOPICS, history=HistoryTopic("history:a", "id", 70)).with_more(
        [StreamTopic("a"), StreamTopic("b")]
    )
    assert topics_of_json(topics_as_json(topics)) == topics
    assert len(topics) == 2
    assert topics.names == ("a", "b")
    assert FILES < 2**31
    assert is_file(FILES)
    assert not is_file(FILES - 1)
    assert topics.file_ends == {FILES: 70}
    assert topics.number("history:a", 0) == FILES
    assert topics.number("history:a", 1) is None
    assert topics.place(FILES) == "history:a/0"
    assert by_topic({FILES: 1, SPAN: 2}) == {1: {0: 2}}
    numbers = pa.array([0, FILES, SPAN + 3], pa.int32())
    names = topic_names(topics, numbers)
    assert names.to_pylist() == ["a", "history:a", "b"]
    assert numbered(topics, names, true_partitions(numbers)).equals(numbers)


def test_a_number_of_no_topic_is_a_checkpoint_that_does_not_fit_together():
    with pytest.raises(CheckpointError, match="is of none of the topics a"):
        place_name(StreamTopics.one("a"), SPAN)
    with pytest.raises(CheckpointError):
        StreamTopics.one("a").topic_of(-1)
