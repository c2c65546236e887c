"""Coordinates a source whose process copies and follows by itself: keeps it alive, and hears it.

The process keeps what is durable; nothing of it needs Spark.
"""

import threading
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from joins.adapters.process.process import SourceConfig, SourceProcess
from joins.dimension.changelog_topic import ChangelogTopic
from joins.durable.stalls import Stalls
from joins.source.coordinator import SourceCoordinator

_POLL_S = 0.2


class FeedCoordinator(SourceCoordinator):
    """Runs one such source on its own thread until stopped.

    A process whose source has an end says `ended` and goes; nothing of it is missed then.

    Args:
        dimension: its name.
        process: the module and what it is started with.
        stalls: where faults are noted.
    """

    def __init__(
        self,
        dimension: str,
        process: tuple[str, SourceConfig],
        stalls: Stalls,
        topic: ChangelogTopic | None = None,
    ) -> None:
        super().__init__(dimension, stalls, topic)
        self._module, self._process_config = process
        self._has_ended = threading.Event()

    @abstractmethod
    def _load(self) -> None:
        """Take what the process has kept, before it speaks."""

    @abstractmethod
    def _hear(self, state: Mapping[str, Any]) -> None:
        """Take the state that the process tells."""

    def _run_once(self) -> None:
        self._load()
        self._has_ended.clear()
        self._process = SourceProcess(self._module, self._process_config, self._on_event)
        while not self._stopping.wait(_POLL_S):
            if self._has_ended.is_set():
                self._end_process()
                while not self._stopping.wait(_POLL_S):
                    self._require_topic()
                return
            self._living_process()

    def _on_event(self, event: Mapping[str, Any]) -> None:
        if "state" in event:
            self._hear(event["state"])
        if event["event"] == "ended":
            self._has_ended.set()
        self._take_event(event)
