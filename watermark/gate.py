"""The gate between a waiting probe side and a build side that is still being copied.

It stores nothing durable: held records stay in their topic, identified by offsets, and the phase is
stored by `joins.job.opening`, whose gate opens again after a restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from watermark.checks import checked
from watermark.errors import InvalidParameterError, LostRecordsError
from watermark.model import MAX_TIMESTAMP, Watermark
from watermark.transitions import next_state


class Phase(StrEnum):
    """Where a job is.

    Attributes:
        LOAD: tables are copied; the stream is not read.
        JOIN: each record is joined when it comes.
    """

    LOAD = "LOAD"
    JOIN = "JOIN"


class PhaseEvent(StrEnum):
    """What happens to a job's phase.

    Attributes:
        GATE_OPENED: every channel of every table has committed its watermark.
        RESTORED: a runner starts from the checkpoint.
    """

    GATE_OPENED = "gate_opened"
    RESTORED = "restored"


TRANSITIONS: dict[tuple[Phase, PhaseEvent], Phase] = {
    (Phase.LOAD, PhaseEvent.GATE_OPENED): Phase.JOIN,
    (Phase.LOAD, PhaseEvent.RESTORED): Phase.LOAD,
    (Phase.JOIN, PhaseEvent.RESTORED): Phase.JOIN,
}


def advance(phase: Phase, event: PhaseEvent) -> Phase:
    """The durable phase after `event`; a second opening raises InvalidTransitionError.

    >>> advance(Phase.LOAD, PhaseEvent.GATE_OPENED).name
    'JOIN'
    """
    return next_state("phase of a job", TRANSITIONS, phase, event)


NEAR_LOSS = 0.8


@checked
class ProbeGate:
    """Opens once, for good, when the combined watermark of all build-side channels is complete.

    A complete watermark is in processing time, or the end of time. Only the output of
    `StatusWatermarkValve` feeds the gate; a status, such as idleness, cannot open it.

    >>> gate = ProbeGate()
    >>> gate.on_watermark(Watermark(5))
    False
    >>> gate.on_watermark(Watermark(5, use_processing_time=True))
    True
    >>> gate.on_watermark(Watermark(5, use_processing_time=True)), gate.is_open
    (False, True)
    """

    def __init__(self) -> None:
        self.is_open = False

    def on_watermark(self, watermark: Watermark) -> bool:
        """True only if this call opened the gate."""
        if self.is_open or not is_complete(watermark):
            return False
        self.is_open = True
        return True


def is_complete(watermark: Watermark) -> bool:
    return watermark.use_processing_time or watermark.timestamp_ms == MAX_TIMESTAMP


class LossRisk(Enum):
    """What shows that retention comes close to a held record."""

    AGE = "age"  # of the oldest held record, as a share of the topic's limit
    SIZE = "size"  # of the held records, as a share of the topic's limit
    OFFSETS = "offsets"  # how much of the way to the first held one the begin has moved


@checked
@dataclass(frozen=True, slots=True)
class Retention:
    """Limits of a topic, `max_bytes` for each partition; None is unlimited."""

    max_age_ms: int | None = None
    max_bytes: int | None = None


@checked
@dataclass(frozen=True, slots=True)
class HeldPartition:
    """The held offsets of one partition: `start` (kept since submission) up to `end`.

    `retention_begin` is Kafka's log start offset now, `first_retention_begin` the one when records
    from `start` on were first held, `log_bytes` the size of the whole partition. None is unknown.
    """

    partition: int
    start: int
    end: int
    retention_begin: int
    first_retention_begin: int | None = None
    oldest_at_ms: int | None = None
    log_bytes: int | None = None

    @property
    def held_records(self) -> int:
        return max(0, self.end - max(self.start, self.retention_begin))

    @property
    def lost_records(self) -> int:
        return max(0, self.retention_begin - self.start)


@checked
@dataclass(frozen=True, slots=True)
class LossWarning:
    """Held records of a partition are about to expire; from `used` 1.0 on at any time."""

    partition: int
    risk: LossRisk
    used: float


@checked
@dataclass(frozen=True, slots=True)
class HeldOffsets:
    """Records held before the gate, by partition.

    >>> held = HeldOffsets.of(start={0: 10, 1: 0}, end={0: 25, 1: 5}, retention_begin={0: 0, 1: 0})
    >>> held.held_records
    20
    """

    partitions: tuple[HeldPartition, ...]

    @classmethod
    def of(
        cls, *, start: Mapping[int, int], end: Mapping[int, int], retention_begin: Mapping[int, int]
    ) -> "HeldOffsets":
        """From offsets by partition; without an end nothing is held, without a begin it is 0.

        The caller sets what `warnings` compares: age, size and first begin are unknown here.
        InvalidParameterError: an offset is negative, or a partition has an end but no start.
        """
        unknown = sorted(set(end) - set(start))
        if unknown:
            raise InvalidParameterError(
                f"partition {unknown[0]} has an end offset but no start offset",
                hint="Pass a start offset for each partition of the topic, also for new ones.",
            )
        for partition, offset in (*start.items(), *end.items(), *retention_begin.items()):
            if offset < 0:
                raise InvalidParameterError(
                    f"partition {partition} has offset {offset}, expected 0 or more",
                    hint="Pass a number in place of a symbolic offset such as latest.",
                )
        return cls(
            tuple(
                HeldPartition(
                    each, start[each], end.get(each, start[each]), retention_begin.get(each, 0)
                )
                for each in sorted(start)
            )
        )

    @property
    def held_records(self) -> int:
        return sum(each.held_records for each in self.partitions)

    @property
    def lost_records(self) -> int:
        return sum(each.lost_records for each in self.partitions)

    def check(self, topic: str) -> None:
        """Raise LostRecordsError if retention has passed a start offset.

        Jobs of the service wait for an acknowledgement instead (`joins.stream.guards`).
        """
        for each in self.partitions:
            if each.lost_records:
                raise LostRecordsError(
                    f'topic "{topic}" partition {each.partition} begins at offset '
                    f"{each.retention_begin}, but records are held from offset {each.start}: "
                    f"{each.lost_records} are gone",
                    hint="Lengthen the topic's retention and begin at the first record it has.",
                )

    def warnings(
        self, retention: Retention, *, now_ms: int, near: float = NEAR_LOSS
    ) -> tuple[LossWarning, ...]:
        return tuple(
            LossWarning(each.partition, risk, used)
            for each in self.partitions
            if each.held_records
            for risk, used in _used(each, retention, now_ms)
            if used >= near
        )


def _used(held: HeldPartition, retention: Retention, now_ms: int) -> list[tuple[LossRisk, float]]:
    shares: list[tuple[LossRisk, float]] = []
    if retention.max_age_ms is not None and held.oldest_at_ms is not None:
        shares.append((LossRisk.AGE, (now_ms - held.oldest_at_ms) / max(1, retention.max_age_ms)))
    if retention.max_bytes is not None and held.log_bytes is not None:
        held_share = held.held_records / max(1, held.end - held.retention_begin)
        held_bytes = held.log_bytes * held_share
        shares.append((LossRisk.SIZE, held_bytes / max(1, retention.max_bytes)))
    first = held.first_retention_begin
    if first is not None and first < held.start:
        shares.append((LossRisk.OFFSETS, (held.retention_begin - first) / (held.start - first)))
    return shares
