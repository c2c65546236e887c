"""The users of `shop` in a topic that is written as Debezium's MariaDB connector does."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from service.embedded.broker import KafkaBroker
from tests.bench.place import Place
from tests.bench.shop import PARTITIONS, USERS_DDL, Paced, now_ms
from tests.support.bulk import BulkProducer
from tests.support.topics import create_topic, end_offsets, produce, unique_name
from tests.support.wait import wait_until

_AT_ONCE = 5_000
# As tests/golden/debezium/mariadb/default.jsonl has them; its connector leaves out no field.
_ROW = b'{"user_id":%d,"gender":"%s","name":"%s %d","changed_ms":%s}'
_SOURCE = (
    b'{"version":"3.5.0.Final","connector":"mariadb","name":"shop","ts_ms":%d,"snapshot":"%s",'
    b'"db":"shop","sequence":null,"ts_us":%d000,"ts_ns":%d000000,"table":"user_info",'
    b'"server_id":%d,"gtid":null,"file":"binlog.000001","pos":%d,"row":0,"thread":null,'
    b'"query":null}'
)
_ENVELOPE = (
    b'{"before":%s,"after":%s,"source":%s,"transaction":null,"op":"%s","ts_ms":%d,"ts_us":%d123,'
    b'"ts_ns":%d123456}'
)


@dataclass(frozen=True, slots=True)
class TopicUsers:
    """A topic of envelopes with its topic of notifications."""

    kafka: KafkaBroker
    prefix: str
    rows: int

    @property
    def topic(self) -> str:
        return f"{self.prefix}.shop.user_info"

    @property
    def notices(self) -> str:
        return f"{self.prefix}.notifications"

    def declared(self) -> str:
        return (
            f"CREATE TABLE user_info ({USERS_DDL}) WITH ('connector'='kafka', "
            f"'topic'='{self.topic}', 'format'='debezium-json', "
            f"'properties.bootstrap.servers'='{self.kafka.bootstrap_servers}', "
            f"'snapshot.notifications.topic'='{self.notices}');"
        )

    def changes(self, per_second: int = 1_000) -> "TopicChanges":
        return TopicChanges(self, per_second)


def topic_users(place: Place, rows: int) -> TopicUsers:
    """A topic that a connector has copied users 1 to `rows` into, and told that it has."""
    table = TopicUsers(place.kafka, unique_name("shop"), rows)
    servers = place.kafka.bootstrap_servers
    create_topic(servers, table.topic, partitions=PARTITIONS)
    create_topic(servers, table.notices)
    wait_until(lambda: len(end_offsets(servers, table.topic)) == PARTITIONS, what="leaders")
    _notify(table, "STARTED")
    read_ms = now_ms()
    with BulkProducer(servers, table.topic) as producer:
        for first in range(1, rows + 1, _AT_ONCE):
            ids = range(first, min(first + _AT_ONCE, rows + 1))
            _send(producer, ids, [_copied(user, rows, read_ms) for user in ids])
    _notify(
        table,
        "TABLE_SCAN_COMPLETED",
        scanned_collection="shop.user_info",
        total_rows_scanned=str(rows),
        status="SUCCEEDED",
    )
    _notify(table, "COMPLETED")
    return table


def _notify(table: TopicUsers, kind: str, **more: str) -> None:
    value = {
        "id": unique_name("notice"),
        "aggregate_type": "Initial Snapshot",
        "type": kind,
        "additional_data": {"connector_name": table.prefix, **more},
        "timestamp": str(now_ms()),
    }
    produce(table.kafka.bootstrap_servers, table.notices, [json.dumps(value).encode()])


def _copied(user: int, rows: int, at_ms: int) -> bytes:
    mark = b"last" if user == rows else b"first" if user == 1 else b"true"
    gender = b"F" if user % 2 else b"M"
    second = at_ms // 1_000 * 1_000  # the connector knows when it has read to a second
    source = _SOURCE % (second, mark, second, second, 0, 4_711)
    after = _ROW % (user, gender, b"user", user, b"null")
    return _ENVELOPE % (b"null", after, source, b"r", at_ms, at_ms, at_ms)


def _changed(user: int, number: int, at_ms: int) -> bytes:
    source = _SOURCE % (at_ms, b"false", at_ms, at_ms, 1, 4_711 + number)
    before = _ROW % (user, b"F", b"user", user, b"null")
    after = _ROW % (user, b"F", b"name", number, b"%d" % at_ms)
    return _ENVELOPE % (before, after, source, b"u", at_ms, at_ms, at_ms)


def _send(producer: BulkProducer, users: Sequence[int], values: Sequence[bytes]) -> None:
    """Write the values, each where its user lies."""
    parts: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    keys: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    for user, value in zip(users, values, strict=True):
        parts[user % PARTITIONS].append(value)
        keys[user % PARTITIONS].append(b'{"user_id":%d}' % user)
    producer.send(parts, keys)


class TopicChanges(Paced):
    """Changes users as a connector tells them; each says when it was made."""

    def __init__(self, table: TopicUsers, per_second: int) -> None:
        super().__init__(per_second)
        self._table = table

    @contextmanager
    def _ready(self) -> Iterator[Callable[[int], None]]:
        table = self._table
        with BulkProducer(table.kafka.bootstrap_servers, table.topic) as producer:

            def change(count: int) -> None:
                numbers = range(self.made, self.made + count)
                users = [1 + number * 104_729 % table.rows for number in numbers]
                at = now_ms()
                values = [_changed(u, n, at) for u, n in zip(users, numbers, strict=True)]
                _send(producer, users, values)

            yield change
