"""What an upgrade meets: names that older versions start processes by, and names in their files."""

import ast
import json
from importlib import import_module
from importlib.util import find_spec

import pytest

from joins.durable.probe_lives import Life
from joins.durable.requests import Fault
from joins.plan.stream_topics import StreamTopics
from joins.stream.guards import TopicGuard
from service.jobs.store.runner_files import CHOICES
from tests.support.hints import PACKAGES, ROOT
from watermark.errors import SluiceError

STARTED_BY = {
    "joins.adapters.datagen": "joins.adapters.datagen",
    "service.jobs.runner": "service.jobs.runner",
    "service.jobs.inspect": "service.jobs.inspect.__main__",
    "service.cli": "service.cli.main",
}
KEPT_FAULTS = [
    "access",
    "answered",
    "batch-not-committed",
    "busy",
    "checkpoint",
    "checkpoint-in-use",
    "config",
    "conflict",
    "constraint-violated",
    "control-plane",
    "definition",
    "demo",
    "disk-full",
    "embedded",
    "expired",
    "export",
    "expression",
    "failpoint",
    "fenced",
    "file-system",
    "forbidden",
    "foreign-record",
    "future-watermark",
    "guard",
    "index-build",
    "index-directory",
    "index-disk-full",
    "index-locked",
    "inspection",
    "invalid-parameter",
    "invalid-request",
    "invalid-transition",
    "jar-cache",
    "java-not-found",
    "job-conflict",
    "job-not-found",
    "job-state",
    "join",
    "logs-disagree",
    "lost-records",
    "missing-timestamp",
    "network",
    "not-allowed",
    "not-found",
    "not-readable",
    "not-replayable",
    "nothing-to-acknowledge",
    "offsets-went-back",
    "out-of-memory",
    "output-topic-changed",
    "partitions-missing",
    "permission-denied",
    "pinned-version-expired",
    "plan-format",
    "question",
    "records-expired",
    "records-lost",
    "refused",
    "repair",
    "request",
    "runner-absent",
    "secret",
    "server-changed",
    "server-start",
    "service",
    "shared-table",
    "sink",
    "sluice",
    "snapshot-needed",
    "snapshot-unproven",
    "source",
    "source-unavailable",
    "sql",
    "stale",
    "standby",
    "state-format",
    "stopping",
    "store",
    "store-refused",
    "store-unavailable",
    "submission",
    "table-conflict",
    "table-not-found",
    "token-limit",
    "token-not-found",
    "too-many-requests",
    "topic-identity-changed",
    "topic-missing",
    "unauthorized",
    "unavailable",
    "unknown-batch",
    "unknown-channel",
    "unknown-dimension",
    "unknown-letter",
    "unknown-topic",
    "unknown-version",
    "unreachable",
    "unreadable-schema",
    "update-refused",
    "verification",
    "version-expired",
    "vertex-not-found",
    "wait-timeout",
    "watermark",
    "watermark-regression",
]
ACKNOWLEDGED_AS = {
    "topic-missing",
    "topic-identity-changed",
    "partitions-missing",
    "offsets-went-back",
    "output-topic-changed",
    "records-lost",
    "logs-disagree",
    "pinned-version-expired",
    "snapshot-unproven",
    "foreign-record",
    "stale",
}


@pytest.mark.parametrize(("name", "place"), STARTED_BY.items(), ids=STARTED_BY)
def test_a_runner_that_lives_through_an_upgrade_finds_what_it_starts(name, place):
    spec = find_spec(name)
    assert spec is not None
    entry = f"{name}.__main__" if spec.submodule_search_locations else name
    assert import_module(entry).main is import_module(place).main


@pytest.mark.parametrize("name", ["topic-identity-changed", "offsets-went-back", "records-lost"])
def test_a_fault_of_the_stream_that_an_older_version_has_kept_still_waits(tmp_path, name):
    kept = {
        "format_version": 1,
        "life": "probe",
        "high_mark": {"0": 5},
        "low_mark": {},
        "faults": [{"type": name, "message": "what happened", "hint": "What to do."}],
        "at_ms": 1,
    }
    file = tmp_path / "guards.json"
    file.write_text(json.dumps(kept))
    fault = TopicGuard(file, Life("probe", 0, StreamTopics.one("clicks", "id"), {0: 0})).fault()
    assert fault is not None
    told = Fault.of(fault)
    assert (told.type, told.message, told.hint) == (name, "what happened", "What to do.")


def test_faults_have_the_names_that_jobs_and_clients_have_kept():
    stated = [
        keyword.value.value
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
        for keyword in node.keywords
        if keyword.arg == "fault"
    ]
    assert sorted([SluiceError.fault, *stated]) == KEPT_FAULTS


def test_faults_are_acknowledged_under_the_names_that_scripts_of_operators_have():
    assert set(CHOICES) == ACKNOWLEDGED_AS
