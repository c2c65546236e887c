"""Spans that a collector has not taken: sent again, each once."""

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
