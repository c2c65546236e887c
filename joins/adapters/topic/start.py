"""Where a topic starts behind its history, and what retention or compaction has removed there."""

import time
from collections.abc import Mapping

from joins.adapters.kafka.cluster import KafkaCluster, topic_policy
from joins.plan.errors import SourceError
from joins.plan.plan import StartupMode, TopicHistory, TopicSource

_NEWER_FILES = (
    "Write files that are newer than the topic's oldest record, and let the topic keep its records "
    "longer than that takes. {}"
)
_READ_AGAIN = "A job that waits reads changed files again by itself."
_SUBMIT_AGAIN = "Then submit the job again with the start behind these files."


def require_topic(source: TopicSource, topic_id: str) -> None:
    """Raise SourceError if the topic is not the one that the history was declared for."""
    if topic_id != source.topic_id:
        raise SourceError(
            f'topic "{source.kafka.topic}" has id {topic_id}, expected {source.topic_id}: it was '
            "deleted and created again, and its history does not say where it starts now",
            hint="Remove the job and submit it again with files that the new topic continues.",
        )


def find_start(
    cluster: KafkaCluster, topic: str, history: TopicHistory, newest_ms: int | None = None
) -> dict[int, int]:
    """The start offset of each partition, as `start_of`; deletions behind it must be there, too."""
    at_ms = history.startup_timestamp_ms if history.startup_column is None else newest_ms
    at_time = None if at_ms is None else cluster.offsets_at(topic, at_ms)
    ends = cluster.end_offsets(topic)
    begins = cluster.beginning_offsets(topic)  # last: what is there now stays for a while
    start = start_of(topic, history, begins, ends, at_time)
    gone = lost_deletions(cluster, topic, start)
    if gone:
        p, kept_ms = min(gone), topic_policy(cluster, topic).tombstone_retention_ms
        raise SourceError(
            f'topic "{topic}" may have removed deletions of rows of the history: compaction keeps '
            f"them for {kept_ms} ms, and records of partition {p} up "
            f"to offset {gone[p]:,} are older",
            hint="Write newer files, name where they end by 'scan.startup.mode', and submit the "
            "job within 'delete.retention.ms' of the topic.",
        )
    return start


def lost_deletions(
    cluster: KafkaCluster, topic: str, read: Mapping[int, int], since_ms: int | None = None
) -> dict[int, int]:
    """Partition → up to which offset tombstones behind `read` may be gone; only such partitions.

    Kafka keeps a tombstone for a time after it is written. What was read before `read` was read at
    `since_ms` or later, or the tombstone of a record that was read then is still there.
    """
    kept_ms = topic_policy(cluster, topic).tombstone_retention_ms
    if kept_ms is None:
        return {}
    oldest_ms = time.time_ns() // 1_000_000 - kept_ms
    if oldest_ms <= 0 or (since_ms is not None and since_ms > oldest_ms):
        return {}
    there = cluster.offsets_at(topic, oldest_ms)
    return {p: offset for p, offset in there.items() if offset > read.get(p, offset)}


def start_of(
    topic: str,
    history: TopicHistory,
    begins: Mapping[int, int],
    ends: Mapping[int, int],
    at_time: Mapping[int, int] | None = None,
) -> dict[int, int]:
    """The start offset of each partition; SourceError for a gap behind the history.

    `at_time` has the first offsets at the timestamp, None if the files have no time. A start by
    time is certain only behind an older record: else Kafka may have removed records of that time.
    """
    if history.startup_mode is StartupMode.EARLIEST:
        return dict(begins)
    hint = _NEWER_FILES.format(_SUBMIT_AGAIN if history.startup_column is None else _READ_AGAIN)
    if history.startup_mode is StartupMode.TIMESTAMP and at_time is not None:
        start = dict(at_time)
        lost = {p: begin for p, begin in begins.items() if begin > 0 and start[p] <= begin}
        if lost:
            raise _gap(topic, lost, "up to ", "no record before the history's time is left", hint)
        return start
    start = dict(history.startup_offsets) or dict.fromkeys(begins, 0)
    _check_partitions(topic, start, begins, ends)
    lost = {p: begin - start[p] for p, begin in begins.items() if start[p] < begin}
    if lost:
        p = min(lost)
        why = f"the history ends at offset {start[p]}, and the oldest record is {begins[p]}"
        raise _gap(topic, lost, "", why, hint)
    return start


def _gap(topic: str, lost: Mapping[int, int], most: str, why: str, hint: str) -> SourceError:
    records, where = sum(lost.values()), ", ".join(map(str, sorted(lost)))
    return SourceError(
        f'{most}{records:,} records between the history and topic "{topic}" are gone (partition '
        f"{where}): {why}",
        hint=hint,
    )


def _check_partitions(
    topic: str, start: Mapping[int, int], begins: Mapping[int, int], ends: Mapping[int, int]
) -> None:
    hint = "Correct 'scan.startup.specific-offsets': it has the first offset of each partition."
    if start.keys() != begins.keys():
        raise SourceError(
            f'the history names offsets of partitions {sorted(start)} of topic "{topic}", which '
            f"has partitions {sorted(begins)}",
            hint=hint,
        )
    for partition, offset in sorted(start.items()):
        if offset > ends[partition]:
            raise SourceError(
                f'the history ends at offset {offset} of partition {partition} of topic "{topic}", '
                f"and the topic ends at {ends[partition]}",
                hint=hint,
            )
