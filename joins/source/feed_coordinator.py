"""Coordinates sources whose process copies, follows and owns the durable state, without Spark."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from joins.adapters.delta.source import DeltaFeedConfig, DeltaFeedState
from joins.adapters.files.listing import FileFeedConfig, FileFeedState
from joins.adapters.polled.table import PolledConfig, PolledState
from joins.adapters.process.process import SourceConfig, SourceProcess
from joins.adapters.process.sessions import abandon
from joins.adapters.topic.feed_state import (
    Decision,
    Decisions,
    TopicFeedConfig,
    history_state,
    read_decisions,
    write_decisions,
)
from joins.adapters.topic.feed_state import abandon as abandon_topic
from joins.dimension.changelog_topic import ChangelogTopic
from joins.durable.checkpoint import read_document
from joins.durable.codec import from_json
from joins.durable.dead_rows import SUFFIX, warning_of
from joins.durable.requests import Request, Stalls, append_missing, reason_of, record_of
from joins.plan.errors import (
    ForeignRecordError,
    NothingToAcknowledgeError,
    SnapshotUnprovenError,
)
from joins.source.coordinator import SourceCoordinator, SourceView
from watermark.errors import SluiceError
from watermark.foreign import Missing
from watermark.freshness import Proof
from watermark.model import Evidence

_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class SharedReport:
    """Progress of a shared table, the fault that stops it, and what its job proves of it."""

    view: SourceView | None = None
    fault: SluiceError | None = None
    proof: Proof | None = None


class SharedCoordinator(SourceCoordinator):
    """Watches one shared table on a thread until stopped; it has no process."""

    def __init__(self, dimension: str, look: Callable[[], SharedReport], stalls: Stalls) -> None:
        super().__init__(dimension, stalls)
        self._look = look
        self._report = SharedReport()

    def view(self) -> SourceView | None:
        return self._report.view

    def _run_once(self) -> None:
        noted: str | None = None
        while not self._stopping.is_set():
            self._report = report = self._look()
            fault = report.fault
            if report.proof is not None and self.freshness is not None:
                self.freshness.handed_on(report.proof)
            if fault is None:
                self._stalls.clear(self.part)
            elif fault.message != noted:
                self._note(fault)
            noted = None if fault is None else fault.message
            self._stopping.wait(_LOOK_S)


class FeedConfig(SourceConfig, Protocol):
    """Configuration of a source whose process owns the durable state."""

    @property
    def state_file(self) -> Path:
        """The state; files of the same name with other endings are beside it."""


_POLL_S = 0.2
_Config = TypeVar("_Config", bound=FeedConfig)
_State = TypeVar("_State")


class FeedCoordinator(SourceCoordinator, Generic[_Config, _State]):
    """Runs one such source on a thread; a process whose source has an end reports `ended`."""

    module: ClassVar[str]  # of the process
    durable: ClassVar[type[Any]]  # its state

    def __init__(
        self,
        dimension: str,
        config: _Config,
        stalls: Stalls,
        topic: ChangelogTopic | None = None,
    ) -> None:
        super().__init__(dimension, stalls, topic)
        self._config = config
        self._state: _State | None = None
        self._has_ended = threading.Event()

    def _stored(self) -> _State | None:
        """The state that an earlier process has stored, before this one reports."""
        return read_document(self._config.state_file, self.durable)

    def _reported(self, state: Mapping[str, Any]) -> _State:
        """The state in an event of the process."""
        return cast(_State, from_json(self.durable, state))

    def _abandon(self, reason: str) -> None:
        abandon(self._config.state_file, self.durable, reason)

    def warnings(self) -> list[Mapping[str, Any]]:
        view, state_file = self.view(), self._config.state_file
        files = [file.with_suffix(SUFFIX) for file in (state_file, history_state(state_file))]
        dead = None if view is None else warning_of(self.name, files, view.generation)
        return super().warnings() + ([] if dead is None else [dead])

    def _run_once(self) -> None:
        self._state = self._stored()
        self._has_ended.clear()
        self._process = SourceProcess(self.module, self._config, self._on_event)
        while not self._stopping.wait(_POLL_S):
            if self._has_ended.is_set():
                self._end_process()
                while not self._stopping.wait(_POLL_S):
                    self._require_topic()
                return
            self._living_process()

    def _on_event(self, event: Mapping[str, Any]) -> None:
        if "state" in event:
            self._state = self._reported(event["state"])
        if event["event"] == "ended":
            self._has_ended.set()
        self._take_event(event)


class DeltaCoordinator(FeedCoordinator[DeltaFeedConfig, DeltaFeedState]):
    """Runs one `delta` source on a thread until stopped."""

    # reads better deep: two kinds of sources differ only in what their process keeps.

    module = "joins.adapters.delta.feed"
    durable = DeltaFeedState

    def view(self) -> SourceView | None:
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


class PolledCoordinator(FeedCoordinator[PolledConfig, PolledState]):
    """Runs one `jdbc` source on a thread until stopped."""

    # reads better deep: kinds of sources differ only in what their process keeps.

    module = "joins.adapters.polled.feed"
    durable = PolledState

    def view(self) -> SourceView | None:
        state = self._state
        if state is None:
            return None
        place = state.place(1)
        copy = {"epoch": place.epoch, "file": place.file, "pos": place.pos}
        return SourceView(
            generation=state.generation,
            rows_total=state.rows,
            chunks_done=min(state.sent, 1),
            chunks_total=1,
            is_copied=state.is_copied,
            low=copy,
            high=copy if state.is_copied else None,
            version=state.sent,
        )


_PLACE = {"epoch": 0, "file": 0, "pos": 0}


class FileCoordinator(FeedCoordinator[FileFeedConfig, Mapping[str, int]]):
    """Runs one source of files on a thread until stopped."""

    # reads better deep: kinds of sources differ only in what their process keeps.

    module = "joins.adapters.files.feed"
    durable = FileFeedState

    def view(self) -> SourceView | None:
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

    def _stored(self) -> Mapping[str, int] | None:
        state = read_document(self._config.state_file, FileFeedState)
        return None if state is None else state.progress

    def _reported(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        return state


class TopicCoordinator(FeedCoordinator[TopicFeedConfig, Mapping[str, Any]]):
    """Runs one source of a topic; `acknowledgements` is the file of all decisions, for people."""

    # reads better deep: two kinds of sources differ only in what their process keeps.

    module = "joins.adapters.topic.feed"

    def __init__(
        self,
        dimension: str,
        config: TopicFeedConfig,
        stalls: Stalls,
        acknowledgements: Path,
        topic: ChangelogTopic | None = None,
    ) -> None:
        super().__init__(dimension, config, stalls, topic)
        self._list = acknowledgements
        self._decisions = read_decisions(config.decisions_file)  # no other process writes them

    def view(self) -> SourceView | None:
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
        abandon_topic(self._config.state_file, reason)

    def _stored(self) -> Mapping[str, Any] | None:
        return self._state  # the process reports it as soon as it has looked at the topic

    def _reported(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return state

    def _on_event(self, event: Mapping[str, Any]) -> None:
        super()._on_event(event)
        if "state" in event and _needs_override(event["state"]):
            state = event["state"]
            self._note(
                SnapshotUnprovenError(
                    f'table "{self.name}" (generation {state["generation"]}) is not shown to be '
                    f"whole: {state['text']}",
                    hint="Let the connector take a snapshot, of which the evidence is read by "
                    "itself; or acknowledge that all rows are there.",
                )
            )

    # What an operator decides
    # -----------------------------------------------------------------------------------------

    def acknowledge(self, request: Request) -> Mapping[str, Any]:
        """The operator declares the table complete, or skips a record. Raises as the base class."""
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
            message = f'table "{self.name}", generation {state["generation"]}: {state["text"]}'
            return Decision(_record(request, message), generation=state["generation"])
        place = self.progress.get("record")
        if cause == ForeignRecordError.fault and place is not None:
            message = f'table "{self.name}": record {place[0]}/{place[1]}'
            topic_id = self.progress["topic_id"]
            record = _record(request, message)
            return Decision(record, place=(place[0], place[1]), topic_id=topic_id)
        raise NothingToAcknowledgeError(
            f'"{cause}" was acknowledged, but source "{self.name}" does not wait for it',
            hint="Look at the job's status; acknowledge the fault that it shows.",
        )


class HistoryCoordinator(TopicCoordinator):
    """Runs one source of a topic whose history is in files; its copy has the files and the topic.

    While the process reads files it reports their progress, then the state of the topic.
    """

    # reads better deep: behind the files it is the source of a topic.

    module = "joins.adapters.topic.history"

    _copy: Mapping[str, int] | None = None  # progress of the files in this process

    def view(self) -> SourceView | None:
        files, view = self._files(), super().view()
        if files is None:
            return view
        rows, done, total = files["rows"], files["files_done"], files["files_total"]
        if view is not None:
            return replace(
                view,
                rows_total=max(rows, view.rows_total),
                chunks_done=total + view.chunks_done,
                chunks_total=total + 1,
            )
        place = {**_PLACE, "epoch": files["generation"] - 1}
        return SourceView(
            generation=files["generation"],
            rows_total=rows,
            chunks_done=done,
            chunks_total=total + 1,
            is_copied=False,
            low=place,
            high=None,
            waits_for=f"{done} of {total} files of the history are read",
        )

    def _files(self) -> Mapping[str, int] | None:
        if self._copy is not None:
            return self._copy
        kept = read_document(history_state(self._config.state_file), FileFeedState)
        return None if kept is None else kept.progress

    def _abandon(self, reason: str) -> None:
        abandon(history_state(self._config.state_file), FileFeedState, reason)
        super()._abandon(reason)

    def _on_event(self, event: Mapping[str, Any]) -> None:
        if "files_done" in event.get("state", {}):
            self._state, self._copy = None, event["state"]
            self._take_event(event)
        else:
            super()._on_event(event)


def _record(request: Request, message: str) -> dict[str, Any]:
    return record_of(request, choice=request.body.get("choice"), message=message)


def _needs_override(state: Mapping[str, Any]) -> bool:
    missing = state["missing"]
    return missing is not None and Missing(missing).needs_override
