"""What is shown of a job is what somebody knows: laws over reports, runners and phases."""

import json
import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from joins.durable.checkpoint import write_json_atomically
from service.api.views import job_detail, with_verifications
from service.cli.views import job_parts
from service.jobs.inspect.waiting import explain_wait
from service.jobs.runner import StatusFile
from service.jobs.store.job import JobError, JobState
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import Status, read_status, read_verifications
from service.jobs.supervise.watch import UNRESPONSIVE, RunnerView
from service.schemas.jobs import JobDetail
from service.schemas.progress import WaitReport
from tests.support.laws import examples
from tests.support.page_jobs import dimension, stream
from tests.support.stored_jobs import JOB

COUNTS = st.integers(0, 5_000)
DOWN = {
    "type": "source-unavailable",
    "message": "database does not answer",
    "hint": "Start it.",
    "choices": [],
}


@st.composite
def tables(draw):
    total = draw(st.integers(1, 5_000))
    done = draw(st.integers(0, total))
    complete = draw(st.sampled_from([0, 2])) if done == total else 0
    found = dimension(draw(st.sampled_from("ab")), done, total, complete=complete)
    found["snapshot"]["is_copied"] = complete == 2 or draw(st.booleans())
    found["lag_records"] = draw(st.none() | COUNTS)
    return found


@st.composite
def streams(draw):
    partitions = draw(st.sampled_from([(), ("0",), ("0", "1")]))
    start = {p: draw(COUNTS) for p in partitions}
    after = {p: start[p] + draw(COUNTS) for p in partitions}
    end = {p: max(after[p] + draw(st.integers(-9, 99)), 0) for p in partitions}
    bounded = draw(st.sampled_from([None, end]))
    lag = draw(st.none() | COUNTS)
    values = {"held_records": draw(st.none() | COUNTS), "lag_records": lag}
    values |= {"start_offsets": start, "next_offsets": after, "end_offsets": end}
    return stream(**values, bounded_offsets=bounded, matched=draw(COUNTS), unmatched=draw(COUNTS))


@st.composite
def reports(draw):
    """What a runner may have written last; None before the first."""
    state = draw(st.sampled_from(["SNAPSHOT", "CATCHING_UP", "JOINING", "STALLED"]))
    phase = {"SNAPSHOT": "LOAD", "CATCHING_UP": "LOAD", "JOINING": "JOIN"}.get(state)
    found = draw(st.lists(tables(), max_size=2, unique_by=lambda table: table["name"]))
    parts = draw(
        st.sets(st.sampled_from(["kafka", "probe", *(f"source {t['name']}" for t in found)]))
    )
    return {
        "state": state,
        "phase": phase or draw(st.sampled_from(["LOAD", "JOIN"])),
        "reason": f"{state}",
        "dimensions": found,
        "combined_watermark": {"timestamp_ms": -(2**63), "use_processing_time": False},
        "probe": {"batch": 3, "joined_records": 9, **draw(streams())},
        "stalls": [{"part": part, **DOWN} for part in sorted(parts)] if state == "STALLED" else [],
    }


@st.composite
def jobs(draw):
    """(the job as it is shown, whether its report is of the runner that lives and speaks)."""
    report = draw(st.none() | reports())
    state = draw(st.sampled_from(JobState))
    alive = draw(st.booleans()) and state not in (JobState.FAILED, JobState.FINISHED)
    mute = alive and draw(st.booleans())
    error = JobError(UNRESPONSIVE, "silent", "Wait.") if mute else None
    pid, by = (7 if alive else None), draw(st.sampled_from([7, 8]))
    runner = RunnerView(pid=pid, alive=alive, adopted=False, started_at_ms=0, restart_at_ms=None)
    status = None
    if report is not None:
        status = Status(by, JobState(report["state"]), report["reason"], None, 1, report)
    shown = job_detail(replace(JOB, state=state, error=error), status, runner)
    live = report is not None and alive and by == pid and not mute
    return shown.model_dump(mode="json", by_alias=True), live


def text_of(job):
    """What `sluice jobs get` prints."""
    console = Console(width=400, force_terminal=False)
    whose = {"job_id": job["id"], "state": job["state"], "hint": None, "status_age_ms": None}
    with console.capture() as capture:
        for part in job_parts(JobDetail(**job), WaitReport(**whose, **explained(job))):
            console.print(part)
    return capture.get()


def explained(job):
    found = explain_wait(job)
    conditions = [
        {"name": c.name, "about": c.about, "met": c.met, "evidence": c.evidence, "hint": c.hint}
        for c in found.conditions
    ]
    return {"waiting": found.waiting, "sentence": found.sentence, "conditions": conditions}


@settings(max_examples=examples(100))
@given(found=jobs())
def test_what_is_only_so_at_a_moment_is_told_by_the_runner_that_lives_or_not_at_all(found):
    job, live = found
    probe = job["probe"]
    assert json.loads(json.dumps(job)) == job
    assert (job["report"] or {"is_live": False})["is_live"] is live
    if probe is None or live:
        return
    ended = bool(probe["bounded_offsets"]) and all(
        probe["next_offsets"][p] >= end for p, end in probe["bounded_offsets"].items()
    )
    assert probe["lag_records"] == (0 if ended else None)
    assert probe["held_records"] is None
    assert all(table["lag_records"] is None for table in job["dimensions"])
    assert ended or "lag -" in text_of(job)
    alive = job["runner"]["alive"]
    assert ("(runner not responding)" in text_of(job)) is alive
    assert ("(the runner's last report)" in text_of(job)) is not alive


@settings(max_examples=examples(100))
@given(found=jobs())
def test_all_is_joined_only_where_everybody_sees_that_nothing_is_left(found):
    job, _ = found
    probe, told = job["probe"], explained(job)
    everything = [told["sentence"], *(c["evidence"] for c in told["conditions"])]
    said = any("every record of topic" in text for text in everything)
    if probe is None or not said:
        return
    assert probe["lag_records"] == 0
    assert all(probe["next_offsets"][p] >= end for p, end in probe["end_offsets"].items())


@settings(max_examples=examples(100))
@given(found=jobs())
def test_what_is_said_of_a_copy_has_its_numbers_and_no_more_rows_than_there_are(found):
    job, _ = found
    told = explained(job)
    for table in job["dimensions"]:
        copy = table["snapshot"]
        assert copy["rows_done"] <= copy["rows_total"]
        shown = [c for c in told["conditions"] if c["name"] == "snapshot-complete"]
        mine = [c["evidence"] for c in shown if c["about"] == table["name"]]
        assert len(mine) == (job["state"] != "FINISHED")
        if table["evidence"] is None:
            assert all(f"{copy['rows_done']:,}" in evidence for evidence in mine)


@settings(max_examples=examples(100))
@given(found=jobs())
def test_a_table_that_stands_still_is_no_reason_for_nothing_to_come_out(found):
    job, live = found
    told = explained(job)
    parts = [stall["part"] for stall in job["stalls"]]
    unmet = {c["name"] for c in told["conditions"] if c["met"] is False}
    if live and job["phase"] == "JOIN" and unmet == {"source-reached"}:
        assert not told["waiting"]
        assert "records are joined with the rows that are there" in told["sentence"]
    assert parts or "source-reached" not in unmet


@settings(max_examples=examples(100))
@given(found=jobs())
def test_a_job_that_joins_no_table_has_no_matches(found):
    job, _ = found
    if job["probe"] is not None and not job["dimensions"]:
        assert job["probe"]["matched"] is None
        assert "matched" not in text_of(job)


# (who reported, who lives, whether it speaks) → whether the report counts
REPORTERS = {
    "the_runner_that_lives": ((7, 7, True), True),
    "a_runner_that_does_not_speak_now": ((7, 7, False), False),
    "the_runner_before": ((8, 7, True), False),
    "a_runner_that_has_ended": ((7, None, True), False),
}


@pytest.mark.parametrize(("given", "counts"), REPORTERS.values(), ids=REPORTERS)
def test_parts_are_stalled_as_long_as_a_runner_that_lives_and_speaks_says_so(given, counts):
    by, pid, speaks = given
    runner = RunnerView(pid=pid, alive=pid is not None, adopted=False, started_at_ms=0)
    error = None if speaks else JobError(UNRESPONSIVE, "silent", "Wait.")
    told = {"stalls": [{"part": "kafka", **DOWN}], "warnings": [{"type": "retention", **DOWN}]}
    status = Status(by, JobState.STALLED, "it waits", None, 1, told)
    shown = job_detail(replace(JOB, state=JobState.STALLED, error=error), status, runner)
    assert (len(shown.stalls), len(shown.warnings)) == (counts, counts)


def test_a_runner_that_starts_tells_nothing_of_the_moment_before_it(tmp_path):
    layout = JobLayout(tmp_path)
    told = {"warnings": [{"type": "retention", **DOWN}], "stalls": [{"part": "kafka", **DOWN}]}
    told["probe"] = stream(next_offsets={"0": 5}, end_offsets={"0": 15}, ends_at_ms=1)
    told["dimensions"] = [dimension("users", 9, 9, complete=2)]
    write_json_atomically(layout.status, {"state": "STALLED", "pid": 8, "phase": "JOIN", **told})
    StatusFile(layout).note("STARTING", "it starts")
    runner = RunnerView(pid=os.getpid(), alive=True, adopted=False, started_at_ms=0)
    job = replace(JOB, state=JobState.STARTING)
    shown = job_detail(job, read_status(tmp_path), runner).model_dump(mode="json", by_alias=True)
    probe, (table,) = shown["probe"], shown["dimensions"]
    assert (probe["lag_records"], probe["held_records"], probe["ends_at_ms"]) == (None, None, None)
    assert (probe["end_offsets"], probe["next_offsets"]) == ({}, {"0": 5})
    assert (table["lag_records"], table["snapshot"]["rows_done"]) == (None, 9)
    assert (shown["stalls"], shown["warnings"], shown["phase"]) == ([], [], "JOIN")


RESULT = {
    "source": "mysql-cdc",
    "ended_at_ms": 7,
    "rows": 40,
    "sample": 0.5,
    "position": {"file": "b.1", "pos": 4},
}


@pytest.mark.parametrize(
    ("generation", "differences", "verified", "warns"),
    [(1, 0, (40, 0), False), (1, 2, (40, 2), True), (2, 2, None, False)],
    ids=["equal", "different", "of_an_earlier_copy"],
)
def test_the_newest_comparison_of_a_table_is_shown(generation, differences, verified, warns):
    content = {"phase": "JOIN", "dimensions": [dimension("users", 9, 9, complete=2)]}
    table = content["dimensions"][0]["generation"]
    status = Status(8, JobState.JOINING, "", None, 1, content)
    runner = RunnerView(pid=8, alive=True, adopted=False, started_at_ms=0)
    result = {**RESULT, "differences": differences, "generation": table + generation - 1}

    shown = with_verifications(job_detail(JOB, status, runner), {"users": result, "other": result})

    newest = shown.dimensions[0].verified
    assert (newest and (newest.rows, newest.differences)) == verified
    assert [each.type for each in shown.warnings] == (["copy-differs"] if warns else [])


@pytest.mark.parametrize(
    ("source", "remedy"),
    [("mysql-cdc", "--repair sends them again"), ("topic", "write each of them again")],
)
def test_the_remedy_of_a_difference_is_one_that_the_source_has(source, remedy):
    content = {"phase": "JOIN", "dimensions": [dimension("users", 9, 9, complete=2)]}
    status = Status(8, JobState.JOINING, "", None, 1, content)
    runner = RunnerView(pid=8, alive=True, adopted=False, started_at_ms=0)
    generation = content["dimensions"][0]["generation"]
    result = {**RESULT, "source": source, "differences": 2, "generation": generation}

    shown = with_verifications(job_detail(JOB, status, runner), {"users": result})

    assert remedy in shown.warnings[0].hint


def test_results_of_comparisons_are_read_back(tmp_path):
    layout = JobLayout(tmp_path)
    assert read_verifications(tmp_path) == {}
    layout.verifications.mkdir()
    write_json_atomically(layout.verification("users"), RESULT)
    layout.verification("damaged").write_text("{")

    assert {name: value["rows"] for name, value in read_verifications(tmp_path).items()} == {
        "users": 40
    }
