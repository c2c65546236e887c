"""Spans that a collector has not taken: sent again, each once."""

from types import SimpleNamespace

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from service.errors import ExportError
from service.export.follow import Follower, FollowPosition, JobRun, RunCounter
from service.export.spans import SpanExporterOfJobs, SpanSender
from tests.service.export.test_follow import JOB, transitions


class Collector:
    """Takes nothing for a while."""

    def __init__(self, refusals):
        self.refusals, self.taken = refusals, []

    def export(self, spans):
        if self.refusals:
            self.refusals -= 1
            return SpanExportResult.FAILURE
        self.taken.append([span.name for span in spans])
        return SpanExportResult.SUCCESS


def test_what_was_told_in_vain_is_sent_once_when_the_collector_is_back():
    collector = Collector(refusals=3)
    exporter = SpanExporterOfJobs(client=None, sender=SpanSender(collector))
    created, starting, joining = transitions(["CREATED", "STARTING", "JOINING"])
    counter = RunCounter()
    exporter.tell(counter.take(JOB, created))
    for _ in range(3):
        with pytest.raises(ExportError, match="has not taken 1 spans"):
            exporter.tell(counter.take(JOB, starting))
    exporter.tell(counter.take(JOB, starting))
    exporter.tell(counter.take(JOB, joining))
    assert collector.taken == [["CREATED"], ["STARTING"]]


class Client:
    """A control plane with one job, whose batches are fetched page by page."""

    def __init__(self):
        self.newest = 0

    def jobs(self):
        return [SimpleNamespace(id=JOB, state="JOINING")]

    def job(self, _job_id):
        return self

    def batches(self, *, most):
        pin = {"batch_timestamp_ms": 1, "epoch": 1, "versions": {}}
        facts = {"records": 1, "counts": None, "pin": pin, "committed": True, "committed_at_ms": 2}
        numbers = range(self.newest, -1, -1)
        return [SimpleNamespace(batch=n, **facts) for n in list(numbers)[:most]]

    def transitions(self, *, after=0, job_id=None):
        return [t for t in transitions(["CREATED", "STARTING", "JOINING"]) if t.sequence > after]


def run_of(job_id):
    return JobRun(job_id, 0)


def test_no_batch_is_left_out_however_many_there_were_since_the_last_look():
    client, collector = Client(), Collector(refusals=0)
    exporter = SpanExporterOfJobs(client, SpanSender(collector))
    exporter.look(run_of)
    client.newest = 1_000
    exporter.look(run_of)
    assert [len(spans) for spans in collector.taken] == [1, 512, 488]


def test_no_spans_are_added_while_the_collector_takes_none():
    client, collector = Client(), Collector(refusals=3)
    exporter = SpanExporterOfJobs(client, SpanSender(collector))
    for client.newest in (1, 5, 9):
        with pytest.raises(ExportError, match="has not taken 1 spans"):
            exporter.look(run_of)
    exporter.look(run_of)
    assert [len(spans) for spans in collector.taken] == [1, 8]


def test_batches_of_a_job_that_joins_are_sent_after_a_restart_too(tmp_path):
    client, cursor = Client(), tmp_path / "cursor"
    for sent in (["CREATED", "STARTING", "batch"], ["batch"]):
        collector = Collector(refusals=0)
        exporter = SpanExporterOfJobs(client, SpanSender(collector))
        Follower(client, exporter, FollowPosition(cursor)).catch_up()
        assert [name for spans in collector.taken for name in spans] == sent
