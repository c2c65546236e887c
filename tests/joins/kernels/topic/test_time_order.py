"""Records of several partitions in the order of their times, whatever is read first."""

import random

import numpy as np
import pyarrow as pa
import pytest

from joins.kernels.topic.pieces import MARKS, NO_MARK, ChangePiece, TimeOrder, Window, by_partition
from watermark.foreign_records import Mark

ROWS = pa.RecordBatch.from_pydict({"id": pa.array(range(10_000), pa.int64())})


def piece(partition, first, times, marks=None, position=0):
    """Records from offset `first` on, with these times."""
    count = len(times)
    times = np.array(times, np.int64)
    codes = [NO_MARK if mark is None else MARKS.index(mark) for mark in marks or [None] * count]
    rows = ROWS.slice(first, count)
    return ChangePiece(
        partition,
        np.arange(first, first + count, dtype=np.int64),
        times,
        np.maximum.accumulate(times),
        times,
        np.full(count, position, np.int64),
        np.zeros(count, np.int64),
        np.array(codes, np.int8),
        np.ones(count, np.int8),
        rows,
        rows,
    )


def windows(rng, logs):
    """What a reader of partitions with these times gets, whatever it reads first."""
    order, at = TimeOrder(range(len(logs))), [0] * len(logs)
    while any(at[p] < len(log) for p, log in enumerate(logs)):
        for p, log in enumerate(logs):
            end = min(len(log), at[p] + rng.randint(0, 7))
            order.add(piece(p, at[p], log[at[p] : end]))
            at[p] = end
        taken = order.take([p for p, log in enumerate(logs) if at[p] == len(log)])
        if taken:
            yield Window(taken)


def random_log(rng, count):
    log = sorted(rng.randrange(100) for _ in range(count))
    if count > 3 and rng.random() < 0.3:
        log[-1] = log[0]  # sent twice, it has its first time
    return log


@pytest.mark.parametrize("seed", range(200))
def test_all_comes_in_the_order_of_times_and_each_partition_in_that_of_offsets(seed):
    rng = random.Random(seed)
    count = rng.randint(1, 30)
    logs = [random_log(rng, count) for _ in range(rng.randint(1, 4))]
    read, latest = {p: [] for p in range(len(logs))}, -1
    for window in windows(rng, logs):
        ordered = np.concatenate([each.order_ms for each in window.pieces])
        assert ordered.min() >= latest
        latest = int(ordered.max())
        for p, pieces in by_partition(window.pieces).items():
            read[p] += [int(o) for each in pieces for o in each.offsets]
    assert read == {p: list(range(count)) for p in range(len(logs))}


def test_runs_are_of_one_mark_and_name_their_partitions():
    first, row, last = Mark.FIRST, Mark.ROW, Mark.LAST
    window = Window(
        [
            piece(0, 0, [1, 3, 9], [first, row, Mark.STREAMED]),
            piece(1, 0, [2, 4, 5, 8], [row, row, None, last]),
        ]
    )
    runs = list(window.runs(0, np.zeros(len(window), np.bool_)))
    same = [(run.mark, sorted(run.partitions), run.first_ms, run.last_ms) for _, run in runs]
    assert same[0] == (first, [0], 1, 1)
    assert same[-1] == (Mark.STREAMED, [0], 9, 9)
    assert same[-2] == (last, [1], 8, 8)
    assert {mark for mark, *_ in same[1:-2]} == {row}
    assert window.place_at(0, 4) == 3
    assert (window.newest_without_mark(0, 4), window.newest_without_mark(0, 5)) == (None, 5)
    older = window.older(0, changes_from_ms=10, rows_after_ms=2, position=0)
    assert older.tolist() == [True, True, False, False, True, False, True]


def test_in_the_partition_of_a_truncation_its_offset_decides():
    window = Window([piece(0, 0, [5, 5, 4]), piece(1, 0, [4, 5])])
    older = window.older(0, changes_from_ms=5, rows_after_ms=4, position=0, truncated_at=(0, 1))
    assert sorted(zip(window._partitions, window._offsets, older, strict=True)) == [
        (0, 0, True),
        (0, 1, False),
        (0, 2, False),
        (1, 0, True),
        (1, 1, False),
    ]


def test_rows_that_several_threads_read_are_few_runs():
    window = Window([piece(0, 0, [5, 3, 5, 4, 7, 6], [Mark.ROW] * 6)])
    runs = [run for _, run in window.runs(0, np.zeros(6, np.bool_))]
    assert [(run.oldest_source_ms, run.source_ms) for run in runs] == [(3, 5), (6, 7)]


def test_rows_of_one_position_are_one_run_and_of_two_are_two():
    window = Window(
        [
            piece(0, 0, [1, 3], [Mark.ROW, Mark.ROW], position=7),
            piece(0, 2, [4, 6], [Mark.ROW, Mark.ROW], position=9),
        ]
    )
    runs = [run for _, run in window.runs(0, np.zeros(4, np.bool_))]
    assert [(run.log_position, run.first_ms, run.last_ms) for run in runs] == [(7, 1, 3), (9, 4, 6)]
    older = window.older(0, changes_from_ms=None, rows_after_ms=4, position=9)
    assert older.tolist() == [True, True, False, False]


def test_labels_go_back_to_the_pieces_that_they_are_of():
    window = Window([piece(0, 0, [1, 3]), piece(1, 0, [2, 4])])
    labelled = {each.partition: labels.tolist() for each, labels in window.by_piece(np.arange(3))}
    assert labelled == {0: [0, 2], 1: [1, -1]}
