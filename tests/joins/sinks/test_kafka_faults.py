"""Faults of residents whose tasks send to Kafka: each row is there, and once where that is said."""

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from joins.adapters.kafka.fencing_producer import FencingProducer
from joins.durable.failpoints import Failpoints
from joins.plan.errors import SinkError
from joins.plan.plan import KafkaOptions, KafkaSink
from joins.sinks.kafka import KafkaSinkWriter, OrderedSinkWriter, TransactionalSinkWriter
from joins.worker.channel import ResidentChannel
from joins.worker.resident import CallHead, Newest, _answer, _head_of
from joins.worker.resident_pool import ResidentPool
from joins.worker.turns import Turns
from joins.worker.work import Work
from tests.joins.worker.test_resident_pool import running
from tests.support.probe import PIN, probe_task
from tests.support.topic_work import topic_work
from tests.support.topics import consume, create_topic, delete_topics, produce, unique_name

ROWS = 20
APPENDED, ORDERED, TRANSACTIONAL = "appended", "ordered", "transactional"


def writer_of(kind: str, sink: KafkaSink, directory: Path) -> KafkaSinkWriter:
    progress = directory / "sink.json"
    if kind == TRANSACTIONAL:
        return TransactionalSinkWriter(sink, progress, unique_name("faults"), Failpoints(""))
    if kind == ORDERED:
        producer = FencingProducer(sink.kafka, directory / "producer.json", 2)
        return OrderedSinkWriter(sink, progress, producer)
    return KafkaSinkWriter(sink, progress)


def once(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def killed(path: Path) -> None:
    if once(path):
        os.kill(os.getpid(), signal.SIGKILL)


def hangs(path: Path) -> None:
    if once(path):
        time.sleep(3600)


@dataclass(frozen=True)
class Planted:
    """A send that is followed by a fault, once."""

    send: Any
    fault: Any
    path: Path

    def __call__(self, bodies: Any) -> Any:
        sent = self.send(bodies)
        self.fault(self.path)
        return sent


@dataclass(frozen=True)
class PlantedTurns(Turns):
    """Turns with a fault within the first: all is sent, and the driver does not know it."""

    fault: Any = None
    path: Path = Path()

    @contextmanager
    def turn(self, item: int, records: Mapping[int, int]) -> Iterator[Mapping[str, Any]]:
        with super().turn(item, records) as granted:
            yield granted
            self.fault(self.path)


@dataclass(frozen=True)
class Place:
    """Clicks in two partitions, and an output."""

    servers: str
    clicks: str
    output: str
    directory: Path
    work: Work

    @property
    def sink(self) -> KafkaSink:
        return KafkaSink(KafkaOptions(self.servers, self.output))

    def run(self, writer: KafkaSinkWriter, pool: ResidentPool) -> int:
        """Run the batch until it is committed, as the loop does; the number of attempts."""
        task = probe_task(self.directory / "task", self.sink)
        work = Work(self.work.spark, self.work.items, self.work.read, tasks=pool)
        for attempt in range(1, 5):
            try:
                writer.commit(writer.run(work, task, PIN), PIN, 2)
            except (PySparkException, SinkError):
                continue
            assert writer.committed_counts(PIN) is not None
            return attempt
        raise AssertionError("the batch is not committed")

    def rows(self) -> Counter[int]:
        return Counter(json.loads(r.value)["user_id"] for r in consume(self.servers, self.output))


@pytest.fixture
def place(kafka, spark, tmp_path):
    servers = kafka.bootstrap_servers
    clicks, output = create_topic(servers, partitions=2), create_topic(servers, partitions=2)
    for n in range(ROWS):
        produce(servers, clicks, [{"user_id": n}], partition=n % 2)
    (tmp_path / "task").mkdir()
    yield Place(servers, clicks, output, tmp_path, topic_work(spark, servers, clicks))
    delete_topics(servers, clicks, output)


def plant(writer: KafkaSinkWriter, within: bool, fault: Any, path: Path) -> None:
    sending = writer.sending

    def planted(work: Work) -> Any:
        send = sending(work)
        if not within:
            return Planted(send, fault, path)
        turns = send.turns
        faulty = PlantedTurns(turns.address, turns.secret, turns.batch, fault, path)
        return type(send)(send.kafka, faulty)

    writer.sending = planted  # type: ignore[method-assign]


KINDS = (APPENDED, ORDERED, TRANSACTIONAL)
FAULTS = {"killed": (killed, 60.0), "hangs": (hangs, 3.0)}
CASES = [(kind, False) for kind in KINDS] + [(kind, True) for kind in KINDS[1:]]


@pytest.mark.parametrize(("fault", "timeout_s"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize(("kind", "within"), CASES)
def test_a_resident_that_is_lost_behind_its_send_costs_no_row(
    place, spark, kind, within, fault, timeout_s
):
    writer = writer_of(kind, place.sink, place.directory)
    plant(writer, within, fault, place.directory / "fault")
    with running(spark, timeout_s=timeout_s) as pool:
        attempts = place.run(writer, pool)
    assert (place.directory / "fault").exists()
    rows = place.rows()
    assert set(rows) == set(range(ROWS))
    if kind == TRANSACTIONAL:
        assert set(rows.values()) == {1}
    assert (attempts == 1) is (kind == APPENDED), "what was sent is known, or sent again"


class Serving(threading.Thread):
    """A resident in this process, which answers as it likes."""

    def __init__(self, pool: ResidentPool, answers: int) -> None:
        super().__init__(daemon=True)
        listener = pool._listener
        assert listener is not None
        self._channel = ResidentChannel.connect(listener.address, listener.secret)
        self._channel.send(json.dumps({"slot": 0, "pid": os.getpid()}).encode())
        self._answers = answers
        self.start()

    def run(self) -> None:
        """Serve calls until the end; after the first one without an answer close the connection."""
        pieces: Newest[Any] = Newest()
        while True:
            try:
                head, body = _head_of(self._channel.receive())
            except OSError:
                return
            if head.get("end"):
                return
            answer = json.dumps(_answer(CallHead(**head), body, pieces)).encode()
            for _ in range(self._answers):
                self._channel.send(answer)
            if not self._answers:
                self._channel.close()
                return


def one_item(place: Place) -> Place:
    """All clicks in one task: a resident of this process has no number of its item."""
    work = Work(place.work.spark, place.work.items[:1], place.work.read)
    return Place(place.servers, place.clicks, place.output, place.directory, work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_resident_that_answers_twice_counts_once(place, lonely, kind):
    place, writer = one_item(place), writer_of(kind, place.sink, place.directory)
    Serving(lonely, answers=2)
    assert place.run(writer, lonely) == 1
    following = PIN.__class__(**{n: getattr(PIN, n) for n in PIN.__slots__} | {"batch": 8})
    task = probe_task(place.directory / "again", place.sink)
    work = Work(place.work.spark, place.work.items, place.work.read, tasks=lonely)
    report = writer.run(work, task, following)
    writer.commit(report, following, 2)
    assert report.counts["joined"] == ROWS // 2
    assert set(place.rows().values()) == {2}, "once a batch"


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_closes_behind_a_send_costs_no_row(place, lonely, kind):
    place, writer = one_item(place), writer_of(kind, place.sink, place.directory)
    first = Serving(lonely, answers=0)

    def follow() -> None:
        first.join()
        Serving(lonely, answers=1)

    threading.Thread(target=follow, daemon=True).start()
    assert place.run(writer, lonely) == (1 if kind == APPENDED else 2)
    rows = place.rows()
    assert set(rows) == set(range(0, ROWS, 2))
    if kind == TRANSACTIONAL:
        assert set(rows.values()) == {1}
