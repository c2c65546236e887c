"""What executors of a cluster would not reach is refused when a script is submitted."""

from dataclasses import replace

import pytest

from joins.plan.plan import (
    DeltaSink,
    DeltaTableSource,
    FileFormat,
    FileSource,
    KafkaOptions,
    KafkaSink,
    SharedSource,
    TopicHistory,
)
from service.config import Settings
from service.errors import SubmissionError
from service.jobs.store.layout import JobLayout
from service.jobs.submit.places import check_nodes
from service.sql.planner.planner import plan_script
from tests.support.control_plane import script

PLAN = plan_script(script(), name="nodes").plan
CLUSTER = {"spark_master": "spark://master:7077", "warehouse": "s3://lake/sluice"}
INDEX = {"index_dir": "/var/lib/sluice"}
STORE = "s3://other/enriched"


def writing(path="enriched", *, late=None, sink=None):
    probe = replace(PLAN.probe, late_records_path=late)
    return replace(PLAN, sink=sink or DeltaSink(path), probe=probe)


def behind(files):
    plan = writing(STORE)
    source = replace(plan.probe.source, history=TopicHistory(files))
    return replace(plan, probe=replace(plan.probe, source=source))


def shared(job):
    source = SharedSource(job, "users", 1)
    return replace(writing(), dimensions=(replace(PLAN.dimensions[0], source=source),))


TAKEN = {
    "in_the_warehouse": (writing("shop/enriched"), INDEX),
    "in_another_store": (writing(STORE, late=STORE), INDEX),
    "files_of_a_stream_in_a_store": (behind(DeltaTableSource("s3://other/clicks")), INDEX),
    "a_topic": (writing(sink=KafkaSink(KafkaOptions("k:9092", "enriched"))), INDEX),
    "a_directory_of_one_machine": (writing("/data/out"), {"spark_master": "local[2,4]"}),
    "a_directory_that_all_share": (writing("/data/out"), {"warehouse": None}),
}
REFUSED = {
    "an_output_in_a_directory": (
        *(writing("/data/out"), INDEX),
        r'output "[a-z_]+" is in directory "/data/out", which executors of "spark://master:7077"',
    ),
    "late_records_in_a_directory": (
        *(writing(late="file:///data/late"), INDEX),
        r'late records of "clicks" is in directory "file:///data/late"',
    ),
    "files_of_a_stream_in_a_directory": (
        *(behind(FileSource("clicks", FileFormat.PARQUET)), INDEX),
        r'history of stream "clicks" is in directory "clicks"',
    ),
    "no_directory_for_indexes": (writing(), {}, r'dimension "users" is looked up in an index'),
}


def settings(tmp_path, given):
    return Settings.load(data_dir=tmp_path, **{**CLUSTER, **given})


def check(plan, found):
    check_nodes(plan, found, in_store=found.warehouse is not None)


@pytest.mark.parametrize(("plan", "given"), TAKEN.values(), ids=TAKEN)
def test_what_executors_reach_is_taken(tmp_path, plan, given):
    check(plan, settings(tmp_path, given))


@pytest.mark.parametrize(("plan", "given", "why"), REFUSED.values(), ids=REFUSED)
def test_what_executors_do_not_reach_is_refused_and_the_hint_helps(tmp_path, plan, given, why):
    with pytest.raises(SubmissionError, match=why) as refused:
        check(plan, settings(tmp_path, given))
    hint = refused.value.hint
    repaired = writing("orders/enriched") if "orders/enriched" in hint else plan
    if "'history.connector' = 'delta'" in hint:
        repaired = behind(DeltaTableSource("s3://other/clicks"))
    check(repaired, settings(tmp_path, INDEX))


def test_a_shared_table_in_a_directory_is_refused_until_it_is_created_again(tmp_path):
    found = settings(tmp_path, INDEX)
    JobLayout(found.jobs_dir / "before").create()
    with pytest.raises(SubmissionError, match="before SLUICE_WAREHOUSE was set") as refused:
        check(shared("before"), found)
    assert "create it again" in refused.value.hint
    JobLayout(found.jobs_dir / "again").create(found.warehouse)
    check(shared("again"), found)
