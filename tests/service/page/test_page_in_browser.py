"""The status page in a real browser, over a real control plane, its store and runner processes."""

import random
import time

import pytest
from selenium.webdriver.common.keys import Keys

from service.jobs.store.job import JobError, JobState
from service.security.tokens import Credentials, NewToken, TokenScope
from tests.support.control_plane import control_plane, script
from tests.support.documents import Documents
from tests.support.event_time import event_time, windows
from tests.support.page_jobs import HOSTILE, LONG, copying, joining, named, stalled
from tests.support.page_plane import job_url

pytestmark = pytest.mark.matrix

PHONE = 375
CONTRAST = 4.5  # WCAG 2.2, level AA
SHOWN = "pre, code, p, span, td, th, dt, dd, a, button, h1, h2, summary, strong, label"


@pytest.fixture(scope="module")
def copying_job(plane):
    job_id = plane.submit(script(), "copying")
    plane.tell(job_id, **copying(412_000))
    plane.client.when(job_id, state="SNAPSHOT")
    return job_id


@pytest.fixture(scope="module")
def stalled_job(plane):
    job_id = plane.submit(named(HOSTILE))
    plane.tell(job_id, **stalled())
    plane.client.when(job_id, state="STALLED")
    return job_id


@pytest.fixture(scope="module")
def failed_job(plane):
    error = JobError("source", "access denied for user cdc", "Correct the password.")
    return plane.at_rest("broken", JobState.FAILED, error)


def show(browser, tab):
    browser.find(f"#tab-{tab}").click()


# What is shown
# --------------------------------------------------------------------------------------------------


def test_without_jobs_it_says_how_to_begin_and_a_new_job_appears_by_itself(plane, browser):
    browser.open(plane.url)
    browser.until("No jobs yet")
    assert "sluice submit job.sql" in browser.text("main")
    browser.until("live", "#connection")
    job_id = plane.submit(script(), "first")
    plane.client.stop(job_id)
    assert "No jobs yet" not in browser.until("first", "main table")
    browser.until("Stopped", "main table")
    plane.client.remove(job_id)
    browser.until("No jobs yet")


def test_the_list_names_jobs_with_state_reason_and_hint(plane, browser, copying_job, failed_job):
    browser.open(plane.url)
    browser.until("412,000 of about 1,000,000", "main table")
    text = browser.until("Access denied for user cdc.", "main table")
    for word in ("Copying (41 %)", "Failed", "163,000"):
        assert word in text
    full = browser.run("return [...document.querySelectorAll('.reason')].map((e) => e.title)")
    again = f"Then continue it: sluice jobs resume {failed_job}"
    assert f"Access denied for user cdc. Correct the password. {again}" in full
    names = browser.run(_CELLS, "main tbody tr")
    assert [row[0] for row in names][:2] == ["broken", "copying"]  # trouble first
    browser.find("#search").send_keys("brok")
    browser.wait(lambda: "copying" not in browser.text("main table"), "only the job that fits")
    assert "broken" in browser.text("main table")
    browser.find("#search").send_keys("en like no other")
    browser.until("No job is like that")


def test_a_job_that_copies_says_what_it_waits_for(plane, browser, copying_job):
    browser.open(job_url(plane, copying_job))
    browser.until("Copying (41 %)", ".title")
    why = browser.until('Table "user_info": 412,000 of about 1,000,000 rows are copied', "#why")
    assert '163,000 records of "clicks" wait' in why
    browser.until("All conditions:", "#why")
    assert browser.text("#why .sentence").count("412,000") == browser.text("#why").count("412,000")
    show(browser, "details")
    browser.until("CLOSED", "#valve")
    assert "2 of 4 channels complete" in browser.text("#valve")
    assert "has promised nothing yet (MIN, false)" in browser.text("#valve")
    assert "163,000" in browser.text("#stream")


def test_a_job_moves_from_its_snapshot_to_joining_before_the_eyes(plane, browser):
    job_id = plane.submit(script(), "orders")
    plane.tell(job_id, **copying(250_000))
    browser.open(job_url(plane, job_id))
    browser.until("25 %", ".title")
    browser.run("window.isTheSamePage = true")
    plane.tell(job_id, **copying(780_000))
    browser.until("78 %", ".title")
    plane.tell(job_id, **joining(time.time_ns() // 1_000_000))
    browser.until("Running", ".title")
    browser.wait(lambda: "onditions" not in browser.text("#why"), "a healthy job shows none")
    show(browser, "details")
    valve = browser.until("OPEN", "#valve")
    assert "163,000 records had been held" in valve
    assert valve.count("is in processing time (MIN, true)") >= 4
    show(browser, "tables")
    browser.until("100 %, complete", "#tab-panel")
    show(browser, "history")
    newest = browser.until("Running", "#history tbody tr:first-child")
    assert "every snapshot is complete and committed" in newest
    assert "Running" in browser.driver.title
    assert "orders is Running" in browser.run("return document.querySelector('#spoken').innerText")
    assert browser.run("return window.isTheSamePage")


def test_a_job_that_ends_and_is_removed_says_so(plane, shaken):
    browser = shaken  # what is asked just before the removal is a 404
    job_id = plane.submit(script(), "short")
    browser.open(job_url(plane, job_id))
    browser.until("Starting", ".title")
    plane.client.stop(job_id)
    browser.until("Stopped", ".title")
    plane.client.remove(job_id)
    browser.until("has been removed", "main")
    browser.until("ended", "#connection")


def test_a_stalled_job_shows_causes_hints_and_the_decision_that_it_waits_for(
    plane, browser, stalled_job
):
    browser.open(job_url(plane, stalled_job))
    browser.until("Stalled", ".title")
    text = browser.until("Errors and warnings", "main")
    for told in (
        "removed 5,120 records before they were joined",
        "Decide whether the job goes on without them.",
        "does not answer",
        "Start it, or correct its address",
        f"sluice acknowledge {stalled_job} records-lost",
        "removes held records in 2 h",
        "Dead letters\n17",
    ):
        assert told in text


def test_names_and_errors_of_strangers_are_text(plane, browser, stalled_job):
    browser.open(plane.url)
    browser.until(HOSTILE, "main table")
    browser.open(job_url(plane, stalled_job))
    browser.until("gnp.exe", "#why")
    text = browser.text("main")
    show(browser, "tables")
    text += browser.until(LONG, "#tab-panel")
    assert text.count(HOSTILE) > 5
    assert "\u202e" not in text
    assert "\ufffdgnp.exe" in text
    assert browser.run("return document.images.length") == 1  # our own, in the header
    assert "owned" not in browser.driver.title.replace(HOSTILE, "")


def test_an_unknown_job_is_an_error_with_a_way_back(plane, shaken):
    browser = shaken
    browser.open(job_url(plane, "01234567-89ab-7def-8123-456789abcdef"))
    text = browser.until("does not exist", "main")
    assert "All jobs" in text
    browser.open(f"{plane.url}/#/nothing")
    browser.until("There is no such view")


def test_a_job_in_event_time_shows_each_watermark_and_what_waits_for_it(plane, browser):
    job_id = plane.submit(script(), "as of")
    now_ms = time.time_ns() // 1_000_000
    plane.tell(job_id, **joining(now_ms), event_time=event_time(waiting_rows=11_999))
    browser.open(job_url(plane, job_id))
    browser.until("Data flow", "main")
    show(browser, "details")
    panel = browser.until("11,999 (about 468.8 KiB)", "#event-time")
    assert 'records wait for the watermark of table "rates", partition 0' in panel
    assert "late records\n7" in panel
    assert "open windows" not in panel
    rows = browser.run(_CELLS, "#event-time tbody tr")
    assert [row[:3] for row in rows][1] == ["stream/1", "IDLE", "none yet"]
    assert rows[1][3] == DASH
    assert [row[0] for row in rows] == ["stream/0", "stream/1", "rates/0"]
    browser.until('11,999 records wait for later records of table "rates"', "#why")
    of_windows = joining(now_ms) | {"dimensions": [], "versions_at_open": {}}
    plane.tell(job_id, **of_windows, event_time=windows(watermark_ms=2**63 - 1))
    assert "The output of" not in browser.until("The job joins no table", "#valve")
    panel = browser.until("300 rows of state", "#event-time")
    assert "combined watermark\nMAX, the end of the stream" in panel
    assert "next window is due" in panel
    browser.screen(PHONE)
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE


# Orders
# --------------------------------------------------------------------------------------------------


def buttons(browser):
    script = "return [...document.querySelectorAll('[data-order]')].filter((e) => !e.disabled)"
    return browser.run(f"{script}.map((e) => e.innerText)")


def test_a_job_is_paused_resumed_and_stopped_each_after_a_question(plane, browser):
    job_id = plane.submit(script(), "ordered")
    plane.tell(job_id, **joining(time.time_ns() // 1_000_000))
    browser.open(job_url(plane, job_id))
    browser.until("Running", ".title")
    assert buttons(browser) == ["Pause", "Stop"]
    browser.find("[data-order=stop]").click()
    assert "Its runner ends after the batch" in browser.until("Stop this job?", ".orders")
    focused = "return document.activeElement.dataset.action"
    browser.wait(lambda: browser.run(focused) == "order-no", "No has the focus")
    browser.press(Keys.ESCAPE)
    browser.wait(lambda: "Stop this job?" not in browser.text(".orders"), "no question any more")
    assert plane.client.job(job_id)["desired_state"] == "RUNNING"
    for order, state, then in (
        ("pause", "Paused", ["Resume", "Stop"]),
        ("resume", "Running", ["Pause", "Stop"]),
        ("stop", "Stopped", ["Resume"]),
        ("resume", "Running", ["Pause", "Stop"]),
    ):
        browser.find(f"[data-order={order}]").click()
        browser.until("Yes,", ".orders")
        browser.find("[data-action=order-yes]").click()
        browser.until(state, ".title .state")
        if then != ["Pause", "Stop"]:
            browser.until("by request of the status page", "#why .sentence")
        browser.wait(lambda then=then: sorted(buttons(browser)) == then, f"{then} can be chosen")
        assert "?" not in browser.text(".orders")


ALLOWED = {
    ("JOINING", "RUNNING"): ["pause", "stop"],
    ("STALLED", "RUNNING"): ["pause", "stop"],
    ("JOINING", "PAUSED"): ["resume", "stop"],
    ("PAUSED", "PAUSED"): ["resume", "stop"],
    ("STOPPED", "STOPPED"): ["resume"],
    ("FAILED", "STOPPED"): ["resume"],
    ("FINISHED", "RUNNING"): [],
    ("STOPPED", "REMOVED"): [],
}


def test_only_what_a_state_allows_can_be_ordered(page):
    jobs = [{"state": state, "desired_state": wanted} for state, wanted in ALLOWED]
    body = """
      const names = (may) => Object.keys(may).filter((name) => may[name]);
      return a[0].map((job) => names(m.allowed(job)));
    """
    assert page.call("orders.js", body, jobs) == list(ALLOWED.values())


def test_who_may_only_look_is_told_what_an_order_needs(tmp_path, shaken):
    browser = shaken  # the refusal is in its console
    with control_plane(tmp_path / "data", auth_required=True) as plane:
        tokens = {
            scope: plane.services.store.tokens.create(NewToken("night shift", scope))[1]
            for scope in (TokenScope.VIEWER, TokenScope.OPERATOR)
        }
        with Documents(plane.url, Credentials(tokens[TokenScope.OPERATOR])) as client:
            job_id = client.submit(script(), "watched")["id"]
        browser.open(f"{plane.url}/#/jobs/{job_id}")
        browser.until("This control plane asks for a token", "main")
        browser.find("#token").send_keys(tokens[TokenScope.VIEWER], Keys.ENTER)
        browser.until("watched", ".title")
        browser.find("[data-order=stop]").click()
        browser.until("Yes,", ".orders")
        browser.find("[data-action=order-yes]").click()
        told = browser.until("The order was not carried out", ".orders")
        assert 'has scope "viewer", expected "operator"' in told
        assert "Use a token with scope operator" in told
        browser.find("[data-action=forget]").click()


# How it can be read and used
# --------------------------------------------------------------------------------------------------


def test_nothing_is_cut_off_on_a_phone(plane, browser, stalled_job):
    for address in (plane.url, job_url(plane, stalled_job)):
        browser.screen(PHONE)
        browser.open(address)
        browser.until("Stalled", "main")
        width = "return document.documentElement.scrollWidth"
        assert browser.run(width) <= PHONE
        assert browser.run("return window.innerWidth") == PHONE


def test_the_keyboard_comes_everywhere(plane, browser, copying_job):
    browser.open(plane.url)
    browser.until("copying", "main table")
    assert browser.tab_to(".skip", most=1)
    assert browser.tab_to(f"a[href$='{copying_job}']")
    browser.press(Keys.ENTER)
    browser.until("Copying", ".title")
    browser.wait(lambda: browser.run("return document.activeElement.tagName") == "H1", "focus")
    assert browser.tab_to("#tab-overview", most=60)
    browser.press(Keys.END)
    browser.wait(lambda: browser.run("return document.activeElement.id") == "tab-details", "last")
    browser.press(Keys.ARROW_LEFT)
    browser.until("CREATE TABLE users", "#script pre")
    assert browser.tab_to("#script pre", most=5)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_light_and_dark(plane, browser, stalled_job, scheme):
    browser.scheme(scheme)
    browser.open(job_url(plane, stalled_job))
    browser.until("Stalled", ".title")
    lightness = browser.run(_LIGHTNESS, "body")
    assert lightness < 0.1 if scheme == "dark" else lightness > 0.8
    assert browser.run(_UNREADABLE, SHOWN, CONTRAST) == []


def test_states_of_one_tone_have_shapes_of_their_own(page):
    jobs = [
        {"status": {"word": word, "tone": "rest"}} for word in ("Paused", "Stopped", "Finished")
    ]
    texts = page.call("parts.js", "return a[0].map((job) => m.state(job).textContent[0])", jobs)
    assert len(set(texts)) == 3


def test_states_are_words_and_shapes_not_colours(plane, browser, stalled_job, failed_job):
    browser.open(plane.url)
    browser.until("Failed", "main table")
    words = browser.run(
        "return [...document.querySelectorAll('main .state')].map(e => e.innerText)"
    )
    assert {"▲Stalled", "✕Failed"} <= {"".join(word.split()) for word in words}


# The connection
# --------------------------------------------------------------------------------------------------


def test_a_control_plane_that_goes_and_comes_back_is_told_as_it_is(plane, shaken, copying_job):
    browser = shaken
    browser.open(job_url(plane, copying_job))
    browser.until("live", "#connection")
    browser.until("412,000 of about", "main")
    show(browser, "history")
    plane.stop()
    browser.until("stale since", "#connection")
    text = browser.until("Stale since", "#notice")
    assert "does not answer" in text
    assert "go on without it" in text
    assert "412,000 of about" in browser.text("main")  # what was known stays, and is marked
    plane.tell(copying_job, **copying(650_000))
    plane.start()
    browser.until("live", "#connection")
    browser.until("650,000 of about", "main")
    assert browser.text("#notice") == ""
    sequences = browser.run(
        "return [...document.querySelectorAll('#history tr[data-key]')].map(r => +r.dataset.key)"
    )
    assert sequences == sorted(set(sequences), reverse=True)


def test_a_token_is_asked_for_kept_in_the_tab_and_sent_as_a_header(tmp_path, shaken):
    browser = shaken  # each 401 is in its console
    with control_plane(tmp_path / "data", auth_required=True) as plane:
        wanted = NewToken("night shift", TokenScope.VIEWER)
        token = plane.services.store.tokens.create(wanted)[1]
        browser.open(plane.url)
        browser.until("This control plane asks for a token", "main")
        browser.until("no access", "#connection")
        browser.find("#token").send_keys(f"{token[:-3]}abc", Keys.ENTER)
        browser.until("The token was not accepted", "main")
        assert browser.find("#token").get_property("value") == ""
        browser.find("#token").send_keys(token, Keys.ENTER)
        browser.until("No jobs yet", "main")
        assert browser.driver.get_cookies() == []
        assert browser.run("return localStorage.length") == 0
        assert token not in browser.driver.current_url
        browser.find("[data-action=forget]").click()
        browser.until("This control plane asks for a token", "main")


# Its own rules
# --------------------------------------------------------------------------------------------------

DASH = "\N{EN DASH}"  # what is not known
FORMATS = {
    "count": [([1234567], "1,234,567"), ([None], DASH), ([0], "0")],
    "many": [([1, "record"], "1 record"), ([2000, "record"], "2,000 records")],
    "bytes": [([512], "512 bytes"), ([1536], "1.5 KiB"), ([3 << 40], "3.0 TiB"), ([None], DASH)],
    "duration": [
        ([0], "0 ms"),
        ([-5], "0 ms"),
        ([999], "999 ms"),
        ([59_700], "1 min 0 s"),
        ([7_500_000], "2 h 5 min"),
        ([273_600_000], "3 d 4 h"),
        ([None], DASH),
    ],
    "lasting": [([9_000, 9_284], "1 s"), ([9_000, 8_000], "1 s"), ([0, 59_700], "1 min 0 s")],
    "percent": [
        ([0, 10], 0),
        ([999_999, 1_000_000], 99),
        ([10, 10], 100),
        ([0, 0], 100),
        ([3, None], None),
    ],
    "watermark": [
        ([None], "has not said anything yet"),
        ([{"timestamp_ms": -(2**63), "use_processing_time": False}], "nothing yet (MIN, false)"),
        ([{"timestamp_ms": -(2**63), "use_processing_time": True}], "processing time (MIN, true)"),
        (
            [{"timestamp_ms": 0, "use_processing_time": True}],
            "processing time, as of 1970-01-01T00:00:00.000Z (0, true)",
        ),
        ([{"timestamp_ms": 2**63 - 1, "use_processing_time": False}], "has ended (MAX, false)"),
        (
            [{"timestamp_ms": 0, "use_processing_time": False}],
            "up to 1970-01-01T00:00:00.000Z (0, false)",
        ),
    ],
    "plain": [(["a\u202eb\x1b[31m\nc"], "a\ufffdb\ufffd[31m\nc"), ([None], "")],
    "utc": [([None], None), ([1e300], None), ([0], "1970-01-01T00:00:00.000Z")],
}


def test_values_are_shown_as_people_read_them(page):
    for name, cases in FORMATS.items():
        given = [arguments for arguments, _ in cases]
        found = page.call("format.js", f"return a[0].map((x) => m.{name}(...x))", given)
        for (arguments, expected), answer in zip(cases, found, strict=True):
            is_part = name == "watermark"
            assert answer.endswith(expected) if is_part else answer == expected, (name, arguments)


def test_times_are_local_or_in_utc(plane, browser):
    zone = {"timezoneId": "Asia/Kolkata"}
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", zone)
    clock = "return [m.clock(0, 0), m.clock(0, 86400000), m.clock(8.64e15, 0)]"
    try:
        browser.open(plane.url)
        browser.until("Times are local (Asia", "#foot")
        local = ["05:30:00", "1970-01-01 05:30:00", "+275760-09-13 00:00:00"]
        assert browser.call("format.js", clock) == local
        browser.find("[data-action=zone]").click()
        browser.until("Times are UTC.", "#foot")
        browser.open(plane.url)
        browser.until("Times are UTC.", "#foot")
        assert browser.call("format.js", clock)[:2] == ["00:00:00", "1970-01-01 00:00:00"]
        browser.find("[data-action=zone]").click()
        browser.until("Times are local", "#foot")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_a_patched_view_is_the_view_that_was_wanted(page):
    chosen = random.Random(7)

    def tree(depth):
        keys = [key for key in chosen.sample("abcdef", 6) if chosen.random() < 0.6]
        keys += chosen.sample(["a", None, None], 2)
        return [
            [
                chosen.choice(["p", "div"]),
                {"data-key": key, "class": chosen.choice(["x", None])},
                chosen.choice(["", "one", "two"]),
                tree(depth - 1) if depth else [],
            ]
            for key in keys
        ]

    body = """
      const make = ([tag, given, text, inner]) => m.h(tag, given, text || null, inner.map(make));
      const [shown, fresh] = [document.createElement("div"), document.createElement("div")];
      return a[0].map((tree) => {
        m.show(shown, tree.map(make));
        fresh.replaceChildren(...tree.map(make));
        return shown.isEqualNode(fresh);
      });
    """
    found = page.call("dom.js", body, [tree(2) for _ in range(100)])
    assert found == [True] * 100


STREAM = (
    ": hello\r\nid: 7\nevent: status\ndata: {\ndata:  }\n\n"
    "retry: 2000\rdata: é\r\r\n\r\nid: 9\n\ndata"
)


def test_events_are_read_the_same_wherever_the_stream_is_cut(page):
    cut = """
      const found = a[1].map((at) => {
        const events = [];
        const parser = new m.EventParser((event) => events.push(event));
        for (const piece of [a[0].slice(0, at), "", a[0].slice(at)]) parser.feed(piece);
        return JSON.stringify([events, parser.lastEventId, parser.retryMs]);
      });
      return [...new Set(found)];
    """
    found = page.call("stream.js", cut, STREAM, list(range(len(STREAM) + 1)))
    status = '{"event":"status","data":"{\\n }","id":"7"}'
    assert found == [f'[[{status},{{"event":"message","data":"é","id":"7"}}],"9",2000]']


def test_the_way_of_a_job_is_told_from_its_history(page):
    past = [
        {"to": name, "at_ms": at} for at, name in enumerate(("STARTING", "SNAPSHOT", "STALLED"))
    ]
    body = "return m.steps(a[0], a[1]).map((step) => `${step.name} ${step.place}`)"
    found = page.call("details.js", body, past, {"state": "STALLED", "phase": "LOAD"})
    expected = ["STARTING done", "SNAPSHOT done", "CATCHING_UP ahead", "JOINING ahead"]
    assert found == [*expected, "STALLED now"]
    joined = {"state": "JOINING", "phase": "JOIN", "dimensions": [{}]}
    found = page.call("details.js", body, past, joined)
    assert found == ["STARTING done", "SNAPSHOT done", "CATCHING_UP done", "JOINING now"]


def test_a_job_that_joins_no_table_copies_none_on_its_way(page):
    body = "return m.steps(a[0], a[1]).map((step) => `${step.name} ${step.place}`)"
    found = page.call("details.js", body, [], {"state": "JOINING", "phase": "JOIN"})
    assert found == ["STARTING done", "JOINING now"]


# what a runner has told → whether the page says that no table is joined
TOLD = {
    "nothing_yet": ({"phase": "LOAD", "report": {}, "probe": None, "dimensions": []}, False),
    "a_stream_alone": ({"phase": "LOAD", "report": {}, "probe": {}, "dimensions": []}, True),
    "a_table": ({"phase": "LOAD", "report": {}, "probe": {}, "dimensions": [{}]}, False),
}


@pytest.mark.parametrize(("job", "says"), TOLD.values(), ids=TOLD)
def test_a_job_joins_no_table_once_its_runner_has_told_so(page, job, says):
    assert page.call("progress.js", "return m.joinsNothing(a[0])", job) is says


LAGS = {
    "none": ({"lag_records": 0}, "0"),
    "some": ({"lag_records": 3}, "at most 3"),
    "exact": ({"lag_records": 3, "held_is_upper_bound": False}, "3"),
}


@pytest.mark.parametrize(("told", "shown"), LAGS.values(), ids=LAGS)
def test_a_lag_is_a_number_once(page, told, shown):
    body = """
      const panel = m.probe({ phase: "JOIN", probe: a[0] });
      return panel.querySelector("[data-key=lag] dd").textContent;
    """
    assert page.call("progress.js", body, {"topic": "t", **told}) == shown


def test_counts_add_up_and_each_has_its_meaning(page):
    # of INNER JOIN and WHERE: fewer rows than records
    told = {"joined_records": 3, "matched": 4, "unmatched": 2, "dead_letters": 0}
    found = page.call("job.js", "return m.counts(a[0], null)", told)
    assert {name: number for name, number, _ in found} == {
        "matched": 4,
        "unmatched": 2,
        "rows out": 3,
        "dead letters": 0,
    }
    meanings = {name: meaning for name, _, meaning in found}
    assert "Records" in meanings["matched"]
    assert "INNER JOIN" in meanings["unmatched"]
    told |= {"dead_letters": 6, "open_dead_letters": 3}
    told |= {"replayed_dead_letters": 2, "discarded_dead_letters": 1}
    found = page.call("job.js", "return m.counts(a[0], null)", told)
    letters = {name: number for name, number, _ in found if "letters" in name}
    assert letters == {
        "dead letters": 6,
        "open dead letters": 3,
        "replayed dead letters": 2,
        "discarded dead letters": 1,
    }
    assert all(meaning.endswith(".") for _, _, meaning in found)


SPANS = {
    "young": ([75_000, 76_000], 60_000, 0, 75_000),
    "younger_than_what_is_drawn": ([190_000], 0, 0, 80_000),
    "old": ([0, 10_000, 20_000], 10_000, 1, 10_000),
    "nothing_known": ([], 0, 0, 80_000),
}


@pytest.mark.parametrize(("points", "since", "first", "start"), SPANS.values(), ids=SPANS)
def test_charts_begin_with_what_is_known(page, points, since, first, start):
    past = {"at_ms": points, "series": {"a": points}, "transitions": [{"at_ms": 1}]}
    found = page.call("job_data.js", "return m.within(a[0], a[1], 200000)", past, since)
    assert found["span"] == {"fromMs": start, "toMs": 200_000}
    assert found["at_ms"] == found["series"]["a"] == points[first:]
    assert found["transitions"] == ([{"at_ms": 1}] if start <= 1 else [])


BROKEN = {
    "stream": ({"stalls": [{"part": "kafka", "place": "stream"}]}, {"source": "warn"}),
    "table": ({"stalls": [{"part": "source users", "place": "table"}]}, {"table-0": "warn"}),
    "other_table": ({"stalls": [{"part": "source items", "place": "table"}]}, {}),
    "table_too_old": (
        {"holding": {"state": "HOLDING", "tables": [{"table": "users"}]}},
        {"table-0": "warn", "valve": "warn"},
    ),
    "changelog": (
        {"stalls": [{"part": "changelog", "place": "changelog"}]},
        {"channels-0": "warn"},
    ),
    "output": ({"stalls": [{"part": "stream", "place": "output"}]}, {"sink": "warn"}),
    "batches": ({"stalls": [{"part": "probe", "place": "batches"}]}, {"batches": "warn"}),
    "not_known": ({"stalls": [{"part": "opening", "type": "kafka", "place": None}]}, {}),
    "failed": ({"state": "FAILED", "error": {"place": "output"}}, {"sink": "bad"}),
    "failed_somewhere": ({"state": "FAILED", "error": {"type": "kafka"}}, {"batches": "bad"}),
    "dead_letters_are_a_badge": ({"probe": {"topic": "t", "dead_letters": 2}}, {}),
    "settled_dead_letters_are_none": (
        {"probe": {"topic": "t", "dead_letters": 2, "open_dead_letters": 0}},
        {},
    ),
}


@pytest.mark.parametrize(("told", "tones"), BROKEN.values(), ids=BROKEN)
def test_the_broken_part_of_the_picture_has_the_colour(page, told, tones):
    body = "return m.flowParts(a[0], {}, { tables: 3 }).parts.map((p) => [p.id, p.tone, p.badge])"
    table = {"name": "users", "snapshot": {"rows_done": 1, "rows_total": 2}, "channels": []}
    job = {"phase": "JOIN", "probe": {"topic": "t"}, "dimensions": [table], **told}
    parts = page.call("flow_parts.js", body, job)
    assert {name: tone for name, tone, _ in parts if tone in ("warn", "bad")} == tones
    letters = job["probe"].get("open_dead_letters", job["probe"].get("dead_letters"))
    badges = [badge for _, _, badge in parts if badge]
    assert badges == ([f"{letters} dead letters"] if letters else [])


def test_before_the_first_report_the_picture_is_that_of_the_script(page):
    body = "return m.flowParts(a[0], {}, { tables: 3 }).parts.map((p) => [p.id, p.title])"
    inputs = [
        {"table": "clicks", "connector": "kafka", "place": "raw.clicks"},
        {"table": "users", "connector": "mysql-cdc", "place": "db:3306/shop.users"},
    ]
    parts = dict(page.call("flow_parts.js", body, {"phase": None, "inputs": inputs}))
    assert parts["source"] == "raw.clicks"
    assert parts["table-0"] == "users"
    generated = [{"table": "numbers", "connector": "datagen", "place": None}]
    parts = dict(page.call("flow_parts.js", body, {"phase": None, "inputs": generated}))
    assert (parts["source"], "table-0" in parts, "valve" in parts) == ("numbers", False, False)


FILES = {
    "some": ({"rows_read": 3, "seconds_left": 120}, "files 25 %, 2 min 0 s left"),
    "no_pace_yet": ({"rows_read": 0, "seconds_left": None}, "files 0 %"),
    "all": ({"rows_read": 12, "seconds_left": None}, "behind 12 rows of files"),
}


@pytest.mark.parametrize(("read", "says"), FILES.values(), ids=FILES)
def test_a_stream_of_files_and_a_topic_shows_how_far_it_is_and_the_seam(page, read, says):
    body = "return m.flowParts(a[0], {}, { tables: 3 }).parts.find((p) => p.id == 'source').lines"
    history = {"place": "history:t/0", "rows": 12, **read}
    job = {"phase": "JOIN", "probe": {"topic": "t", "lag_records": 9, "history": history}}
    assert page.call("flow_parts.js", body, job) == ["9 to process", says]


def test_charts_tell_of_a_job_what_its_figures_tell_and_wait_for_no_table_without_one(
    plane, browser
):
    browser.open(plane.url)
    draw = """
      const numbers = {
        at_ms: [0, 10_000], step_s: 10, span: { fromMs: 0, toMs: 10_000 }, transitions: [],
        series: { records_per_s: [1, 1], lag_records: [2, 2], held_records: [5, 0] },
      };
      const known = m.withLive(numbers, a[0], 15_000);
      const watch = { job: a[0], numbers: known, history: [], range: "hour", cursorMs: a[1] };
      document.querySelector("main").append(m.numbers(watch));
      return document.querySelector("#numbers").innerText;
    """
    job = {
        "state": "JOINING",
        "phase": "JOIN",
        "report": {"is_live": True},
        "probe": {"topic": "t", "records_per_s": 7, "lag_records": 9},
    }
    for cursor_ms, rate, lag in ((None, 7, 9), (0, 1, 2)):
        browser.open(plane.url)
        text = browser.call("numbers.js", draw, job, cursor_ms)
        assert f"records read {rate}/s" in text
        assert f"not processed yet {lag}" in text
        assert "tables are copied" not in text
    browser.open(plane.url)
    table = {"name": "users", "snapshot": {}, "channels": []}
    text = browser.call("numbers.js", draw, {**job, "dimensions": [table]}, None)
    assert "held until the tables are copied" in text


AGES = {
    "proven": ({"freshness": {"as_of_ms": 9_360}}, "640 ms old"),
    "by_a_clock_that_is_ahead": ({"freshness": {"as_of_ms": 10_040}}, "0 ms old"),
    "not_proven_yet": ({"freshness": {"as_of_ms": None}}, ""),
    "unknown": ({"freshness": None}, ""),
}


@pytest.mark.parametrize(("of_table", "label"), AGES.values(), ids=AGES)
def test_a_table_is_as_old_as_its_source_proves_and_not_as_its_newest_change(page, of_table, label):
    body = """
      const { edges } = m.flowParts(a[0], {}, { tables: 3, nowMs: 10_000 });
      return edges.find(({ to }) => to === "index-0").label;
    """
    table = {"name": "users", "snapshot": {}, "channels": [], "binlog_delay_ms": 9, **of_table}
    probe = {"topic": "t", "freshness_ms": {"users": 3_600_000}}
    job = {"phase": "JOIN", "report": {"is_live": True}, "probe": probe, "dimensions": [table]}
    assert page.call("flow_parts.js", body, job) == label


LIVE = {"report": {"is_live": True}, "probe": {"records_per_s": 7, "rows_per_s": 6}}
# job, time of its report → newest numbers (records, rows, changes a second), and their time
NEWEST = {
    "the_report": (LIVE, 15_000, [7, 6, 4], 15_000),
    "what_a_late_report_lacks_is_unknown": (LIVE, 100_000, [7, 6, None], 100_000),
    "a_report_that_is_not_live": (
        {**LIVE, "report": {"is_live": False}},
        15_000,
        [1, 2, 4],
        10_000,
    ),
    "an_older_report": (LIVE, 10_000, [1, 2, 4], 10_000),
    "no_report": ({}, None, [1, 2, 4], 10_000),
}


@pytest.mark.parametrize(("job", "at_ms", "numbers", "newest_ms"), NEWEST.values(), ids=NEWEST)
def test_the_newest_report_is_the_last_point_of_the_charts(page, job, at_ms, numbers, newest_ms):
    body = """
      const series = { records_per_s: [1, 1], rows_per_s: [2, 2], changes_per_s: [4, 4] };
      const past = { at_ms: [0, 10_000], step_s: 10, span: { fromMs: 0, toMs: 10_000 }, series };
      const known = m.withLive(past, a[0], a[1]);
      const { records_per_s, rows_per_s, changes_per_s } = m.newest(known);
      return [[records_per_s, rows_per_s, changes_per_s], known.at_ms.at(-1), known.span.toMs];
    """
    assert page.call("numbers.js", body, job, at_ms) == [numbers, newest_ms, newest_ms]


def test_the_top_of_a_chart_is_more_than_nothing(page):
    body = """
      const series = { lag_records: [0.2, 0] };
      const numbers = { at_ms: [0, 10_000], step_s: 10, span: { fromMs: 0, toMs: 10_000 }, series };
      const known = { ...numbers, transitions: [] };
      const watch = { job: {}, numbers: known, history: [], range: "hour", cursorMs: null };
      return m.numbers(watch).querySelector(".top-of").textContent;
    """
    assert page.call("numbers.js", body) == "0.2"


def test_a_copy_that_is_complete_is_not_drawn_as_one_that_goes_on(page):
    body = """
      const series = { copied_rows_per_s: [9, 9], table_lag_records: [8, 8] };
      const past = { at_ms: [0, 10_000], step_s: 10, span: { fromMs: 0, toMs: 10_000 }, series };
      const { copied_rows_per_s, table_lag_records } = m.newest(m.withLive(past, a[0], 15_000));
      return [copied_rows_per_s, table_lag_records];
    """
    tables = [{"evidence": "in_band_watermark", "lag_records": 3}, {"evidence": None}]
    whole = {"report": {"is_live": True}, "dimensions": tables[:1]}
    assert page.call("numbers.js", body, whole) == [0, 3]
    assert page.call("numbers.js", body, {**whole, "dimensions": tables}) == [9, 3]


def test_figures_picture_and_charts_show_the_same_rates(plane, browser):
    job_id = plane.submit(script(), "one number")
    plane.tell(job_id, **joining(1_700_000_000_000, records_per_s=1_250, rows_per_s=1_100))
    plane.client.when(job_id, state="JOINING")
    browser.open(job_url(plane, job_id))
    for rate, figure, edge, line in (
        ("1,250", "Rate in", "1,250 records/s", "records read"),
        ("1,100", "Rate out", "1,100 rows/s", "rows written"),
    ):
        assert f"{rate}/s" in browser.until(f"{rate}/s", f"[data-figure='{figure}']")
        assert edge in browser.until(edge, "#flow")
        assert f"{line} {rate}/s" in browser.until(f"{line} {rate}/s", "#numbers")


def test_both_rates_of_a_job_that_has_ended_are_told_alike(page):
    body = "return Object.fromEntries(m.known(a[0], a[1], 0).map(([name, text]) => [name, text]))"
    series = {"records_per_s": [5, 0], "rows_per_s": [5, 0]}
    last = {"at_ms": [0, 10_000], "span": {"toMs": 10_000}, "step_s": 10, "series": series}
    figures = page.call("figures.js", body, {"phase": "JOIN", "probe": {"topic": "t"}}, last)
    assert (figures["Rate in"], figures["Rate out"]) == ("0/s", "0/s")


HELD = {
    "broker_away": {"state": "STALLED", "stalls": [{"part": "kafka", "place": "stream"}]},
    "table_too_old": {"state": "JOINING", "holding": {"state": "HOLDING", "tables": []}},
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
def test_nothing_passes_while_the_stream_is_not_read(page, held):
    body = "return Object.fromEntries(m.known(a[0], null, 0).map(([name, text]) => [name, text]))"
    table = {"name": "users", "snapshot": {"rows_done": 1, "rows_total": 1}, "channels": []}
    probe = {"topic": "t", "records_per_s": 9, "batch_stages_ms": {"a": 1, "b": 2}}
    job = {"phase": "JOIN", "probe": probe}
    figures = page.call("figures.js", body, job)
    assert (figures["Rate in"], figures["Batch time"]) == ("9/s", "3 ms")
    assert "As of" not in figures  # of a job without tables
    assert page.call("figures.js", body, {**job, **held})["Rate in"] == DASH
    edges = "return m.flowParts(a[0], a[1], { tables: 3 }).edges.map((e) => e.label).join()"
    rates = {"records_per_s": 9, "rows_per_s": 8}
    joined = {**job, "state": "JOINING", "dimensions": [table]}
    assert "9 records/s" in page.call("flow_parts.js", edges, joined, rates)
    assert "/s" not in page.call("flow_parts.js", edges, {**joined, **held}, rates)


def test_warnings_with_one_hint_show_it_once(page):
    found = [("a", "one", "Do it."), ("b", "two", "Do that."), ("a", "three", "Do it.")]
    warnings = [dict(zip(("type", "message", "hint"), each, strict=True)) for each in found]
    assert page.call("job.js", "return m.byHint(a[0])", warnings) == [
        {"type": "a", "message": ["one", "three"], "hint": "Do it."},
        {"type": "b", "message": ["two"], "hint": "Do that."},
    ]


def test_a_table_that_stands_still_is_told_beside_a_stream_that_is_joined(plane, browser):
    job_id = plane.submit(script(), "half")
    down = {
        "type": "source-unavailable",
        "message": "database does not answer",
        "hint": "Start it.",
        "choices": [],
    }
    told = joining(1_700_000_000_000) | {
        "state": "STALLED",
        "stalls": [{"part": "source items", **down}],
        "error": down,
    }
    plane.tell(job_id, **told)
    plane.client.when(job_id, state="STALLED")
    browser.open(job_url(plane, job_id))
    text = browser.until("records are joined with the rows that are there", "#why")
    assert text.startswith('Table "items": database does not answer.')
    assert text.count("Start it.") == 1
    assert browser.text("#problems") == ""
    tone = "return document.querySelector('#flow [data-key=table-1]').getAttribute('class')"
    assert browser.run(tone) == "part warn"
    assert "146" in browser.text("[data-figure=Waiting]")


def test_numbers_of_a_moment_are_absent_without_a_runner_that_tells_them(plane, browser):
    job_id = plane.submit(script(), "gone")
    plane.tell(job_id, **joining(1_700_000_000_000))
    plane.client.when(job_id, state="JOINING")
    plane.client.stop(job_id)
    plane.client.when(job_id, state="STOPPED")
    browser.open(job_url(plane, job_id))
    browser.until("the runner's last report", "#why")
    moving = "return document.querySelectorAll('#flow .moves, #flow .part.good').length"
    assert browser.run(moving) == 0
    show(browser, "output")
    browser.until("201,455", "#counts")
    show(browser, "details")
    text = browser.until("newest batch", "#stream")
    assert "lag" not in text


def test_batches_are_shown_with_their_pin_and_counts(page):
    pin = {"batch": 4, "versions": {HOSTILE: 12, "users": 3}, "batch_timestamp_ms": 1_000}
    counts = {"joined": 4_998, "dead_letters": 2}
    done = {"batch": 4, "pin": pin, "records": 5_000, "counts": counts, "committed": True}
    bare = {"batch": 5, "pin": {"batch": 5}, "records": None, "committed": None, "counts": None}
    body = """
      const node = m.batches({ batches: a[0], batchesAtMs: 2000, nowMs: 2000 });
      return [...node.querySelectorAll("tbody tr")].map((row) =>
        [...row.children].map((cell) => cell.innerText || cell.textContent));
    """
    newest, older = page.call("batches.js", body, [bare, done])
    assert [newest[0], *newest[2:]] == ["5", DASH, DASH, DASH, DASH, "not known"]
    assert [older[0], *older[2:5]] == ["4", "5,000", "4,998", "2"]
    assert older[5:] == [f"{HOSTILE} 12, users 3", "✓yes"]


def test_the_pace_of_a_copy_is_told_once_it_is_known(page):
    body = """
      const pace = new m.Pace();
      for (const [rows, at] of a[0]) pace.note({ rows_done: rows, rows_total: 1000 }, at);
      return pace.view();
    """
    assert page.call("pace.js", body, [[0, 0]]) == {}
    found = page.call("pace.js", body, [[0, 0], [100, 5000]])
    assert found == {"rowsPerSecond": 20, "leftMs": 45_000}
    assert page.call("pace.js", body, [[900, 0], [0, 5000]]) == {}  # copied again
    assert page.call("pace.js", body, [[0, 0], [1000, 5000]]) == {}


_CELLS = """
  return [...document.querySelectorAll(arguments[0])].map((row) =>
    [...row.children].map((cell) => cell.innerText.trim()));
"""
_LUMINANCE = """
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [r, g, b] = rgb(colour).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
"""
_LIGHTNESS = f"""{_LUMINANCE}
  return luminance(getComputedStyle(document.querySelector(arguments[0])).backgroundColor);
"""
_UNREADABLE = f"""{_LUMINANCE}
  const ground = (node) => {{
    for (; node; node = node.parentElement) {{
      const colour = getComputedStyle(node).backgroundColor;
      if (rgb(colour)[3] > 0) return colour;
    }}
    return "white";
  }};
  const own = (node) => [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const found = [...document.querySelectorAll(arguments[0])]
    .filter((node) => own(node) && node.checkVisibility());
  return found.map((node) => {{
    const [a, b] = [luminance(getComputedStyle(node).color), luminance(ground(node))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.outerHTML.slice(0, 100)];
  }}).filter(([ratio]) => ratio < arguments[1]);
"""
