"""What a probe batch pins of what Spark has planned, up to the end of a bounded stream."""

import json
import threading
from types import SimpleNamespace

import pytest

from joins.adapters.delta.log import DeltaLog, create_table
from joins.batch.inserts import Inserts, ProbeInsert
from joins.batch.lookups import Lookups
from joins.batch.probe_side import ProbeHooks, ProbeSettings, ProbeSide, up_to
from joins.durable.failpoints import FailpointError, Failpoints
from joins.durable.pins import Pin, PinStore
from joins.durable.probe_lives import Life
from joins.kernels.probe.probe import DEAD_LETTERS, kernel_spec
from joins.plan.errors import LogsDisagreeError
from joins.plan.plan import KafkaOptions
from joins.worker.probe_task import ProbeTask
from joins.worker.staging import BatchReport, BatchTurns, QueryGuards
from tests.support.probe import PLAN

BOUNDED = Life("probe", 0, "id-1", {0: 0, 1: 5}, end_offsets={0: 10, 1: 5})
STREAM = Life("probe", 0, "id-1", {0: 0, 1: 5})


class Frame:
    """Stands for what Spark has read; keeps the filters that it is given."""

    def __init__(self, filters=(), settings=None):
        self.filters = filters
        self.settings = {} if settings is None else settings
        conf = SimpleNamespace(set=self.settings.__setitem__, get=self.settings.get)
        self.sparkSession = SimpleNamespace(sparkContext=None, conf=conf)

    def filter(self, condition):
        return Frame((*self.filters, condition), self.settings)

    def coalesce(self, tasks):
        assert tasks >= 1
        return self


class Writer:
    """A sink that takes everything, and knows what it has if it is `durable`."""

    def __init__(self, durable=False):
        self.joined, self.batches, self.durable = [], [], durable

    def run(self, frame, task, pin):
        self.joined.append((frame, pin))
        return BatchReport({}, {"joined": pin.records(), "records": pin.records()}, ())

    def commit(self, report, pin, epoch):
        self.batches.append(pin.batch)

    def committed_counts(self, pin):
        return {"joined": 1, "records": 10} if self.durable and pin.batch in self.batches else None


class Side:
    """A probe side whose Spark is a directory of offset logs."""

    def __init__(self, root, life, writers=None, failpoints=""):
        create_table(root / "dead", DEAD_LETTERS)
        self.root, self.writers, self.finished = root, writers or [Writer()], []
        self.writer = self.writers[0]
        self.small_records = True
        self.pins = PinStore(root / "pins")
        task = ProbeTask("clicks", kernel_spec(PLAN), {}, root / "dead", 1)
        faults = Failpoints(failpoints, root / "failpoints")
        hooks = ProbeHooks(
            pins=self.pins,
            dead_letters=DeltaLog(root / "dead", "app"),
            versions=lambda: {"users": 7},
            lookups=Lookups(),
            source_times=lambda versions: {name: v * 100 for name, v in versions.items()},
            small_records=lambda: self.small_records,
            restore=lambda versions: None,
            on_pin=lambda pin: None,
            check=lambda pin: None,
            on_finish=self.finished.append,
            guards=QueryGuards(faults, BatchTurns(), lambda error: None),
            turn=threading.Lock(),
        )
        settings = ProbeSettings(
            KafkaOptions("nowhere:9092", "clicks"), root / "spark", life, life.start_offsets
        )
        inserts = Inserts([ProbeInsert(task, Lookups(), writer) for writer in self.writers])
        self.side = ProbeSide(None, inserts, settings, hooks)

    def plan(self, batch, ends):
        path = self.root / "spark" / "offsets" / str(batch)
        path.parent.mkdir(parents=True, exist_ok=True)
        end = json.dumps({"clicks": {str(p): o for p, o in ends.items()}})
        path.write_text(f'v1\n{{"batchTimestampMs":{1000 + batch},"conf":{{}}}}\n{end}')

    def run(self, batch):
        self.side._run_batch(Frame(), batch)


def test_the_pin_ends_where_the_stream_does_and_says_how_fresh_it_is(tmp_path):
    side = Side(tmp_path, BOUNDED)
    side.plan(0, {0: 99, 1: 50, 2: 4})
    pin = side.side.pin(0)
    assert (dict(pin.start_offsets), dict(pin.end_offsets)) == ({0: 0, 1: 5}, {0: 10, 1: 5})
    assert pin.records() == 10
    assert pin.freshness_ms() == {"users": 300}
    assert side.side.pin(0) == pin, "a retry finds it, though Spark's plan is longer"
    assert Side(tmp_path, BOUNDED).side.pin(0) == pin


def test_a_stream_without_an_end_is_pinned_as_it_is_planned(tmp_path):
    side = Side(tmp_path, STREAM)
    side.plan(0, {0: 99, 1: 50})
    assert dict(side.side.pin(0).end_offsets) == {0: 99, 1: 50}


def test_small_records_are_counted_only_but_not_when_a_batch_is_tried_again(tmp_path):
    def asks(side, batch):
        side.plan(batch, {0: 5 * batch + 5, 1: 5})
        side.run(batch)
        frame, _ = side.writer.joined[-1]
        return int(frame.settings["spark.sql.execution.arrow.maxBytesPerBatch"]) < 2**31 - 1

    side = Side(tmp_path, STREAM)
    assert not asks(side, 0)
    side.small_records = False
    assert asks(side, 1), "large records"
    side.small_records = True
    side.plan(2, {0: 15, 1: 5})
    side.side.pin(2)
    assert asks(side, 2), "the attempt before it may have failed because of the size"
    assert not asks(side, 3)


def test_a_pin_that_is_no_part_of_the_plan_is_a_fault(tmp_path):
    side = Side(tmp_path, BOUNDED)
    side.plan(0, {0: 8, 1: 5})
    side.side.pin(0)
    side.plan(0, {0: 99, 1: 5})
    with pytest.raises(LogsDisagreeError):
        side.side.pin(0)


def test_what_is_planned_behind_the_last_batch_is_no_batch(tmp_path):
    side = Side(tmp_path, BOUNDED)
    for batch, end in enumerate((6, 12, 30)):
        side.plan(batch, {0: end, 1: 5 + end})
        side.run(batch)
    assert [done.pin.batch for done in side.finished] == [0, 1]
    assert side.pins.read(2) is None
    ranges = [(p.start_offsets[0], p.end_offsets[0]) for _, p in side.writer.joined]
    assert ranges == [(0, 6), (6, 10)]
    filtered = [len(frame.filters) for frame, _ in side.writer.joined]
    assert filtered == [1, 2], "Spark has planned beyond the pin: of partition 1, then of both"


def test_an_empty_range_has_no_batch(tmp_path):
    side = Side(tmp_path, Life("probe", 0, "id-1", {0: 3}, end_offsets={0: 3}))
    side.plan(0, {0: 9})
    side.run(0)
    assert side.finished == []
    assert side.pins.newest() is None


def test_records_beyond_the_pin_are_taken_out_of_the_frame(spark):
    rows = [(p, o) for p in (0, 1, 2) for o in range(4)]
    frame = spark.createDataFrame(rows, "partition int, offset bigint")
    pin = Pin(0, "clicks", {0: 0, 1: 0}, {0: 4, 1: 2}, {}, 0, 1)
    left = up_to(frame, {0: 4, 1: 4, 2: 4}, pin).collect()
    assert sorted((r.partition, r.offset) for r in left) == [(0, n) for n in range(4)] + [
        (1, 0),
        (1, 1),
    ]
    assert up_to(frame, {0: 4, 1: 2}, pin) is frame


def test_outputs_are_committed_in_their_order_and_a_retry_leaves_out_those_that_have_the_batch(
    tmp_path,
):
    writers = [Writer(durable=True), Writer(durable=True), Writer()]
    for attempt in (1, 2):  # each comes to the next commit of the batch
        side = Side(tmp_path, BOUNDED, writers, "C14=raise#0;C14=raise@1")
        side.plan(0, {0: 10, 1: 5})
        with pytest.raises(FailpointError):
            side.run(0)
        assert [writer.batches for writer in writers] == [[0]] * attempt + [[]] * (3 - attempt)
        assert side.finished == []
        assert DeltaLog(tmp_path / "dead", "app").batches.last_batch() == 0
    side = Side(tmp_path, BOUNDED, writers)
    side.run(0)
    assert [writer.batches for writer in writers] == [[0]] * 3
    assert [len(writer.joined) for writer in writers] == [1, 2, 3]
    assert {pin.versions["users"] for writer in writers for _, pin in writer.joined} == {7}
    (batch,) = side.finished
    assert dict(batch.counts) == {"joined": 1 + 1 + 10, "records": 10}


def test_a_batch_that_all_outputs_have_is_not_run_again(tmp_path):
    writers = [Writer(durable=True), Writer(durable=True)]
    for _ in range(2):
        side = Side(tmp_path, BOUNDED, writers)
        side.plan(0, {0: 10, 1: 5})
        side.run(0)
        assert [len(writer.joined) for writer in writers] == [1, 1]
        assert len(side.finished) == 1
