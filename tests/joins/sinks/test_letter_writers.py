"""Where rows of replayed dead letters go when the sink is no table."""

import io
import json
from dataclasses import replace

import pytest

from joins.kernels.probe.probe import kernel_spec
from joins.lookback.dead_letter_replay import DeadLetterReplay, ReplayParts
from joins.lookback.history import History
from joins.plan.errors import SinkError
from joins.plan.formats import RecordKey
from joins.plan.plan import KafkaOptions, KafkaSink
from joins.sinks.console import ConsoleLetterWriter
from joins.sinks.kafka import HEADER_NAMES, KafkaLetterWriter
from tests.support.letters import CORRECTED, LetterJob, request
from tests.support.probe import PLAN
from tests.support.topics import consume, create_topic, delete_topics

OUTPUT = kernel_spec(PLAN).output


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return LetterJob(tmp_path_factory.mktemp("made")).make()


@pytest.fixture
def job(made, tmp_path):
    return made.copied_to(tmp_path)


class CutOffError(Exception): ...


def cut_off(step):
    def passed(name):
        if name == step:
            raise CutOffError

    return passed


@pytest.mark.parametrize(("identifier", "lines"), [("x", 3), (None, 0)], ids=["print", "blackhole"])
def test_rows_are_printed(job, identifier, lines):
    out = io.StringIO()
    writer = ConsoleLetterWriter(out, identifier, OUTPUT)
    assert job.replay(writer=writer).handle(request({"records": CORRECTED}))["rows"] == 3
    assert len(out.getvalue().splitlines()) == lines


def test_records_carry_their_own_batch_and_come_again_as_the_same_bytes(job, kafka, tmp_path):
    topic = create_topic(kafka.bootstrap_servers)
    sink = KafkaSink(KafkaOptions(kafka.bootstrap_servers, topic), key=RecordKey(("user_id",)))
    writer = KafkaLetterWriter(sink, OUTPUT, tmp_path / "sink.json")
    try:
        replay = job.replay(writer=writer, passed=cut_off("committed"))
        with pytest.raises(CutOffError):  # sent, but nothing notes it
            replay.handle(request({"records": CORRECTED}))
        result = job.replay(writer=writer).handle(request({"records": CORRECTED}))
        assert (result["replay"], result["rows"]) == (1, 3)
        job.replay(writer=writer).handle(request({"records": CORRECTED}, "r2"))
        sent = [(r.key, r.value, r.headers) for r in consume(kafka.bootstrap_servers, topic)]
    finally:
        delete_topics(kafka.bootstrap_servers, topic)
    assert sent[3:] == sent[:3], "at least once: a crash sends the same bytes again"
    rows = [json.loads(value) for _, value, _ in sent[:3]]
    assert [(r["user_id"], r["name"]) for r in rows] == [(2, "r5"), (1, "r5"), (1, "u9")]
    headers = [dict(h) for _, _, h in sent[:3]]
    assert set(headers[0]) == set(HEADER_NAMES[:5])
    assert [(h["sluice-batch"], h["sluice-src-offset"]) for h in headers] == [
        (b"7", b"101"),
        (b"7", b"102"),
        (b"8", b"105"),
    ]


def test_a_topic_that_takes_nothing_abandons_the_replay(job, kafka, tmp_path):
    sink = KafkaSink(KafkaOptions(kafka.bootstrap_servers, "no such topic"))
    writer = KafkaLetterWriter(sink, OUTPUT, tmp_path / "sink.json")
    with pytest.raises(SinkError, match="no such topic"):
        job.replay(writer=writer).handle(request({"records": CORRECTED}))
    assert "abandoned" in job.replays.outcome(1)
    assert all(letter.replayed_by is None for letter in job.letters.page().letters)


def test_a_letter_is_not_replayed_into_a_topic_with_the_newest_row_of_each_key(job, tmp_path):
    """Its row would replace those of newer records of the key."""
    sink = KafkaSink(KafkaOptions("", "names"), key=RecordKey(("user_id",)), upsert=True)
    (insert,) = (job.insert(0, ConsoleLetterWriter(io.StringIO(), "x", OUTPUT)),)
    insert = replace(insert, history=History(replace(insert.history.places, sink=sink)))
    replay = DeadLetterReplay(ReplayParts(job.letters, job.replays, [insert], 2))
    result = replay.handle(request({"records": CORRECTED}))
    assert (result["rows"], len(result["still_bad"])) == (0, len(CORRECTED))
    for bad in result["still_bad"]:
        assert "a newer record may have written the row of its key" in bad["reason"]
        assert "send the record to the topic again" in bad["reason"]
