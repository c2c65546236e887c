"""A copy of a topic or of files is compared with the source, which is read a second time."""

import json

import pyarrow as pa
import pytest

from joins.adapters.files.listing import FileFeedState, list_files
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.topic.feed_state import (
    Decision,
    Decisions,
    read_journal,
    write_decisions,
)
from joins.adapters.topic.second_copy import read_files, read_topic
from joins.dimension.changelog_scan import DimensionStates
from joins.durable.checkpoint import read_document
from joins.kernels.changelog.envelope import decode
from joins.lookback.verification import Verification, VerifyLimits
from joins.plan.errors import VerificationError
from joins.plan.formats import JSON_FORMAT, RecordKey
from joins.plan.plan import DeltaTableSource, Dimension, KafkaOptions
from tests.support.changelog import COLUMNS, Changelog, stage
from tests.support.feeds import PARTITIONS, BatchTopic
from tests.support.file_feeds import file_feed, write_json_lines
from tests.support.foreign_topics import FIELDS, topic_feed

ROWS = {1: "a", 2: "b", 3: "c", 4: "d"}


class Copied:
    """The changelog table of a copy, filled from the records that a session has sent."""

    def __init__(self, directory):
        self.changelog = Changelog(directory / "changelog")
        self._sent = 0

    def take(self, sink, change=lambda _, value: value):
        """Commit what was sent since; `change` plants faults, None loses a record."""
        batch = sink.topic.batch()
        batch = batch.slice(self._sent)
        self._sent += batch.num_rows
        values = [
            change(None if key is None else json.loads(key)["id"], json.loads(value))
            for key, value in zip(
                *(batch.column(n).to_pylist() for n in ("key", "value")), strict=True
            )
        ]
        kept = pa.array([value is not None for value in values])
        texts = [None if value is None else json.dumps(value).encode() for value in values]
        batch = batch.set_column(1, "value", pa.array(texts, pa.binary())).filter(kept)
        rows = decode(batch, COLUMNS, topic="changelog").batch
        log = self.changelog.log
        last = log.batches.last_batch()
        number = 0 if last is None else last + 1
        log.commit(number, 1, [stage(log.path, rows, number=number)], {"batch": number})

    def compared(self, read, without=()):
        states = DimensionStates(
            self.changelog.log, Dimension("t", DeltaTableSource("t"), FIELDS, ("id",)), PARTITIONS
        )
        limits = VerifyLimits(proof_s=0.5)
        there = lambda: read.low  # noqa: E731
        comparison = Verification(states, read, there, limits, without, read.counted())
        return comparison.run(states.newest())


def found(result):
    return {item["key"]["id"]: item["kind"] for item in result["items"]}


class Source:
    """A connector's topic, or a topic of rows by key; its copy, and a second read."""

    def __init__(self, connector, directory, *, by_key):
        self.connector, self._by_key = connector, by_key
        more = {"value": JSON_FORMAT, "key": RecordKey(("id",))} if by_key else {}
        self.feed = topic_feed(connector, directory, *((None,) if by_key else ()), **more)
        self._directory = directory
        self.sink = BatchTopic()
        self.copied = Copied(directory)

    def write(self, key, name):
        if self._by_key:
            self.connector.send({"id": key}, None if name is None else {"id": key, "name": name})
        else:
            self.connector.change(key, name)

    def begin(self):
        if not self._by_key:
            self.connector.snapshot(ROWS)
            return
        for key, name in ROWS.items():
            self.write(key, name)

    def follow(self, change=lambda _, value: value):
        with self.feed.session() as session:
            while session.step(self.sink):
                pass
            session.step(self.sink)
            session._store()
        self.copied.take(self.sink, change)

    def read(self):
        place = self._directory / f"again-{len(list(self._directory.iterdir()))}"
        place.mkdir()
        epoch = read_journal(self.feed.config.state_file).generation - 1
        return read_topic(self.feed.config, place, epoch, proof_s=1.0)


@pytest.fixture(params=["a_connectors_topic", "rows_by_key"])
def source(request, connector, tmp_path):
    made = Source(connector, tmp_path, by_key=request.param == "rows_by_key")
    made.begin()
    made.write(1, "new")
    made.write(2, None)
    made.write(5, "e")
    return made


def test_an_equal_copy_and_what_comes_behind_the_ends(source):
    source.follow()
    result = source.copied.compared(source.read())
    assert (result["differences"], result["rows"], result["finds_extra"]) == (0, 4, True)
    assert sum(result["position"]["offsets"].values()) > 4

    read = source.read()
    for key, name in ((1, "later"), (2, "again"), (3, None), (6, "f")):
        source.write(key, name)
    source.follow()

    assert source.copied.compared(read)["differences"] == 0
    assert source.copied.compared(source.read())["rows"] == 5


def test_planted_faults_are_found(source):
    def fault(key, value):
        if key == 5:
            return None  # a lost event
        if key == 2 and value["op"] == "d":
            return None  # a lost deletion
        if key == 3:
            value["after"]["name"] += "."  # a byte
        return value

    source.follow(fault)

    result = source.copied.compared(source.read())

    assert found(result) == {2: "extra", 3: "changed", 5: "missing"}
    by_key = {item["key"]["id"]: item for item in result["items"]}
    assert (by_key[3]["ours"]["name"], by_key[3]["theirs"]["name"]) == ("c.", "c")


def test_a_doubled_event_is_no_difference(source):
    source.follow()
    source.copied._sent = 0
    source.copied.take(source.sink)

    assert source.copied.compared(source.read())["differences"] == 0


def test_rows_that_the_copy_has_left_out_are_not_compared(source):
    source.follow(lambda key, value: None if key == 4 else value)

    result = source.copied.compared(source.read(), without=['{"id":4}'])

    assert (result["differences"], result["left_out"]) == (0, 1)


def test_a_later_snapshot_is_compared_by_its_rows_only(connector, tmp_path):
    source = Source(connector, tmp_path, by_key=False)
    source.begin()
    source.write(1, "new")
    source.follow()
    connector.truncate()
    source.follow()
    assert source.copied.compared(source.read())["rows"] == 0

    connector.snapshot({3: "x", 4: "y"})
    source.write(4, "z")
    source.follow()

    result = source.copied.compared(source.read())
    assert (result["differences"], result["rows"]) == (0, 2)


def test_the_word_for_an_earlier_read_proves_no_second_one(connector, tmp_path):
    source = Source(connector, tmp_path, by_key=False)
    connector.snapshot(ROWS, is_whole=False)
    word = Decision({"reason": "all rows are there"}, generation=1)
    write_decisions(source.feed.config.decisions_file, Decisions((word,)))
    source.follow()

    with pytest.raises(VerificationError, match="do not prove a whole table"):
        source.read()


def test_a_topic_that_has_removed_records_is_not_compared(source):
    source.follow()
    cluster = KafkaCluster(KafkaOptions(source.connector.servers, source.connector.topic))
    ends = cluster.end_offsets(source.connector.topic)
    cluster.delete_records_before(source.connector.topic, {p: end - 1 for p, end in ends.items()})

    with pytest.raises(VerificationError, match=r"removed records|do not prove a whole table"):
        source.read()


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users"
    path.mkdir()
    write_json_lines(path / "a.json", [{"id": n, "name": f"n{n}"} for n in (1, 2, 3)])
    write_json_lines(path / "b.json", [{"id": 3, "name": "last"}, {"id": 4, "name": None}])
    return path


def read_again(feed, directory):
    place = directory / f"again-{len(list(directory.iterdir()))}"
    place.mkdir()
    state = read_document(feed.config.state_file, FileFeedState)
    return read_files(feed.config, place, state.generation - 1, state.files)


def test_a_copy_of_files_is_compared_with_them(users, tmp_path):
    feed = file_feed(users)
    feed.run()
    right, wrong = Copied(tmp_path), Copied(tmp_path / "other")
    right.take(feed.sink)
    wrong.take(feed.sink, lambda key, value: None if key in (1, 4) else value)

    result = right.compared(read_again(feed, tmp_path))
    assert (result["differences"], result["rows"]) == (0, 4)
    assert result["position"] == {"files": 2}
    assert found(wrong.compared(read_again(feed, tmp_path))) == {1: "missing", 4: "missing"}


def test_files_that_have_changed_since_are_not_compared(users, tmp_path):
    feed = file_feed(users)
    feed.run()
    copied = list_files(users)
    write_json_lines(users / "b.json", [{"id": 9, "name": "later"}])
    assert list_files(users) != copied

    with pytest.raises(VerificationError, match="have changed since they were copied"):
        read_again(feed, tmp_path)
