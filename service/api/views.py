"""Builds wire models from a stored job, its runner and the runner's report."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from service.jobs.inspect.facts import shown
from service.jobs.inspect.status_words import place_of, status_words
from service.jobs.store.job import Job, JobError, JobState
from service.jobs.store.runner_files import Status
from service.jobs.supervise.watch import UNRESPONSIVE, RunnerView
from service.schemas.inspection import StallView, WarningView
from service.schemas.jobs import (
    ErrorView,
    InputView,
    JobDetail,
    JobProgress,
    JobSummary,
    ListedJob,
    ProbeView,
    ReportView,
    RunnerState,
    SinkView,
    StatusView,
)
from service.schemas.verification import VerifiedView

_WARNING_HINTS = {
    "submission": "Submit a corrected script if this is not intended.",
    "report": "Check the runner's log; another version of the program may have written it.",
}


@dataclass(frozen=True, slots=True)
class PlannedEnds:
    """What a stored plan reads and writes."""

    sinks: Sequence[SinkView] = ()
    inputs: Sequence[InputView] = ()


def listed_job(job: Job, status: Status | None, runner: RunnerView, ends: PlannedEnds) -> ListedJob:
    glance = _glance(job_detail(job, status, runner, ends=ends))
    return ListedJob(**glance, sinks=list(ends.sinks), inputs=list(ends.inputs))


def _glance(detail: JobDetail) -> dict[str, Any]:
    own = {name: getattr(detail, name) for name in JobSummary.model_fields}
    times = [
        None if each.freshness is None else each.freshness.as_of_ms for each in detail.dimensions
    ]
    known = [at_ms for at_ms in times if at_ms is not None]
    own["as_of_ms"] = min(known) if known and len(known) == len(times) else None
    probe = detail.probe
    if probe is None:
        return own
    shared = ListedJob.model_fields.keys() & ProbeView.model_fields.keys() - {"freshness_ms"}
    ages = [age_ms for age_ms in probe.freshness_ms.values() if age_ms is not None]
    numbers = {name: getattr(probe, name) for name in shared}
    return {**own, **numbers, "freshness_ms": max(ages, default=None)}


def job_detail(
    job: Job,
    status: Status | None,
    runner: RunnerView,
    acknowledgements: Sequence[Mapping[str, Any]] = (),
    of_machine: Sequence[WarningView] = (),
    ends: PlannedEnds | None = None,
) -> JobDetail:
    """The job with the last report of its runner, and warnings about the machine.

    `ends` are those of its plan, where they are known already.
    """
    is_live = _is_live(job, status, runner)
    content = {} if status is None else shown(status.content, is_live=is_live)
    ends = ends or ends_of(job.plan)
    if isinstance(content.get("probe"), Mapping):
        content["probe"] = {**content["probe"], "generated": _generated(ends)}
    warnings: list[Any] = [*of_machine, *(submission_warning(text) for text in job.warnings)]
    own = {
        **_summary(job, status),
        "sql": job.sql,
        "sinks": list(ends.sinks),
        "inputs": list(ends.inputs),
        "warnings": warnings,
        "acknowledgements": [dict(each) for each in acknowledgements],
        "report": None
        if status is None
        else ReportView(pid=status.pid, at_ms=status.updated_at_ms, is_live=is_live),
        "runner": RunnerState(
            **asdict(runner),
            status_age_ms=None if status is None else status.age_ms(),
            crashes=job.crashes,
            restarts=job.restarts,
        ),
    }
    try:
        reported = {name: content[name] for name in JobProgress.model_fields if name in content}
        all_warnings = [*warnings, *(content.get("warnings") or ())]
        detail = JobDetail.model_validate({**own, **reported, "warnings": all_warnings})
    except (ValidationError, TypeError) as exc:
        warnings.append(_warning("report", f"The runner's report cannot be read{_place(exc)}."))
        detail = JobDetail.model_validate(own)
    return detail.model_copy(
        update={
            "status": _status(job, detail),
            "error": _placed_error(detail.error, status),
            "stalls": [
                StallView(**{**stall.model_dump(), "place": place_of(stall.part, stall.type)})
                for stall in detail.stalls
            ],
        }
    )


def _placed_error(error: ErrorView | None, status: Status | None) -> ErrorView | None:
    """`error` with its place, which its report knows when the runner has ended, too."""
    if error is None:
        return None
    reported = status is not None and status.error is not None and status.error.type == error.type
    stalls = status.content.get("stalls") if status is not None and reported else None
    first = stalls[0] if isinstance(stalls, list) and stalls else {}
    part = str(first.get("part") or "") if isinstance(first, Mapping) else ""
    return ErrorView(**{**error.model_dump(), "place": place_of(part, error.type)})


def _status(job: Job, detail: JobDetail) -> StatusView:
    words = status_words(detail.model_dump(mode="json", by_alias=True))
    since_ms = words.since_ms or job.since_ms or job.updated_at_ms
    return StatusView(**{**asdict(words), "since_ms": since_ms})


def with_verifications(detail: JobDetail, results: Mapping[str, Mapping[str, Any]]) -> JobDetail:
    """The job with the newest comparison of each table, and a warning where rows differ."""
    dimensions, warnings = [], list(detail.warnings)
    for dimension in detail.dimensions:
        result = results.get(dimension.name)
        if result is None or result["generation"] != dimension.generation:
            dimensions.append(dimension)  # a newer copy has other rows
            continue
        verified = VerifiedView(
            at_ms=result["ended_at_ms"],
            rows=result["rows"],
            differences=result["differences"],
            sample=result["sample"],
            position=result["position"],
        )
        dimensions.append(dimension.model_copy(update={"verified": verified}))
        if verified.differences:
            is_repaired = result["source"] == "mysql-cdc"
            warnings.append(_differs(detail.id, dimension.name, verified, is_repaired))
    return detail.model_copy(update={"dimensions": dimensions, "warnings": warnings})


def _differs(job_id: str, table: str, verified: VerifiedView, is_repaired: bool) -> WarningView:
    command = f"sluice verify {job_id} --table {table}"
    mend = (
        f"{command} --repair sends them again while the job joins"
        if is_repaired
        else "write each of them again at the source, or submit the job again"
    )
    rows = "row differs" if verified.differences == 1 else "rows differ"
    return WarningView(
        type="copy-differs",
        message=f'{verified.differences} {rows} between table "{table}" and its source, of '
        f"{verified.rows} that were compared",
        hint=f"List them with {command}; {mend}.",
    )


def _is_live(job: Job, status: Status | None, runner: RunnerView) -> bool:
    if status is None or not runner.alive or status.pid != runner.pid:
        return False
    return job.error is None or job.error.type != UNRESPONSIVE


_DAMAGED = (ValueError, KeyError, TypeError, AttributeError)
"""What a damaged plan raises: it names nothing then, and the runner reports it."""


def ends_of(plan: bytes) -> PlannedEnds:
    inserts = _inserts_of(plan)
    return PlannedEnds(_sinks_of(inserts), _inputs_of(inserts))


def _inserts_of(plan: bytes) -> list[Any]:
    try:
        stored = orjson.loads(plan)
        return [stored, *stored.get("more_inserts", ())]
    except _DAMAGED:
        return []


def _sinks_of(inserts: Sequence[Any]) -> list[SinkView]:
    try:
        return [_sink(number, insert) for number, insert in enumerate(inserts, start=1)]
    except _DAMAGED:
        return []


def _inputs_of(inserts: Sequence[Any]) -> list[InputView]:
    try:
        probes = [each["probe"] for each in inserts if each.get("probe")]
        streams = [view for probe in probes for view in _streams(probe)]
        tables = [_table(each) for insert in inserts for each in insert.get("dimensions", ())]
        return list({(each.connector, each.place): each for each in [*streams, *tables]}.values())
    except _DAMAGED:
        return []


def _generated(ends: PlannedEnds) -> str | None:
    """The first table whose records the job itself generates."""
    return next((each.table for each in ends.inputs if each.connector == "datagen"), None)


def _streams(probe: Mapping[str, Any]) -> list[InputView]:
    source = probe["source"]
    table, kind = probe["table"], source["kind"]
    topics = [source.get("kafka", {}).get("topic"), *source.get("more_topics", ())]
    return [InputView(table=table, connector=kind, place=topic) for topic in topics]


def _table(dimension: Mapping[str, Any]) -> InputView:
    source = dimension["source"]
    place = source.get("path") or source.get("job_id") or source.get("kafka", {}).get("topic")
    if source["kind"] in ("mysql-cdc", "jdbc"):
        place = f"{source['hostname']}:{source['port']}/{source['database']}.{source['table']}"
    return InputView(table=dimension["name"], connector=source["kind"], place=place)


def _sink(number: int, insert: Mapping[str, Any]) -> SinkView:
    sink = insert["sink"]
    place = sink.get("path") or sink.get("kafka", {}).get("topic")
    table = insert["sink_table"]
    return SinkView(insert=number, table=table, connector=sink["kind"], place=place)


def submission_warning(text: str) -> WarningView:
    return _warning("submission", text)


def _warning(kind: str, text: str) -> WarningView:
    return WarningView(type=kind, message=text, hint=_WARNING_HINTS[kind])


def _place(exc: Exception) -> str:
    if not isinstance(exc, ValidationError):
        return ""
    return " at " + ".".join(str(part) for part in exc.errors()[0]["loc"])


def _summary(job: Job, status: Status | None) -> dict[str, Any]:
    phase = None if status is None else status.content.get("phase")
    mute = job.error is not None and job.error.type == UNRESPONSIVE
    speaks = status is not None and status.state is job.state and bool(status.reason) and not mute
    return {
        "id": job.id,
        "name": job.name,
        "state": job.state,
        "desired_state": job.desired_state,
        "phase": phase if phase in ("LOAD", "JOIN") else None,
        "reason": status.reason if status is not None and speaks else job.reason,
        "error": _error(job, status),
        "created_at_ms": job.created_at_ms,
        "updated_at_ms": job.updated_at_ms,
        "shared_table": job.shared_table,
    }


def _error(job: Job, status: Status | None) -> ErrorView | None:
    error: JobError | None = job.error
    mute = error is not None and error.type == UNRESPONSIVE
    if status is not None and status.state is job.state and not mute:
        reported = status.error if job.state in (JobState.STALLED, JobState.FAILED) else None
        error = reported or error  # one stall may follow another without a transition
    return None if error is None else ErrorView(**asdict(error))
