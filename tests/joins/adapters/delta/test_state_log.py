"""State between batches: one commit a batch, exact next times, undone as a whole."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.state_log import StateChange, StateColumns, StateLog
from joins.dimension.maintenance import StateMaintenance, Upkeep, UpkeepSettings
from joins.durable.leases import StateLease
from joins.plan.errors import CheckpointError, FencedError, SinkError
from tests.support.changelog import stage
from tests.support.laws import examples

SCHEMA = pa.schema([("_due", pa.int64()), ("_part", pa.int32()), ("value", pa.binary())])
COLUMNS = StateColumns(due="_due", keep="_due", bucket="_part")


@pytest.fixture
def state(tmp_path):
    StateLog.create(tmp_path / "waiting", SCHEMA)
    return StateLog(DeltaLog(tmp_path / "waiting", "app"), COLUMNS)


def staged(state, *dues, part=0, number=0):
    rows = {"_due": list(dues), "_part": [part] * len(dues), "value": [b"x"] * len(dues)}
    return stage(state.log.path, pa.RecordBatch.from_pydict(rows, SCHEMA), number=number)


def test_a_batch_adds_and_removes_in_one_commit_and_older_versions_stay(state):
    first, second = staged(state, 10, 20), staged(state, 30, part=1)
    before = state.commit(0, 1, StateChange([first]))
    after = state.commit(1, 1, StateChange([second], [first.path], {"watermark": 20}))
    assert [(f.path, f.rows, f.min_due, f.max_due) for f in state.files(before)] == [
        (first.path, 2, 10, 20)
    ]
    assert [(f.path, f.bucket, f.max_keep) for f in state.files(after)] == [(second.path, 1, 30)]
    assert after == before + 1


MADE = st.lists(
    st.tuples(st.lists(st.integers(0, 99), max_size=3), st.integers(0, 3), st.booleans()),
    max_size=6,
)


@settings(max_examples=examples(30))
@given(made=MADE)
def test_files_that_follow_the_entries_are_those_of_the_table(tmp_path_factory, made):
    root = tmp_path_factory.mktemp("state") / "waiting"
    StateLog.create(root, SCHEMA)
    state = StateLog(DeltaLog(root, "app"), COLUMNS)
    for batch, (dues, removed, undone) in enumerate(made):
        before, gone = state.version(), [f.path for f in state.newest_files()][:removed]
        new = [staged(state, due, part=due % 3, number=batch) for due in dues]
        state.commit(batch, 1, StateChange(new, gone, {"watermark": batch}))
        if undone:
            state.undo(batch, 1, before, {})
        for version in (before, state.version()):
            expected = StateLog(DeltaLog(root, "app"), COLUMNS).files(version)
            assert state.files(version) == expected


def test_files_are_removed_by_an_entry_of_ours(state):
    """Also where the columns have names of the user, as those of waiting rows do."""
    named = pa.schema([*SCHEMA, pa.field("c0", pa.int64(), metadata={"column": "user_id"})])
    StateLog.create(state.log.path.parent / "named", named)
    log = StateLog(DeltaLog(state.log.path.parent / "named", "app"), COLUMNS)
    rows = pa.RecordBatch.from_pylist([{"_due": 1, "_part": 0, "c0": 7}], named)
    first = stage(log.log.path, rows, number=0)
    log.commit(0, 1, StateChange([first]))
    version = log.commit(1, 1, StateChange((), [first.path]))
    (info,) = (e["commitInfo"] for e in log.log.versions.commit_entry(version) if "commitInfo" in e)
    assert (info["engineInfo"], log.files(version)) == ("Sluice", ())


def test_a_batch_that_comes_again_changes_nothing(state):
    first = staged(state, 10)
    version = state.commit(0, 1, StateChange([first], (), {"watermark": 1}))
    assert state.commit(0, 1, StateChange([staged(state, 99)])) == version
    assert [file.path for file in state.files(version)] == [first.path]
    assert state.after(0) == {"watermark": 1}


def test_a_file_that_is_not_there_cannot_be_removed(state):
    with pytest.raises(SinkError, match="has no file"):
        state.commit(0, 1, StateChange((), ["gone.parquet"]))


def test_a_stale_runner_is_refused(state):
    state.log.commit_epoch(2)
    with pytest.raises(FencedError):
        state.commit(0, 1, StateChange())


def test_the_next_due_time_is_exact_also_within_a_file(state):
    state.commit(0, 1, StateChange([staged(state, 10, 500, 900), staged(state, 700)]))
    assert [state.next_due(after) for after in (0, 10, 500, 700, 900)] == [
        10,
        500,
        700,
        900,
        None,
    ]


def test_what_the_newest_batch_has_left_is_found_behind_a_fence(state):
    assert state.newest_after() is None
    state.commit(4, 1, StateChange((), (), {"watermark": 7}))
    state.log.commit_epoch(2)
    assert state.newest_after() == {"watermark": 7} == state.after(4)
    with pytest.raises(CheckpointError, match="no commit of batch 5"):
        state.after(5)


def test_a_batch_that_is_given_up_is_undone_as_a_whole(state):
    first, second = staged(state, 10, 20), staged(state, 30)
    before = state.commit(0, 1, StateChange([first], (), {"watermark": 1}))
    state.commit(1, 1, StateChange([second], [first.path], {"watermark": 2}))
    for _ in range(2):
        state.undo(1, 1, before, {"watermark": 1})
    (file,) = state.files(state.version())
    assert (file.path, file.min_due, file.max_due) == (first.path, 10, 20)
    assert state.newest_after() == {"watermark": 1}
    assert state.commit(2, 1, StateChange([staged(state, 40)])) == before + 3


def test_what_never_was_committed_is_not_undone(state):
    version = state.commit(0, 1, StateChange([staged(state, 10)]))
    state.undo(1, 1, version, {})
    assert state.version() == version


def test_bounds_outlive_a_checkpoint_of_the_log(state):
    version = state.commit(0, 1, StateChange([staged(state, 10, 2**63 - 1)]))
    state.log.upkeep.make_checkpoint(version)
    fresh = StateLog(DeltaLog(state.log.path, "app"), COLUMNS)
    (file,) = fresh.files(version)
    assert (file.min_due, file.max_due) == (10, 2**63 - 1)


def eight_batches(state):
    """Batch n reads the file of batch n - 1 and takes it out: names, and versions before each."""
    names, versions = [], []
    for batch in range(8):
        versions.append(state.version())
        file = staged(state, batch, number=batch)
        gone = names[-1:]
        names.append(file.path)
        state.commit(batch, 1, StateChange([file], gone, {"watermark": batch}))
    return names, versions


def test_upkeep_keeps_what_the_newest_batch_has_read_and_nothing_older(state):
    names, versions = eight_batches(state)
    orphan = staged(state, 99, number=3)
    upkeep = StateMaintenance(Upkeep(state.log, 1, UpkeepSettings(checkpoint_every=3)))
    upkeep.run(None)
    assert (state.log.path / orphan.path).exists(), "nobody knows yet what is needed"
    upkeep.run(StateLease(versions[7], versions[7]))
    left = {path.name for path in state.log.path.glob("*.parquet")}
    assert left == {names[6], names[7]}
    fresh = StateLog(DeltaLog(state.log.path, "app"), COLUMNS)
    assert [file.path for file in fresh.files(versions[7])] == [names[6]]
    assert fresh.newest_after() == {"watermark": 7}
    assert fresh.log.versions.oldest_entry() > 0
    fresh.undo(7, 1, versions[7], {"watermark": 6})
    assert [file.path for file in fresh.newest_files()] == [names[6]]


ROOM = {
    "for_all_that_was_asked_for": (1 << 20, 3, 3),
    "for_two_files": (2, 0, 5),
    "for_none": (0, 0, 7),
}


@pytest.mark.parametrize(("files", "asked", "oldest"), ROOM.values(), ids=ROOM)
def test_upkeep_keeps_older_versions_for_replays_as_far_as_there_is_room(
    state, files, asked, oldest
):
    names, versions = eight_batches(state)
    size = max((state.log.path / name).stat().st_size for name in names)
    settings = UpkeepSettings(checkpoint_every=3, replayed_state_bytes=files * size)
    for _ in range(2):  # what was removed once is not asked for again
        upkeep = StateMaintenance(Upkeep(state.log, 1, settings))
        upkeep.run(StateLease(versions[7], versions[asked]))
    left = {path.name for path in state.log.path.glob("*.parquet")}
    assert left == set(names[max(0, oldest - 1) :])
    fresh = StateLog(DeltaLog(state.log.path, "app"), COLUMNS)
    for batch in range(oldest, 8):
        assert [file.path for file in fresh.files(versions[batch])] == names[batch - 1 : batch]
