"""Guards of the stream: is it still the topic that was submitted, and is all of it still there?

`TopicGuard` compares each look at the topic with the life's UUID, with the greatest high watermarks
ever seen and with what is committed. A fault stays until an operator acknowledges it; only a topic
or partition that is back, unchanged, clears its fault by itself.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from joins.adapters.kafka.cluster import KafkaCluster
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.pins import offsets_text, offsets_value
from joins.durable.probe_lives import Life
from joins.plan.errors import (
    GuardError,
    LogsDisagreeError,
    OffsetsWentBackError,
    PartitionsMissingError,
    PinnedVersionExpiredError,
    RecordsExpiredError,
    RecordsLostError,
    SourceError,
    SourceUnavailableError,
    TopicIdentityChangedError,
    TopicMissingError,
)
from watermark.errors import SluiceError

_log = structlog.get_logger(__name__)
_LOOKS = 3
# The most telling fault first: what is shown, and what an acknowledgement must name.
_ORDER: tuple[type[SluiceError], ...] = (
    TopicMissingError,
    TopicIdentityChangedError,
    PartitionsMissingError,
    OffsetsWentBackError,
    RecordsLostError,
    LogsDisagreeError,
    PinnedVersionExpiredError,
)
_CLEARS_ITSELF = (TopicMissingError, PartitionsMissingError)
_DURABLE = {
    error.fault: error
    for error in (TopicIdentityChangedError, OffsetsWentBackError, RecordsLostError)
}
_ACKNOWLEDGE = "Acknowledge it to go on with what is there"


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic at one moment.

    Attributes:
        topic_id: Kafka's UUID of it; None if there is none of that name.
        end_offsets: partition → offset behind the last record that may be read.
        open_ends: partition → its high watermark, where it is behind that: a transaction is open.
    """

    topic_id: str | None
    begin_offsets: Mapping[int, int] = field(default_factory=dict)
    end_offsets: Mapping[int, int] = field(default_factory=dict)
    open_ends: Mapping[int, int] = field(default_factory=dict)

    @property
    def high_watermarks(self) -> dict[int, int]:
        """Partition → offset behind all that is in it: what is there, and what is lost."""
        return {**self.end_offsets, **self.open_ends}


def look_at(cluster: KafkaCluster, topic: str) -> TopicView:
    """The topic with offsets that are its own: it is the same one before and after they are read.

    Raises:
        SourceUnavailableError: no broker answers, or the topic changes all the time.
    """
    for _ in range(_LOOKS):
        description = cluster.describe(topic)
        if description is None:
            return TopicView(None)
        try:
            begin, end = cluster.beginning_offsets(description), cluster.end_offsets(description)
            high = cluster.high_watermarks(description)
        except SourceUnavailableError:
            raise
        except SourceError:
            continue  # deleted between the two requests
        if cluster.describe(topic) == description:
            behind = {p: offset for p, offset in high.items() if offset > end.get(p, offset)}
            return TopicView(description.topic_id, begin, end, behind)
    raise SourceUnavailableError(
        f'topic "{topic}" changed while its offsets were read',
        hint="It is looked at again; see whether somebody creates and deletes it.",
    )


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the probe is, by partition.

    Attributes:
        committed: where the committed output ends.
        reading: where the batch ends that runs; the same where none runs.
    """

    committed: Mapping[int, int]
    reading: Mapping[int, int]


@dataclass(slots=True)
class Marks:
    """What was seen of the topic in this life.

    Attributes:
        high: partition → greatest high watermark.
        low: partition → least one below `high`, where ends went back.
    """

    high: dict[int, int] = field(default_factory=dict)
    low: dict[int, int] = field(default_factory=dict)


class TopicGuard:
    """The faults of one stream; `report` and `fault` may be called from any thread.

    Args:
        file: where marks and faults are kept over restarts.
    """

    def __init__(self, file: Path, topic: str, life: Life) -> None:
        self._file = file
        self._topic = topic
        self._life = life
        self._marks = Marks()
        self._faults: dict[type[SluiceError], SluiceError] = {}
        self._lock = threading.RLock()
        self._written: dict[str, Any] = {}
        self._restore()

    @property
    def marks(self) -> Marks:
        """What was seen of the topic."""
        return self._marks

    def fault(self) -> SluiceError | None:
        """The fault that keeps the probe from going on; the one that is to be acknowledged."""
        with self._lock:
            return next((self._faults[t] for t in _ORDER if t in self._faults), None)

    def report(self, error: SluiceError) -> None:
        """A batch met `error`; kept if it is one of ours."""
        with self._lock:
            if type(error) in _ORDER:
                self._faults[type(error)] = error
                self._write()

    def observe(self, view: TopicView, reach: Reach) -> None:
        """Compare a look at the topic with what it was; the result is in `fault`."""
        with self._lock:
            fault = self._find(view, reach)
            if fault is not None:
                self._faults[type(fault)] = fault
            for error in _CLEARS_ITSELF:
                if not isinstance(fault, error):
                    self._faults.pop(error, None)
            if view.topic_id == self._life.topic_id:
                self._mark(view)
            self._write()

    def begin(self, life: Life, view: TopicView) -> None:
        """A new life begins: every fault is acknowledged by that."""
        with self._lock:
            self._life = life
            self._marks = Marks(high=view.high_watermarks)
            self._faults.clear()
            self._write()

    def continues(self, life: Life) -> None:
        """A new life of the same topic: what was seen of it still holds."""
        with self._lock:
            self._life = life
            self._write()

    def _find(self, view: TopicView, reach: Reach) -> GuardError | None:
        if view.topic_id is None:
            return topic_missing(self._topic)
        if view.topic_id != self._life.topic_id:
            return identity_changed(self._topic, self._life, view.topic_id, self._marks.high)
        return self._partitions(view) or self._back(view, reach) or self._lost(view, reach)

    def _partitions(self, view: TopicView) -> GuardError | None:
        known = set(self._marks.high) or set(self._life.start_offsets)
        missing = sorted(known - set(view.end_offsets))
        if not missing:
            return None
        return partitions_missing(self._topic, missing)

    def _back(self, view: TopicView, reach: Reach) -> GuardError | None:
        for partition, end in sorted(view.high_watermarks.items()):
            seen = max(self._marks.high.get(partition, 0), reach.committed.get(partition, 0))
            if end < seen:
                return OffsetsWentBackError(
                    f'topic "{self._topic}" partition {partition} ends at offset {end}, '
                    f"expected {seen} or more",
                    hint="The broker has lost records, or an old copy of it runs; repair it. "
                    f"{_ACKNOWLEDGE}, from where it ended.",
                )
        return None

    def _lost(self, view: TopicView, reach: Reach) -> GuardError | None:
        return records_lost(self._topic, view.begin_offsets, reach.reading)

    def _mark(self, view: TopicView) -> None:
        for partition, end in view.high_watermarks.items():
            high = self._marks.high.get(partition, 0)
            self._marks.high[partition] = max(high, end)
            if end < high or partition in self._marks.low:
                self._marks.low[partition] = min(end, self._marks.low.get(partition, end))

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


def topic_missing(topic: str) -> TopicMissingError:
    """The topic is gone."""
    return TopicMissingError(
        f'topic "{topic}" is gone',
        hint="Restore it. If it is created anew, acknowledge topic-identity-changed.",
    )


def identity_changed(
    topic: str, life: Life, topic_id: str, seen: Mapping[int, int]
) -> TopicIdentityChangedError:
    """The topic is another one; the old one was `seen` to end at these offsets, or behind them."""
    ends = ", ".join(f"{partition}: {end}" for partition, end in sorted(seen.items()))
    last_ends = f"; the old one was last seen to end at {{{ends}}}" if seen else ""
    return TopicIdentityChangedError(
        f'topic "{topic}" has id {topic_id}, expected {life.topic_id}{last_ends}',
        hint="It was deleted and created again. Acknowledge it to join the new one from its "
        "beginning, or stop the job.",
    )


def records_lost(
    topic: str, begin: Mapping[int, int], joined: Mapping[int, int]
) -> RecordsLostError | None:
    """The topic begins behind what is `joined`, or will be by the batch that runs; None if not."""
    for partition, offset in sorted(begin.items()):
        next_offset = joined.get(partition, 0)
        if offset > next_offset:
            return RecordsLostError(
                f'topic "{topic}" partition {partition} begins at offset {offset}, '
                f"but is joined up to {next_offset} only: "
                f"at most {offset - next_offset} records are gone",
                hint=f"Lengthen the topic's retention. {_ACKNOWLEDGE}; the gap is recorded.",
            )
    return None


def partitions_missing(topic: str, partitions: list[int]) -> PartitionsMissingError:
    """Partitions that were there are not there."""
    return PartitionsMissingError(
        f'topic "{topic}" does not show partition {partitions[0]}, which it had',
        hint=f"It may be back in a moment. {_ACKNOWLEDGE}, without that partition.",
    )


def first_offsets(
    topic: str, before: Mapping[int, int], ends: Mapping[int, int], life: Life
) -> dict[int, int]:
    """Where a batch begins in each partition that ends at `ends`.

    Args:
        topic: of the stream.
        before: where the batch before it has ended, or the life begins.
        ends: where the partitions end.
        life: where those begin that have come since.

    Raises:
        PartitionsMissingError: a partition that was there is not.
        OffsetsWentBackError: a partition ends before its beginning.
    """
    missing = sorted(set(before) - set(ends))
    if missing:
        raise partitions_missing(topic, missing)
    start = {p: before.get(p, life.start_offsets.get(p, 0)) for p in ends}
    back = [p for p, end in ends.items() if end < start[p]]
    if back:
        raise OffsetsWentBackError(
            f'topic "{topic}" partition {back[0]} ends at offset {ends[back[0]]}, '
            f"expected {start[back[0]]} or more",
            hint="The broker has lost records. Acknowledge it to go on from where it ended.",
        )
    return start


def check_batch(
    cluster: KafkaCluster, topic: str, life: Life, end: Mapping[int, int]
) -> RecordsLostError | None:
    """See, after a batch has read, that what it read was the life's topic.

    Returns:
        That records behind the batch are gone. It has all of its own; None if nothing is gone.

    Raises:
        GuardError: it was not, or may not have been.
        SourceUnavailableError: no broker answers; the batch must not be committed.
    """
    description = cluster.describe(topic)
    if description is None:
        raise topic_missing(topic)
    if description.topic_id != life.topic_id:
        raise identity_changed(topic, life, description.topic_id, {})
    missing = sorted(set(end) - set(description.partitions))
    if missing:
        raise partitions_missing(topic, missing)
    begin = cluster.beginning_offsets(description)
    return records_lost(topic, {p: begin[p] for p in begin.keys() & end.keys()}, end)


def records_expired(topic: str, error: RecordsExpiredError) -> RecordsLostError:
    """A batch could not read its records because the topic does not have them."""
    return RecordsLostError(
        f'topic "{topic}" does not have all records that were not joined yet: {error.message}',
        hint=f"Lengthen the topic's retention. {_ACKNOWLEDGE}; the gap is recorded.",
    )
