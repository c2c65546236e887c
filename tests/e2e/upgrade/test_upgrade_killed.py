"""Jobs whose runner was killed go on under this version, from each point of a batch.

The archive was made by the version of 27 November 2026 (`tests/support/recorded_kills.py`). It lies
at another place now, so each job copies its table again while it joins, as in `test_upgrade_data`.
"""

from pathlib import Path
from typing import Any

import pytest

from service.jobs.inspect.past import open_replayer
from tests.support.recorded import (
    USERS_ROWS,
    Restored,
    item_names,
    spent,
    wait_joined_with,
)
from tests.support.recorded_kills import (
    COMMITTED,
    ENRICHING,
    KILLED_BATCH,
    KILLED_NAME,
    KILLED_USER,
    LETTERS,
    MERGED,
    NAMES,
    PINNED,
    STAGED,
    TRIMMED,
    UNCOMMITTED,
    WINDOWS,
    trimmed_to,
)
from tests.support.rig import Rig, RunningJob
from tests.support.sql import run_sql
from tests.support.topics import produce

pytestmark = pytest.mark.experiment
ARCHIVE = Path(__file__).parent / "recorded" / "killed.tar.xz"
WITH_PIN = (PINNED, UNCOMMITTED, LETTERS, COMMITTED)
JOINED_BEFORE = {1: "user 1", 2: "changed", 3: "user 3"}


def of(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "job"), [(n, n) for n in names], indirect=["job"])


def letters(job: RunningJob) -> list[tuple[int, int]]:
    items = job.rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
    return [(item["offset"], item["batch"]) for item in items]


def replayed(job: RunningJob, batch: int) -> dict[str, Any]:
    with open_replayer(job.directory) as replayer:
        return replayer.replay(batch, diff=True)


def test_every_job_is_there(rig: Rig) -> None:
    states = {each["name"]: each["state"] for each in rig.get("/v1/jobs")["items"]}
    assert states == dict.fromkeys(NAMES, "STOPPED")


@of(*ENRICHING)
def test_every_record_is_joined_once_and_the_job_sees_what_changes(
    rig: Rig, job: RunningJob, name: str, place: Restored
) -> None:
    pinned = job.pins.read(KILLED_BATCH)
    assert (pinned is not None) == (name in WITH_PIN)
    assert len(rig.rows(name)) == (5 if name == COMMITTED else 3)
    job.start()
    job.wait_output(name, 6)
    job.wait_all_joined()
    joined = item_names(rig, name)
    eighth = joined.pop(5)
    assert joined == {**JOINED_BEFORE, 4: "changed", 6: "user 9"}
    assert eighth == "user 8" or (name not in WITH_PIN and eighth == "later")
    assert [offset for offset, _ in letters(job)] == [4]
    wait_joined_with(job, name, place.topics[name], 8, "later")
    run_sql(rig.mariadb, "UPDATE user_info SET name = 'new' WHERE user_id = 8", schema=name)
    wait_joined_with(job, name, place.topics[name], 8, "new")
    if name in (STAGED, MERGED):
        wait_joined_with(job, name, place.topics[name], KILLED_USER, KILLED_NAME)
    assert replayed(job, KILLED_BATCH)["verdict"] == "identical"
    if pinned is not None:
        assert job.pins.read(KILLED_BATCH) == pinned
        assert letters(job) == [(4, KILLED_BATCH)]


@of(TRIMMED)
def test_the_changelog_topic_had_been_trimmed(job: RunningJob, name: str) -> None:
    assert trimmed_to(job) > USERS_ROWS


@of(WINDOWS)
def test_a_window_whose_state_was_committed_is_emitted_once(
    rig: Rig, job: RunningJob, name: str, place: Restored
) -> None:
    pinned = job.pins.newest()
    assert pinned is not None
    assert [row["total"] for row in rig.rows(name)] == [3]
    job.start()
    job.wait_output(name, 2)
    produce(rig.kafka.bootstrap_servers, place.topics[name], [spent("a", 32, "10:45:00")])
    rows = job.wait_output(name, 3)
    assert sorted(row["total"] for row in rows) == [3, 4 + 8, 16]
    assert job.pins.read(pinned.batch) == pinned
    assert replayed(job, pinned.batch)["verdict"] == "identical"
