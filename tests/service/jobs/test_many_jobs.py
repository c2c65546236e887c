"""Jobs beside each other: what is wrong with one is seen there, and hurts no other."""

import dataclasses
import sqlite3
from contextlib import closing

import httpx
import pytest

from service.api.server import ControlPlane
from service.config import Settings
from service.jobs.store.job import DesiredState, JobState, NewJob, StateUpdate, new_job_id
from service.jobs.store.layout import JobLayout
from service.jobs.store.plan_codec import dump
from service.jobs.store.store import JobStore
from service.jobs.supervise import watch
from service.sql.planner.planner import plan_script
from tests.support.control_plane import control_plane, script, settings_in
from tests.support.documents import Documents
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("processes", "secret")


@pytest.mark.experiment
def test_three_jobs_go_on_beside_one_that_crashes_and_one_that_hangs(tmp_path):
    values = {"runner_hang_report_s": 2, "runner_hang_kill_s": 10, "restart_limit": 4}
    with control_plane(tmp_path, **values) as plane, Documents(plane.url) as client:
        names = ("one", "two", "three", "crash", "silent")
        ids = {name: client.submit(script(), name)["id"] for name in names}
        good = [client.when(ids[name], state="JOINING") for name in names[:3]]
        hung = client.when(ids["silent"], lambda job: job["runner"]["restarts"])
        assert hung["runner"]["crashes"] == 1
        failed = client.when(ids["crash"], state="FAILED")
        assert "crashed 5 times in a row, last with signal 9" in failed["error"]["message"]
        assert (failed["runner"]["crashes"], failed["runner"]["restarts"]) == (5, 4)
        told = [e["cause"] for e in client.events(ids["crash"]) if e["to"] == "STALLED"]
        assert told == [
            f"runner ended (signal 9); crash {n}, starting again in {wait} s"
            for n, wait in enumerate(("0.05", "0.1", "0.2", "0.2"), start=1)
        ]
        for before in good:
            now = client.when(before["id"], lambda job: job["runner"]["status_age_ms"] < 2_000)
            assert (now["state"], now["runner"]["pid"]) == ("JOINING", before["runner"]["pid"])
            assert (now["runner"]["crashes"], now["runner"]["restarts"]) == (0, 0)
            assert client.events(now["id"])[-1]["to"] == "JOINING"


@pytest.mark.experiment
def test_a_runner_that_hangs_at_each_start_is_given_up(tmp_path, monkeypatch):
    """It lives longer than a minute each time, but it is never healthy."""
    monkeypatch.setattr(watch, "_HEALTHY_S", 0.5)
    monkeypatch.setattr(watch, "STARTING_S", 2.0)
    values = {"runner_hang_report_s": 2, "runner_hang_kill_s": 2, "restart_limit": 1}
    with control_plane(tmp_path, **values) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "late")["id"]
        failed = client.when(job_id, state="FAILED")
        assert "crashed 2 times in a row" in failed["error"]["message"]


# Many stored jobs
# --------------------------------------------------------------------------------------------------

STATES = {
    "late": (8, JobState.JOINING, DesiredState.RUNNING),
    "failed": (30, JobState.FAILED, DesiredState.STOPPED),
    "stopped": (81, JobState.STOPPED, DesiredState.STOPPED),
    "finished": (80, JobState.FINISHED, DesiredState.STOPPED),
}


def _store_jobs(settings: Settings) -> list[str]:
    """Jobs as a control plane has left them that is gone, and whose runners are, too."""
    store, plan, ids = JobStore.open(settings.store_url), plan_script(script()).plan, []
    for name, (count, state, desired) in STATES.items():
        first = new_job_id(1_000_000 + len(ids))
        store.add(NewJob(first, name, dump(plan), plan.sql, (), None, "digest"))
        store.transition(first, StateUpdate(JobState.STARTING, "submitted"))
        store.transition(first, StateUpdate(state, "as it was", desired=desired))
        others = [new_job_id(1_000_001 + len(ids) + number) for number in range(count - 1)]
        _copy(settings, first, others)
        content = dump(dataclasses.replace(plan, name=name))
        for job_id in (first, *others):
            JobLayout(settings.jobs_dir / job_id).create()
            JobLayout(settings.jobs_dir / job_id).plan.write_bytes(content)
        ids += [first, *others]
    store.close()
    return ids


def _copy(settings: Settings, job_id: str, others: list[str]) -> None:
    """More jobs like this one, in one transaction."""
    with closing(sqlite3.connect(settings.data_dir / "jobs.db")) as link, link:
        rows = link.execute("SELECT * FROM jobs WHERE id = ?", (job_id,))
        names = [column[0] for column in rows.description if column[0] != "id"]
        columns = ", ".join(names)
        copy = f"INSERT INTO jobs (id, {columns}) SELECT ?, {columns} FROM jobs WHERE id = ?"
        link.executemany(copy, [(other, job_id) for other in others])


def _started(plane: ControlPlane, ids: list[str]) -> list[str]:
    return [job_id for job_id in ids if plane.services.supervisor.runner_of(job_id).alive]


def test_after_a_restart_two_hundred_jobs_are_listed_and_few_runners_start_at_once(
    tmp_path,
):
    settings = settings_in(tmp_path, start_limit=2)
    ids = _store_jobs(settings)
    wanted = ids[: STATES["late"][0]]
    (settings.jobs_dir / wanted[1] / "runner.pid").write_text("damaged")
    with control_plane(tmp_path, start_limit=2) as plane, Documents(plane.url) as client:
        found = wait_until(lambda: len(s := _started(plane, ids)) == 2 and s, what="two start")
        for _ in range(3):
            waiting = next(job_id for job_id in wanted if job_id not in found)
            job = client.when(waiting, lambda job: "turn" in job["reason"])
            assert "runner was gone when the control plane looked for it" in job["reason"]
            assert _started(plane, ids) == found
        (settings.jobs_dir / found[0] / "go").touch()
        client.when(found[0], state="JOINING")
        wait_until(lambda: len(_started(plane, ids)) == 3, what="the next one starts")
        for job_id in wanted[1:]:
            (settings.jobs_dir / job_id / "go").touch()
        for job_id in wanted[1:]:
            client.when(job_id, state="JOINING")
        pages = _pages(plane.url)
        assert [len(page) for page in pages] == [90, 90, 19]
        assert [job["id"] for page in pages for job in page] == sorted(ids, reverse=True)
        assert sorted(_started(plane, ids)) == sorted(wanted)
        states = [job["state"] for page in pages for job in page]
        for name, (count, state, _) in STATES.items():
            assert states.count(state) == count, name


def test_a_start_that_hangs_keeps_no_other_job_waiting_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "_START_SLOT_S", 1.0)
    with control_plane(tmp_path, start_limit=1) as plane, Documents(plane.url) as client:
        hangs = client.submit(script(), "late")["id"]
        client.when(hangs, state="STARTING")
        other = client.submit(script(), "other")["id"]
        client.when(other, state="JOINING")
        assert client.job(hangs)["state"] == "STARTING"


def _pages(url: str) -> list[list[dict]]:
    pages, cursor = [], {}
    while True:
        page = httpx.get(f"{url}/v1/jobs", params={"limit": 90, **cursor}).json()
        pages.append(page["items"])
        if page["next_cursor"] is None:
            return pages
        cursor = {"cursor": page["next_cursor"]}
