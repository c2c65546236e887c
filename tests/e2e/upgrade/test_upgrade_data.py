"""What an older version has left on disk goes on under this one, from each phase.

The archive was made by the version of 27 November 2026 (`tests/support/recorded.py`), the oldest
one whose data is read: names in plans, checkpoints, stored faults and tables are its names. It lies
at another place now, so the database is another server to its jobs: a copy that was going on begins
again, and a job that has joined copies again while it joins.
"""

from pathlib import Path

import pytest

from service.jobs.inspect.past import open_replayer
from tests.support.recorded import (
    FINISHED,
    JOINING,
    LOADING,
    LOADING_USERS,
    NAMES,
    STALLED,
    WINDOWS,
    Restored,
    item_names,
    spent,
    wait_joined_with,
)
from tests.support.rig import Rig, RunningJob
from tests.support.sql import run_sql
from tests.support.topics import produce

pytestmark = pytest.mark.experiment
ARCHIVE = Path(__file__).parent / "recorded" / "stopped.tar.xz"


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("job", [name], indirect=True)


def test_every_job_is_there_in_the_state_in_which_it_was_left(rig: Rig) -> None:
    states = {each["name"]: each["state"] for each in rig.get("/v1/jobs")["items"]}
    assert set(states) == set(NAMES)
    assert states.pop(FINISHED) == "FINISHED"
    assert set(states.values()) == {"STOPPED"}


@of(LOADING)
def test_a_copy_goes_on_and_nothing_is_joined_before_it_is_complete(
    rig: Rig, job: RunningJob
) -> None:
    assert rig.rows(LOADING) == []
    job.start()
    job.wait_output(LOADING, 2)
    assert item_names(rig, LOADING) == {1: "user 1", LOADING_USERS: f"user {LOADING_USERS}"}


@of(JOINING)
def test_a_job_that_has_joined_goes_on_where_it_was_and_sees_what_changed_meanwhile(
    rig: Rig, job: RunningJob, place: Restored
) -> None:
    """The gate stays open: what waits is joined at once, with what the table was then or later."""
    before = rig.rows(JOINING)
    assert len(before) == 11
    job.start()
    after = job.wait_output(JOINING, 12)
    assert [row for row in after if row["item_id"] < 12] == before
    assert item_names(rig, JOINING)[12] == "user 9"
    wait_joined_with(job, JOINING, place.topics[JOINING], 8, "later")
    run_sql(rig.mariadb, "UPDATE user_info SET name = 'new' WHERE user_id = 8", schema=JOINING)
    with open_replayer(job.directory) as replayer:
        found = replayer.replay(before[-1]["_batch"], diff=True)
    assert found["verdict"] == "identical", found


@of(WINDOWS)
def test_an_open_window_keeps_what_it_has_counted(
    rig: Rig, job: RunningJob, place: Restored
) -> None:
    assert [row["total"] for row in rig.rows(WINDOWS)] == [3]
    later = [spent("a", 8, "10:19:00"), spent("a", 16, "10:30:00")]
    produce(rig.kafka.bootstrap_servers, place.topics[WINDOWS], later)
    job.start()
    rows = job.wait_output(WINDOWS, 2)
    assert sorted(row["total"] for row in rows) == [3, 4 + 8]


@of(STALLED)
def test_a_fault_that_was_kept_waits_for_an_operator_who_knows_it_by_its_name(
    rig: Rig, job: RunningJob
) -> None:
    job.start()
    job.wait_for(
        lambda s: s["state"] == "STALLED" and s["error"]["type"] == "records-lost",
        "the kept fault is told",
    )
    assert len(rig.rows(STALLED)) == 1
    body = {"cause": "records-lost", "choice": "continue", "reason": "they are gone"}
    answer = rig.client.post(f"/v1/jobs/{job.id}:acknowledge", json=body)
    assert answer.status_code == 200, answer.text
    job.wait_output(STALLED, 2)
    assert item_names(rig, STALLED) == {1: "user 1", 4: "user 4"}


@of(FINISHED)
def test_a_finished_job_stays_so_and_its_batches_can_be_looked_back_at(
    rig: Rig, job: RunningJob
) -> None:
    assert item_names(rig, FINISHED) == {1: "user 1", 2: "user 2", 1_000: None}
    assert rig.client.post(f"/v1/jobs/{job.id}:start").status_code == 409
    with open_replayer(job.directory) as replayer:
        found = replayer.replay(0, diff=True)
    assert found["verdict"] == "identical", found
