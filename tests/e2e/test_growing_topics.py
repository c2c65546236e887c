"""Topics that get partitions while a job runs: the stream is read on, a dimension says its end."""

import pytest

from tests.e2e.test_consumer_groups import enrich_sql
from tests.support.rig import Rig
from tests.support.shop import click
from tests.support.topics import add_partitions, create_topic, produce, unique_name

pytestmark = [pytest.mark.experiment, pytest.mark.timeout(400)]


def test_a_streams_new_partitions_are_read_and_a_dimensions_stall_it(rig: Rig) -> None:
    """The new ones from their beginning, once, also over a kill; the rows that are there stay."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("growing")
    users, clicks = create_topic(servers), create_topic(servers)
    produce(servers, users, [{"user_id": 1, "name": "Ann"}], keys=[{"user_id": 1}])
    produce(servers, clicks, [click(1, 0)])
    with rig.job(enrich_sql(rig, clicks, unique_name("group"), path, users)) as job:
        job.wait_output(path, 1)
        add_partitions(servers, clicks, 3)
        for partition in (1, 2):
            produce(servers, clicks, [click(1, 10 * partition)], partition=partition)
        job.wait_output(path, 3)
        job.kill_runner()
        produce(servers, clicks, [click(1, 21)], partition=2)
        rows = job.wait_output(path, 4)
        assert sorted((row["item_id"], row["name"]) for row in rows) == [
            (item, "Ann") for item in (0, 10, 20, 21)
        ]
        status = job.wait_all_joined()
        assert status["probe"]["next_offsets"] == {"0": 1, "1": 1, "2": 2}
        assert status["acknowledgements"] == []

        add_partitions(servers, users, 2)
        told = job.wait_state("STALLED")
        assert told["error"]["type"] == "source"
        assert "has 2 partitions, and had 1" in told["error"]["message"]
        assert "submit it anew" in told["error"]["hint"]
        produce(servers, clicks, [click(1, 22)], partition=2)
        rows = job.wait_output(path, 5)
        assert {row["name"] for row in rows} == {"Ann"}
