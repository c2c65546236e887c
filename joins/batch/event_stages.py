"""The stages of one event batch and their order, independent of where they run.

| stage | what it does |
|---|---|
| steps | with a watermark for each record: finds the records that raise it |
| scan | parses the records; writes late and dead ones to files, the others to files of arrivals |
| act | joins the rows that are due; writes the others to files of the state |
| windows | makes rows of the windows that are due, or late and allowed |

Between scan and act the watermark advances. The last stage produces the sink's rows. A job whose
records do not wait has no act: its scan joins.

A job with `join.late-rows.wait` has one other stage. `answer` looks up waiting rows, if there is a
new version or rows are due, and joins those that leave. Then it joins the records of the batch, and
writes the unmatched ones to files of the state.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from joins.adapters.delta.state_log import StateColumns, StateFile
from joins.batch.event_channels import Heard, Steps
from joins.batch.event_state import (
    LATE_SUMS,
    Advance,
    EventSpec,
    EventState,
    advance,
    batch_input,
)
from joins.durable.pins import Pin
from joins.kernels.probe.files import StagedFile
from joins.plan.plan import WindowKind
from joins.worker.late_rows import REMOVED
from joins.worker.staging import BatchReport
from joins.worker.work import RECORDS_WORTH_A_TASK

WAITING_COLUMNS = StateColumns(due="_time", keep="_time", bucket="_partition")
WINDOW_COLUMNS = StateColumns(due="_due", keep="_keep", bucket="_bucket")

MANY_IN_BUCKET = 16
_MERGE_FACTOR = 4
_SMALL_ROWS = 4_096
_MAX_MERGED_ROWS = 4_000_000
_MAX_MERGED_LATE_ROWS = 32_768  # a file is written again whenever a row of it leaves


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage: the input of its tasks, and the state files that the commit makes obsolete."""

    items: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _WorkItem:
    rows: int
    value: Mapping[str, Any]


def to_merge(files: Sequence[StateFile], most_rows: int = _MAX_MERGED_ROWS) -> frozenset[str]:
    buckets = _by_bucket(files).values()
    chosen = (_newest_ones(each, most_rows) for each in buckets if len(each) > MANY_IN_BUCKET)
    return frozenset(name for names in chosen if len(names) > 1 for name in names)


def _newest_ones(files: Sequence[StateFile], most_rows: int) -> list[str]:
    """The newest files, each at most `_MERGE_FACTOR` times as large as all newer ones together.

    They are contiguous, because rows are read in the order of file names, which is batch order.
    """
    names: list[str] = []
    total = 0
    for file in sorted(files, key=lambda each: each.path, reverse=True):
        limit = _MERGE_FACTOR * max(total, _SMALL_ROWS)
        if names and (file.rows > limit or total + file.rows > most_rows):
            break
        names.append(file.path)
        total += file.rows
    return names


def act_stage(
    arrivals: Iterable[Mapping[str, Any]], files: Sequence[StateFile], move: Advance
) -> StagePlan:
    """Plan the join of `arrivals` (from the scan) and waiting rows (`files`, as pinned).

    Due rows leave in order of arrival by partition.
    """
    after, upto = move.before.watermark, move.after.release_ms
    merged = to_merge(files)
    new: dict[int, list[Mapping[str, Any]]] = {}
    for each in arrivals:
        new.setdefault(int(each["partition"]), []).append(each)
    old = _by_bucket([f for f in files if f.path in merged or f.has_due(after, upto)])
    parts = []
    for partition in sorted({*new, *old}):
        here = new.get(partition, [])
        waiting = [
            {"path": file.path, "rewrite": file.path in merged} for file in old.get(partition, ())
        ]
        rows = sum(each["rows"] for each in here) + sum(f.rows for f in old.get(partition, ()))
        paths = [each["path"] for each in here]
        parts.append(
            _WorkItem(rows, {"partition": partition, "arrivals": paths, "waiting": waiting})
        )
    head = {"stage": "act", "after": after, "upto": upto, "steps": _steps(move)}
    dead = {file.path for file in files if file.max_keep <= upto}
    return StagePlan(_items(head, parts), tuple(sorted(dead | merged)))


@dataclass(frozen=True, slots=True)
class WaitingPlan:
    """The waiting rows to look at, by partition, and files whose rows all are of no more use."""

    parts: Mapping[int, Mapping[str, Any]]
    dead: tuple[str, ...]

    @classmethod
    def of(
        cls, files: Sequence[StateFile], move: Advance, correct_ms: int, *, has_news: bool
    ) -> "WaitingPlan":
        """All rows if a version `has_news`, else those of files with due rows, or to be merged."""
        after, upto = move.before.watermark, move.after.release_ms
        gone = upto - correct_ms
        living = [file for file in files if file.max_keep > min(after, gone)]
        merged = to_merge(living, _MAX_MERGED_LATE_ROWS)
        old = _by_bucket(
            [f for f in living if has_news or f.path in merged or f.has_due(after, upto)]
        )
        parts = {
            partition: {
                "partition": partition,
                "files": [
                    {
                        "path": f.path,
                        "rewrite": f.path in merged,
                        "due": f.has_due(after, upto),
                    }
                    for f in here
                ],
                "after": after,
                "upto": upto,
                "gone": gone,
            }
            for partition, here in old.items()
        }
        known = {file.path for file in living}
        return cls(parts, tuple(file.path for file in files if file.path not in known))


def window_stage(
    partials: Iterable[Mapping[str, Any]],
    files: Sequence[StateFile],
    move: Advance,
    kind: WindowKind,
) -> StagePlan:
    """Select the buckets with new partials, due windows or files to merge.

    Sessions may merge, so a session bucket with news is rewritten as a whole.
    """
    after, upto = move.before.window_watermark, move.after.window_watermark
    merged = set(to_merge(files))
    new: dict[int, list[Mapping[str, Any]]] = {}
    for each in partials:
        new.setdefault(int(each["bucket"]), []).append(each)
    old = _by_bucket(files)
    parts = []
    for bucket in sorted({*new, *old}):
        mine = old.get(bucket, [])
        busy = bucket in new or any(file.has_due(after, upto) for file in mine)
        if kind is WindowKind.SESSION and busy:
            merged |= {file.path for file in mine}
        if not busy and not any(file.path in merged for file in mine):
            continue
        state = [_described(file, rewrite=file.path in merged) for file in mine]
        rows = sum(file.rows for file in mine) + sum(e.get("rows", 0) for e in new.get(bucket, ()))
        parts.append(
            _WorkItem(rows, {"bucket": bucket, "state": state, "partials": new.get(bucket, [])})
        )
    head = {"stage": "windows", "after": after, "upto": upto, "steps": _steps(move)}
    dead = {file.path for file in files if file.max_keep <= upto}
    return StagePlan(_items(head, parts), tuple(sorted(dead | merged)))


def _steps(move: Advance) -> list[int]:
    return [watermark for _, _, watermark in move.merged.steps]


def _described(file: StateFile, *, rewrite: bool) -> dict[str, Any]:
    return {
        "path": file.path,
        "min_due": file.min_due,
        "max_due": file.max_due,
        "max_keep": file.max_keep,
        "rewrite": rewrite,
    }


def _by_bucket(files: Iterable[StateFile]) -> dict[int, list[StateFile]]:
    buckets: dict[int, list[StateFile]] = {}
    for file in files:
        buckets.setdefault(file.bucket, []).append(file)
    return buckets


def _items(head: Mapping[str, Any], parts: Sequence[_WorkItem]) -> tuple[str, ...]:
    groups: list[list[Mapping[str, Any]]] = [[]]
    rows = 0
    for part in parts:
        if groups[-1] and rows + part.rows > RECORDS_WORTH_A_TASK:
            groups.append([])
            rows = 0
        groups[-1].append(part.value)
        rows += part.rows
    return tuple(json.dumps({**head, "parts": group}) for group in groups)


NOTHING = BatchReport({}, {}, ())


def steps_told(report: BatchReport) -> Steps:
    steps: dict[int, list[tuple[int, int]]] = {}
    for detail in report.details:
        for partition, rises in detail.get("steps", {}).items():
            steps.setdefault(int(partition), []).extend((o, w) for o, w in rises)
    return {partition: sorted(rises) for partition, rises in steps.items()}


def pinned_advance(spec: EventSpec, pin: Pin, scanned: BatchReport, steps: Steps | None) -> Advance:
    """How far the batch of `pin` advances the time; `steps` replaces the report of the scan.

    Raises:
        StateFormatError: the channels in the pin are damaged.
    """
    event = pin.of_event
    batch = batch_input(event, pin.end_offsets, steps, _heard(pin, scanned))
    return advance(spec, EventState.before(event), batch)


def _heard(pin: Pin, report: BatchReport) -> dict[int, Heard]:
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


MergedSteps = Mapping[int, Sequence[Sequence[int]]]
"""Partition → (offset, operator's watermark from there on)."""


class Stages(Protocol):
    """Runs single stages of one batch: on Spark's workers, or in this process."""

    def steps(self) -> BatchReport:
        """Stage `steps` over the records of the batch."""

    def scan(self, merged: MergedSteps | None) -> BatchReport:
        """Stage `scan`; `merged` where watermarks hold at once."""

    def act(self, plan: StagePlan) -> BatchReport:
        """Stage `act`, where windows come behind it."""

    def last(self, plan: StagePlan) -> BatchReport:
        """The last stage, `act` or `windows`, whose rows are the sink's."""

    def answer(self, waiting: Mapping[int, Mapping[str, Any]]) -> BatchReport:
        """The stage of a job with late rows: parts of a `WaitingPlan`, then the batch's records."""

    def files(self, name: str) -> Sequence[StateFile]:
        """The files of the state `waiting` or `windows` in the version that the batch has pinned.

        Raises:
            SluiceError: the version cannot be read any more.
        """


@dataclass(frozen=True, slots=True)
class StagedEvents:
    """A batch that has run all stages; `removed` has the obsolete files by state."""

    report: BatchReport
    move: Advance
    removed: Mapping[str, tuple[str, ...]]


def run_stages(spec: EventSpec, pin: Pin, stages: Stages) -> StagedEvents:
    if spec.late_wait_ms is not None:
        return _run_late_stages(spec, pin, stages)
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
    if spec.on_event:
        move = pinned_advance(spec, pin, NOTHING, steps_told(stages.steps()))
        return stages.scan(move.merged.by_partition), move
    report = stages.scan(None)
    return report, pinned_advance(spec, pin, report, None)


def _run_late_stages(spec: EventSpec, pin: Pin, stages: Stages) -> StagedEvents:
    move = pinned_advance(spec, pin, NOTHING, None)
    versions = spec.waited_versions(pin.versions)
    has_news = not move.before.tried(versions)
    waiting = WaitingPlan.of(stages.files("waiting"), move, spec.late_correct_ms, has_news=has_news)
    report = stages.answer(waiting.parts)
    rewritten = (path for each in report.details for path in each.get(REMOVED, ()))
    removed = tuple(sorted((*waiting.dead, *rewritten)))
    sums = move.before.late_rows or dict.fromkeys(LATE_SUMS, 0)
    after = replace(move.after, late_rows={**sums, "tried": versions})
    return StagedEvents(report, replace(move, after=after), {"waiting": removed})
