"""What a version leaves on disk when a runner is killed: a job for each point of a batch.

``PYTHONPATH=CHECKOUT python tests/support/recorded_kills.py ARCHIVE``, as `tests.support.recorded`.
A job has committed some batches, is killed at its point (`joins.durable.failpoints`) and stopped
before a runner is started again; more records and changes came after that. One more was stopped
cleanly when its changelog topic had been trimmed.
"""

import os
import sys
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.jobs.store.layout import noted_pid
from tests.support.recorded import (
    HOME,
    SLUICE,
    USERS_ROWS,
    WINDOW_SQL,
    make_users,
    record,
    spent,
    submit_named,
)
from tests.support.rig import Rig, RunningJob, is_alive, running_rig
from tests.support.shop import click, enrich_sql
from tests.support.sql import run_sql
from tests.support.topics import create_topic, first_offsets, produce
from tests.support.wait import wait_until

PLANNED, PINNED, UNCOMMITTED, LETTERS, COMMITTED = (
    "planned",
    "pinned",
    "uncommitted",
    "letters",
    "committed",
)
STAGED, MERGED, WINDOWS, TRIMMED = "staged", "merged", "windows", "trimmed"
KILLED_BATCH = 3  # a click each is in those before it
PROBE_FAULTS = {
    PLANNED: f"C2=kill#{KILLED_BATCH}",
    PINNED: f"C3=kill#{KILLED_BATCH}",
    UNCOMMITTED: f"C6=kill#{KILLED_BATCH}",
    LETTERS: f"C7=kill#{KILLED_BATCH}",
    COMMITTED: f"C8=kill#{KILLED_BATCH}",
}
# They were stopped before: the first batch or the second one after their start is meant.
OTHER_FAULTS = {STAGED: "C11=kill@2", MERGED: "C12=kill@2", WINDOWS: "C13=kill@1"}
ENRICHING = (*PROBE_FAULTS, STAGED, MERGED, TRIMMED)
NAMES = (*ENRICHING, WINDOWS)
KILLED_USER, KILLED_NAME = 6, "in the killed batch"
_LAST_CLICKS = (click(7, 4), b"{", click(8, 5))  # one batch, with one dead letter
_LATER = "UPDATE user_info SET name = 'later' WHERE user_id = 8"
_BUSY = {"maintenance_interval_s": 1.0, "fold_interval_s": 1.0}
_NO_RESTART = {"restart_backoff_min_s": 3600.0, "restart_backoff_max_s": 3600.0}


def trimmed_to(job: RunningJob) -> int:
    servers, topic = job.rig.kafka.bootstrap_servers, f"sluice.{job.id}.user_info"
    return first_offsets(servers, topic)[0]


def killed_jobs(kafka: KafkaBroker, mariadb: MariaDb) -> dict[str, str]:
    """Run every job up to its point; job → topic."""
    jobs: dict[str, RunningJob] = {}

    def rig(**settings: Any) -> Any:
        return running_rig(HOME / SLUICE, kafka, mariadb, changelog_partitions=1, **settings)

    with rig(**_BUSY) as busy:
        for name in (STAGED, MERGED, TRIMMED):
            jobs[name] = _joined(busy, name)
            if name == TRIMMED:
                _change_until_trimmed(jobs[name])
            jobs[name].stop()
        jobs[WINDOWS] = _counted(busy)
    for name, fault in OTHER_FAULTS.items():
        with rig(failpoints=fault, **_NO_RESTART) as planted:
            kill = _kill_at_start if name == WINDOWS else _kill_in_change
            kill(RunningJob(planted, jobs[name].id), name, fault)
    for name, fault in PROBE_FAULTS.items():
        with rig(failpoints=fault, **_NO_RESTART) as planted:
            _kill_in_batch(_joined(planted, name), name, fault)
    with rig() as last:
        for name in ENRICHING:
            run_sql(mariadb, _LATER, schema=name)
            late = (click(9, 6),) if name in PROBE_FAULTS else (*_LAST_CLICKS, click(9, 6))
            produce(kafka.bootstrap_servers, name, late)
        states = {each["name"]: each["state"] for each in last.get("/v1/jobs")["items"]}
        assert states == dict.fromkeys(NAMES, "STOPPED"), states
    return {name: name for name in NAMES}


def _joined(rig: Rig, name: str) -> RunningJob:
    """Three batches are joined, with two versions of the users."""
    servers = rig.kafka.bootstrap_servers
    make_users(rig, name, USERS_ROWS)
    topic = create_topic(servers, name)
    job = submit_named(rig, name, enrich_sql(rig, name, topic, name))
    for batch, user in enumerate((1, 7, 3)):
        if user == 7:
            _change(job, name, user, "changed")
        produce(servers, topic, [click(user, batch + 1)])
        job.wait_output(name, batch + 1)
    assert [row["name"] for row in job.rig.rows(name) if row["user_id"] == 7] == ["changed"]
    newest = job.pins.newest()
    assert newest is not None
    assert newest.batch == KILLED_BATCH - 1
    return job


def _change(job: RunningJob, schema: str, user: int, name: str) -> None:
    before = job.status()["dimensions"][0]["index_version"]
    sql = f"UPDATE user_info SET name = '{name}' WHERE user_id = {user}"
    run_sql(job.rig.mariadb, sql, schema=schema)
    job.wait_for(lambda s: s["dimensions"][0]["index_version"] > before, "another version")


def _change_until_trimmed(job: RunningJob) -> None:
    """Records of changes, not only of the copy, are no longer in the changelog topic."""
    numbers = count(1)

    def is_trimmed() -> bool:
        _change(job, TRIMMED, 10, f"change {next(numbers)}")
        return trimmed_to(job) > USERS_ROWS

    wait_until(is_trimmed, deadline_s=90, what="the changelog topic is trimmed")


def _counted(rig: Rig) -> RunningJob:
    """One window was emitted, one is open; the records that close it came after the stop."""
    servers = rig.kafka.bootstrap_servers
    topic = create_topic(servers, WINDOWS)
    sql = WINDOW_SQL.format(topic=topic, servers=servers, path=WINDOWS)
    job = submit_named(rig, WINDOWS, sql)
    times = ("10:01:00", "10:02:00", "10:11:00")
    for batch, time in enumerate(times):
        produce(servers, topic, [spent("a", 1 << batch, time)])
        wait_until(partial(_is_read, job, batch + 1), what="the record is read")
    job.wait_output(WINDOWS, 1)
    job.stop()
    produce(servers, topic, [spent("a", 8, "10:19:00"), spent("a", 16, "10:30:00")])
    return job


def _is_read(job: RunningJob, end: int) -> bool:
    pin = job.pins.newest()
    return pin is not None and pin.end_offsets.get(0) == end


def _kill_at_start(job: RunningJob, name: str, fault: str) -> None:
    job.start()
    _stop_killed(job, fault)


def _kill_in_change(job: RunningJob, name: str, fault: str) -> None:
    """It is killed in the batch of a change; the batch before has the mark of its start."""
    changelog = job.directory / "tables" / "user_info" / "changelog"
    before = _staged(changelog)
    job.start()
    job.wait_for(lambda _: _staged(changelog) - before, "the mark is staged")
    before = _staged(changelog)
    sql = f"UPDATE user_info SET name = '{KILLED_NAME}' WHERE user_id = {KILLED_USER}"
    run_sql(job.rig.mariadb, sql, schema=name)
    _stop_killed(job, fault)
    rows = [pq.read_table(file).to_pylist() for file in _staged(changelog) - before]
    assert KILLED_NAME in str(rows), rows


def _staged(changelog: Path) -> set[Path]:
    return set(changelog.glob("*.parquet"))


def _kill_in_batch(job: RunningJob, name: str, fault: str) -> None:
    """It is killed in the batch of the last clicks."""
    produce(job.rig.kafka.bootstrap_servers, name, _LAST_CLICKS)
    _stop_killed(job, fault)
    pin = job.pins.read(KILLED_BATCH)
    assert (pin is None) == (name == PLANNED)
    assert pin is None or pin.end_offsets == {0: KILLED_BATCH + len(_LAST_CLICKS)}, pin


def _stop_killed(job: RunningJob, fault: str) -> None:
    """Wait until its runner was killed and nothing of it is left, and want it stopped."""
    marker = job.directory / "checkpoint" / "failpoints" / fault
    job.wait_for(lambda _: marker.exists(), f"{fault} is met")
    job.wait_state("STALLED")
    runner = noted_pid(job.directory)
    assert runner is not None
    wait_until(lambda: not _in_session(runner), what="the runner's children are gone")
    job.stop()


def _in_session(leader: int) -> list[int]:
    return [pid for pid in psutil.pids() if _session(pid) == leader and is_alive(pid)]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


if __name__ == "__main__":
    os.umask(0o077)
    record(Path(sys.argv[1]).absolute(), killed_jobs)
