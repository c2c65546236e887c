"""What a table proves of its source's time: its source, its build loop and the probe share it.

A source's answer arrives once Kafka has everything up to its position. The build loop then looks
up where the changelog topic ends; a version whose commits reach these ends has the answer's T.
"""

import threading
from collections.abc import Mapping
from dataclasses import replace

from joins.kernels.changelog.envelope import now_ms
from watermark.freshness import Freshness, Proof, ProofKind
from watermark.model import Watermark

_MOST_ANSWERS = 1_024


class TableFreshness:
    """The proofs of one table; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: tuple[tuple[int, Proof], ...] = ()  # by the number of the changelog topic
        self._topic = 0
        self._freshness = Freshness()
        self._ended = False
        self.answered_at_ms: int | None = None
        """When the newest answer arrived, by the clock of this machine."""
        self._said_ms: int | None = None

    def answered(self, answer: Proof, topic: int) -> None:
        """The source's answer, after changelog topic `topic` has everything up to its position."""
        with self._lock:
            if len(self._answers) < _MOST_ANSWERS:  # a later one comes after the next look
                self._answers = (*self._answers, (topic, answer))
            self._said_ms = max(answer.time_ms, self._said_ms or answer.time_ms)
        self.answered_at_ms = now_ms()

    def waiting(self) -> int:
        """Number of answers whose ends are not known; ends that are looked up now are behind."""
        return len(self._answers)

    def placed(
        self, count: int, topic: int, ends: Mapping[int, int], committed: Mapping[int, int]
    ) -> None:
        """The ends of `topic`, which were looked up after the first `count` answers had arrived.

        With another topic than before, what was not committed of the previous one is lost.
        """
        with self._lock:
            if topic != self._topic:
                self._topic = topic
                self._freshness.void_after(committed)
            for of_topic, answer in self._answers[:count]:
                if of_topic == topic:
                    self._freshness.add(replace(answer, ends=dict(ends)))
            self._answers = self._answers[count:]

    def handed_on(self, proof: Proof) -> None:
        """A proof of the job that maintains a shared table, with its ends."""
        with self._lock:
            self._ended = proof.kind is ProofKind.ENDED
            self._freshness.add(proof)
            self._said_ms = max(proof.time_ms, self._said_ms or proof.time_ms)
        self.answered_at_ms = now_ms()

    def restore(self, proof: Proof) -> None:
        """What an earlier runner has pinned, and what every later version has."""
        with self._lock:
            self._freshness.add(replace(proof, ends={}))

    def at(self, committed: Mapping[int, int] | None, *, has_ended: bool) -> Proof | None:
        """The newest proof of a version with these commits; None commits are unknown."""
        if has_ended or self._ended:
            return Proof(now_ms(), {}, kind=ProofKind.ENDED)
        with self._lock:
            return self._freshness.at(committed or {})

    def channel(self, channel: int, committed: int, *, has_ended: bool) -> Watermark | None:
        """`(T, true)` of one partition of the changelog, as far as it is committed."""
        if has_ended or self._ended:
            return Watermark(now_ms(), use_processing_time=True)
        with self._lock:
            return self._freshness.channel(channel, committed)

    def said(self) -> Watermark | None:
        """`(T, true)` of the source's newest answer, committed or not; None before the first."""
        if self._ended:
            return Watermark(now_ms(), use_processing_time=True)
        return None if self._said_ms is None else Watermark(self._said_ms, use_processing_time=True)

    def forget_before(self, committed: Mapping[int, int]) -> None:
        with self._lock:
            self._freshness.forget_before(committed)
