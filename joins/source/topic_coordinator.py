"""Coordinates a source that is somebody else's topic: what shows that it is whole, what it lacks.

What only an operator can decide is kept beside the source's state, where its process reads it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from joins.adapters.topic.feed_state import (
    Decision,
    Decisions,
    TopicFeedConfig,
    abandon,
    read_decisions,
    write_decisions,
)
from joins.dimension.changelog_topic import ChangelogTopic
from joins.durable.acknowledgements import append_missing, reason_of, record_of
from joins.durable.requests import Request
from joins.durable.stalls import Stalls
from joins.plan.errors import (
    ForeignRecordError,
    NothingToAcknowledgeError,
    SnapshotUnprovenError,
)
from joins.source.coordinator import SourceView
from joins.source.feed_coordinator import FeedCoordinator
from watermark.foreign import Missing

_PLACE = {"epoch": 0, "file": 0, "pos": 0}


class TopicCoordinator(FeedCoordinator):
    """Runs one such source on its own thread until stopped.

    Args:
        dimension: its name.
        config: of its process.
        stalls: where faults are noted.
        acknowledgements: the file of all decisions of the job, for people.
    """

    # reads better deep: two kinds of sources differ only in what their process keeps.

    def __init__(
        self,
        dimension: str,
        config: TopicFeedConfig,
        stalls: Stalls,
        acknowledgements: Path,
        topic: ChangelogTopic | None = None,
    ) -> None:
        super().__init__(dimension, ("joins.adapters.topic.feed", config), stalls, topic)
        self._config = config
        self._list = acknowledgements
        self._state: Mapping[str, Any] | None = None
        self._decisions = read_decisions(config.decisions_file)  # nobody else writes them

    def view(self) -> SourceView | None:
        """What the process told last."""
        state = self._state
        if state is None:
            return None
        generation, is_complete = int(state["generation"]), bool(state["complete"])
        place = {**_PLACE, "epoch": generation - 1}
        return SourceView(
            generation=generation,
            rows_total=state["rows_total"] or state["rows"],
            chunks_done=int(is_complete),
            chunks_total=1,
            is_copied=is_complete,
            low=place,
            high=place if is_complete else None,
            evidence=state["evidence"] if is_complete else None,
            waits_for=None if is_complete else state["text"],
        )

    def _abandon(self, reason: str) -> None:
        abandon(self._config.state_file, reason)

    def _load(self) -> None:
        """The process tells its state as soon as it has looked at the topic."""

    def _hear(self, state: Mapping[str, Any]) -> None:
        self._state = state

    def _on_event(self, event: Mapping[str, Any]) -> None:
        super()._on_event(event)
        if "state" in event and _needs_a_word(event["state"]):
            state = event["state"]
            self._note(
                SnapshotUnprovenError(
                    f'table "{self._name}" (generation {state["generation"]}) is not shown to be '
                    f"whole: {state['text']}",
                    hint="Let the connector take a snapshot, of which the evidence is read by "
                    "itself; or acknowledge that all rows are there.",
                )
            )

    # What an operator decides
    # -----------------------------------------------------------------------------------------

    def acknowledge(self, request: Request) -> Mapping[str, Any]:
        """The operator's word that the table is whole, or that a record is left out.

        Raises:
            NothingToAcknowledgeError: the source waits for no such decision.
            RequestError: the request has no reason.
        """
        kept = self._decisions.all
        known = next((d for d in kept if d.record["id"] == request.id), None)
        if known is None:
            known = self._decided(request)
            decisions = Decisions((*kept, known))
            write_decisions(self._config.decisions_file, decisions)
            self._decisions = decisions
        append_missing(self._list, [known.record])
        return dict(known.record)

    def acknowledgements(self) -> list[Mapping[str, Any]]:
        return [each.record for each in self._decisions.all]

    def _decided(self, request: Request) -> Decision:
        cause, state = request.body.get("cause"), self._state
        reason_of(request)
        if cause == SnapshotUnprovenError.fault and state is not None and not state["complete"]:
            message = f'table "{self._name}", generation {state["generation"]}: {state["text"]}'
            return Decision(_record(request, message), generation=state["generation"])
        place = self.progress.get("record")
        if cause == ForeignRecordError.fault and place is not None:
            message = f'table "{self._name}": record {place[0]}/{place[1]}'
            topic_id = self.progress["topic_id"]
            record = _record(request, message)
            return Decision(record, place=(place[0], place[1]), topic_id=topic_id)
        raise NothingToAcknowledgeError(
            f'"{cause}" was acknowledged, but source "{self._name}" does not wait for it',
            hint="Look at the job's status; acknowledge the fault that it shows.",
        )


def _record(request: Request, message: str) -> dict[str, Any]:
    return record_of(request, choice=request.body.get("choice"), message=message)


def _needs_a_word(state: Mapping[str, Any]) -> bool:
    missing = state["missing"]
    return missing is not None and Missing(missing).needs_a_word
