"""Experiment `verify`: no false alarm under changes, and each planted fault is found.

A writer changes rows all the time while the job joins. Every comparison of the whole table must
find no difference. Then faults are planted that no binlog has, one at a time: a changed byte, a
lost insert, a lost delete. Each must be found with its key, and with nothing else, and be repaired
while the job joins.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.reliability.experiment import Lab, result
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

_OPENS_S = 400.0
_SILENT = "SET sql_log_bin = 0"


@dataclass(frozen=True)
class Fault:
    """A fault, the statement that plants it, and what a comparison shows of it."""

    name: str
    plant: str
    key: int
    kind: str


def fault(number: int, rows: int) -> Fault:
    """Faults of rows that the writer does not change: those with even keys."""
    key = 2 + 2 * (number % (rows // 2 - 1))
    where = f"WHERE user_id = {key}"
    kinds = (
        Fault("a byte", f"UPDATE user_info SET name = CONCAT(name, '.') {where}", key, "changed"),
        Fault(
            "a lost insert", f"INSERT INTO user_info VALUES ({-key}, 'M', 'new')", -key, "missing"
        ),
        Fault("a lost delete", f"DELETE FROM user_info {where}", key, "extra"),
    )
    return kinds[number % len(kinds)]


class Writer:
    """Changes rows with odd keys until it is stopped: updates, deletions, insertions."""

    def __init__(self, rig: Rig, schema: str, rows: int, per_s: float) -> None:
        self._rig, self._schema, self._rows, self._pause_s = rig, schema, rows, 1 / per_s
        self._ends = threading.Event()
        self.changes = 0
        self.errors: list[str] = []

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
        try:
            with (
                self._rig.mariadb.connect(self._schema) as connection,
                connection.cursor() as cursor,
            ):
                while not self._ends.wait(self._pause_s):
                    cursor.execute(self._statement())
                    connection.commit()
                    self.changes += 1
        except Exception as exc:  # shown in the result
            self.errors.append(repr(exc))

    def _statement(self) -> str:
        key = 1 + 2 * (self.changes // 3 % (self._rows // 2))
        steps = (
            f"UPDATE user_info SET name = 'change {self.changes}' WHERE user_id = {key}",
            f"DELETE FROM user_info WHERE user_id = {key}",
            f"INSERT INTO user_info VALUES ({key}, 'F', 'again {self.changes}')",
        )
        return steps[self.changes % 3]


def verified(rig: Rig, job: RunningJob, **question: Any) -> dict[str, Any]:
    """The comparison of the job's only table."""
    answer = rig.client.post(f"/v1/jobs/{job.id}:verify", json=question, timeout=600.0)
    answer.raise_for_status()
    (table,) = answer.json()["tables"]
    return dict(table)


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


def timed(work: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], float]:
    began_s = time.monotonic()
    return work(), time.monotonic() - began_s


def run(lab: Lab) -> dict[str, Any]:
    """Comparisons of a table that changes, then one planted fault after the other."""
    count = lab.cases(6, 200)
    rows, per_s = lab.size((2_000, 50.0), (5_000_000, 1_000.0))
    servers, path = lab.kafka.bootstrap_servers, unique_name("enriched")
    topic = create_topic(servers, partitions=1)
    found: list[list[str]] = []
    took_s: list[float] = []
    with (
        running_rig(lab.place("rig"), lab.kafka, lab.mariadb, freshness_interval_s=0.2) as rig,
        new_schema(rig.mariadb, USERS, fill_users(rows)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        job.wait_state("JOINING", deadline_s=_OPENS_S)
        writer = Writer(rig, schema, rows, per_s)
        with writer.running():
            for number in range(count):
                produce(servers, topic, [click(2, number)])
                planted = None if number < count // 2 else fault(number, rows)
                expected = set()
                if planted is not None:
                    expected = {(planted.key, planted.kind)}
                    run_sql(rig.mariadb, _SILENT, planted.plant, schema=schema)
                table, seconds = timed(lambda: verified(rig, job))
                found.append(alarms(table, expected))
                if planted is not None:
                    found[-1] += unrepaired(verified(rig, job, repair=True))
                took_s.append(round(seconds, 2))
                lab.say(f"{planted and planted.name}: {found[-1]} in {seconds:.1f} s")
        status = job.status()
        joined = job.wait_output(path, count)
    passed = sum(not each for each in found)
    verdict = {
        "records": count,
        "rows": len(joined),
        "ok": passed == count and status["phase"] == "JOIN" and not writer.errors,
        "examples": [text for each in [*found, writer.errors] for text in each][:20],
    }
    return result(
        lab,
        "verify",
        count,
        passed,
        [verdict],
        wrong=count - passed,
        changes=writer.changes,
        took_s=took_s,
    )
