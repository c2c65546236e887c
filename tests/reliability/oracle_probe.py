"""The stream as the oracle reads it: records of the probe topic by their coordinates."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from kafka import KafkaConsumer, TopicPartition

Numbers = npt.NDArray[np.int64]
_SHIFT = 48
_LIMITS = {"BIGINT": 1 << 63, "INT": 1 << 31}


def coordinates(partitions: Any, offsets: Any) -> Numbers:
    high = np.asarray(partitions, dtype=np.int64)
    return (high << _SHIFT) | np.asarray(offsets, dtype=np.int64)


def pair(coordinate: int) -> tuple[int, int]:
    return int(coordinate) >> _SHIFT, int(coordinate) & ((1 << _SHIFT) - 1)


@dataclass(frozen=True)
class Records:
    """Records in the order of their coordinates.

    Attributes:
        bad: those that are not one JSON object with the declared fields.
        fields: field → values, None in bad records.
        values: of the bad ones, by their place.
        begin: partition → first offset that could be read.
        end: partition → offset behind the last one.
    """

    coordinates: Numbers
    bad: npt.NDArray[np.bool_]
    fields: Mapping[str, list[Any]]
    values: Mapping[int, bytes | None]
    begin: Mapping[int, int]
    end: Mapping[int, int]


class NotOneError(ValueError):
    """The value is not one JSON object with the declared fields."""


def _require_once(value: bytes, types: Mapping[str, str]) -> None:
    """See that no field is a member twice; orjson would take the last one."""
    if b"\\u" not in value and all(value.count(b'"%s"' % n.encode()) < 2 for n in types):
        return
    outermost: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> None:
        outermost[:] = [name for name, _ in pairs]  # the last call is for the whole document

    json.loads(value, object_pairs_hook=members)
    if any(outermost.count(name) > 1 for name in types):
        raise NotOneError("a field is there twice")


def parse(value: bytes | None, types: Mapping[str, str]) -> tuple[Any, ...]:
    """The fields of one record, by a strict reading of JSON.

    Raises:
        NotOneError: it is not one object, or a field is of another type than declared.
    """
    if value is None:
        raise NotOneError("null")
    try:
        document = orjson.loads(value)
    except orjson.JSONDecodeError as exc:
        raise NotOneError(str(exc)) from exc
    if type(document) is not dict:
        raise NotOneError("not an object")
    _require_once(value, types)
    return tuple(_checked(document.get(name), kind) for name, kind in types.items())


_TYPES: Mapping[str, tuple[type, ...]] = {
    "BIGINT": (int,),
    "INT": (int,),
    "STRING": (str,),
    "DOUBLE": (int, float),
    "BOOLEAN": (bool,),
}


def _checked(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if type(value) not in _TYPES[kind]:
        raise NotOneError(f"not a {kind}")
    limit = _LIMITS.get(kind)
    if limit is not None and not -limit <= value < limit:
        raise NotOneError(f"not a {kind}")
    return value


class _Part:
    """The records of one partition, in the order of their offsets."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types
        self._nothing = (None,) * len(types)
        self.offsets: list[int] = []
        self.rows: list[tuple[Any, ...]] = []
        self.bad: dict[int, bytes | None] = {}

    def add(self, offset: int, value: bytes | None) -> None:
        try:
            fields = parse(value, self._types)
        except (NotOneError, ValueError, RecursionError):
            self.bad[len(self.rows)] = value
            fields = self._nothing
        self.offsets.append(offset)
        self.rows.append(fields)


def _consumer(bootstrap_servers: str) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        enable_auto_commit=False,
        check_crcs=False,
        max_poll_records=20_000,
        fetch_max_bytes=64 << 20,
        max_partition_fetch_bytes=16 << 20,
        isolation_level="read_committed",
    )


def read_records(
    bootstrap_servers: str,
    topic: str,
    types: Mapping[str, str],
    start: Mapping[int, int],
) -> Records:
    """Every record of `topic` from `start` up to its end as it is now.

    Args:
        types: field → SQL type, of the fields that matter.
    """
    consumer = _consumer(bootstrap_servers)
    try:
        numbers = sorted(consumer.partitions_for_topic(topic) or ())
        tps = [TopicPartition(topic, number) for number in numbers]
        consumer.assign(tps)
        ends = {tp.partition: at for tp, at in consumer.end_offsets(tps).items()}
        first = {tp.partition: at for tp, at in consumer.beginning_offsets(tps).items()}
        begin = {p: max(first[p], start.get(p, 0)) for p in ends}
        for tp in tps:
            consumer.seek(tp, begin[tp.partition])
        parts = {number: _Part(types) for number in numbers}
        while any(consumer.position(tp) < ends[tp.partition] for tp in tps):
            for tp, records in consumer.poll(timeout_ms=500).items():
                for record in records:
                    if record.offset < ends[tp.partition]:
                        parts[tp.partition].add(record.offset, record.value)
    finally:
        consumer.close()
    return _joined(parts, types, begin, ends)


def _joined(
    parts: Mapping[int, _Part],
    types: Mapping[str, str],
    begin: Mapping[int, int],
    end: Mapping[int, int],
) -> Records:
    columns: dict[str, list[Any]] = {name: [] for name in types}
    values: dict[int, bytes | None] = {}
    places: list[Numbers] = [np.zeros(0, dtype=np.int64)]
    count = 0
    for number, part in parts.items():
        values |= {count + at: value for at, value in part.bad.items()}
        for name, column in zip(types, zip(*part.rows, strict=True), strict=False):
            columns[name] += column
        places.append(coordinates(number, part.offsets))
        count += len(part.rows)
    bad = np.zeros(count, dtype=np.bool_)
    bad[list(values)] = True
    return Records(np.concatenate(places), bad, columns, values, begin, end)
