"""An event batch that is run again from its pin gives what it gave, or says what is gone."""

from dataclasses import replace
from functools import partial

import pytest

from joins.adapters.delta_log import DeltaLog
from joins.adapters.state_log import StateChange, StateLog
from joins.errors import PinnedVersionExpiredError
from joins.event_items import WAITING_COLUMNS, WINDOW_COLUMNS
from joins.event_replay import EventReplay, state_differences
from joins.event_state import EventState
from joins.event_task import waiting_schema, windows_schema
from joins.history import PastEvent
from joins.kernels.index import DimensionIndex
from tests.joins.test_event_task import COUNTS, PLAN, click, on_event
from tests.support.event_batches import EventJob

APP_ID = "sluice:job:1"
ARRIVED = [
    {0: [click(1, 30), click(2, 10, 5), click(9, 20), b"{"], 1: [click(3, 7, 5)]},
    {0: [click(1, 20, 20), click(2, 3)], 1: [click(2, 22, 25), click(3, 5)]},
    {0: [click(2, 45, 41), click(3, 4)], 1: [click(1, 44, 42), click(3, 60, 55)]},
    {0: [click(1, 90, 80)], 1: [click(1, 91, 85)]},
]
PLANS = {
    "as_of_join": PLAN,
    "as_of_join_on_event": on_event(PLAN),
    "windows": COUNTS,
    "windows_on_event": on_event(COUNTS),
    "windows_behind_an_as_of_join": replace(COUNTS, dimensions=PLAN.dimensions, joins=PLAN.joins),
}


class PastEventJob:
    """A job whose batches are run and committed to the tables of its state, each with its pin."""

    def __init__(self, plan, root):
        self.job = EventJob(plan, root)
        places, task = self.job.task.places, self.job.task
        self.logs = {}
        if places.waiting:
            self.logs["waiting"] = state(places.waiting, waiting_schema(task), WAITING_COLUMNS)
        if places.windows:
            self.logs["windows"] = state(places.windows, windows_schema(task), WINDOW_COLUMNS)
        event = PastEvent(plan, places)
        self.replay = EventReplay(event, task.kernel, APP_ID)
        self.indexes = {
            alias: DimensionIndex.attach(place.directory, 1, place.spec)
            for alias, place in task.probe.indexes.items()
        }
        self.state = EventState()
        self.done = []

    def run(self, arrived):
        """Run a batch of these records, replay it, and commit its state."""
        versions = {name: log.version() for name, log in self.logs.items()}
        before = self._files()
        outcome = self.job.run(arrived)
        event = {**self.state.as_json(), "clock_ms": self.job.pin.event["clock_ms"]}
        event |= {"at_end": [], "dimensions": {}, "state_versions": versions}
        pin = replace(self.job.pin, event=event)
        self.done.append((pin, list(self.job.frames), outcome))
        again = self.again(-1)
        self.state, after = again.after, self._files()
        for name, log in self.logs.items():
            added = [file for path, file in after[name].items() if path not in before[name]]
            gone = sorted(set(before[name]) - set(after[name]))
            log.commit(pin.batch, 2, StateChange(added, gone, self.state.as_json()))

    def again(self, at):
        pin, frames, _ = self.done[at]
        return self.replay.run(pin, partial(iter, frames), self.indexes)

    def _files(self):
        kinds = {"waiting": self.job.waiting, "windows": self.job.windows}
        return {
            name: {file.path: file for files in kept.values() for file in files}
            for name, kept in kinds.items()
        }


def state(path, schema, columns):
    StateLog.create(path, schema)
    return StateLog(DeltaLog(path, f"{APP_ID}:{path.name}"), columns)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_old_batches_give_their_rows_letters_late_records_and_watermarks_again(tmp_path, plan):
    past = PastEventJob(plan, tmp_path)
    for arrived in ARRIVED:
        past.run(arrived)
    before = sorted(tmp_path.rglob("*"))
    seen = {"rows": 0, "late": 0, "dead": 0}
    for at, (_, _, outcome) in enumerate(past.done):
        again = past.again(at)
        rows = [tuple(r.values()) for each in again.answers for r in each.rows.to_pylist()]
        assert sorted(map(repr, rows)) == sorted(map(repr, outcome.rows))
        late = [row for batch in again.late for row in batch.to_pylist()]
        assert late == outcome.late
        dead = [row for batch in again.dead_letters for row in batch.to_pylist()]
        assert dead == outcome.dead
        moved = (again.move.before.window_watermark, again.move.after.window_watermark)
        if past.job.task.windows is None:
            moved = (again.move.before.watermark, again.move.after.watermark)
        assert moved == outcome.watermarks
        seen = {n: seen[n] + len(found) for n, found in zip(seen, (rows, late, dead), strict=True)}
    assert min(seen.values()) > 0, "the records show every case"
    assert sorted(tmp_path.rglob("*")) == before, "nothing of the job is changed"


def test_a_state_whose_files_are_gone_is_named_with_the_settings_that_keep_more(tmp_path):
    past = PastEventJob(PLAN, tmp_path)
    for arrived in ARRIVED:
        past.run(arrived)
    version = past.done[1][0].event["state_versions"]["waiting"]
    (gone, *_) = past.logs["waiting"].files(version)
    (past.logs["waiting"].log.path / gone.path).unlink()
    with pytest.raises(
        PinnedVersionExpiredError, match=f'version {version} of the state "wait'
    ) as e:
        past.again(1)
    assert "SLUICE_REPLAY_STATE_MAX_MIB" in e.value.hint
    assert past.again(0).answers == []


def test_states_are_compared_field_by_field():
    first = EventState(watermark=5, channels={"a": [1]})
    assert state_differences(first, EventState.of(first.as_json())) is None
    other = replace(first, watermark=6, waiting=2)
    assert state_differences(first, other) == (
        {"watermark": 5, "waiting": 0},
        {"watermark": 6, "waiting": 2},
    )
