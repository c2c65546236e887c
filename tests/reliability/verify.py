"""Experiment `verify`: no false alarm under changes, and each planted fault is found.

A writer changes rows all the time while the job joins. Every comparison of the whole table must
find no difference. Then faults are planted, one at a time: changes without a binlog, a change that
is lost between the binlog and the topic, a cascade, which no binlog has, and a record of the topic
that is there twice, which is no fault. Each must be found with its key, and with nothing else, and
be repaired while the job joins. Rows of a table without transactions that are changed below a
MERGE table are found, too; they cannot be repaired.

At full scale the comparisons of 5 M rows must each end in 60 s; the faults are planted in a smaller
table.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.reliability.experiment import Lab, result
from tests.reliability.troubled_runner import COMMAND, LOST
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

_OPENS_S = 400.0
_MOST_S = 60.0  # of a comparison of 5 M rows
_WAITS_S = 3_600.0
_AT_ONCE = 20  # changes of a transaction
_SILENT = "SET sql_log_bin = 0"
_CASCADE = (
    _SILENT,
    "CREATE TABLE genders (gender VARCHAR(8) PRIMARY KEY)",
    "INSERT INTO genders VALUES ('F'), ('M')",
    "ALTER TABLE user_info ADD FOREIGN KEY (gender) REFERENCES genders (gender) ON DELETE CASCADE",
)
_WITHOUT_TRANSACTIONS = (
    f"{USERS} ENGINE=MyISAM",
    "CREATE TABLE everyone (user_id BIGINT NOT NULL, gender VARCHAR(8), name VARCHAR(64), "
    "INDEX (user_id)) ENGINE=MERGE UNION=(user_info)",
)


@dataclass(frozen=True)
class Fault:
    """A fault, what plants it, and the kind of difference; None if there must be none."""

    name: str
    plant: Callable[["Subject", int], None]
    kind: str | None


@dataclass
class Subject:
    """A job, and the schema of its table."""

    rig: Rig
    job: RunningJob
    schema: str
    topic: str
    path: str
    clicks: int = 0

    def run(self, *statements: str) -> None:
        run_sql(self.rig.mariadb, *statements, schema=self.schema)

    def click(self, key: int) -> None:
        produce(self.rig.kafka.bootstrap_servers, self.topic, [click(key, self.clicks)])
        self.clicks += 1


def _silently(statement: str) -> Callable[[Subject, int], None]:
    def plant(subject: Subject, key: int) -> None:
        subject.run(_SILENT, statement.format(key=key, where=f"WHERE user_id = {key}"))

    return plant


def _lose(subject: Subject, key: int) -> None:
    subject.run(f"UPDATE user_info SET name = '{LOST}' WHERE user_id = {key}")


def _cascade(subject: Subject, key: int) -> None:
    """Delete the gender that the row alone has."""
    gender = f"g{key}"
    subject.run(
        f"INSERT INTO genders VALUES ('{gender}')",
        f"UPDATE user_info SET gender = '{gender}' WHERE user_id = {key}",
        f"DELETE FROM genders WHERE gender = '{gender}'",
    )


def _double(subject: Subject, key: int) -> None:
    """Append a record of the changelog topic once more."""
    servers = subject.rig.kafka.bootstrap_servers
    consumer = KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False)
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    try:
        (name,) = (t for t in consumer.topics() if subject.job.id in t and "user_info" in t)
        part = TopicPartition(name, key % len(consumer.partitions_for_topic(name) or (0,)))
        consumer.assign([part])
        consumer.seek_to_beginning(part)
        (records,) = wait_until(lambda: consumer.poll(timeout_ms=1_000), what="records").values()
        old = next(each for each in records if each.key is not None)
        producer.send(name, value=old.value, key=old.key, partition=part.partition).get(60)
    finally:
        producer.close()
        consumer.close()


FAULTS = (
    Fault("a byte", _silently("UPDATE user_info SET name = CONCAT(name, '.') {where}"), "changed"),
    Fault("an insert", _silently("INSERT INTO user_info VALUES (-{key}, 'M', 'n')"), "missing"),
    Fault("a delete", _silently("DELETE FROM user_info {where}"), "extra"),
    Fault("a lost event", _lose, "changed"),
    Fault("a cascade", _cascade, "extra"),
    Fault("a doubled event", _double, None),
)


@dataclass
class Writer:
    """Changes rows with odd keys until it is stopped: updates, deletions, insertions."""

    subject: Subject
    rows: int
    per_s: float
    changes: int = 0
    errors: list[str] = field(default_factory=list)
    _ends: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join(60)

    def _run(self) -> None:
        subject, turn = self.subject, 0
        began_s = time.monotonic()
        try:
            with (
                subject.rig.mariadb.connect(subject.schema) as connection,
                connection.cursor() as cursor,
            ):
                while True:
                    due_s = self.changes / self.per_s - (time.monotonic() - began_s)
                    if self._ends.wait(max(0.0, due_s)):
                        return
                    cursor.execute(self._statement(turn))
                    turn += 1
                    self.changes += _AT_ONCE
        except Exception as exc:  # shown in the result
            self.errors.append(repr(exc))

    def _statement(self, turn: int) -> str:
        first = turn // 3 * _AT_ONCE
        keys = [1 + 2 * (number % (self.rows // 2)) for number in range(first, first + _AT_ONCE)]
        among = f"WHERE user_id IN ({', '.join(map(str, keys))})"
        rows = ", ".join(f"({key}, 'F', 'again {turn}')" for key in keys)
        steps = (
            f"UPDATE user_info SET name = 'change {turn}' {among}",
            f"DELETE FROM user_info {among}",
            f"INSERT INTO user_info VALUES {rows}",
        )
        return steps[turn % 3]


def verified(subject: Subject, **question: Any) -> tuple[dict[str, Any], float]:
    """The comparison of the job's only table, and how long it took."""
    began_s = time.monotonic()
    url = f"/v1/jobs/{subject.job.id}:verify"
    answer = subject.rig.client.post(url, json=question, timeout=_WAITS_S)
    answer.raise_for_status()
    (table,) = answer.json()["tables"]
    return dict(table), round(time.monotonic() - began_s, 2)


def alarms(table: dict[str, Any], expected: set[tuple[int, str]]) -> list[str]:
    """What one comparison has found otherwise than expected."""
    if table["state"] == "not-compared":
        return [f"not compared: {table['reason']}"]
    found = {(int(item["key"]["user_id"]), item["kind"]) for item in table["items"]}
    return [
        *(f"false alarm: {each}" for each in sorted(found - expected)),
        *(f"not found: {each}" for each in sorted(expected - found)),
    ]


def unrepaired(table: dict[str, Any]) -> list[str]:
    """What one repair of one row has left."""
    if table["state"] != "equal" or table["repaired"] is None:
        return [f"not repaired: {table['state']}, {table['not_repaired']}"]
    sent = table["repaired"]["written"] + table["repaired"]["deleted"]
    return [] if sent == 1 else [f"{sent} rows sent again, expected 1"]


def planted(subject: Subject, fault: Fault, number: int, rows: int) -> list[str]:
    """The fault in a row that the writer does not change: one with an even key."""
    key = 2 + 2 * (number % (rows // 2 - 1))
    fault.plant(subject, key)
    if fault.kind is None:
        return alarms(verified(subject)[0], set())
    key = -key if fault.kind == "missing" else key
    found = alarms(verified(subject)[0], {(key, fault.kind)})
    return found + unrepaired(verified(subject, repair=True)[0])


def below_merge(subject: Subject, number: int) -> list[str]:
    """A row that is changed by way of a MERGE table: the binlog has it as another table's."""
    key = number + 1
    subject.run(f"UPDATE everyone SET name = 'below' WHERE user_id = {key}")
    found = alarms(verified(subject)[0], {(key, "changed")})
    table, _ = verified(subject, repair=True)
    if "no transactions" not in (table["not_repaired"] or ""):
        found.append(f"repaired without transactions: {table['not_repaired']}")
    subject.run(f"UPDATE user_info SET name = 'again' WHERE user_id = {key}")
    return found


@contextmanager
def joining(rig: Rig, *statements: str) -> Iterator[Subject]:
    topic, path = create_topic(rig.kafka.bootstrap_servers, partitions=1), unique_name("enriched")
    with (
        new_schema(rig.mariadb, *statements) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        job.wait_state("JOINING", deadline_s=_OPENS_S)
        yield Subject(rig, job, schema, topic, path)


def run(lab: Lab) -> dict[str, Any]:
    """Comparisons of a table that changes, then one planted fault after the other."""
    count = lab.cases(9, 210)
    large, rows, per_s = lab.size((0, 2_000, 100.0), (5_000_000, 100_000, 1_000.0))
    of_merge = max(1, count // 20)
    faults = max((count - of_merge) // 2, min(len(FAULTS), count - of_merge - 1))
    quiet = count - of_merge - faults
    found: list[list[str]] = []
    took_s: list[float] = []
    changes, errors, joined = 0, list[str](), 0
    settings: dict[str, Any] = {"runner_command": COMMAND, "freshness_interval_s": 0.2}
    with running_rig(lab.place("rig"), lab.kafka, lab.mariadb, **settings) as rig:

        def say(name: str, alarms: list[str], seconds: float = 0.0) -> None:
            found.append(alarms)
            lab.say(f"{name}: {alarms or 'as expected'} {seconds or ''}")

        of_large = quiet // 5 if large else 0
        for size, comparisons, planted_in in (
            (large, of_large, 0),
            (rows, quiet - of_large, faults),
        ):
            if not comparisons:
                continue
            with joining(rig, USERS, fill_users(size)) as subject:
                writer = Writer(subject, size, per_s)
                with writer.running():
                    for _ in range(comparisons):
                        subject.click(2)
                        table, seconds = verified(subject)
                        took_s.append(seconds)
                        is_slow = size == large and seconds > _MOST_S
                        slow = [f"{size:,} rows took {seconds} s"] if is_slow else []
                        say(f"{size:,} rows", alarms(table, set()) + slow, seconds)
                    if planted_in:
                        subject.run(*_CASCADE)
                    for number in range(planted_in):
                        subject.click(2)
                        fault = FAULTS[number % len(FAULTS)]
                        say(fault.name, planted(subject, fault, number, size))
                joined += len(subject.job.wait_output(subject.path, subject.clicks))
                changes += writer.changes
                errors += writer.errors
                if subject.job.status()["phase"] != "JOIN":
                    errors.append("the gate is not open")
        with joining(rig, *_WITHOUT_TRANSACTIONS, fill_users(of_merge)) as subject:
            for number in range(of_merge):
                say("below a MERGE table", below_merge(subject, number))
    passed = sum(not each for each in found)
    verdict = {
        "records": joined,
        "rows": joined,
        "ok": passed == len(found) == count and not errors,
        "examples": [text for each in [*found, errors] for text in each][:20],
    }
    return result(
        lab,
        "verify",
        len(found),
        passed,
        [verdict],
        wrong=len(found) - passed,
        changes=changes,
        took_s=took_s,
    )
