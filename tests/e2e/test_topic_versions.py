"""Topics that keep versions: records meet the row of their own time, whatever comes in which order.

What must come of it is computed here once more, from the history alone: each key's rows by their
times, and the least watermark of all partitions.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from joins.durable.checkpoint import read_json
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.foreign_topics import Connector
from tests.support.rig import Rig, RunningJob, kafka_table, running_rig
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
CURRENCIES = ("USD", "EUR", "JPY", "XAU")
USERS = (1, 2, 3, 4)
STAGE_MS = 120_000
RATE_DELAY_MS, ORDER_DELAY_MS = 15_000, 5_000


def text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


@dataclass
class Versions:
    """What was valid when, of each key; a deletion without a time ends the row that came last."""

    by_key: dict[Any, dict[int, Any]] = field(default_factory=dict)
    last: dict[Any, int] = field(default_factory=dict)

    def put(self, key: Any, ms: int, value: Any) -> None:
        self.by_key.setdefault(key, {})[ms] = value
        self.last[key] = ms

    def end(self, key: Any) -> None:
        self.by_key[key][self.last[key]] = None

    def at(self, key: Any, ms: int) -> Any:
        times = [since for since in self.by_key.get(key, ()) if since <= ms]
        return self.by_key[key][max(times)] if times else None


@dataclass
class History:
    """Two tables and a stream, written in stages; each partition's greatest time is known."""

    rig: Rig
    connector: Connector
    rng: random.Random
    start_ms: int
    rates: str
    orders: str
    rate_versions: Versions = field(default_factory=Versions)
    user_versions: Versions = field(default_factory=Versions)
    sent: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    watermarks: dict[tuple[str, int], int] = field(default_factory=dict)

    def _seen(self, name: str, partition: int, ms: int) -> None:
        place = (name, partition)
        self.watermarks[place] = max(ms, self.watermarks.get(place, ms))

    def rate(self, currency: str, ms: int | None) -> None:
        """A new rate of that time, or a tombstone."""
        partition, value = CURRENCIES.index(currency) % 2, None
        if ms is None:
            self.rate_versions.end(currency)
        else:
            rate = self.rng.randrange(1_000)
            self.rate_versions.put(currency, ms, rate)
            self._seen("rates", partition, ms - RATE_DELAY_MS)
            value = {"currency": currency, "rate": rate, "update_time": text(ms)}
        servers, keys = self.rig.kafka.bootstrap_servers, [{"currency": currency}]
        produce(servers, self.rates, [value], keys=keys, partition=partition)

    def snapshot(self, rows: dict[int, str], *, is_whole: bool) -> None:
        read_ms = self.connector.snapshot(rows, is_whole=is_whole)
        for key, name in rows.items():
            self.user_versions.put(key, read_ms, name)
            self._seen("users", key % 2, read_ms)

    def user(self, key: int, ms: int, name: str | None) -> None:
        """A change in the database; a deletion has a time itself, and a tombstone behind it."""
        self.connector.at_ms = ms - 10
        self.connector.change(key, name)
        self.user_versions.put(key, ms, name)
        self._seen("users", key % 2, ms)

    def order(self, ms: int) -> None:
        number, currency = len(self.sent), self.rng.choice((*CURRENCIES, "none"))
        user, partition = self.rng.choice((*USERS, 99)), number % 2
        self.sent[number] = (currency, user, ms)
        self._seen("orders", partition, ms - ORDER_DELAY_MS)
        value = {"number": number, "currency": currency, "user_id": user, "ts": text(ms)}
        produce(self.rig.kafka.bootstrap_servers, self.orders, [value], partition=partition)

    def stage(self, number: int) -> list[int]:
        """Rates and orders of some minutes; rates come out of order, orders nearly in order.

        Their times, without what makes them disorderly.
        """
        first = self.start_ms + number * STAGE_MS
        times = sorted(self.rng.sample(range(first, first + STAGE_MS, 100), 14))
        for ms in times:
            late = self.rng.randrange(RATE_DELAY_MS) if number else 0
            self.rate(self.rng.choice(CURRENCIES), ms - late)
        for ms in times:
            self.order(ms - self.rng.randrange(ORDER_DELAY_MS))
        return times

    def change_users(self, times: Sequence[int]) -> None:
        for ms in times[::2]:
            name = self.rng.choice((f"name at {ms}", None))
            self.user(self.rng.choice(USERS), ms, name)

    def expected(self) -> tuple[dict[int, tuple[Any, Any]], int]:
        """The rows of orders that the watermark has passed, and how many wait."""
        watermark = min(self.watermarks.values())
        due = {n: each for n, each in self.sent.items() if each[2] <= watermark}
        rows = {
            n: (self.rate_versions.at(currency, ms), self.user_versions.at(user, ms))
            for n, (currency, user, ms) in due.items()
        }
        return rows, len(self.sent) - len(due)


def statement(rig: Rig, history: History, path: str) -> str:
    servers = f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}'"
    orders = "number INT, currency STRING, user_id BIGINT, ts TIMESTAMP_LTZ(3), "
    orders += "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
    return (
        "CREATE TABLE rates (currency STRING, rate INT, update_time TIMESTAMP_LTZ(3), "
        "PRIMARY KEY (currency) NOT ENFORCED, "
        "WATERMARK FOR update_time AS update_time - INTERVAL '15' SECOND) WITH ("
        f"'connector'='upsert-kafka', 'topic'='{history.rates}', {servers}, "
        "'key.format'='json', 'value.format'='json', "
        "'value.json.timestamp-format.standard'='ISO-8601');"
        "CREATE TABLE users (id BIGINT, name STRING, "
        "changed_at TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL, "
        "PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR changed_at AS changed_at) WITH ("
        f"'connector'='kafka', 'topic'='{history.connector.topic}', {servers}, "
        "'format'='debezium-json', 'snapshot.settle-time'='0 s', "
        f"'snapshot.notifications.topic'='{history.connector.notices}');"
        + kafka_table(rig.kafka, "orders", history.orders, orders)
        + "CREATE TABLE priced (number INT, rate INT, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO priced SELECT o.number, r.rate, u.name FROM orders AS o "
        "LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON o.user_id = u.id;"
    )


def told(job: RunningJob) -> dict[str, Any]:
    return (read_json(job.directory / "status.json") or {}).get("event_time") or {}


@pytest.fixture
def killed_rig(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> Iterator[Rig]:
    with running_rig(tmp_path, kafka, mariadb, failpoints="C13=kill#1", runners="shared") as rig:
        yield rig


def new_history(rig: Rig, connector: Connector, seed: int) -> History:
    servers = rig.kafka.bootstrap_servers
    rates = create_topic(servers, partitions=2, config={"cleanup.policy": "compact"})
    orders = create_topic(servers, partitions=2)
    return History(rig, connector, random.Random(seed), connector.at_ms + 10_000, rates, orders)


def test_records_meet_the_rows_of_their_time_over_kills(killed_rig: Rig) -> None:
    rig, path = killed_rig, unique_name("versions")
    connector = Connector(rig.kafka.bootstrap_servers, 2)
    history = new_history(rig, connector, seed=4711)
    history.snapshot({key: f"user {key}" for key in USERS}, is_whole=False)
    times = history.stage(0)
    for currency in ("JPY", "XAU"):
        history.rate(currency, history.start_ms + 1_000)
        history.rate(currency, None)
    history.rate("XAU", history.start_ms + 2_000)
    with rig.job(statement(rig, history, path)) as job:
        job.wait_for(lambda s: "no sign of its end" in (s["reason"] or ""), "users are not whole")
        connector.scanned(len(USERS))
        job.wait_joining()
        history.change_users(times)
        check(rig, job, history, path)
        for number in (1, 2):
            history.change_users(history.stage(number))
            check(rig, job, history, path)
            job.kill_child("joins.adapters.topic.feed")
        history.change_users(history.stage(3))
        check(rig, job, history, path)
        fired = job.directory / "checkpoint" / "failpoints" / "C13=kill#1"
        assert fired.exists(), "the runner was not killed"
        assert told(job)["late_records"] == 0
    connector.close()


def check(rig: Rig, job: RunningJob, history: History, path: str) -> None:
    """All orders that are due are joined, each with its rows; the others wait."""
    expected, waiting = history.expected()
    rows = job.wait_output(path, len(expected))
    job.wait_for(lambda _: told(job).get("waiting_rows") == waiting, f"{waiting} records wait")
    assert {r["number"]: (r["rate"], r["name"]) for r in rows} == expected
    assert len(rig.rows(path)) == len(expected)


def test_tables_with_an_end_hold_nothing(rig: Rig) -> None:
    """All is joined when both have ended; the newest order is far ahead of the newest rate."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("ended")
    rates, orders = create_topic(servers, partitions=2), create_topic(servers)
    since = [1_700_000_000_000 + 60_000 * n for n in range(3)]
    values = [{"currency": "USD", "rate": n, "at": text(ms)} for n, ms in enumerate(since)]
    keys = [{"currency": "USD"}] * 4
    produce(servers, rates, [*values, None], keys=keys, partition=0)  # it ends the newest
    times = [since[0] - 1, since[0], since[2] - 1, since[2], since[2] + 86_400_000]
    ordered = [{"n": n, "currency": "USD", "ts": text(ms)} for n, ms in enumerate(times)]
    produce(servers, orders, ordered)
    ends = "'scan.bounded.mode'='latest-offset'"
    columns = "n INT, currency STRING, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts"
    sql = (
        kafka_table(rig.kafka, "orders", orders, columns, (ends,))
        + "CREATE TABLE rates (currency STRING, rate INT, at TIMESTAMP_LTZ(3), "
        "PRIMARY KEY (currency) NOT ENFORCED, WATERMARK FOR at AS at) WITH ("
        f"'connector'='upsert-kafka', 'topic'='{rates}', "
        f"'properties.bootstrap.servers'='{servers}', 'key.format'='json', "
        f"'value.format'='json', 'value.json.timestamp-format.standard'='ISO-8601', {ends});"
        f"CREATE TABLE priced (n INT, rate INT) WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO priced SELECT o.n, r.rate FROM orders AS o "
        "LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency;"
    )
    with rig.job(sql) as job:
        job.wait_state("FINISHED")
        rows = {row["n"]: row["rate"] for row in rig.rows(path)}
    assert rows == {0: None, 1: 0, 2: 1, 3: None, 4: None}


def test_an_empty_partition_holds_everything_until_it_is_idle(rig: Rig) -> None:
    servers, path = rig.kafka.bootstrap_servers, unique_name("idle")
    rates, orders = create_topic(servers, partitions=2), create_topic(servers)
    rate = {"name": "one", "currency": "USD"}
    produce(servers, rates, [rate], partition=0)
    sql = (
        kafka_table(
            rig.kafka,
            "orders",
            orders,
            "number INT, currency STRING, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, "
            "WATERMARK FOR ts AS ts",
        )
        + "CREATE TABLE rates (currency STRING, name STRING, "
        "at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, PRIMARY KEY (currency) NOT "
        f"ENFORCED, WATERMARK FOR at AS at) WITH ('connector'='kafka', 'topic'='{rates}', "
        f"'properties.bootstrap.servers'='{servers}', 'format'='json'{{}});"
        "CREATE TABLE priced (number INT, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}{{}}');"
        "INSERT INTO priced SELECT o.number, r.name FROM orders AS o "
        "LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency;"
    )
    idle = ", 'scan.watermark.idle-timeout'='1 s'"
    with rig.job(sql.format("", "_held")) as held, rig.job(sql.format(idle, "_idle")) as job:
        for each in (held, job):
            each.wait_joining()
        produce(servers, orders, [{"number": 1, "currency": "USD"}])
        produce(servers, orders, [{"number": 2, "currency": "EUR"}])
        produce(servers, rates, [{**rate, "name": "two"}], partition=0)
        produce(servers, orders, [{"number": 3, "currency": "USD"}])
        rows = job.wait_output(f"{path}_idle", 2)
        assert {r["number"]: r["name"] for r in rows if r["number"] < 3} == {1: "one", 2: None}
        held.wait_for(lambda _: told(held).get("waiting_rows") == 3, "all wait")
        assert 'table "rates", partition 1' in told(held)["waits_for"]["text"]
