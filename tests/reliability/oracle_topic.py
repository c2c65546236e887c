"""A table's history as the oracle reads it from a connector's topic: Debezium's envelopes in JSON.

Within a partition the order is that of the offsets, and a key has one partition. A snapshot that a
connector begins again is another one: rows of the ones before are none of the table's, once the
newest that has begun is held to its end. Connect writes with one producer, so the times of records
tell across partitions what came before a snapshot's first row and what behind it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from kafka import KafkaConsumer, TopicPartition

from tests.reliability.oracle_history import (
    Changes,
    History,
    Numbers,
    OracleRefusalError,
    Place,
)

_FIRSTS = ("first", "first_in_data_collection")
_LASTS = ("last", "last_in_data_collection")
_ROWS = ("true", *_FIRSTS, *_LASTS)
_POSITION = ("file", "pos", "lsn")  # all rows of one snapshot have the same
_BEFORE = -1


@dataclass(frozen=True)
class ForeignTopic:
    """A topic that a connector writes; the keys and values of its records are JSON."""

    bootstrap_servers: str
    name: str


@dataclass(frozen=True)
class Told:
    """What one record says.

    Attributes:
        row: of the key from here on, None if it is deleted.
        mark: `source.snapshot`; None where there is no source, as in a tombstone.
        position: of its source in the database, what all rows of one snapshot share.
    """

    partition: int
    offset: int
    at_ms: int
    key: Any
    row: Mapping[str, Any] | None
    mark: str | None
    position: tuple[Any, ...] = ()

    @property
    def is_copied(self) -> bool:
        return self.mark in _ROWS


@dataclass
class Attempt:
    """One snapshot, whether it came to its end or not.

    Attributes:
        firsts: partition → offset of its first row there.
        lasts: partition → offset of its last row there.
        has_ended: it has a last row, or changes behind it.
    """

    position: tuple[Any, ...]
    firsts: dict[int, int] = field(default_factory=dict)
    lasts: dict[int, int] = field(default_factory=dict)
    has_ended: bool = False

    def take(self, told: Told) -> None:
        """A record that came while it was the newest."""
        if not told.is_copied:
            self.has_ended |= told.mark == "false"
            return
        self.firsts.setdefault(told.partition, told.offset)
        self.lasts[told.partition] = told.offset
        self.has_ended |= told.mark in _LASTS

    def has_begun(self, places: Mapping[int, Place]) -> bool:
        return any(_offset(places, p) >= first for p, first in self.firsts.items())

    def is_held(self, places: Mapping[int, Place]) -> bool:
        return self.has_ended and all(_offset(places, p) >= last for p, last in self.lasts.items())


def _offset(places: Mapping[int, Place], partition: int) -> int:
    return places.get(partition, (0, _BEFORE, 0))[1]


class TopicHistory(History):
    """All changes of one table in the order of partitions and offsets.

    A key has a history for each snapshot: what records from its beginning on say.
    """

    by_offset = True

    def __init__(self, told: list[Told], primary_key: str, columns: tuple[str, ...]) -> None:
        told = sorted(told, key=lambda one: (one.partition, one.offset))
        self.attempts, numbers = _attempts(told)
        changes, self._partition_of = Changes(), {}
        for one, number in zip(told, numbers, strict=True):
            if self._partition_of.setdefault(one.key, one.partition) != one.partition:
                raise OracleRefusalError(f"key {one.key} is in several partitions")
            kept = None if one.row is None else {name: one.row[name] for name in columns}
            for level in range(number + 1):
                changes.add((level, one.key), (one.partition, one.offset, 0), kept)
        super().__init__(changes, primary_key, columns)

    def codes(self, keys: list[Any], levels: Numbers) -> Numbers:
        pairs = zip(levels.tolist(), keys, strict=True)
        return np.fromiter((self._codes.get(pair, -1) for pair in pairs), np.int64, len(keys))

    def partitions(self, partitions: int) -> Numbers:
        numbers = (self._partition_of[key] for _, key in self._codes)
        return np.fromiter(numbers, np.int64, len(self._codes))

    def place(self, partition: int, place: Place) -> Place:
        return (partition, place[1], 0)

    def level(self, places: Mapping[int, Place]) -> int:
        begun = [n for n, attempt in enumerate(self.attempts) if attempt.has_begun(places)]
        return max(begun, default=0)

    def is_whole(self, places: Mapping[int, Place]) -> bool:
        return bool(self.attempts) and self.attempts[self.level(places)].is_held(places)


def _attempts(told: list[Told]) -> tuple[list[Attempt], list[int]]:
    """All snapshots, the oldest first; and for each record the newest one when it came."""
    attempts: list[Attempt] = []
    numbers = [0] * len(told)

    def when(at: int) -> tuple[int, bool]:
        """Rows of the same millisecond in other partitions are behind the first one."""
        return told[at].at_ms, told[at].mark not in _FIRSTS

    for at in sorted(range(len(told)), key=when):
        one = told[at]
        if one.is_copied:
            is_new = not attempts or one.position != attempts[-1].position
            if is_new or (one.mark in _FIRSTS and attempts[-1].firsts):
                attempts.append(Attempt(one.position))
        if attempts:
            attempts[-1].take(one)
            numbers[at] = len(attempts) - 1
    return attempts, numbers


def read_topic(topic: ForeignTopic, primary_key: str, columns: tuple[str, ...]) -> TopicHistory:
    """The history that `topic` tells up to now, with `columns` of the rows.

    Raises:
        OracleRefusalError: records were removed, or are of a kind that cannot be judged.
    """
    told = [one for record in _records(topic) if (one := read_record(record, primary_key))]
    return TopicHistory(told, primary_key, columns)


def _records(topic: ForeignTopic) -> Iterator[Any]:
    consumer = KafkaConsumer(
        bootstrap_servers=topic.bootstrap_servers,
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=20_000,
    )
    try:
        parts = [TopicPartition(topic.name, p) for p in consumer.partitions_for_topic(topic.name)]
        consumer.assign(parts)
        ends = consumer.end_offsets(parts)
        if any(consumer.beginning_offsets(parts).values()):
            raise OracleRefusalError(f"records of {topic.name} were removed")
        consumer.seek_to_beginning()
        while any(consumer.position(part) < end for part, end in ends.items()):
            for part, records in consumer.poll(timeout_ms=500).items():
                yield from (one for one in records if one.offset < ends[part])
    finally:
        consumer.close()


def read_record(record: Any, primary_key: str) -> Told | None:
    """What a record of Kafka says of the table; None if it changes nothing.

    Raises:
        OracleRefusalError: it is of a kind that cannot be judged.
    """
    where = (record.partition, record.offset, record.timestamp)
    if record.key is None:
        raise OracleRefusalError(f"record {where[:2]} is without a key")
    key = _payload(record.key)[primary_key]
    if record.value is None:
        return Told(*where, key, None, None)
    value = _payload(record.value)
    source, op = value["source"], value["op"]
    if op not in ("r", "c", "u", "d"):
        raise OracleRefusalError(f"record {where[:2]} has operation {op}")
    row = None if op == "d" else value["after"]
    if (row or value["before"])[primary_key] != key:
        raise OracleRefusalError(f"record {where[:2]} has another key than row")
    mark = source.get("snapshot")
    mark = "false" if mark in (None, False) else str(mark).lower()
    return Told(*where, key, row, mark, tuple(source.get(name) for name in _POSITION))


def _payload(text: bytes) -> Any:
    value = orjson.loads(text)
    return value["payload"] if value.keys() == {"schema", "payload"} else value
