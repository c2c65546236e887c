"""The dashboard and the alert rules name what `/metrics` has, and the rules say when they should.

Prometheus' own tools judge: `promtool` runs the rules over series of numbers, and a Prometheus
reads a control plane.
"""

import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager

import httpx
import promql_parser
import pytest
import yaml

from service.api.routes.metrics import RequestCounters, job_metrics, leadership_metrics
from service.embedded.process import free_port
from service.jobs.leadership import Leadership
from tests.support.control_plane import ROOT, control_plane
from tests.support.modules import module
from tests.support.wait import wait_until

REQUIRED = "CI_NEEDS_PROMETHEUS"  # .ci/run sets it: without Prometheus' programs is an error then
OBSERVABILITY = module("docs/site/observability.py")
RULES = OBSERVABILITY.DIRECTORY / "alerts.yaml"
DASHBOARD = OBSERVABILITY.DIRECTORY / "dashboard.json"
JOB = {"job_id": "1", "name": "enrich"}
TABLE = {**JOB, "table": "users"}
EVERY_MINUTE = "1m"


def inventory():
    """Name of a sample → its labels."""
    requests = RequestCounters().registry.collect()
    known = {}
    for family in [*job_metrics((), {}), *leadership_metrics(Leadership(leads=True))]:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        known[name] = set(family._labelnames)
    assert {f.name for f in requests} >= {"sluice_http_requests", "sluice_http_request_seconds"}
    known["sluice_http_requests_total"] = {"method", "route", "status"}
    known["sluice_http_request_seconds_bucket"] = {"method", "route", "le"}
    return known


def parts_of(expression):
    """An expression of PromQL and all that it is made of."""
    yield expression
    for name in ("expr", "lhs", "rhs", "args", "vector_selector"):
        inner = getattr(expression, name, None)
        for each in inner if isinstance(inner, list) else [inner]:
            if each is not None and not isinstance(each, str):
                yield from parts_of(each)


def selectors():
    for text in OBSERVABILITY.expressions():
        for part in parts_of(promql_parser.parse(text)):
            if isinstance(part, promql_parser.VectorSelector):
                yield part


def test_the_files_are_those_that_make_docs_writes():
    for path, text in OBSERVABILITY.files().items():
        assert path.read_text(encoding="utf-8") == text, "run `make docs`, and commit it"


def test_every_metric_has_a_panel():
    shown = DASHBOARD.read_text(encoding="utf-8")
    missing = [name for name in inventory() if re.search(rf"\b{name}\b", shown) is None]
    assert missing == []


def test_no_expression_names_a_metric_or_a_label_that_is_not_there():
    known = inventory()
    found = list(selectors())
    assert {each.name for each in found} >= {"sluice_job_info", "sluice_jobs"}
    for each in found:
        assert each.name in known
        assert {m.name for m in each.matchers.matchers} <= known[each.name], each.name


def test_every_panel_has_a_place_of_its_own():
    places = [panel["gridPos"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
    cells = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


@pytest.mark.parametrize("alert", OBSERVABILITY.ALERTS, ids=lambda alert: alert.name)
def test_an_alert_leads_to_a_heading_of_the_runbook(alert):
    text = (ROOT / "deploy/RUNBOOK.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    links = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert alert.runbook in links | {""}


# What the rules say of series of numbers
# --------------------------------------------------------------------------------------------------


def program(name):
    path = shutil.which(name)
    if path is None and REQUIRED not in os.environ:
        pytest.skip(f"no {name} on PATH (Debian: prometheus)")
    assert path is not None, f"no {name} on PATH (Debian: prometheus)"
    return path


def series(name, labels, values):
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"{name}{{{inside}}}", "values": values}


def info(state, desired="RUNNING"):
    labels = {**JOB, "state": state, "desired_state": desired, "phase": "JOIN"}
    return series("sluice_job_info", labels, "1x60")


def of_job(name, values):
    return series(f"sluice_job_{name}", JOB, values)


def of_table(name, values):
    return series(f"sluice_table_{name}", TABLE, values)


ANSWERS = series("sluice_jobs", {"state": "JOINING"}, "1x120")
FINE = [
    *(ANSWERS, info("JOINING"), of_job("runner_up", "1x60"), of_job("stalled_parts", "0x60")),
    *(of_job("status_age_seconds", "1x60"), of_job("restarts_total", "1x60")),
    *(of_job("current_phase", "1x60"), of_job("lag_records", "100000+0x60")),
    *(of_job("dead_letters_total", "7x60"), of_job("open_dead_letters", "0x60")),
    of_job("watermark_lag_seconds", "5000x60"),
    *(of_table("snapshot_rows_done", "10x60"), of_table("lag_records", "0x60")),
    *(of_table("binlog_delay_seconds", "600x60"), of_table("holds", "0x60")),
    of_table("differences", "0x60"),
]
CASES = {
    "all_is_well": (FINE, []),
    "the_control_plane_is_gone": ([series("other", {}, "1x60")], ["SluiceDoesNotAnswer"]),
    "a_job_has_failed": ([ANSWERS, info("FAILED", "RUNNING")], ["SluiceJobFailed"]),
    "a_part_cannot_go_on": ([ANSWERS, of_job("stalled_parts", "2x60")], ["SluiceJobStalled"]),
    "a_part_could_not_go_on_for_a_moment": ([ANSWERS, of_job("stalled_parts", "0x57 1x3")], []),
    "a_job_has_no_runner": (
        [ANSWERS, info("JOINING"), of_job("runner_up", "0x60")],
        ["SluiceRunnerDown"],
    ),
    "a_job_is_paused": ([ANSWERS, info("PAUSED", "PAUSED"), of_job("runner_up", "0x60")], []),
    "a_job_is_finished": ([ANSWERS, info("FINISHED"), of_job("runner_up", "0x60")], []),
    "a_runner_is_silent": (
        [ANSWERS, of_job("status_age_seconds", "0+60x60")],
        ["SluiceRunnerSilent"],
    ),
    "a_runner_ends_again_and_again": (
        [ANSWERS, of_job("restarts_total", "0+0.2x60")],
        ["SluiceRunnerRestarts"],
    ),
    "a_copy_stands": (
        [ANSWERS, of_job("current_phase", "0x120"), of_table("snapshot_rows_done", "10x120")],
        ["SluiceCopyStands"],
    ),
    "one_of_two_copies_goes_on": (
        [
            *(ANSWERS, of_job("current_phase", "0x120")),
            of_table("snapshot_rows_done", "10x120"),
            series("sluice_table_snapshot_rows_done", {**JOB, "table": "rates"}, "0+1x120"),
        ],
        [],
    ),
    "a_join_is_slower_than_its_stream": (
        [ANSWERS, of_job("current_phase", "1x120"), of_job("lag_records", "100000+500x120")],
        ["SluiceFallsBehind"],
    ),
    "records_are_held_in_load": (
        [
            *(ANSWERS, of_job("current_phase", "0x120"), of_job("lag_records", "100000+500x120")),
            of_table("snapshot_rows_done", "0+1x120"),
        ],
        [],
    ),
    "changes_come_late": (
        [ANSWERS, of_table("binlog_delay_seconds", "90x60"), of_table("lag_records", "5x60")],
        ["SluiceTableOld"],
    ),
    "records_wait_for_a_table": ([ANSWERS, of_table("holds", "1x60")], ["SluiceTableHolds"]),
    "records_have_waited_for_a_moment": ([ANSWERS, of_table("holds", "0x57 1x3")], []),
    "a_copy_differs": ([ANSWERS, of_table("differences", "0x50 2x10")], ["SluiceCopyDiffers"]),
    "new_dead_letters": (
        [ANSWERS, of_job("open_dead_letters", "0x50 1x10")],
        ["SluiceDeadLetters"],
    ),
    "a_watermark_stands": (
        [ANSWERS, of_job("watermark_lag_seconds", "4000+60x60")],
        ["SluiceWatermarkStands"],
    ),
    "a_history_is_read_at_last": ([ANSWERS, of_job("watermark_lag_seconds", "90000-60x60")], []),
    "requests_fail": (
        [
            ANSWERS,
            series(
                "sluice_http_requests_total",
                {"method": "GET", "route": "/v1/jobs", "status": "500"},
                "0+1x60",
            ),
        ],
        ["SluiceRequestsFail"],
    ),
    "a_standby_is_asked_whether_it_is_ready": (
        [
            ANSWERS,
            series(
                "sluice_http_requests_total",
                {"method": "GET", "route": "/readyz", "status": "503"},
                "0+1x60",
            ),
        ],
        [],
    ),
    "a_standby_leads_after_a_while": (
        [
            ANSWERS,
            series("sluice_control_plane_leads", {"instance": "a"}, "1x20 0x40"),
            series("sluice_control_plane_leads", {"instance": "b"}, "0x20 1x40"),
        ],
        [],
    ),
    "nobody_leads": (
        [ANSWERS, series("sluice_control_plane_leads", {"instance": "a"}, "1x20 0x40")],
        ["SluiceNobodyLeads"],
    ),
    "requests_of_others_are_refused": (
        [
            ANSWERS,
            series(
                "sluice_http_requests_total",
                {"method": "GET", "route": "/v1/jobs", "status": "401"},
                "0+1x60",
            ),
        ],
        [],
    ),
}


@pytest.mark.matrix
@pytest.mark.parametrize(("inputs", "fires"), CASES.values(), ids=CASES)
def test_rules_say_what_is_wrong_and_nothing_else(processes, tmp_path, inputs, fires):
    minutes = min(sum(map(int, re.findall(r"x(\d+)", each["values"]))) for each in inputs)
    names = [alert.name for alert in OBSERVABILITY.ALERTS]
    document = {
        "rule_files": [str(RULES)],
        "tests": [
            {
                "interval": EVERY_MINUTE,
                "input_series": inputs,
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or '
                        "vector(0)",
                        "eval_time": f"{minutes}m",
                        "exp_samples": [{"labels": "{}", "value": int(name in fires)}],
                    }
                    for name in names
                ],
            }
        ],
    }
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    ran = subprocess.run(
        [program("promtool"), "test", "rules", str(path)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_there_is_a_case_for_every_alert():
    said = {name for _, fires in CASES.values() for name in fires}
    assert said == {alert.name for alert in OBSERVABILITY.ALERTS}


# A real Prometheus
# --------------------------------------------------------------------------------------------------


@contextmanager
def prometheus(directory, target):
    port = free_port()
    document = {
        "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "sluice", "static_configs": [{"targets": [target]}]}],
    }
    (directory / "prometheus.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    process = subprocess.Popen(
        [
            program("prometheus"),
            f"--config.file={directory / 'prometheus.yaml'}",
            f"--storage.tsdb.path={directory / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ]
    )
    try:
        yield f"http://127.0.0.1:{port}/api/v1"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.matrix
def test_prometheus_reads_a_control_plane_and_evaluates_every_rule(processes, tmp_path):
    port = free_port()

    def answered(url):
        try:
            answer = httpx.get(url, trust_env=False)
        except httpx.TransportError:
            return {}
        return answer.json()["data"] if answer.is_success else {}  # 503 until its log is read

    with (
        control_plane(tmp_path / "data", port=port),
        prometheus(tmp_path, f"127.0.0.1:{port}") as url,
    ):
        states = f"{url}/query?query=sluice_jobs"
        wait_until(lambda: answered(states).get("result"), what="Prometheus has read the metrics")
        rules = f"{url}/rules"

        def evaluated():
            groups = answered(rules).get("groups", ())
            found = [rule["health"] for group in groups for rule in group["rules"]]
            return found if found and "unknown" not in found else None

        health = wait_until(evaluated, what="the rules are evaluated")
    assert set(health) == {"ok"}
    assert len(health) == len(OBSERVABILITY.ALERTS)
