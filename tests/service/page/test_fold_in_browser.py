"""What is above the fold: each state shows itself, its cause with the object, and the remedy."""

import time

import pytest

from service.jobs.store.job import JobError, JobState
from tests.support.control_plane import script
from tests.support.page_fold import SCREENS, above_the_fold
from tests.support.page_jobs import copying, joining
from tests.support.page_plane import job_url, remember
from tests.support.wait import wait_until

pytestmark = pytest.mark.matrix
NOW_MS = time.time_ns() // 1_000_000


def fault(kind, message, hint, **more):
    return {"type": kind, "message": message, "hint": hint, "choices": [], **more}


def stalled(part, error, **more):
    return joining(NOW_MS, **more) | {
        "state": "STALLED",
        "stalls": [{"part": part, **error}],
        "error": error,
    }


AWAY = fault("kafka", 'kafka "broker-1:9092" does not answer', "Check that the broker runs.")
DOWN = fault("source-unavailable", 'database "db-1:3306" does not answer', "Start the database.")
LOST = fault("records-lost", 'topic "clicks" has lost 5 records', "Decide.", choices=["continue"])
OUTPUT = fault("output-topic-changed", 'topic "enriched" was created again', "Look at it.")
TWO_FAULTS = stalled("stream", LOST)
TWO_FAULTS["stalls"].append({"part": "source user_info", **DOWN})
TWO_FAULTS["warnings"] = [
    {"type": "retention", "message": f'topic "{name}" removes records in 2 h', "hint": "Hurry."}
    for name in ("clicks", "views")
]
SAME_HINT = {"type": "lost", "message": "partition 0 begins later", "hint": LOST["hint"]}
TWO_FAULTS["warnings"].append(SAME_HINT)
FULL = fault("disk-full", 'the disk of data directory "/data" is full', "Free space on that disk.")
HELD = {
    "partition": 0,
    "offset": 41,
    "behind": 12,
    "since_ms": NOW_MS,
    "age_ms": 9_000,
    "text": 'topic "clicks" partition 0 is held at offset 41 by a transaction',
    "hint": "It ends when its producer commits or aborts it.",
}
STALE = {
    "state": "HOLDING",
    "since_ms": NOW_MS,
    "tables": [],
    "released_until_ms": None,
    "text": 'records wait: table "items" is 12 s old, at most 5 s are allowed',
}
CATCHING_UP = {**copying(1_000_000), "state": "CATCHING_UP"}
FOREIGN = copying(412_000)
FOREIGN["dimensions"][0]["waits_for"] = "no event proves that its snapshot is complete"
ALL_DEAD = {"joined_records": 0, "matched": 0, "unmatched": 0, "dead_letters": 9}
# the runner's report → state, cause with its object, remedy
STATES = {
    "copying": (copying(412_000), "Copying (41 %)", '"user_info": 412,000', None),
    "catching_up": (CATCHING_UP, "Catching up", "user_info", None),
    "foreign": (FOREIGN, 'Waiting for table "user_info"', '"user_info": no event', None),
    "running": (joining(NOW_MS), "Running", "at most 146 are not joined", None),
    "dead_letters": (
        joining(NOW_MS, **ALL_DEAD),
        "Running",
        'All 9 records of topic "clicks"',
        "sluice dlq ls",
    ),
    "transaction": (
        joining(NOW_MS, open_transactions=[HELD]),
        "Waiting for a transaction",
        'opic "clicks" partition 0',
        "commits or aborts",
    ),
    "stale": (
        joining(NOW_MS) | {"holding": STALE},
        "Holding (stale)",
        '"items" is 12 s',
        "Check what",
    ),
    "disk": (joining(NOW_MS) | {"warnings": [FULL]}, "Waiting for disk space", "/data", "Free"),
    "kafka": (stalled("kafka", AWAY), "Stalled", "broker-1:9092", "the broker runs"),
    "source": (stalled("source items", DOWN), "Stalled", "db-1:3306", "Start the database."),
    "decision": (stalled("probe", LOST), "Stalled", '"clicks" has lost 5', "Decide."),
    "two_faults": (TWO_FAULTS, "Stalled", "and 1 more fault", "Decide."),
    "output": (stalled("batches", OUTPUT), "Stalled", '"enriched" was created', "Look at it."),
}
FAILED = JobError("source", 'table "shop.users" has no column "name"', "Add the column.")


@pytest.fixture(scope="module")
def ids(plane):
    """The id of a job in each state."""
    found = {}
    for name, (report, *_) in STATES.items():
        found[name] = plane.submit(script(), name)
        plane.tell(found[name], **report)
    for name, (report, *_) in STATES.items():
        wait_until(
            lambda name=name, report=report: (
                plane.client.job(found[name])["state"] == report["state"]
            ),
            deadline_s=240,
        )
    stopped = plane.at_rest("stopped", JobState.STOPPED)
    return {**found, "failed": plane.at_rest("failed", JobState.FAILED, FAILED), "stopped": stopped}


CASES = {name: case[1:] for name, case in STATES.items()}
CASES["stopped"] = ("Stopped", "stopped by request", "sluice jobs resume")
CASES["failed"] = ("Failed", '"shop.users" has no column', "Add the column.")


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("name", CASES)
def test_state_cause_object_and_remedy_are_above_the_fold(plane, browser, ids, name, width, height):
    word, cause, remedy = CASES[name]
    browser.screen(width, height)
    browser.open(job_url(plane, ids[name]))
    browser.until(cause, "#why")
    fold = above_the_fold(browser)
    assert fold.state.endswith(word)
    assert cause in fold.cause
    assert (fold.remedy == "") if remedy is None else (remedy in fold.remedy)
    text = browser.text("main")
    assert text.count(remedy or "\0") <= 1
    assert text.count("Hurry.") == text.count("removes records") // 2  # each hint once


LINES_OF_THE_ID = """
  const range = document.createRange();
  range.selectNodeContents(document.querySelector("#why > .hint .id"));
  return new Set([...range.getClientRects()].map(({ top }) => top)).size;
"""


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("name", ["stale", "stopped"])
def test_an_id_in_a_command_stays_on_one_line(plane, browser, ids, name, width, height):
    browser.screen(width, height)
    browser.open(job_url(plane, ids[name]))
    browser.until(ids[name], "#why > .hint")
    assert browser.run(LINES_OF_THE_ID) == 1
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_the_first_reason_of_dead_letters_is_beside_the_state(plane, browser, ids):
    browser.open(job_url(plane, ids["dead_letters"]))
    reason = browser.until("The oldest, 0/0: ", "#why [data-key=letter]")
    assert "evil second line" in reason
    browser.open(job_url(plane, ids["running"]))
    browser.until("Running", ".title .state")
    assert "The oldest" not in browser.text("#why")


LOOKS = """
  return performance.getEntriesByType("resource").map(({ name }) => name)
    .filter((name) => name.includes(arguments[0])).length;
"""


def test_dead_letters_that_are_not_found_are_looked_up_once(plane, browser):
    job_id = plane.submit(script(), "clean of letters")
    plane.tell(job_id, **joining(NOW_MS, **ALL_DEAD))
    browser.open(job_url(plane, job_id))
    browser.until('All 9 records of topic "clicks"', "#why")
    wait_until(lambda: browser.run(LOOKS, "pending=true") == 1, deadline_s=60)
    known = browser.run(LOOKS, "/explain-wait")
    wait_until(lambda: browser.run(LOOKS, "/explain-wait") >= known + 2, deadline_s=60)
    assert browser.run(LOOKS, "pending=true") == 1
    plane.tell(job_id, **joining(NOW_MS, **{**ALL_DEAD, "dead_letters": 10}))
    wait_until(lambda: browser.run(LOOKS, "pending=true") == 2, deadline_s=60)


CUT = """
  const picture = document.querySelector(".flow");
  const isOpen = getComputedStyle(picture).overflow === "visible";
  const room = (isOpen ? picture.closest(".panel") : picture).getBoundingClientRect();
  const inside = ({ left, right }) => left >= room.left - 1 && right <= room.right + 1;
  return [...picture.querySelectorAll("text")]
    .filter((text) => !inside(text.getBoundingClientRect())).map((text) => text.textContent);
"""


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_labels_of_a_job_without_tables_are_whole(plane, browser, width, height):
    job_id = plane.submit(script(), "no tables")
    rates = {"records_per_s": 0.091, "rows_per_s": 0.091}
    plane.tell(job_id, **joining(NOW_MS, **rates) | {"dimensions": [], "versions_at_open": {}})
    browser.screen(width, height)
    browser.open(job_url(plane, job_id))
    browser.until("0.091 records/s", "#flow")
    assert browser.run(CUT) == []


def test_conditions_are_those_of_a_job_that_waits(plane, browser, ids):
    for name, has_conditions in (("running", False), ("copying", True), ("kafka", True)):
        browser.open(job_url(plane, ids[name]))
        browser.until(CASES[name][1], "#why")
        if has_conditions:
            browser.until("All conditions:", "#why")
        text = browser.text("main")
        assert ("All conditions:" in text) is has_conditions
        assert "not met" not in text  # before it is unfolded


def test_a_job_is_at_most_three_screens_on_a_phone(plane, browser, ids):
    browser.screen(390, 844)
    for name in ("running", "copying", "source", "two_faults"):
        known = dict.fromkeys(("records_per_s", "table_lag_records", "join_ms", "freshness_ms"), 9)
        remember(plane.settings.jobs_dir / ids[name], **known)
        browser.open(job_url(plane, ids[name]))
        browser.until("More charts", "main")
        assert browser.run("return document.documentElement.scrollHeight") <= 3 * 844
        texts = "return [...document.querySelectorAll('.flow text')].map((e) => e.textContent)"
        assert [text for text in browser.run(texts) if "…" in text] == []
