"""Guards of the stream: its topics are the submitted ones, and no record is lost.

A fault stays until an operator acknowledges it; only a topic or partition that returns unchanged
clears its fault without that.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.pins import offsets_text, offsets_value
from joins.durable.probe_lives import Life
from joins.plan.errors import (
    GuardError,
    LogsDisagreeError,
    OffsetsWentBackError,
    OutputTopicChangedError,
    PartitionsMissingError,
    PinnedVersionExpiredError,
    RecordsExpiredError,
    RecordsLostError,
    SourceError,
    SourceUnavailableError,
    TopicIdentityChangedError,
    TopicMissingError,
)
from joins.plan.stream_topics import StreamTopic, StreamTopics, by_topic, partition_of, place_name
from watermark.errors import SluiceError

_log = structlog.get_logger(__name__)
_LOOKS = 3
# The most specific fault first: it is shown, and an acknowledgement must name it.
_ORDER: tuple[type[SluiceError], ...] = (
    TopicMissingError,
    TopicIdentityChangedError,
    PartitionsMissingError,
    OffsetsWentBackError,
    RecordsLostError,
    LogsDisagreeError,
    PinnedVersionExpiredError,
    OutputTopicChangedError,
)
_CLEARS_ITSELF = (TopicMissingError, PartitionsMissingError)
_DURABLE = {
    error.fault: error
    for error in (TopicIdentityChangedError, OffsetsWentBackError, RecordsLostError)
}
_ACKNOWLEDGE = "Acknowledge it to go on with what is there"


@dataclass(frozen=True, slots=True)
class TopicView:
    """The topics of a stream at one moment; partitions are numbers of `StreamTopics`."""

    # Kafka's UUID of each topic; None for a missing topic, which has no offsets
    topic_ids: tuple[str | None, ...]
    begin_offsets: Mapping[int, int] = field(default_factory=dict)
    # partition → offset after the last record that may be read
    end_offsets: Mapping[int, int] = field(default_factory=dict)
    # partition → its high watermark, where an open transaction holds the end below it
    open_ends: Mapping[int, int] = field(default_factory=dict)

    @property
    def high_watermarks(self) -> dict[int, int]:
        return {**self.end_offsets, **self.open_ends}

    def is_of(self, topics: StreamTopics) -> bool:
        return self.topic_ids == _ids(topics)


def _ids(topics: StreamTopics) -> tuple[str | None, ...]:
    return tuple(None if topic.is_gone else topic.topic_id for topic in topics.topics)


def look_at(cluster: StreamCluster) -> TopicView:
    """The topics and their offsets; the topic UUIDs are equal before and after reading these.

    Raises SourceUnavailableError if no broker answers, or the topics change all the time.
    """
    why = ""
    for _ in range(_LOOKS):
        description = cluster.describe()
        if not description.there:
            return TopicView(description.topic_ids)
        try:
            begin, end = cluster.beginning_offsets(description), cluster.end_offsets(description)
            high = cluster.high_watermarks(description)
        except SourceUnavailableError:
            raise
        except SourceError as exc:  # deleted between the two requests, or a broker goes
            why = f": {exc.message}"
            continue
        if cluster.describe() == description:
            behind = {p: offset for p, offset in high.items() if offset > end.get(p, offset)}
            return TopicView(description.topic_ids, begin, end, behind)
    raise SourceUnavailableError(
        f'topic "{cluster.topics.text}" changed while its offsets were read{why}',
        hint="Check that its brokers run and that no program creates and deletes it; Sluice "
        "looks at it again by itself.",
    )


@dataclass(frozen=True, slots=True)
class Reach:
    """Ends of the committed output and of the running batch, if any, by partition."""

    committed: Mapping[int, int]
    reading: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Marks:
    """Greatest high watermark by partition, and the least one below it, if ends went back."""

    high: Mapping[int, int] = field(default_factory=dict)
    low: Mapping[int, int] = field(default_factory=dict)


class TopicGuard:
    """The faults of one stream, kept in `file` over restarts; any thread may report and read."""

    def __init__(self, file: Path, life: Life) -> None:
        self._file = file
        self._life = life
        self._marks = Marks()
        self._faults: dict[type[SluiceError], SluiceError] = {}
        self._lock = threading.RLock()
        self._written: dict[str, Any] = {}
        self._restore()

    @property
    def marks(self) -> Marks:
        return self._marks

    def fault(self) -> SluiceError | None:
        with self._lock:
            return next((self._faults[t] for t in _ORDER if t in self._faults), None)

    def report(self, error: SluiceError) -> None:
        """Keep the error of a batch if it is one of this guard's faults."""
        with self._lock:
            if type(error) in _ORDER:
                self._faults[type(error)] = error
                self._write()

    def observe(self, view: TopicView, reach: Reach) -> None:
        """Compare a look at the topic with the earlier ones; the result is in `fault`."""
        with self._lock:
            fault = self._find(view, reach)
            if fault is not None:
                self._faults[type(fault)] = fault
            for error in _CLEARS_ITSELF:
                if not isinstance(fault, error):
                    self._faults.pop(error, None)
            if view.is_of(self._life.topics):
                self._mark(view)
            self._write()

    def begin(self, life: Life, view: TopicView) -> None:
        """Start a new incarnation, which acknowledges every fault."""
        with self._lock:
            self._life = life
            self._marks = Marks(high=view.high_watermarks)
            self._faults.clear()
            self._write()

    def is_of(self, life: Life) -> bool:
        return self._life.directory == life.directory

    def continues(self, life: Life) -> None:
        with self._lock:
            self._life = life
            self._write()

    def _find(self, view: TopicView, reach: Reach) -> GuardError | None:
        return (
            wrong_topic(self._life, view.topic_ids, self._marks.high)
            or self._partitions(view)
            or self._back(view, reach)
            or records_lost(self._life.topics, view.begin_offsets, reach.reading)
        )

    def _partitions(self, view: TopicView) -> GuardError | None:
        known = set(self._marks.high or self._life.topics.read_of(self._life.start_offsets))
        missing = sorted(known - set(view.end_offsets))
        if not missing:
            return None
        return partitions_missing(self._life.topics, missing)

    def _back(self, view: TopicView, reach: Reach) -> GuardError | None:
        for partition, end in sorted(view.high_watermarks.items()):
            seen = max(self._marks.high.get(partition, 0), reach.committed.get(partition, 0))
            if end < seen:
                return OffsetsWentBackError(
                    f"{place_name(self._life.topics, partition)} ends at offset {end}, "
                    f"expected {seen} or more",
                    hint="The broker has lost records, or an old copy of it runs; repair it. "
                    f"{_ACKNOWLEDGE}, from where it ended.",
                )
        return None

    def _mark(self, view: TopicView) -> None:
        high, low = dict(self._marks.high), dict(self._marks.low)
        for partition, end in view.high_watermarks.items():
            before = high.get(partition, 0)
            high[partition] = max(before, end)
            if end < before or partition in low:
                low[partition] = min(end, low.get(partition, end))
        self._marks = Marks(high, low)

    # Over restarts

    def _restore(self) -> None:
        kept = read_json(self._file)
        if kept is None or kept["life"] != self._life.directory:
            return
        self._marks = Marks(offsets_value(kept["high_mark"]), offsets_value(kept["low_mark"]))
        for fault in kept["faults"]:
            error = _DURABLE[fault["type"]]
            self._faults[error] = error(fault["message"], hint=fault["hint"])

    def _write(self) -> None:
        faults = [
            {"type": name, "message": self._faults[error].message, "hint": self._faults[error].hint}
            for name, error in _DURABLE.items()
            if error in self._faults
        ]
        value = {
            "life": self._life.directory,
            "high_mark": offsets_text(self._marks.high),
            "low_mark": offsets_text(self._marks.low),
            "faults": faults,
        }
        if value == self._written:
            return
        try:
            write_json_atomically(self._file, {**value, "at_ms": time.time_ns() // 1_000_000})
        except OSError as exc:  # it holds in this process, and is written with the next look
            _log.warning("guards cannot be kept", error=str(exc))
            return
        self._written = value


def wrong_topic(
    life: Life, topic_ids: Sequence[str | None], seen: Mapping[int, int]
) -> GuardError | None:
    """The error for missing topics, else for the first replaced one; None if all are right."""
    missing = life.topics.missing_in(topic_ids)
    if missing:
        return _topics_missing(life.topics, missing)
    ends_of, ids = by_topic(seen), _ids(life.topics)
    for index, topic in enumerate(life.topics.topics):
        if topic_ids[index] != ids[index]:
            return _identity_changed(topic, topic_ids[index], ends_of.get(index, {}))
    return None


def _topics_missing(topics: StreamTopics, missing: tuple[str, ...]) -> TopicMissingError:
    without = ""
    if set(missing) != set(topics.read_names):
        those = "it" if len(missing) == 1 else f"these {len(missing)}"
        without = f" {_ACKNOWLEDGE}, without {those}; what was not joined is recorded as a gap."
    more = f", as are {len(missing) - 1} more" if len(missing) > 1 else ""
    return TopicMissingError(
        f'topic "{missing[0]}" is gone{more}',
        hint="Restore it. If it was created again, acknowledge topic-identity-changed." + without,
        topics=missing,
    )


def _identity_changed(
    topic: StreamTopic, topic_id: str | None, seen: Mapping[int, int]
) -> TopicIdentityChangedError:
    if topic.is_gone:
        return TopicIdentityChangedError(
            f'topic "{topic.name}" is there again, with id {topic_id}; the stream goes on without '
            "it since it was gone",
            hint="Acknowledge it to join it again, a new one from its beginning; or delete it.",
        )
    ends = ", ".join(f"{partition}: {end}" for partition, end in sorted(seen.items()))
    last_ends = f"; the old one was last seen to end at {{{ends}}}" if seen else ""
    return TopicIdentityChangedError(
        f'topic "{topic.name}" has id {topic_id}, expected {topic.topic_id}{last_ends}',
        hint="It was deleted and created again. Acknowledge it to join the new one from its "
        "beginning, or stop the job.",
    )


def records_lost(
    topics: StreamTopics, begin: Mapping[int, int], joined: Mapping[int, int]
) -> RecordsLostError | None:
    """The error if a topic begins after `joined`, which includes the running batch."""
    for partition, offset in sorted(begin.items()):
        next_offset = joined.get(partition, 0)
        if offset > next_offset:
            return RecordsLostError(
                f"{place_name(topics, partition)} begins at offset {offset}, "
                f"but is joined up to {next_offset} only: "
                f"at most {offset - next_offset} records are gone",
                hint=f"Lengthen the topic's retention. {_ACKNOWLEDGE}; the gap is recorded.",
            )
    return None


def partitions_missing(topics: StreamTopics, partitions: list[int]) -> PartitionsMissingError:
    topic, first = topics.topic_of(partitions[0]), partition_of(partitions[0])
    return PartitionsMissingError(
        f'topic "{topic.name}" does not show partition {first}, which it had',
        hint=f"It may be back in a moment. {_ACKNOWLEDGE}, without that partition.",
    )


def first_offsets(before: Mapping[int, int], ends: Mapping[int, int], life: Life) -> dict[int, int]:
    """First offset of a batch in each partition that ends at `ends`.

    `before` is where the previous batch ended, or where the incarnation begins. `life` says where
    newer partitions begin. Raises PartitionsMissingError if a former partition is missing,
    OffsetsWentBackError if a partition ends before its beginning.
    """
    missing = sorted(set(before) - set(ends))
    if missing:
        raise partitions_missing(life.topics, missing)
    start = {p: before.get(p, life.start_offsets.get(p, 0)) for p in ends}
    back = [p for p, end in ends.items() if end < start[p]]
    if back:
        raise OffsetsWentBackError(
            f"{place_name(life.topics, back[0])} ends at offset {ends[back[0]]}, "
            f"expected {start[back[0]]} or more",
            hint="The broker has lost records. Acknowledge it to go on from where it ended.",
        )
    return start


def records_expired(topics: StreamTopics, error: RecordsExpiredError) -> RecordsLostError:
    return RecordsLostError(
        f'topic "{topics.text}" does not have all records that were not joined yet: '
        f"{error.message}",
        hint=f"Lengthen the topic's retention. {_ACKNOWLEDGE}; the gap is recorded.",
    )
