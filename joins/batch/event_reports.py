"""What the tasks of an event batch have reported, and where that takes the time.

The same for a batch that Spark runs and for one that is run again from its pin.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from joins.batch.event_channels import Heard, Steps
from joins.batch.event_state import Advance, EventSpec, EventState, advance, batch_input
from joins.durable.pins import Pin
from joins.kernels.probe.files import StagedFile
from joins.worker.staging import BatchReport

NOTHING = BatchReport({}, {}, ())


def steps_told(report: BatchReport) -> Steps:
    """What stage `steps` has found."""
    steps: dict[int, list[tuple[int, int]]] = {}
    for detail in report.details:
        for partition, rises in detail.get("steps", {}).items():
            steps.setdefault(int(partition), []).extend((o, w) for o, w in rises)
    return {partition: sorted(rises) for partition, rises in steps.items()}


def pinned_advance(spec: EventSpec, pin: Pin, scanned: BatchReport, steps: Steps | None) -> Advance:
    """Where the batch of `pin` takes the time.

    Args:
        spec: of its job.
        pin: says what was before.
        scanned: the report of the scan; with steps it is not needed.
        steps: with a watermark for each record: those of the batch.

    Raises:
        StateFormatError: the channels in the pin are damaged.
    """
    event = pin.of_event
    batch = batch_input(event, pin.end_offsets, steps, _heard(pin, scanned))
    return advance(spec, EventState.before(event), batch)


def _heard(pin: Pin, report: BatchReport) -> dict[int, Heard]:
    """The partitions with records, and the greatest watermark of each as the scan tells it."""
    greatest: dict[int, int] = {}
    for detail in report.details:
        for partition, reported in detail.get("partitions", {}).items():
            watermark = reported["watermark"]
            if watermark is not None:
                greatest[int(partition)] = max(watermark, greatest.get(int(partition), watermark))
    return {p: Heard(greatest.get(p), pin.batch) for p in pin.ranges()}


def details(report: BatchReport, name: str) -> list[Mapping[str, Any]]:
    return [each for detail in report.details for each in detail.get(name, ())]


def merged_reports(reports: Iterable[BatchReport]) -> BatchReport:
    """The reports of several stages as one."""
    files: dict[str, tuple[StagedFile, ...]] = {}
    counts: dict[str, int] = {}
    for report in reports:
        for name, staged in report.files.items():
            files[name] = (*files.get(name, ()), *staged)
        for name, count in report.counts.items():
            counts[name] = counts.get(name, 0) + count
    return BatchReport(files, counts, ())


def added(report: BatchReport, name: str) -> tuple[StagedFile, ...]:
    mine = (staged for key, staged in report.files.items() if key.startswith(f"{name}/"))
    return tuple(file for staged in mine for file in staged)
