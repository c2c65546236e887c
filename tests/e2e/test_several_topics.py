"""A stream of several topics: each record is joined once, and known by its topic to everybody."""

import json
from collections import Counter
from typing import Any

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.groups import committed_offsets
from joins.plan.plan import KafkaOptions
from tests.support.rig import Rig, RunningJob, keyed_table
from tests.support.shop import CLICKS_DDL, click
from tests.support.topics import create_topic, delete_topics, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment
PARTITIONS = {"a": 1, "b": 3}
CORRECTED = 1_000


def stream_sql(rig: Rig, users: str, topics: str, path: str) -> str:
    servers = rig.kafka.bootstrap_servers
    return (
        f"{users}CREATE TABLE clicks ({CLICKS_DDL}, of STRING METADATA FROM 'topic' VIRTUAL, "
        "part INT METADATA FROM 'partition' VIRTUAL) WITH ('connector'='kafka', "
        f"'properties.bootstrap.servers'='{servers}', 'format'='json', {topics}, "
        "'scan.startup.mode'='earliest-offset');"
        "CREATE TABLE enriched (item_id BIGINT, name STRING, of STRING, part INT) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, u.name, c.of, c.part FROM clicks AS c "
        "JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;"
    )


def made_users(rig: Rig) -> str:
    rows = [{"user_id": n, "name": f"user {n}"} for n in range(5)]
    return keyed_table(rig.kafka, "users", "user_id BIGINT, name STRING", rows)


class Clicks:
    """Numbered clicks in the partitions of several topics."""

    def __init__(self, rig: Rig) -> None:
        self._servers = rig.kafka.bootstrap_servers
        self.sent: Counter[tuple[str, int, int]] = Counter()

    def produce(self, topic: str, partitions: int, count: int) -> None:
        for partition in range(partitions):
            items = range(len(self.sent), len(self.sent) + count)
            places = produce(
                self._servers, topic, [click(n % 5, n) for n in items], partition=partition
            )
            self.sent.update((topic, *place) for place in places)


def joined(rows: list[dict[str, Any]]) -> Counter[tuple[str, int, int]]:
    assert all((row["of"], row["part"]) == (row["_topic"], row["_partition"]) for row in rows)
    return Counter((row["_topic"], row["_partition"], row["_offset"]) for row in rows)


def test_each_record_of_two_topics_is_joined_once_over_a_kill_and_known_by_its_topic(
    rig: Rig,
) -> None:
    """One has another number of partitions than the other; one record of it cannot be read."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("several")
    names = {n: create_topic(servers, partitions=p) for n, p in PARTITIONS.items()}
    a, b = names["a"], names["b"]
    clicks, group = Clicks(rig), unique_name("group")
    for name, topic in names.items():
        clicks.produce(topic, PARTITIONS[name], 10)
    topics = f"'topic'='{a};{b}', 'properties.group.id'='{group}'"
    with rig.job(stream_sql(rig, made_users(rig), topics, path)) as job:
        job.wait_output(path, 40)
        old = job.kill_runner()
        for name, topic in names.items():
            clicks.produce(topic, PARTITIONS[name], 7)
        produce(servers, b, [b"no click"], partition=2)
        job.wait_restarted(old)
        rows = job.wait_output(path, len(clicks.sent))
        assert joined(rows) == clicks.sent
        job.wait_for(lambda s: s["probe"]["dead_letters"] == 1, "the one that is none is read")
        status = job.wait_all_joined()
        assert status["probe"]["topics"] == [a, b]
        ends = {f"{a}/0": 17, f"{b}/0": 17, f"{b}/1": 17, f"{b}/2": 18}
        assert status["probe"]["next_offsets"] == status["probe"]["end_offsets"] == ends
        cluster = KafkaCluster(KafkaOptions(servers, ""))
        wait_until(lambda: committed_offsets(cluster.connection, group, b) == {0: 17, 1: 17, 2: 18})
        assert committed_offsets(cluster.connection, group, a) == {0: 17}
        see_what_became_of_records(rig, job, b)
        join_the_letter_again(rig, job, b, path, len(clicks.sent))
        checks = rig.get(f"/v1/jobs/{job.id}/doctor")["checks"]
        assert [c for c in checks if c["ok"] is False] == []

        see_a_topic_created_again(rig, job, clicks, (a, b), path)


def see_a_topic_created_again(
    rig: Rig, job: RunningJob, clicks: Clicks, topics: tuple[str, str], path: str
) -> None:
    """The second one: it stalls the stream, then is read from its beginning; the first goes on."""
    servers, (a, b) = rig.kafka.bootstrap_servers, topics
    delete_topics(servers, b)
    told = wait_stalled(job, "topic-missing")
    assert f'topic "{b}" is gone' in told["error"]["message"]
    create_topic(servers, b, partitions=3)
    told = wait_stalled(job, "topic-identity-changed")
    assert f'topic "{b}" has id' in told["error"]["message"]
    clicks.produce(b, 3, 2)
    clicks.produce(a, 1, 1)
    url, why = f"/v1/jobs/{job.id}:acknowledge", {"reason": "it was emptied"}
    known = rig.client.post(url, json={"cause": "topic-identity-changed", **why})
    assert known.json()["gaps"] == []
    rows = [row for row in job.wait_output(path, 69 + 7) if row["item_id"] != CORRECTED]
    assert joined(rows) == clicks.sent
    ends = {f"{a}/0": 18, f"{b}/0": 2, f"{b}/1": 2, f"{b}/2": 2}
    status = job.wait_all_joined()
    assert status["probe"]["next_offsets"] == ends


def wait_stalled(job: RunningJob, cause: str) -> dict[str, Any]:
    return job.wait_for(
        lambda s: s["state"] == "STALLED" and s["error"]["type"] == cause, f"it stalls: {cause}"
    )


def see_what_became_of_records(rig: Rig, job: RunningJob, topic: str) -> None:
    """A record of the second topic, and the batch that has it."""
    told = rig.get(f"/v1/jobs/{job.id}/rows/{topic}/1/12")
    assert told["coordinates"] == {"topic": topic, "partition": 1, "offset": 12}
    assert told["state"] == "joined"
    (row,) = told["output_rows"]
    assert (row["of"], row["_partition"], row["_offset"]) == (topic, 1, 12)
    assert f"{topic}/1" in told["pin"]["end_offsets"]
    for batch in {told["batch"], 0}:
        again = rig.client.post(f"/v1/jobs/{job.id}/batches/{batch}:replay?diff=true").json()
        assert again["verdict"] == "identical", again
        assert again["rows"] > 0
    unknown = rig.client.get(f"/v1/jobs/{job.id}/rows/another/1/12")
    assert topic in unknown.json()["hint"]


def join_the_letter_again(rig: Rig, job: RunningJob, topic: str, path: str, rows: int) -> None:
    (letter,) = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
    assert (letter["topic"], letter["partition"], letter["offset"]) == (topic, 2, 17)
    assert letter["place"] == f"{topic}/2/17"
    shown = rig.client.get(f"/v1/jobs/{job.id}/dead-letters/2/17?topic={topic}")
    assert shown.json()["value"] == "no click"
    assert rig.client.get(f"/v1/jobs/{job.id}/dead-letters/2/17").status_code == 400
    place = {"topic": topic, "partition": 2, "offset": 17}
    again = [{**place, "value": "still none"}]
    url = f"/v1/jobs/{job.id}/dead-letters:replay"
    told = rig.client.post(url, json={"records": again}).json()
    assert {name: told["still_bad"][0][name] for name in place} == place
    fixed = [{**place, "value": json.dumps(click(1, CORRECTED))}]
    told = rig.client.post(url, json={"records": fixed}).json()
    assert (told["rows"], told["still_bad"]) == (1, [])
    last = next(r for r in job.wait_output(path, rows + 1) if r["item_id"] == CORRECTED)
    assert (last["of"], last["part"], last["_topic"], last["_partition"]) == (topic, 2, topic, 2)


def test_a_topic_that_appears_while_a_job_runs_is_read_from_its_beginning(rig: Rig) -> None:
    """Also one that came while nobody looked; a topic of another name is not read."""
    servers, path, prefix = rig.kafka.bootstrap_servers, unique_name("like"), unique_name("like")
    clicks, users = Clicks(rig), made_users(rig)
    like = f"'topic-pattern'='{prefix}-[a-z]+', 'scan.topic-partition-discovery.interval'='1 s'"
    sql = stream_sql(rig, users, like, path)
    refused = rig.post_job(sql)
    assert refused.status_code == 422
    assert "no topic matches" in refused.json()["detail"]
    create_topic(servers, f"{prefix}-m", partitions=2)
    clicks.produce(f"{prefix}-m", 2, 5)
    with rig.job(sql) as job:
        see_all_joined(job, path, clicks, [f"{prefix}-m"])
        assert job.status()["probe"]["next_offsets"] == {"0": 5, "1": 5}
        for name in (f"{prefix}-1", f"x{prefix}-a"):
            create_topic(servers, name)
            produce(servers, name, [click(1, -1)])
        create_topic(servers, f"{prefix}-a", partitions=3)
        clicks.produce(f"{prefix}-a", 3, 4)
        clicks.produce(f"{prefix}-m", 1, 2)
        see_all_joined(job, path, clicks, [f"{prefix}-m", f"{prefix}-a"])
        job.stop()
        create_topic(servers, f"{prefix}-b")
        clicks.produce(f"{prefix}-b", 1, 3)
        job.start()
        see_all_joined(job, path, clicks, [f"{prefix}-{n}" for n in "mab"])
        old = job.kill_runner()
        clicks.produce(f"{prefix}-a", 3, 1)
        job.wait_restarted(old)
        see_all_joined(job, path, clicks, [f"{prefix}-{n}" for n in "mab"])
        assert rig.get(f"/v1/jobs/{job.id}/rows/{prefix}-b/0/1")["state"] == "joined"


def see_all_joined(job: RunningJob, path: str, clicks: Clicks, topics: list[str]) -> None:
    """Each record once, without anything that an operator has had to acknowledge."""
    assert joined(job.wait_output(path, len(clicks.sent))) == clicks.sent
    told = job.wait_all_joined()
    assert told["probe"]["topics"] == topics
    assert told["acknowledgements"] == []


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
