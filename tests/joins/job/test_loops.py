"""When a loop that has ended is started again."""

import itertools
from types import SimpleNamespace

import pytest

from joins.durable.requests import Stalls
from joins.job import loops
from joins.job.loops import Loops
from watermark.errors import SluiceError


class EndedLoop:
    """A loop that has ended, after a step or before its first one."""

    is_active = False
    error = SluiceError("planted", hint="It is a test.")

    def __init__(self, has_progressed: bool) -> None:
        self.has_progressed = has_progressed

    def stop(self) -> None:
        pass


WAITS = {
    "fails_at_once_each_time": ([False] * 7, [1, 2, 4, 8, 16, 20, 20]),
    "does_a_batch_each_time": ([True] * 3, [1, 1, 1]),
    "does_a_batch_after_some_failures": ([False, False, False, True, False], [1, 2, 4, 1, 2]),
}


@pytest.mark.parametrize(("batches", "waits"), WAITS.values(), ids=WAITS)
def test_it_waits_longer_and_longer_unless_it_has_done_a_batch(
    batches: list[bool], waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, started = [0.0], []
    monkeypatch.setattr(loops, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def start(name: str) -> EndedLoop:
        started.append(clock[0])
        return EndedLoop(batches[min(len(started), len(batches)) - 1])

    watched = Loops(Stalls(), start)
    watched.start("probe")
    while len(started) <= len(waits):
        clock[0] += 0.25
        watched.watch()
    found = [after - before for before, after in itertools.pairwise(started)]
    assert [wait - 0.25 for wait in found] == waits
