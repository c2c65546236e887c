"""Streams of changes: the output is always the join of each key's newest record, by its key."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, cdc_table, keyed_table, running_rig
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume, create_topic, produce, unique_name

CITIES = {1: "Oslo", 2: "Rome", 3: "Bonn"}
KEYS = 12
FAULTS = "C5=kill@2;C6=kill#3;C8=kill#5"
Rows = dict[int, tuple[str, str | None]]
Change = tuple[int, tuple[int, str] | None]


def cities(rig: Rig) -> str:
    rows = [{"id": number, "city": city} for number, city in CITIES.items()]
    return keyed_table(rig.kafka, "cities", "id BIGINT, city STRING", rows)


def stream(rig: Rig, options: str) -> str:
    return (
        "CREATE TABLE users (id BIGINT, city_id BIGINT, name STRING, proc AS PROCTIME(), "
        f"PRIMARY KEY (id) NOT ENFORCED) WITH ({options}, "
        f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}');"
    )


def into(options: str, join: str = "JOIN") -> str:
    return (
        "CREATE TABLE named (id BIGINT, name STRING NOT NULL, city STRING, "
        f"PRIMARY KEY (id) NOT ENFORCED) WITH ({options});"
        f"INSERT INTO named SELECT u.id, UPPER(u.name), c.city FROM users AS u {join} cities "
        "FOR SYSTEM_TIME AS OF u.proc AS c ON u.city_id = c.id WHERE u.name <> 'hidden';"
    )


def in_topic(rig: Rig, topic: str) -> Rows:
    rows: Rows = {}
    for record in consume(rig.kafka.bootstrap_servers, topic):
        key = json.loads(record.key)["id"]
        rows.pop(key, None)
        if record.value is not None:
            value = json.loads(record.value)
            assert value["id"] == key
            rows[key] = (value["name"], value["city"])
    return rows


def test_changes_of_a_keyed_topic_are_joined_into_a_keyed_topic(rig: Rig) -> None:
    """Updates, deletions, a row without a match and one that WHERE leaves out; explained too."""
    servers = rig.kafka.bootstrap_servers
    users, named = create_topic(servers), create_topic(servers, partitions=2)
    keyed = "'connector'='upsert-kafka', 'key.format'='json', 'value.format'='json'"
    sql = (
        cities(rig)
        + stream(rig, f"{keyed}, 'topic'='{users}'")
        + into(f"{keyed}, 'topic'='{named}', 'properties.bootstrap.servers'='{servers}'")
    )

    def send(key: int, *row: Any) -> tuple[int, int]:
        value = {"id": key, "city_id": row[0], "name": row[1]} if row else None
        (place,) = produce(servers, users, [value], keys=[{"id": key}], partition=0)
        return place

    def wait_for(job: RunningJob, rows: Rows) -> None:
        job.wait_for(lambda _: in_topic(rig, named) == rows, f"{rows}")

    with rig.job(sql) as job:
        for key in (1, 2, 3, 4):
            send(key, 1, f"u{key}")
        wait_for(job, {key: (f"U{key}", "Oslo") for key in (1, 2, 3, 4)})
        send(1, 2, "moved")
        _, deleted = send(2)
        send(3, 9, "nowhere")
        send(4, 1, "hidden")
        wait_for(job, {1: ("MOVED", "Rome")})
        send(2, 3, "back")
        _, bad = produce(servers, users, [b"{"], keys=[{"id": 1}], partition=0)[0]
        send(4, 2, "shown")
        wait_for(job, {1: ("MOVED", "Rome"), 2: ("BACK", "Bonn"), 4: ("SHOWN", "Rome")})
        job.wait_all_joined()
        told = rig.get(f"/v1/jobs/{job.id}/rows/{users}/0/{deleted}")
        assert (told["state"], told["output_rows"]) == ("deleted", [])
        for again in job.replays():
            assert again["verdict"] in ("identical", "nothing-to-compare"), again
        letters = rig.client.post(
            f"/v1/jobs/{job.id}/dead-letters:replay",
            json={"records": [{"topic": users, "partition": 0, "offset": bad}]},
        ).json()
        assert "records of this stream are changes" in str(letters)


def envelope(key: int, row: tuple[int, str] | None) -> dict[str, Any]:
    after = None if row is None else {"id": key, "city_id": row[0], "name": row[1]}
    before = {"id": key, "city_id": 0, "name": ""} if row is None else None
    return {"op": "d" if row is None else "u", "before": before, "after": after, "source": {}}


def messages(key: int, row: tuple[int, str] | None) -> list[dict[str, Any] | None]:
    """A change, and the tombstone of a deletion."""
    return [envelope(key, row), *([] if row else [None])]


def in_partitions(made: Iterable[Change], partitions: int) -> dict[int, list[Change]]:
    found: dict[int, list[Change]] = {}
    for key, row in made:
        found.setdefault(key % partitions, []).append((key, row))
    return found


def changes(random: Random) -> Iterator[Change]:
    while True:
        name = random.choice(("ann", "bob", "hidden", "cid"))
        row = None if random.random() < 0.25 else (random.randint(0, 4), name)
        yield random.randrange(KEYS), row


@pytest.mark.experiment
def test_a_connectors_changes_are_merged_into_a_delta_table_over_kills(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    servers, path, partitions = kafka.bootstrap_servers, unique_name("named"), 2
    users = create_topic(servers, partitions=partitions)
    made, rows = changes(Random(7)), dict[int, tuple[int, str] | None]()
    with running_rig(tmp_path, kafka, mariadb, failpoints=FAULTS) as rig:
        sql = (
            cities(rig)
            + stream(
                rig,
                f"'connector'='kafka', 'topic'='{users}', 'format'='debezium-json', "
                "'scan.startup.mode'='earliest-offset', 'scan.max-records-per-batch'='40'",
            )
            + into(f"'connector'='delta', 'path'='{path}'", join="LEFT JOIN")
        )
        with rig.job(sql) as job:
            for _ in range(7):
                for partition, sent in in_partitions(islice(made, 40), partitions).items():
                    rows |= dict(sent)
                    values = [v for key, row in sent for v in messages(key, row)]
                    keys = [{"id": key} for key, row in sent for _ in messages(key, row)]
                    produce(servers, users, values, keys=keys, partition=partition)
                job.wait_for(lambda s: (s["probe"] or {}).get("lag_records") == 0, "all is read")
            expected = {
                key: (row[1].upper(), CITIES.get(row[0]))
                for key, row in rows.items()
                if row is not None and row[1] != "hidden"
            }

            def found() -> Rows:
                return {row["id"]: (row["name"], row["city"]) for row in rig.rows(path)}

            job.wait_for(lambda _: found() == expected, f"{expected}", deadline_s=600)
            job.wait_all_joined()
            assert len(rig.rows(path)) == len(expected)
            for again in job.replays():
                assert again["verdict"] in ("identical", "nothing-to-compare"), again
            points = {marker.name for marker in (job.directory / "checkpoint/failpoints").iterdir()}
            assert points == set(FAULTS.split(";"))


MEMBERS = "CREATE TABLE members (id BIGINT PRIMARY KEY, city_id BIGINT, name VARCHAR(40))"
MANY = "INSERT INTO members SELECT seq, seq % 4, CONCAT('m', seq) FROM seq_1_to_12000"
CHANGED = (
    "UPDATE members SET name = CONCAT(name, '!') WHERE id % 7 = {0}",
    "DELETE FROM members WHERE id % 11 = {0}",
    "UPDATE members SET name = 'hidden' WHERE id % 13 = {0}",
    "INSERT INTO members VALUES (100000 + {0}, 1, 'new')",
    "UPDATE members SET id = 200000 + id WHERE id % 17 = {0} AND id < 100000",
)


def test_a_captured_table_is_followed_into_a_keyed_table(rig: Rig) -> None:
    """It changes while it is copied; a killed runner and CDC process leave no row too many."""
    path = unique_name("named")
    small = ["'scan.incremental.snapshot.chunk.size'='1000'"]
    with new_schema(rig.mariadb, MEMBERS, MANY) as schema:
        declared = "id BIGINT, city_id BIGINT, name STRING, proc AS PROCTIME(), PRIMARY KEY (id) "
        members = cdc_table(rig.mariadb, schema, "members", declared + "NOT ENFORCED", small)
        named = into(f"'connector'='delta', 'path'='{path}'", "LEFT JOIN").replace(
            "users", "members"
        )

        def expected() -> Rows:
            rows = run_sql(rig.mariadb, "SELECT id, city_id, name FROM members", schema=schema)
            return {
                key: (name.upper(), CITIES.get(city))
                for key, city, name in rows
                if name != "hidden"
            }

        def found() -> Rows:
            return {row["id"]: (row["name"], row["city"]) for row in rig.rows(path)}

        with rig.job(cities(rig) + members + named) as job:
            for number in range(3):
                for statement in CHANGED:
                    run_sql(rig.mariadb, statement.format(number), schema=schema)
            job.wait_for(lambda _: found() == expected(), "the table is followed", deadline_s=600)
            old = job.kill_runner()
            for statement in CHANGED:
                run_sql(rig.mariadb, statement.format(3), schema=schema)
            job.wait_restarted(old)
            job.wait_for(lambda _: found() == expected(), "the table is followed again")
            job.kill_child("joins.adapters.mysql.binlog")
            for statement in CHANGED:
                run_sql(rig.mariadb, statement.format(4), schema=schema)
            job.wait_for(lambda _: found() == expected(), "changes of another process")
            assert len(rig.rows(path)) == len(expected())
            checks = rig.get(f"/v1/jobs/{job.id}/doctor")["checks"]
            assert [check for check in checks if check["ok"] is False] == []
            run_sql(rig.mariadb, "ALTER TABLE members DROP COLUMN name", schema=schema)
            job.wait_state("STALLED")
            run_sql(rig.mariadb, "ALTER TABLE members ADD COLUMN name VARCHAR(40)", schema=schema)
            job.wait_for(
                lambda s: "cannot be followed any more" in str(s["error"]), "it is not copied again"
            )
