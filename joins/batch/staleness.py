"""The gate after the opening: `join.max-staleness` holds records that are too new for a table.

A record written at t is joined with a version whose T is t - bound or later. Records behind the
first one that is too new stay in Kafka; the next batch begins there. T of the pinned version is in
the pin, so a retry or a replay makes no decision again.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.requests import Request, append_missing, reason_of, record_of
from joins.plan.durations import duration_text
from joins.plan.errors import NothingToAcknowledgeError, RequestError, StaleTableError
from watermark.freshness import (
    Arrivals,
    GateState,
    LookUp,
    Proof,
    gate_state,
    joinable_until,
    until,
)

MOST_RELEASED_S = 86_400
_UNREACHABLE_AFTER = 5
_UNREACHABLE_MS = 600_000
_MOMENT_MS = 10_000

Offsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table that holds records; `time_ms` is its T, None before the first proof."""

    table: str
    bound_ms: int
    time_ms: int | None

    def text(self, now_ms: int) -> str:
        if self.time_ms is None:
            return f'table "{self.table}" waits for the first answer of its source'
        behind_s = max(0, now_ms - self.time_ms) / 1000
        at = datetime.fromtimestamp(self.time_ms / 1000, UTC)
        return (
            f'table "{self.table}" is as of {at:%H:%M:%S.%f}'[:-3]
            + f" UTC, {behind_s:.1f} s ago; at most {duration_text(self.bound_ms)} are allowed"
        )


@dataclass(frozen=True, slots=True)
class Holding:
    """What the gate shows while it holds, or while an operator has released it."""

    state: GateState
    since_ms: int
    tables: tuple[HeldTable, ...]
    released_until_ms: int | None = None

    def text(self, now_ms: int) -> str:
        since = datetime.fromtimestamp(self.since_ms / 1000, UTC)
        waits = "; ".join(each.text(now_ms) for each in self.tables)
        if self.state is GateState.RELEASED:
            return f"newer records pass by an operator's decision: {waits}"
        return f"newer records wait since {since:%H:%M:%S} UTC: {waits}"


class StalenessGate:
    """Cuts the batches of one job; the loop's thread cuts, others release and look.

    Args:
        bounds_ms: table → `join.max-staleness`; empty without the option.
        file: holds a release over restarts.
        acknowledgements: the job's list of operators' decisions.
    """

    def __init__(self, bounds_ms: Mapping[str, int], file: Path, acknowledgements: Path) -> None:
        self.bounds_ms = dict(bounds_ms)
        self._file = file
        self._list = acknowledgements
        self._lock = threading.Lock()
        self._release: Mapping[str, Any] = read_json(file) or {} if bounds_ms else {}
        self._since_ms: int | None = None
        self._moments: list[int] = []  # ends of short holds
        self._arrivals = Arrivals()
        self.holding: Holding | None = None
        """What is held; None while all records pass."""

    @property
    def released_until_ms(self) -> int:
        return int(self._release.get("until_ms", 0))

    @property
    def is_unreachable(self) -> bool:
        """True if it holds for moments again and again: the sources answer, but not soon enough."""
        return len(self._recent(time.time_ns() // 1_000_000)) > _UNREACHABLE_AFTER

    def _recent(self, now_ms: int) -> list[int]:
        return [at_ms for at_ms in self._moments if at_ms > now_ms - _UNREACHABLE_MS]

    def note_ends(self, looked_up: LookUp) -> None:
        """The stream's ends, just looked up, or by an earlier runner, as its newest pin says."""
        if self.bounds_ms:
            self._arrivals.add(looked_up)

    @property
    def looked_up(self) -> LookUp | None:
        """The look-up that a later runner begins with; None without the option."""
        return self._arrivals.oldest

    def cut(
        self,
        start: Offsets,
        end: Offsets,
        proofs: Mapping[str, Proof],
        first_at: Callable[[int], Offsets],
    ) -> tuple[Offsets, bool]:
        """`end` cut at the first record that is too new, and whether an operator's release counted.

        All records before `end` are written. `first_at` gives the first offsets of a time or later,
        by the records' own times. Their clock may be behind, so records that came after the limit
        by this machine's clock are too new whatever their times say.
        """
        if not self.bounds_ms:
            return end, False
        now_ms = time.time_ns() // 1_000_000
        times_ms = {name: proof.time_ms for name, proof in proofs.items()}
        limit_ms = joinable_until(self.bounds_ms, times_ms)
        self._arrivals.forget_before(limit_ms)
        state = gate_state(limit_ms, now_ms, self.released_until_ms)
        if state is not GateState.HOLDING:
            self._note(state, times_ms, now_ms, is_held=state is GateState.RELEASED)
            return end, state is GateState.RELEASED
        if all(last <= start.get(p, 0) for p, last in end.items()):
            self._note(state, times_ms, now_ms, is_held=False)
            return end, False
        first: Offsets = {} if limit_ms < 0 else first_at(limit_ms + 1)
        arrived = self._arrivals.before(limit_ms)
        came = end if arrived is None else arrived
        cut = {
            p: max(start.get(p, 0), min(last, first.get(p, start.get(p, 0)), came.get(p, 0)))
            for p, last in end.items()
        }
        self._note(state, times_ms, now_ms, is_held=any(cut[p] < end[p] for p in end))
        return cut, False

    def _note(
        self, state: GateState, times_ms: Mapping[str, int], now_ms: int, *, is_held: bool
    ) -> None:
        if not is_held:
            if self._since_ms is not None and now_ms - self._since_ms < _MOMENT_MS:
                self._moments = [*self._recent(now_ms), now_ms]
            self._since_ms, self.holding = None, None
            return
        if self._since_ms is None:
            self._since_ms = now_ms
        tables = tuple(
            HeldTable(name, bound_ms, times_ms.get(name))
            for name, bound_ms in sorted(self.bounds_ms.items())
            if until(bound_ms, times_ms.get(name)) < now_ms
        )
        released = self.released_until_ms if state is GateState.RELEASED else None
        self.holding = Holding(state, self._since_ms, tables, released)

    def acknowledge(self, request: Request) -> Mapping[str, Any]:
        """Release records for the requested seconds; returns the stored record.

        Raises:
            NothingToAcknowledgeError: no table has `join.max-staleness`, or nothing is held.
            RequestError: no reason, or no seconds.
        """
        with self._lock:
            if self._release.get("record", {}).get("id") != request.id:
                release = self._release_of(request)
                write_json_atomically(self._file, release)
                self._release = release
            record = self._release["record"]
            append_missing(self._list, [record])
            return dict(record)

    def _release_of(self, request: Request) -> Mapping[str, Any]:
        reason_of(request)
        holding, seconds = self.holding, request.body.get("for_s")
        if holding is None:
            raise NothingToAcknowledgeError(
                f'"{StaleTableError.fault}" was acknowledged, but no record waits for a table',
                hint="Look at the job's status; acknowledge the fault that it shows.",
            )
        if not isinstance(seconds, int) or not 0 < seconds <= MOST_RELEASED_S:
            raise RequestError(
                f'"for_s" is {seconds!r}, expected 1 to {MOST_RELEASED_S}',
                hint="Say for how long records pass: --for '10 min'.",
            )
        now_ms = time.time_ns() // 1_000_000
        record = record_of(request, choice=StaleTableError.choices[0], message=holding.text(now_ms))
        return {"until_ms": now_ms + seconds * 1000, "record": record}

    def acknowledgements(self) -> list[Mapping[str, Any]]:
        return [self._release["record"]] if "record" in self._release else []
