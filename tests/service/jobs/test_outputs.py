"""Two jobs write to one output only on purpose, however its address is written."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from joins.plan.connections import S3_ENDPOINT
from joins.plan.plan import DeltaSink, FurtherInsert, KafkaOptions, KafkaSink, PrintSink
from service.config import Settings
from service.errors import JobConflictError
from service.jobs.store.job import DesiredState, JobState, StateUpdate
from service.jobs.store.plan_codec import dump
from service.jobs.store.rows import StoredJob
from service.jobs.store.store import JobStore
from service.jobs.submit.places import TakenOutputs
from service.jobs.submit.submission import SubmissionRequest, Submissions
from service.sql.planner.planner import PlannedScript, plan_script
from tests.support.control_plane import HOOKS, script

PLAN = plan_script(script(), name="places").plan
LAKE = (
    *("orders/enriched", "orders//enriched/", "./orders/enriched", "orders/../orders/enriched"),
    *("{warehouse}/orders/enriched", "{warehouse}/orders/enriched/", "{lake}/link/enriched"),
    *("{lake}/link/../orders/./enriched", "ORDERS/enriched"),
)
BUCKET = ("s3://lake/orders", "s3a://lake/orders", "s3://lake/orders/", "s3a://lake/orders/")
ELSEWHERE = ("orders/other", "orders2/enriched", "s3://lake/orders2", "s3://lake2/orders")
BROKERS = ("one:9092", "one:9092,two:9092", "two:9092, ONE:9092")


@pytest.fixture
def settings(tmp_path):
    found = Settings.load(data_dir=tmp_path / "data", allowed_paths=str(tmp_path / "lake"))
    (found.warehouse_dir / "orders" / "enriched").mkdir(parents=True)
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "link").symlink_to(found.warehouse_dir / "orders")
    return found


class Service:
    """Submissions of plans: a script names its plan, and the outside has no say."""

    def __init__(self, settings, url=None):
        self.store = JobStore.open(url or f"sqlite:///{settings.data_dir / 'jobs.db'}")
        self.plans = {}
        hooks = replace(
            HOOKS,
            plan=lambda sql, name, catalog: PlannedScript(self.plans[sql], (), ()),
            preflight=lambda plan, settings, secrets: plan,
        )
        self.submissions = Submissions(self.store, settings, hooks)

    def _named(self, plan):
        sql = f"script {len(self.plans)}"
        self.plans[sql] = plan
        return sql

    def submit(self, plan, *, append=False, key=None):
        request = SubmissionRequest(self._named(plan), None, key, append=append)
        return self.submissions.submit(request)

    def draft(self, plan, *, append=False):
        return self.submissions.draft(self._named(plan), None, outside=True, append=append)

    def rest(self, job, state):
        for step in (JobState.STARTING, JobState.JOINING, state):
            self.store.transition(job.id, StateUpdate(step, "go"))

    def forget(self):
        for job in self.store.all_jobs():
            self.store.delete(job.id)


@pytest.fixture
def service(settings):
    opened = Service(settings)
    yield opened
    opened.store.close()


def table(path, *, endpoint=None):
    return DeltaSink(path, store=() if endpoint is None else ((S3_ENDPOINT, endpoint),))


def topic(brokers, name="enriched", *, once=True, cluster_id=None):
    prefix = "t" if once else None
    return KafkaSink(
        KafkaOptions(brokers, name), transactional_id_prefix=prefix, cluster_id=cluster_id
    )


def writing(sink, name):
    return replace(PLAN, sink=sink, name=name)


def also_writing(sink, name):
    """A statement set whose second INSERT writes to `sink`."""
    more = FurtherInsert("s", (), PLAN.joins, None, PLAN.output, "x", sink)
    return replace(PLAN, name=name, more_inserts=(more,))


def late_in(sink, name):
    probe = replace(PLAN.probe, late_records_path=sink.path, late_store=sink.store)
    return replace(PLAN, name=name, probe=probe)


def placed(sink, settings):
    if isinstance(sink, KafkaSink):
        return sink
    lake = settings.allowed_directories[0]
    return replace(sink, path=sink.path.format(warehouse=settings.warehouse_dir, lake=lake))


def assert_refused(service, first, second):
    job = service.submit(first)
    for refuse in (service.draft, service.submit):
        with pytest.raises(JobConflictError, match=f"is written by job {job.id}") as refused:
            refuse(second)
        assert f"sluice jobs rm {job.id}" in refused.value.hint
        assert "--append" in refused.value.hint
    assert [each.id for each in service.store.all_jobs()] == [job.id]
    assert "is also written by job" in service.draft(second, append=True).warnings[-1]
    service.submit(second, append=True)
    service.forget()


def _spellings():
    tables = [[table(path) for path in LAKE], [table(path) for path in BUCKET]]
    topics = [topic(brokers, cluster_id="c") for brokers in (*BROKERS, "three:9092")]
    for group in (*tables, topics, [topic(brokers) for brokers in BROKERS]):
        yield from product(group, group)


def _writers(sink):
    yield writing
    yield also_writing
    if isinstance(sink, DeltaSink):
        yield late_in


def test_every_spelling_of_an_output_by_every_kind_of_writer_is_one_output(service, settings):
    draw = random.Random(19)
    pairs = list(_spellings())
    for first, second in draw.sample(pairs, 60):
        first, second = placed(first, settings), placed(second, settings)
        write, also_write = draw.choice(
            [
                (one, two)
                for one, two in product(_writers(first), _writers(second))
                if (one is late_in) == (two is late_in)
            ]
        )
        assert_refused(service, write(first, "first"), also_write(second, "second"))


def test_other_places_are_other_outputs(service, settings):
    sinks = [table(LAKE[0]), table(BUCKET[0]), *(table(path) for path in ELSEWHERE)]
    sinks += [table("s3://lake/orders", endpoint="http://127.0.0.1:9000")]
    sinks += [topic("one:9092", "a"), topic("one:9092", "b"), topic("two:9092", "a")]
    sinks += [topic("one:9092", "c", cluster_id="x"), topic("one:9092", "c", cluster_id="y")]
    for number, sink in enumerate(sinks):
        service.submit(writing(placed(sink, settings), f"job {number}"))
    assert len(service.store.all_jobs()) == len(sinks)


@pytest.mark.parametrize("once", list(product([True, False], repeat=2)))
def test_a_topic_is_shared_by_jobs_that_both_write_at_least_once(service, once):
    first, second = (
        writing(topic("one:9092", once=each), name)
        for each, name in zip(once, ("first", "second"), strict=True)
    )
    if any(once):
        assert_refused(service, first, second)
        return
    job = service.submit(first)
    assert service.submit(second).warnings == (
        f'topic "enriched" is also written by job {job.id} "first".',
    )


def test_the_same_script_twice_names_the_job_and_both_ways_out(service):
    plan = writing(table("out"), "enriched")
    job = service.submit(plan)
    for refuse in (service.draft, service.submit):
        with pytest.raises(JobConflictError, match='has the name "enriched"') as refused:
            refuse(plan)
        assert job.id in refused.value.message
        assert 'delta table "out"' in refused.value.message
        assert refused.value.hint == (
            f"Change that job with sluice jobs update {job.id} SCRIPT, remove it with sluice jobs "
            f"rm {job.id}, or give this one another name with "
            "--name and add --append."
        )
    with pytest.raises(JobConflictError, match="has the name"):
        service.submit(plan, append=True)
    service.submit(replace(plan, name="again"), append=True)


@pytest.mark.parametrize("state", [JobState.STOPPED, JobState.PAUSED, JobState.FAILED])
def test_a_job_that_can_run_again_keeps_its_output(service, state):
    job = service.submit(writing(table("out"), "first"))
    service.rest(job, state)
    with pytest.raises(JobConflictError, match=f"is {state}"):
        service.submit(writing(table("out"), "second"))


def test_rows_of_a_job_that_has_finished_are_warned_about(service):
    plan = writing(table("out"), "enriched")
    job = service.submit(plan)
    service.rest(job, JobState.FINISHED)
    (warning,) = service.submit(plan).warnings
    assert warning == f'delta table "out" has rows of job {job.id} "enriched", which has finished.'


def test_the_output_of_a_job_that_is_being_removed_is_not_free_yet(service):
    plan = writing(table("out"), "enriched")
    job = service.submit(plan)
    service.store.want(job.id, DesiredState.REMOVED)
    with pytest.raises(JobConflictError, match="is being removed"):
        service.submit(plan)
    service.store.delete(job.id)
    service.submit(plan)


def test_the_ways_out_of_a_refusal_work(service):
    plan = writing(table("out"), "enriched")

    def refused(plan, match):
        with pytest.raises(JobConflictError, match=match):
            service.submit(plan)

    first = service.submit(plan)
    refused(plan, "has the name")
    second = service.submit(replace(plan, name="second"), append=True)
    refused(replace(plan, name="third"), "is written by")
    service.store.delete(second.id)
    service.store.want(first.id, DesiredState.REMOVED)
    refused(plan, "is being removed")
    service.store.delete(first.id)
    service.submit(plan)


def test_previews_are_not_compared(service):
    preview = writing(PrintSink(row_limit=10), "preview")
    assert [service.submit(preview).name for _ in range(2)] == ["preview", "preview"]


def test_of_submissions_at_once_into_one_output_one_is_kept(service, settings):
    """Two control planes' worth of threads: each has its own store and its own memory."""
    planes = [service, Service(settings)]

    def submit(number):
        path = LAKE[number % 3]
        try:
            return planes[number % 2].submit(writing(table(path), f"job {number}")).id
        except JobConflictError:
            return None

    with ThreadPoolExecutor(8) as pool:
        kept = [job_id for job_id in pool.map(submit, range(16)) if job_id is not None]
    planes[1].store.close()
    assert len(kept) == 1
    assert [job.id for job in service.store.all_jobs()] == kept
    left = [path for path in Path(settings.jobs_dir).iterdir() if path.is_dir()]
    assert [path.name for path in left] == kept


class Read:
    """What one transaction reads; `meanwhile` runs between its reads."""

    def __init__(self, plans, meanwhile=lambda: None):
        self._plans = plans
        self._meanwhile = meanwhile

    def jobs(self):
        running = JobState.JOINING, DesiredState.RUNNING
        return [StoredJob(name, name, *running) for name in self._plans]

    def plans(self, job_ids):
        yield from ((job_id, dump(self._plans[job_id])) for job_id in job_ids)
        self._meanwhile()


def test_a_check_that_has_read_the_store_before_hides_no_job_from_another(settings):
    taken, plan = TakenOutputs(settings), writing(table("out"), "second")

    def check_earlier():
        taken.check(writing(table("other"), "third"), Read({}), append=False)

    stored = Read({"first": writing(table("out"), "first")}, check_earlier)
    with pytest.raises(JobConflictError, match='is written by job first "first"'):
        taken.check(plan, stored, append=False)


def test_the_same_key_is_the_same_job_however_often_it_comes_at_once(service):
    plan = writing(table("out"), "enriched")
    sql = service._named(plan)

    def submit(_):
        return service.submissions.submit(SubmissionRequest(sql, None, "key")).id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(submit, range(16)))) == 1
