"""What a version leaves on disk: a job stopped in each phase, in one archive.

``PYTHONPATH=CHECKOUT python tests/support/recorded.py ARCHIVE``, in a checkout of the version to be
recorded, which is the one that is imported; the archives are kept in `tests/e2e/upgrade/recorded`.
A later version goes on with what `restored` gives it. `tests.support.recorded_kills` has jobs that
were killed.
"""

import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, TopicPartition

from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.server import DatabaseSettings
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.services import running_services
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import run_sql
from tests.support.topics import create_topic, produce
from tests.support.wait import wait_until

# What names the place keeps its length, so that another can be written over it in any file.
HOME = Path("/tmp/sluice-recorded-00000000")
BROKER_PORT, DATABASE_PORT = 27321, 27322
SLUICE, KAFKA, MARIADB, TOPICS = "sluice", "kafka", "mariadb", "topics.json"
DATABASE_OPTIONS = {
    "innodb-buffer-pool-size": "32M",
    "innodb-log-file-size": "4M",
    "innodb-data-file-path": "ibdata1:4M:autoextend",
    "innodb-undo-tablespaces": "0",
}
LOADING, JOINING, WINDOWS, STALLED, FINISHED = NAMES = (
    "loading",
    "joining",
    "windows",
    "stalled",
    "finished",
)
LOADING_USERS, USERS_ROWS = 20_000, 100
WINDOW_SQL = """
CREATE TABLE spent (name STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
    'connector'='kafka', 'topic'='{topic}', 'format'='json',
    'properties.bootstrap.servers'='{servers}', 'scan.startup.mode'='earliest-offset');
CREATE TABLE totals (name STRING, done_at TIMESTAMP(3), total BIGINT)
WITH ('connector'='delta', 'path'='{path}');
INSERT INTO totals SELECT name, window_time, SUM(v)
FROM TABLE(TUMBLE(TABLE spent, DESCRIPTOR(ts), INTERVAL '10' MINUTE))
GROUP BY name, window_start, window_end, window_time;
"""


def spent(name: str, value: int, time: str) -> dict[str, Any]:
    return {"name": name, "v": value, "ts": f"2024-01-01 {time}"}


# Going on with it
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Restored:
    """Where a recorded system lies now.

    Attributes:
        topics: job → the topic that it reads.
    """

    home: Path
    broker_port: int
    database_port: int
    topics: dict[str, str]


@contextmanager
def restored(archive: Path, broker_port: int, database_port: int) -> Iterator[Restored]:
    """The archive at another place, with other ports; removed at the end."""
    home = Path(tempfile.mkdtemp(prefix="sluice-recorded-", dir="/tmp"))
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(home, filter="data")
        new = {HOME: home, BROKER_PORT: broker_port, DATABASE_PORT: database_port}
        _move(home / SLUICE, {str(old).encode(): str(now).encode() for old, now in new.items()})
        topics = json.loads((home / TOPICS).read_text())
        yield Restored(home, broker_port, database_port, topics)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _move(directory: Path, new: dict[bytes, bytes]) -> None:
    assert all(len(old) == len(now) for old, now in new.items()), new
    for path in directory.rglob("*"):
        if path.is_file() and path.suffix not in (".parquet", ".arrow"):
            before = after = path.read_bytes()
            for old, now in new.items():
                after = after.replace(old, now)
            if after != before:
                path.write_bytes(after)


_SETTINGS: dict[str, Any] = {"changelog_partitions": 1, "runners": "shared"}


@contextmanager
def restored_rig(place: Restored) -> Iterator[Rig]:
    """A control plane over what was restored, with its broker and its database."""
    broker = BrokerSettings(port=place.broker_port)
    database = DatabaseSettings(port=place.database_port, options=DATABASE_OPTIONS)
    assert (place.home / KAFKA).is_dir()
    assert (place.home / MARIADB).is_dir()
    with (
        running_services(place.home, broker, database) as (kafka, mariadb),
        running_rig(place.home / SLUICE, kafka, mariadb, **_SETTINGS) as rig,
    ):
        yield rig


@contextmanager
def restored_job(rig: Rig, name: str) -> Iterator[RunningJob]:
    """The recorded job of that name; stopped at the end, so that one runs at a time."""
    ids = {each["name"]: each["id"] for each in rig.get("/v1/jobs")["items"]}
    job = RunningJob(rig, ids[name])
    yield job
    if job.status()["state"] not in ("STOPPED", "FINISHED"):
        job.stop()


def item_names(rig: Rig, path: str) -> dict[int, str | None]:
    """Item → name, of every row; each item has one."""
    rows = rig.rows(path)
    items = {row["item_id"]: row["name"] for row in rows}
    assert len(items) == len(rows)
    return items


def wait_joined_with(job: RunningJob, path: str, topic: str, user: int, name: str) -> None:
    """Clicks of `user` are sent and joined, one after another, until one is joined with `name`."""
    rig = job.rig

    def is_seen() -> bool:
        number = max(100, *item_names(rig, path)) + 1
        rows = len(rig.rows(path))
        produce(rig.kafka.bootstrap_servers, topic, [click(user, number)])
        job.wait_output(path, rows + 1)
        return item_names(rig, path)[number] == name

    wait_until(is_seen, deadline_s=200, what=f"user {user} is {name}")


# Recording
# --------------------------------------------------------------------------------------------------


def record(archive: Path, run: Callable[[KafkaBroker, MariaDb], dict[str, str]]) -> None:
    """Pack what `run` leaves with the version that is imported; it answers each job's topic."""

    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(mode=0o700)
    broker = BrokerSettings(port=BROKER_PORT, properties={"log.index.size.max.bytes": "4096"})
    database = DatabaseSettings(port=DATABASE_PORT, options=DATABASE_OPTIONS)
    with running_services(HOME, broker, database) as (kafka, mariadb):
        topics = run(kafka, mariadb)
    (HOME / TOPICS).write_text(json.dumps(topics))
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        tar.add(HOME, arcname=".", filter=_kept)
    shutil.rmtree(HOME)


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = member.name
    if name.endswith((".sock", "kafka.log", "mariadb.log", ".lock")) or not (
        member.isfile() or member.isdir()
    ):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def make_users(rig: Rig, name: str, rows: int) -> None:
    run_sql(rig.mariadb, f"CREATE DATABASE {name}")
    run_sql(rig.mariadb, USERS, fill_users(rows), schema=name)


def submit_named(rig: Rig, name: str, sql: str) -> RunningJob:
    answer = rig.post_job(sql, name)
    assert answer.status_code == 201, answer.text
    return RunningJob(rig, answer.json()["id"])


def _loading(rig: Rig, name: str) -> str:
    """Some of its chunks are copied, and some are not; clicks wait."""

    make_users(rig, name, LOADING_USERS)
    topic = create_topic(rig.kafka.bootstrap_servers, name)
    produce(rig.kafka.bootstrap_servers, topic, [click(n, n) for n in (1, LOADING_USERS)])
    small = ("'scan.incremental.snapshot.chunk.size'='50'",)
    job = submit_named(rig, name, enrich_sql(rig, name, topic, name, small))

    def copied(status: dict[str, Any]) -> int:
        return sum(d["snapshot"]["rows_done"] for d in status.get("dimensions") or ())

    job.wait_for(copied, "rows are copied")
    with rig.mariadb.connect(name) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES user_info WRITE")
        job.stop()
        cursor.execute("UNLOCK TABLES")
    status = job.status()
    assert 0 < copied(status) < LOADING_USERS, status
    return topic


def _joining(rig: Rig, name: str) -> str:
    """Batches are joined with several versions, a fold is there, changes came after the stop."""

    servers = rig.kafka.bootstrap_servers
    make_users(rig, name, USERS_ROWS)
    topic = create_topic(servers, name)
    produce(servers, topic, [click(n, n) for n in range(1, 11)])
    job = submit_named(rig, name, enrich_sql(rig, name, topic, name))
    job.wait_output(name, 10)
    before = job.status()["dimensions"][0]["index_version"]
    run_sql(rig.mariadb, "UPDATE user_info SET name = 'changed' WHERE user_id = 7", schema=name)
    job.wait_for(lambda s: s["dimensions"][0]["index_version"] > before, "another version")
    produce(servers, topic, [click(7, 11)])
    rows = job.wait_output(name, 11)
    assert [row["name"] for row in rows if row["item_id"] == 11] == ["changed"]
    job.stop()
    run_sql(rig.mariadb, "UPDATE user_info SET name = 'later' WHERE user_id = 8", schema=name)
    produce(servers, topic, [click(9, 12)])
    return topic


def _windows(rig: Rig, name: str) -> str:
    """One window was emitted, one is open."""

    servers = rig.kafka.bootstrap_servers
    topic = create_topic(servers, name)
    times = [spent("a", 1, "10:01:00"), spent("a", 2, "10:02:00"), spent("a", 4, "10:11:00")]
    produce(servers, topic, times)
    job = submit_named(rig, name, WINDOW_SQL.format(topic=topic, servers=servers, path=name))
    job.wait_output(name, 1)
    job.stop()
    return topic


def _stalled(rig: Rig, name: str) -> str:
    """Records that were not joined yet are gone, which the runner has kept."""

    servers = rig.kafka.bootstrap_servers
    make_users(rig, name, USERS_ROWS)
    topic = create_topic(servers, name)
    produce(servers, topic, [click(1, 1)])
    job = submit_named(rig, name, enrich_sql(rig, name, topic, name))
    job.wait_output(name, 1)
    job.stop()
    produce(servers, topic, [click(2, 2), click(3, 3), click(4, 4)])
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.delete_records({TopicPartition(topic, 0): 3})
    admin.close()
    job.start()
    status = job.wait_state("STALLED")
    assert status["error"]["type"] == "records-lost", status
    job.stop()
    return topic


def _finished(rig: Rig, name: str) -> str:
    """A bounded job, at its end."""

    make_users(rig, name, USERS_ROWS)
    topic = create_topic(rig.kafka.bootstrap_servers, name)
    produce(rig.kafka.bootstrap_servers, topic, [click(n, n) for n in (1, 2, 1_000)])
    bounded = "SET 'execution.runtime-mode' = 'batch';"
    job = submit_named(rig, name, bounded + enrich_sql(rig, name, topic, name))
    job.wait_state("FINISHED", deadline_s=300)
    return topic


_RECORDERS = {
    LOADING: _loading,
    JOINING: _joining,
    WINDOWS: _windows,
    STALLED: _stalled,
    FINISHED: _finished,
}


def stopped_jobs(kafka: KafkaBroker, mariadb: MariaDb) -> dict[str, str]:
    with running_rig(HOME / SLUICE, kafka, mariadb, changelog_partitions=1) as rig:
        return {name: _RECORDERS[name](rig, name) for name in NAMES}


if __name__ == "__main__":
    os.umask(0o077)
    record(Path(sys.argv[1]).absolute(), stopped_jobs)
