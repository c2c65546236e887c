"""Experiment `stale`: sources stand still, and no record is joined with rows that are too old.

A writer numbers its changes of one row and notes when each was acknowledged. Clicks of that row
come all the time. The oracle reads the output and the records' times in Kafka, and no pin: a record
written at t must have met every change that was acknowledged before t - bound.
"""

import signal
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil
import pyarrow as pa
from deltalake import write_deltalake
from kafka import KafkaProducer

from tests.reliability.experiment import Lab, result
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig
from tests.support.shop import USERS, USERS_DDL, click, enrich_by, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume, create_topic, delete_topics, produce, unique_name
from tests.support.wait import wait_until

BOUND_MS = 6_000
_KEY = 1
_OPENS_S = 400.0
_EVERY_S = 0.2
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
                statement = f"UPDATE user_info SET name = '{number}' WHERE user_id = {_KEY}"
                run_sql(rig.mariadb, statement, schema=schema)

            yield Table(ddl, update)
        return
    if source == "delta":
        name = unique_name("users")
        path = str(rig.output(name))

        def append(number: int) -> None:
            row = {"user_id": [_KEY], "gender": ["F"], "name": [str(number)]}
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
        value = b'{"user_id":%d,"gender":"F","name":"%d"}' % (_KEY, number)
        producer.send(topic, value=value, key=b'{"user_id":%d}' % _KEY).get(timeout=60)

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


@dataclass
class Load:
    """Changes of the row and clicks of it, each on a thread, and when changes were acknowledged."""

    change: Callable[[int], None]
    servers: str
    topic: str
    acknowledged_ms: list[int] = field(default_factory=list)
    sent: int = 0
    errors: list[str] = field(default_factory=list)
    _ends: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=each, daemon=True) for each in (self._write, self._click)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ends.set()
            for thread in threads:
                thread.join(60)

    def _write(self) -> None:
        while not self._ends.wait(_EVERY_S):
            try:
                self.change(len(self.acknowledged_ms) + 1)
            except Exception as exc:  # shown in the result
                self.errors.append(repr(exc))
                return
            self.acknowledged_ms.append(time.time_ns() // 1_000_000)

    def _click(self) -> None:
        while not self._ends.wait(_EVERY_S / 4):
            produce(self.servers, self.topic, [click(_KEY, self.sent)])
            self.sent += 1

    def stale_rows(self, rows: list[dict[str, Any]]) -> list[str]:
        """Rows that had not met a change which was acknowledged before their time - bound."""
        written_ms = {
            (each.partition, each.offset): each.timestamp
            for each in consume(self.servers, self.topic)
        }
        found = []
        for row in rows:
            at_ms = written_ms[row["_partition"], row["_offset"]]
            owed = bisect_right(self.acknowledged_ms, at_ms - BOUND_MS)
            seen = int(row["name"]) if row["name"].isdigit() else 0
            if seen < owed:
                found.append(f"record {row['_offset']} of {at_ms} saw {seen}, owed {owed}")
        return found


@contextmanager
def outage(kind: str, source: str, job: RunningJob, rig: Rig) -> Iterator[None]:
    """Halt the source's process, or the database itself."""
    if kind == "process":
        halted = wait_until(lambda: job.children(_MODULES[source]), what="the source's process")
    else:
        port = f"--port={rig.mariadb.port}"
        halted = [
            each
            for each in psutil.process_iter(["name", "cmdline"])
            if each.info["name"] == "mariadbd" and port in each.info["cmdline"]
        ]
    for process in halted:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in halted:
            process.send_signal(signal.SIGCONT)


def run_case(lab: Lab, rig: Rig, source: str, kind: str) -> dict[str, Any]:
    """One job through one outage: it holds, says why, and lets go by itself."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("enriched")
    topic = create_topic(servers, partitions=2)
    with table_of(source, rig) as table:
        load = Load(table.change, servers, topic)
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
