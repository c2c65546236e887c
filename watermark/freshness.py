"""Freshness: how far a table in processing time is, as `(T, true)` on each of its channels.

A source answers the question "how far are you?" with a pair: its log was at position P at time T.
The pair proves the table once everything up to P is committed in it. `Freshness` holds the pairs
of one table; `joinable_until` is the rule of `join.max-staleness`. Time is in milliseconds.

>>> table = Freshness()
>>> table.add(Proof(1_000, {"offset": 10}, {0: 7, 1: 3}))
>>> table.at({0: 7, 1: 2}) is None
True
>>> table.at({0: 9, 1: 3}).time_ms, table.channel(0, 8)
(1000, Watermark(timestamp_ms=1000, use_processing_time=True))
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from watermark.checks import checked
from watermark.model import MAX_TIMESTAMP, Watermark

_MOST_PROOFS = 4_096
_NEVER = -1


class ProofKind(StrEnum):
    """What a source's T rests on.

    Attributes:
        POSITION: the source gave time and position of its log.
        CONNECTOR: the times that a connector passes on; without new ones T stands still.
        ENDED: the source has an end, which is committed: T is always now.
    """

    POSITION = "position"
    CONNECTOR = "connector"
    ENDED = "ended"


@checked
@dataclass(frozen=True, slots=True)
class Proof:
    """One answer of a source: all that it had at `time_ms` is in its log up to `position`."""

    # T. When the question was sent, by the clock of this machine; of a connector, the time that it
    # passed on.
    time_ms: int
    position: Mapping[str, Any]  # P, as the source writes it; opaque here
    # channel → what the channel must have committed to have everything up to P
    ends: Mapping[int, int] = field(default_factory=dict)
    kind: ProofKind = ProofKind.POSITION
    source_ms: int | None = None  # the source's own clock at the answer; None if it has none
    offset_ms: int | None = None  # that clock ahead of this machine's, right within `within_ms`
    within_ms: int | None = None

    def as_json(self) -> dict[str, Any]:
        ends = {str(channel): end for channel, end in sorted(self.ends.items())}
        return {**asdict(self), "kind": self.kind.value, "ends": ends}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Proof":
        return cls(
            time_ms=value["time_ms"],
            position=value["position"],
            ends={int(channel): end for channel, end in value["ends"].items()},
            kind=ProofKind(value["kind"]),
            source_ms=value["source_ms"],
            offset_ms=value["offset_ms"],
            within_ms=value["within_ms"],
        )

    def is_in(self, committed: Mapping[int, int]) -> bool:
        return all(committed.get(channel, 0) >= end for channel, end in self.ends.items())


@checked
class Freshness:
    """The proofs of one table in the order of T; not thread-safe.

    Neither T nor the ends of a channel go back: a proof with an older T is ignored, and lower ends
    are raised to those before. For commits that only grow, `at` never goes back either.
    """

    def __init__(self, most: int = _MOST_PROOFS) -> None:
        self._most = most
        self._proofs: list[Proof] = []
        self._answer: Proof | None = None
        self._of_channels: dict[int, tuple[int, int]] = {}  # channel → T that was given, its end

    def __len__(self) -> int:
        return len(self._proofs)

    def add(self, proof: Proof) -> None:
        last = self._proofs[-1] if self._proofs else None
        if last is not None:
            known = last.ends
            ends = {c: max(known.get(c, 0), proof.ends.get(c, 0)) for c in {*known, *proof.ends}}
            proof = replace(proof, ends=ends)
            if proof.time_ms < last.time_ms or (proof.time_ms == last.time_ms and ends != known):
                return
            if ends == known:
                self._proofs.pop()  # the newer one proves more of the same versions
        self._proofs.append(proof)
        if len(self._proofs) > self._most:  # fewer proofs only make T older
            self._proofs = [*self._proofs[:-1:2], self._proofs[-1]]

    def at(self, committed: Mapping[int, int]) -> Proof | None:
        """The newest proof that holds for a version with these commits; None without one."""
        count = self._count(committed)
        proof, answer = self._proofs[count - 1] if count else None, self._answer
        if answer is not None and (proof is None or proof.time_ms < answer.time_ms):
            return answer if answer.is_in(committed) else proof  # it was thinned out
        self._answer = proof
        return proof

    def news(self, committed: Mapping[int, int]) -> Proof | None:
        """As `at`, if its T is newer than at the last call; forgets what came before."""
        known = self._answer
        proof = self.at(committed)
        self.forget_before(committed)
        is_new = proof is not None and (known is None or proof.time_ms > known.time_ms)
        return proof if is_new else None

    def channel(self, channel: int, committed: int) -> Watermark | None:
        """`(T, true)` of one channel; the table's T is the minimum over its channels."""
        count = bisect_right(self._proofs, committed, key=lambda each: each.ends.get(channel, 0))
        proof, known = self._proofs[count - 1] if count else None, self._of_channels.get(channel)
        if proof is not None and (known is None or proof.time_ms > known[0]):
            self._of_channels[channel] = proof.time_ms, proof.ends.get(channel, 0)
        elif known is None or committed < known[1]:
            return None if proof is None else Watermark(proof.time_ms, use_processing_time=True)
        return Watermark(self._of_channels[channel][0], use_processing_time=True)

    def forget_before(self, committed: Mapping[int, int]) -> None:
        """Drop what neither a version with these commits nor a later one needs."""
        del self._proofs[: max(0, self._count(committed) - 1)]

    def void_after(self, committed: Mapping[int, int]) -> None:
        """Drop what these commits do not have: it is lost, and later commits do not prove it."""
        del self._proofs[self._count(committed) :]
        kept = self._of_channels.items()
        self._of_channels = {c: at for c, at in kept if at[1] <= committed.get(c, 0)}

    def _count(self, committed: Mapping[int, int]) -> int:
        return bisect_left(self._proofs, True, key=lambda proof: not proof.is_in(committed))


@checked
class PassedOnTimes:
    """Times that a connector passes on, each good once what was sent before it has arrived.

    Its clock may be ahead of this machine's. By how much at least, a time shows that is heard
    before it has come; that much is taken off every time.
    """

    def __init__(self, most: int = _MOST_PROOFS) -> None:
        self._most = most
        self._settling: list[tuple[int, int]] = []  # (settles at, time)
        self._newest_ms: int | None = None
        self.ahead_ms = 0
        """The least that the connector's clock is ahead of this machine's."""

    def hear(self, time_ms: int, settles_at_ms: int, now_ms: int) -> None:
        """All changes before `time_ms` are in the topic from `settles_at_ms` on."""
        self.ahead_ms = max(self.ahead_ms, time_ms - now_ms)
        newest_ms = -1 if self._newest_ms is None else self._newest_ms
        known = any(at_ms <= settles_at_ms and ms >= time_ms for at_ms, ms in self._settling)
        if time_ms > newest_ms and not known:
            self._settling.append((settles_at_ms, time_ms))
        if len(self._settling) > self._most:  # fewer times only make T older
            self._settling = [*self._settling[:-1:2], self._settling[-1]]

    def at(self, now_ms: int) -> int | None:
        """The newest time that has settled, by this machine's clock; None before the first."""
        settled = [time_ms for at_ms, time_ms in self._settling if at_ms <= now_ms]
        self._settling = [each for each in self._settling if each[0] > now_ms]
        if settled:
            self._newest_ms = max(*settled, -1 if self._newest_ms is None else self._newest_ms)
        return None if self._newest_ms is None else self._newest_ms - self.ahead_ms


@checked
@dataclass(frozen=True, slots=True)
class LookUp:
    """The ends of a stream's partitions at `time_ms`, which is before they were asked for."""

    time_ms: int
    ends: Mapping[int, int]


@checked
class Arrivals:
    """End offsets of a stream by the time of their look-up: when records came, by one clock.

    A record behind the ends of a look-up came after it, whatever the clocks of its producer and
    its broker say. A later runner begins with the oldest look-up that is still needed.

    >>> stream = Arrivals()
    >>> stream.add(LookUp(1_000, {0: 10}))
    >>> stream.add(LookUp(2_000, {0: 25}))
    >>> stream.before(1_500)
    {0: 10}
    """

    def __init__(self, most: int = _MOST_PROOFS) -> None:
        self._most = most
        self._seen: list[LookUp] = []

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def oldest(self) -> LookUp | None:
        return self._seen[0] if self._seen else None

    def add(self, looked_up: LookUp) -> None:
        last = self._seen[-1] if self._seen else None
        if last is not None and (looked_up.time_ms <= last.time_ms or looked_up.ends == last.ends):
            return  # a clock that went back, or nothing new since the earlier look-up
        self._seen.append(looked_up)
        if len(self._seen) > self._most:  # without some of them fewer records are surely old
            self._seen = [*self._seen[:-1:2], self._seen[-1]]

    def before(self, time_ms: int) -> Mapping[int, int] | None:
        """The ends of the newest look-up until `time_ms`; else of the first one, None without.

        Records behind the first look-up came after it, so after `time_ms`, too.
        """
        count = bisect_right(self._seen, time_ms, key=lambda seen: seen.time_ms)
        return self._seen[max(0, count - 1)].ends if self._seen else None

    def forget_before(self, time_ms: int) -> None:
        """Drop what no question about `time_ms` or later needs."""
        count = bisect_right(self._seen, time_ms, key=lambda seen: seen.time_ms)
        del self._seen[: max(0, count - 1)]


def joinable_until(bounds_ms: Mapping[str, int], times_ms: Mapping[str, int | None]) -> int:
    """The newest time of a record that may be joined: the least T + bound of tables with a bound.

    A table without T lets no record pass; without bounds every record passes.

    >>> joinable_until({"a": 5_000, "b": 1_000}, {"a": 10_000, "b": 20_000, "c": None})
    15000
    """
    limits = [until(bound_ms, times_ms.get(table)) for table, bound_ms in bounds_ms.items()]
    return min(limits, default=MAX_TIMESTAMP)


def last_effective(promise: Watermark, proven: Sequence[Watermark | None]) -> Watermark:
    """A promise with the least T of its channels, if it is in processing time and each has one.

    >>> from watermark.model import PROCESSING_TIME
    >>> last_effective(PROCESSING_TIME, [Watermark(7, True), Watermark(5, True)])
    Watermark(timestamp_ms=5, use_processing_time=True)
    >>> last_effective(PROCESSING_TIME, [Watermark(7, True), None]) == PROCESSING_TIME
    True
    """
    known = [each.timestamp_ms for each in proven if each is not None]
    if not promise.use_processing_time or not known or len(known) < len(proven):
        return promise
    return Watermark(min(known), use_processing_time=True)


class GateState(StrEnum):
    """What `join.max-staleness` lets a batch do, after the opening.

    Attributes:
        OPEN: every table is near enough to now: all records may be joined.
        HOLDING: records that are too new for a table wait.
        RELEASED: an operator lets them pass until a time.
    """

    OPEN = "OPEN"
    HOLDING = "HOLDING"
    RELEASED = "RELEASED"


def gate_state(joinable_until_ms: int, now_ms: int, released_until_ms: int) -> GateState:
    """The state of the gate for records that were written before `now_ms`."""
    if joinable_until_ms >= now_ms:
        return GateState.OPEN
    return GateState.RELEASED if now_ms < released_until_ms else GateState.HOLDING


def until(bound_ms: int, time_ms: int | None) -> int:
    """The newest time of a record that one table with this bound and T lets pass."""
    return _NEVER if time_ms is None else time_ms + bound_ms
