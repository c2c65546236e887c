"""Coordinates one `delta` source: keeps its process alive and knows how far it is."""

from collections.abc import Mapping
from typing import Any

from joins.adapters.delta.source import (
    DeltaFeedConfig,
    DeltaFeedState,
    abandon,
    read_state,
    state_from_json,
)
from joins.dimension.changelog_topic import ChangelogTopic
from joins.durable.stalls import Stalls
from joins.source.coordinator import SourceView
from joins.source.feed_coordinator import FeedCoordinator


class DeltaCoordinator(FeedCoordinator):
    """Runs one `delta` source on its own thread until stopped."""

    # reads better deep: two kinds of sources differ only in what their process keeps.

    def __init__(
        self,
        dimension: str,
        config: DeltaFeedConfig,
        stalls: Stalls,
        topic: ChangelogTopic | None = None,
    ) -> None:
        super().__init__(dimension, ("joins.adapters.delta.feed", config), stalls, topic)
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

    def _abandon(self, reason: str) -> None:
        abandon(self._config.state_file, reason)

    def _load(self) -> None:
        self._state = read_state(self._config.state_file)

    def _hear(self, state: Mapping[str, Any]) -> None:
        self._state = state_from_json(state)
