"""What the coordinators of all sources share: a thread, its process, retries and faults."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from joins.adapters.process.process import SourceProcess
from joins.dimension.changelog_topic import ChangelogTopic
from joins.dimension.freshness import TableFreshness
from joins.durable.requests import Request, Stalls
from joins.plan.causes import cause_of
from joins.plan.errors import (
    ForeignRecordError,
    NothingToAcknowledgeError,
    RepairError,
    ServerChangedError,
    SnapshotNeededError,
    SourceError,
    SourceUnavailableError,
)
from watermark.errors import SluiceError
from watermark.freshness import Proof
from watermark.model import Evidence

_RETRY_MIN_S, _RETRY_MAX_S = 1.0, 15.0
_GOOD_RUN_S = 60.0
_ERRORS: dict[str, type[SourceError]] = {
    error.__name__: error
    for error in (
        SnapshotNeededError,
        ServerChangedError,
        SourceUnavailableError,
        ForeignRecordError,
    )
}
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SourceView:
    """Progress of a source for the job's status; the same for every kind."""

    generation: int
    rows_total: int  # rows of the copy, if known; an estimate for a database table
    chunks_done: int  # acknowledged parts of the copy: chunks of keys or data files
    chunks_total: int
    is_copied: bool
    low: Mapping[str, int]  # the position before the copy: `epoch`, `file`, `pos`
    high: Mapping[str, int] | None  # the position that completes the copy, None before it is known
    version: int | None = None  # newest completely acknowledged version of a Delta table, else None
    # what proves that the copy is complete; None if it is the watermark record of our own copy
    evidence: str | None = None
    # what an external copy waits for; None if it is complete or Sluice makes the copy
    waits_for: str | None = None
    # the newest repair since the start: `at_ms`, `written`, `deleted`, `position`
    repaired: Mapping[str, Any] | None = None


def evidence_of(view: SourceView | None) -> str:
    known = None if view is None else view.evidence
    return known or Evidence.IN_BAND_WATERMARK


class SourceCoordinator(ABC):
    """Runs one source on a thread until stopped; a fault stalls the source, which then retries.

    `progress` has the events of the process, merged: the newest value of each member.
    `copied_because` says why the newest copy began, None for the first. `freshness` takes the
    proofs of how current the table is.
    """

    def __init__(self, dimension: str, stalls: Stalls, topic: ChangelogTopic | None = None) -> None:
        self.name = dimension
        self._topic = topic
        self._stalls = stalls
        self.part = f"source {dimension}"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.part, daemon=True)
        self._process: SourceProcess | None = None
        self._is_following = False
        self.progress: dict[str, Any] = {}
        self.copied_because: str | None = None
        self.freshness: TableFreshness | None = None

    @abstractmethod
    def view(self) -> SourceView | None:
        """How far the source is, None before that is known."""

    def _abandon(self, reason: str) -> None:
        """Durably record, if anything was copied, that the table must be copied again."""
        raise NotImplementedError

    def _require_topic(self) -> None:
        """Raise SnapshotNeededError if the changelog topic that the source writes to is lost."""
        reason = None if self._topic is None else self._topic.lost
        if reason is not None:
            raise SnapshotNeededError(
                f'{reason}; table "{self.name}" waits until it is created again',
                hint="No action is needed: the topic is created again by itself, and the table is "
                "copied again if rows are missing.",
            )

    @abstractmethod
    def _run_once(self) -> None:
        """Work until stopped; an error ends one attempt of many."""

    def acknowledge(self, request: Request) -> Mapping[str, Any]:
        """Store an operator's decision; raises NothingToAcknowledgeError, RequestError.

        A source that asks for none refuses it.
        """
        raise NothingToAcknowledgeError(
            f'"{request.body.get("cause")}" was acknowledged, but source "{self.name}" asks for '
            "nothing",
            hint="Look at the job's status; acknowledge the fault that it shows.",
        )

    def repair(self, request: Request) -> Mapping[str, Any]:
        """Send rows of the source again, by their keys; raises RepairError if it cannot."""
        raise RepairError(
            f'rows of table "{self.name}" are not sent again one by one',
            hint="Write each row again at the source; or submit the job again, which copies the "
            "whole table.",
        )

    def warnings(self) -> list[Mapping[str, Any]]:
        """What the status shows beside stalls."""
        warning = self.progress.get("group_offsets")
        return [] if warning is None else [warning]

    def acknowledgements(self) -> list[Mapping[str, Any]]:
        """Acknowledged decisions for this source, oldest first."""
        return []

    def start(self) -> None:
        """Start the thread; the source's process that it starts ends with it."""
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=20)

    def _run(self) -> None:
        delay = _RETRY_MIN_S
        while not self._stopping.is_set():
            started, self._is_following = time.monotonic(), False
            try:
                if self._topic is not None:
                    self._topic.ensure(self._abandon)
                self._run_once()
            except SluiceError as exc:
                self._note(exc)
            except Exception as exc:  # without this thread the source is not read
                self._note(cause_of(exc, f'source "{self.name}" failed'))
            finally:
                self._end_process()
            # so that the next attempt follows soon
            was_good = self._is_following or time.monotonic() - started > _GOOD_RUN_S
            delay = _RETRY_MIN_S if was_good else min(delay * 2, _RETRY_MAX_S)
            self._stopping.wait(delay)

    def _note(self, error: SluiceError) -> None:
        if isinstance(error, SnapshotNeededError):
            self.copied_because = error.message
        if not self._stopping.is_set():
            self._stalls.note(self.part, error)
            _log.warning("source stalled", part=self.part, error=error.message, hint=error.hint)

    def _take_event(self, event: Mapping[str, Any]) -> None:
        """Called on the thread that reads the process's output."""
        if event["event"] == "fresh":
            self._take_proof(event)
            return
        if event["event"] == "error":
            kind = _ERRORS.get(event["type"], SourceError)
            self._note(kind(event["message"], hint=event["hint"], detail=event["detail"]))
            return
        self._stalls.clear(self.part)  # any other event is progress
        self._is_following |= event["event"] == "watermark"
        self.progress = {**self.progress, **event}

    def _take_proof(self, event: Mapping[str, Any]) -> None:
        topic = None if self._topic is None else self._topic.now
        if self.freshness is not None and topic is not None:
            self.freshness.answered(Proof.from_json(event), topic.number)

    def _living_process(self) -> SourceProcess:
        self._require_topic()
        process = self._process
        if process is None or not process.running:
            raise (
                process.failure()
                if process is not None
                else SourceError(
                    f'source process of "{self.name}" is not there',
                    hint="It is started again.",
                )
            )
        return process

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None
