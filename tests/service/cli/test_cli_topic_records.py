"""`sluice topic create | ls | rm | produce | peek` over a real broker."""

import json

import pytest
from kafka import KafkaProducer

from joins.adapters.kafka.cluster import KafkaCluster
from joins.plan.plan import KafkaOptions
from service.cli.topics import brokers, readable
from service.client import Sluice
from service.errors import UnreachableError
from service.wiring import topic_access
from tests.support.control_plane import control_plane
from tests.support.program import run_program
from tests.support.topics import create_topic, delete_topics, produce, unique_name
from tests.support.wait import wait_until


@pytest.fixture
def topic(kafka):
    """Runs a command of `sluice topic` against the broker."""

    def run(verb, *arguments, given=b""):
        servers = {"SLUICE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}
        done = run_program("topic", verb, *arguments, given=given, **servers)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def test_a_topic_is_made_filled_and_looked_at(topic):
    name = unique_name("clicks")
    code, out, said = topic("create", name, "--partitions", "3", "--set", "retention.ms=60000")
    assert (code, out) == (0, "")
    assert f"topic {name} created on" in said
    assert "3 partitions" in said
    lines = b'{"user_id": 7, "item": "a"}\n\n{"user_id": 8}\r\nnull'
    code, out, said = topic("produce", name, "--key", "k", given=lines)
    assert (code, said) == (0, f"3 records in topic {name}\n")
    assert out.splitlines()[1].split()[1:] == ["3", "0", "2"]  # one key is in one partition
    code, out, _ = topic("peek", name)
    assert code == 0
    heads, *rows = out.splitlines()
    assert heads.split() == ["PLACE", "TIME", "(UTC)", "KEY", "VALUE"]
    assert rows[0].endswith('k    {"user_id": 7, "item": "a"}')
    assert rows[2].endswith("k    NULL")
    assert json.loads(topic("peek", name, "--json", "--last", "2")[1])[0]["value_form"] == "json"


def test_topics_are_listed_and_one_is_deleted(topic, kafka):
    name = create_topic(kafka.bootstrap_servers, partitions=2)
    produce(kafka.bootstrap_servers, name, [1, 2, 3])
    code, out, said = topic("ls")
    assert code == 0, said
    assert out.split("\n")[0].split() == ["TOPIC", "PARTITIONS", "RECORDS"]
    assert [name, "2", "3"] in [line.split() for line in out.split("\n")]
    assert "__" not in out
    code, out, said = topic("rm", name)
    assert (code, out) == (0, "")
    assert f"topic {name} deleted on" in said
    assert name not in {each["topic"] for each in json.loads(topic("ls", "--all", "--json")[1])}
    code, _, said = topic("rm", name)
    assert code != 0
    assert f'topic "{name}" does not exist' in said


def test_a_topic_that_goes_while_all_are_listed_is_left_out(kafka):
    servers = kafka.bootstrap_servers
    cluster = KafkaCluster(KafkaOptions(servers, ""), keep_open=True)
    first, gone, last = (create_topic(servers, partitions=n) for n in (1, 2, 3))
    topics = [cluster.require(name) for name in (first, gone, last)]
    delete_topics(servers, gone)
    wait_until(lambda: cluster.describe(gone) is None, what="it is gone")
    listed = topic_access._listed(cluster, topics)
    assert [(each.name, each.partitions) for each in listed] == [(first, 1), (last, 3)]
    cluster.close()


def test_the_key_may_be_a_field_and_records_may_be_arguments(topic, kafka):
    name = create_topic(kafka.bootstrap_servers, partitions=2)
    records = ['{"id": 7}', '{"id": "seven"}', '{"id": [1, null]}']
    code, out, _ = topic("produce", name, *records, "--key-field", "id", "--json")
    written = json.loads(out)
    assert (code, written["records"]) == (0, 3)
    assert sum(each["records"] for each in written["partitions"]) == 3
    found = json.loads(topic("peek", name, "--first", "3", "--json")[1])
    assert {each["key"] for each in found} == {"7", "seven", "[1, null]"}


def test_the_oldest_and_the_newest_are_those_of_all_partitions(topic, kafka):
    name = create_topic(kafka.bootstrap_servers, partitions=2)
    for number in range(6):
        produce(kafka.bootstrap_servers, name, [number], partition=number % 2)

    def values(*arguments):
        return [each["value"] for each in json.loads(topic("peek", name, "--json", *arguments)[1])]

    assert values("--first", "3") == ["0", "1", "2"]
    assert values("--last", "2") == ["4", "5"]
    assert values() == list("012345")


def test_what_is_no_text_is_shown_in_hexadecimal_and_no_command_reaches_a_terminal(topic, kafka):
    config = {"message.timestamp.after.max.ms": str(10**18)}
    name = create_topic(kafka.bootstrap_servers, config=config)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    headers = [("trace", b"\xff\x00"), ("by", b"ann")]
    producer.send(name, b"\x1b[2J\xe2\x80\xae", key=b"\x80", headers=headers, timestamp_ms=1)
    producer.send(name, b"plain", timestamp_ms=10**15).get(timeout=300)  # beyond the year 9999
    producer.close()
    code, out, _ = topic("peek", name)
    assert code == 0
    assert "\x1b" not in out
    assert "trace=0xff00, by=ann" in out
    assert "0/0    1970-01-01 00:00:00.001  0x80" in out
    assert "0/1    NULL" in out
    first, second = json.loads(topic("peek", name, "--json")[1])
    assert (first["key"], first["key_form"], second["key_form"]) == ("80", "hex", "null")
    assert (first["value"], first["value_form"]) == ("\x1b[2J\u202e", "text")
    assert first["headers"][0] == {"name": "trace", "value": "ff00", "form": "hex"}


FORMS = {
    "nothing": (None, (None, "null")),
    "an_object": (b'{"a": 1}', ('{"a": 1}', "json")),
    "a_number": (b"1e400", ("1e400", "json")),
    "no_number": (b"NaN", ("NaN", "text")),
    "a_text": ("süß".encode(), ("süß", "text")),
    "empty": (b"", ("", "text")),
    "bytes": (b"\x00\xff", ("00ff", "hex")),
    "too_deep": (b"[" * 100_000, ("[" * 100_000, "text")),
}


@pytest.mark.parametrize(("data", "shown"), FORMS.values(), ids=FORMS)
def test_bytes_become_readable(data, shown):
    assert readable(data) == shown


# Each case: arguments behind the topic, standard input, what is said, records that are there then.
REFUSED = {
    "a_line_that_is_no_json": ([], b'{"a":1}\n{"a":\n{"a":2}', "record 2 cannot be written", 1),
    "a_constant_of_javascript": ([], b"[NaN]", "NaN is not a JSON number", 0),
    "nested_too_deeply": ([], b"[" * 100_000, "record 1 cannot be written", 0),
    "no_text": ([], b"\xff", "record 1 cannot be written", 0),
    "a_field_that_is_missing": (["--key-field", "id"], b'{"a":1}', 'field "id" is missing', 0),
    "a_field_that_is_null": (["--key-field", "id"], b'{"id":null}', 'field "id" is null', 0),
    "a_field_of_no_object": (["--key-field", "id"], b"7", 'field "id" is missing', 0),
}


@pytest.mark.parametrize(("arguments", "given", "said", "there"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_record_is_refused_and_those_before_it_are_counted(
    topic, kafka, arguments, given, said, there
):
    name = create_topic(kafka.bootstrap_servers)
    code, _, talk = topic("produce", name, *arguments, given=given)
    assert code == 1
    assert said in talk
    assert f"{there} before it were written" in talk
    assert talk.splitlines()[-1].startswith("hint: Write one JSON value per line")
    assert len(json.loads(topic("peek", name, "--json")[1])) == there
    if "--key-field" not in arguments:  # the hint works
        assert topic("produce", name, "--text", given=given)[0] == 0


def test_errors_name_the_topic_or_the_broker(topic, kafka):
    name = create_topic(kafka.bootstrap_servers, partitions=2)
    code, _, said = topic("create", name)
    assert code == 1
    assert f'topic "{name}" is there already, with 2 partitions' in said
    assert topic("create", unique_name("other"))[0] == 0
    for verb in ("produce", "peek"):
        code, _, said = topic(verb, f"{name}x", given=b"1")
        assert code == 1
        assert f'topic "{name}x" does not exist' in said
        assert name in said.splitlines()[-1]
    code, _, said = topic("peek", "t", "--bootstrap", "127.0.0.1:1")
    assert code == 1
    assert 'kafka "127.0.0.1:1" cannot be reached' in said
    assert "ECONNREFUSED" in said
    assert "sluice up" in said.splitlines()[-1]
    assert topic("peek", name, "--bootstrap-servers", kafka.bootstrap_servers)[0] == 0
    assert topic("create", "a b")[0] == 1
    assert topic("create", unique_name(), "--set", "no")[0] == 2
    assert topic("create", unique_name(), "--set", "no.such=1")[0] == 1
    assert topic("peek", name, "--first", "1", "--last", "1")[0] == 2
    assert topic("produce", name, "1", "--key", "a", "--key-field", "b")[0] == 2
    assert topic("peek", name)[2] == "the topic has no records\n"


def test_a_record_that_the_topic_does_not_take_is_refused(topic, kafka):
    name = create_topic(kafka.bootstrap_servers, config={"max.message.bytes": "1000"})
    code, _, said = topic("produce", name, "--text", given=b"x" * 5_000)
    assert code == 1
    assert "max.message.bytes" in said
    larger = create_topic(kafka.bootstrap_servers)
    assert topic("produce", larger, "--text", given=b"x" * 5_000)[0] == 0


def test_the_brokers_are_those_of_the_control_plane(processes, kafka, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_PORT", "1")
    assert brokers(None, None) == "localhost:9092"
    with pytest.raises(UnreachableError, match="cannot be reached"):
        brokers(None, "http://127.0.0.1:1")  # such as sluice topic rm: not that of another cluster
    assert brokers("a:1", "http://127.0.0.1:1") == "a:1"
    with control_plane(tmp_path, kafka_bootstrap_servers=kafka.bootstrap_servers) as plane:
        assert brokers(None, plane.url) == kafka.bootstrap_servers
        with Sluice(plane.url) as client:
            assert client.version().name == "sluice"
