"""Coordinates a source that is files: knows how many are read, and that they are whole then."""

from collections.abc import Mapping
from typing import Any

from joins.adapters.files.listing import FileFeedConfig, abandon, read_state
from joins.dimension.changelog_topic import ChangelogTopic
from joins.durable.stalls import Stalls
from joins.source.coordinator import SourceView
from joins.source.feed_coordinator import FeedCoordinator
from watermark.evidence import Evidence

_PLACE = {"epoch": 0, "file": 0, "pos": 0}


class FileCoordinator(FeedCoordinator):
    """Runs one such source on its own thread until stopped."""

    # reads better deep: kinds of sources differ only in what their process keeps.

    def __init__(
        self,
        dimension: str,
        config: FileFeedConfig,
        stalls: Stalls,
        topic: ChangelogTopic | None = None,
    ) -> None:
        super().__init__(dimension, ("joins.adapters.files.feed", config), stalls, topic)
        self._config = config
        self._state: Mapping[str, int] | None = None

    def view(self) -> SourceView | None:
        """What the process told last, or has kept, for the status."""
        state = self._state
        if state is None:
            return None
        place = {**_PLACE, "epoch": state["generation"] - 1}
        is_copied = state["files_done"] == state["files_total"]
        return SourceView(
            generation=state["generation"],
            rows_total=state["rows"],
            chunks_done=state["files_done"],
            chunks_total=state["files_total"],
            is_copied=is_copied,
            low=place,
            high=place if is_copied else None,
            evidence=Evidence.BOUNDED_INPUT_ENDED if is_copied else None,
        )

    def _abandon(self, reason: str) -> None:
        abandon(self._config.state_file, reason)

    def _load(self) -> None:
        kept = read_state(self._config.state_file)
        self._state = None if kept is None else kept.progress

    def _hear(self, state: Mapping[str, Any]) -> None:
        self._state = state
