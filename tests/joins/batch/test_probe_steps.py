"""What a step of the probe pins and runs on a real topic, and what it leaves to the next loop."""

import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import OF_THE_PROBE
from joins.batch.batch_plan import ProbeSteps
from joins.batch.batches import ProbeHooks, ProbeSettings, commit_letters
from joins.batch.inserts import Inserts, JoinBatches, ProbeInsert
from joins.batch.staleness import StalenessGate
from joins.durable.failpoints import FailpointError, Failpoints
from joins.durable.pins import Pin, PinStore
from joins.durable.probe_lives import Life
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.kernels.probe.probe import DEAD_LETTERS, kernel_spec
from joins.loop import BatchTurns, LoopGuards
from joins.plan.errors import FencedError, RecordsLostError, SinkError
from joins.plan.plan import KafkaOptions
from joins.worker.probe_task import ProbeTask
from joins.worker.staging import BatchReport, TaskReport
from joins.worker.topic_reader import TopicReader
from joins.worker.work import SparkTasks
from tests.support.probe import PLAN
from tests.support.spark_jobs import jobs_of
from tests.support.topics import create_topic, identified, produce

RECORDS = {0: 60, 1: 30}


def rows_seen(batches):
    places = [
        place
        for batch in batches
        for place in zip(*(batch.column(n).to_pylist() for n in (1, 2)), strict=True)
    ]
    yield TaskReport(counts={"records": len(places)}, detail={"places": places}).to_batch()


class Writer:
    """A sink that notes which records reached it, and knows what it has if it is `durable`."""

    def __init__(self, durable=False, shows_early=False):
        self.pins, self.places, self.batches, self.durable = [], [], [], durable
        self.shows_early, self.seen = shows_early, lambda pin: None

    def run(self, work, task, pin):
        self.pins.append(pin)
        self.seen(pin)
        report = work.report(rows_seen)
        self.places.append(sorted(tuple(p) for each in report.details for p in each["places"]))
        return BatchReport({}, {"joined": pin.records(), **report.counts}, ())

    def commit(self, report, pin, epoch):
        self.batches.append(pin.batch)

    def newest_batch(self):
        return max(self.batches, default=None) if self.durable else None

    def committed_counts(self, pin):
        return {"joined": 1, "records": 10} if self.durable and pin.batch in self.batches else None


class Side:
    """The steps of one loop after the other over a topic with 60 and 30 records."""

    def __init__(self, root, spark, kafka):
        create_table(root / "dead", DEAD_LETTERS)
        self.root, self.spark, self.servers = root, spark, kafka.bootstrap_servers
        self.topic = create_topic(self.servers, partitions=2)
        self.topics = identified(self.servers, self.topic)
        for partition, count in RECORDS.items():
            records = [{"n": n} for n in range(count)]
            produce(self.servers, self.topic, records, partition=partition)
        self.writers, self.finished, self.limit = [Writer()], [], 1_000
        self.dead = DeltaLog(root / "dead", "app")
        self.plan, self.may_pin = 1, True
        self.pins = PinStore(root / "pins")
        self.all: list[ProbeSteps] = []

    def steps(self, failpoints="", **life) -> ProbeSteps:
        """Of a new loop, which has found where it is."""
        life = Life("probe", 0, self.topics, **{"start_offsets": {0: 0, 1: 0}, **life})
        faults = Failpoints(failpoints, self.root / "failpoints")
        hooks = self.hooks = ProbeHooks(
            epoch=1,
            plan=self.plan,
            may_pin=lambda: self.may_pin,
            pins=self.pins,
            dead_letters=self.dead,
            versions=lambda: {"users": 7},
            source_times=lambda versions: {name: v * 100 for name, v in versions.items()},
            proofs=lambda _: {},
            staleness=StalenessGate({}, Path(), Path()),
            limit=lambda: self.limit,
            restore=lambda versions: None,
            on_pin=lambda pin: None,
            check=lambda: None,
            counted=dict,
            on_finish=self.finished.append,
            guards=LoopGuards(faults, BatchTurns(), lambda error: None),
            tasks=SparkTasks(self.spark),
        )
        kafka = KafkaOptions(self.servers, self.topic)
        task = ProbeTask(kernel_spec(PLAN), {}, self.root / "dead", 1)
        inserts = Inserts([ProbeInsert(task, writer) for writer in self.writers])
        reader = TopicReader(kafka, self.topics, OF_THE_PROBE)
        settings = ProbeSettings(kafka, life, life.start_offsets)
        steps = ProbeSteps(JoinBatches(self.spark, inserts, reader, hooks), settings, hooks)
        self.all.append(steps)
        steps.recover()
        return steps

    def ranges(self) -> list[dict[int, tuple[int, int]]]:
        return [pin.ranges() for pin in self.writers[0].pins]


@pytest.fixture
def side(tmp_path, spark, kafka):
    side = Side(tmp_path, spark, kafka)
    yield side
    for steps in side.all:
        steps.close()


def test_a_pinned_batch_ends_under_its_plan_and_no_other_one_begins_when_there_is_a_newer(side):
    side.limit, side.writers = 45, [Writer(durable=True)]
    with pytest.raises(FailpointError):
        side.steps(failpoints="C3=raise").step()  # pinned, not committed
    side.may_pin = False
    steps = side.steps()
    assert [steps.step() for _ in range(3)] == [True, False, False]
    assert [pin.plan for pin in side.writers[0].pins] == [1, 1]
    side.may_pin, side.plan = True, 2
    side.steps().step()
    assert [pin.plan for pin in side.writers[0].pins] == [1, 1, 2]
    assert side.ranges()[1:] == [{0: (0, 30), 1: (0, 15)}, {0: (30, 60), 1: (15, 30)}]


def test_each_record_is_in_one_batch_and_without_new_ones_there_is_none(side):
    side.limit = 45
    steps = side.steps()
    for _ in range(4):
        steps.step()
    assert side.ranges() == [{0: (0, 30), 1: (0, 15)}, {0: (30, 60), 1: (15, 30)}]
    every = [place for places in side.writers[0].places for place in places]
    assert sorted(every) == [(p, o) for p, count in RECORDS.items() for o in range(count)]
    produce(side.servers, side.topic, [{"n": 60}], partition=0)
    steps.step()
    assert [done.pin.batch for done in side.finished] == [0, 1, 2]
    assert side.ranges()[2] == {0: (60, 61)}


def test_each_batch_is_one_job_of_spark(side, spark):
    side.limit = 45
    steps = side.steps()
    with jobs_of(spark) as jobs:
        for _ in range(3):
            steps.step()
    assert (len(side.finished), len(jobs)) == (2, 2)


def test_a_batch_syncs_its_pin_and_no_more_without_dead_letters(side, monkeypatch):
    version = side.dead.version()
    steps = side.steps()
    steps.step()
    produce(side.servers, side.topic, [{"n": 60}], partition=0)
    synced, sync = [], os.fsync

    def noted(descriptor):
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    steps.step()
    assert [done.pin.batch for done in side.finished] == [0, 1]
    places = [path if path.is_dir() else path.parent for path in synced]
    assert places == [side.root / "pins"] * 2
    assert side.dead.version() == version


def test_dead_letters_are_committed_with_their_batch(side):
    side.steps().step()
    pin = side.finished[0].pin
    with ParquetStage(side.dead.path, DEAD_LETTERS, FileOrigin(1, 0, 0, 0)) as stage:
        stage.write(pa.RecordBatch.from_pylist([{}], schema=DEAD_LETTERS))
        staged = stage.finish()
    commit_letters(side.hooks, pin, [staged])
    assert side.dead.batches.last_batch() == 0


def test_rows_that_are_seen_early_wait_for_the_pin_and_others_do_not(side):
    """The pin is written while the tasks join, and waited for before the first commit."""
    side.limit, early, held = 45, Writer(shows_early=True), threading.Event()
    early.seen = lambda pin: early.places.append(side.pins.read(pin.batch) == pin)
    side.writers = [early]
    side.steps().step()
    assert early.places[0] is True

    class Slow(PinStore):
        def create(self, pin):
            assert held.wait(60), "the tasks run"
            return super().create(pin)

    side.pins, late = Slow(side.root / "pins"), Writer(durable=True)
    late.batches = [0]
    late.seen = lambda pin: held.set()
    late.commit = lambda report, pin, epoch: late.places.append(side.pins.read(pin.batch) == pin)
    side.writers = [late]
    side.steps().step()
    assert late.places[-1] is True


def test_a_retried_batch_of_a_runner_that_was_taken_over_commits_nothing(side):
    with pytest.raises(FailpointError):
        side.steps("C6=raise").step()
    steps = side.steps()
    side.dead.commit_epoch(2)
    with pytest.raises(FencedError):
        steps.step()
    assert side.writers[0].batches == []


def test_a_batch_whose_pin_cannot_be_written_commits_nothing(side):
    (side.root / "pins").write_text("no directory")
    steps = side.steps()
    with pytest.raises(OSError, match="pins"):
        steps.step()
    assert (len(side.writers[0].pins), side.writers[0].batches, side.finished) == (1, [], [])


def test_a_batch_that_another_runner_has_pinned_runs_under_that_pin(side):
    steps = side.steps()
    other = Pin(0, side.topic, {0: 0, 1: 0}, {0: 7, 1: 0}, {"users": 7}, 5, 1)
    side.pins.create(other)
    with pytest.raises(SinkError, match="has a pin of epoch 1 already"):
        steps.step()
    assert side.writers[0].batches == []
    side.steps().step()
    assert side.writers[0].pins[-1] == other
    assert side.finished[0].pin == other


def test_the_pin_says_what_the_batch_depends_on(side):
    side.steps().step()
    pin = side.pins.newest()
    assert (dict(pin.start_offsets), dict(pin.end_offsets)) == ({0: 0, 1: 0}, RECORDS)
    assert (pin.records(), pin.epoch, pin.event) == (90, 1, None)
    assert pin.freshness_ms()["users"] > 0


def test_a_bounded_stream_is_read_to_its_end_and_no_further(side):
    steps = side.steps(end_offsets={0: 10, 1: 5})
    for _ in range(2):
        steps.step()
    assert side.ranges() == [{0: (0, 10), 1: (0, 5)}]


def test_an_empty_range_has_no_batch(side):
    side.steps(start_offsets={0: 3}, end_offsets={0: 3}).step()
    assert side.finished == []
    assert side.pins.newest() is None


@pytest.mark.parametrize("point", ["C3", "C4", "C6", "C7"])
def test_a_pinned_batch_that_is_not_committed_is_run_again_under_its_pin(side, point):
    side.limit = 45
    with pytest.raises(FailpointError):
        side.steps(f"{point}=raise").step()
    pin = side.pins.newest()
    produce(side.servers, side.topic, [{"n": 60}], partition=0)
    steps = side.steps()
    steps.step()
    assert side.writers[0].pins[-1] == pin
    assert side.writers[0].batches == [0]
    steps.step()
    assert side.finished[-1].pin.start_offsets == pin.end_offsets


@pytest.mark.parametrize("point", ["C8", "C9", "C10"])
def test_a_committed_batch_is_not_run_again(side, point):
    side.writers = [Writer(durable=True)]
    with pytest.raises(FailpointError):
        side.steps(f"{point}=raise").step()
    steps = side.steps()
    steps.step()
    assert side.writers[0].batches == [0]
    assert {done.pin.batch for done in side.finished} == {0}


def test_a_batch_that_was_planned_and_not_pinned_leaves_nothing(side):
    with pytest.raises(FailpointError):
        side.steps("C2=raise").step()
    assert side.pins.newest() is None
    side.steps().step()
    assert side.ranges() == [{0: (0, 60), 1: (0, 30)}]


def test_a_pin_is_not_written_by_a_runner_that_was_taken_over(side):
    steps = side.steps()
    side.dead.commit_epoch(2)
    with pytest.raises(FencedError):
        steps.step()
    assert side.pins.newest() is None


def test_records_of_a_pinned_batch_that_are_gone_are_lost(side):
    pin = Pin(0, side.topic, {0: 0, 1: 0}, RECORDS, {"users": 7}, 5, 1)
    side.pins.create(pin)
    cluster = KafkaCluster(KafkaOptions(side.servers, side.topic))
    cluster.delete_records_before(side.topic, {0: 33})
    with pytest.raises(RecordsLostError, match="does not have all records") as caught:
        side.steps().step()
    assert "the gap is recorded" in caught.value.hint


def test_outputs_are_committed_in_their_order_and_a_retry_leaves_out_those_that_have_the_batch(
    side,
):
    side.writers = writers = [Writer(durable=True), Writer(durable=True), Writer()]
    for attempt in (1, 2):  # each comes to the next commit of the batch
        with pytest.raises(FailpointError):
            side.steps("C14=raise#0;C14=raise@1").step()
        assert [writer.batches for writer in writers] == [[0]] * attempt + [[]] * (3 - attempt)
        assert side.finished == []
    side.steps().step()
    assert [writer.batches for writer in writers] == [[0]] * 3
    assert [len(writer.pins) for writer in writers] == [1, 2, 3]
    assert len({pin.batch_timestamp_ms for writer in writers for pin in writer.pins}) == 1
    (batch,) = side.finished
    assert dict(batch.counts) == {"joined": 1 + 1 + 90, "records": 10 + 10 + 90}
