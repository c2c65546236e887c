"""What a connector has committed, as Connect's REST interface tells it."""

import json

import pytest

from joins.adapters.connect import ConnectOffsets, committed_at_ms
from joins.adapters.topic.check import connector_advice
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.formats import KafkaFormat, RecordFormat
from joins.plan.plan import KafkaOptions, SnapshotEvidence, TopicSource
from tests.support.http_server import answering

COMMITTED = {
    "mariadb": ({"ts_sec": 1763699653, "file": "binlog.1", "pos": 4}, 1763699653000),
    "postgres": ({"lsn": 1, "ts_usec": 1763699653123456}, 1763699653123),
    "a_snapshot_of_mariadb": ({"ts_sec": 1763699653, "snapshot": "INITIAL"}, None),
    "a_snapshot_of_an_older_one": ({"ts_sec": 1763699653, "snapshot": True}, None),
    "a_snapshot_that_is_over": ({"ts_sec": 1763699653, "snapshot": "false"}, 1763699653000),
    "one_that_tells_no_time": ({"change_lsn": "00000027:00000ac0:0002"}, None),
}


@pytest.mark.parametrize(("offset", "at_ms"), COMMITTED.values(), ids=COMMITTED)
def test_an_offset_tells(offset, at_ms):
    assert committed_at_ms(offset) == at_ms


@pytest.fixture
def connect(processes):
    """A server that answers as it is told; the real one is in the tests of the whole system."""
    answers = {}

    def answer(asked):
        status, value = answers.get(asked.path, (404, {"error_code": 404}))
        return status, {}, value if isinstance(value, bytes) else json.dumps(value).encode()

    with answering(answer) as url:
        yield answers, f"{url}/"


KEEPS = {f"{part}.converter.replace.null.with.default": "false" for part in ("key", "value")}
CONFIGURED = {
    "both": (KEEPS, ()),
    "neither": ({"value.converter": "x"}, tuple(KEEPS)),
    "one": ({next(iter(KEEPS)): "False"}, tuple(KEEPS)[1:]),
    "true": (dict.fromkeys(KEEPS, "true"), tuple(KEEPS)),
}


@pytest.mark.parametrize(("config", "missing"), CONFIGURED.values(), ids=CONFIGURED)
def test_what_a_connector_makes_of_null_is_in_its_configuration(connect, config, missing):
    answers, url = connect
    answers["/connectors/shop/config"] = 200, config
    connector = ConnectOffsets(url, "shop")
    assert connector.nulls_replaced() == missing
    connector.close()
    options = KafkaOptions("b:1", "t"), RecordFormat(KafkaFormat.DEBEZIUM_JSON)
    source = TopicSource(*options, SnapshotEvidence(connect_url=url, connector="shop"))
    said = connector_advice(source)
    assert len(said) == bool(missing)
    assert all(option in said[0] for option in missing)


@pytest.mark.parametrize(
    ("threads", "topic", "count"), [("4", None, 1), ("4", "n", 0), (1, None, 0)]
)
def test_a_snapshot_in_chunks_without_notifications_is_advised_against(
    connect, threads, topic, count
):
    answers, url = connect
    answers["/connectors/shop/config"] = 200, {**KEEPS, "snapshot.max.threads": threads}
    evidence = SnapshotEvidence(connect_url=url, connector="shop", notifications_topic=topic)
    options = KafkaOptions("b:1", "t"), RecordFormat(KafkaFormat.DEBEZIUM_JSON)
    said = connector_advice(TopicSource(*options, evidence))
    assert len(said) == count
    assert all("snapshot.notifications.topic" in text for text in said)


def test_all_partitions_of_a_connector_must_be_out_of_the_snapshot(connect):
    answers, url = connect
    offsets = [{"partition": {"n": n}, "offset": {"ts_sec": 100 + n}} for n in range(2)]
    offsets_of = ConnectOffsets(url, "my shop")
    answers["/connectors/my%20shop/offsets"] = 200, {"offsets": offsets}
    assert offsets_of.committed_ms() == 100_000
    offsets[1]["offset"]["snapshot"] = "INITIAL"
    assert offsets_of.committed_ms() is None
    answers["/connectors/my%20shop/offsets"] = 200, {"offsets": []}
    assert offsets_of.committed_ms() is None
    offsets_of.close()


FAULTS = {
    "no_such_connector": ((404, {}), SourceError, "does not tell the offsets"),
    "a_rebalance": ((503, {}), SourceUnavailableError, "answers with status 503"),
    "no_json": ((200, b"<html>"), SourceUnavailableError, "does not answer"),
    "a_redirection": ((302, {}), SourceError, "status 302"),
}


@pytest.mark.parametrize(("answer", "kind", "text"), FAULTS.values(), ids=FAULTS)
def test_what_is_no_answer_is_told(connect, answer, kind, text):
    answers, url = connect
    answers["/connectors/shop/offsets"] = answer
    offsets = ConnectOffsets(url, "shop")
    with pytest.raises(kind, match=text):
        offsets.require()
    answers["/connectors/shop/offsets"] = 200, {"offsets": []}
    offsets.require()
    offsets.close()


def test_a_server_that_is_not_there_may_come_back():
    with pytest.raises(SourceUnavailableError, match="does not answer"):
        ConnectOffsets("http://127.0.0.1:9", "shop").require()
