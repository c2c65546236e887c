"""Experiment `stale`: sources stand still, and no record is joined with rows that are too old.

A writer numbers its changes of one row and notes when each was acknowledged. Clicks of that row
come all the time. The oracle reads the output and the records' times in Kafka, and no pin: a record
written at t must have met every change that was acknowledged before t - bound.

One job for each kind of source goes through its outages one after the other. Each ends by itself:
the first batch whose T is of the time behind it must begin a second after the table has caught up.
It has when the version of that batch is committed and its T has come, whichever is later.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake
from kafka import KafkaProducer

from joins.durable.pins import Pin
from tests.reliability.captured import running_connect
from tests.reliability.copied import recorded_rows
from tests.reliability.experiment import DEBEZIUM, MYSQL_CDC, Lab, result
from tests.reliability.troubled_runner import COMMAND, HELD
from tests.support.debezium import DebeziumConnector, mariadb_source
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig, upsert_table
from tests.support.shop import USERS, USERS_DDL, enrich_by, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.staleness import KEY, Load, halted
from tests.support.topics import create_topic, delete_topics, unique_name
from tests.support.wait import wait_until

BOUND_MS = 6_000
_BY_CONNECTOR_MS = 15_000  # its times come later
_OPENS_S = 400.0
_CLICKS_AT_ONCE = 1, 1_000  # 7 and 20 times a second
DELTA, UPSERT = "delta", "upsert-kafka"
_MODULES = {
    MYSQL_CDC: "joins.adapters.mysql.binlog",
    DELTA: "joins.adapters.delta.feed",
    UPSERT: "joins.adapters.topic.feed",
    DEBEZIUM: "joins.adapters.topic.feed",
}
PROCESS, DATABASE, BROKER, BUILD = "process halted", "database paused", "broker away", "build held"
CONNECTOR = "connector killed"
OUTAGES = {
    MYSQL_CDC: (PROCESS, DATABASE, BUILD, BROKER),
    DELTA: (PROCESS, BUILD, BROKER),
    UPSERT: (PROCESS, BUILD, BROKER),
    DEBEZIUM: (CONNECTOR, PROCESS, BUILD),
}


def planned(lab: Lab) -> dict[str, list[str]]:
    """Kind of source → its outages: 30 together, or each once.

    At small scale what is not of the source itself comes with the first kind only.
    """
    kinds = [MYSQL_CDC, DELTA, UPSERT]
    if lab.is_captured:
        kinds = [DEBEZIUM]
    elif lab.full:
        kinds = [*OUTAGES]
    every = [
        (kind, outage)
        for kind in kinds
        for outage in OUTAGES[kind]
        if lab.full or kind == kinds[0] or outage == PROCESS
    ]
    count = lab.cases(len(every), 30)
    chosen = [every[number % len(every)] for number in range(count)]
    return {kind: [o for k, o in chosen if k == kind] for kind in kinds}


def listing() -> list[str]:
    return [f"{source}: {outage}" for source, outages in OUTAGES.items() for outage in outages]


@dataclass
class Table:
    """A table of one kind of source: its declaration, and how its row is changed."""

    ddl: str
    change: Callable[[int], None]
    connector: DebeziumConnector | None = None
    bound_ms: int = BOUND_MS


@contextmanager
def table_of(source: str, lab: Lab, rig: Rig) -> Iterator[Table]:
    """The table `user_info` with one user."""
    tables = {
        MYSQL_CDC: lambda: _captured(rig),
        DELTA: lambda: _delta(rig),
        UPSERT: lambda: _by_key(rig),
        DEBEZIUM: lambda: _by_connector(lab, rig),
    }
    with tables[source]() as table:
        yield table


def _option(bound_ms: int = BOUND_MS) -> str:
    return f"'join.max-staleness'='{bound_ms} ms'"


def _update(number: int) -> str:
    return f"UPDATE user_info SET name = '{number}' WHERE user_id = {KEY}"


@contextmanager
def _captured(rig: Rig) -> Iterator[Table]:
    with new_schema(rig.mariadb, USERS, fill_users(1)) as schema:
        ddl = cdc_table(rig.mariadb, schema, "user_info", USERS_DDL, (_option(),))
        yield Table(ddl, lambda number: _run(rig, schema, number))


def _run(rig: Rig, schema: str, number: int) -> None:
    run_sql(rig.mariadb, _update(number), schema=schema)


@contextmanager
def _delta(rig: Rig) -> Iterator[Table]:
    name = unique_name("users")
    path = str(rig.output(name))

    def append(number: int) -> None:
        row = {"user_id": [KEY], "gender": ["F"], "name": [str(number)]}
        write_deltalake(path, pa.table(row), mode="overwrite")

    append(0)
    yield Table(
        f"CREATE TABLE user_info ({USERS_DDL}) WITH ('connector'='delta', 'path'='{name}', "
        f"'source.monitor-interval'='200 ms', {_option()});",
        append,
    )


@contextmanager
def _by_key(rig: Rig) -> Iterator[Table]:
    servers = rig.kafka.bootstrap_servers
    topic = create_topic(servers, partitions=1)
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")

    def upsert(number: int) -> None:
        value = b'{"user_id":%d,"gender":"F","name":"%d"}' % (KEY, number)
        producer.send(topic, value=value, key=b'{"user_id":%d}' % KEY).get(timeout=60)

    upsert(0)
    try:
        yield Table(upsert_table(rig.kafka, "user_info", topic, USERS_DDL, (_option(),)), upsert)
    finally:
        producer.close()
        delete_topics(servers, topic)


@contextmanager
def _by_connector(lab: Lab, rig: Rig) -> Iterator[Table]:
    """A table whose connector tells its time by heartbeats."""
    servers, beats = rig.kafka.bootstrap_servers, unique_name("beats")
    settings = {"heartbeat.interval.ms": "500", "topic.heartbeat.prefix": beats}
    with (
        running_connect(lab, rig.kafka) as connect,
        mariadb_source(
            connect, rig.kafka, rig.mariadb, USERS, fill_users(1), settings=settings
        ) as connector,
    ):
        topic, heartbeats = connector.topic("user_info"), f"{beats}.{connector.prefix}"
        create_topic(servers, topic, partitions=1)
        create_topic(servers, heartbeats)
        connector.start()
        connector.await_snapshot()
        yield Table(
            f"CREATE TABLE user_info ({USERS_DDL}) WITH ('connector'='kafka', 'topic'='{topic}', "
            f"'properties.bootstrap.servers'='{servers}', 'format'='debezium-json', "
            f"'snapshot.notifications.topic'='{connector.notification_topic}', "
            f"'snapshot.settle-time'='2 s', 'freshness.heartbeat.topic'='{heartbeats}', "
            f"{_option(_BY_CONNECTOR_MS)});",
            lambda number: _run(rig, connector.schema, number),
            connector,
            _BY_CONNECTOR_MS,
        )


@contextmanager
def outage(kind: str, source: str, table: Table, job: RunningJob) -> Iterator[None]:
    """Halt the source's process, its database or the broker, kill its connector, or hold builds."""
    rig = job.rig
    if kind == BUILD:
        held = job.directory / HELD
        held.touch()
        try:
            yield
        finally:
            held.unlink()
    elif kind == CONNECTOR:
        connector = table.connector
        assert connector is not None
        assert connector.connect.pid is not None
        psutil.Process(connector.connect.pid).kill()
        try:
            yield
        finally:
            connector.go_on()
    else:
        with halted(_processes(kind, source, job, rig)):
            yield


def _processes(kind: str, source: str, job: RunningJob, rig: Rig) -> list[psutil.Process]:
    if kind == PROCESS:
        found = wait_until(lambda: job.children(_MODULES[source]), what="the source's process")
        assert found
        return found
    server = rig.kafka if kind == BROKER else rig.mariadb
    assert server.pid is not None
    return [psutil.Process(server.pid)]


@dataclass
class Outage:
    """What one outage has shown."""

    case: str
    failed: list[str] = field(default_factory=list)
    released_s: float = 0.0


def run_outage(lab: Lab, source: str, kind: str, table: Table, job: RunningJob) -> Outage:
    """The gate holds, says why, and lets go by itself."""
    found = Outage(f"{source}: {kind}")
    with outage(kind, source, table, job):
        if kind == BROKER:  # no record comes, none is joined, and no limit is reached
            time.sleep(1.5 * table.bound_ms / 1000)
        else:
            status = job.wait_for(lambda s: s["holding"], "the gate holds", deadline_s=240)
            held = status["holding"]
            lab.say(f"{found.case}: {held['text']}")
            if held["state"] != "HOLDING" or held["tables"][0]["table"] != "user_info":
                found.failed.append("gate")
            if "user_info" not in status["reason"]:
                found.failed.append("reason")
            time.sleep(table.bound_ms / 1000)  # what waits is more than the bound
    went_on_ms = time.time_ns() // 1_000_000
    first = wait_until(lambda: _first_behind(job, went_on_ms), deadline_s=240, what="a batch")
    job.wait_for(
        lambda s: s["state"] == "JOINING" and not s["holding"], "it lets go", deadline_s=240
    )
    assert first is not None
    found.released_s = round(_released_s(job, first), 2)
    if found.released_s > lab.size(10.0, 1.0):
        found.failed.append("released")
    lab.say(f"{found.case}: {found.failed or 'passed'}, released in {found.released_s} s")
    return found


def _first_behind(job: RunningJob, at_ms: int) -> Pin | None:
    """The first batch with records whose table is as of `at_ms` or later."""
    newest = job.pins.newest()
    first = None
    number = -1 if newest is None else newest.batch
    while number >= 0 and (pin := job.pins.read(number)) is not None:
        proof = pin.as_of.get("user_info")
        if proof is None or proof.time_ms < at_ms:
            break
        first = pin if pin.records() else first
        number -= 1
    return first


def _released_s(job: RunningJob, pin: Pin) -> float:
    """From the moment at which the table had caught up to the begin of the batch."""
    log = job.directory / "tables" / "user_info" / "changelog" / "_delta_log"
    committed = _modified_ms(log / f"{pin.versions['user_info']:020}.json")
    caught_up_ms = max(committed, pin.as_of["user_info"].time_ms)
    return max(0, pin.batch_timestamp_ms - caught_up_ms) / 1000


def _modified_ms(file: Path) -> int:
    return file.stat().st_mtime_ns // 1_000_000 if file.exists() else 0


def run_source(lab: Lab, rig: Rig, source: str, outages: list[str]) -> dict[str, Any]:
    """One job through all outages of its kind of source; all its rows are judged at the end."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("enriched")
    topic = create_topic(servers, partitions=2)
    with ExitStack() as at_end:
        table = at_end.enter_context(table_of(source, lab, rig))
        load = Load(
            table.change,
            servers,
            topic,
            table.bound_ms,
            each=lab.size(*_CLICKS_AT_ONCE),
            every_s=lab.size(0.6, 0.2),
        )
        job = at_end.enter_context(rig.job(enrich_by(rig, table.ddl, topic, path)))
        job.wait_state("JOINING", deadline_s=_OPENS_S)
        with load.running():
            wait_until(
                lambda: recorded_rows(rig, path) >= 20, deadline_s=_OPENS_S, what="the first rows"
            )
            found = [run_outage(lab, source, kind, table, job) for kind in outages]
        wait_until(
            lambda: recorded_rows(rig, path) >= load.sent, deadline_s=240, what="all are joined"
        )
        rows = rig.table(path).select(["_partition", "_offset", "name"])
    delete_topics(servers, topic)
    names = pc.if_else(pc.utf8_is_digit(rows["name"]), rows["name"], "0")
    columns = (rows["_partition"], rows["_offset"], names)
    stale = load.stale(*(each.cast(pa.int64()).to_numpy() for each in columns))
    places = np.column_stack([rows[name].to_numpy() for name in ("_partition", "_offset")])
    doubled = len(places) - len(np.unique(places, axis=0))
    lab.say(f"{source}: {len(rows):,} records, {len(stale)} stale, {doubled} doubled")
    return {"found": found, "rows": len(rows), "stale": stale, "doubled": doubled, "load": load}


def run(lab: Lab) -> dict[str, Any]:
    """Each outage once, or as often as `--cases` says."""
    by_source = {}
    settings: dict[str, Any] = {"runner_command": COMMAND, "freshness_interval_s": 0.5}
    with running_rig(lab.place("rig"), lab.kafka, lab.mariadb, **settings) as rig:
        for source, outages in planned(lab).items():
            if outages:
                by_source[source] = run_source(lab, rig, source, outages)
    found = [each for one in by_source.values() for each in one["found"]]
    wrong = sum(len(one["stale"]) for one in by_source.values())
    doubled = sum(one["doubled"] for one in by_source.values())
    records = sum(one["rows"] for one in by_source.values())
    examples = [f"{each.case}: {text}" for each in found for text in each.failed]
    examples += [text for one in by_source.values() for text in one["stale"][:5]]
    loads = [one["load"] for one in by_source.values()]
    errors = sorted({text for load in loads for text in load.errors})
    changes = [len(load.acknowledged_ms) for load in loads]
    verdict = {
        "records": records,
        "rows": records,
        "duplicate": doubled,
        "ok": wrong == doubled == 0 and min(changes) > 10,  # without them nothing is stale
        "examples": [*examples, *errors][:20],
    }
    return result(
        lab,
        "stale",
        len(found),
        sum(not each.failed for each in found),
        [verdict],
        wrong=wrong,
        bound_ms=BOUND_MS,
        changes=changes,
        released_s=[each.released_s for each in found],
    )
