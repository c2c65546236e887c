"""`/metrics`: jobs, tables and requests in the text format of Prometheus.

Names follow FLIP-579 where it has one. Labels are the job's id and name, and the table's name in
the script; at most `MOST_JOBS` jobs are listed.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.http.access import VIEWER
from service.api.services import Injected, Services
from service.jobs.leadership import ControlPlaneRole, Leadership
from service.jobs.store.job import JobState
from service.jobs.store.rows import StoredJobs
from service.schemas.jobs import (
    DimensionView,
    EventTimeView,
    GeneratorView,
    JobDetail,
)
from service.schemas.verification import FreshnessView

MOST_JOBS = 500
_JOB = ("job_id", "name")
_TABLE = (*_JOB, "table")
_CHANNEL = (*_JOB, "input", "partition")
_FIRST_MS, _LAST_MS = -(2**63), 2**63 - 1
Number = float | int | bool | None


@dataclass(frozen=True, slots=True)
class _MetricFamily:
    """One metric; its name is without `sluice_`."""

    name: str
    help: str
    counts: bool = False

    def family(self, labels: Iterable[str]) -> GaugeMetricFamily | CounterMetricFamily:
        kind = CounterMetricFamily if self.counts else GaugeMetricFamily
        return kind(f"sluice_{self.name}", self.help, labels=tuple(labels))


JOB_METRICS = (
    _MetricFamily("job_runner_up", "1 while the job's runner is alive."),
    _MetricFamily("job_crashes", "Consecutive runner crashes."),
    _MetricFamily("job_restarts", "Runners started after the first one.", counts=True),
    _MetricFamily("job_status_age_seconds", "Time since the runner's last report."),
    _MetricFamily("job_stalled_parts", "Stalled parts of the job."),
    _MetricFamily("job_current_phase", "0 in LOAD, 1 in JOIN."),
    _MetricFamily(
        "job_held_records", "Upper bound of stream records held until every table is copied."
    ),
    _MetricFamily("job_held_bytes", "Size of the held records on the brokers."),
    _MetricFamily("job_lag_records", "Upper bound of stream records not yet joined."),
    _MetricFamily("job_batch", "Number of the newest committed batch."),
    _MetricFamily("job_joined_records", "Joined rows.", counts=True),
    _MetricFamily("job_num_matched_probe_records", "Records with a match.", counts=True),
    _MetricFamily("job_num_unmatched_probe_records", "Records without a match.", counts=True),
    _MetricFamily("job_dead_letters", "Dead letters, settled ones too.", counts=True),
    _MetricFamily("job_open_dead_letters", "Dead letters that need a replay or a discard."),
)
EVENT_TIME_METRICS = (
    _MetricFamily("job_watermark_lag_seconds", "Clock minus combined watermark."),
    _MetricFamily("job_waiting_rows", "Records waiting for the combined watermark."),
    _MetricFamily("job_waiting_bytes", "Size of the waiting records in the job's directory."),
    _MetricFamily("job_window_rows", "State rows of open windows."),
    _MetricFamily("job_fired_rows", "Rows fired by windows.", counts=True),
    _MetricFamily("job_late_records", "Late records, written to the side output.", counts=True),
    _MetricFamily(
        "job_late_rows_matched", "Records that waited for a row and left with it.", counts=True
    ),
    _MetricFamily(
        "job_late_rows_expired", "Records that waited to the bound, without a row.", counts=True
    ),
    _MetricFamily(
        "job_late_rows_corrected", "Records corrected by a row after the bound.", counts=True
    ),
)
CHANNEL_METRICS = (
    _MetricFamily("channel_watermark_seconds", "The generator's watermark, since 1970."),
    _MetricFamily("channel_watermark_lag_seconds", "Clock minus generator watermark."),
    _MetricFamily("channel_idle", "1 while the channel is idle."),
)
TABLE_METRICS = (
    _MetricFamily("table_snapshot_rows_done", "Committed snapshot rows."),
    _MetricFamily("table_snapshot_rows_total", "Snapshot rows in total, possibly an estimate."),
    _MetricFamily("table_channels", "Partitions of the changelog topic."),
    _MetricFamily("table_channels_in_processing_time", "Partitions whose snapshot is committed."),
    _MetricFamily("table_changelog_version", "Newest committed version."),
    _MetricFamily("table_index_version", "Newest indexed version."),
    _MetricFamily("table_fold_version", "Version of `current`."),
    _MetricFamily("table_generation", "Number of the snapshot."),
    _MetricFamily("table_lag_records", "Uncommitted records of the changelog topic."),
    _MetricFamily("table_streamed_records", "Changes committed by this runner.", counts=True),
    _MetricFamily("table_binlog_delay_seconds", "Time from a change at the source to its commit."),
    _MetricFamily("table_freshness_seconds", "Age of the newest change in the newest batch."),
    _MetricFamily("table_as_of_seconds", "T of the table as its source proves it, since 1970."),
    _MetricFamily("table_as_of_age_seconds", "Clock minus T at the runner's last report."),
    _MetricFamily("table_holds", "1 while records wait for the table (join.max-staleness)."),
    _MetricFamily("table_differences", "Rows that differed in the newest sluice verify."),
    _MetricFamily("table_verified_seconds", "When that was, since 1970."),
)


def leadership_metrics(leadership: Leadership) -> Iterator[Metric]:
    leads = _MetricFamily("control_plane_leads", "1 while this control plane leads.")
    term = _MetricFamily("control_plane_term", "Leadership changes; 0 with SQLite.")
    for metric, value in (
        (leads, leadership.role is ControlPlaneRole.LEADER),
        (term, leadership.term),
    ):
        family = metric.family(())
        family.add_metric((), float(value))
        yield family


def job_metrics(details: Iterable[JobDetail], by_state: Mapping[JobState, int]) -> Iterator[Metric]:
    states = GaugeMetricFamily("sluice_jobs", "Jobs by state.", labels=("state",))
    for state in JobState:
        states.add_metric((state.value,), by_state.get(state, 0))
    yield states
    info = GaugeMetricFamily(
        "sluice_job_info", "1 for each job.", labels=(*_JOB, "state", "desired_state", "phase")
    )
    of_jobs = {metric.name: metric.family(_JOB) for metric in (*JOB_METRICS, *EVENT_TIME_METRICS)}
    of_tables = {metric.name: metric.family(_TABLE) for metric in TABLE_METRICS}
    of_channels = {metric.name: metric.family(_CHANNEL) for metric in CHANNEL_METRICS}
    now_ms = time.time_ns() // 1_000_000
    for detail in details:
        job = (detail.id, detail.name)
        info.add_metric(
            (*job, detail.state.value, detail.desired_state.value, detail.phase or ""), 1
        )
        _add(of_jobs, job, _job_values(detail))
        if not detail.runner.alive:
            continue
        for table in detail.dimensions:
            _add(of_tables, (*job, table.name), _table_values(table, detail))
        if detail.event_time is None:
            continue
        _add(of_jobs, job, _event_time_values(detail.event_time, now_ms))
        for channel in detail.event_time.channels:
            labels = (*job, channel.input, channel.channel.removeprefix(f"{channel.input}/"))
            _add(of_channels, labels, _channel_values(channel, now_ms))
    yield info
    yield from of_jobs.values()
    yield from of_tables.values()
    yield from of_channels.values()


def _add(
    families: Mapping[str, GaugeMetricFamily | CounterMetricFamily],
    labels: tuple[str, ...],
    values: Mapping[str, Number],
) -> None:
    for name, value in values.items():
        if value is not None:
            families[name].add_metric(labels, float(value))


def _job_values(detail: JobDetail) -> dict[str, Number]:
    runner, probe = detail.runner, detail.probe
    values: dict[str, Number] = {
        "job_runner_up": runner.alive,
        "job_crashes": runner.crashes,
        "job_restarts": runner.restarts,
    }
    if not runner.alive:
        return values
    values["job_status_age_seconds"] = _seconds(runner.status_age_ms)
    is_live = detail.report is not None and detail.report.is_live
    values["job_stalled_parts"] = len(detail.stalls) if is_live else None
    values["job_current_phase"] = None if detail.phase is None else detail.phase == "JOIN"
    if probe is not None:
        values |= {
            "job_held_records": probe.held_records,
            "job_held_bytes": probe.held_bytes,
            "job_lag_records": probe.lag_records,
            "job_batch": probe.batch,
            "job_joined_records": probe.joined_records,
            "job_num_matched_probe_records": probe.matched,
            "job_num_unmatched_probe_records": probe.unmatched,
            "job_dead_letters": probe.dead_letters,
            "job_open_dead_letters": probe.letters_to_settle,
        }
    return values


def _table_values(table: DimensionView, detail: JobDetail) -> dict[str, Number]:
    switched = [channel.watermark.use_processing_time for channel in table.channels]
    freshness = {} if detail.probe is None else detail.probe.freshness_ms
    proven = table.freshness or FreshnessView()
    verified = table.verified
    held = () if detail.holding is None else [each.table for each in detail.holding.tables]
    return {
        "table_snapshot_rows_done": table.snapshot.rows_done,
        "table_snapshot_rows_total": table.snapshot.rows_total,
        "table_channels": len(switched),
        "table_channels_in_processing_time": sum(switched),
        "table_changelog_version": table.changelog_version,
        "table_index_version": table.index_version,
        "table_fold_version": table.fold_version,
        "table_generation": table.generation,
        "table_lag_records": table.lag_records,
        "table_streamed_records": table.streamed_records,
        "table_binlog_delay_seconds": _seconds(table.binlog_delay_ms),
        "table_freshness_seconds": _seconds(freshness.get(table.name)),
        "table_as_of_seconds": _seconds(proven.as_of_ms),
        "table_as_of_age_seconds": _seconds(proven.age_ms),
        "table_holds": table.name in held,
        "table_differences": None if verified is None else verified.differences,
        "table_verified_seconds": None if verified is None else _seconds(verified.at_ms),
    }


def _event_time_values(event_time: EventTimeView, now_ms: int) -> dict[str, Number]:
    behind_ms = None if event_time.use_processing_time else _behind(event_time.watermark_ms, now_ms)
    late = event_time.late_rows
    return {
        "job_watermark_lag_seconds": _seconds(behind_ms),
        "job_waiting_rows": event_time.waiting_rows,
        "job_waiting_bytes": event_time.waiting_bytes,
        "job_window_rows": event_time.window_rows,
        "job_fired_rows": event_time.fired_rows,
        "job_late_records": event_time.late_records,
        "job_late_rows_matched": None if late is None else late.matched,
        "job_late_rows_expired": None if late is None else late.expired,
        "job_late_rows_corrected": None if late is None else late.corrected,
    }


def _channel_values(channel: GeneratorView, now_ms: int) -> dict[str, Number]:
    behind_ms = _behind(channel.watermark_ms, now_ms)
    at_ms = None if behind_ms is None else channel.watermark_ms
    return {
        "channel_watermark_seconds": _seconds(at_ms),
        "channel_watermark_lag_seconds": _seconds(behind_ms),
        "channel_idle": channel.status == "IDLE",
    }


def _behind(watermark_ms: int | None, now_ms: int) -> int | None:
    if watermark_ms is None or watermark_ms in (_FIRST_MS, _LAST_MS):
        return None
    return now_ms - watermark_ms


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


_METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
router = APIRouter(tags=["health"], dependencies=[VIEWER])


class RequestCounters:
    """Request counters by route template; paths are not labels, as clients choose them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "sluice_http_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "sluice_http_request_seconds",
            "From a request to the beginning of its answer.",
            ("method", "route"),
            buckets=_BUCKETS_S,
            registry=self.registry,
        )

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = getattr(scope.get("route"), "path", None) or "none"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


class RequestMetrics:
    """Middleware that counts answers."""

    def __init__(self, app: ASGIApp, *, counters: RequestCounters) -> None:
        self._app = app
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, counted = time.perf_counter(), False

        async def send_and_count(message: Message) -> None:
            nonlocal counted
            if message["type"] == "http.response.start":
                counted = True
                self._counters.count(scope, message["status"], time.perf_counter() - started)
            await send(message)

        try:
            await self._app(scope, receive, send_and_count)
        except Exception:
            if not counted:
                self._counters.count(scope, 500, time.perf_counter() - started)
            raise


class JobCollector(Collector):
    """Collects the metrics of jobs at each scrape."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def describe(self) -> list[Metric]:
        """Empty, as the registry would otherwise collect to learn the names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Metrics from the store and the newest reports; only the leader exports jobs."""
        leadership = self._services.leadership
        yield from leadership_metrics(leadership)
        if leadership.role is not ControlPlaneRole.LEADER:
            return
        store = self._services.store
        jobs = store.page(limit=MOST_JOBS)
        counts = store.look(StoredJobs.count_by_state)
        yield from job_metrics(map(self._services.detail, jobs), counts)


@router.get("/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse)
def show_metrics(request: Request, services: Injected) -> Response:
    """Jobs, tables, requests and this process."""
    jobs = CollectorRegistry()
    jobs.register(JobCollector(services))
    counters: RequestCounters = request.app.state.requests
    text = generate_latest(jobs) + generate_latest(counters.registry)
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)
