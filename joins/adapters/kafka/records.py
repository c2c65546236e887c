"""Reads records of Kafka between two offsets: Fetch responses as Arrow, no object per record."""

import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from kafka import errors as kafka_errors
from kafka.future import Future
from kafka.protocol.consumer import FetchRequest

from joins.adapters.kafka.client import LEVELS, KafkaClient, decompressed, failure, passing
from joins.adapters.kafka.cluster import described
from joins.adapters.kafka.options import client_options, refusal
from joins.kernels.calendar.ticks import FIRST, LAST, MICROS_OF_MS
from joins.kernels.records.decode import KEY, OFFSET, TIMESTAMP, VALUE, DecodedRecords, decode
from joins.kernels.records.layout import (
    MORE_OF_A_RECORD,
    OF_THE_PROBE,
    BatchHeader,
    RecordFormatError,
)
from joins.plan.causes import detail_of
from joins.plan.connections import ClientNumber
from joins.plan.errors import RecordsExpiredError, SourceError, SourceUnavailableError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import (
    SPAN,
    StreamTopic,
    StreamTopics,
    by_number,
    by_topic,
    index_of,
    of_kafka,
)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Maximum wait and size of a Fetch response; a batch is never cut."""

    wait_ms: int = 500
    partition_bytes: int = 8 << 20
    response_bytes: int = 64 << 20

    @classmethod
    def of(cls, kafka: KafkaOptions) -> Self:
        limits, sizes = cls(), dict(kafka.properties)
        return cls(
            partition_bytes=int(sizes.get(ClientNumber.PARTITION_BYTES, limits.partition_bytes)),
            response_bytes=int(sizes.get(ClientNumber.FETCH_BYTES, limits.response_bytes)),
        )


@dataclass(frozen=True, slots=True)
class _Density:
    bytes_an_offset: float
    largest_batch: int


class FetchSizes:
    """Measurements of each topic, by name."""

    def __init__(self) -> None:
        self._seen: dict[str, _Density] = {}

    def see(self, topic: str, data: bytes, records: DecodedRecords) -> None:
        """Note a response: `data` of one partition, and what was decoded of it.

        Without a complete or wanted batch the topic's measurements are dropped.
        """
        self._seen.pop(topic, None)
        first = BatchHeader.at(memoryview(data), 0)
        if first is not None and records.next_offset is not None and records.batches:
            each = len(data) / (records.next_offset - first.base_offset)
            self._seen[topic] = _Density(each, max(batch.size for batch in records.batches))

    def to_ask(self, topic: str, offsets: int, most: int) -> int:
        """Bytes to request for `offsets`, with other records of the end batches; at most `most`."""
        seen = self._seen.get(topic)
        if seen is None:
            return most
        return min(most, math.ceil(offsets * seen.bytes_an_offset) + 2 * seen.largest_batch)


Ranges = Mapping[int, tuple[int, int]]
"""Partition number → first offset and the offset after the last."""
_Shares = Mapping[int, tuple[int, int]]  # partition number → first offset, maximum of bytes

_BOOTSTRAP_MS = 5_000
_SILENCE_S = 30.0
_UNKNOWN_S = 3.0  # the leader of a new topic may not know its id at once
_PAUSE_S = 0.1
_NOBODY = -1  # no leader, during an election
_BY_NAME, _BY_ID = 12, 13  # versions of Fetch: by name up to 12, by id from 13 on
_NO_ID = uuid.UUID(int=0)
_STAMP = pa.timestamp("us", tz="UTC")
_FIRST_MS, _LAST_MS = -(-FIRST // MICROS_OF_MS), LAST // MICROS_OF_MS


def _more(name: str, values: Sequence[Any]) -> pa.Array:
    return pa.array(values, MORE_OF_A_RECORD.field(name).type)


def _instants(milliseconds: np.ndarray) -> pa.Array:
    unreadable = (milliseconds < _FIRST_MS) | (milliseconds > _LAST_MS)
    known = np.where(unreadable, 0, milliseconds) if unreadable.any() else milliseconds
    return pa.array(known * MICROS_OF_MS, _STAMP, mask=unreadable)


def _leader_epoch(batch: BatchHeader) -> int | None:
    return batch.leader_epoch if batch.leader_epoch >= 0 else None


def _timestamp_type(batch: BatchHeader) -> str:
    return "LogAppendTime" if batch.is_append_time else "CreateTime"


_COLUMNS: Mapping[str, Callable[[DecodedRecords, int], pa.Array]] = {
    "key": lambda records, _: records.texts(KEY),
    "value": lambda records, _: records.texts(VALUE),
    "partition": lambda records, at: pa.repeat(pa.scalar(at, pa.int32()), len(records)),
    "offset": lambda records, _: pa.array(records.column(OFFSET)),
    "timestamp": lambda records, _: _instants(records.column(TIMESTAMP)),
    "headers": lambda records, _: _more("headers", records.header_maps()),
    "leader-epoch": lambda records, _: _more("leader-epoch", records.of_batches(_leader_epoch)),
    "timestamp-type": lambda records, _: _more(
        "timestamp-type", records.of_batches(_timestamp_type)
    ),
}
OF_A_CHANGELOG = ("key", "value", "partition", "offset")


class KafkaRecords:
    """Reads offset ranges without a consumer group, over one connection; for one thread."""

    def __init__(self, kafka: KafkaOptions) -> None:
        self._kafka = kafka
        self._limits = FetchLimits.of(kafka)
        self._sizes = FetchSizes()
        self._client: KafkaClient | None = None
        self._parked: dict[int, Future] = {}  # by broker: open requests of `wait`
        self._asks_anew = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the next read reconnects."""
        if self._client is not None:
            client, self._client = self._client, None
            self._parked.clear()
            client.close()

    def batches(
        self, topics: StreamTopics, ranges: Ranges, columns: Sequence[str] = OF_THE_PROBE
    ) -> Iterator[pa.RecordBatch]:
        """The records in `ranges`, per partition in offset order; offsets may be missing.

        A topic with a known id is not confused with another one of its name. Columns: `key`,
        `value` (binary), `partition` (its number, int32), `offset` (int64), `timestamp`
        (microseconds, NULL beyond the years 1 to 9999), and the slower ones of `MORE_OF_A_RECORD`.
        RecordsExpiredError if retention has removed a record, SourceUnavailableError without an
        answer, SourceError if the cluster refuses or a record's format is not supported.
        """
        with self._errors(topics, ranges):
            for number, records in self._pieces(topics, ranges):
                arrays = [_COLUMNS[name](records, number) for name in columns]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def wait(self, topics: StreamTopics, offsets: Mapping[int, int], seconds: float) -> None:
        """Return once a record exists at `offsets` (number → next offset), or after `seconds`.

        Also returns if the cluster does not answer, which the next read reports. Each broker is
        asked once.
        """
        limits = FetchLimits(wait_ms=int(1000 * seconds), response_bytes=1)
        try:
            self._connected().run(self._first_answer, topics, of_kafka(offsets), limits)
        except (kafka_errors.KafkaError, OSError, ValueError):
            self.close()
            time.sleep(_PAUSE_S)

    async def _first_answer(
        self, topics: StreamTopics, offsets: Mapping[int, int], limits: FetchLimits
    ) -> None:
        """The first broker's answer; the other requests stay open."""
        client, first = self._connected(), Future()

        def answered(_: object) -> None:
            if not first.is_done:
                first.success(None)

        leaders = await _leaders(client, topics, offsets, anew=self._asks_anew)
        self._asks_anew = False
        led = _by_leader(leaders, {number: (offset, 1) for number, offset in offsets.items()})
        led.pop(_NOBODY, None)
        for node, own in led.items():
            parked = self._parked.get(node)
            if parked is None or parked.is_done:
                self._parked[node] = client.ask(self._request(topics, own, limits), node)
            self._parked[node].add_callback(answered)
            self._parked[node].add_errback(answered)
        if not led:
            await client.pause(_PAUSE_S)
            return
        await first
        self._asks_anew = any(map(_has_failed, self._parked.values()))

    def marked(
        self, topic: str, ranges: Ranges, header: tuple[str, bytes], names: Sequence[str]
    ) -> Iterator[tuple[tuple[bytes | None, ...], bytes | None, bytes | None]]:
        """(values of the headers `names`, key, value) of the records that carry `header`."""
        topics = StreamTopics.one(topic)
        with self._errors(topics, ranges):
            for _, records in self._pieces(topics, ranges):
                texts = zip(*(records.texts(at).to_pylist() for at in (KEY, VALUE)), strict=True)
                for row, (key, value) in enumerate(texts):
                    headers = records.headers(row)
                    if header in headers:
                        values = dict(headers)
                        yield tuple(values.get(name) for name in names), key, value

    @contextmanager
    def _errors(self, topics: StreamTopics, ranges: Ranges) -> Iterator[None]:
        try:
            yield
        except kafka_errors.OffsetOutOfRangeError as exc:
            named = {topics.place(p): bounds for p, bounds in ranges.items()}
            shown = str(named) if topics.are_several else str(dict(ranges))
            raise RecordsExpiredError(
                f'topic "{topics.text}" does not keep all of the offsets {shown} any more',
                hint="Its retention removed them; only younger batches can be read again.",
            ) from exc
        except RecordFormatError as exc:
            raise SourceError(
                f'records of topic "{topics.text}" cannot be read: {exc}',
                hint="Look at the topic with kafka-dump-log.sh; format v2 is that of Kafka 0.11.",
            ) from exc
        except (kafka_errors.KafkaError, OSError, ValueError) as exc:
            self.close()
            raise self._translated(topics.text, exc) from exc

    def _pieces(self, topics: StreamTopics, ranges: Ranges) -> Iterator[tuple[int, DecodedRecords]]:
        unfinished = {p: r for p, r in ranges.items() if r[0] < r[1]}
        heard_at, failed, by_name = time.monotonic(), None, set[int]()
        while unfinished:
            client = self._connected()
            answers, failed = client.run(self._fetched, topics, unfinished, failed is not None)
            for partition, (name, answer) in answers.items():
                first, end = unfinished[partition]
                records = self._decoded(answer, (first, end))
                self._sizes.see(topics.topic_of(partition).name, answer.records or b"", records)
                if name:
                    by_name.add(index_of(partition))
                if len(records):
                    yield partition, records
                if records.next_offset is not None:
                    unfinished[partition] = (records.next_offset, end)
                    heard_at = time.monotonic()
            unfinished = {p: r for p, r in unfinished.items() if r[0] < r[1]}
            unknown = isinstance(failed, kafka_errors.UnknownTopicIdError)
            if time.monotonic() - heard_at > (_UNKNOWN_S if unknown else _SILENCE_S):
                silence = f"no record within {_SILENCE_S:.0f} s"
                raise failed or kafka_errors.KafkaTimeoutError(silence)
        self._check_ids([topics.topics[index] for index in by_name])

    def _check_ids(self, topics: Sequence[StreamTopic]) -> None:
        """Raise UnknownTopicIdError unless topics read by name still have these ids."""
        known = {each.name: each.topic_id for each in topics if topic_uuid(each.topic_id)}
        if not known:
            return
        now = described(self._connected(), list(known))
        for name, topic_id in known.items():
            if name not in now or now[name].topic_id != topic_id:
                raise kafka_errors.UnknownTopicIdError(name)

    def _connected(self) -> KafkaClient:
        if self._client is None:
            options = client_options(self._kafka)
            self._client = KafkaClient(**options, bootstrap_timeout_ms=_BOOTSTRAP_MS)
        return self._client

    async def _fetched(
        self, topics: StreamTopics, ranges: Ranges, anew: bool
    ) -> tuple[dict[int, tuple[str, Any]], kafka_errors.KafkaError | None]:
        """One response of each broker: data of its partitions, and errors of others.

        By number, each with the name by which it was read, "" for reads by topic id.
        """
        client = self._connected()
        if anew:
            await client.pause(_PAUSE_S)
        leaders = await _leaders(client, topics, ranges, anew=anew)
        failed = None
        requests = []
        shares = {
            p: (first, self._bytes_of(topics, p, end - first)) for p, (first, end) in ranges.items()
        }
        for node, own in _by_leader(leaders, shares).items():
            if node == _NOBODY:
                failed = kafka_errors.LeaderNotAvailableError(str([*map(topics.place, own)]))
            else:
                requests.append(client.ask(self._request(topics, own, self._limits), node))
        answers = {}
        for request in requests:
            try:
                response = await request
                failed = failure(response.error_code, topics.text) or failed
                for number, name, one in _answered(topics, response):
                    error = failure(one.error_code, topics.place(number))
                    if error is None:
                        answers[number] = (name, one)
                    failed = error or failed
            except kafka_errors.KafkaError as exc:
                failed = passing(exc)
        return answers, failed

    def _bytes_of(self, topics: StreamTopics, number: int, offsets: int) -> int:
        name = topics.topic_of(number).name
        return self._sizes.to_ask(name, offsets, self._limits.partition_bytes)

    def _request(self, topics: StreamTopics, shares: _Shares, limits: FetchLimits) -> FetchRequest:
        topic_type = FetchRequest.FetchTopic
        parts = by_topic(shares)
        ids = {index: topic_uuid(topics.topics[index].topic_id) for index in parts}
        by_id = None not in ids.values()
        requested = []
        for index, own in parts.items():
            partitions = [
                topic_type.FetchPartition(
                    partition=partition, fetch_offset=first, partition_max_bytes=most
                )
                for partition, (first, most) in own.items()
            ]
            named: dict[str, Any] = {"topic": topics.topics[index].name}
            if by_id:
                named["topic_id"] = ids[index]
            requested.append(topic_type(**named, partitions=partitions))
        return FetchRequest(
            max_wait_ms=limits.wait_ms,
            min_bytes=1,
            max_bytes=limits.response_bytes,
            isolation_level=LEVELS[self._kafka.isolation],
            topics=requested,
            max_version=_BY_ID if by_id else _BY_NAME,
        )

    def _decoded(self, answer: Any, bounds: tuple[int, int]) -> DecodedRecords:  # noqa: ANN401
        ended = answer.aborted_transactions or ()
        aborted = [(each.producer_id, each.first_offset) for each in ended]
        return decode(answer.records or b"", bounds, aborted, decompressed)

    def _translated(self, topic: str, exc: Exception) -> SourceError:
        servers = self._kafka.bootstrap_servers
        if isinstance(exc, kafka_errors.UnknownTopicIdError):
            return SourceError(
                f'topic "{topic}" is not the one that was to be read',
                hint="It was deleted; see whether another one has its name now.",
            )
        if isinstance(exc, OSError | ValueError) or getattr(exc, "retriable", False):
            return SourceUnavailableError(
                f'kafka "{servers}" cannot be reached',
                hint="Check properties.bootstrap.servers, and that the broker runs.",
                detail=detail_of(exc),
            )
        return SourceError(
            f'topic "{topic}" of kafka "{servers}" cannot be read: {refusal(exc)}',
            hint="Check this user's rights and the properties of the connection.",
            detail=detail_of(exc),
        )


def topic_uuid(topic_id: str) -> uuid.UUID | None:
    known = uuid.UUID(topic_id) if topic_id else _NO_ID
    return None if known == _NO_ID else known


async def _leaders(
    client: KafkaClient, topics: StreamTopics, numbers: Iterable[int], *, anew: bool
) -> dict[int, int]:
    names = {index: topics.topics[index].name for index in sorted({*map(index_of, numbers)})}
    leaders = await client.leaders_of(names.values(), anew=anew)
    return {
        number: node
        for index, name in names.items()
        for number, node in by_number(index, leaders[name]).items()
    }


def _answered(topics: StreamTopics, response: Any) -> Iterator[tuple[int, str, Any]]:  # noqa: ANN401
    for answer in response.responses:
        index = 0
        if topics.are_several:
            index = next(i for i, t in enumerate(topics.topics) if _is_of(answer, t))
        for one in answer.partitions:
            yield index * SPAN + one.partition_index, answer.topic or "", one


def _is_of(answer: Any, topic: StreamTopic) -> bool:  # noqa: ANN401
    if answer.topic:
        return bool(answer.topic == topic.name)
    return bool(answer.topic_id == topic_uuid(topic.topic_id))


def _by_leader(
    leaders: Mapping[int, int], shares: _Shares
) -> dict[int, dict[int, tuple[int, int]]]:
    led: dict[int, dict[int, tuple[int, int]]] = {}
    for partition, share in shares.items():
        led.setdefault(leaders.get(partition, _NOBODY), {})[partition] = share
    return dict(sorted(led.items()))


def _has_failed(answer: Future) -> bool:
    """True if a broker reports an error, for example if it no longer leads the partition."""
    if not answer.succeeded():
        return bool(answer.is_done)
    topics = answer.value.responses
    return bool(answer.value.error_code) or any(p.error_code for t in topics for p in t.partitions)
