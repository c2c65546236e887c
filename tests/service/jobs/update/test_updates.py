"""Updates of stored jobs: the plan's file is the update; the store's copy follows it."""

import json
from dataclasses import replace

import pytest

from joins.plan.plan import TableStream
from service.errors import JobConflictError, JobStateError, StoreError, UpdateRefusedError
from service.jobs.store import plan_codec
from service.jobs.store.job import JobState, StateUpdate
from service.jobs.store.layout import JobLayout
from service.jobs.store.plan_copy import note_newest
from service.jobs.store.plans import JobPlans
from service.jobs.submit.submission import SubmissionRequest, Submissions, _with_partitions
from service.jobs.update.updates import Updates, with_resolved
from service.sql.text.script import SqlError
from tests.support.control_plane import HOOKS, script
from tests.support.stored_jobs import stored_services

SCRIPT = script()
FILTERED = SCRIPT.replace("= u.user_id;", "= u.user_id WHERE c.item > 5;")
WIDER = SCRIPT.replace(
    "name STRING) WITH ('connector'='black", "name STRING, item BIGINT) WITH ('connector'='black"
)
WIDER = WIDER.replace("u.name FROM", "u.name, c.item FROM")
USERS = SCRIPT[: SCRIPT.index("CREATE TABLE clicks")]
ITEMS = USERS.replace("user_id", "item").replace("users", "items")
JOINED = ITEMS + SCRIPT.replace(
    "= u.user_id;",
    "= u.user_id LEFT JOIN items FOR SYSTEM_TIME AS OF c.proctime AS i ON c.item = i.item;",
)
LATER = SCRIPT.replace("earliest-offset", "latest-offset")


@pytest.fixture
def services(tmp_path, secret):
    with stored_services(tmp_path) as services:
        yield services


@pytest.fixture
def job(services):
    return services.submissions.submit(SubmissionRequest(SCRIPT, "clicks"))


def plans_of(services, job):
    return JobPlans(JobLayout(services.settings.jobs_dir / job.id))


def apply(services, job, sql):
    return services.updates.store(job.id, services.updates.draft(job.id, sql))


def test_an_update_gives_the_job_its_next_plan(services, job):
    stored = apply(services, job, FILTERED)
    plan = plans_of(services, job).newest()
    assert (plan.number, plan.name) == (2, "clicks")
    assert plan.where is not None
    assert stored.sql == plan.sql == FILTERED
    assert plan_codec.load(stored.plan) == plan
    event = services.store.events.after(0, job.id)[-1]
    assert event.origin is event.target is JobState.CREATED
    assert "plan 2" in event.cause
    assert plans_of(services, job).read(1).sql == SCRIPT


def test_a_preview_changes_nothing(services, job):
    draft = services.updates.draft(job.id, FILTERED)
    assert [change.kind for change in draft.changes] == ["filter"]
    assert plans_of(services, job).newest_number == 1
    assert services.store.get(job.id) == job


def test_a_refused_update_says_why_and_changes_nothing(services, job):
    draft = services.updates.draft(job.id, LATER)
    assert [change.kind for change in draft.refused] == ["stream-start"]
    with pytest.raises(UpdateRefusedError, match="the job has started") as refused:
        services.updates.store(job.id, draft)
    assert "scan.startup" in refused.value.hint
    assert plans_of(services, job).newest_number == 1


def test_the_same_script_again_is_no_update(services, job):
    apply(services, job, FILTERED)
    draft = services.updates.draft(job.id, FILTERED)
    assert draft.changes == ()
    assert services.updates.store(job.id, draft).sql == FILTERED
    assert plans_of(services, job).newest_number == 2


def test_of_two_updates_from_one_preview_one_is_refused(services, job):
    one, other = (services.updates.draft(job.id, sql) for sql in (FILTERED, WIDER))
    services.updates.store(job.id, one)
    with pytest.raises(JobConflictError, match="given plan 2 meanwhile"):
        services.updates.store(job.id, other)
    assert plans_of(services, job).newest().where is not None


def test_a_script_that_is_none_names_its_place(services, job):
    with pytest.raises(SqlError, match="line 1"):
        services.updates.draft(job.id, "SELEC 1;")


def test_a_finished_job_and_one_that_is_removed_are_not_changed(services, job):
    for state in (JobState.STARTING, JobState.JOINING, JobState.FINISHED):
        services.store.transition(job.id, StateUpdate(state, "go"))
    with pytest.raises(JobStateError, match="has finished"):
        services.updates.draft(job.id, FILTERED)


def test_a_password_in_the_script_must_be_the_one_that_is_stored(services):
    first = script(password="open sesame")
    job = services.submissions.submit(SubmissionRequest(first, "inline"))
    changed = first.replace("= u.user_id;", "= u.user_id WHERE c.item > 5;")
    assert services.updates.draft(job.id, changed).refused == ()
    with pytest.raises(UpdateRefusedError, match="password") as refused:
        services.updates.draft(job.id, changed.replace("open sesame", "another one"))
    assert "another one" not in str(refused.value)


def test_a_changelog_keeps_its_partitions_when_the_setting_changes(services, job):
    """Its topic and the rows in it stay as they are; the setting is for new topics."""
    (before,) = plans_of(services, job).newest().dimensions
    assert before.source.changelog_partitions == services.settings.changelog_partitions == 2
    settings = services.settings.model_copy(update={"changelog_partitions": 7})
    updates = Updates(services.store, settings, Submissions(services.store, settings, HOOKS))
    draft = updates.draft(job.id, JOINED)
    assert not draft.refused
    updates.store(job.id, draft)
    after = {d.name: d.source for d in plans_of(services, job).newest().dimensions}
    assert after["users"] == before.source
    assert after["items"].changelog_partitions == 7
    assert updates.draft_rollback(job.id).refused == ()


def test_the_stream_of_a_table_keeps_the_partitions_of_its_topic(services, job):
    plan = plans_of(services, job).read(1)
    table = replace(plan.dimensions[0].source, changelog_partitions=None)
    declared = replace(plan, probe=replace(plan.probe, source=TableStream(table, ("user_id",))))
    kept = _with_partitions(declared, services.settings)
    assert kept.probe.source.table.changelog_partitions == 2
    assert with_resolved(declared, declared, kept) == kept


# Back
# --------------------------------------------------------------------------------------------------


def test_a_rollback_is_a_new_plan_with_the_content_of_an_older_one(services, job):
    apply(services, job, FILTERED)
    draft = services.updates.draft_rollback(job.id)
    assert [change.kind for change in draft.changes] == ["filter"]
    services.updates.store(job.id, draft)
    plans = plans_of(services, job)
    assert plans.newest_number == 3
    assert replace(plans.newest(), number=1) == plans.read(1)
    assert services.store.get(job.id).sql == SCRIPT


def test_a_rollback_leaves_a_column_that_came_later_as_null(services, job):
    apply(services, job, WIDER)
    draft = services.updates.draft_rollback(job.id, 1)
    assert [(c.kind, c.is_accepted) for c in draft.changes] == [("output-column-removed", True)]
    with pytest.raises(UpdateRefusedError, match="readers of the output"):
        services.updates.store(job.id, services.updates.draft(job.id, SCRIPT))


def test_after_a_rollback_the_column_comes_back_in_its_type_only(services, job):
    apply(services, job, WIDER)
    services.updates.store(job.id, services.updates.draft_rollback(job.id))
    other = WIDER.replace(
        "item BIGINT) WITH ('connector'='black", "item STRING) WITH ('connector'='black"
    )
    other = other.replace("c.item FROM", "CAST(c.item AS STRING) FROM")
    with pytest.raises(UpdateRefusedError, match="in the old type"):
        apply(services, job, other)
    assert apply(services, job, WIDER).sql == WIDER


def test_a_script_that_a_newer_sluice_refuses_is_not_changed_but_submitted_again(services, job):
    plan = plans_of(services, job).newest()
    layout = JobLayout(services.settings.jobs_dir / job.id)
    layout.plan.write_bytes(plan_codec.dump(replace(plan, sql=f"{SCRIPT} DROP TABLE clicks;")))
    with pytest.raises(UpdateRefusedError, match="a statement follows the INSERT") as refused:
        services.updates.draft(job.id, SCRIPT)
    assert "submit the new one as another job" in refused.value.hint


@pytest.mark.parametrize("number", [0, 2, 7, None])
def test_a_plan_that_there_is_not_is_refused(services, job, number):
    with pytest.raises(JobConflictError, match="only plan 1"):
        services.updates.draft_rollback(job.id, number)


# After a crash
# --------------------------------------------------------------------------------------------------


def test_a_crash_between_the_file_and_the_store_is_made_up_for(services, job):
    draft = services.updates.draft(job.id, FILTERED)
    assert plans_of(services, job).add(draft.plan)
    assert services.store.get(job.id).sql == SCRIPT
    services.updates.catch_up()
    assert services.store.get(job.id).sql == FILTERED
    count = len(services.store.events.after(0, job.id))
    services.updates.catch_up()
    assert len(services.store.events.after(0, job.id)) == count


def test_a_damaged_plan_of_one_job_keeps_no_other_from_catching_up(services, job):
    other = services.submissions.submit(SubmissionRequest(SCRIPT, "other"))
    for each in (job, other):
        plans_of(services, each).add(services.updates.draft(each.id, FILTERED).plan)
    JobLayout(services.settings.jobs_dir / job.id).plan_of(2).write_text("{")
    services.updates.catch_up()
    assert services.store.get(other.id).sql == FILTERED
    assert json.loads(services.store.get(job.id).plan)["number"] == 1


def test_a_plan_that_the_store_does_not_take_now_is_noted_later(services, job, monkeypatch):
    """A restoration or a start that fails by its store is tried again."""
    plans_of(services, job).add(services.updates.draft(job.id, FILTERED).plan)
    layout = JobLayout(services.settings.jobs_dir / job.id)

    def away(*_):
        raise StoreError("job store cannot be reached", hint="Start it.")

    with monkeypatch.context() as patched:
        patched.setattr(services.store, "change_plan", away)
        with pytest.raises(StoreError):
            note_newest(services.store, layout)
    note_newest(services.store, layout)
    assert services.store.get(job.id).sql == FILTERED


def test_the_same_update_again_is_noted_where_the_store_did_not_take_the_first(
    services, job, monkeypatch
):
    def away(*_):
        raise StoreError("job store cannot be reached", hint="Start it.")

    with monkeypatch.context() as patched:
        patched.setattr(services.store, "change_plan", away)
        with pytest.raises(StoreError):
            apply(services, job, FILTERED)
    assert plans_of(services, job).newest_number == 2
    assert apply(services, job, FILTERED).sql == FILTERED
    assert plan_codec.load(services.store.get(job.id).plan).number == 2


def test_a_plan_that_cannot_be_read_from_disk_keeps_no_control_plane_from_starting(services, job):
    layout = JobLayout(services.settings.jobs_dir / job.id)
    layout.plan_of(2).mkdir(parents=True)
    services.updates.catch_up()
    assert services.store.get(job.id).sql == SCRIPT
