"""Topics and offsets of a Kafka cluster, through kafka-python's admin client."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import OffsetSpec

from joins.adapters.kafka.client import LEVELS, KafkaClient, may_pass
from joins.adapters.kafka.groups import (
    OpenTransaction,
    commit_offsets,
    committed_offsets,
    describe_open,
    require_no_members,
)
from joins.adapters.kafka.options import client_options, refusal
from joins.adapters.network import current_deadline
from joins.plan.causes import detail_of
from joins.plan.errors import SourceError, SourceUnavailableError, suggestion
from joins.plan.plan import Isolation, KafkaOptions
from watermark.gate import Retention

_TIMEOUT_MS = 10_000
_SHORT_TIMEOUT_MS = 5_000
_CREATE = "Create it (sluice topic create NAME), or correct the table's 'topic' option."
_NO_TOPIC = "sluice.preflight"
_Answer = TypeVar("_Answer")
_MAX_AGE, _MAX_BYTES, _POLICY = "retention.ms", "retention.bytes", "cleanup.policy"
_TOMBSTONE_AGE = "delete.retention.ms"
_SILENCE = (
    OSError,
    kafka_errors.KafkaConnectionError,
    kafka_errors.KafkaTimeoutError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.RequestTimedOutError,
)
"""No answer at all; any other error says what is wrong."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the cluster shows it; its UUID changes when the topic is recreated."""

    name: str
    topic_id: str
    partitions: tuple[int, ...]


_INTERNAL = ("__", "sluice.")


def without_internal(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith(_INTERNAL)]


class KafkaCluster:
    """One cluster, for one thread; each method raises `SourceUnavailableError` if none answers.

    With `keep_open` the client is kept between calls.
    """

    # reads better long: a method a request; they share one connection.

    def __init__(self, kafka: KafkaOptions, *, keep_open: bool = False) -> None:
        self._kafka = kafka
        self._keep_open = keep_open
        self._kept: KafkaClient | None = None
        self._answers = False

    def close(self) -> None:
        if self._kept is not None:
            kept, self._kept = self._kept, None
            kept.close()

    @property
    def is_open(self) -> bool:
        return self._kept is not None

    def doubt(self) -> None:
        """Let the next question reconnect if it fails with the kept client."""
        self._answers = False

    def reach(self) -> None:
        if not self._answers:
            self.describe(_NO_TOPIC)

    def _client(self) -> KafkaClient:
        deadline, timeout_ms, first_ms = current_deadline(), _TIMEOUT_MS, _SHORT_TIMEOUT_MS
        if deadline is not None:
            left_ms = int(1000 * deadline.left_s(self._kafka.bootstrap_servers))
            timeout_ms, first_ms = _SHORT_TIMEOUT_MS, min(_SHORT_TIMEOUT_MS, left_ms + 1)
        try:
            return KafkaClient(
                **client_options(self._kafka),
                request_timeout_ms=timeout_ms,
                bootstrap_timeout_ms=first_ms,
            )
        except (kafka_errors.KafkaError, OSError, ValueError) as exc:
            raise self._unanswered(exc) from exc

    def _unanswered(self, exc: Exception) -> SourceError:
        servers = self._kafka.bootstrap_servers
        if may_pass(exc):
            return self._unavailable(servers, exc)
        return SourceError(
            f'kafka "{servers}" refused a request: {refusal(exc)}',
            hint="Check this user's rights and the properties of the connection.",
            detail=detail_of(exc),
        )

    @contextmanager
    def _admin(self) -> Iterator[KafkaClient]:
        servers = self._kafka.bootstrap_servers
        deadline = current_deadline()
        if deadline is not None:
            deadline.left_s(servers)
        client = self._kept or self._client()
        if deadline is not None:
            deadline.on_end(servers, client.cut)
        self._kept = client if self._keep_open else None
        try:
            yield client
            self._answers = True
        except (kafka_errors.KafkaError, OSError) as exc:
            self.close()
            raise self._unanswered(exc) from exc
        finally:
            if self._kept is not client:
                client.close()

    def _answer(self, question: Callable[[KafkaAdminClient], _Answer]) -> _Answer:
        """Ask a question without side effects; after `doubt` a second time."""
        if self._kept is not None and not self._answers:
            try:
                with self._admin() as admin:
                    return question(admin)
            except SourceError:
                self.close()
        with self._admin() as admin:
            return question(admin)

    def _unavailable(self, servers: str, exc: Exception) -> SourceUnavailableError:
        cause = "" if isinstance(exc, _SILENCE) else f": {refusal(exc)}"
        return SourceUnavailableError(
            f'kafka "{servers}" cannot be reached{cause}',
            hint="Check properties.bootstrap.servers, and that the broker runs.",
            detail=detail_of(exc),
        )

    def describe(self, topic: str) -> TopicDescription | None:
        return self.describe_all([topic]).get(topic)

    def describe_all(self, topics: Sequence[str]) -> dict[str, TopicDescription]:
        return self._answer(lambda admin: described(admin, topics))

    def topics(self) -> list[str]:
        return self._answer(_own_topics)

    def cluster_id(self) -> str | None:
        return self._answer(_cluster_id)

    def require(self, topic: str, otherwise: str = _CREATE) -> TopicDescription:
        """The topic; SourceError with the hint `otherwise` if neither it nor a like one exists."""
        description = self.describe(topic)
        if description is None:
            raise SourceError(
                f'topic "{topic}" does not exist on kafka "{self._kafka.bootstrap_servers}"',
                hint=suggestion(topic, without_internal(self._answer(_own_topics)), otherwise),
            )
        return description

    def create(
        self,
        topic: str,
        partitions: int,
        replication: int,
        config: Mapping[str, str],
        *,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Create the topic if missing; `settings` maps a config to its setting, for hints.

        SourceError.
        """
        specification = {"num_partitions": partitions, "replication_factor": replication}
        with self._admin() as admin:
            try:
                described = {**specification, "configs": dict(config)}
                admin.create_topics({topic: described}, wait_for_metadata=True)
            except kafka_errors.TopicAlreadyExistsError:
                return
            except (
                kafka_errors.InvalidReplicationFactorError,
                kafka_errors.TopicAuthorizationFailedError,
                kafka_errors.PolicyViolationError,
                kafka_errors.InvalidConfigurationError,
            ) as exc:
                refused = _refused_configs(admin, topic, specification, config)
                if not refused:
                    raise SourceError(
                        f'topic "{topic}" cannot be created: {refusal(exc)}',
                        hint="Check the changelog replication setting and this user's rights.",
                        detail=detail_of(exc),
                    ) from exc
                values = ", ".join(f"{name}={config[name]}" for name in refused)
                names = ", ".join((settings or {}).get(name, name) for name in refused)
                raise SourceError(
                    f'topic "{topic}" cannot be created: the cluster refuses {values}',
                    hint=f"Set {names} to a value that the cluster's policy allows.",
                    detail=detail_of(exc),
                ) from exc

    def delete(self, topic: str) -> None:
        with self._admin() as admin:
            try:
                admin.delete_topics([topic])
            except kafka_errors.UnknownTopicOrPartitionError:
                return

    def _offsets(
        self,
        topic: str | TopicDescription,
        spec: OffsetSpec | int,
        isolation: Isolation | None = None,
    ) -> dict[int, int]:
        """Offsets of all partitions, or of those described; `isolation` defaults to the options."""
        topic = topic if isinstance(topic, TopicDescription) else self.require(topic)
        return self.offsets_of([topic], spec, isolation)[topic.name]

    def offsets_of(
        self,
        topics: Sequence[TopicDescription],
        spec: OffsetSpec | int,
        isolation: Isolation | None = None,
    ) -> dict[str, dict[int, int]]:
        """Topic → partition → offset, by one request a broker; as `_offsets`."""
        specs = {TopicPartition(topic.name, p): spec for topic in topics for p in topic.partitions}
        answer: dict[str, dict[int, int]] = {topic.name: {} for topic in topics}
        with self._admin() as admin:
            try:
                level = LEVELS[isolation or self._kafka.isolation]
                results = admin.partition_offsets(specs, level)
            except kafka_errors.UnknownTopicOrPartitionError as exc:
                raise SourceError(
                    f'topic "{", ".join(answer)}" was deleted',
                    hint="Create the topic again, or correct the table's 'topic' option.",
                ) from exc
        for tp, value in results.items():
            answer[tp.topic][tp.partition] = value.offset
        return answer

    def ranges_of(
        self, topics: Sequence[TopicDescription]
    ) -> tuple[dict[str, dict[int, int]], dict[str, dict[int, int]]]:
        """First and end offsets of all partitions, by topic."""
        begins = self.offsets_of(topics, OffsetSpec.EARLIEST)
        return begins, self.offsets_of(topics, OffsetSpec.LATEST)

    def beginning_offsets(self, topic: str | TopicDescription) -> dict[int, int]:
        return self._offsets(topic, OffsetSpec.EARLIEST)

    def end_offsets(self, topic: str | TopicDescription) -> dict[int, int]:
        """Partition → last stable offset; not every offset before it has a record."""
        return self._offsets(topic, OffsetSpec.LATEST)

    def high_watermarks(self, topic: str | TopicDescription) -> dict[int, int]:
        return self._offsets(topic, OffsetSpec.LATEST, Isolation.UNCOMMITTED)

    def open_transactions(self, topic: str, ends: Mapping[int, int]) -> list[OpenTransaction]:
        return self._answer(lambda admin: describe_open(admin, topic, ends))

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        return self._answer(lambda admin: committed_offsets(admin, group, topic))

    def commit_group_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets to a consumer group; SourceError if it has members."""
        with self._admin() as admin:
            commit_offsets(admin, group, topic, offsets)

    def require_unused_group(self, group: str) -> None:
        """Raise SourceError if the group has members, as its offsets then cannot be committed."""
        self._answer(lambda admin: require_no_members(admin, group))

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        ends = self.end_offsets(topic)  # first: later records are not before the time
        offsets = self._offsets(topic, timestamp_ms)
        return {p: ends.get(p, 0) if offset < 0 else offset for p, offset in offsets.items()}

    def delete_records_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        before = {TopicPartition(topic, p): o for p, o in offsets.items() if o > 0}
        if not before:
            return
        with self._admin() as admin:
            try:
                admin.delete_records(before)
            except kafka_errors.OffsetOutOfRangeError:
                return

    def size_bytes(self, topic: str) -> int | None:
        """Bytes of the topic's partitions on one replica, None if unknown."""
        sizes = self.partition_bytes(topic)
        return None if sizes is None else sum(sizes.values())

    def partition_bytes(self, topic: str) -> dict[int, int] | None:
        """Bytes of each partition on its largest replica, None if unknown."""
        partitions = list(self.require(topic).partitions)
        with self._admin() as admin:
            try:
                brokers = admin.describe_log_dirs({topic: partitions})
            except kafka_errors.KafkaError:
                return None
        return _largest_replica_bytes(brokers)

    def retention(self, topic: str) -> Retention:
        """The topic's retention; unlimited if unknown."""
        with self._admin() as admin:
            values = admin.topic_config(topic, (_MAX_AGE, _MAX_BYTES, _POLICY))
        if values is None:
            return Retention()
        if "delete" not in str(values.get(_POLICY, "delete")):
            return Retention()
        age, size = (int(values.get(k) or -1) for k in (_MAX_AGE, _MAX_BYTES))
        return Retention(None if age < 0 else age, None if size < 0 else size)

    def is_compacted(self, topic: str) -> bool:
        with self._admin() as admin:
            values = admin.topic_config(topic, (_POLICY,))
        return values is None or "compact" in str(values.get(_POLICY, "delete"))

    def tombstone_retention_ms(self, topic: str) -> int | None:
        """How long a compacted topic keeps a tombstone; None if it keeps all, or unknown."""
        with self._admin() as admin:
            values = admin.topic_config(topic, (_POLICY, _TOMBSTONE_AGE))
        if values is None or "compact" not in str(values.get(_POLICY, "delete")):
            return None
        return int(values.get(_TOMBSTONE_AGE) or 0)

    def first_since(self, topic: str, times_ms: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        """Partition → offset and timestamp of its first record not older than its time, if any."""
        with self._admin() as admin:
            specs = {TopicPartition(topic, p): at_ms for p, at_ms in times_ms.items()}
            results = admin.partition_offsets(specs, LEVELS[self._kafka.isolation])
        return {
            tp.partition: (value.offset, value.timestamp)
            for tp, value in results.items()
            if value.offset >= 0
        }


def _refused_configs(
    admin: KafkaAdminClient,
    topic: str,
    specification: Mapping[str, int],
    config: Mapping[str, str],
) -> list[str]:
    """The configs that the cluster refuses, each tried alone; empty if the cause is another one."""

    def is_refused(configs: Mapping[str, str]) -> bool:
        described = {**specification, "configs": dict(configs)}
        try:
            admin.create_topics({topic: described}, validate_only=True)
        except (kafka_errors.PolicyViolationError, kafka_errors.InvalidConfigurationError):
            return True
        except kafka_errors.KafkaError:
            return False
        return False

    if is_refused({}):
        return []
    return [name for name, value in config.items() if is_refused({name: value})]


def _cluster_id(admin: KafkaAdminClient) -> str | None:
    try:
        cluster_id: str | None = admin.describe_cluster()["cluster_id"]
    except kafka_errors.KafkaError as exc:
        if may_pass(exc):
            raise
        return None  # a service that lacks this request of Kafka's protocol
    return cluster_id or None


def _own_topics(admin: KafkaAdminClient) -> list[str]:
    return [str(name) for name in admin.list_topics()]


def described(admin: KafkaAdminClient, topics: Sequence[str]) -> dict[str, TopicDescription]:
    descriptions = {}
    for topic in admin.describe_topics(list(topics)):
        error, name = kafka_errors.for_code(topic["error_code"]), str(topic["name"])
        if error is kafka_errors.UnknownTopicOrPartitionError:
            continue
        if topic["error_code"] != 0:
            raise error(name)
        partitions = sorted(p["partition_index"] for p in topic["partitions"])
        topic_id = str(topic.get("topic_id", ""))
        descriptions[name] = TopicDescription(name, topic_id, tuple(partitions))
    return descriptions


def _largest_replica_bytes(brokers: list[dict[str, Any]]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for broker in brokers:
        for directory in broker.get("log_dirs", broker.get("results", ())):
            for topic in directory.get("topics", ()):
                for partition in topic.get("partitions", ()):
                    index = partition.get("partition_index", 0)
                    sizes[index] = max(sizes.get(index, 0), partition.get("partition_size", 0))
    return sizes
