"""Resolves secrets, connections, paths and offsets of a plan, without Spark."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.stream_cluster import StreamCluster, matching_topics
from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.store_path import StorePath
from joins.kernels.formats.decoders import RecordColumns
from joins.kernels.table_path import TablePath
from joins.plan.connections import FILES, OF_THE_TOKEN_ENDPOINT, TOKEN_URL, StoreOptions, StoreTable
from joins.plan.errors import SourceError
from joins.plan.formats import RecordFormat
from joins.plan.plan import (
    OFFSET_RESET,
    BoundedMode,
    DeltaSink,
    DeltaTableSource,
    FileSource,
    JoinPlan,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    MysqlCdcSource,
    OffsetReset,
    PolledSource,
    ProbeSource,
    Sink,
    StartupMode,
    StreamTable,
    TopicHistory,
    TopicSource,
)
from joins.plan.stream_topics import NO_TOPICS, StreamTopic, StreamTopics, in_each, partition_of
from service.config import Settings
from service.jobs.store.layout import JobLayout
from service.security.allowed import check_store, confined_path, server_of, store_address
from service.security.secrets import SecretResolver, references
from service.sql.catalog.option_values import INLINE_PREFIX
from watermark.errors import Secret

Topic = TypeVar("Topic", KafkaSource, KafkaSink, TopicSource)
StoreTables = TypeVar("StoreTables", DeltaSink, DeltaTableSource)
Historic = TypeVar("Historic", KafkaSource, TopicSource)
Formats = TypeVar("Formats", KafkaSource, KafkaSink, TopicSource, RecordColumns, StreamTable)


def with_history_login(source: Historic, secrets: SecretResolver) -> Historic:
    history = source.history
    if history is None or not isinstance(history.files, DeltaTableSource):
        return source
    files = with_store_login(history.files, secrets)
    return replace(source, history=replace(history, files=files))


def topic_with_logins(topic: Topic, secrets: SecretResolver) -> Topic:
    return replace(with_registry_logins(topic, secrets), kafka=with_login(topic.kafka, secrets))


def with_registry_logins(formats: Formats, secrets: SecretResolver) -> Formats:
    key = formats.key
    if key is not None:
        key = replace(key, format=_format_with_login(key.format, secrets))
    return replace(formats, value=_format_with_login(formats.value, secrets), key=key)


def _format_with_login(form: RecordFormat, secrets: SecretResolver) -> RecordFormat:
    registry = form.registry
    if registry is None:
        return form
    resolve = partial(secrets.resolve, servers=server_of(registry.url))
    hidden = (registry.user_info, registry.ca, registry.cert, registry.key)
    user_info, ca, cert, key = (None if text is None else resolve(text) for text in hidden)
    resolved = replace(registry, user_info=user_info, ca=ca, cert=cert, key=key)
    return replace(form, registry=resolved)


def with_login(kafka: KafkaOptions, secrets: SecretResolver) -> KafkaOptions:
    """Resolve the login of a cluster, and read its PEM files."""
    properties, resolved = dict(kafka.properties), dict[str, str]()
    for name, value in properties.items():
        of_provider = name in OF_THE_TOKEN_ENDPOINT
        servers = server_of(properties[TOKEN_URL]) if of_provider else kafka.bootstrap_servers
        if name in FILES:
            resolved[FILES[name]] = secrets.pem_file(value)
        else:
            resolved[name] = secrets.resolve(value, servers)
    return replace(kafka, properties=tuple(sorted(resolved.items())))


def with_store_login(table: StoreTables, secrets: SecretResolver) -> StoreTables:
    return replace(table, store=_store_login(table.path, table.store, secrets))


def _store_login(path: str, store: StoreOptions, secrets: SecretResolver) -> StoreOptions:
    if not store:
        return ()
    server = StoreTable.of(path).server(store)
    return tuple((name, secrets.resolve(value, server)) for name, value in store)


def with_late_login(probe: ProbeSource, secrets: SecretResolver) -> ProbeSource:
    if probe.late_records_path is None:
        return probe
    return replace(
        probe, late_store=_store_login(probe.late_records_path, probe.late_store, secrets)
    )


def with_output_logins(plan: JoinPlan, secrets: SecretResolver) -> JoinPlan:
    """`plan` with only the credentials of stores resolved that outputs and rows of files are in."""

    def resolved(sink: Sink) -> Sink:
        return with_store_login(sink, secrets) if isinstance(sink, DeltaSink) else sink

    more = tuple(replace(insert, sink=resolved(insert.sink)) for insert in plan.more_inserts)
    probe = with_late_login(plan.probe, secrets)
    if isinstance(probe.source, KafkaSource):
        probe = replace(probe, source=with_history_login(probe.source, secrets))
    return replace(plan, probe=probe, sink=resolved(plan.sink), more_inserts=more)


def probe_kafka(plan: JoinPlan, settings: Settings, topic: str) -> KafkaOptions:
    """Cluster and topic of the stream, of a generated one `topic`. Raises as `internal_kafka`."""
    source = plan.probe.source
    if isinstance(source, KafkaSource):
        return source.kafka
    return replace(internal_kafka(plan, settings), topic=topic)


def internal_kafka(plan: JoinPlan, settings: Settings) -> KafkaOptions:
    """The cluster for internal topics: the settings', else the plan's first. Raises SourceError."""
    if settings.kafka_bootstrap_servers is not None:
        return KafkaOptions(settings.kafka_bootstrap_servers, "")
    sinks = (insert.sink for insert in plan.inserts)
    for connector in (plan.probe.source, *sinks, *(d.source for d in plan.dimensions)):
        if isinstance(connector, KafkaSource | KafkaSink | TopicSource):
            return replace(connector.kafka, topic="")
    raise SourceError(
        f'job "{plan.name}" has no Kafka cluster for its changelog topics',
        hint="Set SLUICE_KAFKA_BOOTSTRAP_SERVERS.",
    )


def connection_of(source: MysqlCdcSource | PolledSource) -> MysqlConnectionConfig:
    password = source.password
    names = references(password.reference) if isinstance(password, Secret) else frozenset()
    secret = next((name for name in names if not name.startswith(INLINE_PREFIX)), "")
    return MysqlConnectionConfig(
        hostname=source.hostname,
        port=source.port,
        username=source.username,
        password=password,
        database=source.database,
        table=source.table,
        tls=source.tls,
        secret=secret,
        zone=source.zone,
        metadata=source.metadata if isinstance(source, MysqlCdcSource) else (),
    )


def output_path(table: DeltaSink | DeltaTableSource, settings: Settings) -> TablePath:
    """The path of a resolved delta table. Raises NotAllowedError or StoreRefusedError."""
    address = store_address(table, settings)
    if address is None:
        return confined_path(table, settings)
    check_store(table, settings)
    return StorePath.of(address, table.store)


def files_path(source: FileSource, settings: Settings) -> Path:
    return confined_path(source, settings)


def history_path(history: TopicHistory, settings: Settings) -> TablePath:
    """Where the files of a resolved history are. Raises as `output_path`."""
    if isinstance(history.files, DeltaTableSource):
        return output_path(history.files, settings)
    return files_path(history.files, settings)


def index_directory(layout: JobLayout, settings: Settings) -> Path:
    if settings.index_dir is None:
        return layout.index
    return settings.index_dir / layout.job_dir.name


def resolve_topics(source: KafkaSource, cluster: KafkaCluster) -> KafkaSource:
    """`source` with the topics that its pattern matches now; raises SourceError without any."""
    if source.topic_pattern is None or source.kafka.topic:
        return source
    names = matching_topics(source.topic_pattern, cluster.topics())
    if not names:
        raise SourceError(
            f'no topic matches "{source.topic_pattern}" on kafka '
            f'"{source.kafka.bootstrap_servers}"',
            hint="Create one first, or correct the table's 'topic-pattern'.",
        )
    first, *more = names
    topics = NO_TOPICS.with_more(map(StreamTopic, names))
    return replace(
        source,
        kafka=replace(source.kafka, topic=first),
        more_topics=tuple(more),
        startup_offsets=in_each(topics, source.startup_offsets),
        bounded_offsets=in_each(topics, source.bounded_offsets),
    )


def resolve_start_offsets(source: KafkaSource, cluster: StreamCluster) -> dict[int, int]:
    """Start offset per partition. Raises SourceError if a topic or partition does not exist."""
    if source.startup_mode is StartupMode.EARLIEST:
        return cluster.beginning_offsets()
    if source.startup_mode is StartupMode.LATEST:
        return cluster.end_offsets()
    if source.startup_mode is StartupMode.GROUP:
        return _group_start(source.kafka, cluster)
    if source.startup_mode is StartupMode.TIMESTAMP:
        return cluster.offsets_at(source.startup_timestamp_ms or 0)
    offsets, begin = dict(source.startup_offsets), cluster.beginning_offsets()
    _check_partitions(cluster.topics, offsets, begin, "scan.startup.specific-offsets")
    return {partition: offsets.get(partition, offset) for partition, offset in begin.items()}


def _group_start(kafka: KafkaOptions, cluster: StreamCluster) -> dict[int, int]:
    """The group's committed offsets if they still exist; else the configured reset."""
    group, reset = str(kafka.group), kafka.offset_reset
    begin, end = cluster.beginning_offsets(), cluster.end_offsets()
    committed, last = cluster.group_offsets(group), cluster.high_watermarks()
    usable = {p: o for p, o in committed.items() if p in begin and begin[p] <= o <= last[p]}
    unusable = sorted(set(begin) - set(usable))
    if unusable and reset is OffsetReset.NONE:
        p = unusable[0]
        there = f"the expired offset {committed[p]}" if p in committed else "no offset"
        raise SourceError(
            f'consumer group "{group}" has {there} for {_of_topic(cluster.topics, p)}',
            hint=f"Add 'properties.{OFFSET_RESET}' = 'earliest' or 'latest', or use another "
            "'scan.startup.mode'.",
        )
    reset_to = end if reset is OffsetReset.LATEST else begin
    return {p: usable.get(p, reset_to[p]) for p in begin}


def _group_end(
    kafka: KafkaOptions, start: Mapping[int, int], cluster: StreamCluster
) -> dict[int, int]:
    group, committed = str(kafka.group), cluster.group_offsets(str(kafka.group))
    missing = sorted(set(start) - set(committed))
    if missing:
        raise SourceError(
            f'consumer group "{group}" has no offset for {_of_topic(cluster.topics, missing[0])}, '
            "expected one as the stream's end",
            hint="Use another 'scan.bounded.mode'.",
        )
    return committed


def _of_topic(topics: StreamTopics, number: int) -> str:
    return f'partition {partition_of(number)} of topic "{topics.topic_of(number).name}"'


def resolve_end_offsets(
    source: KafkaSource, start: Mapping[int, int], cluster: StreamCluster
) -> dict[int, int] | None:
    """Exclusive end offset per partition of `start`; None if unbounded. Raises SourceError."""
    bounded = resolve_bounds(source, start, cluster)
    if bounded is None or source.bounded_records is None:
        return bounded
    return {p: min(bounded[p], offset + source.bounded_records) for p, offset in start.items()}


def resolve_bounds(
    source: KafkaSource | TopicSource, start: Mapping[int, int], cluster: StreamCluster
) -> dict[int, int] | None:
    """As `resolve_end_offsets`, for streams and dimensions, without `bounded_records`."""
    if source.bounded_mode is BoundedMode.UNBOUNDED:
        return None
    if source.bounded_mode is BoundedMode.LATEST:
        end = cluster.end_offsets()
    elif source.bounded_mode is BoundedMode.TIMESTAMP:
        end = cluster.offsets_at(source.bounded_timestamp_ms or 0)
    elif source.bounded_mode is BoundedMode.GROUP:
        end = _group_end(source.kafka, start, cluster)
    else:
        end = cluster.topics.file_ends | dict(source.bounded_offsets)
        _check_partitions(cluster.topics, end, start, "scan.bounded.specific-offsets")
    return {p: max(offset, end.get(p, offset)) for p, offset in start.items()}


def resolve_backlog(probe: ProbeSource, cluster: StreamCluster) -> dict[int, int] | None:
    """The exclusive end of the stream's backlog by partition, as of now or of the submission.

    None if the stream stays in event time.
    """
    source, watermark = probe.source, probe.watermark
    if not isinstance(source, KafkaSource) or watermark is None or not watermark.after_backlog:
        return None
    if source.backlog_offsets:
        return dict(source.backlog_offsets)
    return cluster.end_offsets()


def _check_partitions(
    topics: StreamTopics, offsets: Mapping[int, int], there: Mapping[int, int], option: str
) -> None:
    unknown = sorted(set(offsets) - set(there))
    if unknown:
        topic, partition = topics.topic_of(unknown[0]), partition_of(unknown[0])
        own = [partition_of(p) for p in sorted(there) if topics.topic_of(p) == topic]
        raise SourceError(
            f'topic "{topic.name}" has no partition {partition}, its partitions are {own}',
            hint=f"Correct '{option}'.",
        )
