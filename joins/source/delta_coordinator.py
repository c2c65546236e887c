"""Coordinates one `delta` source: keeps its process alive and knows how far it is.

The process copies and follows by itself and keeps what is durable; nothing of it needs Spark.
"""

from collections.abc import Mapping
from typing import Any

from joins.adapters.delta.feed_state import (
    DeltaFeedConfig,
    DeltaFeedState,
    read_state,
    state_from_json,
)
from joins.adapters.process.process import SourceProcess
from joins.durable.stalls import Stalls
from joins.source.coordinator import SourceCoordinator, SourceView

_POLL_S = 0.2


class DeltaCoordinator(SourceCoordinator):
    """Runs one `delta` source on its own thread until stopped."""

    def __init__(self, dimension: str, config: DeltaFeedConfig, stalls: Stalls) -> None:
        super().__init__(dimension, stalls)
        self._config = config
        self._state: DeltaFeedState | None = None

    def view(self) -> SourceView | None:
        """What the process told last, or has kept, for the status."""
        state = self._state
        if state is None:
            return None
        place = state.place(state.snapshot_version)
        copy = {"epoch": place.epoch, "file": place.file, "pos": place.pos}
        return SourceView(
            generation=state.generation,
            rows_total=state.rows_total,
            chunks_done=state.files_done,
            chunks_total=state.files_total,
            is_copied=state.copied,
            low=copy,
            high=copy,
            version=state.version,
        )

    def _run_once(self) -> None:
        self._state = read_state(self._config.state_file)
        self._process = SourceProcess("joins.adapters.delta.feed", self._config, self._on_event)
        while not self._stopping.wait(_POLL_S):
            self._living_process()

    def _on_event(self, event: Mapping[str, Any]) -> None:
        if "state" in event:
            self._state = state_from_json(event["state"])
        self._take_event(event)
