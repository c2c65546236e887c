"""Which transitions become events of OpenLineage; test_export_commands looks into the events."""

import json

from service.client.transport import NotFoundError
from service.export.follow import RunCounter
from service.export.lineage import LineageExporter, open_receiver
from tests.service.export.test_follow import JOB, transitions
from tests.support.receiver import receiver


class NoJobs:
    """A control plane whose jobs were all removed."""

    def job(self, job_id):
        raise NotFoundError(f'job "{job_id}" is not there', hint="", problem={"status": 404})


def told(states):
    with receiver() as posted:
        exporter = LineageExporter(NoJobs(), open_receiver(posted.url), "shop")
        counter = RunCounter()
        for transition in transitions(states):
            exporter.tell(counter.take(JOB, transition))
        return [json.loads(body) for body in posted.taken()]


def test_a_job_that_was_paused_before_its_first_start_has_a_start_first():
    events = told(["CREATED", "PAUSED", "STARTING", "JOINING", "STOPPED"])
    assert [event["eventType"] for event in events] == ["START", "RUNNING", "ABORT"]
    assert len({event["run"]["runId"] for event in events}) == 1


def test_a_job_that_never_started_has_no_run():
    assert told(["CREATED", "PAUSED", "STOPPED"]) == []
