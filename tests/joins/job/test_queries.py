"""When a query that has ended is started again."""

import itertools
from types import SimpleNamespace

import pytest

from joins.durable.stalls import Stalls
from joins.job import queries
from joins.job.queries import Queries
from watermark.errors import SluiceError


class EndedQuery:
    """A query that has ended, after a batch or before its first one."""

    isActive = False  # noqa: N815 - Spark's name

    def __init__(self, batch: int | None) -> None:
        self.lastProgress = batch  # Spark's name

    def exception(self) -> object:
        return SluiceError("planted", hint="It is a test.")

    def stop(self) -> None:
        pass


WAITS = {
    "fails_at_once_each_time": ([None] * 7, [1, 2, 4, 8, 16, 20, 20]),
    "does_a_batch_each_time": ([3, 4, 5], [1, 1, 1]),
    "does_a_batch_after_some_failures": ([None, None, None, 7, None], [1, 2, 4, 1, 2]),
}


@pytest.mark.parametrize(("batches", "waits"), WAITS.values(), ids=WAITS)
def test_it_waits_longer_and_longer_unless_it_has_done_a_batch(
    batches: list[int | None], waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, started = [0.0], []
    monkeypatch.setattr(queries, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def start(name: str) -> EndedQuery:
        started.append(clock[0])
        return EndedQuery(batches[min(len(started), len(batches)) - 1])

    watched = Queries(Stalls(), start, lambda *_: None)
    watched.start("probe")
    while len(started) <= len(waits):
        clock[0] += 0.25
        watched.watch()
    found = [after - before for before, after in itertools.pairwise(started)]
    assert [wait - 0.25 for wait in found] == waits
