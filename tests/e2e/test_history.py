"""FLIP-326's HybridSource: history in files, changes in a topic, nothing lost at the seam.

The watermark follows the system clock only behind both (acceptance B05).
"""

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.plan.plan import KafkaOptions
from tests.support.file_feeds import write_json_lines
from tests.support.foreign_topics import row
from tests.support.rig import Rig, kafka_table
from tests.support.shop import CLICKS_DDL, click
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
PROCESS = "joins.adapters.topic.history"
ROWS, FILES = 2_000, 40
DDL = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"


def statement(rig: Rig, topic: str, files: str, clicks: str, path: str, start: str = "") -> str:
    return (
        f"CREATE TABLE users ({DDL}) WITH ('connector'='upsert-kafka', 'topic'='{topic}', "
        f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}', 'key.format'='json', "
        f"'value.format'='json', 'history.connector'='filesystem', 'history.path'='{files}', "
        f"'history.format'='json'{start});"
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + f"CREATE TABLE named (item_id BIGINT, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO named SELECT c.item_id, u.name FROM click_event AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.id;"
    )


def write_files(rig: Rig, files: str) -> dict[int, str]:
    rig.output(files).mkdir(parents=True)
    for number in range(FILES):
        rows = (row(key, f"file {key}") for key in range(number, ROWS, FILES))
        write_json_lines(rig.output(files) / f"{number:03}.json", rows)
    return {key: f"file {key}" for key in range(ROWS)}


def send(rig: Rig, topic: str, names: dict[int, str | None]) -> None:
    records = [None if name is None else row(key, name) for key, name in names.items()]
    keys = [{"id": key} for key in names]
    produce(rig.kafka.bootstrap_servers, topic, records, keys=keys)


def applied(expected: dict[int, str], names: dict[int, str | None]) -> None:
    for key, name in names.items():
        if name is None:
            expected.pop(key, None)
        else:
            expected[key] = name


def test_the_topic_goes_on_where_the_files_end_over_kills(rig: Rig) -> None:
    servers = rig.kafka.bootstrap_servers
    topic, clicks = create_topic(servers, partitions=2), create_topic(servers)
    files, path = unique_name("users"), unique_name("history")
    expected = write_files(rig, files)
    broken = rig.output(files) / "020.json"
    whole = broken.read_text()
    broken.write_text("<html>\n")
    early = {1: "one", 2: None, ROWS: "new"}
    send(rig, topic, early)
    applied(expected, early)
    asked = [0, 1, 2, 20, ROWS - 1, ROWS, ROWS + 1]
    produce(servers, clicks, [click(key, number) for number, key in enumerate(asked)])
    refused = rig.post_job(statement(rig, topic, files, clicks, path))
    assert refused.status_code >= 400
    assert "line 1 of file" in refused.json()["detail"]
    broken.write_text(whole)
    with rig.job(statement(rig, topic, files, clicks, path)) as job:
        job.kill_child(PROCESS)  # while it reads files
        opened = job.wait_joining()["dimensions"][0]
        assert (opened["evidence"], opened["generation"]) == ("end_offsets", 1)
        rows = {r["item_id"]: r["name"] for r in job.wait_output(path, len(asked))}
        assert rows == {number: expected.get(key) for number, key in enumerate(asked)}

        job.kill_child(PROCESS)  # behind the files, which nothing needs now
        for file in rig.output(files).iterdir():
            file.unlink()
        later = {1: None, 2: "back", 20: "twenty", ROWS + 1: "newest"}
        send(rig, topic, later)
        applied(expected, later)
        total = sum(KafkaCluster(KafkaOptions(servers, topic)).end_offsets(topic).values())
        job.wait_for(
            lambda s: (
                _applied_offsets(s) >= total
                and s["dimensions"][0]["index_version"] == s["versions"]["users"]
            ),
            "the changes are in the index",
        )
        more = range(len(asked), 2 * len(asked))
        produce(servers, clicks, [click(k, n) for n, k in zip(more, asked, strict=True)])
        rows = {r["item_id"]: r["name"] for r in job.wait_output(path, 2 * len(asked))}
        assert [rows[number] for number in more] == [expected.get(key) for key in asked]
        assert len(rig.rows(path)) == 2 * len(asked)


def _applied_offsets(status: dict) -> int:
    position = (status["dimensions"][0].get("freshness") or {}).get("position") or {}
    return sum(position.get("offsets", {}).values())


def test_a_gap_is_refused_with_its_size(rig: Rig) -> None:
    servers = rig.kafka.bootstrap_servers
    topic, clicks = create_topic(servers), create_topic(servers)
    files, path = unique_name("users"), unique_name("history")
    write_files(rig, files)
    send(rig, topic, {key: f"topic {key}" for key in range(10)})
    KafkaCluster(KafkaOptions(servers, topic)).delete_records_before(topic, {0: 7})
    start = (
        ", 'scan.startup.mode'='specific-offsets', "
        "'scan.startup.specific-offsets'='partition:0,offset:{}'"
    )
    refused = rig.post_job(statement(rig, topic, files, clicks, path, start.format(3)))
    assert refused.status_code >= 400
    assert "4 records between the history and topic" in refused.json()["detail"]
    produce(servers, clicks, [click(5, 0), click(8, 1)])
    with rig.job(statement(rig, topic, files, clicks, path, start.format(7))) as job:
        job.wait_joining()
        rows = {r["item_id"]: r["name"] for r in job.wait_output(path, 2)}
        assert rows == {0: "file 5", 1: "topic 8"}
