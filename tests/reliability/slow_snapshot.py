"""Experiment `slow-snapshot`: millions of records wait while a table is copied slowly.

The copy is slow for a real reason: another session locks the table again and again. In the middle
it is locked for longer, and meanwhile the records pile up: what the job's processes (runner, JVM,
Spark's Python workers, CDC process) hold of memory must stay what it was. Until the gate opens
nothing comes out, and the broker's own log of requests shows that nobody fetches from the topic;
the fetches after the opening show that it would have been seen. At the end each record is joined
once, and those without a partner are the ones whose user was never there. With `--source debezium`
a real connector copies slowly into its topic, and is halted in the middle.
"""

import base64
import json
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Protocol

import psutil
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from kafka import KafkaAdminClient

from joins.adapters.process.forks import words_of
from service.config import Settings
from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java
from tests.reliability.captured import CapturedUsers, captured_users
from tests.reliability.experiment import Lab, result
from tests.reliability.processes import family
from tests.support.beside import beside
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig
from tests.support.shop import USERS, USERS_DDL, enrich_by, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, unique_name
from tests.support.wait import wait_until

_REQUEST_LOG = """\
logger.requests.name = kafka.request.logger
logger.requests.level = DEBUG
"""
_FETCH = re.compile(rb'"requestApiKeyName":"FETCH"')
_PARTITIONS = 4
_STEP_CHUNKS = 8  # of a Spark job: so the copy takes as many steps as it is to be slow
_ABSENT_EVERY = 100
_GROWTH_BARS = (0.15, 0.05)  # of the small scale, whose processes still warm up, and the full one
_BATCH = 10_000
_MEMORY = "-Xms{0} -XX:TieredStopAtLevel=1"


class WatchedBroker(KafkaBroker):
    """A broker that writes every request into its log."""

    def _write_configuration(self) -> None:
        super()._write_configuration()
        with (self._dir / "log4j2.properties").open("a") as settings:
            settings.write(_REQUEST_LOG)


@dataclass(frozen=True)
class Sizes:
    """How much is copied and held, and how the table is locked."""

    users: int
    records: int
    chunk_rows: int
    locked_s: float
    free_s: float


class Copying(Protocol):
    """Users that are copied slowly while `running` lasts."""

    def declared(self) -> str:
        """The DDL of `user_info`."""

    def running(self, job: RunningJob) -> AbstractContextManager[None]:
        """Copy slowly while the body runs."""

    def hold(self) -> AbstractContextManager[None]:
        """Nothing is copied while the body runs."""

    def share(self, job: RunningJob) -> float:
        """How much is copied, as far as somebody tells."""

    def is_read(self, job: RunningJob) -> bool:
        """Whether the last row was read."""


class CapturedCopying:
    """By a connector."""

    def __init__(self, captured: CapturedUsers) -> None:
        self._captured = captured

    def declared(self) -> str:
        return self._captured.declared()

    @contextmanager
    def running(self, job: RunningJob) -> Iterator[None]:
        self._captured.start(job.directory)
        yield

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Connect is halted."""
        process = self._captured.process()
        process.suspend()
        try:
            yield
        finally:
            process.resume()

    def share(self, job: RunningJob) -> float:
        return self._captured.read_by(job.directory) / self._captured.rows

    def is_read(self, job: RunningJob) -> bool:
        told = self._captured.connector.notifications()
        return any(one["type"] == "COMPLETED" for one in told)


class Locker:
    """Locks the table again and again; for as long as `hold` lasts, all the time."""

    def __init__(self, rig: Rig, schema: str, sizes: Sizes) -> None:
        self._rig, self._schema, self._sizes = rig, schema, sizes
        self._holding, self._locked = Event(), Event()

    def _run(self, stopping: Event) -> None:
        with self._rig.mariadb.connect(self._schema) as link, link.cursor() as cursor:
            while not stopping.is_set():
                cursor.execute("LOCK TABLES user_info WRITE")
                self._locked.set()
                stopping.wait(self._sizes.locked_s)
                while self._holding.is_set() and not stopping.is_set():
                    stopping.wait(0.05)
                self._locked.clear()
                cursor.execute("UNLOCK TABLES")
                stopping.wait(self._sizes.free_s)

    def declared(self) -> str:
        chunk = f"'scan.incremental.snapshot.chunk.size'='{self._sizes.chunk_rows}'"
        return cdc_table(self._rig.mariadb, self._schema, "user_info", USERS_DDL, (chunk,))

    def share(self, job: RunningJob) -> float:
        after = _state(job).get("after")
        return int(after[0]) / self._sizes.users if after else 0.0

    def is_read(self, job: RunningJob) -> bool:
        return bool(_state(job).get("chunks_complete"))

    def running(self, job: RunningJob) -> AbstractContextManager[None]:
        """Lock while the body runs."""
        return beside(self._run)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """The table stays locked."""
        self._holding.set()
        wait_until(self._locked.is_set, what="the table is locked")
        try:
            yield
        finally:
            self._holding.clear()


def run(lab: Lab) -> dict[str, Any]:
    """One job, on a broker that tells who fetches."""
    sizes = Sizes(
        users=lab.size(20_000, 1_000_000),
        records=lab.size(50_000, 5_000_000),
        chunk_rows=lab.size(500, 1_000),
        locked_s=lab.size(0.2, 1.0),
        free_s=0.1,
    )
    settings = Settings.load()
    java = find_java(settings.cache_dir)
    jars = JarCache(settings.cache_dir, java).jars(JarSet.BROKER)
    heap = BrokerSettings(heap=lab.size("384m", "1g"))
    memory = lab.size("1g", "2g")
    with (
        WatchedBroker(lab.place("broker"), java, jars, heap) as broker,
        running_rig(
            lab.place("rig"),
            broker,
            lab.mariadb,
            spark_driver_memory=memory,
            snapshot_job_rows=_STEP_CHUNKS * sizes.chunk_rows,
            spark_conf={
                "spark.driver.extraJavaOptions": _MEMORY.format(memory),
                "spark.ui.enabled": "false",
            },
        ) as rig,
        _copying(lab, rig, sizes) as copying,
    ):
        return _summary(lab, sizes, _measure(lab, rig, copying, sizes))


@contextmanager
def _copying(lab: Lab, rig: Rig, sizes: Sizes) -> Iterator[Copying]:
    if lab.is_captured:
        with captured_users(
            lab, rig.kafka, sizes.users, partitions=2, rows_per_s=2_000
        ) as captured:
            yield CapturedCopying(captured)
        return
    with new_schema(lab.mariadb, USERS, fill_users(sizes.users)) as schema:
        yield Locker(rig, schema, sizes)


def _measure(lab: Lab, rig: Rig, copying: Copying, sizes: Sizes) -> dict[str, Any]:
    topic, path = create_topic(rig.kafka.bootstrap_servers, partitions=_PARTITIONS), unique_name()
    fetches = Fetches(rig.kafka, topic)
    with (
        rig.job(enrich_by(rig, copying.declared(), topic, path)) as job,
        copying.running(job),
    ):
        with BulkProducer(rig.kafka.bootstrap_servers, topic) as producer:
            produce_range(producer, sizes, range(sizes.records // 5))
            wait_until(lambda: copying.share(job) > 0.4, deadline_s=600, what="40 % are copied")
            with copying.hold():
                growth = _pile_up(lab, job, producer, sizes)
        job.wait_for(
            lambda s: s["probe"]["held_records"] == sizes.records or s["phase"] == "JOIN",
            "all are held",
        )
        before = _before_opening(lab, rig, job, (path, fetches))
        wait_until(lambda: copying.is_read(job), deadline_s=900, what="it is copied")
        copied_at = time.time()
        opened = job.wait_for(lambda s: s["phase"] == "JOIN", "it opens", deadline_s=120)
        lab.say(f"open, {time.time() - copied_at:.1f} s after the last row was read")
        drained_at = _drain(lab, rig, job, (path, sizes.records))
        return {
            **before,
            "pss_growth": growth,
            "copied_s": round(copied_at - opened["runner"]["started_at_ms"] / 1000, 1),
            "open_after_last_row_s": round(opened["opened_at_ms"] / 1000 - copied_at, 2),
            "records_per_s": round(sizes.records / (drained_at - opened["opened_at_ms"] / 1000)),
            "first_fetch_after_opening_s": fetches.first_after(opened["opened_at_ms"]),
            "fetches_before_opening": fetches.count(before_ms=opened["opened_at_ms"]),
            "fetches_after_opening": fetches.count(from_ms=opened["opened_at_ms"]),
            **_judge_rows(rig.table(path), sizes),
        }


def produce_range(producer: BulkProducer, sizes: Sizes, items: range) -> None:
    """Clicks whose user follows from the item; each hundredth has a user who is not there."""
    for start in range(items.start, items.stop, _BATCH):
        batch = range(start, min(start + _BATCH, items.stop))
        values = [
            b'{"user_id":%d,"item_id":%d}' % (_user_of(item, sizes.users), item) for item in batch
        ]
        producer.send({start // _BATCH % _PARTITIONS: values})


def _user_of(item: int, users: int) -> int:
    return users + 1 + item if item % _ABSENT_EVERY == 0 else 1 + item * 7919 % users


def _pile_up(lab: Lab, job: RunningJob, producer: BulkProducer, sizes: Sizes) -> float:
    """The growth of memory while the rest of the records comes and nothing is copied."""
    settle_s, look_s = lab.size(2.0, 15.0), lab.size(2.0, 10.0)
    time.sleep(settle_s)
    before = _memory(job)
    produce_range(producer, sizes, range(sizes.records // 5, sizes.records))
    job.wait_for(lambda s: s["probe"]["held_records"] == sizes.records, "all are held")
    time.sleep(look_s)
    after = _memory(job)
    growth = sum(after.values()) / sum(before.values()) - 1
    lab.say(
        f"{sizes.records} held, PSS {_told(before)} before, {_told(after)} after: {growth:+.2%}"
    )
    return round(growth, 4)


def _memory(job: RunningJob) -> dict[str, int]:
    """Proportional set sizes of the job's processes, by what they are."""
    found: dict[str, int] = {}
    for process in family(job.directory):
        with suppress(psutil.NoSuchProcess):
            line = words_of(process.cmdline())
            kind = "jvm" if line and "java" in line[0] else (line[2] if len(line) > 2 else "other")
            found[kind] = found.get(kind, 0) + process.memory_full_info().pss
    return found


def _told(memory: dict[str, int]) -> str:
    return ", ".join(f"{kind} {size >> 20} MiB" for kind, size in sorted(memory.items()))


def _before_opening(
    lab: Lab, rig: Rig, job: RunningJob, what: tuple[str, "Fetches"]
) -> dict[str, Any]:
    """What there must not be while the copy goes on."""
    path, fetches = what
    status = job.status()
    found = {
        "held": status["probe"]["held_records"],
        "held_in_phase": status["phase"],
        "rows_before_opening": len(rig.rows(path)),
        "pins_before_opening": len(list((job.directory / "checkpoint" / "pins").glob("*"))),
        "fetches_while_held": fetches.count(),
    }
    lab.say(f"before the opening: {found}")
    return found


def _drain(lab: Lab, rig: Rig, job: RunningJob, what: tuple[str, int]) -> float:
    path, records = what
    table = rig.output(path)

    def drained() -> bool:
        if not (table / "_delta_log").is_dir():
            return False
        return _rows_of(table) >= records

    wait_until(drained, deadline_s=600, what=f"{records} rows")
    at = time.time()
    job.wait_for(lambda s: s["probe"]["lag_records"] == 0, "nothing waits")
    lab.say(f"{records} records are joined")
    return at


def _rows_of(table: Path) -> int:
    actions = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True))
    return int(pc.sum(actions.column("num_records")).as_py() or 0)


def _judge_rows(table: pa.Table, sizes: Sizes) -> dict[str, int]:
    """Each item once, its user's name, and no name only where there is no such user."""
    items = table.column("item_id")
    distinct = pc.count_distinct(items).as_py()
    absent = pc.greater(table.column("user_id"), sizes.users)
    names = pc.binary_join_element_wise("user ", pc.cast(table.column("user_id"), pa.string()), "")
    right = pc.if_else(
        absent, pc.is_null(table.column("name")), pc.equal(table.column("name"), names)
    )
    return {
        "rows": table.num_rows,
        "lost": sizes.records - distinct,
        "duplicate": table.num_rows - distinct,
        "unmatched": int(pc.sum(pc.is_null(table.column("name"))).as_py() or 0),
        "wrong_value": table.num_rows - int(pc.sum(right.fill_null(False)).as_py() or 0),
    }


def _state(job: RunningJob) -> dict[str, Any]:
    path = job.directory / "checkpoint" / "sources" / "user_info.json"
    return json.loads(path.read_text()) if path.exists() else {}


class Fetches:
    """Fetch requests for one topic, as the broker's log of requests has them."""

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        self._log = broker.log
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        try:
            (described,) = admin.describe_topics([topic])
        finally:
            admin.close()
        number = uuid.UUID(str(described["topic_id"]))
        self._names = (topic.encode(), base64.urlsafe_b64encode(number.bytes).rstrip(b"="))

    def count(self, *, from_ms: float = 0, before_ms: float = float("inf")) -> int:
        return sum(from_ms <= at < before_ms for at in self._times())

    def first_after(self, from_ms: float) -> float | None:
        """Seconds from then to the first request."""
        later = [at - from_ms for at in self._times() if at >= from_ms]
        return round(min(later) / 1000, 2) if later else None

    def _times(self) -> Iterator[float]:
        with self._log.open("rb") as log:
            for line in log:
                if _FETCH.search(line) and any(name in line for name in self._names):
                    yield _time_of(line)


def _time_of(line: bytes) -> float:
    text = line[:23].decode().replace("T", " ")
    seconds = time.mktime(time.strptime(text[:19], "%Y-%m-%d %H:%M:%S"))
    return seconds * 1000 + int(text[20:23])


def _summary(lab: Lab, sizes: Sizes, found: dict[str, Any]) -> dict[str, Any]:
    expected_unmatched = len(range(0, sizes.records, _ABSENT_EVERY))
    checks = {
        "held_all": found["held"] == sizes.records and found["held_in_phase"] == "LOAD",
        "nothing_out": not found["rows_before_opening"] and not found["pins_before_opening"],
        "no_fetch": not found["fetches_while_held"] and not found["fetches_before_opening"],
        "fetches_are_seen": found["fetches_after_opening"] > 0,
        "memory": found["pss_growth"] < lab.size(*_GROWTH_BARS),
        "joined": not found["lost"] and not found["duplicate"] and not found["wrong_value"],
        "unmatched": found["unmatched"] == expected_unmatched,
    }
    early = found["rows_before_opening"] + found["pins_before_opening"]
    told = result(
        lab,
        "slow-snapshot",
        len(checks),
        sum(checks.values()),
        [],
        users=sizes.users,
        failed=[name for name, good in checks.items() if not good],
    )
    return {**told, **found, "records": sizes.records, "wrong_version": 0, "early": early}
