"""The catalog in a real store: what is created, attached and dropped, also at the same time."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from service.errors import JobConflictError, TableConflictError, TableNotFoundError
from service.jobs.store.job import DesiredState, NewJob, new_job_id
from service.jobs.store.store import JobStore
from service.sql.answers.answers import used_by
from service.sql.stored import CatalogEntry, EntryKind


@pytest.fixture
def store(tmp_path):
    opened = JobStore.open(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield opened
    opened.close()


def _job(name="job", *, shared=None, attached=()):
    return NewJob(new_job_id(), name, b"{}", "…", (), None, "digest", shared, attached)


def _shared(store):
    job = _job("users", shared="users")
    store.catalog.add([(CatalogEntry("users", EntryKind.SHARED, "CREATE …", job.id, 4), job)])
    return job.id


def _drop(store, name):
    store.catalog.drop(name, partial(used_by, name))


def _names(store):
    return [entry.name for entry in store.catalog.entries()]


def test_entries_last_in_the_order_of_their_creation(store):
    entries = [CatalogEntry(name, EntryKind.TABLE, f"CREATE {name}") for name in "cab"]
    store.catalog.add([(entry, None) for entry in entries])
    assert _names(store) == ["c", "a", "b"]
    assert store.catalog.get("a").sql == "CREATE a"
    _drop(store, "a")
    assert _names(store) == ["c", "b"]
    with pytest.raises(TableNotFoundError, match='no table or view "a"'):
        _drop(store, "a")


def test_a_script_is_kept_as_a_whole_or_not_at_all(store):
    taken = CatalogEntry("taken", EntryKind.TABLE, "CREATE taken")
    store.catalog.add([(taken, None)])
    job = _job("users", shared="users")
    shared = CatalogEntry("users", EntryKind.SHARED, "CREATE …", job.id, 4)
    more = [(CatalogEntry(f"t{n}", EntryKind.TABLE, "CREATE"), None) for n in range(5)]
    with pytest.raises(TableConflictError, match=r'at the same time: "taken"$'):
        store.catalog.add([(shared, job), *more, (taken, None)])
    assert _names(store) == ["taken"]
    assert store.all_jobs() == []


def test_of_two_that_create_one_name_at_once_one_is_refused(store):
    def create(_):
        try:
            return _shared(store)
        except TableConflictError:
            return None

    with ThreadPoolExecutor(4) as threads:
        made = [job_id for job_id in threads.map(create, range(4)) if job_id is not None]
    assert len(made) == 1
    assert [job.id for job in store.all_jobs()] == made
    assert store.catalog.get("users").job_id == made[0]


def test_a_table_that_a_job_reads_is_not_dropped(store):
    table_job = _shared(store)
    reader = store.add(_job("enrich", attached=(table_job,)))
    assert store.catalog.attached(table_job) == ((reader.id, "enrich"),)
    with pytest.raises(TableConflictError, match=f'read by 1 jobs: {reader.id} "enrich"') as caught:
        _drop(store, "users")
    assert f"sluice jobs rm {reader.id}" in caught.value.hint
    store.delete(reader.id)
    _drop(store, "users")
    assert store.get(table_job).desired_state is DesiredState.REMOVED
    assert _names(store) == []


def test_a_job_planned_with_a_table_that_was_dropped_meanwhile_is_refused(store):
    table_job = _shared(store)
    _drop(store, "users")
    _shared(store)  # of the same name, but another copy
    with pytest.raises(TableConflictError, match="dropped while the script was planned"):
        store.add(_job("enrich", attached=(table_job,)))
    assert "enrich" not in [job.name for job in store.all_jobs()], "nothing of it is kept"


def test_a_dropped_name_is_free_while_its_job_is_still_being_removed(store):
    first = _shared(store)
    _drop(store, "users")
    second = _shared(store)
    assert store.catalog.get("users").job_id == second != first


def test_the_job_of_a_shared_table_goes_with_the_table_only(store):
    table_job = _shared(store)
    with pytest.raises(JobConflictError, match='keeps shared table "users"') as caught:
        store.want(table_job, DesiredState.REMOVED)
    assert "sluice tables rm users" in caught.value.hint
    assert store.want(table_job, DesiredState.PAUSED).desired_state is DesiredState.PAUSED


def test_a_table_that_a_view_names_is_not_dropped(store):
    view = CatalogEntry("names", EntryKind.VIEW, "CREATE VIEW names AS SELECT name FROM users")
    table = CatalogEntry("users", EntryKind.TABLE, "CREATE users")
    store.catalog.add([(table, None), (view, None)])
    with pytest.raises(TableConflictError, match="used by names") as caught:
        _drop(store, "users")
    assert "sluice tables rm names" in caught.value.hint
    _drop(store, "names")
    _drop(store, "users")
