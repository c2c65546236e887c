"""The doctor's checks of a job's sources and sinks: databases, Kafka, clocks."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.durable.probe_lives import known_topics, read_lives
from joins.plan.errors import SourceError
from joins.plan.plan import (
    KafkaOptions,
    KafkaSource,
    TopicHistory,
)
from joins.plan.stream_topics import FILES, partition_of
from joins.stream.watches import HOLDS_AFTER_S
from service.connectors.registry import sink_connector, source_connector
from service.jobs.doctor.check import Check, Patient, bad, good, made, unknown
from service.security.resolution import internal_kafka
from service.wiring.context import stream_files

_FUTURE_MS = 5_000
_MILLIS = 1000


def check_outside(patient: Patient) -> list[Check]:
    checks: list[Check] = []
    for dimension in patient.plan.dimensions:
        examine = source_connector(dimension.source).examine
        title = f"source {dimension.name}"
        checks += made(title, partial(examine, patient, dimension, dimension.source))
    checks += made("stream", lambda: _stream(patient))
    checks += made("changelog topics", lambda: [_changelogs(patient)])
    for number, insert in enumerate(patient.plan.inserts, start=1):
        title = "sink topic" + (f" of INSERT {number}" if patient.plan.more_inserts else "")
        checks += made(title, partial(sink_connector(insert.sink).examine, title, insert.sink))
    return checks


# Kafka
# ----------------------------------------------------------------------------------------------


def _stream(patient: Patient) -> Iterator[Check]:
    # The stream's topics as the job recorded them; None before the first start
    source, topics = patient.plan.probe.source, known_topics(patient.checkpoint)
    if isinstance(source, KafkaSource):
        kafka, topics = source.kafka, topics or source.topics
    else:
        captured = patient.plan.probe.captured
        if captured is not None:
            yield from source_connector(captured.source).examine(patient, captured, captured.source)
        servers = internal_kafka(patient.plan, patient.settings).bootstrap_servers
        kafka = KafkaOptions(servers, topics.names[0] if topics else "")
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
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    yield good("stream", f'topic "{cluster.topics.text}" is there, {partitions}')
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
    files = stream_files(patient.plan, patient.settings)
    assert files is not None, "the stream has a history"
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
