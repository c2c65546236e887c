"""How a job opens: committed watermarks → valve → gate → phase.

One valve covers every channel of every dimension; only its output feeds the gate.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from joins.durable.checkpoint import Checkpoint
from watermark.gate import Phase, PhaseEvent, ProbeGate, advance
from watermark.model import Evidence, Watermark
from watermark.valve import ChannelState, StatusWatermarkValve


def channel_name(dimension: str, partition: int) -> str:
    return f"{dimension}/{partition}"


@dataclass(frozen=True, slots=True)
class OpeningView:
    """Valve and gate, for status pages."""

    phase: Phase
    combined: Watermark
    channels: tuple[ChannelState, ...]
    opened_at_ms: int | None
    versions_at_open: Mapping[str, int]
    held_at_open: int | None
    evidence: Evidence | None


class Opening:
    """Owns valve, gate and phase of one job; its methods may be called from any thread."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        channels: Iterable[str],
        on_open: Callable[[], None],
        tables: Collection[str] = (),
    ) -> None:
        """`tables` are the job's: an opening that lacks one is none, the gate is closed again."""
        self._checkpoint = checkpoint
        self._valve = StatusWatermarkValve(tuple(channels))
        self._gate = ProbeGate()
        self._on_open = on_open
        self._lock = threading.RLock()
        kept = checkpoint.read_phase()
        if kept is not None and not kept["versions"].keys() >= set(tables):
            kept = None
        self._phase = Phase(kept["phase"]) if kept else Phase.LOAD
        self._opened_at_ms: int | None = kept["opened_at_ms"] if kept else None
        self._versions: dict[str, int] = kept["versions"] if kept else {}
        self._held: int | None = kept["held_records"] if kept else None

    @property
    def is_open(self) -> bool:
        return self._phase is Phase.JOIN

    def receive(self, channel: str, watermark: Watermark, *, now_ms: int) -> None:
        """Feed a committed watermark; calls `on_open` if it opens the gate."""
        with self._lock:
            outputs = self._valve.input_watermark(channel, watermark, now_ms=now_ms)
            opened = [
                self._gate.on_watermark(output)
                for output in outputs
                if isinstance(output, Watermark)
            ]
        if any(opened) and not self.is_open:
            self._on_open()

    def restart(self, channel: str) -> None:
        """The copy of `channel` starts over: unless the gate is open, its watermark is void."""
        with self._lock:
            if not self._gate.is_open:
                self._valve.remove_channel(channel)
                self._valve.add_channel(channel)

    def settle(
        self,
        *,
        versions: Mapping[str, int],
        held_records: int,
        at_ms: int,
        evidence: Mapping[str, str] | None = None,
    ) -> None:
        """Make the opening durable: the job is now in JOIN.

        `evidence` shows for each table why its snapshot is complete.
        """
        with self._lock:
            phase = advance(self._phase, PhaseEvent.GATE_OPENED)
            self._checkpoint.write_phase(
                {
                    "phase": phase.value,
                    "versions": dict(versions),
                    "opened_at_ms": at_ms,
                    "held_records": held_records,
                    "evidence": Evidence.IN_BAND_WATERMARK.value,
                    "tables": dict(evidence or {}),
                }
            )
            self._phase = phase
            self._opened_at_ms, self._versions, self._held = at_ms, dict(versions), held_records

    def view(self) -> OpeningView:
        with self._lock:
            return OpeningView(
                phase=self._phase,
                combined=self._valve.last_output,
                channels=self._valve.channels(),
                opened_at_ms=self._opened_at_ms,
                versions_at_open=dict(self._versions),
                held_at_open=self._held,
                evidence=Evidence.IN_BAND_WATERMARK if self.is_open else None,
            )
