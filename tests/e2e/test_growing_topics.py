"""Topics that get partitions while a job runs: the stream is read on, a dimension says its end."""

import pytest

from tests.e2e.test_consumer_groups import enrich_sql
from tests.e2e.test_several_topics import made_users, stream_sql, wait_stalled
from tests.support.rig import Rig
from tests.support.shop import click
from tests.support.topics import (
    add_partitions,
    create_topic,
    delete_topics,
    produce,
    unique_name,
)

pytestmark = pytest.mark.experiment


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
        assert "submit it again" in told["error"]["hint"]
        produce(servers, clicks, [click(1, 22)], partition=2)
        rows = job.wait_output(path, 5)
        assert {row["name"] for row in rows} == {"Ann"}


def test_a_pattern_whose_topic_is_deleted_goes_on_without_it_once_somebody_says_so(
    rig: Rig,
) -> None:
    """Rows of it that were joined stay; made again it is read from its beginning, on word again."""
    servers, path, prefix = rig.kafka.bootstrap_servers, unique_name("shrinking"), unique_name("of")
    a, b = (create_topic(servers, f"{prefix}-{n}") for n in "ab")
    for number, topic in enumerate((a, b)):
        produce(servers, topic, [click(1, number)])
    pattern = f"'topic-pattern'='{prefix}-.*'"
    with rig.job(stream_sql(rig, made_users(rig), pattern, path)) as job:
        job.wait_output(path, 2)
        delete_topics(servers, b)
        shown = wait_stalled(job, "topic-missing")
        assert "without it" in shown["error"]["hint"]
        url, why = f"/v1/jobs/{job.id}:acknowledge", {"reason": "b has been retired"}
        record = rig.client.post(url, json={"cause": "topic-missing", **why}).json()
        assert (record["cause"], record["gaps"]) == ("topic-missing", [])
        produce(servers, a, [click(2, 2)])
        rows = job.wait_output(path, 3)
        assert sorted(row["item_id"] for row in rows) == [0, 1, 2]
        status = job.wait_for(lambda s: s["probe"]["lag_records"] == 0, "all is joined")
        assert (status["state"], status["probe"]["topics"]) == ("JOINING", [a])
        assert status["probe"]["next_offsets"] == {f"{a}/0": 2}
        old = job.kill_runner()
        job.wait_restarted(old)
        create_topic(servers, b)
        produce(servers, b, [click(3, 3)])
        wait_stalled(job, "topic-identity-changed")
        rig.client.post(url, json={"cause": "topic-identity-changed", **why}).raise_for_status()
        rows = job.wait_output(path, 4)
        assert sorted(row["item_id"] for row in rows) == [0, 1, 2, 3]
