"""FLIP-326's HybridSource as a stream: rows of files in order, then the topic behind them."""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from joins.adapters.kafka.cluster import KafkaCluster
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import FILES
from tests.support.file_feeds import write_json_lines
from tests.support.foreign_topics import row
from tests.support.rig import Rig, RunningJob
from tests.support.topics import create_topic, produce, unique_name

DDL = "user_id BIGINT, item_id BIGINT, at TIMESTAMP_LTZ(3)"
FILE_ROWS = (300, 500, 200)
OLD, NEW = 5, 400  # records of the topic before its start, and from there on
BAD = 77  # of a file: it divides by zero
START_MS = 1_700_000_000_000
WINDOW_MS = 4_000


def rows_of(items: range) -> pa.Table:
    columns = {
        "item_id": pa.array(items, pa.int64()),
        "at": pa.array([START_MS + 10 * item for item in items], pa.timestamp("ms", "UTC")),
        "user_id": pa.array([item % 7 for item in items], pa.int32()),
    }
    return pa.table(columns)


def write_file(path: Path, items: range) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows_of(items), path, row_group_size=90)


def write_files(directory: Path) -> int:
    """Files whose least items say their order, and their paths another one."""
    first = 0
    for number, rows in enumerate(FILE_ROWS):
        day = directory / f"day={number // 2}"
        write_file(day / f"{9 - number}.parquet", range(first, first + rows))
        first += rows
    return first


def record(item: int) -> dict[str, Any]:
    return {"user_id": item % 7, "item_id": item, "at": f"{_text(START_MS + 10 * item)}"}


def _text(millis: int) -> str:
    stamp = pa.scalar(millis, pa.timestamp("ms")).cast(pa.string()).as_py()
    return f"{stamp}Z"


def statement(rig: Rig, topic: str, files: str, path: str, *options: str) -> str:
    further = "".join(f", {option}" for option in options)
    return (
        "CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ("
        f"'connector'='filesystem', 'path'='{files}-users', 'format'='json');"
        f"CREATE TABLE clicks ({DDL}, p AS PROCTIME()) WITH ('connector'='kafka', "
        f"'topic'='{topic}', 'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}', "
        f"'format'='json', 'history.connector'='filesystem', 'history.path'='{files}', "
        f"'history.format'='parquet'{further});"
        "CREATE TABLE named (item_id BIGINT, name STRING, part BIGINT) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        f"INSERT INTO named SELECT c.item_id, u.name, 1000 / (c.item_id - {BAD}) FROM clicks AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.p AS u ON c.user_id = u.id;"
    )


def write_users(rig: Rig, files: str) -> None:
    rig.output(f"{files}-users").mkdir(parents=True)
    rows = (row(user, f"user {user}") for user in range(6))  # the seventh is unknown
    write_json_lines(rig.output(f"{files}-users") / "all.json", rows)


def test_a_stream_reads_its_files_in_order_and_then_the_topic(rig: Rig) -> None:
    servers = rig.kafka.bootstrap_servers
    topic, files, path = create_topic(servers), unique_name("clicks"), unique_name("named")
    write_users(rig, files)
    total = write_files(rig.output(files))
    produce(servers, topic, [record(10_000 + item) for item in range(OLD)])
    produce(servers, topic, [record(total + item) for item in range(NEW)])
    start = (
        "'history.order-column'='item_id'",  # by path, the second file would be the first
        "'scan.startup.mode'='specific-offsets'",
        f"'scan.startup.specific-offsets'='partition:0,offset:{OLD}'",
        "'scan.max-records-per-batch'='270'",
    )
    with rig.job(statement(rig, topic, files, path, *start)) as job:
        job.wait_output(path, total + NEW - 1)
        status = job.wait_all_joined()
        place = f"history:{topic}/0"
        assert status["probe"]["next_offsets"] == {f"{topic}/0": OLD + NEW, place: total}
        shown = {"place": place, "rows": total, "rows_read": total, "seconds_left": None}
        assert status["probe"]["history"] == shown
        rows = rig.rows(path)
        assert sorted(each["item_id"] for each in rows) == [
            item for item in range(total + NEW) if item != BAD
        ]
        by_item = {each["item_id"]: each for each in rows}
        for item in (0, 299, 300, total - 1, total, total + NEW - 1):
            user = item % 7
            found = by_item[item]
            assert found["name"] == (f"user {user}" if user < 6 else None)
            of_file = (f"history:{topic}", 0, item)
            of_topic = (topic, 0, OLD + item - total)
            where = (found["_topic"], found["_partition"], found["_offset"])
            assert where == (of_file if item < total else of_topic)
        check_pins(job, total)
        check_looking_back(rig, job, topic)


def check_pins(job: RunningJob, total: int) -> None:
    """Batches of files come first, and none has both."""
    newest = job.pins.newest()
    assert newest is not None
    pins = [job.pins.read(number) for number in range(newest.batch + 1)]
    ranges = [pin.ranges() for pin in pins if pin is not None]
    of_files = [each for each in ranges if FILES in each]
    assert ranges[: len(of_files)] == of_files
    assert len(of_files) == -(-total // 270)
    assert all(set(each) == {FILES} for each in of_files)


def check_looking_back(rig: Rig, job: RunningJob, topic: str) -> None:
    told = rig.get(f"/v1/jobs/{job.id}/rows/history:{topic}/0/301")
    assert told["state"] == "joined"
    assert told["reason"].endswith('; it is row 2 of file "day=0/8.parquet"')
    assert told["output_rows"][0]["item_id"] == 301
    assert '"item_id":301' in told["record"].replace(" ", "")
    (letter,) = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
    assert (letter["topic"], letter["partition"], letter["offset"]) == (f"history:{topic}", 0, BAD)
    told = rig.get(f"/v1/jobs/{job.id}/rows/history:{topic}/0/{BAD}")
    assert told["state"] == "dead-letter"
    assert '"item_id":77' in told["record"].replace(" ", "")
    assert {again["verdict"] for again in job.replays()} == {"identical"}
    fixed = [{"topic": f"history:{topic}", "partition": 0, "offset": BAD}]
    url = f"/v1/jobs/{job.id}/dead-letters:replay"
    told = rig.client.post(url, json={"records": fixed}).json()
    assert "zero" in told["still_bad"][0]["reason"].lower()


@pytest.mark.experiment
def test_a_stream_reads_a_version_of_a_delta_table_and_then_the_topic(rig: Rig) -> None:
    """Rows of later versions are not read, nor those that this one has deleted."""
    servers = rig.kafka.bootstrap_servers
    topic, table, path = create_topic(servers), unique_name("clicks"), unique_name("named")
    write_users(rig, table)
    place = str(rig.output(table))
    for items in (range(300, 600), range(300), range(600, 1_000)):  # as no reader may take them
        write_deltalake(place, rows_of(items), mode="append")
    DeltaTable(place).delete("item_id >= 900")
    version = DeltaTable(place).version()
    write_deltalake(place, rows_of(range(5_000, 5_100)), mode="append")
    produce(servers, topic, [record(10_000 + item) for item in range(OLD)])
    produce(servers, topic, [record(900 + item) for item in range(NEW)])
    declared = statement(
        rig,
        topic,
        table,
        path,
        *from_offset(OLD),
        f"'history.version'='{version}'",
        "'history.order-column'='item_id'",
        "'scan.max-records-per-batch'='270'",
    )
    declared = declared.replace("'history.connector'='filesystem'", "'history.connector'='delta'")
    declared = declared.replace(", 'history.format'='parquet'", "")
    with rig.job(declared) as job:
        job.wait_output(path, 900 + NEW - 1)
        job.wait_all_joined()
        by_item = {each["item_id"]: each for each in rig.rows(path)}
        assert sorted(by_item) == [item for item in range(900 + NEW) if item != BAD]
        for item in (0, 299, 300, 899, 900, 900 + NEW - 1):
            found = by_item[item]
            where = (found["_topic"], found["_offset"])
            of_table, of_topic = (f"history:{topic}", item), (topic, OLD + item - 900)
            assert where == (of_table if item < 900 else of_topic)
        assert len(rig.rows(path)) == len(by_item)
        assert {again["verdict"] for again in job.replays()} == {"identical"}


def from_offset(offset: int) -> tuple[str, str]:
    return (
        "'scan.startup.mode'='specific-offsets'",
        f"'scan.startup.specific-offsets'='partition:0,offset:{offset}'",
    )


def test_a_gap_behind_the_files_is_refused(rig: Rig) -> None:
    servers = rig.kafka.bootstrap_servers
    topic, files, path = create_topic(servers), unique_name("clicks"), unique_name("named")
    write_users(rig, files)
    write_files(rig.output(files))
    produce(servers, topic, [record(item) for item in range(10)])
    KafkaCluster(KafkaOptions(servers, topic)).delete_records_before(topic, {0: 7})
    refused = rig.post_job(statement(rig, topic, files, path, *from_offset(3)))
    assert refused.status_code >= 400
    assert "4 records between the history and topic" in refused.json()["detail"]


def dated(rig: Rig, topic: str, rates: str, files: str, path: str) -> str:
    servers = f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}'"
    return (
        "CREATE TABLE rates (user_id BIGINT, rate INT, since TIMESTAMP_LTZ(3), "
        "PRIMARY KEY (user_id) NOT ENFORCED, WATERMARK FOR since AS since) WITH ("
        f"'connector'='upsert-kafka', 'topic'='{rates}', {servers}, 'key.format'='json', "
        "'value.format'='json', 'value.json.timestamp-format.standard'='ISO-8601');"
        f"CREATE TABLE clicks ({DDL}, WATERMARK FOR at AS at - INTERVAL '1' SECOND) WITH ("
        f"'connector'='kafka', 'topic'='{topic}', {servers}, 'format'='json', "
        "'json.timestamp-format.standard'='ISO-8601', 'history.connector'='filesystem', "
        f"'history.path'='{files}', 'history.format'='parquet', "
        "'history.order-column'='at', 'history.startup-column'='at', "
        "'scan.startup.mode'='timestamp', 'scan.max-records-per-batch'='270');"
        "CREATE TABLE priced (item_id BIGINT, rate INT) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO priced SELECT c.item_id, r.rate FROM clicks AS c "
        "LEFT JOIN rates FOR SYSTEM_TIME AS OF c.at AS r ON c.user_id = r.user_id;"
    )


@pytest.mark.experiment
def test_rows_of_files_and_records_meet_the_versions_of_their_time(rig: Rig) -> None:
    """The empty partition of the topic holds the time of the files, and no record is late."""
    servers = rig.kafka.bootstrap_servers
    kept = {"retention.ms": "-1"}  # its records are years old
    topic = create_topic(servers, partitions=2, config=kept)
    rates = create_topic(servers, config=kept)
    files, path = unique_name("clicks"), unique_name("priced")
    total = write_files(rig.output(files))
    versions = [
        {"user_id": user, "rate": n, "since": _text(START_MS + 1_000 * n)}
        for n in range(20)
        for user in range(7)
    ]
    produce(servers, rates, versions, keys=[{"user_id": each["user_id"]} for each in versions])
    items = range(total, total + NEW)
    for partition in (0, 1):  # older than the files' newest row
        send_at(servers, topic, partition, [record(0)], START_MS)
    send_at(servers, topic, 0, [record(item) for item in items if item % 2 == 0], FOLLOWS_MS)
    with rig.job(dated(rig, topic, rates, files, path)) as job:
        due = due_until(START_MS + 10 * (total - 1) - 1_000)
        check_rates(job, path, due)
        waiting = total + NEW // 2 - len(due)
        job.wait_for(lambda s: _event_time(s).get("waiting_rows") == waiting, "the others wait")
        odd = [record(item) for item in items if item % 2]
        send_at(servers, topic, 1, odd, FOLLOWS_MS)
        check_rates(job, path, due_until(START_MS + 10 * (total + NEW - 2) - 1_000))
        status = job.wait_all_joined()
        assert _event_time(status)["late_records"] == 0
        for again in job.replays():
            assert again["verdict"] in ("identical", "nothing-to-compare"), again


def counted(rig: Rig, topic: str, files: str, path: str) -> str:
    options = (*from_offset(OLD), "'history.order-column'='at'")
    return (
        f"CREATE TABLE clicks ({DDL}, WATERMARK FOR at AS at - INTERVAL '1' SECOND) WITH ("
        f"'connector'='kafka', 'topic'='{topic}', 'properties.bootstrap.servers'="
        f"'{rig.kafka.bootstrap_servers}', 'format'='json', "
        "'json.timestamp-format.standard'='ISO-8601', 'history.connector'='filesystem', "
        f"'history.path'='{files}', 'history.format'='parquet', {', '.join(options)}, "
        "'scan.max-records-per-batch'='270', "
        "'scan.watermark.use-processing-time'='after-backlog');"
        "CREATE TABLE counted (until TIMESTAMP_LTZ(3), n BIGINT) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO counted SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, "
        "DESCRIPTOR(at), INTERVAL '4' SECOND)) GROUP BY window_start, window_end;"
    )


@pytest.mark.experiment
def test_the_clock_takes_over_where_the_topic_ended_at_submission(rig: Rig) -> None:
    """It fires the last windows, one of which has rows of both; the files are no such end."""
    servers = rig.kafka.bootstrap_servers
    topic, files, path = create_topic(servers), unique_name("clicks"), unique_name("counted")
    total = write_files(rig.output(files))
    produce(servers, topic, [record(0)] * OLD)
    produce(servers, topic, [record(item) for item in range(total, total + NEW)])
    with rig.job(counted(rig, topic, files, path)) as job:
        rows = job.wait_output(path, 4)
        assert [row["n"] for row in sorted(rows, key=_until)] == [400, 400, 400, 200]
        status = job.wait_for(lambda s: _event_time(s).get("use_processing_time"), "the switch")
        assert _event_time(status)["late_records"] == 0
        now_ms = time.time_ns() // 1_000_000
        produce(servers, topic, [{**record(0), "at": _text(now_ms)}])
        newest = max(job.wait_output(path, 5), key=_until)
        assert newest["n"] == 1
        assert 0 < newest["until"].timestamp() * 1_000 - now_ms <= WINDOW_MS


def _until(row: dict[str, Any]) -> datetime:
    until: datetime = row["until"]
    return until


FOLLOWS_MS = START_MS + 60_000


def send_at(servers: str, topic: str, partition: int, records: list[Any], at_ms: int) -> None:
    produce(servers, topic, records, partition=partition, timestamp_ms=at_ms)


def due_until(watermark_ms: int) -> range:
    return range((watermark_ms - START_MS) // 10 + 1)


def check_rates(job: RunningJob, path: str, items: range) -> None:
    rows = job.wait_output(path, len(items))
    assert {each["item_id"]: each["rate"] for each in rows} == {n: n // 100 for n in items}
    assert len(rows) == len(items)


def _event_time(status: dict[str, Any]) -> dict[str, Any]:
    return status["event_time"] or {}
