"""The page as a console: what was, what moves, and what can be done there."""

import math
import time

import pytest

from tests.support.control_plane import script
from tests.support.page_jobs import joining
from tests.support.page_plane import job_url, remember
from tests.support.wait import wait_until

PHONE = 390


@pytest.fixture(scope="module")
def joining_job(plane):
    job_id = plane.submit(script(), "clicks enriched")
    plane.tell(job_id, **joining(time.time_ns() // 1_000_000 - 60_000))
    remember(
        plane.settings.jobs_dir / job_id,
        records_per_s=lambda age_s: math.nan if 600 < age_s < 900 else 800 + age_s / 10,
        rows_per_s=750,
        lag_records=lambda age_s: 12 + age_s % 7,
        join_ms=310,
        commit_ms=90,
        freshness_ms=700,
    )
    wait_until(lambda: plane.client.job(job_id)["state"] == "JOINING", deadline_s=60)
    return job_id


# What was
# --------------------------------------------------------------------------------------------------


def test_an_hour_or_a_day_is_drawn_with_gaps_marks_and_a_table_that_says_the_same(
    plane, browser, joining_job
):
    browser.open(job_url(plane, joining_job))
    text = browser.until("Throughput", "#numbers")
    for title in ("Records that wait", "Time of a batch", "How old the data is"):
        assert title in text
    drawn = browser.run(_PATHS)
    assert len(drawn) == 6  # what nobody has seen is not drawn
    assert min(path.count("M") for path in drawn) == 1
    assert max(path.count("M") for path in drawn) >= 2  # the gap stays one
    assert "JOINING at" in text
    assert browser.run("return document.querySelectorAll('#numbers .mark').length") >= 4
    browser.find("#numbers details summary").click()
    rows = browser.until("records read", "#numbers details[open] table")
    assert "750/s" in rows
    browser.find("[data-range=day]").click()
    browser.wait(
        lambda: max(path.count("L") for path in browser.run(_PATHS)) < 300, "steps of five minutes"
    )
    assert browser.find("[data-range=day]").get_attribute("aria-pressed") == "true"


def test_whoever_points_at_an_instant_is_told_its_numbers(plane, browser, joining_job):
    browser.open(job_url(plane, joining_job))
    browser.until("Throughput", "#numbers")
    point = """
      const plot = document.querySelector("[data-plot=rates]");
      const { left, width, top } = plot.getBoundingClientRect();
      const at = { clientX: left + 0.1 * width, clientY: top + 5, bubbles: true };
      plot.dispatchEvent(new PointerEvent("pointermove", at));
    """
    browser.run(point)
    browser.until("records read 1,12", "#numbers")  # 54 minutes ago: 800 + 3240 / 10
    browser.run("document.body.dispatchEvent(new PointerEvent('pointermove', {bubbles: true}))")
    browser.wait(lambda: not browser.run("return document.querySelector('.cursor')"), "no cursor")


PATHS = {
    "nothing": ([], [], ""),
    "unknown": ([None, None], [0, 1], ""),
    "one_point": ([5], [0], "M0.0 5.0h0.1"),
    "two": ([5, 6], [0, 1], "M0.0 5.0h0.1L1.0 6.0"),
    "unknown_between": ([5, None, 6], [0, 1, 2], "M0.0 5.0h0.1M2.0 6.0h0.1"),
    "missing_between": ([5, 6], [0, 3], "M0.0 5.0h0.1M3.0 6.0h0.1"),
}


def test_lines_break_where_nothing_is_known(plane, browser):
    browser.open(plane.url)
    body = "return a[0].map(([v, at]) => m.path(v, at, 1, (x) => x, (y) => y))"
    drawn = browser.call("chart.js", body, [case[:2] for case in PATHS.values()])
    assert drawn == [case[2] for case in PATHS.values()]
    body = "return a[0].map(m.rounded)"
    assert browser.call("chart.js", body, [0, 1, 3, 7, 12, 100, 0.3]) == [1, 1, 5, 10, 20, 100, 0.5]


_PATHS = """
  return [...document.querySelectorAll("#numbers .line")].map((path) => path.getAttribute("d"));
"""
