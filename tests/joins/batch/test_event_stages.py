"""Which stages a batch has, and in which order, by what its job has."""

import pytest

from joins.adapters.delta.state_log import StateFile
from joins.batch.event_channels import EventInput
from joins.batch.event_stages import run_stages
from joins.batch.event_state import EventSpec, EventState
from joins.durable.pins import EventPin, Pin
from joins.kernels.probe.files import StagedFile
from joins.plan.plan import Windowing, WindowKind
from joins.plan.types import Column, SqlType, TypeName
from joins.worker.staging import BatchReport

TIMESTAMP = SqlType(TypeName.TIMESTAMP, 3)
WINDOW = Windowing(WindowKind.TUMBLE, 1_000, Column("c", "at", TIMESTAMP), TIMESTAMP, (), ())
STAGES = {
    "join": (True, None, False, "scan waiting last"),
    "join_on_event": (True, None, True, "steps scan waiting last"),
    "windows": (False, WINDOW, False, "scan windows last"),
    "windows_behind_a_join": (True, WINDOW, False, "scan waiting act windows last"),
    "windows_behind_a_join_on_event": (True, WINDOW, True, "steps scan waiting act windows last"),
}


class Recorded:
    """Stages that do nothing but report a file and a record each."""

    def __init__(self):
        self.done = []
        self.plans = []

    def _report(self, name):
        self.done.append(name)
        file = StagedFile(f"{name}.parquet", 1, 1, "{}")
        return BatchReport({f"{name}/0": (file,)}, {"records": 1}, ())

    def steps(self):
        return self._report("steps")

    def scan(self, merged):
        assert (merged is not None) == (self.done == ["steps"])
        return self._report("scan")

    def act(self, plan):
        return self._report("act")

    def last(self, plan):
        return self._report("last")

    def files(self, name):
        self.done.append(name)
        return (StateFile(f"{name}.parquet", 1, 1, 0, 0, -(2**63), 0),)


@pytest.mark.parametrize(("waits", "window", "on_event", "expected"), STAGES.values(), ids=STAGES)
def test_stages_run_in_one_order_and_only_those_that_a_job_has(waits, window, on_event, expected):
    spec = EventSpec((EventInput("probe"),), waits, window, on_event)
    event = EventPin(**{**EventState().as_json(), "clock_ms": 5}, at_end=[], dimensions={})
    pin = Pin(1, "clicks", {0: 0}, {0: 1}, {}, 5, 1, {}, event)
    stages = Recorded()
    done = run_stages(spec, pin, stages)
    assert stages.done == expected.split()
    assert set(done.removed) == {name for name in stages.done if name in ("waiting", "windows")}
    assert all(paths == (f"{name}.parquet",) for name, paths in done.removed.items())
    told = [name for name in stages.done if name in ("scan", "act", "last")]
    assert sorted(done.report.files) == sorted(f"{name}/0" for name in told)
    assert done.report.counts["records"] == len(told)
