"""What is said of a store is so on PostgreSQL, too: the same stories, and those of its own."""

import inspect
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from service.errors import StandbyError, StoreError
from service.jobs.leadership import LockSession
from service.jobs.store import database
from service.jobs.store.job import JobState, NewJob, StateUpdate, new_job_id
from service.jobs.store.layout import JobLayout
from service.jobs.store.rows import JobFilter, StoredJobs
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import SubmissionRequest, Submissions
from service.security.tokens import NewToken, TokenScope, parse
from tests.service.jobs import test_catalog_store, test_store
from tests.support.certificates import self_signed
from tests.support.control_plane import HOOKS, script, settings_in
from tests.support.store_databases import empty_store, new_store_url
from tests.support.wait import wait_until

for _module in (test_store, test_catalog_store):
    for _name, _story in inspect.getmembers(_module, inspect.isfunction):
        _needs = inspect.signature(_story).parameters
        if _name.startswith("test_") and "store" in _needs and "tmp_path" not in _needs:
            globals()[_name] = _story


@pytest.fixture(scope="module")
def used_url(postgres):
    return new_store_url(postgres)


@pytest.fixture
def url(used_url):
    empty_store(used_url)
    return used_url


@pytest.fixture
def store(url):
    opened = JobStore.open(url)
    yield opened
    opened.close()


def _new(name="job"):
    return NewJob(new_job_id(), name, b"\x00{}", "INSERT", ("a warning",), None, "digest")


def test_the_stories_of_sqlite_are_told_here_too():
    told = [name for name in globals() if name.startswith("test_")]
    assert len(told) > 20


def test_stores_that_are_opened_at_once_make_the_tables_once(postgres):
    with ThreadPoolExecutor(4) as pool:
        for opened in pool.map(JobStore.open, [new_store_url(postgres)] * 4):
            opened.database.check()
            opened.close()


def test_tokens_are_made_used_and_revoked(store):
    token, text = store.tokens.create(NewToken("me", TokenScope.ADMIN))
    assert store.tokens.usable()
    store.tokens.note_use(token.id, 7)
    (kept,) = store.tokens.all()
    assert kept.last_used_at_ms == 7
    token_id, secret = parse(text)
    assert token_id == token.id
    assert kept.fits(secret)
    store.tokens.revoke(token.id)
    assert not store.tokens.usable()


def test_texts_with_a_nul_are_kept_without_it_and_looked_for_in_vain(store):
    job = store.add(_new())
    store.transition(job.id, StateUpdate(JobState.STARTING, "go\x00", reason="why\x00not"))
    assert store.get(job.id).reason == "why�not"
    assert store.events.after(0, job.id)[-1].cause == "go�"
    assert store.page(JobFilter(name="a\x00", search="b\x00")) == []


def test_the_jobs_of_a_list_are_chosen(store):
    jobs = [store.add(_new(name)) for name in ("Alpha", "beta", "100%")]
    assert [job.name for job in store.page(JobFilter(search="alph"))] == ["Alpha"]
    assert [job.name for job in store.page(JobFilter(search="%"))] == ["100%"]
    assert [job.name for job in store.page(JobFilter(search=jobs[1].id))] == ["beta"]
    assert [job.name for job in store.page(before=jobs[1].id)] == ["Alpha"]
    assert store.look(StoredJobs.count_by_state) == {JobState.CREATED: 3}


def test_who_does_not_lead_any_more_writes_nothing_but_tokens(store, url):
    later = JobStore.open(url)
    store.database.fence(0)
    job = store.add(_new())
    later.database.fence(1)
    with pytest.raises(StandbyError, match="does not lead"):
        later.add(_new("later"))
    store.database.fence(None)
    with pytest.raises(StandbyError):
        store.transition(job.id, StateUpdate(JobState.STARTING, "go"))
    store.database.check()
    store.tokens.create(NewToken("me", TokenScope.ADMIN))
    assert later.get(job.id).state is JobState.CREATED
    store.database.fence(0)
    assert store.transition(job.id, StateUpdate(JobState.STARTING, "go")).id == job.id
    later.close()


@pytest.mark.parametrize(
    ("wrong", "said"),
    {
        "no_such_database": ("/nowhere", "does not exist"),
        "wrong_password": (":wrong@", "password authentication failed"),
    }.values(),
)
def test_what_the_server_refuses_is_told_in_its_words(url, wrong, said):
    head, _, name = url.rpartition("/")
    user, _, rest = head.partition(":" + head.split(":")[2].split("@")[0] + "@")
    bad = f"{head}{wrong}" if wrong.startswith("/") else f"{user}{wrong}{rest}/{name}"
    with pytest.raises(StoreError, match=said):
        JobStore.open(bad)


def test_another_database_is_no_store(url):
    with pytest.raises(StoreError, match='of "mysql", expected sqlite or postgresql') as refused:
        JobStore.open(url.replace("postgresql", "mysql+pymysql"))
    assert "postgresql://" in refused.value.hint
    JobStore.open(url).close()


@pytest.fixture
def authority(postgres, tmp_path):
    """The server speaks TLS for a while; the file with its certificate."""
    cert, key = self_signed(tmp_path)
    connection = postgres.connect()
    cursor = connection.cursor()
    for name, file in (("ssl_cert_file", cert), ("ssl_key_file", key)):
        cursor.execute(f"ALTER SYSTEM SET {name} = '{file}'")
    cursor.execute("ALTER SYSTEM SET ssl = on")
    cursor.execute("SELECT pg_reload_conf()")
    yield cert
    cursor.execute("ALTER SYSTEM RESET ssl")
    cursor.execute("SELECT pg_reload_conf()")
    connection.close()


def _speaks_tls(url):
    store = JobStore.open(url)
    try:
        with store.database.reading() as connection:
            mine = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            return connection.exec_driver_sql(mine).scalar()
    finally:
        store.close()


def test_tls_is_spoken_as_the_url_says(url, authority):
    wait_until(lambda: _speaks_tls_or_not_yet(f"{url}?sslmode=require"), deadline_s=20)
    assert not _speaks_tls(f"{url}?sslmode=disable")
    assert _speaks_tls(url), "where the server can"
    for checked in (f"sslrootcert={authority}", f"sslmode=verify-ca&sslrootcert={authority}"):
        assert _speaks_tls(f"{url}?{checked}")
    with pytest.raises(StoreError, match="certificate verify failed"):
        JobStore.open(f"{url}?sslmode=verify-full")
    session = LockSession.open(f"{url}?sslrootcert={authority}")
    assert session.look()[0]
    session.close()


def _speaks_tls_or_not_yet(url):
    with suppress(StoreError):
        return _speaks_tls(url)
    return False


def test_tls_that_cannot_be_spoken_is_told(url, tmp_path):
    with pytest.raises(StoreError, match='sslmode "always", expected disable, prefer'):
        JobStore.open(f"{url}?sslmode=always")
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        JobStore.open(f"{url}?sslrootcert={tmp_path}/none.pem")
    JobStore.open(f"{url}?sslmode=disable").close()


def test_a_server_that_is_too_old_is_refused(url, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(database, "OLDEST", 1000)
        with pytest.raises(StoreError, match=r"on PostgreSQL \d+, expected 1000 or newer"):
            JobStore.open(url)
    JobStore.open(url).close()


class AnswerLost(JobStore):
    """Keeps a job, and the connection is cut before the answer comes."""

    def add(self, new, check=None):
        super().add(new, check)
        raise StoreError("job store cannot be used: network error", hint="Look at the network.")


def test_a_job_that_may_be_kept_keeps_its_files(url, tmp_path, secret):
    settings = settings_in(tmp_path, database_url=url)
    store = AnswerLost.open(url)
    request = SubmissionRequest(script(), "shop", "key")
    with pytest.raises(StoreError, match="network error"):
        Submissions(store, settings, HOOKS).submit(request)
    again = Submissions(store, settings, HOOKS).submit(request)
    assert JobLayout(settings.jobs_dir / again.id).plan.exists()
    store.close()
