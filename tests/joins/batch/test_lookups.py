"""Three lookup strategies over the same records and dimensions on real Spark, Kafka and Delta."""

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from joins.adapters.delta.log import DeltaLog, create_table
from joins.batch.lookups import Lookups, Role
from joins.dimension.index_keeper import IndexKeeper
from joins.durable.pins import Pin
from joins.kernels.index import packets
from joins.kernels.probe.probe import index_spec, kernel_spec
from joins.plan.errors import DimensionTooLargeError, PinnedVersionExpiredError
from joins.plan.expressions import Call, Column
from joins.plan.plan import (
    DimensionJoin,
    JoinType,
    KafkaOptions,
    KafkaSink,
    KeyPair,
    LookupStrategy,
    OutputColumn,
)
from joins.plan.stream_topics import StreamTopics
from joins.plan.types import SqlType, TypeName
from joins.sinks.delta import DeltaSinkWriter
from joins.sinks.kafka import KafkaSinkWriter
from joins.worker.probe_task import DEAD_LETTERS, OUTPUT, IndexPlace, ProbeTask
from joins.worker.row_files import RowFiles
from tests.support.changelog import Changelog, record, watermark
from tests.support.probe import BIGINT, PLAN, STRING, USERS
from tests.support.topic_work import topic_work
from tests.support.topics import consume, create_topic, delete_topics, produce

INDEX, BROADCAST, SHUFFLE = LookupStrategy
NOT_ITSELF = Call(
    "<>", (Column("n", "id", BIGINT), Column("u", "id", BIGINT)), SqlType(TypeName.BOOLEAN)
)
NAMESAKES = DimensionJoin(
    "n", "friends", JoinType.LEFT, (KeyPair(Column("u", "name", STRING), "name"),), NOT_ITSELF
)
CHAIN = replace(
    PLAN,
    dimensions=(USERS, replace(USERS, name="friends")),
    joins=(*PLAN.joins, NAMESAKES),
    output=(
        *PLAN.output,
        OutputColumn("friend", Column("n", "id", BIGINT)),
        OutputColumn("friends_name", Column("n", "name", STRING)),
    ),
)


def snapshot():
    """300 users, six of each name, and the watermark."""
    rows = [record("r", at, 5 + at % 50, at, row=-1) for at in range(300)]
    return [*rows, watermark(300)]


def changes():
    """Some get another name, some are gone, one is back."""
    changed = [record("u", at, 900 + at % 3, 400 + at, row=at) for at in range(0, 300, 7)]
    gone = [record("d", at, 910, 800 + at, row=at) for at in range(0, 300, 11)]
    return [*changed, *gone, record("c", 22, 920, 1_200)]


@dataclass
class World:
    """Two dimensions with a history, and what looks them up."""

    directory: Path
    versions: dict[str, int]
    changelogs: dict[str, Changelog]

    def lookups(self, *strategies, **more):
        """By the join of the statement."""
        return Lookups(
            [
                Role(join.alias, join.dimension, index_spec(CHAIN, join, 1), strategy,
                     self.changelogs[join.dimension].log)
                for join, strategy in zip(CHAIN.joins, strategies, strict=True)
            ],
            **more,
        )  # fmt: skip

    def task(self, *strategies):
        places = {
            join.alias: IndexPlace(
                join.dimension,
                self.directory / "index" / join.dimension,
                index_spec(CHAIN, join, 1),
            )
            for join, strategy in zip(CHAIN.joins, strategies, strict=True)
            if strategy is INDEX
        }
        for place in places.values():
            log = self.changelogs[place.dimension].log
            keeper = IndexKeeper(place.directory, (place.spec,), log)
            keeper.prepare(self.versions[place.dimension])
        kernel = kernel_spec(CHAIN).reading(StreamTopics.one("clicks"))
        return ProbeTask(kernel, places, self.directory / "dead", 2)

    def pin(self, **versions):
        return Pin(7, "clicks", {}, {0: 1, 1: 1, 4: 1}, {**self.versions, **versions}, 1_000, 2)

    @contextmanager
    def staged(self, work, lookups, task, pin):
        """The outcome of a batch, nothing committed."""
        output = self.directory / "output"
        create_table(output, task.kernel.output_schema)
        with lookups.ready(work, task, pin) as (ready, told):
            yield DeltaSinkWriter(DeltaLog(output, "app")).run(ready, told, pin)

    def outcome(self, work, lookups, task, pin):
        """Rows and dead letters, each partition in the order of its files, and the counts."""
        with self.staged(work, lookups, task, pin) as report:
            rows = self._rows(report, OUTPUT, "output", ("_partition",))
            dead = self._rows(report, DEAD_LETTERS, "dead", ("partition", "offset"))
        return rows, dead, report.counts

    def _rows(self, report, kind, root, order):
        files = [pq.read_table(self.directory / root / f.path) for f in report.files[kind]]
        rows = [row for file in files for row in file.to_pylist()]
        return sorted(rows, key=lambda row: [row[name] for name in order])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    directory = tmp_path_factory.mktemp("lookups")
    changelogs = {name: Changelog(directory / name) for name in ("users", "friends")}
    for changelog in changelogs.values():
        changelog.commit(*snapshot())
    versions = {name: changelog.commit(*changes()) for name, changelog in changelogs.items()}
    changelogs["users"].commit(record("u", 1, 2_000, 1_300), record("d", 2, 2_000, 1_301))
    return World(directory, versions, changelogs)


@pytest.fixture(scope="module")
def work(spark, kafka):
    """Clicks in two of three partitions, and of every kind: unmatched, NULL, not to be parsed."""
    topic = create_topic(kafka.bootstrap_servers, partitions=3)
    for partition in (0, 2):
        users = [(7 * at + partition) % 330 for at in range(150)]
        values = [json.dumps({"user_id": user}).encode() for user in users]
        values[3:3] = [b"{", b'{"user_id":null}', b'{"user_id":"x"}', b"", b'{"user_id":7}']
        produce(kafka.bootstrap_servers, topic, values, partition=partition)
    yield topic_work(spark, kafka.bootstrap_servers, topic)
    delete_topics(kafka.bootstrap_servers, topic)


@pytest.fixture(scope="module")
def expected(world, work):
    """What the index gives."""
    strategies = (INDEX, INDEX)
    found = world.outcome(work, world.lookups(*strategies), world.task(*strategies), world.pin())
    rows, dead, counts = found
    assert len(rows) > 600
    assert {row["friend"] is None for row in rows} == {True, False}
    assert {row["name"] for row in rows} >= {None, "c920", "u900"}
    assert counts["dead_letters"] == len(dead) == 6
    assert 0 < counts["matched"] < counts["unmatched"] + counts["matched"]
    return found


STRATEGIES = {
    "broadcast": (BROADCAST, BROADCAST),
    "shuffle": (SHUFFLE, SHUFFLE),
    "a_shuffled_one_behind_one_in_an_index": (INDEX, SHUFFLE),
    "a_broadcast_one_behind_a_shuffled_one": (SHUFFLE, BROADCAST),
    "an_index_behind_a_shuffled_one": (SHUFFLE, INDEX),
}


@pytest.mark.parametrize("strategies", STRATEGIES.values(), ids=STRATEGIES)
def test_every_strategy_gives_what_the_index_gives(world, work, expected, strategies):
    lookups = world.lookups(*strategies)
    found = world.outcome(work, lookups, world.task(*strategies), world.pin())
    lookups.forget()
    assert found == expected


@pytest.mark.parametrize("strategy", [BROADCAST, SHUFFLE])
def test_a_retry_after_a_restart_reads_the_same_pin(world, spark, work, expected, strategy):
    """The first attempt has seen a newer version; the retry is in another session of Spark."""
    strategies = (strategy, strategy)
    task = world.task(*strategies)
    lookups = world.lookups(*strategies)
    newer = world.pin(users=world.versions["users"] + 1)
    rows, _, _ = world.outcome(work, lookups, task, newer)
    assert {row["name"] for row in rows if row["user_id"] == 1} == {"u2000"}
    assert world.outcome(work, lookups, task, world.pin()) == expected
    lookups.forget()
    lookups = world.lookups(*strategies)
    other = replace(work, session=spark.newSession())
    found = world.outcome(other, lookups, task, world.pin())
    lookups.forget()
    assert found == expected


def test_chunks_of_a_shuffle_may_be_small(world, work, expected, monkeypatch):
    """Every chunk gets its own rows, and every task its own order."""
    monkeypatch.setattr(packets, "_BODY_BYTES", 1_000)
    lookups = world.lookups(SHUFFLE, SHUFFLE)
    found = world.outcome(work, lookups, world.task(SHUFFLE, SHUFFLE), world.pin())
    lookups.forget()
    assert found == expected


def test_a_topic_gets_the_rows_of_a_partition_in_their_order(world, kafka, work, expected):
    target = create_topic(kafka.bootstrap_servers)
    sink = KafkaSink(KafkaOptions(kafka.bootstrap_servers, target))
    staged = RowFiles(world.directory / "staged")
    writer = KafkaSinkWriter(sink, world.directory / "kafka_sink.json", staged)
    lookups, pin = world.lookups(SHUFFLE, SHUFFLE), world.pin()
    plan = replace(CHAIN, sink=sink)
    task = replace(world.task(SHUFFLE, SHUFFLE), kernel=kernel_spec(plan))
    with lookups.ready(work, task, pin) as (ready, told):
        report = writer.run(ready, told, pin)
    writer.commit(report, pin, 2)
    lookups.forget()
    sent = consume(kafka.bootstrap_servers, target, count=len(expected[0]))
    delete_topics(kafka.bootstrap_servers, target)
    for partition in (0, 2):
        mine = [r for r in sent if dict(r.headers)["sluice-src-partition"] == b"%d" % partition]
        wanted = [row for row in expected[0] if row["_partition"] == partition]
        names = [column.name for column in CHAIN.output]
        assert [json.loads(r.value) for r in mine] == [{n: w[n] for n in names} for w in wanted]
    assert report.counts == expected[2]


def test_a_dimension_that_is_too_large_to_be_broadcast_is_refused(world):
    lookups = world.lookups(BROADCAST, SHUFFLE, max_broadcast_bytes=1_000)
    with pytest.raises(DimensionTooLargeError, match=r"users.*at version 2") as caught:
        lookups.check(world.versions)
    assert "'shuffle'" in caught.value.hint
    world.lookups(SHUFFLE, BROADCAST).check(world.versions)


@pytest.mark.parametrize("strategy", [BROADCAST, SHUFFLE])
def test_a_pinned_version_that_is_gone_is_told_as_such(world, work, strategy):
    strategies = (strategy, strategy)
    pin = world.pin(users=99)
    with (
        pytest.raises(PinnedVersionExpiredError),
        world.lookups(*strategies).ready(work, world.task(*strategies), pin),
    ):
        pytest.fail("nothing is joined")
