"""A control plane with a directory of its own has every job in it before it looks at the job."""

import json
import stat
from dataclasses import replace

import pytest

from joins.durable.checkpoint import write_json_atomically
from joins.durable.leases import Lease, leases_in, oldest_attached
from joins.durable.pins import Pin, PinStore
from joins.durable.stored import keep_stored, stop_storing
from joins.durable.stored_directory import take_over
from joins.plan.errors import CheckpointError
from joins.plan.plan import SharedSource
from service.api.server import bind_directory
from service.config import Settings
from service.errors import ControlPlaneError
from service.jobs.store import plan_codec
from service.jobs.store.job import (
    DesiredState,
    JobError,
    JobState,
    NewJob,
    StateUpdate,
    new_job_id,
)
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import (
    Asked,
    RequestBox,
    append_event,
    begin_events,
    read_changes,
)
from service.jobs.store.store import JobStore
from service.jobs.supervise.background import Restorations
from service.jobs.supervise.remove import remove_job
from tests.support.object_store import object_store
from tests.support.probe import PLAN
from tests.support.wait import wait_until

SECRETS = b'{"format_version":1,"secrets":{"inline":"hush"}}'


@pytest.fixture
def objects(processes, monkeypatch):
    with object_store() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def store(tmp_path):
    opened = JobStore.open(f"sqlite:///{tmp_path / 'jobs.db'}")
    opened.has_directories = False
    yield opened
    opened.close()


@pytest.fixture
def machine(tmp_path, objects):
    def of(name):
        warehouse = objects.warehouse
        return Settings.load(data_dir=tmp_path / name, warehouse=warehouse)

    return of


def submit(store, settings, *, starts=True):
    """A job as a submission leaves it, and as a supervisor has it that starts it."""
    job_id = new_job_id()
    layout = JobLayout(settings.jobs_dir / job_id)
    layout.create(settings.warehouse)
    layout.plan.write_bytes(b"{}")
    layout.secrets.write_bytes(SECRETS)
    layout.stored().put(layout.plan, b"{}")
    store.add(NewJob(job_id, "job", b"{}", "INSERT", (), None, "digest", secrets=SECRETS))
    if starts:
        store.transition(job_id, StateUpdate(JobState.STARTING, "c"))
    return layout


def run(layout):
    """What a runner leaves that is killed."""
    files = layout.stored()
    take_over(files, 0)
    keep_stored(files)
    write_json_atomically(layout.checkpoint / "phase.json", {"phase": "JOIN"})
    pin = Pin(0, "clicks", {0: 0}, {0: 7}, {}, 1_000, files.epoch)
    PinStore(layout.checkpoint / "pins").create(pin)
    write_json_atomically(layout.status, {"state": "JOINING"})
    append_event(layout.job_dir, {"at_ms": 1, "from": "STARTING", "to": "JOINING", "cause": "c"})
    stop_storing(layout.job_dir)


def restored(store, settings, layout):
    """The job's directory there, once the control plane may look at it."""
    restorations = Restorations(store, settings, lambda: None)
    job = store.get(layout.job_dir.name)
    try:
        wait_until(lambda: restorations.has(job), what="it is restored", deadline_s=20)
    finally:
        restorations.close()
    return JobLayout(settings.jobs_dir / layout.job_dir.name)


def test_whoever_takes_over_has_the_job_as_its_runner_left_it(store, machine):
    layout = submit(store, machine("one"))
    run(layout)
    size = layout.events.stat().st_size
    job = layout.job_dir.name
    store.follow(job, [StateUpdate(JobState.JOINING, "c")], size)
    there = restored(store, machine("two"), layout)
    for file in (there.plan, there.secrets, there.warehouse, there.checkpoint / "phase.json"):
        assert file.read_bytes() == (layout.job_dir / file.relative_to(there.job_dir)).read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name
    assert stat.S_IMODE(there.job_dir.stat().st_mode) == 0o700
    pins = PinStore(there.checkpoint / "pins")
    assert pins.newest() == PinStore(layout.checkpoint / "pins").newest() is not None
    assert not there.status.exists()
    append_event(there.job_dir, {"at_ms": 2, "from": "JOINING", "to": "STALLED", "cause": "new"})
    changes, _ = read_changes(there.job_dir, size)
    assert [change.cause for change in changes] == ["new"]


def test_a_plan_that_its_control_plane_did_not_live_to_note_is_noted(store, machine):
    layout = submit(store, machine("one"))
    run(layout)
    plan = replace(PLAN, number=2, sql="SELECT 2")
    layout.stored().put(layout.plan_of(2), plan_codec.dump(plan))
    restored(store, machine("two"), layout)
    job = store.get(layout.job_dir.name)
    assert (job.sql, plan_codec.load(job.plan)) == ("SELECT 2", plan)
    assert "plan 2 holds" in store.events.after(0, job.id)[-1].cause
    assert job.state is JobState.STARTING


def test_who_led_before_forgets_what_a_runner_said_there_then(store, machine):
    first, second = machine("one"), machine("two")
    layout = submit(store, first)
    run(layout)
    run(restored(store, second, layout))
    write_json_atomically(layout.status, {"state": "FAILED"})
    back = restored(store, first, layout)
    assert not back.status.exists()
    assert not (back.checkpoint / "epochs" / "2.json").exists(), "it has not run here"
    run(back)
    assert restored(store, first, layout).status.exists(), "the newest runner's was it"


def test_who_led_before_reads_no_transition_that_it_had_not_read_then(store, machine):
    """They are of an earlier runner; the job has gone on elsewhere since."""
    first, second = machine("one"), machine("two")
    layout = submit(store, first)
    run(layout)
    for at_ms in range(10):
        unread = {"at_ms": at_ms, "from": "JOINING", "to": "STALLED", "cause": "cut off"}
        append_event(layout.job_dir, unread)
    there = restored(store, second, layout)
    run(there)
    _, offset = read_changes(there.job_dir, 0)
    job_id = layout.job_dir.name
    assert 0 < offset < layout.events.stat().st_size
    store.follow(job_id, [], offset)
    back = restored(store, first, layout)
    assert read_changes(back.job_dir, offset)[0] == []
    append_event(back.job_dir, {"at_ms": 2, "from": "JOINING", "to": "STALLED", "cause": "new"})
    assert [change.cause for change in read_changes(back.job_dir, offset)[0]] == ["new"]


def test_a_job_that_was_just_submitted_here_need_not_be_restored(store, machine):
    settings = machine("one")
    layout = submit(store, settings, starts=False)
    restorations = Restorations(store, settings, lambda: None)
    assert restorations.has(store.get(layout.job_dir.name))
    restorations.close()


def test_the_runner_of_a_job_that_was_submitted_here_is_not_disturbed(store, tmp_path):
    """The restoration would drop the note of its process while it takes its files over."""
    settings = Settings.load(data_dir=tmp_path)
    begun = []

    class Watched(Restorations):
        def _restore(self, job):
            begun.append(job.state)

    restorations = Watched(store, settings, lambda: None)
    job_id = new_job_id()
    JobLayout(settings.jobs_dir / job_id).create()
    JobLayout(settings.jobs_dir / job_id).plan.write_bytes(b"{}")
    store.add(NewJob(job_id, "job", b"{}", "INSERT", (), None, "digest"))
    assert restorations.has(store.get(job_id))
    started = store.transition(job_id, StateUpdate(JobState.STARTING, "c"))
    assert restorations.has(started)
    restorations.close()
    assert not begun


def test_a_job_that_rests_keeps_its_error_while_its_files_cannot_be_restored(store, tmp_path):
    failures = [CheckpointError("the store is away", hint="Wait.")] * 2

    class Away(Restorations):
        def _restore(self, job):
            if failures:
                raise failures.pop()

    restorations = Away(
        store, Settings.load(data_dir=tmp_path, restart_backoff_min_s=0.01), lambda: None
    )
    job_id = new_job_id()
    store.add(NewJob(job_id, "job", b"{}", "INSERT", (), None, "digest"))
    error = JobError("source", "table is gone", "Restore it.")
    failed = StateUpdate(JobState.FAILED, "failed", error=error, desired=DesiredState.STOPPED)
    job = store.transition(job_id, failed)
    try:
        wait_until(lambda: restorations.has(job), what="it is restored")
    finally:
        restorations.close()
    assert (store.get(job_id).reason, store.get(job_id).error) == ("failed", error)


def test_a_job_whose_files_are_gone_says_so_and_can_be_removed(store, machine, objects):
    layout = submit(store, machine("one"))
    job_id, settings = layout.job_dir.name, machine("two")
    (layout.stored().shared / "plan.json").unlink()
    restorations = Restorations(store, settings, lambda: None)
    try:
        restorations.has(store.get(job_id))
        job = wait_until(
            lambda: (j := store.get(job_id)).reason.startswith("files cannot") and j,
            what="it is said",
        )
        assert "has no plan in" in job.reason
        store.want(job_id, DesiredState.REMOVED)
        restorations.reset()
        removed = store.get(job_id)
        wait_until(lambda: restorations.has(removed), what="it may be removed")
    finally:
        restorations.close()
    remove_job(settings.jobs_dir / job_id, settings, output=False)
    assert objects.keys("lake") == []


def test_inline_secrets_are_kept_with_the_job_and_never_in_the_bucket(store, machine, objects):
    layout = submit(store, machine("one"))
    run(layout)
    assert store.secrets(layout.job_dir.name) == SECRETS
    for key in objects.keys("lake"):
        content = objects.client.get_object(Bucket=objects.bucket, Key=key)["Body"].read()
        assert b"hush" not in content, key
    store.delete(layout.job_dir.name)
    assert store.secrets(layout.job_dir.name) is None


def test_the_lease_of_a_shared_table_is_stored_before_the_table_is_restored(store, machine):
    table = submit(store, machine("one"))
    run(table)
    reader = JobLayout(machine("two").jobs_dir / new_job_id())
    reader.create(machine("two").warehouse)
    source = SharedSource(table.job_dir.name, "users", None)
    keep_stored(reader.stored_of_shared(source))
    Lease(reader.lease(source)).begin()
    Lease(reader.lease(source)).hold(7)
    stop_storing(reader.of_shared(source).job_dir)
    there = restored(store, machine("two"), table)
    assert oldest_attached(leases_in(there.checkpoint)) == 7
    again = JobLayout(machine("three").jobs_dir / table.job_dir.name)
    again.make_room(machine("three").warehouse)
    take_over(again.stored(), 0)
    assert oldest_attached(leases_in(again.checkpoint)) == 7


def test_a_request_is_there_for_the_runner_of_another_machine(store, machine):
    layout = submit(store, machine("one"))
    run(layout)
    keep_stored(layout.stored())
    sent = RequestBox(layout.requests).send(Asked("acknowledge", {"reason": "r"}, "me", "key"))
    stop_storing(layout.job_dir)
    box = RequestBox(restored(store, machine("two"), layout).requests)
    assert box.sent(sent)
    assert box.send(Asked("acknowledge", {"reason": "r"}, "me", "key")) == sent


def test_readers_of_events_go_on_behind_what_another_machine_had(tmp_path):
    begin_events(tmp_path, 0)
    assert not (tmp_path / "events.jsonl").exists()
    append_event(tmp_path, {"at_ms": 1, "from": None, "to": "STARTING", "cause": "old"})
    end = (tmp_path / "events.jsonl").stat().st_size
    begin_events(tmp_path, end)
    assert json.loads((tmp_path / "events.jsonl").read_text())["cause"] == "old"
    begin_events(tmp_path, end + 700)
    append_event(tmp_path, {"at_ms": 1, "from": "STARTING", "to": "JOINING", "cause": "new"})
    changes, _ = read_changes(tmp_path, end + 700)
    assert [change.cause for change in changes] == ["new"]


def test_a_job_store_is_bound_to_a_warehouse_or_to_a_directory(tmp_path):
    store = JobStore.open(f"sqlite:///{tmp_path / 'jobs.db'}")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        bind_directory(store, tmp_path / name, "s3://lake/sluice")
        assert not list((tmp_path / name).iterdir())
    assert not store.has_directories
    for other in (None, "s3://lake/other"):
        with pytest.raises(ControlPlaneError, match="not to that of SLUICE_DATABASE_URL"):
            bind_directory(store, tmp_path / "one", other)
    store.close()


def test_a_job_store_that_began_with_a_directory_stays_with_it(tmp_path):
    store = JobStore.open(f"sqlite:///{tmp_path / 'jobs.db'}")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    bind_directory(store, tmp_path / "one", None)
    bind_directory(store, tmp_path / "one", "s3://lake/sluice")
    assert store.has_directories
    with pytest.raises(ControlPlaneError, match="belongs to no job store"):
        bind_directory(store, tmp_path / "two", "s3://lake/sluice")
    store.close()
