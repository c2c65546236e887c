"""Whether the probe may run, and from where, on a real topic and real tables, without Spark."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from kafka import KafkaAdminClient, TopicPartition

from joins.adapters.delta.log import DeltaLog, FileActions, create_table
from joins.adapters.delta.state_log import StateChange, StateColumns, StateLog
from joins.adapters.kafka.batch_producer import BatchProducer
from joins.adapters.kafka.cluster import KafkaCluster
from joins.batch.batches import FinishedBatch
from joins.batch.event_batch import EventTables
from joins.batch.event_state import EventState
from joins.batch.probe_control import ControlParts, ProbeControl
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.pins import EventPin, Pin, pin_json
from joins.durable.requests import Request, Stalls
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.kernels.probe.probe import DEAD_LETTERS
from joins.plan.errors import (
    CheckpointError,
    FencedError,
    LogsDisagreeError,
    NothingToAcknowledgeError,
    OutputTopicChangedError,
    PinnedVersionExpiredError,
    RecordsLostError,
    RequestError,
    SinkError,
    TopicIdentityChangedError,
)
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import SPAN, StreamTopic
from joins.sinks.delta import DeltaSinkWriter
from joins.sinks.kafka import OutputTopic
from joins.stream.bounds import is_reached
from service.embedded.broker import KafkaBroker
from tests.support.topics import add_partitions, create_topic, delete_topics, produce, unique_name
from tests.support.transactions import transactions
from tests.support.wait import wait_until

APP = "sluice:job:one"


def is_finished(control: ProbeControl) -> bool:
    return is_reached(control.progress.next_offsets, control.lives.current.end_offsets)


class Job:
    """The durable things of one job over a topic with one partition of 100 records."""

    def __init__(self, root, kafka: KafkaBroker) -> None:
        self.servers = kafka.bootstrap_servers
        self.topic = create_topic(self.servers, unique_name("control"))
        produce(self.servers, self.topic, [{"n": n} for n in range(100)], partition=0)
        self.root = root
        self.checkpoint = Checkpoint(root / "checkpoint")
        self.stalls = Stalls()
        self.controls: list[ProbeControl] = []
        self.event: EventTables | None = None
        self.outputs: tuple[DeltaLog, ...] = ()
        self.replaces_by_place = False
        self.accepted: list[bool] = []
        self.accept: Callable[[], None] = lambda: self.accepted.append(True)
        for name in ("output", "dead"):
            create_table(root / name, DEAD_LETTERS)
        self.output = DeltaLog(root / "output", APP)
        self.dead = DeltaLog(root / "dead", APP)
        self.meta: JobMeta | None = None
        self.meta = self._meta()

    def _meta(self) -> JobMeta:
        control = self.control()
        view = control.progress.look(holding=False)
        return JobMeta("one", 1, self.topic, str(view.topic_ids[0]), {0: 0}, {})

    def bound(self, end: int) -> None:
        assert self.meta is not None
        self.meta = replace(self.meta, probe_end_offsets={0: end})

    def control(self) -> ProbeControl:
        """What a new runner would have."""
        meta = self.meta or JobMeta("one", 1, self.topic, "unknown", {0: 0}, {})
        control = ProbeControl(
            ControlParts(
                checkpoint=self.checkpoint,
                meta=meta,
                kafka=KafkaOptions(self.servers, self.topic),
                writer=DeltaSinkWriter(self.output),
                dead_letters=self.dead,
                stalls=self.stalls,
                available=lambda versions: {name: v + 2 for name, v in versions.items()},
                event=self.event,
                outputs=self.outputs,
                replaces_by_place=self.replaces_by_place,
                accept_outputs=lambda: self.accept(),
            )
        )
        self.controls.append(control)
        return control

    def pin_of(self, batch: int) -> Pin:
        bounds = {0: 10 * batch}, {0: 10 * (batch + 1)}
        return Pin(batch, self.topic, *bounds, {"users": 3}, batch, 1)

    def pin(self, batch: int, control: ProbeControl) -> Pin:
        return control.pins.create(self.pin_of(batch))

    def commit(self, pin: Pin) -> None:
        self.output.commit(pin.batch, 1, (), {**pin_json(pin), "counts": {"joined": 10}})

    def letter(self, batch: int) -> None:
        """A dead letter of `batch` is committed."""
        with ParquetStage(self.dead.path, DEAD_LETTERS, FileOrigin(1, batch, 0, 0)) as stage:
            stage.write(pa.RecordBatch.from_pylist([{}], schema=DEAD_LETTERS))
            staged = stage.finish()
        self.dead.commit(batch, 1, [staged], {})

    def keeps_state(self) -> StateLog:
        """From now on it is a job with event batches; gives its table of rows that wait."""
        for name in ("late", "waiting"):
            create_table(self.root / name, DEAD_LETTERS)
        columns = StateColumns(due="offset", keep="offset", bucket="partition")
        waiting = StateLog(DeltaLog(self.root / "waiting", f"{APP}:waiting"), columns)
        late = DeltaLog(self.root / "late", f"{APP}:late")
        self.event = EventTables(self.dead, late, waiting, None)
        return waiting

    def event_pin(self, batch: int, control: ProbeControl, state: EventState) -> Pin:
        assert self.event is not None
        event = EventPin(**state.as_json(), state_versions=self.event.versions())
        return control.pins.create(replace(_event_range(batch, self.topic), event=event))

    def letters(self) -> int:
        return len(self.dead.files.files_at(self.dead.version()))

    def look(self, control: ProbeControl) -> str | None:
        """The type of the stall after a look while nothing runs."""
        control.look(holding=False, running=False)
        control.may_run()
        stalled = self.stalls.first()
        return None if stalled is None else stalled[1].type

    def trim(self, offset: int) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            admin.delete_records({TopicPartition(self.topic, 0): offset})
        finally:
            admin.close()

    def recreate(self, records: int) -> None:
        delete_topics(self.servers, self.topic)
        create_topic(self.servers, self.topic)
        produce(self.servers, self.topic, [{"n": n} for n in range(records)], partition=0)


def _event_range(batch: int, topic: str) -> Pin:
    return Pin(batch, topic, {0: 10 * batch}, {0: 10 * (batch + 1)}, {"users": 3}, batch, 1)


def waiting_row(root, batch: int, due: int):
    rows = pa.RecordBatch.from_pylist([{"offset": due, "partition": 0}], schema=DEAD_LETTERS)
    with ParquetStage(root, DEAD_LETTERS, FileOrigin(1, batch, 0, 0)) as stage:
        stage.write(rows)
        return stage.finish()


@pytest.fixture
def job(tmp_path, kafka):
    found = Job(tmp_path, kafka)
    yield found
    for control in found.controls:
        control.close()


def asked(cause: str, request_id: str = "r1", **body) -> Request:
    told = {"cause": cause, "choice": None, "reason": "known", **body}
    return Request(request_id, "acknowledge", told, 1, "operator")


def test_a_job_begins_in_its_first_life_and_may_run(job):
    control = job.control()
    control.open()
    assert job.look(control) is None
    control.prepare_start()
    assert control.progress.start_offsets() == {0: 0}
    assert control.lives.current.directory == "probe"
    with pytest.raises(NothingToAcknowledgeError):
        control.acknowledge(asked("records-lost"))


def test_a_committed_batch_that_was_not_counted_is_counted_at_the_next_start(job):
    control = job.control()
    job.commit(job.pin(0, control))
    assert control.progress.counts.batch is None
    later = job.control()
    later.open()
    assert (later.progress.counts.batch, later.progress.counts.joined) == (0, 10)
    assert later.progress.next_offsets == {0: 10}
    job.trim(10)
    assert job.look(later) is None, "what is committed may be removed"


def test_a_batch_that_ends_while_the_topic_is_looked_at_is_no_fault(job, monkeypatch):
    control = job.control()
    control.open()
    look = control.progress.look

    def looked(*, holding):
        view = look(holding=holding)
        produce(job.servers, job.topic, [{"n": n} for n in range(10)], partition=0)
        pin = control.pins.create(Pin(0, job.topic, {0: 0}, {0: 110}, {"users": 3}, 0, 1))
        control.progress.begins(pin)
        control.progress.record(FinishedBatch(pin, {"records": 110}))
        return view

    monkeypatch.setattr(control.progress, "look", looked)
    control.look(holding=False, running=True)
    assert control.may_run(), "the batch read what came after the look"


def test_nobody_knows_what_waits_in_a_topic_that_was_created_again(job):
    control = job.control()
    control.open()
    job.look(control)
    assert control.progress.ends.at_ms is not None
    delete_topics(job.servers, job.topic)
    create_topic(job.servers, job.topic)
    wait_until(lambda: job.look(control) == "topic-identity-changed")
    assert control.progress.ends.at_ms is None


DAMAGED = {
    "no_json": b"{",
    "no_object": b"[1]",
    "a_member_less": b'{"format_version": 1, "batch": 0}',
    "a_member_more": b'{"format_version": 1, "batch": 0, "next_offsets": {}, "x": 1}',
    "no_offsets": b'{"format_version": 1, "batch": 0, "next_offsets": [1]}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_counters_are_removed_and_the_job_goes_on_where_its_output_ends(job, content):
    control = job.control()
    control.progress.record(FinishedBatch(job.pin(0, control), {"joined": 10}))
    control.progress.store()
    before = control.progress.counts.sums()
    job.commit(control.pins.create(replace(job.pin_of(1), before=before)))
    job.checkpoint.progress_file.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        job.control()
    assert "Remove this file and resume the job" in caught.value.hint
    assert "the newest pin has the counters, too" in caught.value.hint
    job.checkpoint.progress_file.unlink()
    later = job.control()
    later.open()
    assert later.progress.next_offsets == {0: 20}
    assert (later.progress.counts.batch, later.progress.counts.joined) == (1, 20)


@pytest.mark.parametrize("is_stored", [True, False])
def test_the_newest_pin_has_the_counts_of_the_batches_before(job, is_stored):
    control = job.control()
    for batch in range(3):
        pin = replace(job.pin_of(batch), before=control.progress.counts.sums())
        job.commit(control.pins.create(pin))
        control.progress.record(FinishedBatch(pin, {"joined": 10}))
    if is_stored:
        control.progress.store()
    assert job.checkpoint.progress_file.exists() == is_stored
    later = job.control()
    later.open()
    found = [replace(each.progress.counts, at_ms=0) for each in (control, later)]
    assert found[0] == found[1]
    assert (later.progress.counts.batch, later.progress.counts.joined) == (2, 30)


def test_an_uncommitted_batch_is_left_to_the_loop(job):
    control = job.control()
    for batch in (0, 1):
        job.pin(batch, control)
    job.commit(job.pin(0, control))
    control.prepare_start()
    assert control.progress.next_offsets == {0: 10}
    assert len(control.lives.all) == 1


@pytest.mark.parametrize("told_by", ["progress", "letters", "output"])
def test_pins_that_are_gone_of_committed_batches_wait_for_an_operator(job, told_by):
    control = job.control()
    for batch in (0, 1):
        pin = job.pin(batch, control)
        if told_by == "progress":
            control.progress.record(FinishedBatch(pin, {"joined": 10}))
        elif told_by == "letters":
            job.letter(batch)
        job.commit(pin)
    control.prepare_start()
    control.pins.abandon(1)
    with pytest.raises(LogsDisagreeError, match="batch 1 is committed, but has no pin") as raised:
        control.prepare_start()
    control.report(raised.value)
    assert not control.may_run()
    record = control.acknowledge(asked("logs-disagree"))
    assert record["gaps"] == []
    life = control.lives.current
    assert (life.first_batch, life.abandoned) == (2, ())
    assert dict(life.start_offsets) == {0: 20}
    assert control.may_run()
    control.prepare_start()


def test_removed_unread_records_are_acknowledged_with_their_gap(job):
    control = job.control()
    job.commit(job.pin(0, control))
    job.pin(1, control)
    job.letter(1)
    control.open()
    assert job.look(control) is None
    job.trim(33)
    assert job.look(control) == "records-lost"
    for bad in (asked("topic-missing"), asked("pinned-version-expired")):
        with pytest.raises(NothingToAcknowledgeError):
            control.acknowledge(bad)
    for bad in (asked("records-lost", reason=" "), asked("records-lost", choice="repin")):
        with pytest.raises(RequestError):
            control.acknowledge(bad)
    assert job.letters() == 1
    record = control.acknowledge(asked("records-lost"))
    assert record["gaps"] == [{"partition": 0, "from": 10, "to": 33}]
    assert (record["by"], record["cause"], record["choice"]) == (
        "operator",
        "records-lost",
        "continue",
    )
    assert job.letters() == 0, "the abandoned batch has no dead letters"
    life = control.lives.current
    assert (life.first_batch, life.abandoned, dict(life.start_offsets)) == (2, (1,), {0: 33})
    assert control.pins.newest().batch == 0
    assert job.look(control) is None
    assert control.acknowledge(asked("records-lost")) == record, "the same request again"
    later = job.control()
    later.open()
    assert later.progress.start_offsets() == {0: 33}
    assert later.progress.next_offsets == {0: 33}
    assert job.look(later) is None


def test_an_output_topic_that_is_another_one_waits_for_an_operator(job):
    control = job.control()
    job.commit(job.pin(0, control))
    control.open()
    job.pin(1, control)
    control.report(OutputTopicChangedError("output topic is another one", hint="x"))
    assert job.look(control) == "output-topic-changed", "a look at the stream does not clear it"
    record = control.acknowledge(asked("output-topic-changed"))
    assert (record["gaps"], job.accepted) == ([], [True])
    life = control.lives.current
    assert (life.first_batch, life.abandoned, dict(life.start_offsets)) == (2, (1,), {0: 10})
    assert job.look(control) is None


def test_an_acknowledgement_that_a_full_disk_has_cut_is_carried_out_again_as_a_whole(job):
    control = job.control()
    job.commit(job.pin(0, control))
    control.open()
    control.report(OutputTopicChangedError("output topic is another one", hint="x"))
    accept, request = job.accept, asked("output-topic-changed")

    def full():
        raise OSError("no space left on device")

    job.accept = full
    with pytest.raises(OSError, match="no space"):
        control.acknowledge(request)
    job.accept = accept
    record = control.acknowledge(request)
    assert (record["id"], job.accepted, job.look(control)) == ("r1", [True], None)
    assert [life.first_batch for life in control.lives.all] == [0, 1]
    assert control.acknowledge(request) == record


def test_an_output_topic_that_was_created_again_is_written_once_it_is_acknowledged(job):
    name = create_topic(job.servers, unique_name("output"))
    kafka, file = KafkaOptions(job.servers, name), job.root / "sink.json"
    topic = OutputTopic(name, BatchProducer(kafka), file)
    before = topic.checked_id()
    topic.write({"batch": 0, "epoch": 1, "counts": {}, "topic_id": before})
    delete_topics(job.servers, name)
    create_topic(job.servers, name)
    topic = OutputTopic(name, BatchProducer(kafka), file)
    with pytest.raises(OutputTopicChangedError, match="deleted and created again") as caught:
        topic.checked_id()
    control, job.accept = job.control(), topic.accept
    control.open()
    control.report(caught.value)
    control.acknowledge(asked("output-topic-changed"))
    assert topic.checked_id() != before
    assert OutputTopic(name, BatchProducer(kafka), file).checked_id() != before, "a restart"
    assert job.look(control) is None


def test_a_batch_that_was_read_is_not_committed_once_the_stream_is_another_one(job):
    control = job.control()
    job.commit(job.pin(0, control))
    control.open()
    job.pin(1, control)
    control.check()
    job.trim(33)
    assert job.look(control) == "records-lost"
    with pytest.raises(RecordsLostError, match="begins at offset 33"):
        control.check()


@pytest.mark.parametrize("records", [3, 100, 250], ids=["smaller", "same", "larger"])
def test_another_topic_of_the_same_name_is_joined_from_its_beginning(job, records):
    control = job.control()
    job.commit(job.pin(0, control))
    control.open()
    assert job.look(control) is None
    job.recreate(records)
    assert job.look(control) == "topic-identity-changed"
    with pytest.raises(TopicIdentityChangedError, match="expected"):
        control.check()
    again = job.control()
    again.open()
    assert not again.may_run()
    record = again.acknowledge(asked("topic-identity-changed"))
    assert record["gaps"] == [{"partition": 0, "from": 10, "to": 100}]
    assert dict(again.lives.current.start_offsets) == {0: 0}
    assert job.look(again) is None
    again.check()


def test_no_topic_follows_another_one_where_late_rows_replace_rows_by_their_places(job):
    """A record of the new topic would get the row of one of the old, and lose its own."""
    job.replaces_by_place = True
    control = job.control()
    job.commit(job.pin(0, control))
    control.open()
    job.recreate(3)
    assert job.look(control) == "topic-identity-changed"
    with pytest.raises(RequestError, match="other records have some of these now") as caught:
        control.acknowledge(asked("topic-identity-changed"))
    assert "another 'path'" in caught.value.hint
    assert (len(control.lives.all), job.look(control)) == (1, "topic-identity-changed")


def test_a_missing_topic_cannot_be_acknowledged(job):
    control = job.control()
    assert job.look(control) is None
    delete_topics(job.servers, job.topic)
    assert job.look(control) == "topic-missing"
    with pytest.raises(RequestError, match="not there"):
        control.acknowledge(asked("topic-missing"))
    assert len(control.lives.all) == 1


def test_an_expired_version_is_pinned_anew_only_when_asked(job):
    control = job.control()
    job.pin(0, control)
    job.letter(0)
    control.open()
    control.report(PinnedVersionExpiredError("version 3 is gone", hint="Repin."))
    assert job.look(control) == "pinned-version-expired"
    with pytest.raises(RequestError):
        control.acknowledge(asked("pinned-version-expired", choice="continue"))
    record = control.acknowledge(asked("pinned-version-expired"))
    assert (record["choice"], record["gaps"]) == ("repin", [])
    life = control.lives.current
    assert (life.versions, dict(life.start_offsets)) == ({"users": 5}, {0: 0})
    assert job.letters() == 0


class OfTwoOutputs:
    """Of batch 0 one output has a row, the other has none, when its version expires."""

    def __init__(self, job):
        create_table(job.root / "other", DEAD_LETTERS)
        self.job, self.other = job, DeltaLog(job.root / "other", APP)
        job.outputs = (self.other, job.output)
        self.control = job.control()
        job.pin(0, self.control)
        self.other.commit(0, 1, [waiting_row(self.other.path, 0, 1)], {})
        self.control.open()
        self.control.report(PinnedVersionExpiredError("version 3 is gone", hint="Repin."))
        job.look(self.control)

    def rows(self):
        return len(self.other.files.files_at(self.other.version()))

    def refuse(self, monkeypatch):
        """The output without rows takes no removal."""

        def retract(batch, epoch):
            raise SinkError("the table is append-only", hint="-")

        monkeypatch.setattr(self.job.output, "retract", retract)


def test_what_one_of_several_outputs_has_of_a_batch_that_is_given_up_is_taken_back(job):
    """Its records come again in another batch, with another version."""
    two = OfTwoOutputs(job)
    assert two.rows() == 1
    two.control.acknowledge(asked("pinned-version-expired"))
    assert two.rows() == 0
    assert two.control.lives.current.first_batch == 1


def test_of_two_outputs_in_one_table_the_later_one_gives_back_what_it_replaced_first(job):
    two = OfTwoOutputs(job)
    again = DeltaLog(two.other.path, f"{APP}:insert-2")
    (replaced,) = again.files.rows_at(again.version())
    rows = [waiting_row(again.path, 0, 1)]
    again.commit_change(0, 1, FileActions(rows, [replaced], of_version=again.version()), {})
    two.control._parts = replace(two.control._parts, outputs=(two.other, again, job.output))
    two.control.acknowledge(asked("pinned-version-expired"))
    assert two.rows() == 0


def test_no_output_loses_rows_of_a_batch_that_is_not_given_up_after_all(job, monkeypatch):
    """The batch may still run again, and would not write them: the output has its number."""
    two = OfTwoOutputs(job)

    def begin(life):
        raise OSError("no space")

    with monkeypatch.context() as full:
        full.setattr(two.control.lives, "begin", begin)
        with pytest.raises(OSError, match="no space"):
            two.control.acknowledge(asked("pinned-version-expired"))
    assert two.rows() == 1
    two.control.acknowledge(asked("pinned-version-expired"))
    assert two.rows() == 0


def test_an_output_that_keeps_its_rows_keeps_the_loop_waiting_also_after_a_start(job, monkeypatch):
    two = OfTwoOutputs(job)
    with monkeypatch.context() as refusing:
        two.refuse(refusing)
        with pytest.raises(SinkError, match="append-only"):
            two.control.acknowledge(asked("pinned-version-expired"))
        later = job.control()
        later.open()
        with pytest.raises(SinkError, match="append-only"):
            later.prepare_start()
        assert later.pins.newest().batch == 0
    later.prepare_start()
    assert (two.rows(), later.pins.newest(), later.lives.current.first_batch) == (0, None, 1)


def test_an_interrupted_acknowledgement_is_completed_at_the_next_start(job):
    control = job.control()
    job.pin(0, control)
    job.letter(0)
    control.report(PinnedVersionExpiredError("version 3 is gone", hint="Repin."))
    control.acknowledge(asked("pinned-version-expired"))
    aside = job.checkpoint.pins_directory / "abandoned" / f"{0:010d}.json"
    aside.replace(job.checkpoint.pins_directory / aside.name)
    later = job.control()
    later.open()
    assert later.pins.newest() is None
    assert job.letters() == 0


def test_a_batch_that_still_runs_keeps_the_acknowledgement_waiting(job, monkeypatch):
    monkeypatch.setattr("joins.batch.probe_control._BATCH_ENDS_S", 0.1)
    control = job.control()
    control.report(LogsDisagreeError("other", hint="Other."))
    with control.turn, pytest.raises(RequestError, match="still running"):
        control.acknowledge(asked("logs-disagree"))


# Transactions
# --------------------------------------------------------------------------------------------------


def test_a_stream_does_not_begin_before_all_that_it_goes_on_from_may_be_read(job):
    """A batch that was pinned before read committed was the rule reaches into a transaction."""
    control = job.control()
    with transactions(job.servers) as writer:
        writer.begin()
        writer.send(job.topic, {0: [{"n": 100}, {"n": 101}]})
        assert job.look(control) is None
        assert control.progress.held().held_records == 100
        assert control.may_begin()
        control.pins.create(Pin(0, job.topic, {0: 0}, {0: 101}, {"users": 3}, 0, 1))
        assert not control.may_begin()
        writer.commit()
    assert job.look(control) is None
    assert control.may_begin()
    assert control.progress.held().held_records == 103, "the mark of the end counts, too"


# Bounded streams
# --------------------------------------------------------------------------------------------------


def test_a_bounded_stream_is_seen_up_to_its_end_only(job):
    job.bound(40)
    control = job.control()
    add_partition(job.servers, job.topic)
    assert job.look(control) is None
    assert control.progress.held().held_records == 40
    assert control.progress.ends.end_offsets == {0: 40}
    assert control.progress.start_offsets() == {0: 0}
    assert not is_finished(control)


def test_an_empty_range_is_finished_without_a_batch(job):
    job.bound(0)
    control = job.control()
    control.open()
    assert is_finished(control)


def test_what_lies_beyond_the_end_may_be_removed(job):
    job.bound(10)
    control = job.control()
    job.commit(job.pin(0, control))
    control.open()
    assert is_finished(control)
    job.trim(60)
    assert job.look(control) is None
    assert control.progress.held().held_records == 0


def test_a_stream_without_an_end_is_never_finished(job):
    control = job.control()
    job.commit(job.pin(0, control))
    control.open()
    assert not is_finished(control)


def test_a_new_life_after_a_loss_ends_where_the_topic_does(job):
    job.bound(100)
    control = job.control()
    control.open()
    job.recreate(30)
    assert job.look(control) == "topic-identity-changed"
    control.acknowledge(asked("topic-identity-changed"))
    life = control.lives.current
    assert (dict(life.start_offsets), dict(life.end_offsets)) == ({0: 0}, {0: 30})
    assert job.control().lives.current == life


def test_records_have_the_size_that_the_topic_stores_until_batches_have_seen_them(job):
    control = job.control()
    stored = control.progress.average_bytes()
    assert stored is not None
    assert 5 < stored < 500
    counts = {"joined": 10, "records": 10, "bytes": 120}
    pin = job.pin(0, control)
    job.output.commit(pin.batch, 1, (), {**pin_json(pin), "counts": counts})
    later = job.control()
    later.open()
    assert later.progress.average_bytes() == 12.0


def add_partition(servers: str, topic: str) -> None:
    add_partitions(servers, topic, 2)
    produce(servers, topic, [{"n": 1}], partition=1)


def test_an_event_batch_that_was_not_counted_is_counted(job):
    job.keeps_state()
    control = job.control()
    control.open()
    job.commit(job.event_pin(0, control, EventState()))
    control.prepare_start()
    assert control.lives.current.directory == "probe"
    assert control.progress.next_offsets == {0: 10}


class GivenUp:
    """Batch 1 has committed its state, not its output, when its version expires."""

    def __init__(self, job):
        self.job, self.waiting = job, job.keeps_state()
        self.control, self.state = job.control(), EventState(watermark=5, waiting=1)
        self.control.open()
        self.kept = waiting_row(self.waiting.log.path, 0, 7)
        job.commit(job.event_pin(0, self.control, EventState()))
        self.waiting.commit(0, 1, StateChange([self.kept], (), self.state.as_json()))
        job.event_pin(1, self.control, self.state)
        after = EventState(watermark=9, waiting=1)
        new = waiting_row(self.waiting.log.path, 1, 30)
        self.waiting.commit(1, 1, StateChange([new], [self.kept.path], after.as_json()))
        job.event.late.commit(1, 1, [waiting_row(job.event.late.path, 1, 3)], {})
        self.control.report(PinnedVersionExpiredError("version 3 is gone", hint="-"))
        job.look(self.control)

    def acknowledge(self, request_id="r1"):
        asked_for = asked("pinned-version-expired", request_id, choice="repin")
        return self.control.acknowledge(asked_for)

    def check_undone(self):
        late = self.job.event.late
        assert self.control.lives.current.first_batch == 2
        assert [file.path for file in self.waiting.newest_files()] == [self.kept.path]
        assert EventState.of(self.waiting.newest_after()) == self.state
        assert late.files.files_at(late.version()) == []
        assert self.control.pins.newest().batch == 0


def test_what_a_batch_that_is_given_up_has_done_to_the_state_is_undone(job):
    found = GivenUp(job)
    found.acknowledge()
    found.check_undone()


def test_a_pin_that_is_gone_of_a_batch_that_only_the_state_has_waits_for_an_operator(job):
    """Pinned again with other records, the batch would find its number in the state."""
    found = GivenUp(job)
    found.control.pins.abandon(1)
    later = job.control()
    later.open()
    with pytest.raises(LogsDisagreeError, match="batch 1 is committed, but has no pin"):
        later.prepare_start()


FAILURES = {
    "refused_and_sent_again": (SinkError("no store", hint="-"), ["r2"]),
    "refused": (SinkError("no store", hint="-"), []),
    "left_for_the_next_time": (OSError("no space"), ["r1"]),
}


@pytest.mark.parametrize(("error", "again"), FAILURES.values(), ids=FAILURES)
def test_no_loop_starts_before_a_batch_that_is_given_up_is_undone(job, monkeypatch, error, again):
    found, undo, errors = GivenUp(job), EventTables.undo, [error, error]

    def failing(tables, pin, epoch):
        if errors:
            raise errors.pop()
        undo(tables, pin, epoch)

    monkeypatch.setattr(EventTables, "undo", failing)
    with pytest.raises(type(error)):
        found.acknowledge()
    with pytest.raises(type(error)):
        found.control.prepare_start()
    for request_id in again:
        with suppress(NothingToAcknowledgeError):
            found.acknowledge(request_id)
    found.control.prepare_start()
    found.check_undone()
    assert found.control.may_run()


def with_another_topic(job, control) -> str:
    """The name of a topic with two records that the stream has, too, from here on."""
    more = create_topic(job.servers)
    produce(job.servers, more, [{"n": 1}, {"n": 2}])
    topic = StreamTopic(more, KafkaCluster(KafkaOptions(job.servers, "")).require(more).topic_id)
    control.add_topics(control.lives.current.topics.with_more([topic]))
    assert job.look(control) is None
    return more


def test_a_topic_that_comes_later_is_watched_from_its_beginning_on(job):
    control = job.control()
    more = with_another_topic(job, control)
    assert control.progress.ends.end_offsets == {0: 100, SPAN: 2}
    assert control.progress.start_offsets() == {0: 0, SPAN: 0}
    assert control.progress.held().held_records == 102
    again = job.control()
    assert again.lives.current.topics == control.lives.current.topics
    delete_topics(job.servers, more)
    assert job.look(again) == "topic-missing"
    again.close()
    control.close()


def test_a_stream_goes_on_without_a_topic_that_an_operator_gives_up(job):
    """Its records that were not joined are a gap; made anew, it is joined from its beginning."""
    control = job.control()
    more = with_another_topic(job, control)
    delete_topics(job.servers, more)
    wait_until(lambda: job.look(control) == "topic-missing", what="the topic is missed")
    record = control.acknowledge(asked("topic-missing"))
    assert record["gaps"] == [{"topic": more, "partition": 0, "from": 0, "to": 2}]
    assert control.lives.current.topics.read_names == (job.topic,)
    assert (control.progress.start_offsets(), control.may_run()) == ({0: 0}, True)
    again = job.control()
    assert job.look(again) is None
    assert again.progress.held().held_records == 100
    create_topic(job.servers, more)
    produce(job.servers, more, [{"n": 3}])
    wait_until(lambda: job.look(again) == "topic-identity-changed", what="it is seen again")
    assert again.acknowledge(asked("topic-identity-changed", "r2"))["gaps"] == []
    assert job.look(again) is None
    assert again.progress.start_offsets() == {0: 0, SPAN: 0}
    assert again.progress.held().held_records == 101
    again.close()
    control.close()


def test_a_runner_that_was_taken_over_adds_no_topics(job):
    control = job.control()
    known = control.lives.current.topics
    job.dead.commit_epoch(2)
    with pytest.raises(FencedError):
        control.add_topics(known.with_more([StreamTopic("another", "id")]))
    assert control.lives.current.topics == known
    assert not (job.checkpoint.directory / "probe.json").exists()
    control.close()
