"""What Prometheus is told of jobs: states of all, numbers of those whose runners live.

Names follow FLIP-579 where it has one. Labels are the job's id and name, and the table's name as
the script has it; the number of jobs that are told one by one has a limit.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from service.jobs.leadership import ControlPlaneRole, Leadership
from service.jobs.store.job import JobState
from service.schemas.jobs import DimensionView, EventTimeView, GeneratorView, JobDetail

MOST_JOBS = 500
_JOB = ("job_id", "name")
_TABLE = (*_JOB, "table")
_CHANNEL = (*_JOB, "input", "partition")
_FIRST_MS, _LAST_MS = -(2**63), 2**63 - 1
Number = float | int | bool | None


@dataclass(frozen=True, slots=True)
class _Told:
    """One metric: its name without `sluice_`, what it means, and whether it only grows."""

    name: str
    help: str
    counts: bool = False

    def family(self, labels: Iterable[str]) -> GaugeMetricFamily | CounterMetricFamily:
        kind = CounterMetricFamily if self.counts else GaugeMetricFamily
        return kind(f"sluice_{self.name}", self.help, labels=tuple(labels))


JOB_METRICS = (
    _Told("job_runner_up", "1 while the job's runner lives."),
    _Told("job_crashes", "Runners that have ended by themselves, in a row."),
    _Told("job_restarts", "Runners started after the first one.", counts=True),
    _Told("job_status_age_seconds", "Time since the runner's last report."),
    _Told("job_stalled_parts", "Parts of the job that cannot go on."),
    _Told("job_current_phase", "0 in LOAD, 1 in JOIN."),
    _Told("job_held_records", "Records of the stream that wait for the gate, at most."),
    _Told("job_held_bytes", "Their size as the brokers have it."),
    _Told("job_lag_records", "Records of the stream that are not joined yet, at most."),
    _Told("job_batch", "Number of the newest committed batch."),
    _Told("job_joined_records", "Rows that were joined.", counts=True),
    _Told("job_num_matched_probe_records", "Records that have met a row.", counts=True),
    _Told("job_num_unmatched_probe_records", "Records that have met no row.", counts=True),
    _Told("job_dead_letters", "Records that have no rows.", counts=True),
)
EVENT_TIME_METRICS = (
    _Told("job_watermark_lag_seconds", "From the combined watermark to the clock."),
    _Told("job_waiting_rows", "Records that wait for the combined watermark."),
    _Told("job_waiting_bytes", "Their size in the job's directory."),
    _Told("job_window_rows", "Rows of the state of open windows."),
    _Told("job_fired_rows", "Rows that came out of windows.", counts=True),
    _Told("job_late_records", "Records behind the watermark: in the side output.", counts=True),
)
CHANNEL_METRICS = (
    _Told("channel_watermark_seconds", "The generator's watermark, since 1970."),
    _Told("channel_watermark_lag_seconds", "From the generator's watermark to the clock."),
    _Told("channel_idle", "1 while the others do not wait for the channel."),
)
TABLE_METRICS = (
    _Told("table_snapshot_rows_done", "Rows of the copy that are committed."),
    _Told("table_snapshot_rows_total", "Rows that the copy has, perhaps an estimate."),
    _Told("table_channels", "Partitions of the changelog topic."),
    _Told("table_channels_in_processing_time", "Those whose copy is complete and committed."),
    _Told("table_changelog_version", "Newest committed version."),
    _Told("table_index_version", "Newest version that can be looked up."),
    _Told("table_fold_version", "Version that `current` has."),
    _Told("table_generation", "Which copy of the table it is."),
    _Told("table_lag_records", "Records of the changelog topic that are not committed yet."),
    _Told("table_streamed_records", "Changes committed by this runner.", counts=True),
    _Told("table_binlog_delay_seconds", "From a change at the source to its commit."),
    _Told("table_freshness_seconds", "Age of the newest change as the newest batch saw it."),
)


def leadership_metrics(leadership: Leadership) -> Iterator[Metric]:
    """Which part this control plane has among those on one store."""
    leads = _Told("control_plane_leads", "1 while this control plane looks after the jobs.")
    term = _Told("control_plane_term", "How often leadership has changed; 0 with SQLite.")
    for metric, value in (
        (leads, leadership.role is ControlPlaneRole.LEADER),
        (term, leadership.term),
    ):
        family = metric.family(())
        family.add_metric((), float(value))
        yield family


def job_metrics(details: Iterable[JobDetail], by_state: Mapping[JobState, int]) -> Iterator[Metric]:
    """The metrics of all jobs; `details` are the ones that are told one by one."""
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
        }
    return values


def _table_values(table: DimensionView, detail: JobDetail) -> dict[str, Number]:
    switched = [channel.watermark.use_processing_time for channel in table.channels]
    freshness = {} if detail.probe is None else detail.probe.freshness_ms
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
    }


def _event_time_values(event_time: EventTimeView, now_ms: int) -> dict[str, Number]:
    behind_ms = None if event_time.use_processing_time else _behind(event_time.watermark_ms, now_ms)
    return {
        "job_watermark_lag_seconds": _seconds(behind_ms),
        "job_waiting_rows": event_time.waiting_rows,
        "job_waiting_bytes": event_time.waiting_bytes,
        "job_window_rows": event_time.window_rows,
        "job_fired_rows": event_time.fired_rows,
        "job_late_records": event_time.late_records,
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
