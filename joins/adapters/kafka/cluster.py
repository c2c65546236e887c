"""Topics and offsets of a Kafka cluster, through kafka-python's admin client."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import OffsetSpec

from joins.adapters.kafka.client import LEVELS, KafkaConnection, may_pass
from joins.adapters.kafka.options import refusal
from joins.plan.causes import detail_of
from joins.plan.errors import SourceError, suggestion
from joins.plan.plan import Isolation, KafkaOptions
from watermark.gate import Retention

_CREATE = "Create it (sluice topic create NAME), or correct the table's 'topic' option."
_NO_TOPIC = "sluice.preflight"
_MAX_AGE, _MAX_BYTES, _POLICY = "retention.ms", "retention.bytes", "cleanup.policy"
_TOMBSTONE_AGE = "delete.retention.ms"


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
    """Topics and offsets of one cluster; each method raises as `KafkaConnection`."""

    # reads better long: a method a request; they share one connection.

    def __init__(self, kafka: KafkaOptions, *, keep_open: bool = False) -> None:
        self.connection = KafkaConnection(kafka, keep_open=keep_open)

    def close(self) -> None:
        self.connection.close()

    def reach(self) -> None:
        if not self.connection.has_answered:
            self.describe(_NO_TOPIC)

    def describe(self, topic: str) -> TopicDescription | None:
        return self.describe_all([topic]).get(topic)

    def describe_all(self, topics: Sequence[str]) -> dict[str, TopicDescription]:
        return self.connection.answer(lambda admin: described(admin, topics))

    def topics(self) -> list[str]:
        return self.connection.answer(lambda admin: [str(name) for name in admin.list_topics()])

    def require(self, topic: str, otherwise: str = _CREATE) -> TopicDescription:
        """The topic; SourceError with the hint `otherwise` if neither it nor a like one exists."""
        description = self.describe(topic)
        if description is None:
            servers = self.connection.kafka.bootstrap_servers
            raise SourceError(
                f'topic "{topic}" does not exist on kafka "{servers}"',
                hint=suggestion(topic, without_internal(self.topics()), otherwise),
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
        with self.connection.admin() as admin:
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
        with self.connection.admin() as admin:
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
        with self.connection.admin() as admin:
            try:
                level = LEVELS[isolation or self.connection.kafka.isolation]
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

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        ends = self.end_offsets(topic)  # first: later records are not before the time
        offsets = self._offsets(topic, timestamp_ms)
        return {p: ends.get(p, 0) if offset < 0 else offset for p, offset in offsets.items()}

    def delete_records_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        before = {TopicPartition(topic, p): o for p, o in offsets.items() if o > 0}
        if not before:
            return
        with self.connection.admin() as admin:
            try:
                admin.delete_records(before)
            except kafka_errors.OffsetOutOfRangeError:
                return


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


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """What a topic keeps; one of unknown settings may be compacted, and has no limit."""

    retention: Retention = field(default_factory=Retention)
    is_compacted: bool = True
    # how long a compacted topic keeps a tombstone; None if it keeps all
    tombstone_retention_ms: int | None = None


def topic_policy(cluster: KafkaCluster, topic: str) -> TopicPolicy:
    with cluster.connection.admin() as admin:
        values = admin.topic_config(topic, (_MAX_AGE, _MAX_BYTES, _POLICY, _TOMBSTONE_AGE))
    if values is None:
        return TopicPolicy()
    policy = str(values.get(_POLICY, "delete"))
    age, size = (int(values.get(k) or -1) for k in (_MAX_AGE, _MAX_BYTES))
    kept = Retention(None if age < 0 else age, None if size < 0 else size)
    return TopicPolicy(
        kept if "delete" in policy else Retention(),
        "compact" in policy,
        int(values.get(_TOMBSTONE_AGE) or 0) if "compact" in policy else None,
    )


def cluster_id(cluster: KafkaCluster) -> str | None:
    return cluster.connection.answer(_cluster_id)


def _cluster_id(admin: KafkaAdminClient) -> str | None:
    try:
        cluster_id: str | None = admin.describe_cluster()["cluster_id"]
    except kafka_errors.KafkaError as exc:
        if may_pass(exc):
            raise
        return None  # a service that lacks this request of Kafka's protocol
    return cluster_id or None


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
