"""A connector's topic and a compacted topic of rows as dimensions, and what proves them whole."""

from typing import Any

import pytest

from tests.support.foreign_topics import Connector, row
from tests.support.rig import Rig, RunningJob, kafka_table, upsert_table
from tests.support.shop import CLICKS_DDL, click
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
DDL = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"


def statement(rig: Rig, connector: Connector, titles: str, clicks: str, path: str) -> str:
    servers = f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}'"
    return (
        f"CREATE TABLE users ({DDL}) WITH ('connector'='kafka', 'topic'='{connector.topic}', "
        f"{servers}, 'format'='debezium-json', 'snapshot.settle-time'='1 h', "
        f"'snapshot.notifications.topic'='{connector.notices}');"
        + upsert_table(rig.kafka, "titles", titles, DDL)
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + f"CREATE TABLE enriched (item_id BIGINT, name STRING, title STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, u.name, t.name FROM click_event AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.id "
        "LEFT JOIN titles FOR SYSTEM_TIME AS OF c.proctime AS t ON c.item_id = t.id;"
    )


def dimension(status: dict[str, Any], name: str) -> dict[str, Any]:
    return next(d for d in status["dimensions"] if d["name"] == name)


@pytest.fixture
def connector(rig: Rig):
    made = Connector(rig.kafka.bootstrap_servers, 2)
    yield made
    made.close()


def test_records_wait_for_what_shows_that_the_topics_are_whole(
    rig: Rig, connector: Connector
) -> None:
    clicks, path = create_topic(rig.kafka.bootstrap_servers), unique_name("foreign")
    titles = create_topic(
        rig.kafka.bootstrap_servers, partitions=2, config={"cleanup.policy": "compact"}
    )
    produce(
        rig.kafka.bootstrap_servers,
        titles,
        [row(1, "one"), row(2, "two"), row(3, "three"), None],
        keys=[{"id": 1}, {"id": 2}, {"id": 3}, {"id": 3}],
    )
    produce(rig.kafka.bootstrap_servers, clicks, [click(7, 1), click(8, 2), click(9, 3)])
    connector.notify("STARTED")
    connector.snapshot({7: "user 7", 8: "user 8", 9: "user 9"}, is_whole=False)
    with rig.job(statement(rig, connector, titles, clicks, path)) as job:
        waits = job.wait_for(
            lambda s: "no sign of its end" in (s["reason"] or ""), "the snapshot is not at its end"
        )
        assert waits["phase"] == "LOAD"
        assert dimension(waits, "users")["waits_for"].startswith("3 snapshot rows")
        connector.scanned(3)
        for key in (9, 8):  # each partition has what comes behind the snapshot
            connector.change(key, None)
        connector.change(8, "eight")
        opened = job.wait_joining()
        proofs = ("table_scan_completed", "first_streamed_change")  # either may be heard first
        assert dimension(opened, "users")["evidence"] in proofs
        assert dimension(opened, "titles")["evidence"] == "end_offsets"
        found = {r["item_id"]: (r["name"], r["title"]) for r in job.wait_output(path, 3)}
        assert found == {1: ("user 7", "one"), 2: ("eight", "two"), 3: (None, None)}
        again(rig, job, connector, clicks, path)
        given_up(rig, job, connector, clicks, path)


def again(rig: Rig, job: RunningJob, connector: Connector, clicks: str, path: str) -> None:
    """A second snapshot, of which user 8 is not a part any more."""
    connector.notify("STARTED")
    connector.snapshot({7: "seven", 10: "ten"})
    connector.scanned(2)
    job.wait_for(
        lambda s: (
            dimension(s, "users")["generation"] == 2
            and dimension(s, "users")["evidence"] is not None
            and dimension(s, "users")["index_version"] == s["versions"]["users"]
        ),
        "the second snapshot is complete",
    )
    produce(rig.kafka.bootstrap_servers, clicks, [click(7, 4), click(8, 5), click(10, 6)])
    rows = {r["item_id"]: r["name"] for r in job.wait_output(path, 6)}
    assert {item: rows[item] for item in (4, 5, 6)} == {4: "seven", 5: None, 6: "ten"}


def given_up(rig: Rig, job: RunningJob, connector: Connector, clicks: str, path: str) -> None:
    """A third snapshot, which is aborted: the join goes on, and says what is not whole."""
    connector.notify("STARTED")
    connector.snapshot({7: "VII"}, is_whole=False)
    connector.notify("ABORTED")
    status = job.wait_for(lambda s: "has given up" in str(s["warnings"]), "a warning")
    assert (status["state"], status["phase"]) == ("JOINING", "JOIN")
    assert (status["stalls"], status["error"]) == ([], None)
    (warning,) = (w for w in status["warnings"] if w["type"] == "snapshot-unproven")
    assert 'table "users" (generation 3) is not shown to be whole' in warning["message"]
    assert f"sluice acknowledge {job.id} snapshot-unproven" in warning["hint"]
    assert "(generation 3); the connector has given up its snapshot" in status["reason"]
    why = rig.get(f"/v1/jobs/{job.id}/explain-wait")
    assert "records are joined all the same" in str(why["conditions"])
    produce(rig.kafka.bootstrap_servers, clicks, [click(7, 7), click(10, 8)])
    rows = {r["item_id"]: r["name"] for r in job.wait_output(path, 8)}
    assert {item: rows[item] for item in (7, 8)} == {7: "VII", 8: "ten"}
    connector.notify("STARTED")
    connector.snapshot({7: "vii"})
    connector.scanned(1)
    done = job.wait_for(lambda s: "has given up" not in str(s), "the fourth snapshot is whole")
    assert done["state"] == "JOINING"
    assert "STALLED" not in {event["to"] for event in job.events()}


def test_an_operator_says_that_a_topic_is_whole(rig: Rig, connector: Connector) -> None:
    clicks, path = create_topic(rig.kafka.bootstrap_servers), unique_name("foreign")
    titles = create_topic(rig.kafka.bootstrap_servers)
    produce(rig.kafka.bootstrap_servers, clicks, [click(7, 1)])
    connector.notify("STARTED")
    connector.snapshot({7: "user 7", 8: "user 8"}, is_whole=False)
    connector.notify("ABORTED")
    with rig.job(statement(rig, connector, titles, clicks, path)) as job:
        stalled = job.wait_state("STALLED")
        assert stalled["error"]["type"] == "snapshot-unproven"
        body = {"cause": "snapshot-unproven", "reason": "the table is archived"}
        rig.client.post(f"/v1/jobs/{job.id}:acknowledge", json=body).raise_for_status()
        opened = job.wait_joining()
        assert dimension(opened, "users")["evidence"] == "operator_override"
        assert [r["name"] for r in job.wait_output(path, 1)] == ["user 7"]
        shown = rig.get(f"/v1/jobs/{job.id}/acknowledgements")["items"]
        assert [each["reason"] for each in shown] == ["the table is archived"]
