"""What is read of a topic with transactions: committed records, up to the last stable offset."""

import ast
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka import KafkaProducer

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.groups import open_transactions
from joins.adapters.kafka.records import KafkaRecords
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from tests.support.laws import examples
from tests.support.producer_histories import Model, Producer, generate, interleave
from tests.support.topics import create_topic, produce
from tests.support.transactions import transactions
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def writer(kafka):
    with transactions(kafka.bootstrap_servers) as producer:
        yield producer


PARTITIONS = 1


def options(kafka, level=None):
    given = () if level is None else (("isolation.level", level),)
    return KafkaOptions(kafka.bootstrap_servers, "", given)


def read(kafka, topic, level=None):
    """The values of partition 0 up to its end."""
    cluster = KafkaCluster(options(kafka, level))
    with KafkaRecords(options(kafka, level)) as records:
        ranges = {0: (0, cluster.end_offsets(topic)[0])}
        found = list(records.batches(StreamTopics.one(topic), ranges))
    return [json.loads(value) for b in found for value in b.column("value").to_pylist()]


def plain(kafka, topic, *values):
    produce(kafka.bootstrap_servers, topic, values, partition=0)


@pytest.fixture(scope="module", autouse=True)
def hanging(kafka):
    """A topic whose first record is of a producer that is gone; the broker takes its time."""
    name = create_topic(kafka.bootstrap_servers)
    with transactions(kafka.bootstrap_servers, timeout_ms=1_000) as gone:
        gone.begin()
        gone.send(name, {0: [1]})
    plain(kafka, name, 2)
    assert KafkaCluster(options(kafka)).end_offsets(name) == {0: 0}
    return name


@pytest.fixture(scope="module", autouse=True)
def compacted(kafka, writer):
    """A topic whose oldest record, a committed one, goes when the broker's cleaner comes."""
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.0001",
        "segment.ms": "100",
        "segment.bytes": "1048576",
        "max.compaction.lag.ms": "100",
    }
    name = create_topic(kafka.bootstrap_servers, config=config)
    writer.committed(name, {0: [1]}, key=b"a")
    writer.committed(name, {0: [2]}, key=b"a")
    writer.aborted(name, {0: [3]}, key=b"a")
    return name


HISTORIES = {
    "committed": (("commit", [1, 2]),),
    "aborted": (("abort", [1, 2]), ("plain", [3])),
    "aborted_at_the_end": (("plain", [1]), ("abort", [2, 3])),
    "only_aborted": (("abort", [1]), ("abort", [2])),
    "mixed": (("plain", [1]), ("abort", [2]), ("commit", [3]), ("plain", [4]), ("abort", [5])),
}


def write(kafka, writer, topic, history):
    act = {
        "commit": lambda values: writer.committed(topic, {0: values}),
        "abort": lambda values: writer.aborted(topic, {0: values}),
        "plain": lambda values: plain(kafka, topic, *values),
    }
    for kind, values in history:
        act[kind](values)


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_only_committed_and_plain_records_are_read(kafka, writer, topic, history):
    write(kafka, writer, topic, history)
    assert read(kafka, topic) == [v for kind, values in history for v in values if kind != "abort"]


def test_a_table_that_asks_for_it_reads_everything(kafka, writer, topic):
    write(kafka, writer, topic, HISTORIES["mixed"])
    assert read(kafka, topic, "read_uncommitted") == [1, 2, 3, 4, 5]


def test_the_topic_ends_where_an_open_transaction_begins(kafka, writer, topic):
    plain(kafka, topic, 1)
    writer.begin()
    writer.send(topic, {0: [2]})
    plain(kafka, topic, 3)
    try:
        assert KafkaCluster(options(kafka)).end_offsets(topic) == {0: 1}
        assert KafkaCluster(options(kafka, "read_uncommitted")).end_offsets(topic) == {0: 3}
        assert read(kafka, topic) == [1]
    finally:
        writer.commit()
    assert read(kafka, topic) == [1, 2, 3]


def test_an_open_transaction_is_named_with_its_producer_and_its_age(kafka, writer, topic):
    writer.begin()
    writer.send(topic, {0: [1]})
    cluster = KafkaCluster(options(kafka))
    try:
        (found,) = open_transactions(cluster.connection, topic, cluster.end_offsets(topic))
    finally:
        writer.abort()
    assert (found.partition, found.offset, found.transactional_id) == (0, 0, writer.id)
    assert found.producer_id is not None
    assert found.since_ms is not None
    assert f'("{writer.id}")' in found.text(topic)
    assert f"--topic {topic} --partition 0 --start-offset 0" in found.hint(topic)
    assert open_transactions(cluster.connection, topic, cluster.end_offsets(topic)) == []


def test_offsets_by_time_are_those_of_who_reads(kafka, writer, topic):
    plain(kafka, topic, 1)
    writer.begin()
    writer.send(topic, {0: [2]})
    try:
        assert KafkaCluster(options(kafka)).offsets_at(topic, 2**50) == {0: 1}
        assert KafkaCluster(options(kafka, "read_uncommitted")).offsets_at(topic, 2**50) == {0: 2}
    finally:
        writer.abort()


@pytest.fixture(scope="module")
def history(kafka):
    """Several producers' histories on two partitions: (topic, model, ends)."""
    rng, model = random.Random(7), Model()
    name = create_topic(kafka.bootstrap_servers, partitions=2)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as plainly:
        producers = [Producer(n, name, plainly, model, 60_000) for n in range(4)]
        interleave(rng, [p.acts(generate(rng, 2, 8, hangs=False)) for p in producers])
        for producer in producers:
            producer.transactions.close()
    return name, model, KafkaCluster(options(kafka)).end_offsets(name)


@pytest.fixture(scope="module")
def reader(kafka):
    with KafkaRecords(options(kafka)) as records:
        yield records


@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_any_range_of_interleaved_histories_has_its_committed_records(reader, history, data):
    topic, model, ends = history
    ranges = {}
    for partition, end in ends.items():
        first = data.draw(st.integers(0, end), label=f"first of {partition}")
        ranges[partition] = first, data.draw(st.integers(first, end), label="end")
    found = [
        (row["partition"], row["offset"], json.loads(row["value"]))
        for batch in reader.batches(StreamTopics.one(topic), ranges)
        for row in batch.to_pylist()
    ]
    wanted = {
        at: value
        for at, value in model.committed.items()
        if ranges[at[0]][0] <= at[1] < ranges[at[0]][1]
    }
    assert {(p, o): value for p, o, value in found} == wanted
    assert len(found) == len(wanted)
    for partition in ends:
        offsets = [o for p, o, _ in found if p == partition]
        assert offsets == sorted(offsets)


# Nobody reads a topic in another way
# --------------------------------------------------------------------------------------------------

_ROOT = Path(__file__).parents[4]
_NEEDS = {"FetchRequest", "list_partition_offsets", "KafkaConsumer"}


@pytest.fixture(scope="module")
def calls():
    """(file, called name, call) of the calls in modules that have to do with Kafka."""
    found = []
    for package in ("joins", "service"):
        for path in sorted((_ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "Kafka" in text:
                found += [
                    (path.name, getattr(node.func, "attr", getattr(node.func, "id", "")), node)
                    for node in ast.walk(ast.parse(text))
                    if isinstance(node, ast.Call)
                ]
    return found


def test_whoever_asks_kafka_for_records_or_offsets_says_at_which_isolation_level(calls):
    found = [(path, name, node) for path, name, node in calls if name in _NEEDS]
    assert {name for _, name, _ in found} == _NEEDS
    for path, name, node in found:
        assert "isolation_level" in {keyword.arg for keyword in node.keywords}, (path, name)


# What the broker does in its own time; it has been at it since this module began
# --------------------------------------------------------------------------------------------------


def test_records_of_a_producer_that_hangs_never_come_and_the_others_do(kafka, hanging):
    cluster = KafkaCluster(options(kafka))
    wait_until(lambda: cluster.end_offsets(hanging)[0] > 1, what="the broker aborts it")
    assert read(kafka, hanging) == [2]


@pytest.mark.experiment
def test_an_aborted_value_does_not_replace_the_committed_one_in_a_compacted_topic(
    kafka, writer, compacted
):
    filler = iter(range(100, 10_000))

    def is_compacted():
        writer.committed(compacted, {0: [next(filler)]}, key=b"b")
        return 1 not in read(kafka, compacted)

    wait_until(is_compacted, what="the older value is compacted away", poll_s=0.5)
    found = read(kafka, compacted)
    assert found[0] == 2
    assert 3 not in found
