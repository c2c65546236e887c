"""What lists show of a stored plan."""

import time
from contextlib import closing

import pytest

from service.api import services
from service.api.services import KnownEnds
from service.api.views import ends_of
from service.jobs.store.job import NewJob, new_job_id
from service.jobs.store.plan_codec import dump
from service.jobs.store.store import JobStore
from service.sql.planner.planner import plan_script
from tests.support.control_plane import script


def test_a_stored_plan_names_what_it_reads_and_writes():
    ends = ends_of(dump(plan_script(script()).plan))
    assert [(each.table, each.connector, each.place) for each in ends.inputs] == [
        ("clicks", "kafka", "clicks"),
        ("users", "mysql-cdc", "127.0.0.1:3306/shop.users"),
    ]
    assert [(each.table, each.connector) for each in ends.sinks] == [("enriched", "blackhole")]


GENERATED = """\
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE shown (n BIGINT) WITH ('connector' = 'print');
INSERT INTO shown SELECT n FROM numbers;
"""


def test_a_stream_that_the_job_generates_is_an_input_without_a_topic():
    [stream] = ends_of(dump(plan_script(GENERATED).plan)).inputs
    assert (stream.table, stream.connector, stream.place) == ("numbers", "datagen", None)


@pytest.mark.parametrize("plan", [b"", b"{", b"[]", b'{"probe": 1}'])
def test_a_damaged_plan_has_no_ends(plan):
    ends = ends_of(plan)
    assert (ends.sinks, ends.inputs) == ([], [])


def _plan_into(path):
    return f'{{"sink_table": "t", "sink": {{"kind": "delta", "path": "{path}"}}}}'.encode()


def _places(ends, store):
    return [sink.place for known in ends.of(store, store.page()).values() for sink in known.sinks]


def test_a_list_shows_the_newest_plans_also_of_another_control_plane(tmp_path, monkeypatch):
    monkeypatch.setattr(services, "_MOST_KNOWN", 2)
    ids = [new_job_id() for _ in range(3)]
    standby = KnownEnds()
    with closing(JobStore.open(f"sqlite:///{tmp_path / 'jobs.db'}")) as store:
        for at, job_id in enumerate(ids[:2]):
            store.add(NewJob(job_id, f"j{at}", _plan_into(f"p{at}"), "…", (), None, "digest"))
        assert sorted(_places(standby, store)) == ["p0", "p1"]
        time.sleep(0.002)
        store.change_plan(ids[0], _plan_into("new"), "…")
        assert sorted(_places(standby, store)) == ["new", "p1"]
        store.add(NewJob(ids[2], "j2", _plan_into("p2"), "…", (), None, "digest"))
        assert sorted(_places(standby, store)) == ["new", "p1", "p2"], "more than it keeps"
