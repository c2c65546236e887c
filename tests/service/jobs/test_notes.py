"""What happens to parts of a job while its state stays as it is leaves a word in its history."""

from itertools import product

import pytest

from joins.durable.requests import Stalls
from joins.kernels.changelog.digest import ChangelogState
from joins.plan.errors import SourceUnavailableError
from service.jobs.status import copied_rows, notes_on, of_job
from service.jobs.store.job import JobState, NewJob, StateUpdate, new_job_id
from service.jobs.store.store import JobStore
from service.jobs.supervise.outcomes import STOPPED_UNSEEN, Outcomes

AWAY = SourceUnavailableError("database server away", hint="Start it.")


def report(generation=1, stalled=(), *, state="JOINING", because=None):
    users = {"name": "users", "generation": generation, "copied_because": because}
    stalls = [{"part": part, "message": f"{part} is away"} for part in stalled]
    return {"state": state, "dimensions": [users], "stalls": stalls}


def test_a_new_generation_is_noted_with_its_reason_whatever_the_state():
    for states in product(("JOINING", "STALLED"), repeat=2):
        before, now = report(state=states[0]), report(2, state=states[1], because="TRUNCATE")
        assert list(notes_on(before, now)) == [
            'table "users" is copied again (generation 2): TRUNCATE'
        ]
        assert list(notes_on(now, report(2, state=states[1]))) == []
    assert list(notes_on({}, report(2))) == [], "nothing is known of the one before"
    assert list(notes_on(report(0), report(1))) == [], "the first copy is no news"


@pytest.mark.parametrize(("before", "now"), product([(), ("a",), ("a", "b")], repeat=2))
def test_a_part_that_stalls_or_goes_on_is_noted_unless_the_state_says_it(before, now):
    notes = list(notes_on(report(stalled=before), report(stalled=now)))
    assert notes == [
        *(f"{part}: {part} is away" for part in now if part not in before),
        *(f"{part} goes on" for part in before if part not in now),
    ]
    assert list(notes_on(report(stalled=before), report(stalled=now, state="STALLED"))) == []


@pytest.fixture
def store(tmp_path):
    opened = JobStore.open(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield opened
    opened.close()


@pytest.fixture
def job(store):
    job = store.add(NewJob(new_job_id(), "job", b"{}", "INSERT", (), None, "digest"))
    for state in (JobState.STARTING, JobState.JOINING):
        store.transition(job.id, StateUpdate(state, "go"))
    return store.get(job.id)


def test_a_note_is_an_event_and_changes_nothing_else(store, job):
    note = StateUpdate(JobState.SNAPSHOT, "copied again", at_ms=5, is_note=True)
    after = store.follow(job.id, [note], 7)
    assert (after.state, after.reason) == (JobState.JOINING, job.reason)
    event = store.events.after(0, job.id)[-1]
    assert (event.origin, event.target, event.cause) == (job.state, job.state, "copied again")


def test_an_orderly_end_of_the_runner_is_no_stall(store, job):
    outcomes = Outcomes(store, None)
    paused = outcomes.pause(job, STOPPED_UNSEEN)
    assert (paused.state, paused.desired_state, paused.error) == ("PAUSED", "RUNNING", None)
    assert "stopped" in store.events.after(0, job.id)[-1].cause


def test_what_ends_after_a_stop_was_asked_for_has_not_stalled():
    stalls = Stalls()
    stalls.note("source users", AWAY)
    stalls.close()
    stalls.note("probe", AWAY)
    assert [part for part, _ in stalls.all()] == ["source users"]


def test_commands_in_hints_name_the_job():
    status = {
        "reason": "topic JOB: run sluice jobs stop JOB",
        "error": {"hint": "then sluice jobs stop JOB and sluice jobs resume JOB."},
        "stalls": [{"hint": "sluice jobs resume JOB"}],
    }
    named = of_job(status, "id")
    assert named["reason"] == "topic JOB: run sluice jobs stop id"
    assert named["error"]["hint"] == "then sluice jobs stop id and sluice jobs resume id."
    assert named["stalls"][0]["hint"] == "sluice jobs resume id"
    assert of_job({"reason": "", "error": None}, "id") == {"reason": "", "error": None}


@pytest.mark.parametrize(
    ("state", "is_topic", "rows"),
    [
        (ChangelogState(snapshot_rows=7, next_offsets={0: 9}), False, 7),
        (ChangelogState(snapshot_rows=7, next_offsets={0: 9}), True, 7),
        (ChangelogState(next_offsets={0: 9}), False, 0),
        (ChangelogState(next_offsets={0: 4, 1: 3}), True, 7),
        (ChangelogState(next_offsets={0: 9, 1: 3}, marks={0: (1, 4)}), True, 7),
        (ChangelogState(next_offsets={0: 9}, marks={0: (2, 4)}, generation=2), True, 0),
    ],
    ids=["database", "snapshot_records", "no_rows", "copying", "one_complete", "copied_again"],
)
def test_the_copy_of_a_topic_of_plain_rows_has_its_records(state, is_topic, rows):
    assert copied_rows(state, is_topic=is_topic) == rows
