"""The state machines of jobs and runners: illegal edges, and random histories."""

from itertools import pairwise, product

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.config import Settings
from service.jobs.store.job import (
    ENDED,
    JOB_STATES,
    DesiredState,
    JobState,
    NewJob,
    StateUpdate,
    new_job_id,
)
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import append_event
from service.jobs.store.store import JobStore
from service.jobs.supervise.outcomes import RunnerReports
from service.jobs.supervise.runner_process import RunnerProcess
from service.jobs.supervise.watch import (
    RUNNER_STATES,
    RunnerStage,
    Silence,
    Watch,
    only_serves_requests,
)
from watermark.errors import InvalidTransitionError

MACHINES = {"job": (JOB_STATES, JobState), "runner": (RUNNER_STATES, RunnerStage)}
ILLEGAL = [
    (name, origin, target)
    for name, (table, states) in MACHINES.items()
    for origin, target in product(states, states)
    if target not in table.following(origin)
]
ANY_JOB_STATES = st.lists(st.sampled_from(JobState), max_size=12)
ANY_RUNNER_STATES = st.lists(st.sampled_from(RunnerStage), max_size=20)


@pytest.mark.parametrize(("name", "origin", "target"), ILLEGAL)
def test_an_illegal_edge_raises_and_names_both_states(name, origin, target):
    table, _ = MACHINES[name]
    with pytest.raises(InvalidTransitionError, match=f'{name} in state "{origin}".*"{target}"'):
        table.check(origin, target)


@pytest.mark.parametrize("name", MACHINES)
def test_every_state_can_be_reached_and_no_state_follows_itself(name):
    table, states = MACHINES[name]
    first, *_ = states
    reached, new = {first}, {first}
    while new:
        new = {target for origin in new for target in table.following(origin)} - reached
        reached |= new
    assert reached == set(states)
    assert all(state not in table.following(state) for state in states)


def test_every_runner_ends():
    """From each state but ABSENT there is a direct way to it: a process may end at any time."""
    living = set(RunnerStage) - {RunnerStage.ABSENT}
    assert all(RunnerStage.ABSENT in RUNNER_STATES.following(state) for state in living)


@given(ANY_RUNNER_STATES)
def test_the_state_of_a_runner_follows_the_table_in_any_history(targets):
    watch = Watch()
    for target in targets:
        before, since = watch.state, watch.since
        if target in RUNNER_STATES.following(before):
            watch.move(target)
            assert watch.state is target
        else:
            with pytest.raises(InvalidTransitionError):
                watch.move(target)
            assert (watch.state, watch.since) == (before, since)


@given(st.lists(st.sampled_from(["begin", "adopt", "end"]), max_size=12))
def test_a_watch_has_a_runner_unless_it_is_absent(steps):
    watch, runner = Watch(), RunnerProcess.adopt(psutil.Process())
    for step in steps:
        before, had = watch.state, watch.runner
        try:
            ended = watch.end() if step == "end" else getattr(watch, step)(runner)
        except InvalidTransitionError:
            assert (watch.state, watch.runner) == (before, had)
        else:
            assert ended == (before if step == "end" else None)
        assert (watch.runner is None) == (watch.state is RunnerStage.ABSENT)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    opened = JobStore.open(f"sqlite:///{tmp_path_factory.mktemp('states') / 'jobs.db'}")
    yield opened
    opened.close()


@settings(max_examples=40)
@given(ANY_JOB_STATES, st.booleans())
def test_the_stored_events_of_any_history_are_a_path_through_the_table(store, targets, reported):
    job_id = new_job_id()
    store.add(NewJob(job_id, job_id, b"{}", "INSERT", (), None, "digest"))
    if reported:
        store.follow(job_id, [StateUpdate(target, "reported") for target in targets], 7)
    for target in () if reported else targets:
        before = store.get(job_id).state
        try:
            store.transition(job_id, StateUpdate(target, "moved"))
        except InvalidTransitionError:
            assert target not in JOB_STATES.following(before)
            assert store.get(job_id).state is before
    events = store.events.after(0, job_id)
    path = [event.target for event in events]
    assert [event.origin for event in events] == [None, *path[:-1]]
    assert all(after in JOB_STATES.following(before) for before, after in pairwise(path))
    job = store.get(job_id)
    desired = DesiredState.STOPPED if JobState.FAILED in path else DesiredState.RUNNING
    assert (job.state, job.desired_state) == (path[-1], desired)


STARTED = sorted(frozenset(JobState) - {JobState.CREATED})


@pytest.mark.parametrize("state", STARTED)
def test_a_silent_runner_stalls_a_job_that_has_not_ended_and_is_killed_in_any(
    store, tmp_path, processes, state
):
    """A runner that hangs while it ends has reported its job's end already."""
    limits = Settings.load(data_dir=tmp_path, runner_hang_report_s=2, runner_hang_kill_s=80_000)
    job_id = new_job_id()
    job = store.add(NewJob(job_id, job_id, b"{}", "INSERT", (), None, "digest"))
    for target in (JobState.STARTING, state):
        if target is not job.state:
            job = store.transition(job.id, StateUpdate(target, "as told"))
    child = psutil.Popen(["sleep", "600"], start_new_session=True)
    try:
        now = [0.0]
        watch = Watch(silence=Silence(clock=lambda: now[0]))
        watch.adopt(RunnerProcess.adopt(psutil.Process(child.pid)))
        reports = RunnerReports(store, limits)
        assert reports.follow(job, watch).state is state
        now[0] = 1_000.0
        stalled = reports.follow(store.get(job.id), watch)
        assert stalled.state is (state if state in ENDED else JobState.STALLED)
        now[0] = 1_000_000.0
        reports.follow(store.get(job.id), watch)
        assert (watch.state is RunnerStage.HUNG) == (not only_serves_requests(stalled))
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("desired", [each for each in DesiredState if each != "REMOVED"])
def test_sources_that_end_with_a_job_do_not_stall_it(store, tmp_path, desired):
    job_id = new_job_id()
    store.add(NewJob(job_id, job_id, b"{}", "INSERT", (), None, "digest"))
    for target in (JobState.STARTING, JobState.JOINING):
        store.transition(job_id, StateUpdate(target, "as reported", desired=desired))
    limits = Settings.load(data_dir=tmp_path)
    job_dir = JobLayout(limits.jobs_dir / job_id).job_dir
    job_dir.mkdir(parents=True)
    for at_ms, target in enumerate(("STALLED", "JOINING")):
        append_event(job_dir, {"at_ms": at_ms, "from": "x", "to": target, "cause": "reported"})
    job = RunnerReports(store, limits).follow(store.get(job_id), Watch())
    assert job.state is JobState.JOINING
    stalled = [each for each in store.events.after(0, job_id) if each.target is JobState.STALLED]
    assert len(stalled) == (1 if desired is DesiredState.RUNNING else 0)
