"""The stages of one event batch and their order, wherever they are run.

| stage | what is done |
|---|---|
| steps | with a watermark for each record: say which records raise it |
| scan | parse the records; late and dead ones go to files, the others to files of arrivals |
| act | what is due is joined; what is not goes to files of the state |
| windows | what is in windows that are due, or late and allowed, becomes rows |

Between scan and act the watermark moves. The last stage gives the rows of the sink. A job in which
nothing waits has no act: its scan joins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from joins.adapters.delta.state_log import StateFile
from joins.batch.event_items import StagePlan, act_stage, window_stage
from joins.batch.event_reports import NOTHING, details, merged_reports, pinned_advance, steps_told
from joins.batch.event_state import Advance, EventSpec
from joins.durable.pins import Pin
from joins.worker.staging import BatchReport

MergedSteps = Mapping[int, Sequence[Sequence[int]]]
"""Partition → (offset, operator's watermark from there on)."""


class Stages(Protocol):
    """Runs single stages of one batch: on Spark's workers, or in this process."""

    def steps(self) -> BatchReport:
        """Stage `steps` over the records of the batch."""
        ...

    def scan(self, merged: MergedSteps | None) -> BatchReport:
        """Stage `scan`; `merged` where watermarks hold at once."""
        ...

    def act(self, plan: StagePlan) -> BatchReport:
        """Stage `act`, where windows come behind it."""
        ...

    def last(self, plan: StagePlan) -> BatchReport:
        """The last stage, `act` or `windows`, whose rows are the sink's."""
        ...

    def files(self, name: str) -> Sequence[StateFile]:
        """The files of the state `waiting` or `windows` in the version that the batch has pinned.

        Raises:
            SluiceError: the version cannot be read any more.
        """
        ...


@dataclass(frozen=True, slots=True)
class StagedEvents:
    """A batch whose stages are all done.

    Attributes:
        report: of all stages together.
        move: of the time.
        removed: name of a state → its files that are superfluous once the batch is committed.
    """

    report: BatchReport
    move: Advance
    removed: Mapping[str, tuple[str, ...]]


def run_stages(spec: EventSpec, pin: Pin, stages: Stages) -> StagedEvents:
    """All stages of the batch of `pin`, in their order.

    Raises:
        SluiceError: a stage failed, or the state cannot be read.
    """
    scanned, move = _scanned(spec, pin, stages)
    reports, removed = [scanned], {}
    partials = details(scanned, "partials")
    if spec.waits:
        plan = act_stage(details(scanned, "arrivals"), stages.files("waiting"), move)
        removed["waiting"] = plan.removed
        reports.append(stages.last(plan) if spec.window is None else stages.act(plan))
        partials = details(reports[-1], "partials")
    if spec.window is not None:
        plan = window_stage(partials, stages.files("windows"), move, spec.window.kind)
        removed["windows"] = plan.removed
        reports.append(stages.last(plan))
    return StagedEvents(merged_reports(reports), move, removed)


def _scanned(spec: EventSpec, pin: Pin, stages: Stages) -> tuple[BatchReport, Advance]:
    """Scan the records and move the time; with steps the other way round."""
    if spec.on_event:
        move = pinned_advance(spec, pin, NOTHING, steps_told(stages.steps()))
        return stages.scan(move.merged.by_partition), move
    report = stages.scan(None)
    return report, pinned_advance(spec, pin, report, None)
