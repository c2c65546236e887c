"""The doctor's checks of a job's sources and sinks: databases, Kafka, clocks."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from joins.adapters.delta.source import check_source_table, read_state
from joins.adapters.files.listing import read_state as read_files
from joins.adapters.files.readers import check_files
from joins.adapters.files.stream_rows import StreamFiles
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.adapters.mysql.connection import MysqlConnectionConfig, connected, rows
from joins.adapters.mysql.position import binlog_still_has, server_identity
from joins.adapters.mysql.source import check_source
from joins.adapters.mysql.table import advice
from joins.adapters.topic.check import check_topic, connector_advice
from joins.adapters.topic.feed_state import read_journal
from joins.durable.checkpoint import read_json
from joins.durable.probe_lives import known_topics, read_lives
from joins.plan.errors import SourceError
from joins.plan.plan import (
    DeltaTableSource,
    Dimension,
    FileSource,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    SharedSource,
    TopicHistory,
    TopicSource,
)
from joins.plan.stream_topics import FILES, partition_of
from joins.source.chunk_reader import SourceState
from joins.stream.watches import HOLDS_AFTER_S
from service.jobs.doctor.check import Check, Patient, bad, good, made, unknown
from service.security.resolution import (
    connection_of,
    files_path,
    history_path,
    internal_kafka,
    output_path,
)
from service.wiring.context import look

_CLOCK_S = 2.0
_FUTURE_MS = 5_000
_MILLIS = 1000


def check_outside(patient: Patient) -> list[Check]:
    checks: list[Check] = []
    for dimension in patient.plan.dimensions:
        title = f"source {dimension.name}"
        checks += made(title, partial(_source, patient, dimension))
    checks += made("stream", lambda: _stream(patient))
    checks += made("changelog topics", lambda: [_changelogs(patient)])
    for number, insert in enumerate(patient.plan.inserts, start=1):
        if isinstance(insert.sink, KafkaSink):
            several = f" of INSERT {number}" if patient.plan.more_inserts else ""
            title = f"sink topic{several}"
            checks += made(title, partial(_sink, insert.sink.kafka, title))
    return checks


# Databases and tables
# ----------------------------------------------------------------------------------------------


def _source(patient: Patient, dimension: Dimension) -> Iterator[Check]:
    source = dimension.source
    if isinstance(source, DeltaTableSource):
        yield from _delta_table(patient, dimension, source)
    elif isinstance(source, FileSource):
        yield _files(patient, dimension, source)
    elif isinstance(source, TopicSource):
        check_topic(source, dimension.declared_fields, dimension.declared_key)
        what = f'topic "{source.kafka.topic}" is there, and a record of it fits the declaration'
        yield good(f"source {dimension.name}", what)
        for text in connector_advice(source):
            yield unknown(f"connector of source {dimension.name}", text)
        if source.history is not None:
            yield _history(patient, dimension, source.history)
    elif isinstance(source, SharedSource):
        yield _shared(patient, dimension, source)
    else:
        yield from _database(patient, dimension, connection_of(source))


def _shared(patient: Patient, dimension: Dimension, source: SharedSource) -> Check:
    title = f"source {dimension.name}"
    fault = look(patient.layout, source).fault
    if fault is not None:
        return bad(title, fault.message, fault.hint)
    return good(title, f"kept by job {source.job_id}, which goes on")


def _files(patient: Patient, dimension: Dimension, source: FileSource) -> Check:
    title = f"source {dimension.name}"
    kept = read_files(patient.checkpoint.source_file(dimension.name))
    if kept is not None and kept.is_copied:
        return good(title, f"all files were read, generation {kept.generation}")
    path = files_path(source, patient.settings)
    count = check_files(path, source, dimension.declared_fields)
    return good(title, f'{count} files at "{path}" fit the declaration, as far as is looked at')


def _history(patient: Patient, dimension: Dimension, history: TopicHistory) -> Check:
    title = f"history of source {dimension.name}"
    kept = read_journal(patient.checkpoint.source_file(dimension.name))
    if not kept.begins:
        return good(title, f"all files were read, generation {kept.generation}")
    path, fields = history_path(history, patient.settings), dimension.declared_fields
    if isinstance(history.files, DeltaTableSource):
        check_source_table(path, fields, dimension.declared_key, version=history.version)
        what = f'version {history.version} of delta table "{path}" fits its declaration'
        return good(title, what)
    assert isinstance(path, Path), "files are in a directory"
    count = check_files(path, history.files, fields)
    return good(title, f'{count} files at "{path}" fit the declaration, as far as is looked at')


def _delta_table(
    patient: Patient, dimension: Dimension, source: DeltaTableSource
) -> Iterator[Check]:
    title = f"source {dimension.name}"
    path = output_path(source, patient.settings)
    table = check_source_table(path, dimension.fields, dimension.primary_key)
    yield good(title, f'delta table "{path}" at version {table.version} fits its declaration')
    kept = read_state(patient.checkpoint.source_file(dimension.name))
    if kept is None:
        return
    title = f"versions of source {dimension.name}"
    if kept.table_id != table.table_id:
        yield bad(
            title,
            "the table is another one than the one that was copied",
            "No action is needed: it is copied again by itself.",
        )
    else:
        behind = table.version - kept.version
        yield good(title, f"{kept.version} is read, {behind} newer, generation {kept.generation}")


def _database(
    patient: Patient, dimension: Dimension, config: MysqlConnectionConfig
) -> Iterator[Check]:
    title = f"source {dimension.name}"
    table = check_source(config, dimension.fields, dimension.primary_key)
    yield good(title, f'user "{config.username}" has its grants, the binlog its settings')
    for text in advice(table):
        yield unknown(f"declaration of source {dimension.name}", text)
    yield _database_clock(dimension, config)
    kept = read_json(patient.checkpoint.source_file(dimension.name))
    if kept is not None:
        yield _binlog(dimension, config, SourceState.from_json(kept))


def _database_clock(dimension: Dimension, config: MysqlConnectionConfig) -> Check:
    title = f"clock of source {dimension.name}"
    with connected(config) as connection:
        before = time.time()
        theirs = float(rows(connection, "SELECT UNIX_TIMESTAMP(NOW(6))")[0][0])
        after = time.time()
    ahead_s = theirs - (before + after) / 2
    detail = f"the database's clock is {ahead_s:+.3f} s from ours"
    if abs(ahead_s) <= _CLOCK_S:
        return good(title, detail)
    return bad(title, detail, "Let both machines take their time from the same NTP servers.")


def _binlog(dimension: Dimension, config: MysqlConnectionConfig, state: SourceState) -> Check:
    title = f"binlog of source {dimension.name}"
    if not server_identity(config).same_server(state.server):
        return bad(
            title,
            "another server answers than the one that was copied",
            "After a failover nothing is to be done: the table is followed there by GTIDs, or "
            "it is copied again by itself.",
        )
    if state.high is None and not binlog_still_has(config.of_server(state.server), state.low):
        return bad(
            title,
            f"{state.low.file_name} with the snapshot's beginning is gone",
            "Keep binlogs longer (binlog_expire_logs_seconds); the table is copied again.",
        )
    return good(title, f"it is the server that was copied, generation {state.generation}")


# Kafka
# ----------------------------------------------------------------------------------------------


def _stream(patient: Patient) -> Iterator[Check]:
    # The stream's topics as the job recorded them; None before the first start
    source, topics = patient.plan.probe.source, known_topics(patient.checkpoint)
    if isinstance(source, KafkaSource):
        kafka, topics = source.kafka, topics or source.topics
    else:
        servers = internal_kafka(patient.plan, patient.settings).bootstrap_servers
        kafka = KafkaOptions(servers, topics.first.name if topics else "")
    cluster = StreamCluster(KafkaCluster(kafka), topics) if topics else None
    if cluster is None:
        yield unknown("stream", "the job was never started")
        return
    there = cluster.require()
    for topic, described in zip(cluster.topics.topics, there.topics, strict=True):
        if topic.topic_id and described is not None and topic.topic_id != described.topic_id:
            yield bad(
                "stream",
                f'topic "{topic.name}" has id {described.topic_id}, expected {topic.topic_id}',
                "It was deleted and made again; acknowledge that, or stop the job.",
            )
            return
    if isinstance(source, KafkaSource) and source.history is not None:
        yield _stream_files(patient, source.history)
    count = sum(len(each.partitions) for each in there.there.values())
    yield good("stream", f'topic "{cluster.topics.text}" is there, {count} partitions')
    yield _unread(patient, cluster)
    yield _transactions(cluster)
    yield _stream_clock(cluster)


def _stream_files(patient: Patient, history: TopicHistory) -> Check:
    title, note = "history of stream", patient.checkpoint.read_progress()
    assert history.listed is not None, "submission has listed them"
    rows = history.listed.rows
    done = 0 if note is None else int(note["next_offsets"].get(str(FILES), 0))
    if done >= rows:
        return good(title, f"all {rows} rows of files were read")
    path = history_path(history, patient.settings)
    files = StreamFiles(path, history.version, patient.plan.probe.fields, history.listed)
    files.check(done, rows)
    return good(title, f"{done} of {rows} rows of files are read, and the others are as listed")


def _unread(patient: Patient, cluster: StreamCluster) -> Check:
    note, place = patient.checkpoint.read_progress(), cluster.topics.place
    lives = read_lives(patient.checkpoint)
    if note is not None:
        next_offsets = {int(p): offset for p, offset in note["next_offsets"].items()}
    else:
        next_offsets = dict(lives[-1].start_offsets) if lives else {}
    begin = cluster.beginning_offsets()
    lost = {p: begin[p] - o for p, o in next_offsets.items() if begin.get(p, 0) > o}
    if not lost:
        places = ", ".join(
            f"{offset} of partition {place(p)}" for p, offset in sorted(next_offsets.items())
        )
        return good("unread records", f"the topic has all of them, from offset {places}")
    names = ", ".join(map(place, sorted(lost)))
    return bad(
        "unread records",
        f"at most {sum(lost.values())} unread records were removed, in partitions [{names}]",
        "Raise the topic's retention; acknowledge the gap, or submit the job again.",
    )


def _transactions(cluster: StreamCluster) -> Check:
    """Find transactions that block a partition; a recent one is no fault."""
    title, ends = "open transactions", cluster.end_offsets()
    high, topics = cluster.high_watermarks(), cluster.topics
    behind = {p: offset for p, offset in ends.items() if offset < high.get(p, offset)}
    now_ms = time.time() * _MILLIS
    try:
        opened = cluster.open_transactions(behind) if behind else []
    except SourceError as exc:
        return bad(title, f'one may hold topic "{topics.text}": {exc.message}', exc.hint)
    for transaction in opened:
        age_s = (
            HOLDS_AFTER_S
            if transaction.since_ms is None
            else (now_ms - transaction.since_ms) / _MILLIS
        )
        if age_s >= HOLDS_AFTER_S:
            topic = topics.topic_of(transaction.partition).name
            held = replace(transaction, partition=partition_of(transaction.partition))
            return bad(title, f"{held.text(topic)}, open for {age_s:.0f} s", held.hint(topic))
    return good(title, f'none holds topic "{topics.text}"')


def _stream_clock(cluster: StreamCluster) -> Check:
    """Compare record timestamps with this machine's clock: the broker does not report its time."""
    later_ms = int(time.time() * _MILLIS) + _FUTURE_MS
    ahead = cluster.first_since(dict.fromkeys(cluster.beginning_offsets(), later_ms))
    if not ahead:
        return good("clock of stream", "no record is of the future")
    number, (offset, at_ms) = next(iter(ahead.items()))
    seconds, topic = (at_ms - later_ms + _FUTURE_MS) / _MILLIS, cluster.topics.topic_of(number)
    return bad(
        "clock of stream",
        f"record {topic.name}/{partition_of(number)}/{offset} is {seconds:.0f} s ahead of our "
        "clock",
        "Set this machine's clock, or that of who writes the topic, by NTP.",
    )


def _changelogs(patient: Patient) -> Check:
    topics = patient.meta.changelog_topics if patient.meta is not None else {}
    cluster = KafkaCluster(internal_kafka(patient.plan, patient.settings))
    gone = [topic for topic in topics.values() if cluster.describe(topic) is None]
    if gone:
        return bad(
            "changelog topics",
            f'topic "{gone[0]}" is gone',
            "Submit the job again: what the table's changes were cannot be found out any more.",
        )
    return good("changelog topics", f"{len(topics)} of {len(topics)} are there")


def _sink(kafka: KafkaOptions, title: str) -> Iterator[Check]:
    topic = KafkaCluster(kafka).require(kafka.topic)
    yield good(title, f'topic "{kafka.topic}", {len(topic.partitions)} partitions')
