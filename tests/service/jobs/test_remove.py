"""What a job has made outside its directory goes with it, even when little of the job is left."""

import errno
import shutil
from contextlib import closing
from dataclasses import replace

import pytest

from joins.adapters.delta.log import create_table
from joins.adapters.kafka.cluster import KafkaCluster
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.kernels.probe.event_times import LATE_RECORDS
from joins.kernels.probe.probe import kernel_spec
from joins.plan.errors import SourceUnavailableError
from joins.plan.plan import KafkaOptions
from service.config import Settings
from service.errors import SecretError
from service.jobs.store import plan_codec
from service.jobs.store.job import new_job_id
from service.jobs.store.layout import JobLayout
from service.jobs.store.store import JobStore
from service.jobs.supervise.remove import remove_job
from service.jobs.supervise.supervisor import Supervisor
from service.security.resolution import output_path
from service.sql.planner.planner import plan_script
from tests.support.topics import create_topic, unique_name
from tests.support.wait import wait_until

SQL = """
CREATE TABLE users (user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED)
WITH ('connector'='mysql-cdc', 'hostname'='127.0.0.1', 'username'='cdc',
      'password'='${{secret:shop}}', 'database-name'='shop', 'table-name'='users');
CREATE TABLE clicks (user_id BIGINT, proctime AS PROCTIME())
WITH ('connector'='kafka', 'topic'='clicks', 'properties.bootstrap.servers'='{servers}',
      'format'='json', 'scan.startup.mode'='earliest-offset'{login});
CREATE TABLE enriched (user_id BIGINT, name STRING) WITH ('connector'='delta', 'path'='enriched');
INSERT INTO enriched SELECT c.user_id, u.name FROM clicks AS c
LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;
"""
LOGIN = (
    ", 'properties.security.protocol'='SASL_PLAINTEXT', 'properties.sasl.mechanism'='PLAIN',"
    " 'properties.sasl.username'='u', 'properties.sasl.password'='${secret:kafka}'"
)


def job_of(directory, servers, login=""):
    plan = plan_script(SQL.format(servers=servers, login=login), name="shop").plan
    plan = replace(plan, probe=replace(plan.probe, late_records_path="late"))
    layout = JobLayout(directory / "jobs" / unique_name("job"))
    layout.create()
    layout.plan.write_bytes(plan_codec.dump(plan))
    return layout, plan


def test_a_job_whose_plan_is_gone_has_nothing_left_outside(tmp_path):
    layout = JobLayout(tmp_path / "jobs" / "j")
    layout.create()
    remove_job(layout.job_dir, Settings.load(data_dir=tmp_path), output=True)
    layout.discard()
    remove_job(layout.job_dir, Settings.load(data_dir=tmp_path), output=True)


def test_a_crash_while_a_directory_is_deleted_is_made_up_for(tmp_path, monkeypatch):
    """Of a large directory a part may be left, such as the plan without the job's secrets."""
    layout, _ = job_of(tmp_path, "localhost:1", LOGIN)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        layout.discard()
    assert layout.job_dir.exists()
    assert remove_job(layout.job_dir, Settings.load(data_dir=tmp_path), output=True) == ()
    layout.discard()
    assert not layout.job_dir.exists()
    layout.discard()


def test_a_directory_that_cannot_be_deleted_is_not_taken_for_deleted(tmp_path, monkeypatch):
    """The removal fails, keeps the job's row, and is tried again."""
    layout, _ = job_of(tmp_path, "localhost:1")

    def read_only(path, **_):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(type(layout.plan), "unlink", read_only)
    with pytest.raises(OSError, match="Read-only"):
        layout.discard()
    assert layout.plan.exists()


def test_a_file_between_the_directories_of_jobs_keeps_no_control_plane_from_its_start(tmp_path):
    settings = Settings.load(data_dir=tmp_path)
    kept = settings.jobs_dir / f"{new_job_id()}.tar.gz"
    kept.parent.mkdir()
    kept.write_bytes(b"of an operator")
    with closing(JobStore.open(settings.store_url)) as store:
        supervisor = Supervisor(store, settings, remove_job)
        supervisor.start()
        supervisor.close()
    assert kept.read_bytes() == b"of an operator"


def test_topics_and_output_go_although_the_databases_password_is_gone(tmp_path, kafka):
    layout, plan = job_of(tmp_path, kafka.bootstrap_servers)
    settings = Settings.load(data_dir=tmp_path)
    output = output_path(plan.sink, settings)
    meta = JobMeta("life", 1, "clicks", "id", {0: 0}, {})
    Checkpoint(layout.checkpoint).write_meta(meta)
    app_id = f"sluice:{layout.job_dir.name}:life"
    create_table(output, kernel_spec(plan).output_schema, creator=app_id)
    late = settings.warehouse_dir / "late"
    create_table(late, LATE_RECORDS, creator=app_id)
    topic = create_topic(kafka.bootstrap_servers, f"sluice.{layout.job_dir.name}.users")
    remove_job(layout.job_dir, settings, output=False)
    assert output.exists()
    cluster = KafkaCluster(KafkaOptions(kafka.bootstrap_servers, ""))
    wait_until(lambda: cluster.describe(topic) is None, deadline_s=20, what="topic is gone")
    assert remove_job(layout.job_dir, settings, output=True) == ()
    assert not output.exists()
    assert not late.exists()
    create_table(output, kernel_spec(plan).output_schema)
    (left,) = remove_job(layout.job_dir, settings, output=True)
    assert left == f'delta table "{output}" is kept: the job has not created it'
    assert output.exists()


@pytest.mark.parametrize("login", ["", LOGIN], ids=["away", "login_is_gone"])
def test_topics_of_a_cluster_that_is_gone_for_good_can_be_left(tmp_path, login):
    layout, _ = job_of(tmp_path, "127.0.0.1:9", login)
    settings = Settings.load(data_dir=tmp_path)
    with pytest.raises((SourceUnavailableError, SecretError)) as refused:
        remove_job(layout.job_dir, settings, output=False)
    name = layout.job_dir.name
    assert f"leave its topics: sluice jobs rm {name} --leave-topics" in refused.value.hint
    layout.leave_topics.touch()
    (left,) = remove_job(layout.job_dir, settings, output=True)
    assert left == f'topic "sluice.{name}.users" of 127.0.0.1:9 is left'


def test_the_clusters_own_login_is_needed(tmp_path):
    layout, _ = job_of(tmp_path, "127.0.0.1:9", LOGIN)
    with pytest.raises(SecretError, match="kafka"):
        remove_job(layout.job_dir, Settings.load(data_dir=tmp_path), output=False)
