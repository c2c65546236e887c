"""Experiment `stale`: sources stand still, and no record is joined with rows that are too old.

A writer numbers its changes of one row and notes when each was acknowledged. Clicks of that row
come all the time. The oracle reads the output and the records' times in Kafka, and no pin: a record
written at t must have met every change that was acknowledged before t - bound.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import pyarrow as pa
from deltalake import write_deltalake
from kafka import KafkaProducer

from tests.reliability.experiment import Lab, result
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig
from tests.support.shop import USERS, USERS_DDL, enrich_by, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.staleness import KEY, Load, halted
from tests.support.topics import create_topic, delete_topics, unique_name
from tests.support.wait import wait_until

BOUND_MS = 6_000
_OPENS_S = 400.0
_RELEASED_WITHIN_S = 30.0
_OPTION = f"'join.max-staleness'='{BOUND_MS} ms'"
_MODULES = {
    "mysql-cdc": "joins.adapters.mysql.binlog",
    "delta": "joins.adapters.delta.feed",
    "upsert-kafka": "joins.adapters.topic.feed",
}
OUTAGES = (
    ("mysql-cdc", "process"),
    ("mysql-cdc", "database"),
    ("delta", "process"),
    ("upsert-kafka", "process"),
)


def listing() -> list[str]:
    return [f"{source}: {outage}" for source, outage in OUTAGES]


@dataclass
class Table:
    """A table of one kind of source: its declaration, and how its row is changed."""

    ddl: str
    change: Callable[[int], None]


@contextmanager
def table_of(source: str, rig: Rig) -> Iterator[Table]:
    """The table `user_info` with one user."""
    if source == "mysql-cdc":
        with new_schema(rig.mariadb, USERS, fill_users(1)) as schema:
            ddl = cdc_table(rig.mariadb, schema, "user_info", USERS_DDL, (_OPTION,))

            def update(number: int) -> None:
                statement = f"UPDATE user_info SET name = '{number}' WHERE user_id = {KEY}"
                run_sql(rig.mariadb, statement, schema=schema)

            yield Table(ddl, update)
        return
    if source == "delta":
        name = unique_name("users")
        path = str(rig.output(name))

        def append(number: int) -> None:
            row = {"user_id": [KEY], "gender": ["F"], "name": [str(number)]}
            write_deltalake(path, pa.table(row), mode="overwrite")

        append(0)
        yield Table(
            f"CREATE TABLE user_info ({USERS_DDL}) WITH ('connector'='delta', 'path'='{name}', "
            f"'source.monitor-interval'='200 ms', {_OPTION});",
            append,
        )
        return
    servers = rig.kafka.bootstrap_servers
    topic = create_topic(servers, partitions=1)
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")

    def upsert(number: int) -> None:
        value = b'{"user_id":%d,"gender":"F","name":"%d"}' % (KEY, number)
        producer.send(topic, value=value, key=b'{"user_id":%d}' % KEY).get(timeout=60)

    upsert(0)
    try:
        yield Table(
            f"CREATE TABLE user_info ({USERS_DDL}) WITH ('connector'='upsert-kafka', "
            f"'topic'='{topic}', 'properties.bootstrap.servers'='{servers}', "
            f"'key.format'='json', 'value.format'='json', {_OPTION});",
            upsert,
        )
    finally:
        producer.close()
        delete_topics(servers, topic)


@contextmanager
def outage(kind: str, source: str, job: RunningJob, rig: Rig) -> Iterator[None]:
    """Halt the source's process, or the database itself."""
    if kind == "process":
        processes = wait_until(lambda: job.children(_MODULES[source]), what="the source's process")
    else:
        port = f"--port={rig.mariadb.port}"
        processes = [
            each
            for each in psutil.process_iter(["name", "cmdline"])
            if each.info["name"] == "mariadbd" and port in each.info["cmdline"]
        ]
    with halted(processes):
        yield


def run_case(lab: Lab, rig: Rig, source: str, kind: str) -> dict[str, Any]:
    """One job through one outage: it holds, says why, and lets go by itself."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("enriched")
    topic = create_topic(servers, partitions=2)
    with table_of(source, rig) as table:
        load = Load(table.change, servers, topic, BOUND_MS)
        with rig.job(enrich_by(rig, table.ddl, topic, path)) as job, load.running():
            job.wait_state("JOINING", deadline_s=_OPENS_S)
            job.wait_output(path, 20, deadline_s=_OPENS_S)
            before = len(rig.rows(path))
            with outage(kind, source, job, rig):
                status = job.wait_for(lambda s: s["holding"], "the gate holds", deadline_s=240)
                held, reason = status["holding"], status["reason"]
                lab.say(f"{source} {kind}: {held['text']}")
                time.sleep(BOUND_MS / 1000)  # what waits is more than the bound
            went_on_s = time.monotonic()
            job.wait_for(lambda s: not s["holding"], "it lets go", deadline_s=240)
            released_s = time.monotonic() - went_on_s
            sent = load.sent
            wait_until(lambda: len(rig.rows(path)) >= sent, deadline_s=120, what="all are joined")
            rows = rig.rows(path)
        stale = load.stale_rows(rows)
    delete_topics(servers, topic)
    offsets = {(row["_partition"], row["_offset"]) for row in rows}
    checks = {
        "stale": not stale,
        "twice": len(offsets) == len(rows),
        "gate": held["state"] == "HOLDING" and held["tables"][0]["table"] == "user_info",
        "reason": "user_info" in reason,
        "released": released_s < _RELEASED_WITHIN_S,
        "load": not load.errors,
    }
    return {
        "case": f"{source}: {kind}",
        "records": len(rows),
        "before": before,
        "wrong": len(stale),
        "released_s": round(released_s, 2),
        "failed": [name for name, passed in checks.items() if not passed],
        "examples": [*stale[:5], *load.errors],
    }


def run(lab: Lab) -> dict[str, Any]:
    """Each outage once, or as often as `--cases` says."""
    count = lab.cases(len(OUTAGES), 30)
    found = []
    with running_rig(lab.place("rig"), lab.kafka, lab.mariadb, freshness_interval_s=0.5) as rig:
        for number in range(count):
            source, kind = OUTAGES[number % len(OUTAGES)]
            found.append(run_case(lab, rig, source, kind))
            lab.say(str(found[-1]))
    passed = sum(not each["failed"] for each in found)
    wrong = sum(each["wrong"] for each in found)
    verdict = {
        "records": sum(each["records"] for each in found),
        "rows": sum(each["records"] for each in found),
        "ok": wrong == 0,
        "examples": [text for each in found for text in (*each["failed"], *each["examples"])][:20],
    }
    return result(
        lab,
        "stale",
        len(found),
        passed,
        [verdict],
        wrong=wrong,
        bound_ms=BOUND_MS,
        released_s=[each["released_s"] for each in found],
    )
