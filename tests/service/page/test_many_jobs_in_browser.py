"""The page with 500 jobs and a day of history each: the newest are there soon, then all."""

import pytest

from tests.support.control_plane import control_plane
from tests.support.stored_jobs import rest, store_copies, stored_services

pytestmark = pytest.mark.matrix

JOBS = 500


@pytest.fixture(scope="module")
def data(secret, processes, tmp_path_factory):
    """The data directory of a control plane whose 500 jobs are stopped."""
    directory = tmp_path_factory.mktemp("many")
    with stored_services(directory) as services:
        numbers = {"records_per_s": lambda age_s: 50 + age_s % 40}
        rest(services, store_copies(services, JOBS, numbers))
    return directory


def test_of_five_hundred_jobs_the_newest_are_shown_first_and_all_on_one_page(data, browser):
    with control_plane(data) as plane:
        browser.open(plane.url)
        browser.until(f"{JOBS} jobs", "main")
        rows = "return document.querySelectorAll('main tbody tr').length"
        assert browser.run(rows) == JOBS  # trouble must not be on a later page
        assert browser.run("return document.querySelectorAll('.spark path').length") == JOBS
        paint = browser.run(
            "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        )
        asked = browser.run(
            "return performance.getEntriesByType('resource')"
            ".filter((each) => each.name.includes('/v1/jobs?'))"
            ".map((each) => [Number(new URL(each.name).searchParams.get('limit')), each.duration])"
        )
        assert [limit for limit, _ in asked[:2]] == [100, 500]
        print(f"{JOBS} jobs: first paint after {paint:.0f} ms, lists [limit, ms]: {asked}")  # noqa: T201
        browser.driver.get("about:blank")
