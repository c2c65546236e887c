"""What lists show of a stored plan."""

import pytest

from service.api.views import ends_of
from service.jobs.store.plan_codec import dump
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
