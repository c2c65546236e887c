"""Codecs, connections, and raw requests over kafka-python's private manager (pinned exactly)."""

import gzip
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
from kafka import KafkaAdminClient, TopicPartition
from kafka import codec as kafka_codec
from kafka import errors as kafka_errors
from kafka.admin import ConfigResourceType
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.consumer import IsolationLevel

from joins.adapters.kafka.options import client_options, error_about, refusal
from joins.adapters.network import current_deadline
from joins.kernels.records.layout import BODIES, RecordFormatError
from joins.plan.causes import detail_of
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import Compression, Isolation, KafkaOptions


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
        """Name → value of the topic's settings `names`, None if the cluster does not expose them.

        An error that may pass is raised.
        """
        try:
            return self.run(self._settings_of, topic, list(names))
        except kafka_errors.KafkaError as exc:
            if may_pass(exc):
                raise
            return None

    async def _settings_of(self, topic: str, names: list[str]) -> dict[str, Any]:
        """As `topic_config`; kafka-python's own method leaves out the error of a topic."""
        request = DescribeConfigsRequest(resources=[(ConfigResourceType.TOPIC, topic, names)])
        (answer,) = (await self.ask(request)).results
        require_success(answer.error_code, f'settings of topic "{topic}"')
        return {each.name: each.value for each in answer.configs}

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


_TIMEOUT_MS = 10_000
_SHORT_TIMEOUT_MS = 5_000
_SILENCE = (
    OSError,
    kafka_errors.KafkaConnectionError,
    kafka_errors.KafkaTimeoutError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.RequestTimedOutError,
)
"""No answer at all; any other error says what is wrong."""


class KafkaConnection:
    """The client of one cluster, for one thread; `SourceUnavailableError` if no broker answers.

    With `keep_open` the client is kept between calls.
    """

    def __init__(self, kafka: KafkaOptions, *, keep_open: bool = False) -> None:
        self.kafka = kafka
        self._keep_open = keep_open
        self._kept: KafkaClient | None = None
        self.has_answered = False  # of the client that is kept, or was the last one

    def close(self) -> None:
        if self._kept is not None:
            kept, self._kept = self._kept, None
            kept.close()

    @property
    def is_open(self) -> bool:
        return self._kept is not None

    def _client(self) -> KafkaClient:
        deadline, timeout_ms, first_ms = current_deadline(), _TIMEOUT_MS, _SHORT_TIMEOUT_MS
        if deadline is not None:
            left_ms = int(1000 * deadline.left_s(self.kafka.bootstrap_servers))
            timeout_ms, first_ms = _SHORT_TIMEOUT_MS, min(_SHORT_TIMEOUT_MS, left_ms + 1)
        try:
            return KafkaClient(
                **client_options(self.kafka),
                request_timeout_ms=timeout_ms,
                bootstrap_timeout_ms=first_ms,
            )
        except (kafka_errors.KafkaError, OSError, ValueError) as exc:
            raise self._unanswered(exc) from exc

    def _unanswered(self, exc: Exception) -> SourceError:
        servers = self.kafka.bootstrap_servers
        if may_pass(exc):
            cause = "" if isinstance(exc, _SILENCE) else f": {refusal(exc)}"
            return SourceUnavailableError(
                f'kafka "{servers}" cannot be reached{cause}',
                hint="Check properties.bootstrap.servers, and that the broker runs.",
                detail=detail_of(exc),
            )
        return SourceError(
            f'kafka "{servers}" refused a request: {refusal(exc)}',
            hint="Check this user's rights and the properties of the connection.",
            detail=detail_of(exc),
        )

    @contextmanager
    def admin(self) -> Iterator[KafkaClient]:
        servers = self.kafka.bootstrap_servers
        deadline = current_deadline()
        if deadline is not None:
            deadline.left_s(servers)
        client = self._kept or self._client()
        if deadline is not None:
            deadline.on_end(servers, client.cut)
        self._kept = client if self._keep_open else None
        try:
            yield client
            self.has_answered = True
        except (kafka_errors.KafkaError, OSError) as exc:
            self.close()
            raise self._unanswered(exc) from exc
        finally:
            if self._kept is not client:
                client.close()

    def answer(self, question: Callable[[KafkaAdminClient], _Answer]) -> _Answer:
        """Ask a question without side effects; again if a kept client in doubt does not answer."""
        if self._kept is not None and not self.has_answered:
            try:
                with self.admin() as admin:
                    return question(admin)
            except SourceError:
                self.close()
        with self.admin() as admin:
            return question(admin)


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
