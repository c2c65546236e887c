"""The kafka sink on a real broker: the same bytes for a replay, coordinates on each record."""

import json
from collections import Counter
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext

from joins.adapters.kafka.fencing_producer import FencingProducer
from joins.batch.batches import worker_errors
from joins.durable.failpoints import FailpointError, Failpoints
from joins.durable.pins import Pin
from joins.plan.errors import OutputTopicChangedError, SinkError, SourceError
from joins.plan.formats import KafkaFormat, RecordFormat, RecordKey
from joins.plan.plan import KafkaOptions, KafkaSink
from joins.plan.stream_topics import StreamTopics
from joins.sinks.kafka import (
    HEADER_NAMES,
    KafkaSinkWriter,
    OrderedSinkWriter,
    TransactionalSinkWriter,
    kafka_writer,
)
from joins.worker.probe_task import DEAD_LETTERS
from joins.worker.staging import BatchReport
from joins.worker.work import Work
from tests.joins.worker.test_resident_pool import running
from tests.support.probe import PIN, probe_task
from tests.support.topic_work import topic_work
from tests.support.topics import (
    consume,
    create_topic,
    delete_topics,
    end_offsets,
    produce,
    unique_name,
)
from tests.support.wait import wait_until

CLICKS = [b'{"user_id":1}', b'{"user_id":3}', b"{", b'{"user_id":2}']


@pytest.fixture
def topics(kafka):
    """(clicks, output); the clicks are there."""
    names = [create_topic(kafka.bootstrap_servers) for _ in range(2)]
    produce(kafka.bootstrap_servers, names[0], CLICKS, partition=0)
    yield names
    delete_topics(kafka.bootstrap_servers, *names)


@pytest.fixture
def work(spark, kafka, topics):
    return topic_work(spark, kafka.bootstrap_servers, topics[0])


def sink_to(kafka, topic, key_fields=()):
    return KafkaSink(
        KafkaOptions(kafka.bootstrap_servers, topic),
        key=RecordKey(key_fields) if key_fields else None,
    )


def writer_to(sink, directory):
    return KafkaSinkWriter(sink, directory / "sink.json")


def in_order(sink, directory, epoch=2):
    producer = FencingProducer(sink.kafka, directory / "producer.json", epoch)
    return OrderedSinkWriter(sink, directory / "sink.json", producer)


WRITERS = pytest.mark.parametrize("writer_to", [writer_to, in_order], ids=["at_once", "in_order"])


@WRITERS
def test_records_are_sent_once_a_batch_and_a_replay_gives_the_same_bytes(
    writer_to, tmp_path, kafka, topics, work
):
    sink = sink_to(kafka, topics[1], ("user_id",))
    task = probe_task(tmp_path, sink)
    writer = writer_to(sink, tmp_path)
    assert writer.committed_counts(PIN) is None
    report = writer.run(work, task, PIN)
    joined = {"joined": 3, "matched": 2, "unmatched": 1, "dead_letters": 1}
    assert report.counts == {**joined, "records": 4, "bytes": 40}
    assert {name: len(files) for name, files in report.files.items()} == {DEAD_LETTERS: 1}
    assert writer_to(sink, tmp_path).committed_counts(PIN) is None, "a crash here sends again"
    writer.commit(report, PIN, 2)
    assert writer.committed_counts(PIN) == report.counts
    again = writer_to(sink, tmp_path)
    assert again.committed_counts(PIN) == report.counts
    sent = consume(kafka.bootstrap_servers, topics[1])
    assert [(json.loads(r.key), json.loads(r.value)) for r in sent] == [
        ({"user_id": 1}, {"user_id": 1, "name": "r5"}),
        ({"user_id": 3}, {"user_id": 3, "name": None}),
        ({"user_id": 2}, {"user_id": 2, "name": "r5"}),
    ]
    assert [tuple(name for name, _ in r.headers) for r in sent] == [HEADER_NAMES[:5]] * 3
    assert [value for _, value in sent[2].headers] == [b"7", b"clicks", b"0", b"3", b"users=1"]
    # A crash before the note: the batch comes again.
    writer.commit(writer.run(work, task, PIN), PIN, 2)
    again = consume(kafka.bootstrap_servers, topics[1])[3:]
    assert [(r.key, r.value, r.headers) for r in again] == [
        (r.key, r.value, r.headers) for r in sent
    ]
    noted = json.loads((tmp_path / "sink.json").read_text())
    assert noted["ends"] == end_offsets_as_text(kafka, topics[1])


@WRITERS
def test_tasks_send_nothing_to_a_topic_that_was_created_again(
    writer_to, tmp_path, kafka, topics, work
):
    sink = sink_to(kafka, topics[1])
    task, writer = probe_task(tmp_path, sink), writer_to(sink, tmp_path)
    writer.commit(writer.run(work, task, PIN), PIN, 2)
    delete_topics(kafka.bootstrap_servers, topics[1])
    create_topic(kafka.bootstrap_servers, topics[1])
    following = replace(PIN, batch=PIN.batch + 1)
    with pytest.raises(OutputTopicChangedError, match="deleted and created again"):
        writer.run(work, task, following)
    assert consume(kafka.bootstrap_servers, topics[1]) == []
    writer.accept()
    writer.commit(writer.run(work, task, following), following, 2)
    assert len(consume(kafka.bootstrap_servers, topics[1])) == 3


@WRITERS
def test_a_task_that_cannot_send_tells_the_driver_why(writer_to, tmp_path, kafka, work):
    """It is no reason to look for damage in the indexes."""
    topic = create_topic(kafka.bootstrap_servers, config={"max.message.bytes": "100"})
    sink, restored = sink_to(kafka, topic), []
    writer, task = writer_to(sink, tmp_path), probe_task(tmp_path, sink)
    with (
        pytest.raises(SinkError, match=f'cannot be sent to topic "{topic}"') as caught,
        worker_errors(StreamTopics.one("clicks"), PIN, restored.append),
    ):
        writer.run(work, task, PIN)
    assert "MessageSizeTooLarge" in caught.value.detail
    assert restored == []
    delete_topics(kafka.bootstrap_servers, topic)


@WRITERS
def test_a_task_whose_join_fails_sends_nothing(writer_to, tmp_path, kafka, topics, work):
    sink = sink_to(kafka, topics[1])
    task = probe_task(tmp_path, sink)

    class Failing(type(task)):
        def answers(self, batches, pin, counts):
            yield from super().answers(batches, pin, counts)
            raise SourceError("the records behind are gone", hint="Planted.")

    failing = Failing(**{item.name: getattr(task, item.name) for item in fields(task)})
    writer = writer_to(sink, tmp_path)
    with pytest.raises(Exception, match="the records behind are gone"):
        writer.run(work, failing, PIN)
    assert consume(kafka.bootstrap_servers, topics[1]) == []


@pytest.mark.parametrize(
    ("changes", "has_event_batches", "expected"),
    [
        ({}, False, KafkaSinkWriter),
        ({"upsert": True}, False, OrderedSinkWriter),
        ({"transactional_id_prefix": "id"}, False, TransactionalSinkWriter),
        ({}, True, OrderedSinkWriter),
    ],
    ids=["appended", "upsert", "exactly_once", "event_batches"],
)
def test_tasks_send_at_once_what_may_be_repeated_late(
    tmp_path, changes, has_event_batches, expected
):
    sink = replace(KafkaSink(KafkaOptions("127.0.0.1:1", "rows")), **changes)
    places = tmp_path / "sink.json", "job-0", 2, Failpoints("")
    writer = kafka_writer(sink, *places, has_event_batches=has_event_batches)
    assert type(writer) is expected


def test_a_batch_that_cannot_be_sent_is_not_noted(tmp_path, kafka, topics, work):
    missing = sink_to(kafka, unique_name("bad topic name"))
    writer = writer_to(missing, tmp_path)
    with pytest.raises(SinkError, match=r'topic "bad topic name'):
        writer.run(work, probe_task(tmp_path, missing), PIN)
    assert writer.committed_counts(PIN) is None


def test_a_topic_that_ends_before_rows_that_were_sent_is_not_written_on(
    tmp_path, kafka, topics, work
):
    """As when a broker comes back with an older copy; the ends are kept over a restart."""
    sink = sink_to(kafka, topics[1])
    task, writer = probe_task(tmp_path, sink), writer_to(sink, tmp_path)
    writer.commit(writer.run(work, task, PIN), PIN, 2)
    file = tmp_path / "sink.json"
    noted = json.loads(file.read_text())
    assert noted["ends"] == end_offsets_as_text(kafka, topics[1])
    file.write_text(json.dumps({**noted, "ends": {"0": 100}}))
    writer, pin = writer_to(sink, tmp_path), replace(PIN, batch=PIN.batch + 1)
    for each in (in_order(sink, tmp_path), writer):
        with pytest.raises(OutputTopicChangedError, match=r"ended at offset \d, expected 100"):
            each.commit(each.run(work, task, pin), pin, 2)
    assert writer.committed_counts(pin) is None
    writer.accept()
    writer.commit(writer.run(work, task, pin), pin, 2)
    assert writer.committed_counts(pin) is not None


def end_offsets_as_text(kafka, topic):
    return {str(p): end for p, end in end_offsets(kafka.bootstrap_servers, topic).items()}


def of_windows(task):
    """The same task with rows that come from no record in particular, and are replaced."""

    class Windows(type(task)):
        def answers(self, batches, pin, counts):
            for batch in super().answers(batches, pin, counts):
                rows = batch.rows.num_rows
                nowhere = [pa.nulls(rows, item.type) for item in batch.coordinates.schema]
                coordinates = pa.record_batch(nowhere, schema=batch.coordinates.schema)
                marks = pa.array(range(1_000, 1_000 + rows), pa.int64())
                kinds = pa.array([0, 1, 3][:rows], pa.int8())
                changes = {"coordinates": coordinates, "kinds": kinds, "watermarks": marks}
                yield replace(batch, **changes)

    return Windows(**{item.name: getattr(task, item.name) for item in fields(task)})


CHANGES = (
    (
        {"upsert": True},
        [({"user_id": 1}, {"user_id": 1, "name": "r5"}, b"1000"), ({"user_id": 2}, None, b"1002")],
    ),
    (
        {"value": RecordFormat(KafkaFormat.DEBEZIUM_JSON)},
        [
            ({"user_id": u}, {"before": b, "after": a, "op": op}, mark)
            for u, b, a, op, mark in (
                (1, None, {"user_id": 1, "name": "r5"}, "c", b"1000"),
                (3, {"user_id": 3, "name": None}, None, "d", b"1001"),
                (2, {"user_id": 2, "name": "r5"}, None, "d", b"1002"),
            )
        ],
    ),
)


def test_updates_are_sent_as_the_topic_wants_them(tmp_path, kafka, topics, work):
    seen = 0
    for options, expected in CHANGES:
        sink = replace(sink_to(kafka, topics[1], ("user_id",)), **options)
        task = of_windows(probe_task(tmp_path / str(seen), sink))
        writer = in_order(sink, tmp_path, 2 + seen)
        writer.commit(writer.run(work, task, PIN), PIN, 2)
        sent = consume(kafka.bootstrap_servers, topics[1])[seen:]
        found = [(json.loads(r.key), r.value and json.loads(r.value), r.headers) for r in sent]
        assert [(key, value, headers[3][1]) for key, value, headers in found] == expected
        names = tuple(HEADER_NAMES[at] for at in (0, 1, 4, 5))
        assert {tuple(name for name, _ in headers) for *_, headers in found} == {names}
        seen += len(sent)


def test_a_key_goes_where_other_producers_send_it(tmp_path, kafka, work):
    topic = create_topic(kafka.bootstrap_servers, partitions=8)
    sink = sink_to(kafka, topic, ("user_id",))
    writer = writer_to(sink, tmp_path)
    writer.commit(writer.run(work, probe_task(tmp_path, sink), PIN), PIN, 2)
    keys = [b'{"user_id":%d}' % user for user in (1, 2, 3)]
    produce(kafka.bootstrap_servers, topic, [b"{}"] * 3, keys=keys)
    places = Counter((r.key, r.partition) for r in consume(kafka.bootstrap_servers, topic))
    assert set(places.values()) == {2}
    assert len(places) == 3
    delete_topics(kafka.bootstrap_servers, topic)


@dataclass(frozen=True)
class Transactions:
    """A job's output in transactions, and one runner after the other."""

    sink: KafkaSink
    directory: Path
    name: str
    work: Work

    def writer(self, points: str = "", *, place: str = "here") -> TransactionalSinkWriter:
        progress = self.directory / place / "sink.json"
        return TransactionalSinkWriter(self.sink, progress, self.name, Failpoints(points))

    def run(self, writer: TransactionalSinkWriter, pin: Pin = PIN) -> BatchReport:
        return writer.run(self.work, probe_task(self.directory, self.sink), pin)

    def there(self) -> dict[bytes, int]:
        records = consume(self.sink.kafka.bootstrap_servers, self.sink.kafka.topic)
        return Counter(dict(record.headers)["sluice-batch"] for record in records)


@pytest.fixture
def transactions(tmp_path, kafka, topics, work):
    return Transactions(sink_to(kafka, topics[1]), tmp_path, unique_name("transactions"), work)


FOLLOWING = replace(PIN, batch=PIN.batch + 1)
CUT_OFF = {
    "before_its_commit": ("C15=raise", False),
    "behind_its_commit": ("C16=raise", True),
}


@pytest.mark.parametrize("is_restarted", [True, False], ids=["restarted", "the_same_runner"])
@pytest.mark.parametrize(("fault", "is_there"), CUT_OFF.values(), ids=CUT_OFF)
def test_a_batch_whose_transaction_was_cut_off_is_there_once(
    transactions, fault, is_there, is_restarted
):
    writer = transactions.writer(fault)
    assert writer.committed_counts(PIN) is None
    report = transactions.run(writer)
    with pytest.raises(FailpointError):
        writer.commit(report, PIN, 2)
    later = transactions.writer() if is_restarted else writer
    assert later.committed_counts(PIN) == (report.counts if is_there else None)
    assert transactions.there() == ({b"7": 3} if is_there else {})
    if not is_there:
        later.commit(transactions.run(later), PIN, 3)
    assert later.committed_counts(PIN) == report.counts
    assert transactions.there() == {b"7": 3}
    assert later.committed_counts(FOLLOWING) is None
    later.commit(transactions.run(later, FOLLOWING), FOLLOWING, 3)
    assert transactions.there() == {b"7": 3, b"8": 3}
    assert later.committed_counts(PIN) == {}, "a later one is there, so this one is, too"


def test_a_runner_that_was_replaced_commits_nothing(transactions):
    older, newer = (transactions.writer(place=place) for place in ("older", "newer"))
    report = transactions.run(older)
    older.commit(report, PIN, 1)
    late = transactions.run(older, FOLLOWING)
    assert newer.committed_counts(PIN) == report.counts
    with pytest.raises(SinkError):
        older.commit(late, FOLLOWING, 1)
    assert transactions.there() == {b"7": 3}
    newer.commit(transactions.run(newer, FOLLOWING), FOLLOWING, 2)
    assert transactions.there() == {b"7": 3, b"8": 3}


def test_a_batch_that_was_sent_and_not_committed_is_not_in_the_next_transaction(transactions):
    writer = transactions.writer()
    transactions.run(writer)
    report = transactions.run(writer)
    writer.commit(report, PIN, 2)
    assert transactions.there() == {b"7": 3}


def test_a_transaction_that_has_lost_its_rows_is_not_committed(transactions):
    writer = transactions.writer()
    report = transactions.run(writer)
    assert transactions.writer(place="another").committed_counts(PIN) is None
    writer._producer.close()  # as after an error of its connection
    writer.newest_sent()
    with pytest.raises(SinkError, match="was aborted"):
        writer.commit(report, PIN, 2)
    assert writer.committed_counts(PIN) is None


def test_a_newer_identity_fences_what_was_given_up(tmp_path, kafka, topics, work):
    """A task of an older runner, or of an attempt that was given up, sends late."""
    sink = sink_to(kafka, topics[1], ("user_id",))
    task = probe_task(tmp_path, sink)
    older, newer = (in_order(sink, tmp_path, epoch) for epoch in (2, 5))
    older.commit(older.run(work, task, PIN), PIN, 2)
    newer.commit(newer.run(work, task, FOLLOWING), FOLLOWING, 5)
    with pytest.raises(Exception, match="cannot be sent to topic"):
        older.run(work, task, FOLLOWING)
    again = in_order(sink, tmp_path, 5)
    again._producer._identities = 1
    again.run(work, task, FOLLOWING)  # the newer runner, after a failure
    with pytest.raises(Exception, match="cannot be sent to topic"):
        newer.run(work, task, FOLLOWING)
    sent = consume(kafka.bootstrap_servers, topics[1])
    assert [dict(r.headers)["sluice-batch"] for r in sent] == [b"7"] * 3 + [b"8"] * 6


class LastFirst:
    """A task that joins its part once the tasks behind it have joined theirs."""

    def __init__(self, directory, tasks):
        self.directory, self.tasks = directory, tasks

    def wait(self, item):
        (self.directory / str(item)).touch()
        behind = [self.directory / str(n) for n in range(item + 1, self.tasks)]
        wait_until(lambda: all(path.exists() for path in behind))


@pytest.mark.parametrize("is_resident", [True, False], ids=["residents", "spark"])
def test_rows_keep_the_order_of_their_tasks(tmp_path, spark, kafka, is_resident):
    servers = kafka.bootstrap_servers
    clicks, output = create_topic(servers, partitions=2), create_topic(servers)
    for partition in (0, 1):
        records = [{"user_id": 10 * partition + n} for n in range(3)]
        produce(servers, clicks, records, partition=partition)
    sink = sink_to(kafka, output)
    task, order = probe_task(tmp_path, sink), LastFirst(tmp_path, 2)

    class Waiting(type(task)):
        def answers(self, batches, pin, counts):
            answers = list(super().answers(batches, pin, counts))
            order.wait(TaskContext.get().partitionId())
            yield from answers

    waiting = Waiting(**{item.name: getattr(task, item.name) for item in fields(task)})
    with running(spark) as pool:
        work = topic_work(spark, servers, clicks)
        writer = in_order(sink, tmp_path)
        writer.run(replace(work, tasks=pool) if is_resident else work, waiting, PIN)
    rows = [json.loads(record.value)["user_id"] for record in consume(servers, output)]
    assert rows == [0, 1, 2, 10, 11, 12]
    delete_topics(servers, clicks, output)
