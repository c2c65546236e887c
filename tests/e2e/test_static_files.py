"""Static files as dimensions: read once, whole at once, and not missed when they are gone."""

import shutil
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.file_feeds import write_json_lines
from tests.support.rig import Rig, kafka_table
from tests.support.shop import CLICKS_DDL, click
from tests.support.topics import create_topic, delete_topics, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment
KEY = "PRIMARY KEY (id) NOT ENFORCED"


def statement(rig: Rig, clicks: str, users: str, items: str, path: str) -> str:
    return (
        f"CREATE TABLE users (id BIGINT, name STRING, {KEY}) "
        f"WITH ('connector'='filesystem', 'path'='{users}', 'format'='parquet');"
        f"CREATE TABLE items (id BIGINT, title STRING, {KEY}) "
        f"WITH ('connector'='filesystem', 'path'='{items}', 'format'='json');"
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + f"CREATE TABLE enriched (item_id BIGINT, name STRING, title STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, u.name, i.title FROM click_event AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.id "
        "LEFT JOIN items FOR SYSTEM_TIME AS OF c.proctime AS i ON c.item_id = i.id;"
    )


def by_name(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {dimension["name"]: dimension for dimension in status["dimensions"]}


def write_users(rig: Rig, users: str) -> None:
    directory = rig.output(users)
    directory.mkdir(parents=True)
    for first in (1, 51):
        numbers = range(first, first + 50)
        table = pa.table({"id": numbers, "name": [f"user {n}" for n in numbers]})
        pq.write_table(table, directory / f"from-{first}.parquet")
    (directory / "_SUCCESS").touch()


def test_records_are_joined_with_files_that_nobody_needs_any_more(rig: Rig) -> None:
    clicks, path = create_topic(rig.kafka.bootstrap_servers), unique_name("static")
    users, items = unique_name("users"), f"{unique_name('items')}.json"
    write_users(rig, users)
    write_json_lines(rig.output(items), [{"id": 1, "title": "one"}, {"id": 2, "title": "two"}])
    produce(rig.kafka.bootstrap_servers, clicks, [click(7, 1), click(77, 2), click(777, 3)])
    with rig.job(statement(rig, clicks, users, items, path)) as job:
        opened = by_name(job.wait_joining())
        for name, rows in (("users", 100), ("items", 2)):
            assert opened[name]["evidence"] == "bounded_input_ended"
            assert opened[name]["snapshot"]["rows_done"] == rows
        found = {r["item_id"]: (r["name"], r["title"]) for r in job.wait_output(path, 3)}
        assert found == {1: ("user 7", "one"), 2: ("user 77", "two"), 3: (None, None)}
        wait_until(lambda: not job.children("joins.adapters.files.feed"), what="no process is left")

        shutil.rmtree(rig.output(users))
        write_json_lines(rig.output(items), [{"id": 1, "title": "another"}, "no row"])
        job.wait_restarted(job.kill_runner())
        produce(rig.kafka.bootstrap_servers, clicks, [click(100, 2), click(8, 1)])
        later = {(r["name"], r["title"]) for r in job.wait_output(path, 5)}
        assert later == {*found.values(), ("user 100", "two"), ("user 8", "one")}
        job.wait_for(
            lambda s: by_name(s)["items"]["evidence"] == "bounded_input_ended", "it is told again"
        )


def test_a_record_meets_all_rows_of_tables_without_a_key(rig: Rig) -> None:
    """One table is a file, one a topic that ends; its later rows are none of the table."""
    clicks, path = create_topic(rig.kafka.bootstrap_servers), unique_name("static")
    labels, prices = f"{unique_name('labels')}.csv", create_topic(rig.kafka.bootstrap_servers)
    rig.settings.warehouse_dir.mkdir(parents=True, exist_ok=True)
    rig.output(labels).write_text("1,new\n1,red\n1,red\n")
    produce(rig.kafka.bootstrap_servers, prices, [{"id": 1, "price": 5}, {"id": 1, "price": 6}])
    produce(rig.kafka.bootstrap_servers, clicks, [click(7, 1), click(7, 2)])
    servers = f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}'"
    sql = (
        f"CREATE TABLE labels (id BIGINT, label STRING) WITH ('connector'='filesystem', "
        f"'path'='{labels}', 'format'='csv');"
        f"CREATE TABLE prices (id BIGINT, price INT) WITH ('connector'='kafka', {servers}, "
        f"'topic'='{prices}', 'format'='json', 'scan.bounded.mode'='latest-offset');"
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + "CREATE TABLE enriched (item_id BIGINT, label STRING, price INT) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, l.label, p.price FROM click_event AS c "
        "LEFT JOIN labels FOR SYSTEM_TIME AS OF c.proctime AS l ON c.item_id = l.id "
        "LEFT JOIN prices FOR SYSTEM_TIME AS OF c.proctime AS p ON c.item_id = p.id;"
    )
    both = [(1, label, price) for label in ("new", "red", "red") for price in (5, 6)]
    with rig.job(sql) as job:
        produce(rig.kafka.bootstrap_servers, prices, [{"id": 2, "price": 7}])
        opened = by_name(job.wait_joining())
        assert {d["evidence"] for d in opened.values()} == {"bounded_input_ended"}
        rows = [(r["item_id"], r["label"], r["price"]) for r in job.wait_output(path, 7)]
        assert sorted(rows, key=str) == sorted([*both, (2, None, None)], key=str)
        wait_until(lambda: not job.children("joins.adapters.topic.feed"), what="its reader ends")

        delete_topics(rig.kafka.bootstrap_servers, prices)
        job.wait_restarted(job.kill_runner())
        produce(rig.kafka.bootstrap_servers, clicks, [click(7, 1)])
        rows = [(r["item_id"], r["label"], r["price"]) for r in job.wait_output(path, 13)]
        assert sorted(rows, key=str) == sorted([*both, *both, (2, None, None)], key=str)


def test_a_bad_line_stalls_until_the_file_is_corrected(rig: Rig) -> None:
    clicks, path = create_topic(rig.kafka.bootstrap_servers), unique_name("static")
    users, items = unique_name("users"), f"{unique_name('items')}.json"
    write_users(rig, users)
    write_json_lines(rig.output(items), [{"id": 1, "title": "one"}, {"id": "two"}])
    produce(rig.kafka.bootstrap_servers, clicks, [click(7, 1)])
    with rig.job(statement(rig, clicks, users, items, path)) as job:
        stalled = job.wait_state("STALLED")
        assert f'line 2 of file "{rig.output(items)}"' in stalled["error"]["message"]
        assert "Correct the file" in stalled["error"]["hint"]
        write_json_lines(rig.output(items), [{"id": 1, "title": "one"}, {"id": 2}])
        job.wait_joining()
        assert [(r["name"], r["title"]) for r in job.wait_output(path, 1)] == [("user 7", "one")]
