"""A job and a consumer group: it starts where the group is, and the group shows where it is."""

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.groups import commit_offsets, committed_offsets
from joins.plan.plan import KafkaOptions
from tests.joins.adapters.kafka.test_groups import member
from tests.support.rig import Rig, keyed_table
from tests.support.shop import CLICKS_DDL, click
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment


def enrich_sql(rig: Rig, topic: str, group: str, path: str, users: str) -> str:
    servers = rig.kafka.bootstrap_servers
    return (
        f"{users}CREATE TABLE clicks ({CLICKS_DDL}) WITH ('connector'='kafka', 'topic'='{topic}', "
        f"'properties.bootstrap.servers'='{servers}', 'format'='json', "
        f"'scan.startup.mode'='group-offsets', 'properties.group.id'='{group}', "
        f"'properties.auto.offset.reset'='earliest');"
        "CREATE TABLE enriched (item_id BIGINT, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, u.name FROM clicks AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;"
    )


def test_a_job_takes_over_from_a_group_and_the_group_follows_it(rig: Rig) -> None:
    """A consumer was there before; later somebody joins the group, which costs only its numbers."""
    servers, group, path = (
        rig.kafka.bootstrap_servers,
        unique_name("group"),
        unique_name("enriched"),
    )
    topic, ann = create_topic(servers), [{"user_id": 1, "name": "Ann"}]
    users = keyed_table(rig.kafka, "users", "user_id BIGINT, name STRING", ann)
    produce(servers, topic, [click(1, item) for item in range(10)])
    cluster = KafkaCluster(KafkaOptions(servers, topic))
    sql = enrich_sql(rig, topic, group, path, users)
    with member(servers, group, topic) as consumer:
        consumer.commit()
        refused = rig.post_job(sql)
        assert refused.status_code == 422, refused.text
        assert f'consumer group "{group}" is in use' in refused.json()["detail"]
    commit_offsets(cluster.connection, group, topic, {0: 4})
    with rig.job(sql) as job:
        rows = job.wait_output(path, 6)
        assert sorted(row["item_id"] for row in rows) == [4, 5, 6, 7, 8, 9]
        wait_until(
            lambda: committed_offsets(cluster.connection, group, topic) == {0: 10},
            what="it is shown",
        )
        with member(servers, group, topic):
            produce(servers, topic, [click(2, 10)])
            job.wait_output(path, 7)
            told = job.wait_for(
                lambda s: any(w["type"] == "group-offsets" for w in s["warnings"]), "it is told"
            )
            assert told["state"] == "JOINING"
            assert committed_offsets(cluster.connection, group, topic) == {0: 10}
        wait_until(
            lambda: committed_offsets(cluster.connection, group, topic) == {0: 11},
            what="it is shown",
        )
        job.wait_for(lambda s: s["warnings"] == [], "the warning is gone")
        job.kill_runner()
        produce(servers, topic, [click(3, 11)])
        job.wait_output(path, 8)
        wait_until(
            lambda: committed_offsets(cluster.connection, group, topic) == {0: 12},
            what="it is shown",
        )
