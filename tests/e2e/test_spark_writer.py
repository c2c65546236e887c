"""A job whose output asks more of its writers than ours keeps: Spark's writer, told and fenced."""

import pytest
from deltalake import DeltaTable

from joins.kernels.probe.probe import kernel_spec
from service.sql.planner.planner import plan_script
from tests.support.rig import Rig, RunningJob
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment


def look_back(rig: Rig, job: RunningJob, topic: str, path: str) -> None:
    """Without Spark, although rows lie in partitions and the log has Spark's commits."""
    row = next(row for row in rig.rows(path) if row["item_id"] == 7)
    place = f"{topic}/{row['_partition']}/{row['_offset']}"
    found = rig.get(f"/v1/jobs/{job.id}/rows/{place}")
    assert (found["state"], found["batch"]) == ("joined", row["_batch"])
    assert [r["gender"] for r in found["output_rows"]] == ["F"]
    answer = rig.client.post(f"/v1/jobs/{job.id}/batches/{row['_batch']}:replay?diff=true")
    answer.raise_for_status()
    assert answer.json()["identical"], answer.json()
    checks = rig.get(f"/v1/jobs/{job.id}/doctor")["checks"]
    assert [check for check in checks if check["ok"] is False] == []


def see_it_told(job: RunningJob) -> None:
    told = [w["message"] for w in job.status()["warnings"] if w["type"] == "submission"]
    assert any("delta.constraints.small" in text for text in told), told
    assert any("CHECK small stalls the job" in text for text in told), told
    status = job.wait_joining()
    assert status["writer"] == "spark"
    assert "partition columns gender" in status["writer_reason"]


def see_it_stalled(job: RunningJob) -> None:
    stalled = job.wait_for(
        lambda s: s["state"] == "STALLED" and s["error"]["type"] == "constraint-violated",
        "the violation is told",
    )
    assert "CHECK constraint small" in stalled["error"]["message"]
    log = (job.directory / "runner.log").read_text(errors="replace")
    assert "CHECK constraint small" in log
    assert "471100815" not in str(stalled["error"]) + log


def test_a_constrained_output_is_written_once_and_a_violation_stalls_the_job(rig: Rig) -> None:
    path = unique_name("constrained")
    topic = create_topic(rig.kafka.bootstrap_servers)
    with new_schema(rig.mariadb, USERS, fill_users(50)) as schema:
        sql = enrich_sql(rig, schema, topic, path)
        rows = kernel_spec(plan_script(sql).plan).output_schema
        output = str(rig.output(path))
        rig.output(path).mkdir(parents=True)
        DeltaTable.create(output, rows, partition_by=["gender"])
        DeltaTable(output).alter.add_constraint({"small": "item_id < 1000"})
        produce(rig.kafka.bootstrap_servers, topic, [click(n, n) for n in range(1, 101)])
        with rig.job(sql) as job:
            see_it_told(job)
            job.wait_output(path, 100)
            job.wait_restarted(job.kill_runner())
            produce(rig.kafka.bootstrap_servers, topic, [click(1, 101)])
            found = job.wait_output(path, 101)
            assert sorted(row["item_id"] for row in found) == list(range(1, 102))
            look_back(rig, job, topic, path)
            produce(rig.kafka.bootstrap_servers, topic, [click(2, 471100815), click(3, 102)])
            see_it_stalled(job)
            assert len(rig.rows(path)) == 101
            DeltaTable(output).alter.drop_constraint("small")
            found = job.wait_output(path, 103)
            assert sorted(row["item_id"] for row in found) == [*range(1, 103), 471100815]
            job.wait_state("JOINING")
