"""The datagen process on a real broker: the record at offset i is row i, whatever happens."""

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from joins.adapters import datagen as datagen_process
from joins.adapters.datagen import DatagenProcess, datagen_config
from joins.kernels.json.encode import encode_objects
from joins.kernels.probe.generate import generate
from joins.plan.plan import DatagenField, DatagenKind, DatagenSource, Field, KafkaOptions
from joins.plan.types import Member, SqlType, TypeName, map_type, row_type
from service.embedded.broker import KafkaBroker
from service.embedded.process import free_port
from tests.support.quick_start import quick_start
from tests.support.topics import consume, create_topic, delete_topics, end_offsets, produce
from tests.support.wait import wait_until

SEED = 326
STRING = SqlType(TypeName.STRING)
FIELDS = (
    Field("n", SqlType(TypeName.BIGINT)),
    Field("name", STRING),
    Field("labels", map_type(row_type(Member("price", SqlType(TypeName.DECIMAL, 6, 2))))),
)
COUNTED = DatagenField("n", DatagenKind.SEQUENCE, start="1", end="1500")
NAMES = DatagenField("name", DatagenKind.RANDOM, length=5)
BOUNDED = DatagenSource(5_000, None, (COUNTED, NAMES))
ENDLESS = DatagenSource(
    2_000, None, (DatagenField("n", DatagenKind.RANDOM, minimum="1", maximum="9"), NAMES)
)


@pytest.fixture
def options(kafka):
    topic = create_topic(kafka.bootstrap_servers)
    yield KafkaOptions(kafka.bootstrap_servers, topic)
    delete_topics(kafka.bootstrap_servers, topic)


@contextmanager
def running(options, source, **given):
    """The process; at the end of the block it is killed."""
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(quick_start("joins.adapters.datagen"), **pipes) as process:
        config = datagen_config(options, source, FIELDS, SEED)
        process.stdin.write(json.dumps({**config, **given}) + "\n")
        process.stdin.flush()
        try:
            yield process
        finally:
            process.kill()


def assert_ends_well(options, source):
    with running(options, source) as process:
        assert process.wait(timeout=300) == 0, process.stderr.read()


def written(options):
    return end_offsets(options.bootstrap_servers, options.topic)[0]


def assert_rows(options, source, count):
    """The first `count` records are the first rows of the stream, and there are no others."""
    rows = generate(FIELDS, source.fields, SEED, range(count))
    expected = [value.encode() for value in encode_objects(rows).to_pylist()]
    found = consume(options.bootstrap_servers, options.topic)
    assert [record.value for record in found] == expected


def test_a_bounded_stream_ends_by_itself_and_a_restart_adds_nothing(options):
    for _ in range(2):
        assert_ends_well(options, BOUNDED)
        assert_rows(options, BOUNDED, 1500)


def test_the_number_of_rows_bounds_a_stream_too(options):
    source = replace(ENDLESS, number_of_rows=300)
    assert_ends_well(options, source)
    assert_rows(options, source, 300)


def test_after_being_killed_it_goes_on_where_it_stopped(options):
    for _ in range(2):
        before = written(options)
        with running(options, ENDLESS):
            wait_until(lambda before=before: written(options) > before + 200, what="rows")
    assert_rows(options, ENDLESS, written(options))


def test_it_ends_when_its_runner_does(options):
    with running(options, ENDLESS) as process:
        wait_until(lambda: written(options) > 0, what="rows")
        process.stdin.close()
        assert process.wait(timeout=120) == 0
    assert_rows(options, ENDLESS, written(options))


@pytest.mark.usefixtures("processes")
def test_without_a_broker_it_fails_so_that_it_is_started_again():
    with running(KafkaOptions(f"127.0.0.1:{free_port()}", "none"), ENDLESS) as process:
        assert process.wait(timeout=300) not in (0, None)


def test_the_runner_keeps_one_alive_until_the_last_row(options):
    generator = DatagenProcess(options, BOUNDED, FIELDS, SEED)

    def another_than(old):
        generator.keep_alive()
        return generator._child if generator._child not in (old, None) else None

    first = another_than(None)
    try:
        assert another_than(first) is None
        first.kill()
        first.wait()
        second = wait_until(lambda: another_than(first), what="it is started again")
        assert second.wait(timeout=300) == 0
        assert another_than(second) is None
    finally:
        generator._child.kill()
        generator._child.wait()
        for child in (first, generator._child):
            child.stdin.close()
    assert_rows(options, BOUNDED, 1500)


def next_child(generator, before):
    """Keep it alive, as the runner does, until there is another process."""

    def found():
        generator.keep_alive()
        return generator._child if generator._child is not before else None

    return wait_until(found, deadline_s=30, what="another generator")


@pytest.mark.usefixtures("processes")
def test_one_that_fails_is_started_again_after_longer_and_longer_waits(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(datagen_process, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    nowhere = KafkaOptions(f"127.0.0.1:{free_port()}", "none")
    generator = DatagenProcess(nowhere, ENDLESS, FIELDS, SEED)
    generator.keep_alive()
    waits = []
    for _ in range(3):
        child, ended_at = generator._child, clock[0]
        child.kill()
        child.wait()
        generator.keep_alive()
        while generator._child is child:
            clock[0] += 0.5
            generator.keep_alive()
        waits.append(clock[0] - ended_at)
    generator._release()
    assert waits == [1, 2, 4]


def test_one_that_ends_before_it_is_told_what_to_do_does_not_end_the_runner(monkeypatch, options):
    generator = DatagenProcess(options, BOUNDED, FIELDS, SEED)
    monkeypatch.setattr(sys, "executable", "/bin/true")
    many = {**generator._config, "properties": [["sasl.username", "x" * 2_000_000]]}
    generator._config, kept = many, generator._config
    generator.keep_alive()
    failed = generator._child
    monkeypatch.undo()
    generator._config = kept
    second = next_child(generator, failed)
    assert second.wait(timeout=300) == 0
    generator._release()
    assert_rows(options, BOUNDED, 1500)


@pytest.mark.experiment
def test_a_kafka_that_goes_away_is_a_failure_and_every_row_comes_when_it_is_back(
    tmp_path, java, broker_jars
):
    source = replace(BOUNDED, rows_per_second=300)
    with KafkaBroker(tmp_path / "kafka", java, broker_jars) as broker:
        topic = create_topic(broker.bootstrap_servers)
        options = KafkaOptions(broker.bootstrap_servers, topic)
        with running(options, source, acknowledged_within_s=5) as process:
            wait_until(lambda: written(options) > 100, what="rows")
            broker.stop()
            assert process.wait(timeout=60) not in (0, None)
        broker.start()
        assert_ends_well(options, source)
        assert_rows(options, BOUNDED, 1500)


def test_a_foreign_record_in_its_topic_is_noticed(options):
    with running(options, ENDLESS) as process:
        wait_until(lambda: written(options) > 0, what="rows")
        produce(options.bootstrap_servers, options.topic, [b"{}"], partition=0)
        assert process.wait(timeout=300) not in (0, None)
        assert "took row" in process.stderr.read()
