"""When rows of a table with versions end: as a state of each key says it, told record by record."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.index.hash_table import hash_rows
from joins.kernels.topic import keys
from joins.kernels.topic.keys import (
    GONE,
    NO_TIME,
    DeletionTimes,
    RowTimes,
    foreign_keys,
    key_hashes,
)
from joins.kernels.topic.pieces import NO_MARK, Action, ChangePiece
from joins.plan.formats import RECORD_TIMESTAMP, SOURCE_TIMESTAMP
from joins.plan.types import SqlType, TypeName, arrow_type
from tests.joins.kernels.topic.test_known_keys import NUMBER, columns, sharing
from tests.support.laws import examples

STAMP = arrow_type(SqlType(TypeName.TIMESTAMP_LTZ, 3))
KEYS, TIMES = st.integers(0, 4), st.one_of(st.none(), st.integers(0, 9))
ACTIONS = st.sampled_from(Action)
CHANGES = st.lists(st.lists(st.tuples(ACTIONS, KEYS, TIMES), max_size=12), max_size=8)


class Kept:
    """`RowTimes` without what is kept of them."""

    def __init__(self, directory=Path("."), in_memory=1 << 20):
        self.times = RowTimes(directory, in_memory)
        self.log = []

    def take(self, keys, times):
        before, new = self.times.take(keys, times)
        self.log.append(new)
        return before

    def before(self, hashes, times):
        return self.times.before(hashes, times)


def piece_of(changes):
    """Changes (action, key, time) of one partition; a deletion has a time only if it tells it."""
    actions, keys, times = zip(*changes, strict=True)
    count = len(changes)
    nothing = np.zeros(count, np.int64)
    key = pa.RecordBatch.from_pydict({"id": pa.array(keys, pa.int64())})
    after = key.append_column("at", pa.array(times, pa.int64()).cast(STAMP))
    return ChangePiece(
        0,
        np.arange(count),
        *(nothing,) * 5,
        np.full(count, NO_MARK, np.int8),
        np.array(actions, np.int8),
        key,
        after,
    )


def ended(piece):
    return piece.ended.column("at").cast(pa.int64()).to_pylist()


def expected(batches):
    """What becomes of each change: action and, of deletions, the time; by one state a key."""
    rows, said = {}, []
    for action, key, time in (change for batch in batches for change in batch):
        if action is Action.UPSERT:
            rows[key] = time
            said.append((action, None))
        elif action is Action.DELETE and key in rows:
            said.append((action, rows.pop(key)))
        else:
            said.append((Action.NOTHING, None))
    return said


@given(CHANGES)
@settings(max_examples=examples(300))
def test_a_deletion_without_a_time_has_that_of_the_row_that_it_deletes(batches):
    batches = [
        [(a, k, t if a is Action.UPSERT else None) for a, k, t in batch] for batch in batches
    ]
    kept, said = Kept(), []
    for batch in filter(None, batches):
        piece, unknown = DeletionTimes("at").of(piece_of(batch), kept)
        assert not len(unknown)
        actions = [Action(action) for action in piece.actions.tolist()]
        said += [
            (a, time if a is Action.DELETE else None)
            for a, time in zip(actions, ended(piece), strict=True)
        ]
    assert said == expected(batches)


def read(batch, first, kept, offsets):
    """Offset → action and time of each change of `batch`, which begins at offset `first`."""
    piece = piece_of([(a, k, t if a is Action.UPSERT else None) for a, k, t in batch])
    piece = replace(piece, offsets=np.arange(first, first + len(batch)))
    piece, _ = DeletionTimes("at").of(piece, kept, offsets)
    actions = map(Action, piece.actions.tolist())
    times = [t if a is Action.DELETE else None for a, t in zip(actions, ended(piece), strict=True)]
    return dict(enumerate(zip(piece.actions.tolist(), times, strict=True), first))


@given(
    st.lists(st.tuples(ACTIONS, KEYS, TIMES), min_size=1, max_size=16),
    st.integers(0, 16),
    st.integers(0, 16),
    st.integers(1, 5),
)
@settings(max_examples=examples(300))
def test_a_deletion_that_is_read_again_never_ends_a_later_row(changes, done, back, width):
    """What a later snapshot reads again: as the first time, or nothing if its row was before."""
    truth = dict(enumerate(expected([changes])))
    done = min(done, len(changes))
    back = min(back, done)
    kept, offsets = Kept(), Kept()
    if done:
        assert read(changes[:done], 0, kept, offsets) == {o: truth[o] for o in range(done)}
    row_at = {}
    for first in range(back, len(changes), width):
        batch = changes[first : first + width]
        for offset, found in read(batch, first, kept, offsets).items():
            action, key, _ = changes[offset]
            is_new = offset >= done or row_at.get(key, -1) >= back
            assert found == truth[offset] or (not is_new and found == (Action.NOTHING, None))
            if action is Action.UPSERT:
                row_at[key] = offset


@given(st.data())
@settings(max_examples=examples(200))
def test_times_of_keys_are_exact_and_the_same_when_they_were_loaded(tmp_path_factory, data):
    """Half of the keys share the 64-bit hash of another; runs are in files, merged in parts."""
    seeds = data.draw(st.lists(st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=10))
    pool = [key for a, b, other in seeds for key in ((a, b), (other, sharing(a, b, other)))]
    directory, limit = tmp_path_factory.getbasetemp(), data.draw(st.sampled_from([0, 4, 1 << 20]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_MERGED", data.draw(st.sampled_from([1, 3, 1 << 18])))
        times_are_exact(directory, limit, pool, data)


def times_are_exact(directory, limit, pool, data):
    kept, model = Kept(directory, limit), {}
    for _ in range(data.draw(st.integers(0, 12))):
        changes = data.draw(st.lists(st.tuples(st.sampled_from(pool), TIMES), max_size=20))
        if not changes:
            continue
        times = [NO_TIME if time is None else time for _, time in changes]
        expected_before = []
        for (key, _), time in zip(changes, times, strict=True):
            expected_before.append(model.get(key, GONE))
            model[key] = time
        hashes = key_hashes(columns([key for key, _ in changes]))
        assert kept.take(hashes, np.array(times, np.int64)).tolist() == expected_before
        if data.draw(st.booleans()):
            log = kept.log if data.draw(st.booleans()) else [*kept.times.parts()]
            kept = Kept(directory, limit)
            for part in log:
                kept.times.load(part)
            kept.log = log
    every = list(model)
    if every:
        gone = np.full(len(every), GONE)
        assert kept.take(key_hashes(columns(every)), gone).tolist() == list(model.values())


def test_a_deletion_has_the_time_of_its_own_key_where_another_shares_its_hash():
    """As with 10^9 keys, of which 2.7 % of tables have two such."""
    one, other = (1, 2), (3, sharing(1, 2, 3))
    assert len(set(hash_rows(columns([one, other])).tolist())) == 1
    kept = Kept()
    kept.take(key_hashes(columns([one, other])), np.array([5, 8], np.int64))
    gone = np.full(2, GONE)
    assert kept.take(key_hashes(columns([one, other])), gone).tolist() == [5, 8]


U, D, N = Action.UPSERT, Action.DELETE, Action.NOTHING
TOLD = {
    "a_change_says_when_it_was": ([(U, 1, 5), (D, 1, 8)], [U, D], [5, 8], []),
    "a_tombstone_behind_it_is_nothing": ([(U, 1, 5), (D, 1, 8), (D, 1, None)], [U, D, N], None, []),
    "a_tombstone_alone_does_not_say_when": ([(U, 1, 5), (D, 1, None)], [U, D], None, [1]),
    "a_tombstone_of_no_row_is_nothing": ([(D, 1, None)], [N], None, []),
    "another_key_does_not_count": ([(U, 1, 5), (D, 2, None)], [U, N], None, []),
    "a_deletion_of_a_row_that_was_not_seen_is_sent": ([(D, 1, 8)], [D], [8], []),
}


@pytest.mark.parametrize(("changes", "actions", "times", "unknown"), TOLD.values(), ids=TOLD)
def test_deletions_of_a_connector_have_the_time_of_their_change(changes, actions, times, unknown):
    piece, places = DeletionTimes("at", SOURCE_TIMESTAMP).of(piece_of(changes), Kept())
    assert piece.actions.tolist() == actions
    assert times is None or ended(piece) == times
    assert places.tolist() == unknown


def test_deletions_have_the_time_of_their_record_where_that_is_the_column():
    deletions = DeletionTimes("at", RECORD_TIMESTAMP)
    piece, places = deletions.of(piece_of([(U, 1, 5), (D, 1, 8), (D, 2, 9)]), None)
    assert (piece.actions.tolist(), ended(piece), len(places)) == ([U, D, D], [5, 8, 9], 0)
    assert not deletions.needs_rows


def test_a_part_of_a_piece_has_its_part_of_the_times():
    piece, _ = DeletionTimes("at").of(piece_of([(U, 1, 5), (D, 1, None), (U, 1, 7)]), Kept())
    assert ended(piece.slice(1, 3)) == [5, 7]


OWNED = st.tuples(st.sampled_from([Action.UPSERT, Action.DELETE]), KEYS, st.integers(0, 2))


@settings(max_examples=examples(300))
@given(st.lists(st.lists(OWNED, max_size=8), max_size=6))
def test_a_key_has_rows_in_one_partition_of_its_table_at_a_time(batches):
    kept, owners = Kept(), {}
    for batch in batches:
        if not batch:
            continue
        piece = piece_of([(action, key, None) for action, key, _ in batch])
        # a deletion by 0 is a tombstone, an upsert names its partition
        tables = [table or int(action is Action.UPSERT) for action, _, table in batch]
        piece = replace(piece, tables=np.array([table * 2**40 + table for table in tables]))
        expected = None
        after = dict(owners)
        for place, ((action, key, _), table) in enumerate(zip(batch, tables, strict=True)):
            if table and after.get(key, table) != table:
                expected = place
                break
            after[key] = table
            if action is Action.DELETE:
                del after[key]
        foreign = foreign_keys(piece, np.arange(len(batch)), kept).tolist()
        if expected is not None:
            assert min(foreign) == expected
            continue
        assert foreign == []
        owners = after
