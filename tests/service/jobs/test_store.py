import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import pytest
import sqlalchemy as sa

from service.errors import JobConflictError, JobNotFoundError, StoreError
from service.jobs.store.database import reached_by
from service.jobs.store.job import (
    JOB_STATES,
    DesiredState,
    JobState,
    NewJob,
    StateUpdate,
    new_job_id,
)
from service.jobs.store.rows import JobFilter, record_event
from service.jobs.store.store import JobStore
from watermark.errors import InvalidTransitionError


def _new(name=None, key=None):
    job_id = new_job_id()
    return NewJob(job_id, name or f"job {job_id}", b"{}", "INSERT", (), key, "digest")


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'data' / 'jobs.db'}"


@pytest.fixture
def store(url):
    opened = JobStore.open(url)
    yield opened
    opened.close()


def test_sqlite_is_durable_at_commit(store, tmp_path):
    store.database.check()
    with sqlite3.connect(tmp_path / "data" / "jobs.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with store.database._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_the_store_is_readable_by_its_owner_only(store, tmp_path):
    store.add(_new())
    files = list((tmp_path / "data").iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_writers_leave_it_to_others_to_move_the_log_into_the_file(store, tmp_path):
    def size():
        return (tmp_path / "data" / "jobs.db").stat().st_size

    def write(jobs):
        for _ in range(jobs):
            store.add(replace(_new(), plan=b"x" * 40_000))

    before = size()
    write(5)
    store.database.tidy()
    assert size() == before  # so little is left where it is
    write(120)  # more than SQLite would leave there
    assert size() == before
    store.database.tidy()
    tidied = size()
    assert tidied > before + 125 * 40_000
    write(5)
    store.database.tidy()
    assert size() == tidied
    assert len(store.all_jobs()) == 130


def test_jobs_and_events_survive_a_new_opening(store, url):
    job = store.add(_new())
    store.transition(job.id, StateUpdate(JobState.STARTING, "go"))
    again = JobStore.open(url)
    assert again.get(job.id).state is JobState.STARTING
    assert [event.cause for event in again.events.after(0, job.id)] == ["submitted", "go"]
    again.close()


def test_several_stores_can_be_opened_at_once(tmp_path):
    urls = [f"sqlite:///{tmp_path / str(number % 4)}.db" for number in range(16)]
    with ThreadPoolExecutor(len(urls)) as pool:
        for opened in pool.map(JobStore.open, urls):
            opened.database.check()
            opened.close()


def test_an_idempotency_key_belongs_to_one_job(store):
    job = store.add(_new(key="k"))
    with pytest.raises(JobConflictError):
        store.add(_new(key="k"))
    assert store.look(lambda jobs: jobs.of_key("k")) == (job, "digest")


def _rest(store, job, state):
    for step in (JobState.STARTING, JobState.JOINING, state):
        store.transition(job.id, StateUpdate(step, "go"))


@pytest.mark.parametrize("state", [JobState.STOPPED, JobState.FAILED, JobState.PAUSED])
def test_a_name_belongs_to_one_job_that_can_run(store, state):
    job = store.add(_new("enriched"))
    _rest(store, job, state)
    with pytest.raises(JobConflictError, match=f'{job.id} has the name "enriched"') as refused:
        store.add(_new("enriched"))
    assert job.id in refused.value.hint
    assert [each.id for each in store.all_jobs()] == [job.id]
    store.add(_new("Enriched"))


def test_a_name_is_free_when_its_job_has_finished_or_is_being_removed(store):
    first = store.add(_new("enriched"))
    _rest(store, first, JobState.FINISHED)
    second = store.add(_new("enriched"))
    store.want(second.id, DesiredState.REMOVED)
    store.add(_new("enriched"))


def test_previews_share_their_name(store):
    store.add(replace(_new("preview"), has_own_name=False))
    store.add(replace(_new("preview"), has_own_name=False))
    assert len(store.all_jobs()) == 2


def test_of_jobs_that_come_at_once_with_one_name_one_is_kept(store, url):
    stores = [store, JobStore.open(url)]

    def add(number):
        try:
            return stores[number % 2].add(_new("enriched")).id
        except JobConflictError:
            return None

    with ThreadPoolExecutor(8) as pool:
        kept = [job_id for job_id in pool.map(add, range(24)) if job_id is not None]
    stores[1].close()
    assert kept == [job.id for job in store.all_jobs()]
    assert len(kept) == 1


def test_an_unlawful_transition_changes_nothing(store):
    job = store.add(_new())
    with pytest.raises(InvalidTransitionError):
        store.transition(job.id, StateUpdate(JobState.JOINING, "jump"))
    assert store.get(job.id).state is JobState.CREATED
    assert len(store.events.after(0, job.id)) == 1


def test_texts_that_no_database_can_store_do_not_stop_a_job(store):
    job = store.add(_new())
    told = [StateUpdate(JobState.STARTING, 'file "\udcff.csv"', reason="half \ud83d")]
    assert store.follow(job.id, told, 7).reason == "half �"
    assert store.events.after(0, job.id)[-1].cause == 'file "�.csv"'
    assert store.page(JobFilter(search="\udcff")) == []


def test_reports_are_taken_over_once_and_unlawful_ones_left_out(store):
    job = store.add(_new())
    store.transition(job.id, StateUpdate(JobState.STARTING, "go"))
    told = [
        StateUpdate(JobState.JOINING, "open", at_ms=5),
        StateUpdate(JobState.SNAPSHOT, "back", at_ms=6),
    ]
    assert store.follow(job.id, told, 77).events_offset == 77
    assert store.get(job.id).state is JobState.JOINING
    assert [event.at_ms for event in store.events.after(0, job.id)][-1] == 5


def test_of_a_job_that_comes_and_goes_the_newest_events_stay(store, monkeypatch):
    monkeypatch.setattr("service.jobs.store.rows._EVENTS_KEPT", 30)
    monkeypatch.setattr("service.jobs.store.rows._FORGET_EVERY", 7)
    quiet, job = store.add(_new("quiet")), store.add(_new())
    store.transition(job.id, StateUpdate(JobState.STARTING, "go"))
    states = [JobState.JOINING, JobState.STALLED] * 100
    store.follow(
        job.id, [StateUpdate(each, "told", at_ms=at) for at, each in enumerate(states)], 77
    )
    kept = [event.at_ms for event in store.events.after(0, job.id)]
    assert kept == list(range(200 - len(kept), 200))
    assert 30 <= len(kept) < 40
    assert len(store.events.after(0, quiet.id)) == 1


def test_of_jobs_that_take_turns_the_events_of_each_are_forgotten(store, monkeypatch):
    monkeypatch.setattr("service.jobs.store.rows._EVENTS_KEPT", 30)
    jobs = [store.add(_new()).id for _ in range(10)]
    with store.database.writing() as connection:
        for _, job_id in product(range(250), jobs):
            record_event(connection, job_id, JobState.STALLED, StateUpdate(JobState.JOINING, "c"))
    counts = [len(store.events.after(0, job_id)) for job_id in jobs]
    assert max(counts) < 30 + 110, counts


def test_a_failed_job_that_is_started_has_all_its_attempts_again(store):
    job = store.add(_new())
    store.count(job.id, crashes=51, restarts=50)
    store.transition(job.id, StateUpdate(JobState.STARTING, "go"))
    assert store.want(job.id, DesiredState.RUNNING).crashes == 51, "it was wanted before"
    failed = StateUpdate(JobState.FAILED, "crashed", desired=DesiredState.STOPPED)
    store.transition(job.id, failed)
    again = store.want(job.id, DesiredState.RUNNING)
    assert (again.crashes, again.restarts) == (0, 50)


def test_a_job_that_is_seen_failed_can_be_started_at_once(store):
    """The end of its runner, which is noted later, does not undo the request."""
    job = store.add(_new())
    store.transition(job.id, StateUpdate(JobState.STARTING, "go"))
    failed = store.follow(job.id, [StateUpdate(JobState.FAILED, "it fails")], 7)
    assert failed.desired_state is DesiredState.STOPPED
    store.want(job.id, DesiredState.RUNNING)
    again = store.transition(job.id, StateUpdate(JobState.FAILED, "its runner has ended"))
    assert again.desired_state is DesiredState.RUNNING


def test_a_job_that_is_being_removed_stays_so(store):
    job = store.add(_new())
    store.want(job.id, DesiredState.REMOVED, remove_output=True)
    with pytest.raises(JobConflictError):
        store.want(job.id, DesiredState.RUNNING)
    store.want(job.id, DesiredState.REMOVED)
    assert store.get(job.id).remove_output
    store.delete(job.id)
    with pytest.raises(JobNotFoundError):
        store.get(job.id)


def test_who_asked_stays_until_another_state_is_wanted(store):
    job = store.add(_new())
    assert job.desired_by is None
    store.want(job.id, DesiredState.PAUSED, by="ada")
    assert store.want(job.id, DesiredState.PAUSED, by="grace").desired_by == "ada"
    assert store.want(job.id, DesiredState.RUNNING).desired_by is None
    store.want(job.id, DesiredState.STOPPED, by="grace")
    assert [each.desired_by for each in store.all_jobs()] == ["grace"]
    failed = StateUpdate(JobState.FAILED, "it fails", desired=DesiredState.STOPPED)
    assert store.transition(job.id, failed).desired_by is None


def test_a_store_of_the_revision_before_is_migrated(store, url, tmp_path):
    job = store.add(_new())
    store.close()
    with sqlite3.connect(tmp_path / "data" / "jobs.db") as connection:
        connection.execute("ALTER TABLE jobs DROP COLUMN desired_by")
        connection.execute("UPDATE alembic_version SET version_num = 'r0005'")
    migrated = JobStore.open(url)
    assert migrated.want(job.id, DesiredState.PAUSED, by="ada").desired_by == "ada"
    migrated.close()


def test_a_finished_job_cannot_be_wanted_to_run(store):
    job = store.add(_new())
    for state in (JobState.STARTING, JobState.JOINING, JobState.FINISHED):
        store.transition(job.id, StateUpdate(state, "go"))
    with pytest.raises(JobConflictError, match="has finished"):
        store.want(job.id, DesiredState.RUNNING)
    store.want(job.id, DesiredState.REMOVED)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://me@localhost:1/s?channel_binding=require", 'option "channel_binding" in'),
        ("postgresql://me@localhost:1/s?sslmode=require&connect_timeout=5", '"connect_timeout"'),
        ("postgresql://me@localhost:hush/s", "URL that cannot be read"),
        ("jobs.db", "URL that cannot be read"),
    ],
)
def test_a_url_that_names_no_store_is_refused(url, told):
    with pytest.raises(StoreError, match=told) as refused:
        JobStore.open(url)
    assert "SLUICE_DATABASE_URL" in refused.value.hint
    assert "hush" not in str(refused.value)


def test_a_url_may_have_host_and_login_as_options():
    options = {"host": "localhost", "port": "1", "user": "me", "password": "hush"}
    written = "&".join(map("=".join, options.items()))
    url, _ = reached_by(sa.make_url(f"postgresql:///s?{written}"), connect_s=1, answer_s=1)
    assert url.get_dialect()().create_connect_args(url) == ([], {"database": "s", **options})
    with pytest.raises(StoreError, match="cannot be") as refused:
        JobStore.open(f"postgresql:///s?{written}")
    assert "hush" not in str(refused.value)


def test_a_newer_store_is_refused(store, url, tmp_path):
    store.close()
    with sqlite3.connect(tmp_path / "data" / "jobs.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'r9999'")
    with pytest.raises(StoreError, match="revision"):
        JobStore.open(url)


def test_a_final_state_is_left_by_starting_only():
    assert JOB_STATES.following(JobState.FINISHED) == frozenset()
    for origin in (JobState.FAILED, JobState.STOPPED):
        assert JOB_STATES.following(origin) <= {JobState.STARTING, JobState.STOPPED}


def test_joining_never_goes_back_to_loading():
    for target in (JobState.SNAPSHOT, JobState.CATCHING_UP):
        with pytest.raises(InvalidTransitionError, match="JOINING"):
            JOB_STATES.check(JobState.JOINING, target)


def test_job_ids_are_ordered_by_time():
    ids = [new_job_id(at_ms) for at_ms in (1, 2, 1_800_000_000_000)]
    assert ids == sorted(ids)
    assert all(job_id[14] == "7" and job_id[19] in "89ab" for job_id in ids)


def test_lists_leave_out_what_may_be_large(store):
    job = store.add(_new())
    assert (job.plan, job.sql) == (b"{}", "INSERT")
    for listed in (store.page(), store.all_jobs()):
        assert [(found.id, found.plan, found.sql) for found in listed] == [(job.id, b"", "")]
