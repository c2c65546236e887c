"""A job is changed while records flow: each batch has the rows of one plan, each of them once."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest

from tests.support.beside import beside
from tests.support.rig import Rig, RunningJob, kafka_table, keyed_table
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment
USERS = 5
COLUMNS = "id BIGINT, user_id BIGINT, note STRING, p AS PROCTIME()"


def keyed(rig: Rig, name: str) -> str:
    """A topic of rows by key, and its table."""
    rows = [{"user_id": n, "name": f"{name} {n}"} for n in range(USERS)]
    return keyed_table(rig.kafka, name, "user_id BIGINT, name STRING", rows)


class Orders:
    """Two partitions of orders; what was sent is `sent`, by (partition, offset)."""

    def __init__(self, servers: str) -> None:
        self.servers, self.topic = servers, create_topic(servers, partitions=2)
        self.sent: dict[tuple[int, int], dict[str, Any]] = {}
        self._next = [0, 0]

    def send(self, count: int) -> None:
        for partition in (0, 1):
            first = self._next[partition]
            orders = [_order(partition, first + n) for n in range(count)]
            produce(self.servers, self.topic, orders, partition=partition)
            self.sent |= {(partition, first + n): order for n, order in enumerate(orders)}
            self._next[partition] += count

    def send_bad(self) -> tuple[int, int]:
        produce(self.servers, self.topic, [b"no order"], partition=0)
        place = (0, self._next[0])
        self._next[0] += 1
        return place

    @contextmanager
    def flowing(self) -> Iterator[None]:
        def flow(ended: Event) -> None:
            while not ended.wait(0.2):
                self.send(10)

        with beside(flow):
            yield


def _order(partition: int, number: int) -> dict[str, Any]:
    return {"id": 2 * number + partition, "user_id": number % USERS, "note": f"note {number}"}


def sql(tables: str, orders: str, path: str, select: str, columns: str, rest: str) -> str:
    return (
        f"{tables}{orders}"
        f"CREATE TABLE o ({columns}) WITH ('connector'='delta', 'path'='{path}');"
        f"INSERT INTO o SELECT {select} FROM orders AS s "
        f"LEFT JOIN users FOR SYSTEM_TIME AS OF s.p AS u ON s.user_id = u.user_id {rest};"
    )


def test_a_filter_a_column_and_a_table_are_added_while_records_flow(rig: Rig) -> None:
    path, orders = unique_name("changed"), Orders(rig.kafka.bootstrap_servers)
    users, friends = keyed(rig, "users"), keyed(rig, "friends")
    stream = kafka_table(rig.kafka, "orders", orders.topic, COLUMNS)
    first = sql(users, stream, path, "s.id, u.name", "id BIGINT, name STRING", "")
    changed = sql(
        users + friends,
        stream,
        path,
        "s.id, u.name, s.note, f.name",
        "id BIGINT, name STRING, note STRING, friend STRING",
        "LEFT JOIN friends FOR SYSTEM_TIME AS OF s.p AS f ON s.user_id = f.user_id "
        "WHERE s.user_id < 3",
    )
    with rig.job(first) as job:
        orders.send(20)
        bad = orders.send_bad()
        job.wait_output(path, 40)
        with orders.flowing():
            answer = rig.client.post(f"/v1/jobs/{job.id}:update", json={"sql": changed})
            assert answer.status_code == 200, answer.text
            assert (answer.json()["plan"], answer.json()["applied"]) == (2, True)
            wait_until(
                lambda: (pin := job.pins.newest()) and pin.plan == 2,
                what="a batch of plan 2",
                deadline_s=120,
            )
        job.wait_all_joined()
        see_each_record_by_the_plan_of_its_batch(rig, job, orders, path)
        see_batches_replayed(job)
        see_a_letter_of_the_older_plan_joined(rig, job, orders, bad, path)


def plans(job: RunningJob) -> dict[int, int]:
    newest = job.pins.newest()
    assert newest is not None
    pins = (job.pins.read(batch) for batch in range(newest.batch + 1))
    return {pin.batch: pin.plan for pin in pins if pin is not None}


def see_each_record_by_the_plan_of_its_batch(
    rig: Rig, job: RunningJob, orders: Orders, path: str
) -> None:
    by_batch = plans(job)
    assert set(by_batch.values()) == {1, 2}
    assert list(by_batch.values()) == sorted(by_batch.values())
    expected: Counter[tuple[Any, ...]] = Counter()
    for batch, plan in by_batch.items():
        pin = job.pins.read(batch)
        assert pin is not None
        for partition, (start, end) in pin.ranges().items():
            for offset in range(start, end):
                order = orders.sent.get((partition, offset))
                user = None if order is None else order["user_id"]
                if order is None or (plan == 2 and user >= 3):
                    continue
                more = (order["note"], f"friends {user}") if plan == 2 else (None, None)
                expected[partition, offset, batch, order["id"], f"users {user}", *more] += 1
    assert expected.total() >= 40
    assert expected == Counter(
        (*(r[n] for n in ("_partition", "_offset", "_batch", "id", "name", "note", "friend")),)
        for r in rig.rows(path)
    )


def see_batches_replayed(job: RunningJob) -> None:
    for answer in job.replays():
        assert answer["verdict"] in ("identical", "nothing-to-compare"), answer


def see_a_letter_of_the_older_plan_joined(
    rig: Rig, job: RunningJob, orders: Orders, bad: tuple[int, int], path: str
) -> None:
    """Corrected, it has the row that plan 1 gives, which has no filter and no note."""
    partition, offset = bad
    url, value = f"/v1/jobs/{job.id}", '{"id": 9999, "user_id": 4, "note": "x"}'
    place = {"topic": orders.topic, "partition": partition, "offset": offset}
    explained = rig.get(f"{url}/rows/{orders.topic}/{partition}/{offset}")
    assert explained["state"] == "dead-letter"
    letters = {"records": [{**place, "value": value}]}
    outcome = rig.client.post(f"{url}/dead-letters:replay", json=letters).json()
    assert (outcome["rows"], outcome["still_bad"]) == (1, []), outcome
    (row,) = (r for r in rig.rows(path) if (r["_partition"], r["_offset"]) == bad)
    assert (row["id"], row["name"], row["note"], row["friend"]) == (9999, "users 4", None, None)
