"""Topics as tables: of a connector, or of rows by key; with a history in files, too."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from joins.adapters.delta.source import check_source_table
from joins.adapters.files.readers import check_files
from joins.adapters.kafka.groups import require_no_members
from joins.adapters.kafka.pool import OpenClusters
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.adapters.topic.check import check_topic, connector_advice
from joins.adapters.topic.feed_state import FeedJournal, TopicFeedConfig, read_journal
from joins.adapters.topic.start import find_start
from joins.plan.plan import DeltaTableSource, Dimension, TopicHistory, TopicSource
from joins.plan.stream_topics import StreamTopics
from joins.source.coordinator import SourceCoordinator
from joins.source.feed_coordinator import HistoryCoordinator, TopicCoordinator
from service.config import Settings
from service.connectors.port import (
    Compared,
    Copy,
    Freshest,
    SecondRead,
    SourceConnector,
    SourceParts,
    settings_ms,
)
from service.jobs.doctor.check import Check, Patient, good, unknown
from service.security.allowed import check_server, check_table, check_topic_place, server_of
from service.security.resolution import (
    history_path,
    internal_kafka,
    resolve_bounds,
    topic_with_logins,
    with_history_login,
)
from service.security.secrets import SecretResolver

if TYPE_CHECKING:  # they load Spark
    from service.wiring.context import JobContext


class TopicTables(SourceConnector[TopicSource, FeedJournal]):
    """A topic that another writer fills."""

    def check_allowed(self, table: str, source: TopicSource, settings: Settings) -> None:
        check_topic_place(table, source, settings)
        if source.evidence is not None and source.evidence.connect_url is not None:
            server, allowed = server_of(source.evidence.connect_url), settings.allowed_connect
            check_server(table, "Kafka Connect server", server, allowed, "SLUICE_ALLOWED_CONNECT")
        if source.history is not None:
            check_table(source.history.files, settings)

    def with_logins(self, source: TopicSource, secrets: SecretResolver) -> TopicSource:
        return with_history_login(topic_with_logins(source, secrets), secrets)

    def advice(self, dimension: Dimension, with_logins: Callable[[], TopicSource]) -> Iterator[str]:
        assert isinstance(dimension.source, TopicSource)
        for text in connector_advice(dimension.source):
            yield f"table {dimension.name}: {text}."

    def check(self, dimension: Dimension, source: TopicSource, settings: Settings) -> None:
        check_topic(source, dimension.declared_fields, dimension.declared_key)
        if source.history is not None:
            _check_history(dimension, source.history, settings)

    def with_position(
        self, held: Dimension, dimension: Dimension, settings: Settings, clusters: OpenClusters
    ) -> Dimension:
        source, own = dimension.source, held.source
        assert isinstance(source, TopicSource)
        assert isinstance(own, TopicSource)
        own = _with_ends(own, source, clusters)
        history, declared = source.history, own.history
        if history is None or declared is None or not isinstance(history.files, DeltaTableSource):
            return replace(held, source=own)
        version, _ = _check_history(dimension, history, settings)
        return replace(held, source=replace(own, history=replace(declared, version=version)))

    def freshest(self, source: TopicSource, settings: Settings) -> Freshest:
        evidence, asked_ms = source.evidence, settings_ms(settings)
        if evidence is None or evidence.connect_url is not None or evidence.heartbeat_topic is None:
            return Freshest(asked_ms)
        return Freshest(asked_ms, on_its_way_ms=evidence.settle_ms)

    def examine(
        self, patient: Patient, dimension: Dimension, source: TopicSource
    ) -> Iterator[Check]:
        check_topic(source, dimension.declared_fields, dimension.declared_key)
        what = f'topic "{source.kafka.topic}" is there, and a record of it fits the declaration'
        yield good(f"source {dimension.name}", what)
        for text in connector_advice(source):
            yield unknown(f"connector of source {dimension.name}", text)
        if source.history is None:
            return
        title = f"history of source {dimension.name}"
        kept = read_journal(patient.checkpoint.source_file(dimension.name))
        if not kept.begins:
            yield good(title, f"all files were read, generation {kept.generation}")
        else:
            yield good(title, _check_history(dimension, source.history, patient.settings)[1])

    def coordinator(self, parts: SourceParts, source: TopicSource) -> SourceCoordinator:
        dimension = parts.runtime.dimension
        config = topic_feed(parts.job, dimension, source)
        acknowledgements = parts.job.checkpoint.directory / "acknowledgements.jsonl"
        made = TopicCoordinator if source.history is None else HistoryCoordinator
        return made(dimension.name, config, parts.stalls, acknowledgements, parts.runtime.topic)

    def copied(self, dimension: Dimension, state_file: Path) -> tuple[FeedJournal, Copy] | None:
        journal = read_journal(state_file)
        if not journal.is_whole:
            return None
        return journal, (journal.generation - 1, journal.generation)

    @contextmanager
    def read_again(
        self, of: Compared, source: TopicSource, state: FeedJournal
    ) -> Iterator[SecondRead]:
        from service.jobs.inspect.second_read import place_of_read, read_topic_again

        with place_of_read(of.job) as place:
            feed = topic_feed(of.job, of.dimension, source)
            yield read_topic_again(feed, place, state, of)


def topic_feed(job: "JobContext", dimension: Dimension, source: TopicSource) -> TopicFeedConfig:
    history, state_file = source.history, job.checkpoint.source_file(dimension.name)
    kafka = internal_kafka(job.plan, job.settings)
    return TopicFeedConfig(
        source=source,
        fields=dimension.fields,
        primary_key=dimension.primary_key,
        kafka=replace(kafka, topic=job.meta.changelog_topics[dimension.name]),
        state_file=state_file,
        decisions_file=state_file.with_suffix(".decisions.json"),
        rowtime=None if dimension.watermark is None else dimension.watermark.rowtime,
        failpoints=job.settings.failpoints,
        freshness_s=job.settings.freshness_interval_s,
        history_path=None if history is None else history_path(history, job.settings),
    )


def _with_ends(own: TopicSource, source: TopicSource, clusters: OpenClusters) -> TopicSource:
    cluster, topic = clusters.of(source.kafka), source.kafka.topic
    if source.kafka.reported_group is not None:
        require_no_members(cluster.connection, source.kafka.reported_group)
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
    return own


def _check_history(
    dimension: Dimension, history: TopicHistory, settings: Settings
) -> tuple[int | None, str]:
    """The version of the files before a topic, None without versions; and what fits."""
    path, fields = history_path(history, settings), dimension.declared_fields
    if isinstance(history.files, DeltaTableSource):
        key = dimension.declared_key
        version = check_source_table(path, fields, key, version=history.version).version
        return version, f'version {version} of delta table "{path}" fits its declaration'
    assert isinstance(path, Path), "files are in a directory"
    count = check_files(path, history.files, fields)
    return None, f'{count} files at "{path}" fit the declaration, as far as is looked at'
