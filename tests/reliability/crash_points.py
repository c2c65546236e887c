"""Experiment `crash-points`: faults at every reachable point of the batch protocol.

The output must be what it is without faults: each record once, with the name that its user had.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, produce, unique_name

SMALL = ("C2=raise@1", "C3=raise@2", "C5=kill@1", "C6=enospc@1", "C7=kill@2", "C8=kill@2")
BUILD = ("C11=raise@2", "C12=kill@2")
FULL = {
    action: tuple(
        f"{point}={action}@{passage}"
        for point, passage in (
            *(("C2", 1), ("C3", 2), ("C4", 1), ("C6", 2), ("C7", 1), ("C8", 2), ("C9", 1)),
            *(("C11", 2), ("C12", 2)),
        )
    )
    for action in ("kill", "raise", "enospc")
}
_BATCHES = 12
_RECORDS = 200
_USERS = 500


@dataclass(frozen=True)
class Outcome:
    """What the output shows: rows `joined` and `counted`; lost, doubled, wrong and early ones."""

    joined: int
    counted: int
    lost: int
    duplicate: int
    wrong_value: int
    early: int
    faults_met: tuple[str, ...]
    epochs: int

    @property
    def ok(self) -> bool:
        if self.joined != self.counted:
            return False
        return not (self.lost or self.duplicate or self.wrong_value or self.early)


def run_crash_points(
    directory: Path, kafka: KafkaBroker, mariadb: MariaDb, points: tuple[str, ...]
) -> Outcome:
    """One job that meets all `points`, `_BATCHES` bursts of records, and the verdict."""
    topic, path = create_topic(kafka.bootstrap_servers, partitions=2), unique_name("crash")
    with (
        running_rig(directory, kafka, mariadb, failpoints=";".join(points)) as rig,
        new_schema(mariadb, USERS, fill_users(_USERS)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        job.wait_joining()
        for burst in range(_BATCHES):
            records = range(burst * _RECORDS, (burst + 1) * _RECORDS)
            produce(kafka.bootstrap_servers, topic, [click(1 + n % _USERS, n) for n in records])
            wait_for_rows(job, path, (burst + 1) * _RECORDS)
            if burst % 4 == 3:
                touch_users(rig, schema)
        return verdict(rig, job, path)


def wait_for_rows(job: RunningJob, path: str, rows: int) -> None:
    job.wait_output(path, rows, deadline_s=180)


def touch_users(rig: Rig, schema: str) -> None:
    """Changes that leave every name as it is, so that commits of the build side happen too."""
    with rig.mariadb.connect(schema) as connection, connection.cursor() as cursor:
        for gender in ("X", "Y"):
            cursor.execute("UPDATE user_info SET gender = %s WHERE user_id <= 20", (gender,))


def verdict(rig: Rig, job: RunningJob, path: str) -> Outcome:
    expected = _BATCHES * _RECORDS
    status = job.wait_for(
        lambda s: s["probe"]["joined_records"] >= expected and s["probe"]["lag_records"] == 0,
        "the job has counted its output",
    )
    rows = rig.rows(path)
    items = [row["item_id"] for row in rows]
    wrong = [r for r in rows if r["name"] != f"user {r['user_id']}" or r["_topic"] is None]
    markers = job.directory / "checkpoint" / "failpoints"
    met = sorted(p.name for p in markers.iterdir()) if markers.is_dir() else []
    return Outcome(
        joined=len(rows),
        counted=status["probe"]["joined_records"],
        lost=expected - len(set(items)),
        duplicate=len(items) - len(set(items)),
        wrong_value=len(wrong),
        early=sum(is_early(job, batch) for batch in {row["_batch"] for row in rows}),
        faults_met=tuple(met),
        epochs=job.status()["epoch"],
    )


def is_early(job: RunningJob, batch: int) -> bool:
    """Whether the batch is pinned before the opening."""
    pin = json.loads((job.directory / "checkpoint" / "pins" / f"{batch:010d}.json").read_text())
    return bool(pin["batch_timestamp_ms"] < job.status()["opened_at_ms"])
