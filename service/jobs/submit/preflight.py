"""Checks at submission: faults that can be found before a job starts."""

import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from joins.adapters.delta.entries import LogEntries
from joins.adapters.delta.features import Appends, WriterChoice
from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.source import check_source_table
from joins.adapters.files.readers import check_files
from joins.adapters.files.stream_listing import list_history
from joins.adapters.kafka.pool import ClusterPool, OpenClusters
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.adapters.mysql.clock import ask
from joins.adapters.mysql.connection import connected, is_mariadb
from joins.adapters.mysql.source import check_source
from joins.adapters.mysql.table import CapturedTable, advice
from joins.adapters.registry import check_registries
from joins.adapters.store_path import StorePath, prove_conditional_puts
from joins.adapters.topic.check import check_topic, connector_advice
from joins.adapters.topic.start import find_start
from joins.kernels.local_files import nearest_existing
from joins.kernels.probe.event_times import LATE_RECORDS
from joins.kernels.probe.probe import kernel_spec
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError, SourceError
from joins.plan.formats import RecordFormat, RecordKey
from joins.plan.plan import (
    BoundedMode,
    DeltaSink,
    DeltaTableSource,
    Dimension,
    Field,
    FileSource,
    JoinPlan,
    KafkaSink,
    KafkaSource,
    MysqlCdcSource,
    SharedSource,
    SinkWriter,
    StartupMode,
    TopicHistory,
    TopicSource,
)
from joins.plan.stream_topics import StreamTopics
from joins.plan.types import TypeName
from service.config import Settings
from service.jobs.store.layout import own_tables
from service.jobs.submit.places import check_nodes, check_places, check_surroundings_in_store
from service.security.allowed import check_allowed, store_address
from service.security.resolution import (
    connection_of,
    files_path,
    history_path,
    internal_kafka,
    output_path,
    resolve_backlog,
    resolve_bounds,
    resolve_end_offsets,
    resolve_secrets,
    resolve_start_offsets,
    resolve_topics,
)
from service.security.secrets import SecretResolver
from service.sql.text.dialect import told_where

_QUESTIONS = 3


def check_staleness(dimension: Dimension, settings: Settings) -> None:
    """Raise SourceError if the bound is below the best freshness; asks a database for its time.

    T is at best as old as the pause between two questions, an answer and the pause between two
    commits; of a connector's topic also as the time that a record may be on its way.
    """
    bound_ms = dimension.max_staleness_ms
    if bound_ms is None or isinstance(dimension.source, FileSource):
        return
    answer_ms = _answer_ms(dimension)
    settings_ms = round(settings.freshness_interval_s * 1000) + settings.build_trigger_ms
    best_ms = settings_ms + answer_ms + _settle_ms(dimension)
    if bound_ms >= best_ms:
        return
    settle = f", on its way {_settle_ms(dimension)} ms" if _settle_ms(dimension) else ""
    raise SourceError(
        f"table \"{dimension.name}\" has 'join.max-staleness' of {bound_ms} ms, below the best "
        f"freshness of {best_ms} ms: asked each {settings.freshness_interval_s:g} s, answered in "
        f"{answer_ms} ms, committed each {settings.build_trigger_ms} ms{settle}",
        hint=f"Give it {best_ms} ms or more, best twice as much; or lower "
        "SLUICE_FRESHNESS_INTERVAL_S.",
    )


def _answer_ms(dimension: Dimension) -> int:
    """Measured: the longest of a few answers."""
    source = dimension.source
    if not isinstance(source, MysqlCdcSource):
        return 0
    with connected(connection_of(source)) as connection:
        mariadb = is_mariadb(connection)
        answers = [ask(connection, mariadb=mariadb) for _ in range(_QUESTIONS)]
    return max((2 * (answer.within_ms or 0) for answer in answers if answer is not None), default=0)


def _settle_ms(dimension: Dimension) -> int:
    source = dimension.source
    if isinstance(source, SharedSource) or not isinstance(source, TopicSource):
        return 0
    evidence = source.evidence
    if evidence is None or evidence.connect_url is not None:
        return 0
    return evidence.settle_ms if evidence.heartbeat_topic is not None else 0


def preflight(
    plan: JoinPlan,
    settings: Settings,
    secrets: SecretResolver,
    *,
    pool: ClusterPool | None = None,
) -> JoinPlan:
    """`plan` with the probe's offsets resolved, after checking all topics, tables and paths.

    `pool` lends the connections to Kafka. Raises SluiceError for what is missing or refused.
    """
    check_allowed(plan, settings)
    check_places(plan, settings)
    check_nodes(plan, settings, in_store=settings.warehouse is not None)
    if settings.warehouse is not None:
        prove_conditional_puts(own_tables(settings.warehouse))
    resolved = resolve_secrets(plan, secrets)
    with OpenClusters(pool) as clusters:
        with told_where(plan.sql, *(insert.probe.table for insert in plan.inserts)):
            planned = _with_offsets(plan, resolved, settings, clusters)
        clusters.of(internal_kafka(resolved, settings)).reach()
        held = []
        for dimension, own in zip(resolved.dimensions, planned.dimensions, strict=True):
            with told_where(plan.sql, dimension.name):
                _check_dimension(dimension, settings)
                check_staleness(dimension, settings)
                held.append(
                    _with_history(_with_ends(own, dimension, clusters), dimension, settings)
                )
        planned = replace(planned, dimensions=tuple(held))
        cluster_ids = []
        for insert in resolved.inserts:
            with told_where(plan.sql, insert.sink_table):
                cluster_ids.append(_check_sink(insert, settings, clusters))
        _check_late_records(resolved, settings)
        first, *more = (
            replace(insert.sink, cluster_id=cluster_id)
            if isinstance(insert.sink, KafkaSink)
            else insert.sink
            for insert, cluster_id in zip(planned.inserts, cluster_ids, strict=True)
        )
        pairs = zip(planned.more_inserts, more, strict=True)
        further = tuple(replace(insert, sink=sink) for insert, sink in pairs)
        return replace(planned, sink=first, more_inserts=further)


def preflight_update(
    plan: JoinPlan,
    added: Collection[str],
    settings: Settings,
    secrets: SecretResolver,
    *,
    pool: ClusterPool | None = None,
) -> JoinPlan:
    """`plan` of an update with the values of its `added` tables resolved, after checking those.

    Its stream, outputs and other tables are those of the job. Raises SluiceError for what is
    missing or refused.
    """
    check_allowed(plan, settings)
    check_places(plan, settings)
    check_nodes(plan, settings, in_store=settings.warehouse is not None)
    resolved = resolve_secrets(plan, secrets)
    held = []
    with OpenClusters(pool) as clusters:
        for dimension, own in zip(resolved.dimensions, plan.dimensions, strict=True):
            if own.name in added:
                with told_where(plan.sql, own.name):
                    _check_dimension(dimension, settings)
                    check_staleness(dimension, settings)
                    own = _with_ends(own, dimension, clusters)
            held.append(own)
    for insert in resolved.inserts:
        if isinstance(insert.sink, DeltaSink):
            with told_where(plan.sql, insert.sink_table):
                _check_growth(insert, insert.sink, settings)
    return replace(plan, dimensions=tuple(held))


def _check_growth(plan: JoinPlan, sink: DeltaSink, settings: Settings) -> None:
    path = output_path(sink, settings)
    if not _is_table(path):
        return  # its job has not begun
    log = DeltaLog(path, "preflight")
    appends = Appends.into(sink, kernel_spec(plan).output_schema, grows=True)
    missing = set(appends.missing_in(log.versions.fresh().rules).names)
    there = pa.schema([field for field in appends.rows if field.name not in missing])
    log.choose_writer(replace(appends, rows=there))


def _with_offsets(
    plan: JoinPlan, resolved: JoinPlan, settings: Settings, clusters: OpenClusters
) -> JoinPlan:
    """`plan` with its stream's start, end and backlog as offsets; `resolved` has its password."""
    held, source = plan.probe.source, resolved.probe.source
    if not isinstance(held, KafkaSource) or not isinstance(source, KafkaSource):
        return plan
    kafka = clusters.of(source.kafka)
    for formats in _formats(resolved):
        check_registries(*formats)
    if source.kafka.reported_group is not None:
        kafka.require_unused_group(source.kafka.reported_group)
    source = resolve_topics(source, kafka)
    source, newest_ms = _listed(source, resolved.probe.fields, settings)
    cluster = StreamCluster(kafka, source.topics)
    topics = cluster.identified()
    if source.history is None or held.history is None:
        start = resolve_start_offsets(source, cluster)
    else:
        start = find_start(kafka, source.kafka.topic, source.history, newest_ms)
        start |= dict.fromkeys(source.topics.file_ends, 0)
        version, listed = source.history.version, source.history.listed
        held = replace(held, history=replace(held.history, version=version, listed=listed))
    end = resolve_end_offsets(source, start, cluster)
    backlog = resolve_backlog(resolved.probe, cluster)
    held = replace(
        held,
        kafka=replace(held.kafka, topic=source.kafka.topic),
        more_topics=source.more_topics,
        topic_ids=tuple(topic.topic_id for topic in topics.topics),
        startup_mode=StartupMode.SPECIFIC,
        startup_offsets=tuple(sorted(start.items())),
    )
    if end is not None:
        bounds = tuple(sorted(end.items()))
        held = replace(held, bounded_mode=BoundedMode.SPECIFIC, bounded_offsets=bounds)
    if backlog is not None:
        held = replace(held, backlog_offsets=tuple(sorted(backlog.items())))
    return replace(plan, probe=replace(plan.probe, source=held))


def _listed(
    source: KafkaSource, fields: tuple[Field, ...], settings: Settings
) -> tuple[KafkaSource, int | None]:
    """`source` with its history's files, and the greatest value of the startup column."""
    history = source.history
    if history is None:
        return source, None
    path = history_path(history, settings)
    if isinstance(history.files, DeltaTableSource):
        table = check_source_table(path, fields, (), version=history.version)
        history = replace(history, version=table.version)
    listed, newest_ms = list_history(history, path, fields)
    return replace(source, history=replace(history, listed=listed)), newest_ms


def _formats(plan: JoinPlan) -> Iterable[tuple[RecordFormat, RecordKey | None]]:
    sources = (insert.probe.source for insert in plan.inserts)
    return dict.fromkeys((s.value, s.key) for s in sources if isinstance(s, KafkaSource))


def _with_ends(held: Dimension, resolved: Dimension, clusters: OpenClusters) -> Dimension:
    """`held` with the captured values of its topic; `resolved` has its password."""
    source, own = resolved.source, held.source
    if not isinstance(source, TopicSource) or not isinstance(own, TopicSource):
        return held
    cluster, topic = clusters.of(source.kafka), source.kafka.topic
    if source.kafka.reported_group is not None:
        cluster.require_unused_group(source.kafka.reported_group)
    description = cluster.require(topic)
    ends = cluster.end_offsets(description)
    own = replace(own, changelog_partitions=len(ends), topic_id=description.topic_id)
    if source.is_bounded:
        stream = StreamCluster(cluster, StreamTopics.one(topic))
        ends = resolve_bounds(source, stream.beginning_offsets(), stream) or ends
    if source.evidence is None:
        own = replace(own, end_offsets=tuple(sorted(ends.items())))
    if source.history is not None and source.history.startup_column is None:
        start = find_start(cluster, topic, source.history)
        own = replace(own, history=source.history.starting_at(start))
    return replace(held, source=own)


def _with_history(held: Dimension, resolved: Dimension, settings: Settings) -> Dimension:
    """`held` with the version of its history; `resolved` has its store's credentials."""
    source, own = resolved.source, held.source
    if not isinstance(source, TopicSource) or not isinstance(own, TopicSource):
        return held
    history, declared = source.history, own.history
    if history is None or declared is None or not isinstance(history.files, DeltaTableSource):
        return held
    version = _check_history(resolved, history, settings)
    return replace(held, source=replace(own, history=replace(declared, version=version)))


def _check_history(dimension: Dimension, history: TopicHistory, settings: Settings) -> int | None:
    """Check the files before a topic; the version that they are of, None without versions."""
    path, fields = history_path(history, settings), dimension.declared_fields
    if isinstance(history.files, DeltaTableSource):
        key = dimension.declared_key
        return check_source_table(path, fields, key, version=history.version).version
    assert isinstance(path, Path), "files are in a directory"
    check_files(path, history.files, fields)
    return None


def _check_dimension(dimension: Dimension, settings: Settings) -> None:
    source = dimension.source
    if isinstance(source, SharedSource):
        return  # checked when it was created
    if isinstance(source, TopicSource):
        check_topic(source, dimension.declared_fields, dimension.declared_key)
        if source.history is not None:
            _check_history(dimension, source.history, settings)
        return
    if isinstance(source, FileSource):
        check_files(files_path(source, settings), source, dimension.declared_fields)
        return
    if isinstance(source, DeltaTableSource):
        path = output_path(source, settings)
        check_source_table(path, dimension.fields, dimension.primary_key)
        return
    captured_table(dimension)


def _check_sink(plan: JoinPlan, settings: Settings, clusters: OpenClusters) -> str | None:
    """Check that the job can write to the sink; returns the id of its Kafka cluster."""
    if isinstance(plan.sink, KafkaSink):
        cluster = clusters.of(plan.sink.kafka)
        cluster.require(plan.sink.kafka.topic)
        check_registries(plan.sink.value, plan.sink.key)
        return cluster.cluster_id()
    if isinstance(plan.sink, DeltaSink):
        _check_delta(plan.sink_table, output_path(plan.sink, settings))
        output_writer(plan, settings)
    return None


def _check_late_records(plan: JoinPlan, settings: Settings) -> None:
    late_records = plan.probe.late_records
    if late_records is None:
        return
    path = output_path(late_records, settings)
    _check_delta(plan.probe.table, path)
    if _is_table(path):
        late = Appends(LATE_RECORDS, SinkWriter.COLUMNAR)
        DeltaLog(path, "preflight").choose_writer(late)


def _is_table(path: TablePath) -> bool:
    return LogEntries(path).oldest() is not None


def _check_delta(table: str, path: TablePath) -> None:
    if isinstance(path, StorePath):
        check_surroundings_in_store(path, str(path))
        prove_conditional_puts(path)
        return
    assert isinstance(path, Path), "what is in no store is in a directory"
    try:
        exists = _is_table(path)
        place = path / "_delta_log" if exists else nearest_existing(path)
        usable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
        usable = usable and os.access(place.parent if exists else place, os.W_OK | os.X_OK)
    except OSError as exc:
        raise _unwritable(table, path, exc.strerror or str(exc)) from exc
    if not usable:
        what = "cannot be written by this user" if place.is_dir() else "is not a directory"
        raise _unwritable(table, path, f'"{place}" {what}')


def output_writer(plan: JoinPlan, settings: Settings) -> WriterChoice | None:
    """The writer for a Delta output; None for other sinks. Raises SinkError if none can append."""
    if not isinstance(plan.sink, DeltaSink):
        return None
    path, sink = output_path(plan.sink, settings), plan.sink
    appends = Appends.into(sink, kernel_spec(plan).output_schema)
    if _is_table(path):
        return DeltaLog(path, "preflight").choose_writer(appends)
    return appends.choose_new(path)


def advise(plan: JoinPlan, settings: Settings, secrets: SecretResolver) -> tuple[str, ...]:
    """Warnings about outputs and captured tables of a plan that preflight has accepted."""
    texts = [text for dimension in plan.dimensions for text in _of_connector(dimension)]
    texts += [text for insert in plan.inserts for text in _advice(insert, settings)]
    if any(map(_may_need_advice, plan.dimensions)):
        dimensions = filter(_may_need_advice, resolve_secrets(plan, secrets).dimensions)
        texts += [text for dimension in dimensions for text in advice(captured_table(dimension))]
    return tuple(dict.fromkeys(texts))


def _of_connector(dimension: Dimension) -> list[str]:
    source = dimension.source
    said = connector_advice(source) if isinstance(source, TopicSource) else ()
    return [f"table {dimension.name}: {text}." for text in said]


def _may_need_advice(dimension: Dimension) -> bool:
    if not isinstance(dimension.source, MysqlCdcSource):
        return False
    types = {field.name: field.type.name for field in dimension.fields}
    is_text_key = any(types[name] is TypeName.STRING for name in dimension.primary_key)
    return is_text_key or TypeName.TIMESTAMP in types.values()


def captured_table(dimension: Dimension) -> CapturedTable:
    """The table of a `mysql-cdc` dimension as its server has it now; secrets are resolved."""
    source = dimension.source
    assert isinstance(source, MysqlCdcSource)
    return check_source(
        connection_of(source),
        dimension.fields,
        dimension.primary_key,
        server_id=source.server_id,
    )


def _advice(plan: JoinPlan, settings: Settings) -> tuple[str, ...]:
    if isinstance(plan.sink, DeltaSink) and store_address(plan.sink, settings) is not None:
        return ()  # a store has no other writer; its credentials are not resolved here
    choice = output_writer(plan, settings)
    if choice is None or not choice.is_spark:
        return ()
    advice = f"table {plan.sink_table}: Spark's own Delta writer is used ({choice.reason}), "
    advice += "which is slower than the columnar one."
    if not choice.rules:
        return (advice,)
    rules = ", ".join(choice.rules)
    return (advice, f"table {plan.sink_table}: a row that violates {rules} stalls the job.")


def _unwritable(table: str, path: Path, reason: str) -> SinkError:
    return SinkError(
        f'delta table "{table}" cannot be written at "{path}": {reason}',
        hint="Give the table a path that this user can write, or correct SLUICE_WAREHOUSE_DIR.",
    )
