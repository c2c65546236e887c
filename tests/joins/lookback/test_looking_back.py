"""Every promise of looking back, over every kind of job and output: a right answer or a refusal.

Each job runs once, with a restart in the middle, to the end of its stream, in this process. What
looks back then runs in every cell of the matrix; a bare exception fails, and so does an answer that
is right only because there was nothing to look at.
"""

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from kafka import KafkaProducer

from joins.durable.pins import PinStore
from service.jobs.inspect.__main__ import (
    explain_row,
    list_letters,
    replay_batch,
    show_letter,
    show_tables,
)
from service.jobs.inspect.past import histories, open_replayer
from tests.support.lanes import some_of
from tests.support.run_here import JobHere, jobs_here
from tests.support.topics import consume, create_topic, produce
from watermark.errors import SluiceError

RECORDS = [
    {"user_id": 1, "n": 0, "ts": "2026-01-01 00:00:10"},
    {"user_id": 2, "n": 1, "ts": "2026-01-01 00:00:20"},
    b"{",
    {"user_id": 3, "n": 3, "ts": "2026-01-01 00:00:30"},
    {"user_id": 1, "n": 4, "ts": "2026-01-01 00:01:10"},
    {"user_id": 2, "n": 5, "ts": "2026-01-01 00:01:20"},
    {"user_id": 1, "n": 6, "ts": "2026-01-01 00:00:05"},
    {"user_id": 1, "n": 7, "ts": "2026-01-01 00:02:10"},
    {"user_id": 1, "n": 8, "ts": "2026-01-01 00:00:01"},
    {"user_id": 2, "n": 9, "ts": "2026-01-01 00:03:00"},
    {"user_id": "x", "n": 10, "ts": "2026-01-01 00:03:00"},
    {"user_id": 1, "n": 11, "ts": "2026-01-01 00:04:00"},
]
DEAD = {2, 10}
RECORDS_A_BATCH = 4
TABLES = """
SET 'execution.runtime-mode' = 'batch';
CREATE TABLE users (user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED)
WITH ('connector' = 'delta', 'path' = 'users');
CREATE TABLE named (user_id BIGINT, name STRING, since TIMESTAMP(3), WATERMARK FOR since AS since,
  PRIMARY KEY (user_id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'named');
CREATE TABLE clicks (user_id BIGINT, n INT, ts TIMESTAMP(3), p AS PROCTIME(),
  WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka', 'topic' = '{topic}', {brokers},
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
"""
WINDOW = """SELECT {key}, window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE {of}, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY {key}, window_start, window_end"""
JOINED_ROWS = "user_id BIGINT, n INT, name STRING"
WINDOW_ROWS = "at_key {key}, at TIMESTAMP(3), found BIGINT"
JOIN = """SELECT c.user_id, c.n, u.name FROM clicks AS c
LEFT JOIN {table} FOR SYSTEM_TIME AS OF c.{time} AS u ON c.user_id = u.user_id"""
VIEW = """CREATE VIEW joined AS SELECT c.n, c.ts, u.name FROM clicks AS c
LEFT JOIN named FOR SYSTEM_TIME AS OF c.ts AS u ON c.user_id = u.user_id;"""
SINKS = {
    "delta": "'connector' = 'delta', 'path' = '{name}'",
    "delta_without_metadata": "'connector' = 'delta', 'path' = '{name}', 'row-metadata' = 'false'",
    "delta_merged": "'connector' = 'delta', 'path' = '{name}'",
    "kafka": "'connector' = 'kafka', 'topic' = '{name}', {brokers}, 'format' = 'json'",
    "upsert_kafka": "'connector' = 'upsert-kafka', 'topic' = '{name}', {brokers}, "
    "'key.format' = 'json', 'value.format' = 'json'",
    "debezium": "'connector' = 'kafka', 'topic' = '{name}', {brokers}, 'format' = 'debezium-json'",
    "print": "'connector' = 'print'",
    "blackhole": "'connector' = 'blackhole'",
}
KEYED = {"delta_merged", "upsert_kafka"}
UPDATED = KEYED | {"debezium"}
TOPICS = {"kafka", "upsert_kafka", "debezium"}
KEEPS_NOTHING = {"print", "blackhole"}


@dataclass(frozen=True)
class Kind:
    """A kind of job: its queries, and its outputs, one for each INSERT."""

    query: str
    sinks: tuple[str, ...]
    columns: str = JOINED_ROWS
    before: str = ""
    events: bool = True

    @property
    def is_updated(self) -> bool:
        return bool(UPDATED & set(self.sinks))

    def sql(self, name: str, topic: str, brokers: str) -> str:
        parts = [TABLES.format(topic=topic, brokers=brokers), self.before]
        if self.is_updated:
            parts.insert(0, "SET 'table.exec.emit.allow-lateness' = '10 min';")
        inserts = []
        for number, sink in enumerate(self.sinks, start=1):
            key = ", PRIMARY KEY (at_key, at) NOT ENFORCED" if sink in KEYED else ""
            place = SINKS[sink].format(name=output_name(name, number), brokers=brokers)
            parts.append(f"CREATE TABLE o{number} ({self.columns}{key}) WITH ({place});")
            inserts.append(f"INSERT INTO o{number} {self.query};")
        if len(inserts) > 1:
            inserts = ["EXECUTE STATEMENT SET BEGIN", *inserts, "END;"]
        return "\n".join([*parts, *inserts])


def batch_of(record: Any) -> int:
    return int(dict(record.headers)["sluice-batch"])


def output_name(name: str, number: int) -> str:
    return f"{name}_{number}"


PROC = JOIN.format(table="users", time="p")
ASOF = JOIN.format(table="named", time="ts")
WINDOWS = {
    "query": WINDOW.format(key="user_id", of="clicks"),
    "columns": WINDOW_ROWS.format(key="BIGINT"),
}
BOTH = {
    "query": WINDOW.format(key="name", of="joined"),
    "columns": WINDOW_ROWS.format(key="STRING"),
    "before": VIEW,
}
EVERY = ("delta", "delta_without_metadata", "kafka", "print", "blackhole")
KINDS = {
    "join": Kind(PROC, ("delta",), events=False),
    "join_set": Kind(PROC, EVERY, events=False),
    "as_of_join": Kind(ASOF, ("delta",)),
    "join_and_windows": Kind(sinks=("delta",), **BOTH),
    **{
        f"windows_to_{sink}": Kind(sinks=(sink,), **WINDOWS)
        for sink in sorted(SINKS.keys() - {"kafka", "blackhole"})
    },
}


@dataclass(frozen=True)
class Done:
    """A job that has ended."""

    kind: Kind
    job: JobHere
    name: str
    topic: str
    bootstrap: str

    @property
    def directory(self) -> Path:
        return self.job.layout.job_dir

    def asks(self, inspection, **arguments: object) -> dict[str, Any] | SluiceError:
        try:
            return dict(inspection(self.directory, Namespace(**arguments)))
        except SluiceError as refused:
            return refused

    def batches(self) -> list[int]:
        newest = PinStore(self.directory / "checkpoint" / "pins").newest()
        return list(range(newest.batch + 1))

    def sink(self, number: int) -> str:
        return self.kind.sinks[number - 1]

    def output(self, number: int) -> Path:
        return self.job.jobs.settings.warehouse_dir / output_name(self.name, number)

    @property
    def late(self) -> list[int]:
        """Offsets; the watermark is that of the records before the batch."""
        if self.kind.is_updated or not self.kind.events:
            return []
        waits = self.kind.query == ASOF or self.kind.before
        return [6, 8] if waits else [8]

    def expected(self, number: int) -> list[tuple[object, ...]]:
        """The rows of the output; of a changelog all that was sent."""
        counted = [at for at in range(len(RECORDS)) if at not in {*DEAD, *self.late}]
        records = [RECORDS[at] for at in counted]
        names = {1: "Ann", 2: "Bob"}
        if self.kind.query in (PROC, ASOF):
            return [(r["user_id"], r["n"], names.get(r["user_id"])) for r in records]
        key = (lambda r: names.get(r["user_id"])) if self.kind.before else (lambda r: r["user_id"])
        found = Counter((key(r), r["ts"][:17] + "00") for r in records)
        rows = [(who, at, count) for (who, at), count in found.items()]
        if self.sink(number) in UPDATED:  # the record that came late made its window fire again
            first = (1, "2026-01-01 00:00:00")
            assert found[first] == 3
            rows += [(*first, 2)] * (2 if self.sink(number) == "debezium" else 1)
        return rows

    def rows(self, number: int) -> list[tuple[object, ...]]:
        """What the output has; of a changelog all that was sent."""
        if self.sink(number) not in TOPICS:
            table = DeltaTable(str(self.output(number))).to_pyarrow_table()
            found = [list(row.values())[:3] for row in table.to_pylist()]
        else:
            values = [json.loads(each.value) for each in self.sent(number)]
            if self.sink(number) == "debezium":
                values = [value["after"] or value["before"] for value in values]
            found = [list(value.values()) for value in values]
        return [(*(str(v)[:19] if "-" in str(v) else v for v in row),) for row in found]

    def sent(self, number: int) -> list[Any]:
        return consume(self.bootstrap, output_name(self.name, number))

    @contextmanager
    def spoiled(self, number: int, batch: int) -> Iterator[None]:
        """A row of `batch` is gone from its file; in a topic one comes again with another value."""
        if self.sink(number) in TOPICS:
            (one, *_) = [r for r in self.sent(number) if batch_of(r) == batch]
            with KafkaProducer(bootstrap_servers=self.bootstrap) as producer:
                changed = one.value.replace(b"2", b"7").replace(b"1", b"6")
                producer.send(
                    one.topic, changed, one.key, one.headers, timestamp_ms=one.timestamp
                ).get(30)
            yield
            return
        output = histories(self.directory)[number - 1].output
        (file, *_) = output.of(batch).files
        was = file.read_bytes()
        pq.write_table(pq.read_table(file).slice(1), file)
        yield
        file.write_bytes(was)

    def replays(self, number: int) -> list[dict[str, Any] | SluiceError]:
        """Of each batch what its replay says, or why there is none."""
        found: list[dict[str, Any] | SluiceError] = []
        with open_replayer(self.directory, str(number)) as replayer:
            for batch in self.batches():
                try:
                    found.append(replayer.replay(batch, diff=True))
                except SluiceError as refused:
                    found.append(refused)
        return found


CELLS = {
    f"{name}-{sink}" if len(kind.sinks) > 1 else name: (name, number)
    for name, kind in KINDS.items()
    for number, sink in enumerate(kind.sinks, start=1)
}
IN_EVERY_RUN = (
    *("join_set", "as_of_join", "join_and_windows"),
    *("windows_to_delta", "windows_to_delta_merged"),
)
each_output = pytest.mark.parametrize(
    ("name", "number"),
    some_of(CELLS, *(cell for cell, (name, _) in CELLS.items() if name in IN_EVERY_RUN)),
)


@pytest.fixture(scope="module")
def done(request, tmp_path_factory, kafka, spark) -> Iterator[dict[str, Done]]:
    """The jobs of the tests that run, some at a time: most of their time they wait."""
    tests = (each for each in request.session.items if each.path == request.node.path)
    asked_for = {each.callspec.params["name"] for each in tests}
    root, servers = tmp_path_factory.mktemp("jobs"), kafka.bootstrap_servers
    people = {"user_id": [1, 2], "name": ["Ann", "Bob"]}
    far = {"user_id": 99, "name": "nobody", "since": datetime(2026, 2, 1)}  # noqa: DTZ001
    since = [datetime(2025, 1, 1)] * 2  # noqa: DTZ001
    write_deltalake(str(root / "warehouse" / "users"), pa.table(people))
    named = {n: [*values, far[n]] for n, values in {**people, "since": since}.items()}
    write_deltalake(str(root / "warehouse" / "named"), pa.table(named))
    topic = create_topic(servers)
    produce(servers, topic, RECORDS)
    brokers = f"'properties.bootstrap.servers' = '{servers}'"

    def run(item: tuple[str, Kind]) -> tuple[str, Done]:
        name, kind = item
        for number, sink in enumerate(kind.sinks, start=1):
            if sink in TOPICS:
                create_topic(servers, output_name(name, number))
        job = jobs.submit(kind.sql(name, topic, brokers), name)
        first = job.run(lambda join: join.progress.counts.batch is not None)
        assert not first.is_finished, "the second batch is a planted fault, which has stopped it"
        assert job.run().is_finished
        return name, Done(kind, job, name, topic, servers)

    with (
        jobs_here(
            root, servers, spark, max_records_per_batch=RECORDS_A_BATCH, failpoints="C2=raise#1"
        ) as jobs,
        job_threads() as pool,
    ):
        yield dict(pool.map(run, ((name, KINDS[name]) for name in KINDS if name in asked_for)))


def job_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(4)


def is_refused(answer: dict[str, Any] | SluiceError, kind: str) -> bool:
    assert isinstance(answer, SluiceError), answer
    assert answer.hint.endswith(".")
    return type(answer).__name__ == kind


@each_output
def test_every_batch_is_replayed_and_only_what_has_something_to_compare_counts(done, name, number):
    job = done[name]
    found = job.replays(number)
    if job.sink(number) in KEEPS_NOTHING:
        assert all(is_refused(each, "NotReplayableError") for each in found)
        return
    for each in found:
        something = each["expected_rows"] + each["expected_dead_letters"]
        assert each["verdict"] == ("identical" if something else "nothing-to-compare"), each
        assert each["identical"] is (each["verdict"] == "identical")
        assert each["rows"] == each["expected_rows"]
    assert sum(each["rows"] for each in found) == len(job.expected(number))
    assert sum(each["dead_letters"] for each in found) == len(DEAD)


@each_output
def test_a_restart_in_the_middle_loses_and_repeats_no_row(done, name, number):
    job = done[name]
    if job.sink(number) in KEEPS_NOTHING:
        return
    expected = job.expected(number)
    if job.sink(number) == "delta_merged":
        expected.remove((1, "2026-01-01 00:00:00", 2))
    assert sorted(job.rows(number), key=repr) == sorted(expected, key=repr)


@each_output
def test_every_record_is_explained(done, name, number):
    job = done[name]
    states = []
    for offset in range(len(RECORDS) + 1):
        place = {"topic": job.topic, "partition": 0, "offset": offset}
        found = job.asks(explain_row, **place, sink=str(number))
        states.append(found["state"])
        assert found["reason"]
    expected = ["joined" if job.kind.query in (PROC, ASOF) else "in-windows"] * len(RECORDS)
    if job.kind.query in (PROC, ASOF):
        expected[3] = "unmatched"
    for offset in job.late:
        expected[offset] = "late"
    for offset in DEAD:
        expected[offset] = "dead-letter"
    assert states == [*expected, "after-end"]


@each_output
def test_the_newest_rows_are_shown_or_it_is_said_where_they_are(done, name, number):
    job = done[name]
    question = {"what": "preview", "limit": 100, "sink": str(number)}
    found = job.asks(show_tables, question=question)
    if job.sink(number) not in ("delta", "delta_without_metadata"):
        assert is_refused(found, "NotReadableError")
        return
    shown = [tuple(item["values"].values())[:3] for item in found["items"]]
    assert len(shown) == len(job.expected(number))
    assert sum(batch["rows"] for batch in found["batches"]) == len(shown)


@each_output
def test_a_row_that_is_not_as_its_batch_made_it_is_named(done, name, number):
    job = done[name]
    sink = job.sink(number)
    if sink in KEEPS_NOTHING:
        return
    with job.spoiled(number, batch=1):
        found = job.asks(replay_batch, batch=1, diff=True, sink=str(number))
    assert (found["verdict"], found["identical"]) == ("different", False)
    assert {each["table"] for each in found["differences"]} == {"output"}


@pytest.mark.parametrize(
    "name",
    some_of(("join", "join_set", "as_of_join", "windows_to_delta"), "join_set", "as_of_join"),
)
def test_dead_letters_of_a_job_that_has_finished_are_listed_shown_and_joined_once(done, name):
    job = done[name]
    every = {"cursor": None, "limit": 10, "pending": False, "matching": ""}
    listed = job.asks(list_letters, **every, value_bytes=100)
    assert {letter["offset"] for letter in listed["items"]} == DEAD
    place = {"topic": None, "partition": 0, "offset": 2}
    shown = job.asks(show_letter, **place, batch=None, value_bytes=100)
    assert shown["value"] == "{"
    corrected = {"partition": 0, "offset": 10, "value": '{"user_id": 2, "n": 10}'}
    answer = job.job.answer({"records": [corrected]})
    if job.kind.events:
        assert answer.error.type == "not-replayable"
        assert "sluice dlq show" in answer.error.hint
        return
    inserts = len(job.kind.sinks)
    assert (answer.result["rows"], answer.result["still_bad"]) == (inserts, [])
    again = job.job.answer({"records": [corrected]})
    assert (again.result["rows"], again.result["already_replayed"]) == (0, 1)
    everything = job.job.answer({"all": True})
    assert [bad["offset"] for bad in everything.result["still_bad"]] == [2]
    for number, sink in enumerate(job.kind.sinks, start=1):
        if sink not in KEEPS_NOTHING:
            assert (2, 10, "Bob") in job.rows(number)
            assert job.replays(number)[2]["identical"], "the row came later"


@pytest.mark.parametrize(
    "name",
    some_of(
        ("join", "windows_to_delta", "windows_to_delta_without_metadata"),
        "windows_to_delta",
    ),
)
def test_an_output_that_its_owner_has_compacted_is_compared_or_it_is_said_why_not(done, name):
    job = done[name]
    table = DeltaTable(str(job.output(1)))
    table.optimize.compact()
    found = job.replays(1)
    tells = "without_metadata" not in name
    assert {each["compared_with"] for each in found if each["rows"]} == {
        "table" if tells else "commit"
    }
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    found = job.replays(1)
    if tells:
        assert "different" not in {each["verdict"] for each in found}
        assert "identical" in {each["verdict"] for each in found}
    else:
        refused = [each for each in found if isinstance(each, SluiceError)]
        assert all(is_refused(each, "NotReplayableError") for each in refused)
        assert refused
