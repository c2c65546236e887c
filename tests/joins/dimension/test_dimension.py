"""A dimension's build loop on real Spark, Kafka and Delta: what is committed is told."""

import pyarrow as pa
import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.dimension import build_side
from joins.dimension.build_side import (
    BuildHooks,
    BuildSettings,
    BuildSide,
    BuildTask,
    read_changelog_state,
)
from joins.dimension.dimension import DimensionPlaces, DimensionRuntime
from joins.dimension.index_keeper import IndexKeeper
from joins.durable.failpoints import FailpointError, Failpoints
from joins.kernels.changelog.envelope import (
    BinlogPosition,
    encode_watermark,
)
from joins.kernels.index.index import DimensionIndex, IndexSpec
from joins.loop import BatchTurns, LoopGuards
from joins.plan.errors import FencedError
from joins.plan.plan import KafkaOptions
from joins.worker.work import SparkTasks
from tests.support.changelog import COLUMNS
from tests.support.probe import USERS
from tests.support.spark_jobs import jobs_of
from tests.support.topics import changelog_topic, consume, create_topic, delete_topics, produce
from tests.support.wait import wait_until
from watermark.model import PROCESSING_TIME

BY_ID = IndexSpec(("id",), ("id",), USERS.fields, partitions=2)
HIGH = encode_watermark(BinlogPosition(0, 1, 50), 1)


class Runner:
    """One runner's life of the dimension: its build query, its errors, what it told the valve."""

    def __init__(self, directory, spark, kafka, topic, *, epoch=1):
        self._spark, self._directory = spark, directory
        self._kafka = KafkaOptions(kafka.bootstrap_servers, topic)
        changelog = directory / "changelog"
        places = DimensionPlaces(
            topic,
            2,
            changelog,
            directory / "current",
            directory / "index",
            (BY_ID,),
            directory / "spark",
        )
        self.told, self.errors, self.needed = [], [], []
        self._task = BuildTask(topic, changelog, COLUMNS, epoch)
        self.topic = changelog_topic(self._kafka, 2, directory / "topic.json")
        self.dimension = DimensionRuntime(
            USERS,
            places,
            self._task,
            app_id="app",
            on_watermark=lambda *told: self.told.append(told),
            topic=self.topic,
        )
        self.dimension.open()
        self.topic.ensure(self.needed.append)

    def side(self, tasks=None, **settings):
        hooks = BuildHooks(
            state=lambda: self.dimension.state,
            on_start=lambda: None,
            on_commit=self.dimension._committed,
            rest=lambda: None,
            guards=LoopGuards(Failpoints(), BatchTurns(), self.errors.append),
            freshness=self.dimension.freshness,
        )
        settings = BuildSettings(self._kafka, **settings)
        return BuildSide(
            self._spark,
            self._task,
            settings,
            self.dimension.changelog,
            hooks,
            self.topic,
            tasks or SparkTasks(self._spark),
        )

    def start(self, failpoints=""):
        settings = BuildSettings(self._kafka, trigger_ms=100)
        guards = LoopGuards(Failpoints(failpoints), BatchTurns(), self.errors.append)
        tasks = SparkTasks(self._spark)
        loop = self.dimension.build_loop(self._spark, settings, guards, lambda: None, tasks)
        return loop.start()

    def wait_for(self, offsets):
        wait_until(
            lambda: self.dimension.state.next_offsets == offsets, what=f"{offsets} of {self.errors}"
        )


def send(kafka, topic, partition, *changes):
    """Changes (op, id, pos), and None for a watermark record."""
    keys, values = [], []
    for change in changes:
        if change is None:
            keys.append(None)
            values.append(HIGH)
            continue
        op, id_, pos = change
        source = {"epoch": 0, "file": 1, "pos": pos, "row": 0, "gen": 1, "ts_ms": pos}
        after = None if op == "d" else {"id": id_, "name": f"{op}{pos}"}
        keys.append({"id": id_})
        values.append({"before": None, "after": after, "op": op, "source": source, "ts_ms": 1})
    produce(kafka.bootstrap_servers, topic, values, keys=keys, partition=partition)


def names(directory, version):
    index = DimensionIndex.attach(directory / "index", version, BY_ID)
    _, rows = index.lookup([pa.array([1, 2, 3])])
    return index.take(rows, ["name"]).column(0).to_pylist()


def test_what_a_failed_query_has_committed_is_told_by_the_next_one(tmp_path, spark, kafka, topic):
    send(kafka, topic, 0, ("r", 1, 5), None)
    send(kafka, topic, 1, ("r", 2, 5), ("u", 2, 9), None)
    runner = Runner(tmp_path, spark, kafka, topic)
    failed = runner.start("C12=raise")
    wait_until(lambda: not failed.is_active, what="the planted fault")
    assert [type(error) for error in runner.errors] == [FailpointError]
    assert runner.told == []
    again = runner.start()
    try:
        runner.wait_for({0: 2, 1: 3})
        wait_until(lambda: len(runner.told) >= 2, what="watermarks")
        assert set(runner.told) == {("users", 0, PROCESSING_TIME), ("users", 1, PROCESSING_TIME)}
        assert runner.dimension.complete
        version = runner.dimension.serve_index()
        assert names(tmp_path, version) == ["r5", "u9"]
        # The first records come again behind the committed ones: dropped, as position tells.
        send(kafka, topic, 1, ("u", 2, 9), ("u", 2, 11))
        runner.wait_for({0: 2, 1: 5})
        wait_until(lambda: runner.dimension.ready_version() > version, what="index")
        assert names(tmp_path, runner.dimension.ready_version()) == ["r5", "u11"]
        assert runner.dimension.trimmable_offsets == {0: 2, 1: 3}
    finally:
        again.stop()
    log = runner.dimension.changelog
    assert read_changelog_state(log, log.version()).high_water == {1: (0, 1, 11, 0)}
    rows = [
        row
        for table in log.files.read_files(log.files.files_at(log.version()))
        for row in table["_op"]
    ]
    assert sorted(map(str, rows)) == ["r", "r", "u", "u", "w", "w"]


def test_few_changes_are_appended_by_the_tasks_that_stay(
    tmp_path, spark, kafka, topic, monkeypatch
):
    class Staying(SparkTasks):
        stages = 0

        def collected(self, *stage, **options):
            self.stages += 1
            return super().collected(*stage, **options)

    monkeypatch.setattr(build_side, "_MOST_BESIDE_THE_STREAM", 2)
    tasks = Staying(spark)
    side = Runner(tmp_path, spark, kafka, topic).side(tasks)
    for changes, stages in ((2, 1), (3, 1), (1, 2)):
        send(kafka, topic, 0, *(("c", n, tasks.stages * 10 + n) for n in range(1, changes + 1)))
        assert side.step()
        assert tasks.stages == stages, f"after {changes} changes"
    side.close()


@pytest.mark.parametrize("more", [-1, 0, 1], ids=["fewer", "as_many", "more"])
def test_a_topic_that_was_created_again_is_not_read_from_its_old_offset(
    tmp_path, spark, kafka, topic, more
):
    send(kafka, topic, 0, ("r", 1, 5), ("c", 2, 7), None)
    runner = Runner(tmp_path, spark, kafka, topic)
    query = runner.start()
    try:
        runner.wait_for({0: 3})
        before = runner.topic.now
        cluster = KafkaCluster(runner._kafka)
        delete_topics(kafka.bootstrap_servers, topic)
        wait_until(lambda: cluster.describe(topic) is None, what="the topic is gone")
        create_topic(kafka.bootstrap_servers, topic, partitions=2)
        send(kafka, topic, 0, *[("c", 3, 70 + n) for n in range(3 + more)])
        wait_until(lambda: runner.topic.lost, what="the loss")
        assert runner.dimension.state.next_offsets == {0: 3}, "nothing of it is taken"
        runner.topic.ensure(runner.needed.append)
        assert "was deleted and created again" in runner.needed[0]
        assert consume(kafka.bootstrap_servers, topic) == []
        first = runner.topic.now.first
        assert (runner.topic.now.number, first > 0) == (before.number + 1, True)
        send(kafka, topic, 0, ("u", 2, 9))
        runner.wait_for({0: first + 1})
        runner.dimension.look_at_topic(cluster)
        assert runner.dimension.lag_records() == 0
        send(kafka, topic, 1, ("u", 1, 9))
        runner.wait_for({0: first + 1, 1: first + 1})
        runner.dimension.topic.trim(cluster, runner.dimension.trimmable_offsets)
        assert len(consume(kafka.bootstrap_servers, topic)) == 1
    finally:
        query.stop()
    again = Runner(tmp_path, spark, kafka, topic, epoch=2)
    assert (again.needed, again.topic.now) == ([], runner.topic.now)
    assert again.dimension.state.next_offsets == {0: first + 1, 1: first + 1}


def test_a_newer_runner_goes_on_and_the_older_one_cannot_commit(tmp_path, spark, kafka, topic):
    send(kafka, topic, 0, ("r", 1, 5), ("c", 2, 7))
    old = Runner(tmp_path, spark, kafka, topic)
    query = old.start()
    try:
        old.wait_for({0: 2})
    finally:
        query.stop()
    new = Runner(tmp_path, spark, kafka, topic, epoch=2)
    assert new.dimension.state.next_offsets == {0: 2}
    assert new.dimension.state.snapshot_rows == 1
    send(kafka, topic, 0, ("u", 2, 9), None)
    send(kafka, topic, 1, None)
    stale = old.start()
    wait_until(lambda: not stale.is_active, what="the older runner is fenced")
    assert [type(error) for error in old.errors] == [FencedError]
    query = new.start()
    try:
        new.wait_for({0: 4, 1: 1})
        wait_until(lambda: len(new.told) >= 2, what="watermarks")
    finally:
        query.stop()
    keeper = IndexKeeper(tmp_path / "index", (BY_ID,), new.dimension.changelog)
    keeper.prepare(new.dimension.version)
    assert names(tmp_path, new.dimension.version) == ["r5", "u9"]
    third = Runner(tmp_path, spark, kafka, topic, epoch=3)
    third.dimension.replay_watermarks()
    assert sorted(told[1] for told in third.told) == [0, 1]


def test_a_topic_is_read_on_where_it_was_read_to_though_repeats_became_no_rows(
    tmp_path, spark, kafka, topic
):
    send(kafka, topic, 0, ("r", 1, 5), ("u", 1, 7), ("u", 1, 7))
    first = Runner(tmp_path, spark, kafka, topic)
    loop = first.start()
    first.wait_for({0: 3})
    loop.stop()
    KafkaCluster(KafkaOptions(kafka.bootstrap_servers, topic)).delete_records_before(topic, {0: 3})
    second = Runner(tmp_path, spark, kafka, topic, epoch=2)
    assert second.dimension.state.next_offsets == {0: 3}
    send(kafka, topic, 0, ("u", 1, 9))
    loop = second.start()
    second.wait_for({0: 4})
    loop.stop()
    assert second.errors == []


def test_each_batch_is_one_job_of_spark(tmp_path, spark, kafka, topic):
    runner = Runner(tmp_path, spark, kafka, topic)
    side = runner.side(max_records_per_batch=2)
    send(kafka, topic, 0, ("r", 1, 5), ("u", 1, 7), ("u", 1, 8))
    with jobs_of(spark) as jobs:
        for _ in range(3):
            side.step()
    side.close()
    assert runner.dimension.changelog.batches.last_batch() == 1
    assert len(jobs) == 2
