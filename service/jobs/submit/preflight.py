"""Checks at submission: faults that can be found before a job starts."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial

import pyarrow as pa

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.source import check_source_table
from joins.adapters.files.stream_listing import list_history
from joins.adapters.kafka.groups import require_no_members
from joins.adapters.kafka.pool import ClusterPool, OpenClusters
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.adapters.registry import check_registries
from joins.adapters.store_path import prove_conditional_puts
from joins.adapters.topic.start import find_start
from joins.kernels.probe.event_times import LATE_RECORDS
from joins.kernels.probe.probe import kernel_spec
from joins.plan.errors import SourceError
from joins.plan.formats import RecordFormat, RecordKey
from joins.plan.plan import (
    BoundedMode,
    DeltaSink,
    DeltaTableSource,
    Dimension,
    Field,
    JoinPlan,
    KafkaSource,
    SinkWriter,
    StartupMode,
)
from service.config import Settings
from service.connectors.plans import check_allowed, resolve_secrets
from service.connectors.registry import sink_connector, source_connector
from service.connectors.sinks import check_delta, is_table, output_advice
from service.jobs.store.layout import own_tables
from service.jobs.submit.places import check_nodes, check_places
from service.security.resolution import (
    history_path,
    internal_kafka,
    output_path,
    resolve_backlog,
    resolve_end_offsets,
    resolve_start_offsets,
    resolve_topics,
)
from service.security.secrets import SecretResolver
from service.sql.text.dialect import told_where


def check_staleness(dimension: Dimension, settings: Settings) -> None:
    """Raise SourceError if the bound is below the best freshness; asks a database for its time.

    T is at best as old as the pause between two questions, an answer and the pause between two
    commits; of a connector's topic also as the time that a record may be on its way.
    """
    bound_ms = dimension.max_staleness_ms
    if bound_ms is None:
        return
    best = source_connector(dimension.source).freshest(dimension.source, settings)
    if best is None:
        return
    best_ms = best.asked_ms + settings.build_trigger_ms + best.answer_ms + best.on_its_way_ms
    if bound_ms >= best_ms:
        return
    settle = f", on its way {best.on_its_way_ms} ms" if best.on_its_way_ms else ""
    raise SourceError(
        f"table \"{dimension.name}\" has 'join.max-staleness' of {bound_ms} ms, below the best "
        f"freshness of {best_ms} ms: asked each {best.asked_ms / 1000:g} s, answered in "
        f"{best.answer_ms} ms, committed each {settings.build_trigger_ms} ms{settle}",
        hint=f"Give it {best_ms} ms or more, best twice as much; or lower {best.lower}",
    )


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
            captured = resolved.probe.captured
            if captured is not None:
                source_connector(captured.source).check(captured, captured.source, settings)
        clusters.of(internal_kafka(resolved, settings)).reach()
        held = []
        for dimension, own in zip(resolved.dimensions, planned.dimensions, strict=True):
            with told_where(plan.sql, dimension.name):
                held.append(_checked(own, dimension, settings, clusters))
        planned = replace(planned, dimensions=tuple(held))
        sinks = []
        for insert, declared in zip(resolved.inserts, planned.inserts, strict=True):
            with told_where(plan.sql, insert.sink_table):
                connector = sink_connector(insert.sink)
                sinks.append(connector.checked(insert, declared.sink, settings, clusters))
        _check_late_records(resolved, settings)
        first, *more = sinks
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
                    own = _checked(own, dimension, settings, clusters)
            held.append(own)
    for insert in resolved.inserts:
        if isinstance(insert.sink, DeltaSink):
            with told_where(plan.sql, insert.sink_table):
                _check_growth(insert, insert.sink, settings)
    return replace(plan, dimensions=tuple(held))


def _checked(
    held: Dimension, dimension: Dimension, settings: Settings, clusters: OpenClusters
) -> Dimension:
    """`held` with the position of its source, after its checks; `dimension` has its logins."""
    connector = source_connector(dimension.source)
    connector.check(dimension, dimension.source, settings)
    check_staleness(dimension, settings)
    return connector.with_position(held, dimension, settings, clusters)


def _check_growth(plan: JoinPlan, sink: DeltaSink, settings: Settings) -> None:
    path = output_path(sink, settings)
    if not is_table(path):
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
        require_no_members(kafka.connection, source.kafka.reported_group)
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


def _check_late_records(plan: JoinPlan, settings: Settings) -> None:
    late_records = plan.probe.late_records
    if late_records is None:
        return
    path = output_path(late_records, settings)
    check_delta(plan.probe.table, path)
    if is_table(path):
        late = Appends(LATE_RECORDS, SinkWriter.COLUMNAR)
        DeltaLog(path, "preflight").choose_writer(late)


def advise(plan: JoinPlan, settings: Settings, secrets: SecretResolver) -> tuple[str, ...]:
    """Warnings about outputs and captured tables of a plan that preflight has accepted."""
    texts: list[str] = []
    for dimension in plan.dimensions:
        source, connector = dimension.source, source_connector(dimension.source)
        texts += connector.advice(dimension, partial(connector.with_logins, source, secrets))
    for insert in plan.inserts:
        texts += output_advice(insert, settings)
    return tuple(dict.fromkeys(texts))
