"""The digest of changelog rows against plain loops, carried and read back."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.digest import ChangelogDigest, ChangelogState, fresh
from tests.support.changelog import batch_of, record, watermark
from tests.support.laws import examples

SMALL = st.integers(-1, 2)
POSITIONS = st.tuples(SMALL, SMALL, SMALL, SMALL)
PARTITIONS = 3


def fresh_by_loop(positions, seen):
    answers = []
    for position in positions:
        answers.append(seen is None or position > seen)
        seen = position if seen is None else max(seen, position)
    return answers


@given(positions=st.lists(POSITIONS, max_size=30), seen=st.none() | POSITIONS)
def test_fresh_is_newer_than_all_before(positions, seen):
    given_rows = np.array(positions, dtype=np.int64).reshape(-1, 4)
    # Without anything seen, every position of a real source is above (-1, -1, -1, -1).
    floor = seen if seen is not None else (-1, -1, -1, -1)
    assert fresh(given_rows, seen).tolist() == fresh_by_loop(positions, floor)


@st.composite
def changelogs(draw):
    """Micro-batches in offset order of each partition; streamed positions go back now and then."""
    offsets, places, generation = [0] * PARTITIONS, [0] * PARTITIONS, 1
    batches = []
    for _ in range(draw(st.integers(1, 6))):
        rows = []
        for _ in range(draw(st.integers(0, 12))):
            partition = draw(st.integers(0, PARTITIONS - 1))
            op = draw(st.sampled_from("rrcudcudw"))
            offsets[partition] += draw(st.integers(1, 3))
            generation += draw(st.sampled_from([0] * 9 + [1]))
            own = {"partition": partition, "generation": generation}
            if op == "w":
                rows.append(watermark(offsets[partition], **own))
                continue
            places[partition] = max(1, places[partition] + draw(st.sampled_from([1, 1, 1, 0, -2])))
            place = 0 if op == "r" else places[partition]
            rows.append(record(op, draw(st.integers(0, 5)), place, offsets[partition], **own))
        batches.append(rows)
    return batches


def place(row):
    return (row["_epoch"], row["_file"], row["_pos"], row["_row"])


class Model:
    """The state and the kept rows, record by record."""

    def __init__(self):
        self.marks, self.high_water, self.next_offsets = {}, {}, {}
        self.snapshot_rows = self.generation = self.source_ts_ms = 0

    def take(self, rows):
        kept = [row for row in rows if self.keeps(row)]
        newest = max([self.generation, *(row["_generation"] for row in kept)])
        self.snapshot_rows = self.snapshot_rows if newest == self.generation else 0
        self.generation = newest
        read = [row for row in kept if row["_op"] == "r" and row["_generation"] == newest]
        self.snapshot_rows += len(read)
        return kept

    def keeps(self, row):
        partition = row["_partition"]
        self.next_offsets[partition] = row["_offset"] + 1
        if row["_op"] == "w":
            if row["_generation"] > self.marks.get(partition, (-1, 0))[0]:
                self.marks[partition] = (row["_generation"], row["_offset"])
        elif row["_op"] != "r":
            if place(row) <= self.high_water.get(partition, (-1, -1, -1, -1)):
                return False
            self.high_water[partition] = place(row)
            self.source_ts_ms = max(self.source_ts_ms, row["_source_ts"])
        return True

    def state(self):
        return ChangelogState(
            self.marks,
            self.high_water,
            self.next_offsets,
            self.snapshot_rows,
            self.generation,
            self.source_ts_ms,
        )


def of_task(rows, state, pieces):
    """What one task reports of its rows, given to it in `pieces`."""
    digest = ChangelogDigest(state.high_water)
    cut = max(1, -(-len(rows) // pieces))
    batches = [batch_of(rows[at : at + cut]) for at in range(0, len(rows), cut)]
    kept = [row for batch in batches for row in digest.take(batch).to_pylist()]
    return kept, digest.to_json()


@settings(max_examples=examples(150))
@given(changelog=changelogs(), pieces=st.integers(1, 4))
def test_the_state_carried_from_commit_to_commit_is_that_of_the_records(changelog, pieces):
    model, state = Model(), ChangelogState()
    for rows in changelog:
        tasks = [[r for r in rows if r["_partition"] == p] for p in range(PARTITIONS)]
        digest = ChangelogDigest(state.high_water)
        kept = []
        for task in tasks:
            found, told = of_task(task, state, pieces)
            kept += found
            digest.merge(told)
        state = digest.state_after(state)
        expected = [r for task in tasks for r in model.take(task)]
        assert kept == expected
        assert digest.records == len(expected)
        assert digest.streamed == sum(r["_op"] in "cud" for r in expected)
        times = [r["_source_ts"] for r in expected if r["_op"] in "cud"]
        assert digest.source_ts_ms == max(times, default=0)
    assert state == model.state()


@settings(max_examples=examples(150))
@given(changelog=changelogs(), order=st.randoms(use_true_random=False))
def test_the_state_read_back_from_the_rows_is_the_state_carried(changelog, order):
    state, table = ChangelogState(), []
    for rows in changelog:
        kept, told = of_task(rows, state, 1)
        digest = ChangelogDigest(state.high_water)
        digest.merge(told)
        state = digest.state_after(state)
        table.append(kept)
    order.shuffle(table)
    read = ChangelogDigest({})
    for rows in table:
        read.count(batch_of(rows))
    back = read.state_after(ChangelogState())
    # Offsets of dropped repeats are not in the table: they are read again, and dropped again.
    assert all(
        back.next_offsets[p] <= o for p, o in state.next_offsets.items() if p in back.next_offsets
    )
    assert back == replace(state, next_offsets=back.next_offsets)


def test_a_repeat_over_a_restart_is_dropped_and_the_rest_is_kept():
    before = ChangelogState(high_water={0: (0, 1, 20, 3)})
    rows = [
        record("c", 1, 20, 5, row=2),
        record("u", 1, 20, 6, row=3),
        record("u", 1, 20, 7, row=4),
        record("r", 9, 1, 8),
        record("d", 1, 20, 9, row=4),
        record("c", 1, 20, 2, row=2, partition=1),
        record("u", 1, 1, 10, row=0, file=2),
        record("u", 1, 1, 11, row=0, file=1, epoch=1),
    ]
    kept, _ = of_task(rows, before, 1)
    assert [(r["_partition"], r["_offset"]) for r in kept] == [
        (0, 7),
        (0, 8),
        (1, 2),
        (0, 10),
        (0, 11),
    ]


def test_an_empty_batch_changes_nothing():
    before = ChangelogState({0: (1, 5)}, {0: (0, 1, 2, 3)}, {0: 9}, 4)
    kept, told = of_task([], before, 1)
    digest = ChangelogDigest(before.high_water)
    assert digest.take(batch_of([])).num_rows == len(kept) == 0
    digest.merge(told)
    assert digest.state_after(before) == before


def test_the_first_watermark_record_of_a_generation_counts():
    digest = ChangelogDigest({})
    digest.take(batch_of([watermark(5), watermark(9), watermark(12, generation=2)]))
    digest.take(batch_of([watermark(20, generation=2)]))
    state = digest.state_after(ChangelogState(marks={0: (1, 3)}))
    assert state.marks == {0: (2, 12)}
    later = ChangelogDigest({})
    later.take(batch_of([watermark(30, generation=2)]))
    assert later.state_after(state).marks == {0: (2, 12)}


def test_a_partition_is_complete_with_the_watermark_record_of_the_newest_generation_only():
    state = ChangelogState(marks={0: (1, 5), 1: (2, 9)}, generation=2)
    assert [state.is_complete(partition) for partition in range(3)] == [False, True, False]
