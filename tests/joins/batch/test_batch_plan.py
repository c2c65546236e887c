"""Plans of event batches on a real topic: what is read, how far, and what the pin keeps."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from joins.adapters.delta.log import DeltaLog, create_table
from joins.batch.batch_plan import BatchPlanner, EventParts, write_pin
from joins.batch.batches import ProbeHooks, ProbeSettings
from joins.batch.event_batch import EventTables
from joins.batch.event_channels import EventInput
from joins.batch.event_state import EventSpec, EventState
from joins.batch.staleness import StalenessGate
from joins.durable.failpoints import Failpoints
from joins.durable.pins import ABSENT, PinStore
from joins.durable.probe_lives import Life
from joins.kernels.probe.probe import DEAD_LETTERS
from joins.loop import BatchTurns, LoopGuards
from joins.plan.errors import (
    FencedError,
    OffsetsWentBackError,
    PartitionsMissingError,
    TopicIdentityChangedError,
)
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import FILES, HistoryTopic, StreamTopics
from joins.worker.work import SparkTasks
from tests.support.topics import add_partitions, create_topic, identified, produce
from watermark.freshness import Proof

VERSIONS = {"rates": 7}


class Topic:
    """Two partitions with 60 and 30 records, and a planner over them."""

    def __init__(self, root, kafka):
        self.servers = kafka.bootstrap_servers
        self.name = create_topic(self.servers, partitions=2)
        self.topics = identified(self.servers, self.name)
        for partition, count in ((0, 60), (1, 30)):
            produce(self.servers, self.name, [{"n": n} for n in range(count)], partition=partition)
        for name in ("dead", "late"):
            create_table(root / name, DEAD_LETTERS)
        self.dead = DeltaLog(root / "dead", "app")
        (root / "pins").mkdir()
        self.hooks = ProbeHooks(
            epoch=1,
            plan=1,
            may_pin=lambda: True,
            pins=PinStore(root / "pins"),
            dead_letters=self.dead,
            versions=lambda: VERSIONS,
            source_times=dict,
            proofs=lambda _: {},
            staleness=StalenessGate({}, Path(), Path()),
            limit=lambda: self.limit,
            restore=lambda _: None,
            on_pin=lambda _: None,
            check=lambda: None,
            counted=lambda: {"batch": 0, "joined": 90},
            on_finish=lambda _: None,
            guards=LoopGuards(Failpoints(), BatchTurns(), lambda _: None),
            tasks=SparkTasks(None),  # a planner runs no task
        )
        self.parts = EventParts(
            spec=EventSpec((EventInput("probe"), EventInput("rates")), True, None, False),
            tables=EventTables(self.dead, DeltaLog(root / "late", "app"), None, None),
            heard=lambda versions: {"rates": {"0": [versions["rates"], None]}},
            seen=lambda _: None,
            trim=lambda _: None,
        )
        self.planners = []

    def planner(self, *, limit=1_000, on_event=False, **life):
        kafka = KafkaOptions(self.servers, self.name)
        found = Life("probe", 0, self.topics, **{"start_offsets": {0: 0, 1: 0}, **life})
        self.limit = limit
        settings = ProbeSettings(kafka, found, found.start_offsets)
        parts = replace(self.parts, spec=replace(self.parts.spec, on_event=on_event))
        self.planners.append(BatchPlanner(settings, self.hooks, parts))
        return self.planners[-1]


@pytest.fixture
def topic(tmp_path, kafka):
    found = Topic(tmp_path, kafka)
    yield found
    for planner in found.planners:
        planner.close()


def test_a_batch_reads_what_is_there_with_what_dimensions_have_said(topic):
    plan = topic.planner().next(3, {0: 10, 1: 30}, EventState(watermark=5, clock_ms=2**42))
    assert (plan.start, plan.end, plan.has_records()) == ({0: 10, 1: 30}, {0: 60, 1: 30}, True)
    assert plan.event.dimensions == {"rates": {"0": [7, None]}}
    assert (plan.event.watermark, plan.event.at_end) == (5, [])
    assert plan.now_ms == plan.event.clock_ms == 2**42, "the clock never goes back"


def test_a_limited_batch_has_a_share_of_each_partition(topic):
    assert topic.planner(limit=30).next(0, {0: 0, 1: 0}, EventState()).end == {0: 20, 1: 10}


def test_who_has_a_whole_batch_before_him_does_not_ask_again_where_the_topic_ends(topic):
    planner = topic.planner(limit=40)
    ends = planner._cluster.end_offsets
    asked = []
    planner._cluster.end_offsets = lambda of: asked.append(1) or ends(of)
    at, batches = {0: 0, 1: 0}, []
    while (plan := planner.next(len(batches), at, EventState())).has_records():
        batches.append(plan)
        at = plan.end
    assert at == {0: 60, 1: 30}
    assert (len(batches), len(asked)) == (3, 3), "once at first, then for the rest, then for more"


def test_a_batch_is_cut_at_the_first_record_that_is_too_new_for_a_table(topic, tmp_path):
    begun_ms = time.time_ns() // 1_000_000 + 1
    time.sleep(0.002)  # the records behind have later times
    for partition in (0, 1):
        produce(topic.servers, topic.name, [{"n": n} for n in range(5)], partition=partition)
    gate = StalenessGate({"rates": 1}, tmp_path / "stale.json", tmp_path / "decisions.jsonl")
    proofs = {"rates": Proof(begun_ms - 1, {"pos": 1})}
    topic.hooks = replace(topic.hooks, staleness=gate, proofs=lambda _: proofs)
    planner = topic.planner()

    plan = planner.next(0, {0: 0, 1: 0}, EventState())
    assert (plan.end, plan.proofs) == ({0: 60, 1: 30}, proofs)
    held = planner.next(1, plan.end, EventState())
    assert not held.has_records()
    assert gate.holding is not None

    proofs["rates"] = Proof(begun_ms + 3_600_000, {"pos": 2})
    released = planner.next(1, plan.end, EventState())
    assert released.end == {0: 65, 1: 35}
    pin = planner.pin_of(released, 1)
    assert pin.before == {"batch": 0, "joined": 90}
    assert (pin.as_of, pin.looked_up.ends) == (proofs, {0: 65, 1: 35})
    assert begun_ms <= pin.looked_up.time_ms <= time.time_ns() // 1_000_000
    assert gate.holding is None


def test_the_pin_says_which_partitions_have_unread_records_if_time_depends_on_it(topic):
    def unread(at, limit=30):
        return topic.planner(limit=limit).next(0, at, EventState()).event.unread

    assert unread({0: 0, 1: 0}) is ABSENT
    for stream in (EventInput("probe", max_wait_ms=1), EventInput("probe", idle_timeout_ms=1)):
        topic.parts = replace(topic.parts, spec=replace(topic.parts.spec, inputs=(stream,)))
        assert unread({0: 0, 1: 0}) == [0, 1]
        assert unread({0: 0, 1: 30}) == [0]
        assert unread({0: 60, 1: 30}) == []


def test_a_topic_that_is_another_one_is_not_planned_for(topic):
    topic.topics = StreamTopics.one(topic.name, str(uuid4()))
    with pytest.raises(TopicIdentityChangedError):
        topic.planner().next(0, {0: 0, 1: 0}, EventState())


def test_a_bounded_stream_is_read_to_its_end_and_says_so(topic):
    planner = topic.planner(end_offsets={0: 40, 1: 30})
    plan = planner.next(0, {0: 0, 1: 30}, EventState())
    assert (plan.end, plan.event.at_end) == ({0: 40, 1: 30}, [1])
    done = planner.quiet(1, {0: 40, 1: 30}, EventState())
    assert (done.has_records(), done.event.at_end) == (False, [0, 1])


def test_no_batch_reads_across_a_backlogs_end_and_the_pin_says_what_was_read(topic):
    planner = topic.planner(backlog_offsets={0: 40, 1: 0})
    first = planner.next(0, {0: 0, 1: 0}, EventState())
    assert (first.end, first.event.backlog) == (
        {0: 40, 1: 30},
        {"read": [0, 1], "read_before": [1]},
    )
    rest = planner.next(1, first.end, EventState())
    assert (rest.end, rest.event.backlog["read_before"]) == ({0: 60, 1: 30}, [0, 1])
    alone = topic.planner().next(0, {0: 0, 1: 0}, EventState())
    assert alone.event.backlog == {"read": [], "read_before": []}


def test_no_batch_has_rows_of_files_and_records_of_the_topic(topic):
    """Behind the files' last row the topic begins at its start, with its own backlog."""
    topic.topics = replace(topic.topics, history=HistoryTopic("history:t", "listing", 70))
    planner = topic.planner(
        limit=50,
        start_offsets={FILES: 0, 0: 10, 1: 0},
        backlog_offsets={FILES: 70, 0: 40, 1: 30},
    )
    first = planner.next(0, {}, EventState())
    assert (first.start, first.end) == ({FILES: 0}, {FILES: 50})
    rest = planner.next(1, first.end, EventState())
    assert (rest.start, rest.end) == ({FILES: 50}, {FILES: 70})
    assert rest.event.backlog == {"read": [], "read_before": []}
    topic.limit = 1_000
    behind = planner.next(2, rest.end, EventState())
    assert behind.start == {FILES: 70, 0: 10, 1: 0}
    assert behind.end == {FILES: 70, 0: 40, 1: 30}
    assert behind.event.backlog == {"read": [0, 1], "read_before": []}


def test_a_partition_that_comes_later_is_read_from_its_beginning(topic):
    add_partitions(topic.servers, topic.name, 3)
    produce(topic.servers, topic.name, [{"n": 1}], partition=2)
    plan = topic.planner().next(5, {0: 60, 1: 30}, EventState())
    assert (plan.start[2], plan.end[2]) == (0, 1)


def test_partitions_that_are_gone_and_offsets_that_went_back_are_faults(topic):
    planner = topic.planner()
    with pytest.raises(PartitionsMissingError, match="partition 7"):
        planner.next(1, {0: 0, 7: 3}, EventState())
    with pytest.raises(OffsetsWentBackError, match="ends at offset 30, expected 31"):
        planner.next(1, {0: 0, 1: 31}, EventState())


def test_the_first_batch_of_a_life_has_its_versions_and_no_later_one(topic):
    planner = topic.planner(versions={"rates": 3})
    assert planner.next(0, {}, EventState()).versions == {"rates": 3}
    assert planner.next(1, {}, EventState()).versions == VERSIONS


def test_a_pin_is_not_written_by_a_runner_that_was_taken_over(topic):
    planner = topic.planner()
    plan = planner.next(0, {}, EventState())
    pin = planner.pin_of(plan, 0)
    assert (pin.end_offsets, pin.event) == ({0: 60, 1: 30}, plan.event)
    write_pin(topic.hooks, pin)
    assert topic.hooks.pins.read(0) == pin
    topic.dead.commit_epoch(2)
    with pytest.raises(FencedError):
        write_pin(topic.hooks, planner.pin_of(plan, 1))
    assert topic.hooks.pins.read(1) is None


def test_the_pin_of_a_newer_runner_ends_an_older_one(topic):
    planner = topic.planner()
    plan = planner.next(0, {}, EventState())
    newer = replace(planner.pin_of(plan, 0), batch=1, epoch=2)
    topic.hooks.pins.create(newer)
    with pytest.raises(FencedError, match="pinned by a runner of epoch 2, this one is 1"):
        write_pin(topic.hooks, planner.pin_of(plan, 1))
    assert topic.hooks.pins.read(1) == newer


def test_a_wait_ends_with_the_first_record_behind_the_offsets(topic):
    planner = topic.planner()
    planner.wait({0: 10, 1: 30}, 3600.0)  # records are there
    waiting = threading.Thread(target=planner.wait, args=({0: 60, 1: 30}, 3600.0), daemon=True)
    waiting.start()
    produce(topic.servers, topic.name, [{"n": 60}], partition=0)
    waiting.join(60.0)
    assert not waiting.is_alive()
