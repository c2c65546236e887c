"""Which table is compared by itself next, and how rarely jobs are listed for it."""

import dataclasses
from contextlib import closing, contextmanager

import pytest
from structlog.testing import capture_logs

from joins.durable.checkpoint import write_json_atomically
from joins.plan.plan import VerifySchedule
from service.jobs.inspect.inspector import Inspector
from service.jobs.store.job import JobState, NewJob, StateUpdate, new_job_id, now_ms
from service.jobs.store.layout import JobLayout
from service.jobs.store.plan_codec import dump
from service.jobs.store.store import JobStore
from service.jobs.supervise.verification_schedule import VerificationSchedule
from tests.support.probe import PLAN

HOURLY = VerifySchedule(3_600_000, 100)


class CountingStore(JobStore):
    listed = 0

    def all_jobs(self):
        self.listed += 1
        return super().all_jobs()


def submit(store, tmp_path, schedule):
    table = dataclasses.replace(PLAN.dimensions[0], verify=schedule)
    plan = dump(dataclasses.replace(PLAN, dimensions=(table,)))
    job_id = new_job_id()
    store.add(NewJob(job_id, job_id, plan, "INSERT", (), None, "digest"))
    for target in (JobState.STARTING, JobState.JOINING):
        store.transition(job_id, StateUpdate(target, "as reported"))
    layout = JobLayout(tmp_path / job_id)
    layout.create()
    layout.plan.write_bytes(plan)
    return layout, table.name


@contextmanager
def scheduled(tmp_path):
    """A store and the schedule of its jobs."""
    with closing(CountingStore.open(f"sqlite:///{tmp_path / 'jobs.db'}")) as store:
        yield (
            store,
            VerificationSchedule(
                store, lambda job_id: JobLayout(tmp_path / job_id), Inspector(), lambda: True
            ),
        )


def test_jobs_are_listed_again_only_after_a_transition(tmp_path):
    with scheduled(tmp_path) as (store, schedule):
        submit(store, tmp_path, None)
        assert [schedule.next_due() for _ in range(5)] == [None] * 5
        assert store.listed == 1
        often, name = submit(store, tmp_path, HOURLY)
        often.verifications.mkdir()
        write_json_atomically(often.verification(name), {"ended_at_ms": 0})
        job, table = schedule.next_due()
        assert (job.id, table.name, store.listed) == (often.job_dir.name, name, 2)
        write_json_atomically(often.verification(name), {"ended_at_ms": now_ms()})
        assert schedule.next_due() is None
        store.transition(job.id, StateUpdate(JobState.STALLED, "as reported"))
        often.verification(name).unlink()
        assert schedule.next_due() is None
        assert store.listed == 3


def test_a_clock_that_was_ahead_puts_no_comparison_off(tmp_path):
    with scheduled(tmp_path) as (store, schedule):
        layout, name = submit(store, tmp_path, HOURLY)
        layout.verifications.mkdir()
        for ahead_ms, is_due in ((HOURLY.interval_ms // 2, False), (2 * HOURLY.interval_ms, True)):
            ended = {"ended_at_ms": now_ms() + ahead_ms}
            write_json_atomically(layout.verification(name), ended)
            assert (schedule.next_due() is not None) is is_due


def test_a_damaged_plan_of_one_job_keeps_no_other_from_being_compared(tmp_path):
    with scheduled(tmp_path) as (store, schedule):
        for content in ("{", "{}"):
            damaged, _ = submit(store, tmp_path, VerifySchedule(0, 100))
            damaged.plan.write_text(content)
        damaged, _ = submit(store, tmp_path, VerifySchedule(0, 100))
        damaged.plan.unlink()
        damaged.plan.mkdir()
        whole, _ = submit(store, tmp_path, VerifySchedule(0, 100))
        job, _ = schedule.next_due()
        assert job.id == whole.job_dir.name


def test_a_damaged_plan_is_logged_once_however_often_jobs_are_listed(tmp_path):
    with scheduled(tmp_path) as (store, schedule), capture_logs() as logs:
        damaged, _ = submit(store, tmp_path, VerifySchedule(0, 100))
        damaged.plan.write_text("{")
        for _ in range(5):
            submit(store, tmp_path, None)
            assert schedule.next_due() is None
        assert store.listed == 5
    assert [each["event"] for each in logs] == ["plan of a job cannot be read"]


BROKEN = {
    "damaged": lambda plan: plan.write_text("{"),
    "not_restored_yet": lambda plan: plan.unlink(),
}


@pytest.mark.parametrize("breaks", BROKEN.values(), ids=BROKEN)
def test_a_plan_that_could_not_be_read_counts_from_its_restoration_on(tmp_path, breaks):
    with scheduled(tmp_path) as (store, schedule):
        layout, _ = submit(store, tmp_path, VerifySchedule(0, 100))
        plan = layout.plan.read_bytes()
        breaks(layout.plan)
        assert schedule.next_due() is None
        layout.plan.write_bytes(plan)
        submit(store, tmp_path, None)
        job, _ = schedule.next_due()
        assert job.id == layout.job_dir.name
