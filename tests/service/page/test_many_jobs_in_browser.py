"""The page with 500 jobs and a day of history each: it works on a page of jobs at a time."""

import shutil
from dataclasses import replace

import pytest

from service.jobs.store.job import DesiredState, JobState, NewJob, StateUpdate, new_job_id
from service.jobs.submit.submission import SubmissionRequest
from tests.support.control_plane import control_plane, script
from tests.support.page_plane import remember
from tests.support.stored_jobs import stored_services

JOBS = 500
AT_ONCE = 100


@pytest.fixture(scope="module")
def data(secret, processes, tmp_path_factory):
    """The data directory of a control plane whose 500 jobs are stopped."""
    directory = tmp_path_factory.mktemp("many")
    with stored_services(directory) as services:
        first = services.submissions.submit(SubmissionRequest(script(), "job 0"))
        remember(services.layout(first.id).job_dir, records_per_s=lambda age_s: 50 + age_s % 40)
        plan = services.store.get(first.id).plan
        one = NewJob(first.id, first.name, plan, script(), (), None, "")
        ids = [first.id]
        for number in range(1, JOBS):
            new = replace(one, id=new_job_id(), name=f"job {number}")
            services.store.add(new)
            home = services.layout(new.id).job_dir
            home.mkdir()
            shutil.copy(services.layout(first.id).history, home)
            ids.append(new.id)
        for job_id in ids:
            stopped = StateUpdate(JobState.STOPPED, "stopped", desired=DesiredState.STOPPED)
            services.store.transition(job_id, stopped)
    return directory


def test_five_hundred_jobs_are_shown_a_page_at_a_time(data, browser):
    with control_plane(data) as plane:
        browser.open(plane.url)
        browser.until("Show older jobs", "main")
        rows = "return document.querySelectorAll('main tbody tr').length"
        assert browser.run(rows) == AT_ONCE
        assert browser.run("return document.querySelectorAll('.spark path').length") == AT_ONCE
        paint = browser.run(
            "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        )
        asked = browser.run(
            "return performance.getEntriesByType('resource')"
            ".filter((each) => each.name.includes('/v1/jobs?')).map((each) => each.duration)"
        )
        print(f"{JOBS} jobs: first paint after {paint:.0f} ms, lists in {asked} ms")  # noqa: T201
        browser.find("[data-action=more]").click()
        browser.wait(lambda: browser.run(rows) == 2 * AT_ONCE, "the next page")
        browser.driver.get("about:blank")
