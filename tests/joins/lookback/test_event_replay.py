"""An event batch that is run again from its pin gives what it gave, or says what is gone."""

from dataclasses import replace

import pytest

from joins.batch.event_state import EventState
from joins.lookback.event_replay import state_differences
from joins.plan.errors import PinnedVersionExpiredError
from tests.joins.worker.test_event_task import COUNTS, PLAN, click, on_event
from tests.support.past_event_job import PastEventJob

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
    version = past.done[1][0].event.state_versions["waiting"]
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
