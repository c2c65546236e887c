"""A changelog topic is deleted, or created again by others: its table is copied again."""

from collections.abc import Callable
from functools import partial
from typing import Any

from joins.adapters.kafka.cluster import KafkaCluster
from joins.plan.plan import KafkaOptions
from tests.support.rig import Rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, delete_topics, end_offsets, produce, unique_name
from tests.support.wait import wait_until

CASES = {"deleted": None, "more": 1}  # tests/joins/test_topics_created_again.py has the others


def test_a_lost_changelog_topic_is_made_again_and_its_table_copied(rig: Rig) -> None:
    """The gate stays open, and the output has each record of the stream once."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("lost")
    topic = create_topic(servers)
    cluster = KafkaCluster(KafkaOptions(servers, ""))
    with (
        new_schema(rig.mariadb, USERS, fill_users(200)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        produce(servers, topic, [click(1, 0)])
        job.wait_output(path, 1)
        changelog = f"sluice.{job.directory.name}.user_info"
        expected = {0: "user 1"}
        for number, (case, more) in enumerate(CASES.items(), 1):
            known = cluster.require(changelog).topic_id
            ends = end_offsets(servers, changelog)
            delete_topics(servers, changelog)
            if more is not None:
                wait_until(partial(is_other, cluster, changelog, known), what="it is gone")
                if cluster.describe(changelog) is None:
                    create_topic(servers, changelog, partitions=len(ends))
                    for partition, end in ends.items():
                        junk = [{"op": "junk"}] * max(0, end + more)
                        if junk:
                            produce(servers, changelog, junk, partition=partition)
            run_sql(
                rig.mariadb,
                f"UPDATE user_info SET name = '{case}' WHERE user_id = {number}",
                schema=schema,
            )
            job.wait_for(is_copied(number + 1), f"{case}: the table is copied again")
            produce(servers, topic, [click(number, number), click(100 + number, 100 + number)])
            expected |= {number: case, 100 + number: f"user {100 + number}"}
            rows = {r["item_id"]: r["name"] for r in job.wait_output(path, len(expected))}
            assert rows == expected
            assert cluster.require(changelog).topic_id != known
        stalls = [e for e in job.events() if "changelog topic" in str(e)]
        assert stalls, "the history says so"


def is_other(cluster: KafkaCluster, name: str, known: str) -> bool:
    there = cluster.describe(name)
    return there is None or there.topic_id != known


def is_copied(generation: int) -> Callable[[dict[str, Any]], bool]:
    """Whether this generation is complete and served; the job never left JOIN."""

    def look(status: dict[str, Any]) -> bool:
        (dimension,) = status["dimensions"]
        assert status["phase"] == "JOIN"
        return (
            dimension["generation"] >= generation
            and dimension["evidence"] is not None
            and dimension["index_version"] == status["versions"]["user_info"]
            and dimension["lag_records"] == 0
        )

    return look
