"""`sluice inspect-topic` over a real broker, with the records of a real connector."""

import json
import struct
from pathlib import Path

import pytest

from service.sql.planner.planner import plan
from tests.support.formats import read
from tests.support.program import run_program
from tests.support.registry import registry
from tests.support.topics import create_topic, produce, unique_name

GOLDEN = Path(__file__).parents[2] / "golden" / "debezium"


@pytest.fixture
def inspect(kafka):
    def run(topic, *arguments):
        servers = ("--bootstrap-servers", kafka.bootstrap_servers)
        done = run_program("inspect-topic", topic, *servers, *arguments)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


@pytest.fixture(scope="module")
def types(kafka):
    """A topic with what a connector has written of the table `types`."""
    lines = (GOLDEN / "postgres" / "with_schema.jsonl").read_text().splitlines()[1:]
    own = [line for line in map(json.loads, lines) if line["topic"].endswith(".types")]
    topic = create_topic(kafka.bootstrap_servers, f"{unique_name('with')}.public.types")
    columns = (
        [None if line[n] is None else line[n].encode() for line in own] for n in ("key", "value")
    )
    keys, values = columns
    produce(kafka.bootstrap_servers, topic, values, keys=keys)
    return topic


def test_a_topic_is_shown_with_a_table_to_declare(inspect, types):
    code, told, _ = inspect(types)
    assert code == 0
    assert "CREATE TABLE `types` (" in told
    assert "`c_numeric` DECIMAL(10, 2)" in told
    assert "PRIMARY KEY (`id`) NOT ENFORCED" in told
    assert "golden.public.types" in told
    assert "first_in_data_collection 1" in told


def test_the_same_is_there_as_json(inspect, types):
    code, told, _ = inspect(types, "--output", "json")
    assert code == 0
    document = json.loads(told)
    assert (document["layout"], document["key"]) == ("envelope", ["id"])
    assert document["records"] == document["with_schema"] + document["kinds"]["tombstone"]
    assert document["snapshot_marks"]["0"]["false"] > 0


def test_few_records_are_looked_at_if_few_are_wanted(inspect, types):
    _, told, _ = inspect(types, "--records", "2", "--output", "json")
    assert json.loads(told)["records"] == 2


def test_for_a_stream_a_table_is_proposed_that_a_job_reads(inspect, kafka):
    topic = create_topic(kafka.bootstrap_servers)
    rows = [{"user_id": n, "at": "2026-11-29T08:00:00Z", "n": n / 2} for n in (1, 2)]
    produce(kafka.bootstrap_servers, topic, rows)
    code, told, _ = inspect(topic)
    assert code == 0
    statement = told[told.index("CREATE TABLE") :]
    (shown,) = [line.split() for line in told.splitlines() if line.startswith("user_id ")]
    assert "BIGINT" in shown, "the type of the statement"
    sink = "CREATE TABLE o (user_id BIGINT, at TIMESTAMP_LTZ(6)) WITH ('connector' = 'print');"
    source = plan(f"{statement}{sink} INSERT INTO o SELECT user_id, at FROM `{topic}`;").probe
    texts = [json.dumps(row).encode() for row in rows]
    parsed = read(source.source.value, source.fields, texts)
    assert parsed.bad == ()
    assert parsed.batch.column("user_id").to_pylist() == [1, 2]
    assert parsed.batch.column("at").null_count == 0


@pytest.mark.parametrize("values", [[], [b"{", b"no json"]], ids=["empty", "unreadable"])
def test_a_topic_without_a_readable_record_is_of_no_kind_and_proposes_nothing(
    inspect, kafka, values
):
    topic = create_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, values)
    code, told, _ = inspect(topic)
    assert code == 0
    assert "read as      unknown" in told
    assert "CREATE TABLE" not in told


def test_a_topic_that_is_not_there_is_an_error(inspect):
    code, told, talk = inspect(unique_name("nothing"))
    assert (code, told) == (1, "")
    assert "hint: Run sluice topic ls to see the topics" in talk


def test_avro_is_shown_by_its_registry(inspect, kafka):
    topic = create_topic(kafka.bootstrap_servers)
    value = struct.pack(">bI", 0, 7) + b"\x02\x04hi"
    produce(kafka.bootstrap_servers, topic, [value], keys=[None])
    fields = [{"name": "id", "type": "long"}, {"name": "word", "type": "string"}]
    with registry() as own:
        own.add(7, {"type": "record", "name": "R", "fields": fields})
        code, told, _ = inspect(topic, "--registry", own.url)
    assert code == 0
    assert "`word` STRING" in told
    assert "'format' = 'avro-confluent'" in told
    assert f"'avro-confluent.url' = '{own.url}'" in told


def test_a_config_with_something_else_is_refused(inspect, types, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text("# a comment\nssl.keystore.password=x\n")
    code, _, talk = inspect(types, "--config", str(config))
    assert code == 2
    assert "ssl.keystore.password" in talk
    config.write_text(f"schema.registry.ssl.ca.location={tmp_path / 'none.pem'}\n")
    code, _, talk = inspect(types, "--config", str(config), "--registry", "https://127.0.0.1:1")
    assert code == 2
    assert "none.pem" in talk
    config.write_bytes(b"sasl.password=\xff\n")
    code, _, talk = inspect(types, "--config", str(config))
    assert code == 2
    assert "cannot be read as UTF-8" in talk
    config.write_text("security.protocol = PLAINTEXT\n")
    code, told, _ = inspect(types, "--config", str(config))
    assert (code, "CREATE TABLE" in told) == (0, True)
