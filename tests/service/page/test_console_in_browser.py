"""The page as a console: what was, what moves, and what can be done there."""

import json
import math
import time

import pytest
from selenium.webdriver.common.keys import Keys

from service.jobs.store.layout import JobLayout
from service.sql.planner.planner import plan_script
from tests.support.axe import axe_source, violations
from tests.support.control_plane import control_plane, script
from tests.support.documents import Documents
from tests.support.page_jobs import HOSTILE, copying, joining, stalled
from tests.support.page_plane import job_url, remember

pytestmark = pytest.mark.matrix

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
        as_of_age_ms=700,
        latency_ms=400,
    )
    plane.client.when(job_id, state="JOINING")
    return job_id


# What was
# --------------------------------------------------------------------------------------------------


def test_an_hour_or_a_day_is_drawn_with_gaps_marks_and_a_table_that_says_the_same(
    plane, browser, joining_job
):
    browser.open(job_url(plane, joining_job))
    text = browser.until("Throughput", "#numbers")
    for title in ("Records that wait", "Time of a batch by stage", "Latency and age"):
        assert title in text
    # A series without history is not drawn, but the live samples may have given it a few points.
    drawn = [path for path in browser.run(_PATHS) if path.count("L") > 100]
    assert len(drawn) == 5
    areas = browser.run("return document.querySelectorAll('#numbers .area').length")
    assert areas == 2  # join and commit
    # The gap stays one; live samples that come late add one to every series.
    parts = [path.count("M") for path in drawn]
    assert max(parts) > min(parts)
    assert "Bands:" in text
    assert "Starting" in browser.text("[data-key=bands]")
    assert browser.run("return document.querySelectorAll('#numbers .band.good').length") == 4
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
    browser.until("records read 1,1", "#numbers")  # about 54 minutes ago: 800 + 3240 / 10
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


def test_lines_break_where_nothing_is_known(page):
    body = "return a[0].map(([v, at]) => m.path(v, at, 1, (x) => x, (y) => y))"
    drawn = page.call("chart.js", body, [case[:2] for case in PATHS.values()])
    assert drawn == [case[2] for case in PATHS.values()]
    body = "return a[0].map(m.rounded)"
    assert page.call("chart.js", body, [0, 1, 3, 7, 12, 100, 0.3]) == [1, 1, 5, 10, 20, 100, 0.5]


STACKS = {
    "two": ([[1, 2], [3, 4]], [[1, 2], [4, 6]]),
    "one_is_unknown": ([[1, None], [3, 4]], [[1, 0], [4, 4]]),
    "nothing_known": ([[None], [None]], [[None], [None]]),
}


def test_stages_of_a_batch_are_stacked(page):
    body = "return a[0].map((lists) => m.stacked(lists).map(({ upper }) => upper))"
    found = page.call("chart.js", body, [lists for lists, _ in STACKS.values()])
    assert found == [uppers for _, uppers in STACKS.values()]
    body = "return m.area(a[0], a[1], [0, 1, 5], 1, (x) => x, (y) => y)"
    drawn = page.call("chart.js", body, [0, 0, 1], [2, 3, 4])
    assert drawn == "M0.0 0.0L0.0 2.0L1.0 3.0L1.0 0.0L0.0 0.0ZM5.0 1.0L5.0 4.0L7.0 4.0L7.0 1.0Z"


def test_states_are_bands_from_one_transition_to_the_next(page):
    past = [
        {"at_ms": 50, "from": "STARTING", "to": "SNAPSHOT", "word": "Copying"},
        {"at_ms": 150, "from": "SNAPSHOT", "to": "JOINING", "word": "Running"}
        | {"word_before": "Copying"},
        {"at_ms": 180, "from": "JOINING", "to": "STALLED", "word": "Stalled"},
    ]
    body = "return m.bands(a[0], a[1]).map((b) => [b.fromMs, b.toMs, b.tone, b.word])"
    found = page.call("chart.js", body, past, {"fromMs": 100, "toMs": 200})
    assert found == [
        [100, 150, "busy", "Copying"],
        [150, 180, "good", "Running"],
        [180, 200, "warn", "Stalled"],
    ]
    found = page.call("chart.js", body, past[1:], {"fromMs": 100, "toMs": 200})
    assert found[0] == [100, 150, "busy", "Copying"]


def test_the_legend_names_the_states_of_each_colour_of_the_bands(page):
    body = """
      const past = a[0].map(([at_ms, from, to, word, word_before]) =>
        ({ at_ms, from, to, word, word_before }));
      const legend = m.legendOf(m.bands(past, { fromMs: 0, toMs: 200 }));
      const names = (each) => [each.className, each.innerText];
      return legend && [...legend.querySelectorAll(".state")].map(names);
    """
    running = [[50, "JOINING", "JOINING", "Running", "Running"]]
    assert page.call("chart.js", body, running) is None, "a healthy job has no bands"
    past = [
        [10, "CREATED", "STARTING", "Starting", "Created"],
        [50, "STARTING", "SNAPSHOT", "Copying"],
        [100, "SNAPSHOT", "JOINING", "Running"],
        [150, "JOINING", "PAUSED", "Paused"],
        [180, "PAUSED", "STARTING", "Starting"],
    ]
    assert page.call("chart.js", body, past) == [
        ["state busy", "Created, Starting, Copying"],
        ["state rest", "Paused"],
    ]


# What moves
# --------------------------------------------------------------------------------------------------


def test_each_part_of_the_picture_leads_to_what_is_behind_it(plane, browser, joining_job):
    browser.open(job_url(plane, joining_job))
    text = browser.until("Passing", "#flow")
    for part in ("user_info", "items", "Copy complete", "version 23", "batch 41", "enriched"):
        assert part in text
    browser.run("document.querySelector('#flow [data-key=valve]').focus()")
    browser.press(Keys.ENTER)
    focused = "return document.activeElement.id"
    browser.wait(lambda: browser.run(focused) == "valve-title", "the valve's panel")
    assert browser.driver.current_url == job_url(plane, joining_job)


RATES = {"records_per_s": [882.4], "rows_per_s": [750], "changes_per_s": [0]}
_DRAWN = """
  const numbers = { at_ms: [a[1]], step_s: 10, span: { toMs: a[1] }, series: a[2] };
  document.querySelector("main").append(m.flow({ job: a[0], numbers }));
  const moving = [...document.querySelectorAll(".edge.moves")];
  return [document.querySelector("main").innerText, moving.map((one) => one.parentNode.dataset.key),
    [...new Set(moving.map((one) => getComputedStyle(one).animationName))]];
"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_what_passes_moves_unless_less_motion_is_asked_for(plane, browser, motion):
    features = [{"name": "prefers-reduced-motion", "value": motion}]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.open(plane.url)
    browser.until("New job", "main")
    job = {**joining(1), "id": "x", "name": "x"}
    text, moving, animations = browser.call("flow.js", _DRAWN, job, 1, RATES)
    assert "882 records/s" in text
    assert "750 rows/s" in text
    assert {"source-valve", "valve-batches", "batches-sink"} <= set(moving)
    assert not any(key.startswith("table-") for key in moving)
    assert animations == (["none"] if motion == "reduce" else ["passing"])


def test_a_closed_valve_holds_what_waits(plane, browser):
    job_id = plane.submit(script(), "held back")
    plane.tell(job_id, **copying(412_000))
    browser.open(job_url(plane, job_id))
    browser.until("163,000 wait", "#flow")
    browser.until("Copy 41 %", "#flow")
    browser.until("Waiting", "#flow")
    assert browser.run("return document.querySelectorAll('#flow .edge.moves').length") == 0


def test_a_job_without_tables_is_drawn_without_them(page):
    body = """
      const { parts, edges } = m.flowParts(a[0], {}, { tables: 3 });
      return [parts.map((part) => part.id), edges.map(({ from, to }) => `${from} ${to}`)];
    """
    alone = {"phase": "JOIN", "probe": {"topic": "t"}, "dimensions": []}
    drawn = page.call("flow_parts.js", body, alone)
    assert drawn == [["source", "batches", "sink"], ["source batches", "batches sink"]]
    tables = [
        {"name": str(n), "snapshot": {"rows_done": 1, "rows_total": 2}, "channels": []}
        for n in range(9)
    ]
    ids, _ = page.call("flow_parts.js", body, {**alone, "dimensions": tables})
    assert len(ids) == 3 * 3 + 4  # what is too much shares a lane


# What can be done
# --------------------------------------------------------------------------------------------------


def test_a_decision_is_made_where_it_is_asked_for(tmp_path, shaken):
    browser = shaken  # at the end the control plane is gone
    with control_plane(tmp_path / "data") as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "lost")["id"]
        browser.open(f"{plane.url}/#/jobs/{job_id}")
        browser.until("Decision required", "#why")
        browser.find(".decision [name=reason]").send_keys("not needed", Keys.ENTER)
        browser.until("It is acknowledged.", ".orders")
        browser.find("#tab-history").click()
        row = browser.until("not needed", "#decisions")
        assert "status page" in row
        assert "records-lost continue" in row
        browser.until("Running", ".title .state")


def test_the_list_says_what_passes_what_waits_and_where_it_goes(plane, browser, joining_job):
    browser.open(plane.url)
    row = f"tr[data-key='{joining_job}']"
    browser.until("/s", f"{row} [data-head=Rate]")
    assert browser.text(f"{row} [data-head=Waiting]") == "146"
    assert browser.text(f"{row} [data-head='Dead letters']") == "0"
    assert "enriched" in browser.text(f"{row} [data-head=Output]")
    assert "M" in browser.run(
        "return document.querySelector(arguments[0]).getAttribute('d')", f"{row} .spark path"
    )


def test_jobs_that_share_a_topic_or_a_table_are_one_picture(plane, browser):
    def job(name, reads, writes, **more):
        ends = {"sinks": [{"connector": "kafka", "place": topic} for topic in writes]}
        inputs = [{"connector": kind, "place": place} for kind, place in reads]
        return {"id": name, "name": name, "state": "JOINING", **ends, "inputs": inputs, **more}

    jobs = [
        job("enrich", [("kafka", "clicks"), ("shared", "users-job")], ["enriched"]),
        job("count", [("kafka", "enriched"), ("mysql-cdc", "db/shop.items")], ["counts"]),
        job("users-job", [("mysql-cdc", "db/shop.users")], [], shared_table="users"),
        job("items-again", [("mysql-cdc", "db/shop.items"), ("kafka", "other")], []),
        job("alone", [("kafka", "lonely")], ["nowhere"]),
        job("circle", [("kafka", "counts")], ["clicks"]),
    ]
    browser.open(plane.url)
    body = "const g = m.graphOf(a[0]); return [g.nodes, g.edges.map((e) => `${e.from} ${e.to}`)]"
    nodes, edges = browser.call("jobs_graph.js", body, jobs)
    titles = {node["title"] for node in nodes}
    assert titles == {
        *("enrich", "count", "users-job", "items-again", "circle"),
        *("enriched", "counts", "clicks", "db/shop.items"),
    }
    assert sorted(edges) == sorted(
        [
            *("users-job enrich", "enrich topic enriched", "topic enriched count"),
            *("count topic counts", "topic counts circle", "circle topic clicks"),
            *(
                "topic clicks enrich",
                "table db/shop.items count",
                "table db/shop.items items-again",
            ),
        ]
    )
    places = [(node["column"], node["row"]) for node in nodes]
    assert len(set(places)) == len(places)
    assert browser.call("jobs_graph.js", "return m.graphOf(a[0]).nodes", jobs[4:5]) == []
    names = {
        "db/shop.items": "db/shop.items",
        "db-1.example.com:3306/shop.items": "shop.items",
        "s3://lake/warehouse/enriched/": "enriched/",
        "a_topic_with_a_long_name": "a_topic_with_a_long…",
    }
    assert browser.call("jobs_graph.js", "return a[0].map(m.short)", [*names]) == [*names.values()]


@pytest.mark.parametrize("width", [PHONE, 768, 1000, 1280])
def test_no_view_is_wider_than_its_screen(plane, browser, joining_job, width):
    job_id = plane.submit(script(), "strange names")
    plane.tell(job_id, **stalled())
    plane.client.when(job_id, state="STALLED")
    for address in (plane.url, job_url(plane, joining_job), job_url(plane, job_id)):
        browser.screen(width)
        browser.open(address)
        browser.until("enriched" if address == job_url(plane, joining_job) else HOSTILE, "main")
        assert browser.run("return document.documentElement.scrollWidth") <= width


# A script
# --------------------------------------------------------------------------------------------------

WRITE = "document.querySelector('#script-text').value = arguments[0];"
WRITE += "document.querySelector('#script-text').dispatchEvent(new Event('input', {bubbles: true}))"


def test_a_refused_script_shows_the_place_and_goes_there(plane, shaken):
    browser = shaken  # the refusal is in its console
    browser.open(f"{plane.url}/#/new")
    browser.until("Script (Flink SQL)", "main")
    browser.run(WRITE, "CREATE TABLE a (k BIGINT)\nWITH ('connector' = 'print');\nDROPP TABLE b;")
    browser.find("[data-action=check]").click()
    browser.until("Line 3, column 1", ".answers")
    assert browser.text(".answers mark") == "DROPP"
    browser.find("[data-action=show-place]").click()
    chosen = """
      const area = document.activeElement;
      return area.value.slice(area.selectionStart, area.selectionEnd);
    """
    assert browser.run(chosen) == "DROPP"
    assert browser.find("#script-text").get_property("value").endswith("DROPP TABLE b;")


def test_a_script_of_flink_is_migrated_in_its_place(plane, shaken):
    browser = shaken  # what completion asks of an unknown connector is refused
    browser.open(f"{plane.url}/#/new")
    browser.until("Script (Flink SQL)", "main")
    sql = script().replace("'blackhole'", "'elasticsearch-7'")
    browser.run(WRITE, f"CALL f(1);\n{sql}")
    browser.find("[data-action=migrate]").click()
    browser.until("Not accepted yet", ".answers")
    browser.until("CALL statements are not supported", ".answers")
    migrated = browser.find("#script-text").get_property("value")
    assert "-- sluice: " in migrated
    browser.run(WRITE, sql)
    browser.find("[data-action=migrate]").click()
    browser.until("Accepted after 1 change", ".answers")
    assert "'elasticsearch-7'," not in browser.find("#script-text").get_property("value")


def test_a_script_is_checked_and_submitted_and_its_job_is_shown(plane, browser):
    browser.open(f"{plane.url}/#/new")
    browser.until("Script (Flink SQL)", "main")
    browser.run(WRITE, f"SET 'pipeline.name'='written here';{script()}")
    browser.find("[data-action=check]").click()
    browser.until("It can be submitted", ".answers")
    assert "joinType=[LeftOuterJoin]" in browser.text("#plan")
    browser.find("[data-action=submit-script]").click()
    browser.until("written here", ".title")
    browser.open(f"{plane.url}/#/new")  # the next one begins empty
    browser.until("Script (Flink SQL)", "main")
    assert browser.find("#script-text").get_property("value") == ""


def test_a_bare_select_shows_its_rows_and_leaves_nothing(tmp_path, shaken):
    browser = shaken
    with control_plane(tmp_path / "data") as plane, Documents(plane.url) as client:
        browser.open(f"{plane.url}/#/new")
        browser.until("Script (Flink SQL)", "main")
        tables, _, rest = script().partition("CREATE TABLE enriched")
        select = rest.partition("INSERT INTO enriched ")[2]
        browser.run(WRITE, f"SET 'pipeline.name'='looks';{tables}{select}")
        browser.until("Show rows", "main")
        browser.find("[data-action=preview]").click()
        assert "no object" not in browser.until("+I", "#rows tbody")
        browser.wait(lambda: not client.jobs(), "the job is removed")


def test_a_script_survives_a_reload_and_an_example_replaces_only_what_is_empty(plane, browser):
    browser.open(f"{plane.url}/#/new")
    browser.until("Script (Flink SQL)", "main")
    browser.run(WRITE, "")
    browser.find("[data-action=example]").click()
    value = "return document.querySelector('#script-text').value"
    assert "INSERT INTO shown" in browser.run(value)
    browser.driver.refresh()
    browser.wait(lambda: "INSERT INTO shown" in (browser.run(value) or ""), "it is kept")


def test_an_example_of_the_control_plane_is_opened_by_its_address(plane, browser):
    example = f"SET 'pipeline.name'='runs here';\n{script()}"
    (plane.settings.data_dir / "examples").mkdir(exist_ok=True)
    ((plane.settings.data_dir / "examples") / "first.sql").write_text(example)
    browser.open(plane.url)
    browser.run("sessionStorage.clear()")
    browser.open(f"{plane.url}/#/new/first")
    value = "return document.querySelector('#script-text')?.value"
    browser.wait(lambda: browser.run(value) == example, "the example is written")
    assert [each.text for each in browser.all("[data-action=example]")] == [
        "first",
        "a stream alone",
    ]


def test_a_change_of_a_job_is_previewed_before_it_is_made(plane, shaken):
    browser = shaken
    sql = script()
    job_id = plane.submit(sql, "changes")
    plane.tell(job_id, **joining(1))
    browser.open(job_url(plane, job_id))
    browser.until("Data flow", "main")
    browser.find("#tab-script").click()
    browser.find("#script a.button").click()
    browser.until("Change job changes", "main")
    value = "return document.querySelector('#script-text')?.value"
    browser.wait(lambda: browser.run(value) == sql, "the script of the job")
    browser.find("[data-action=preview-update]").click()
    browser.until("Nothing changes: the job has plan 1", "#changes")
    assert not browser.all("[data-action=apply-update]")
    browser.run(WRITE, sql.replace("c.user_id, u.name", "c.user_id, UPPER(u.name)"))
    browser.wait(lambda: not browser.text("#changes"), "what was said was of another script")
    browser.find("[data-action=preview-update]").click()
    browser.until("accepted", "#changes")
    browser.find("[data-action=apply-update]").click()
    browser.until("Changed: plan 2", "#changes")
    assert "UPPER(u.name)" in plane.client.job(job_id)["sql"]


PLACES = {
    "first": ("SELEC x", 1, 1, "SELEC"),
    "later_line": ("a\nbb ccc", 2, 4, "ccc"),
    "sign": ("a = %", 1, 5, "%"),
    "behind_emoji": ("'\U0001f600' x", 1, 5, "x"),
    "end": ("a", 1, 2, ""),
    "beyond": ("a", 9, 9, ""),
}


def test_places_of_refusals_are_found_in_the_text(page):
    body = "return a[0].map(([t, l, c]) => t.slice(...m.rangeOf(t, l, c)))"
    marked = page.call("editor_data.js", body, [case[:3] for case in PLACES.values()])
    assert marked == [case[3] for case in PLACES.values()]


def test_the_examples_can_be_planned(page):
    for text in page.call("editor_data.js", "return Object.values(m.EXAMPLES)"):
        assert plan_script(text).plan


# Its data
# --------------------------------------------------------------------------------------------------


def test_rows_of_a_table_are_looked_up_by_key_and_versions_compared(plane, browser, joining_job):
    browser.open(job_url(plane, joining_job))
    browser.until("Data flow", "main")
    browser.find("#tab-tables").click()
    text = browser.until("Look at its rows", "#table-items")
    for command in ("sluice verify ", "sluice wait "):
        assert f"{command}{joining_job} --table items" in text
    browser.open(f"{job_url(plane, joining_job)}/tables/users")
    browser.until("1 row of version 3", "#rows")
    assert "\x1b" not in browser.text("main")
    may_ask = "return !document.querySelector('#changes button').disabled"
    browser.wait(lambda: browser.run(may_ask), "the first answer")
    browser.find("#of-key").send_keys("7", Keys.ENTER)
    browser.wait(lambda: browser.run(may_ask), "an answer")
    browser.find("#of-from").send_keys("1", Keys.ENTER)
    assert "insert" in browser.until("1 key differs between versions 1 and 3", "#changes")
    assert browser.find("#of-key").get_property("value") == "7"
    browser.find("#of-of").send_keys("7", Keys.ENTER)
    text = browser.until("1 version has changed the row of", "#history")
    assert "update" in text
    assert "Before version 1 nothing is kept" in text


def test_the_output_has_sample_rows(plane, browser):
    sql = script().replace("'connector'='blackhole'", "'connector'='delta', 'path'='sampled'")
    job_id = plane.submit(sql, "sampled")
    plane.tell(job_id, **joining(1))
    browser.open(job_url(plane, job_id))
    browser.until("Data flow", "main")
    browser.find("#tab-output").click()
    text = browser.until("Read them again", "#sample")
    assert text.count("evil second line") == 2  # a column and its value
    assert "\x1b" not in text
    columns = browser.until("user_id", "#schema").split()[1:]
    heads = ["Column", "Type", "NULL"]
    assert columns == [*heads, "user_id", "BIGINT", "yes", "name", "STRING", "yes"]


def test_dead_letters_are_shown_by_reason_and_joined_after_a_question(plane, browser):
    job_id = plane.submit(script(), "letters")
    plane.tell(job_id, **joining(1, dead_letters=7))
    browser.open(job_url(plane, job_id))
    browser.until("7", "[data-figure='Dead letters']")
    browser.find("#tab-letters").click()
    browser.until("7 records could not be joined", "#letters")
    browser.find("#letters a").click()
    browser.until("7 records: ", "#reason-0")
    browser.find("[data-action=replay-ask]").click()
    browser.until("Join all dead letters again?", "main")
    browser.find("[data-action=replay-no]").click()
    browser.wait(lambda: "again?" not in browser.text("main"), "no question any more")


def test_dead_letters_are_joined_again_or_discarded_by_the_runner(tmp_path, shaken):
    browser = shaken
    with control_plane(tmp_path / "data") as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "letters")["id"]
        client.when(job_id, state="JOINING")
        browser.open(f"{plane.url}/#/jobs/{job_id}/dead-letters")
        browser.until("Join all again", "main")
        browser.find("[data-action=replay-ask]").click()
        browser.until("Yes, join them", "main")
        browser.find("[data-action=replay-yes]").click()
        browser.until("0 records joined again: 0 rows added", "main")
        may_discard = "return document.querySelector('[data-form=discard] button')?.disabled"
        browser.wait(lambda: browser.run(may_discard) is False, "the list is read again")
        browser.find("#discard-reason-0").send_keys("test data of the load test", Keys.ENTER)
        browser.until("7 records discarded.", "main")
        assert browser.call("browse_data.js", DISCARD_FILTERED, job_id)["records"] == 7
        requests = JobLayout(plane.services.settings.jobs_dir / job_id).requests.glob("*.json")
        bodies = [json.loads(file.read_bytes()).get("body", {}) for file in requests]
        assert {"all": True, "matching": "evil", "discard": "tests"} in bodies


DISCARD_FILTERED = """
  const letters = new m.DeadLetters(a[0], { changed() {}, live() {}, failed() {} });
  await letters.filter({ matching: "evil" });
  await letters.discard(null, "tests");
  return letters.discarded;
"""


# For everybody
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def axe(processes):
    return axe_source()


@pytest.fixture(scope="module")
def views(plane, joining_job):
    """Address and what is there once the view is whole."""
    copying_job = plane.submit(script(), "copied now")
    plane.tell(copying_job, **copying(412_000))
    stalled_job = plane.submit(script(), "waits for somebody")
    plane.tell(stalled_job, **stalled())
    plane.client.when(stalled_job, state="STALLED")
    of_joining = job_url(plane, joining_job)
    return {
        "list": (plane.url, "Stalled"),
        "nothing_fits": (f"{plane.url}/#/none", "There is no such view"),
        "copying": (job_url(plane, copying_job), "Over time"),
        "joining": (of_joining, "Over time"),
        "stalled": (job_url(plane, stalled_job), "Decision required"),
        "editor": (f"{plane.url}/#/new", "Script (Flink SQL)"),
        "table": (f"{of_joining}/tables/users", "1 row of version 3"),
        "dead_letters": (f"{of_joining}/dead-letters", "7 records"),
    }


VIEWS = [
    "list",
    "nothing_fits",
    "copying",
    "joining",
    "stalled",
    "editor",
    "table",
    "dead_letters",
]


@pytest.mark.parametrize("view", VIEWS)
def test_nobody_is_kept_out_of_a_view(browser, views, axe, view):
    address, whole = views[view]
    browser.open(address)
    browser.until(whole, "main")
    for scheme, width in (("light", PHONE), ("light", 1280), ("dark", 1280)):
        browser.scheme(scheme)
        browser.screen(width)
        assert violations(browser, axe) == [], (scheme, width)


TABS = ("tables", "batches", "output", "letters", "history", "log", "script", "details")


@pytest.mark.parametrize("tab", TABS)
def test_nobody_is_kept_out_of_a_tab(browser, views, axe, tab):
    browser.open(views["joining"][0])
    browser.until("Over time", "main")
    browser.find(f"#tab-{tab}").click()
    for scheme, width in (("light", PHONE), ("dark", 1280)):
        browser.scheme(scheme)
        browser.screen(width)
        assert violations(browser, axe) == [], (scheme, width)


def correcting(browser, views):
    browser.open(views["dead_letters"][0])
    browser.until("7 records", "main")
    browser.find("#reason-0 details summary").click()
    browser.until("Join with this value", "#reason-0 details[open]")


def replaying(browser, views):
    browser.open(views["dead_letters"][0])
    browser.until("7 records", "main")
    browser.find("[data-action=replay-ask]").click()
    browser.until("Yes, join them", "main")


def pausing(browser, views):
    browser.open(views["joining"][0])
    browser.until("Over time", "main")
    browser.find("[data-order=pause]").click()
    browser.until("Pause this job?", "main")


def updating(browser, views):
    browser.open(f"{views['joining'][0]}/edit")
    browser.until("Change job", "main")
    value = "return document.querySelector('#script-text')?.value"
    browser.wait(lambda: "c.user_id, u.name" in (browser.run(value) or ""), "the job's script")
    browser.run(WRITE, browser.run(value).replace("c.user_id, u.name", "c.user_id, UPPER(u.name)"))
    browser.find("[data-action=preview-update]").click()
    browser.until("Change the job to plan 2", "#changes")


def checking(browser, views):
    browser.open(views["editor"][0])
    browser.until("Script (Flink SQL)", "main")
    browser.run(WRITE, script())
    browser.find("[data-action=check]").click()
    browser.until("TableSourceScan", "#plan")


FORMS = (correcting, replaying, pausing, updating, checking)


@pytest.mark.parametrize("opened", FORMS, ids=lambda form: form.__name__)
def test_nobody_is_kept_out_of_a_form_and_the_keyboard_reaches_it(shaken, views, axe, opened):
    opened(shaken, views)
    for scheme, width in (("light", PHONE), ("light", 1280), ("dark", 1280)):
        shaken.scheme(scheme)
        shaken.screen(width)
        assert violations(shaken, axe) == [], (scheme, width)
        assert shaken.run("return document.documentElement.scrollWidth") <= width
    shaken.run("document.activeElement.blur()")
    wanted = shaken.run(_CONTROLS)
    reached = set()
    for _ in range(5 * wanted):
        shaken.press(Keys.TAB)
        reached.add(shaken.run(_PLACE_OF_FOCUS))
    assert set(range(wanted)) <= reached


_SEEN = """[...document
    .querySelectorAll("main a, main button, main input, main textarea, main summary")]
    .filter((node) => node.checkVisibility() && !node.disabled && node.tabIndex >= 0)"""
_CONTROLS = f"return {_SEEN}.length"
_PLACE_OF_FOCUS = f"return {_SEEN}.indexOf(document.activeElement)"
_PATHS = """
  return [...document.querySelectorAll("#numbers .line")].map((path) => path.getAttribute("d"));
"""
