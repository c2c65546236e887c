"""Codecs, and raw requests over kafka-python's private connection manager (pinned exactly)."""

import gzip
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import pyarrow as pa
from kafka import KafkaAdminClient, TopicPartition
from kafka import codec as kafka_codec
from kafka import errors as kafka_errors
from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType
from kafka.protocol.consumer import IsolationLevel

from joins.adapters.kafka.options import error_about
from joins.kernels.records.layout import BODIES, RecordFormatError
from joins.plan.plan import Compression, Isolation


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=6, mtime=0)  # a time would make repeats differ


_Codec = Callable[[bytes], bytes]
_COMPRESS: Mapping[Compression, _Codec] = {
    Compression.GZIP: _gzip,
    Compression.SNAPPY: kafka_codec.snappy_encode,
    Compression.LZ4: kafka_codec.lz4_encode,
    Compression.ZSTD: kafka_codec.zstd_encode,
}
_DECOMPRESS: Mapping[Compression, _Codec] = {
    Compression.GZIP: gzip.decompress,
    Compression.SNAPPY: kafka_codec.snappy_decode,
    Compression.LZ4: kafka_codec.lz4_decode,
    Compression.ZSTD: kafka_codec.zstd_decode,
}


def compressed(bodies: pa.RecordBatch, compression: Compression) -> pa.RecordBatch:
    if compression is Compression.NONE:
        return bodies
    compress = _COMPRESS[compression]
    each = [compress(body.as_py()) for body in bodies.column("body")]
    return bodies.set_column(2, BODIES.field("body"), pa.array(each, pa.large_binary()))


def decompressed(compression: Compression, body: bytes) -> bytes:
    """RecordFormatError if the body is invalid."""
    try:
        return _DECOMPRESS[compression](body)
    except Exception as exc:  # each library has other errors
        raise RecordFormatError(f"a batch is no {compression}: {exc}") from exc


LEVELS = {
    Isolation.COMMITTED: IsolationLevel.READ_COMMITTED,
    Isolation.UNCOMMITTED: IsolationLevel.READ_UNCOMMITTED,
}
_Answer = TypeVar("_Answer")
_ANSWER_BYTES = (1 << 31) - 1  # a Fetch response is as large as requested, or as its batch


class KafkaClient(KafkaAdminClient):  # type: ignore[misc] # it has no types
    """kafka-python's client; it closes its thread and sockets if the first connection fails."""

    def __init__(self, **configs: Any) -> None:  # noqa: ANN401 (kafka-python's own)
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its exceptions say the same
        self._ends = threading.Lock()  # two threads that end it would both drive its connections
        try:
            super().__init__(**configs)
            self._manager.config["receive_message_max_bytes"] = _ANSWER_BYTES
        except BaseException:
            if hasattr(self, "_net"):
                self._closed = False
                self.close()
            raise

    def cut(self) -> None:
        with self._ends:
            self._net.stop()

    def close(self) -> None:
        with self._ends:
            super().close()

    def topic_config(self, topic: str, names: Iterable[str]) -> dict[str, Any] | None:
        """Name → value of the topic's settings `names`, None if they are not readable."""
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(names, ""))
        try:
            configs = self.describe_configs([resource], config_filter=ConfigFilterType.ALL)
        except kafka_errors.KafkaError:
            return None
        values = configs.get("topic", {}).get(topic, {})
        return {name: each["value"] for name, each in values.items() if "value" in each}

    def run(self, work: Callable[..., Awaitable[_Answer]], *arguments: object) -> _Answer:
        answer: _Answer = self._manager.run(work, *arguments)
        return answer

    def ask(self, request: Any, node: int | None = None) -> Awaitable[Any]:  # noqa: ANN401
        """Send a request to a broker (default: any) and await the answer; only inside `run`."""
        answer: Awaitable[Any] = self._manager.send(request, node)
        return answer

    def partition_offsets(
        self, specs: Mapping[TopicPartition, Any], isolation: IsolationLevel
    ) -> dict[TopicPartition, Any]:
        """Like `list_partition_offsets`, with the cached leaders first."""
        try:
            return self.run(self._offsets_of_known, specs, isolation)
        except (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError):
            raise
        except kafka_errors.KafkaError:  # other brokers may lead by now
            answer: dict[TopicPartition, Any] = self.list_partition_offsets(
                specs, isolation_level=isolation
            )
            return answer

    async def _offsets_of_known(
        self, specs: Mapping[TopicPartition, Any], isolation: IsolationLevel
    ) -> dict[TopicPartition, Any]:
        leaders = await self.leaders_of({each.topic for each in specs})
        if any(leaders[each.topic].get(each.partition, -1) < 0 for each in specs):
            leaders = await self.leaders_of(leaders, anew=True)
        led: dict[int, dict[TopicPartition, Any]] = {}
        for each, spec in specs.items():
            led.setdefault(leaders[each.topic].get(each.partition, -1), {})[each] = spec
        requests = [
            self.ask(self._list_partition_offsets_request(own, isolation.value), node)
            for node, own in led.items()
        ]
        answer = {}
        for request in requests:
            answer.update(self._list_partition_offsets_process_response(await request))
        return answer

    async def pause(self, seconds: float) -> None:
        await self._net.sleep(seconds)

    async def leaders(self, topic: str, *, anew: bool = False) -> dict[int, int]:
        return (await self.leaders_of([topic], anew=anew))[topic]

    async def leaders_of(
        self, topics: Iterable[str], *, anew: bool = False
    ) -> dict[str, dict[int, int]]:
        """Topic → partition → leading broker, -1 for none; only inside `run`.

        Missing topics are not created; `anew` refreshes the cached metadata. InvalidTopicError if a
        topic does not exist, TopicAuthorizationFailedError if this user may not see one.
        """
        cluster, names = self._manager.cluster, list(topics)
        cluster.config["allow_auto_create_topics"] = False
        for topic in names:
            await cluster.add_topic(topic)
        if anew or any(cluster.partitions_for_topic(topic) is None for topic in names):
            await cluster.refresh_metadata()
        led = {}
        for topic in names:
            if topic in cluster.unauthorized_topics:
                raise kafka_errors.TopicAuthorizationFailedError(topic)
            partitions = cluster.partitions_for_topic(topic)
            if not partitions:
                raise kafka_errors.InvalidTopicError(f'topic "{topic}" does not exist')
            led[topic] = {
                number: cluster.leader_for_partition(TopicPartition(topic, number))
                for number in sorted(partitions)
            }
        return led


def may_pass(error: Exception) -> bool:
    """True if the same request may succeed later; an unknown broker is one that is away."""
    lasting = isinstance(error, kafka_errors.KafkaError) and not error.retriable
    return not lasting or isinstance(error, kafka_errors.UnknownBrokerIdError)


def passing(error: kafka_errors.KafkaError) -> kafka_errors.KafkaError:
    """Return an `error` that may pass, raise any other."""
    if may_pass(error):
        return error
    raise error


def require_success(code: int, what: str) -> None:
    if (error := failure(code, what)) is not None:
        raise error


def failure(code: int, what: str) -> kafka_errors.KafkaError | None:
    """The retriable error of an answer about `what`, None for code 0; raises any other."""
    return passing(error_about(kafka_errors.for_code(code), what)) if code else None
