"""Writes `deploy/observability`: Grafana's dashboard and Prometheus' alert rules.

Both are about the metrics of `/metrics`; a test sees that each of them has a panel and that no
expression names another one. `make docs` writes the files anew.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from grafana_foundation_sdk.builders.common import VizLegendOptions, VizTooltipOptions
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / "deploy/observability"
_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_OF_JOBS = '{name=~"$job"}'
_RATE = "$__rate_interval"


@dataclass(frozen=True)
class Panel:
    """One chart.

    Attributes:
        unit: as Grafana names it.
        queries: legend → expression of PromQL; `name` and other labels in `{{…}}`.
    """

    title: str
    unit: str
    queries: dict[str, str]
    description: str = ""


@dataclass(frozen=True)
class Alert:
    """One rule.

    Attributes:
        held: how long the expression has to hold, as Prometheus writes a duration.
        summary: for people, with labels in `{{ $labels.… }}`.
        runbook: the heading of deploy/RUNBOOK.md, as its link; empty for the page's beginning.
    """

    name: str
    expression: str
    held: str
    severity: str
    summary: str
    runbook: str = ""


def _gauge(metric: str) -> str:
    return f"{metric}{_OF_JOBS}"


def _rate(metric: str) -> str:
    return f"rate({metric}{_OF_JOBS}[{_RATE}])"


ROWS: dict[str, tuple[Panel, ...]] = {
    "Jobs": (
        Panel("Jobs by state", "short", {"{{state}}": "sluice_jobs > 0"}),
        Panel("Runners that live", "bool", {"{{name}}": _gauge("sluice_job_runner_up")}),
        Panel(
            "Parts that cannot go on",
            "short",
            {"{{name}}": _gauge("sluice_job_stalled_parts")},
            "`sluice jobs get JOB` says which, why and what to do.",
        ),
        Panel(
            "Restarts and crashes",
            "short",
            {
                "{{name}} restarts": f"increase(sluice_job_restarts_total{_OF_JOBS}[{_RATE}])",
                "{{name}} crashes in a row": _gauge("sluice_job_crashes"),
            },
        ),
        Panel("Age of the last report", "s", {"{{name}}": _gauge("sluice_job_status_age_seconds")}),
        Panel(
            "Gate: 0 closed (LOAD), 1 open (JOIN)",
            "short",
            {"{{name}}": _gauge("sluice_job_current_phase")},
        ),
    ),
    "Stream": (
        Panel("Joined rows", "rowsps", {"{{name}}": _rate("sluice_job_joined_records_total")}),
        Panel("Records behind the stream", "short", {"{{name}}": _gauge("sluice_job_lag_records")}),
        Panel("Records held", "short", {"{{name}}": _gauge("sluice_job_held_records")}),
        Panel("Bytes held", "bytes", {"{{name}}": _gauge("sluice_job_held_bytes")}),
        Panel(
            "Records that met a row, and none",
            "cps",
            {
                "{{name}} matched": _rate("sluice_job_num_matched_probe_records_total"),
                "{{name}} unmatched": _rate("sluice_job_num_unmatched_probe_records_total"),
            },
        ),
        Panel("Dead letters", "cps", {"{{name}}": _rate("sluice_job_dead_letters_total")}),
        Panel("Open dead letters", "short", {"{{name}}": _gauge("sluice_job_open_dead_letters")}),
        Panel("Batches", "cps", {"{{name}}": f"deriv(sluice_job_batch{_OF_JOBS}[{_RATE}])"}),
    ),
    "Tables": (
        Panel(
            "Copied rows",
            "percentunit",
            {
                "{{name}} {{table}}": f"{_gauge('sluice_table_snapshot_rows_done')} / "
                f"{_gauge('sluice_table_snapshot_rows_total')}"
            },
        ),
        Panel(
            "Channels whose copy is complete",
            "percentunit",
            {
                "{{name}} {{table}}": f"{_gauge('sluice_table_channels_in_processing_time')} / "
                f"{_gauge('sluice_table_channels')}"
            },
        ),
        Panel(
            "Age of the newest change that a batch saw",
            "s",
            {"{{name}} {{table}}": _gauge("sluice_table_freshness_seconds")},
        ),
        Panel(
            "As of: T that a table's source proves",
            "dateTimeAsIso",
            {"{{name}} {{table}}": f"1000 * {_gauge('sluice_table_as_of_seconds')}"},
        ),
        Panel(
            "Age of T at the last report",
            "s",
            {"{{name}} {{table}}": _gauge("sluice_table_as_of_age_seconds")},
        ),
        Panel(
            "Records wait for the table (join.max-staleness)",
            "bool_yes_no",
            {"{{name}} {{table}}": _gauge("sluice_table_holds")},
        ),
        Panel(
            "Rows that differ from the source",
            "short",
            {"{{name}} {{table}}": _gauge("sluice_table_differences")},
            "Of the newest `sluice verify`; `--repair` sends them again.",
        ),
        Panel(
            "When a table was verified",
            "dateTimeAsIso",
            {"{{name}} {{table}}": f"1000 * {_gauge('sluice_table_verified_seconds')}"},
        ),
        Panel(
            "From a change to its commit",
            "s",
            {"{{name}} {{table}}": _gauge("sluice_table_binlog_delay_seconds")},
        ),
        Panel(
            "Changes committed",
            "cps",
            {"{{name}} {{table}}": _rate("sluice_table_streamed_records_total")},
        ),
        Panel(
            "Changes not committed yet",
            "short",
            {"{{name}} {{table}}": _gauge("sluice_table_lag_records")},
        ),
        Panel(
            "Versions",
            "short",
            {
                "{{name}} {{table}} changelog": _gauge("sluice_table_changelog_version"),
                "{{name}} {{table}} index": _gauge("sluice_table_index_version"),
                "{{name}} {{table}} fold": _gauge("sluice_table_fold_version"),
            },
        ),
        Panel("Copies", "short", {"{{name}} {{table}}": _gauge("sluice_table_generation")}),
    ),
    "Event time": (
        Panel(
            "Combined watermark behind the clock",
            "s",
            {"{{name}}": _gauge("sluice_job_watermark_lag_seconds")},
        ),
        Panel(
            "Watermarks of channels behind the clock",
            "s",
            {"{{name}} {{input}}/{{partition}}": _gauge("sluice_channel_watermark_lag_seconds")},
        ),
        Panel(
            "Watermarks of channels",
            "dateTimeAsIso",
            {
                "{{name}} {{input}}/{{partition}}": f"{_gauge('sluice_channel_watermark_seconds')}"
                " * 1000"
            },
        ),
        Panel(
            "Idle channels",
            "short",
            {"{{name}}": f"sum by (name) ({_gauge('sluice_channel_idle')})"},
        ),
        Panel(
            "Rows that wait for the watermark",
            "short",
            {
                "{{name}}": _gauge("sluice_job_waiting_rows"),
                "{{name}} of open windows": _gauge("sluice_job_window_rows"),
            },
        ),
        Panel("Bytes that wait", "bytes", {"{{name}}": _gauge("sluice_job_waiting_bytes")}),
        Panel("Rows out of windows", "rowsps", {"{{name}}": _rate("sluice_job_fired_rows_total")}),
        Panel("Late records", "cps", {"{{name}}": _rate("sluice_job_late_records_total")}),
        Panel(
            "Records that waited for a row",
            "cps",
            {
                "{{name}}, matched": _rate("sluice_job_late_rows_matched_total"),
                "{{name}}, at the bound": _rate("sluice_job_late_rows_expired_total"),
                "{{name}}, corrected": _rate("sluice_job_late_rows_corrected_total"),
            },
        ),
    ),
    "Control plane": (
        Panel("Which control plane leads", "bool", {"{{instance}}": "sluice_control_plane_leads"}),
        Panel("Terms of leadership", "short", {"{{instance}}": "sluice_control_plane_term"}),
        Panel(
            "Requests",
            "reqps",
            {
                "{{method}} {{status}}": "sum by (method, status) "
                f"(rate(sluice_http_requests_total[{_RATE}]))"
            },
        ),
        Panel(
            "Time to answer, 99 %",
            "s",
            {
                "{{route}}": "histogram_quantile(0.99, sum by (route, le) "
                f"(rate(sluice_http_request_seconds_bucket[{_RATE}])))"
            },
        ),
    ),
}
ALERTS = (
    Alert(
        "SluiceDoesNotAnswer",
        "absent(sluice_jobs)",
        "5m",
        "critical",
        "The control plane of Sluice has given Prometheus no metrics for 5 minutes.",
        "it-does-not-start-tokens-tls",
    ),
    Alert(
        "SluiceNobodyLeads",
        "max(sluice_control_plane_leads) == 0",
        "2m",
        "critical",
        "No control plane of Sluice has led for 2 minutes: no job runs, and none can be changed.",
        "no-control-plane-leads",
    ),
    Alert(
        "SluiceJobFailed",
        'sluice_job_info{state="FAILED"} == 1',
        "0m",
        "critical",
        "Job {{ $labels.name }} cannot go on by itself.",
        "failed",
    ),
    Alert(
        "SluiceJobStalled",
        "sluice_job_stalled_parts > 0",
        "5m",
        "critical",
        "{{ $value }} parts of job {{ $labels.name }} have waited for 5 minutes for something that "
        "is not there.",
        "stalled",
    ),
    Alert(
        "SluiceRunnerDown",
        "sluice_job_runner_up == 0 and on (job_id, name) "
        'sluice_job_info{desired_state="RUNNING", state!~"FAILED|FINISHED"} == 1',
        "5m",
        "critical",
        "Job {{ $labels.name }} shall run, and has had no runner for 5 minutes.",
        "runner-crashed",
    ),
    Alert(
        "SluiceRunnerSilent",
        "sluice_job_status_age_seconds > 60",
        "2m",
        "warning",
        "The runner of job {{ $labels.name }} last said how it is {{ $value }} s ago.",
        "runner-unresponsive",
    ),
    Alert(
        "SluiceRunnerRestarts",
        "increase(sluice_job_restarts_total[30m]) > 3",
        "0m",
        "warning",
        "The runner of job {{ $labels.name }} has ended by itself more than 3 times in 30 minutes.",
        "runner-crashed",
    ),
    Alert(
        "SluiceCopyStands",
        "(sluice_job_current_phase == 0) unless on (job_id, name) "
        "(sum by (job_id, name) (changes(sluice_table_snapshot_rows_done[30m])) > 0)",
        "30m",
        "warning",
        "Job {{ $labels.name }} is in LOAD, and no row has been copied for 30 minutes: records of "
        "the stream wait.",
        "stuck-in-load",
    ),
    Alert(
        "SluiceFallsBehind",
        "(deriv(sluice_job_lag_records[30m]) > 0) and (sluice_job_lag_records > 100000) "
        "and on (job_id, name) (sluice_job_current_phase == 1)",
        "30m",
        "warning",
        "Job {{ $labels.name }} joins less than comes: it has been falling behind for 30 minutes.",
    ),
    Alert(
        "SluiceTableOld",
        "(sluice_table_binlog_delay_seconds > 60) and (sluice_table_lag_records > 0)",
        "10m",
        "warning",
        "Changes of table {{ $labels.table }} reach job {{ $labels.name }} after {{ $value }} s.",
    ),
    Alert(
        "SluiceTableHolds",
        "sluice_table_holds == 1",
        "5m",
        "warning",
        "Records of job {{ $labels.name }} have waited for 5 minutes: table {{ $labels.table }} is "
        "older than join.max-staleness allows.",
        "holding",
    ),
    Alert(
        "SluiceCopyDiffers",
        "sluice_table_differences > 0",
        "0m",
        "warning",
        "{{ $value }} rows of table {{ $labels.table }} in job {{ $labels.name }} differ from the "
        "source.",
        "copy-differs",
    ),
    Alert(
        "SluiceDeadLetters",
        "sluice_job_open_dead_letters > 0",
        "0m",
        "warning",
        "Job {{ $labels.name }} has {{ $value }} open dead letters: sluice dlq ls says why.",
        "dead-letters",
    ),
    Alert(
        "SluiceWatermarkStands",
        "(sluice_job_watermark_lag_seconds > 3600) and on (job_id, name) "
        "(delta(sluice_job_watermark_lag_seconds[15m]) > 600)",
        "15m",
        "warning",
        "The watermark of job {{ $labels.name }} stands: nothing comes out in event time.",
        "join-and-nothing-comes-out-in-event-time",
    ),
    Alert(
        "SluiceRequestsFail",
        "sum by (route) "
        '(rate(sluice_http_requests_total{status=~"5..", route!="/readyz"}[5m])) > 0',
        "10m",
        "warning",
        "Requests of {{ $labels.route }} end in an error of the control plane.",
        "requests-that-take-long",
    ),
)


def dashboard() -> str:
    """The dashboard, as Grafana imports it."""
    built = (
        Dashboard("Sluice")
        .uid("sluice")
        .tags(["sluice"])
        .refresh("10s")
        .time("now-1h", "now")
        .tooltip(1)
        .with_variable(DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(
            QueryVariable("job")
            .label("Job")
            .datasource(_SOURCE)
            .query("label_values(sluice_job_info, name)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    )
    for title, panels in ROWS.items():
        built = built.with_row(Row(title))
        for panel in panels:
            built = built.with_panel(_chart(panel))
    return json.dumps(built.build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _chart(panel: Panel) -> TimeSeries:
    chart = (
        TimeSeries()
        .title(panel.title)
        .description(panel.description)
        .unit(panel.unit)
        .datasource(_SOURCE)
        .span(8)
        .height(7)
        .line_width(1)
        .fill_opacity(8)
        .legend(
            VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    )
    for index, (legend, expression) in enumerate(panel.queries.items()):
        query = Dataquery().expr(expression).legend_format(legend).ref_id(chr(ord("A") + index))
        chart = chart.with_target(query.datasource(_SOURCE))
    return chart


def alerts() -> str:
    """The rules, as Prometheus loads them."""
    rules = [_rule(alert) for alert in ALERTS]
    text = yaml.safe_dump(
        {"groups": [{"name": "sluice", "rules": rules}]}, sort_keys=False, width=100
    )
    return "# Written by `make docs` (docs/site/observability.py).\n" + text


def _rule(alert: Alert) -> dict[str, Any]:
    link = f"deploy/RUNBOOK.md#{alert.runbook}" if alert.runbook else "deploy/RUNBOOK.md"
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.held,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "runbook": link},
    }


def files() -> dict[Path, str]:
    """What `make docs` writes."""
    return {DIRECTORY / "dashboard.json": dashboard(), DIRECTORY / "alerts.yaml": alerts()}


def expressions() -> Iterable[str]:
    """All expressions of both, without Grafana's variables."""
    for panels in ROWS.values():
        for panel in panels:
            for expression in panel.queries.values():
                yield expression.replace(_RATE, "5m").replace("$job", ".*")
    for alert in ALERTS:
        yield alert.expression


def main() -> None:
    """Write each file that is not as it should be."""
    for path, text in files().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
