"""Spans that a collector has not taken: sent again, each once."""

from types import SimpleNamespace

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from service.errors import ExportError
from service.export.follow import RunCounter
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


def test_no_batch_is_left_out_however_many_there_were_since_the_last_look():
    client, collector = Client(), Collector(refusals=0)
    exporter = SpanExporterOfJobs(client, SpanSender(collector))
    (starting,) = transitions(["STARTING"])
    exporter.tell(RunCounter().take(JOB, starting))
    exporter.look()
    client.newest = 500
    exporter.look()
    assert [len(spans) for spans in collector.taken] == [1, 500]
