"""Rows that windows keep, and their numbers: what sorting all rows of a window gives."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.windows.firing import project
from joins.kernels.windows.spec import FirstRows, WindowSpec
from joins.plan.plan import (
    ROW_NUMBER,
    WINDOW,
    AggregateKind,
    OutputColumn,
    SortKey,
    TopN,
    WindowKind,
)
from joins.plan.types import Call, Column, Constant, Member, SqlType, TypeName, array_type, row_type
from tests.support.laws import examples
from tests.support.windows import (
    BIGINT,
    ENDLESS,
    STRING,
    TIMESTAMP_3,
    KernelWindows,
    aggregate,
    millis,
    window_spec,
)

ROW = row_type(Member("value", BIGINT), Member("place", BIGINT))
KEY, VALUE, PLACE = (
    Column(WINDOW, name, kind)
    for name, kind in (("k", STRING), ("value", BIGINT), ("place", BIGINT))
)
END = Column(WINDOW, "window_end", TIMESTAMP_3)
NUMBER = Column(WINDOW, ROW_NUMBER, BIGINT)
TOTAL = Column(WINDOW, "a0", BIGINT)


def written(*columns):
    return tuple(OutputColumn(column.name, column) for column in columns)


def spec_of_rows(kind, rank, *, buckets=1, truncated=True) -> WindowSpec:
    rows = aggregate(0, AggregateKind.ROWS, ROW, array_type(ROW))
    output = written(END, KEY, VALUE, PLACE)
    if rank is not None:
        output += written(NUMBER)
        if truncated:
            order = tuple((0, key.descending, key.nulls_last) for key in rank.order)
            rows = replace(rows, first_rows=FirstRows(rank.last, order, rank.newest_first))
    sizes = {WindowKind.HOP: (10, 5), WindowKind.CUMULATE: (15, 5)}.get(kind, (10, None))
    return window_spec(
        kind, sizes[0], slide_ms=sizes[1], aggregates=(rows,), rank=rank, output=output,
        buckets=buckets, retracts=False,
    )  # fmt: skip


def windows_of(kind, time):
    if kind is WindowKind.HOP:
        return [end for end in range(-50, 200, 5) if end - 10 <= time < end]
    if kind is WindowKind.CUMULATE:
        return [end for end in range(-45, 200, 5) if (end - 1) // 15 * 15 <= time < end]
    return [time // 10 * 10 + 10]


def ranked(rows, rank):
    """The rows `(value, place)` of one partition with their numbers, as `rank` keeps them."""
    for key in reversed(rank.order):
        if rank.newest_first:
            rows = rows[::-1]
        nulls = [row for row in rows if row[0] is None]
        rest = [row for row in rows if row[0] is not None]
        rest.sort(key=lambda row: -row[0] if key.descending else row[0])
        rows = rest + nulls if key.nulls_last else nulls + rest
    numbered = [(*row, number) for number, row in enumerate(rows, 1)]
    return [row for row in numbered if rank.first <= row[-1] <= rank.last]


RANKS = st.builds(
    lambda first, more, descending, nulls_last, newest: TopN(
        (KEY,), (SortKey(VALUE, descending, nulls_last),), first, first + more, newest
    ),
    st.integers(1, 3),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
STEPS = st.lists(
    st.one_of(
        *[
            st.tuples(
                st.just("row"),
                st.sampled_from(["a", "b", None]),
                st.integers(0, 25),
                st.sampled_from([None, 1, 1, 2, 3]),
            )
        ]
        * 4,
        st.tuples(st.just("watermark"), st.integers(0, 12)),
        st.tuples(st.just("batch")),
        st.tuples(st.just("compact")),
    ),
    min_size=10,
    max_size=50,
)


def run(spec, steps, arguments):
    """The rows that the kernels write, and the rows that came in time."""
    written_rows, taken = [], []

    def on_fired(fired):
        projected = project(spec, fired, 0)
        assert projected.dead.num_rows == 0
        written_rows.extend(projected.rows.to_pylist())

    windows = KernelWindows(spec, on_fired=on_fired)
    for step, *values in steps:
        if step == "row":
            key, time, value = values
            time += max(windows.now_ms, 0)
            taken.append((key, time, value, len(taken)))
            windows.row((key,), arguments(value, len(taken) - 1), time)
        elif step == "watermark":
            windows.watermark(max(windows.now_ms, 0) + values[0])
        elif step == "batch":
            windows.end_batch()
        else:
            windows.compact()
    windows.watermark(ENDLESS)
    windows.end_batch()
    assert not any(windows.state.values())
    return written_rows, taken


@settings(max_examples=examples(40))
@given(
    kind=st.sampled_from([WindowKind.TUMBLE, WindowKind.HOP, WindowKind.CUMULATE]),
    rank=RANKS,
    steps=STEPS,
    buckets=st.integers(1, 3),
    truncated=st.booleans(),
)
def test_the_first_rows_of_a_key_are_those_of_all_its_rows(kind, rank, steps, buckets, truncated):
    spec = spec_of_rows(kind, rank, buckets=buckets, truncated=truncated)
    rows, taken = run(spec, steps, lambda value, place: ({"value": value, "place": place},))
    groups = {}
    for key, time, value, place in taken:
        for end in windows_of(kind, time):
            groups.setdefault((end, key), []).append((value, place))
    found = {}
    for row in rows:
        at = (millis(row["window_end"]), row["k"])
        found.setdefault(at, []).append((row["value"], row["place"], row[ROW_NUMBER]))
    expected = {at: kept for at, group in groups.items() if (kept := ranked(group, rank))}
    assert found == expected


@settings(max_examples=examples(40))
@given(rank=RANKS, steps=STEPS, buckets=st.integers(1, 3), by_key=st.booleans())
def test_results_of_a_window_are_numbered_among_those_of_all_keys(rank, steps, buckets, by_key):
    partition = (KEY,) if by_key else ()
    order = tuple(replace(key, expression=TOTAL) for key in rank.order)
    spec = window_spec(
        WindowKind.TUMBLE, 10, aggregates=(aggregate(0, AggregateKind.SUM, BIGINT),),
        output=written(END, KEY, TOTAL, NUMBER), buckets=buckets, retracts=False,
        rank=replace(rank, partition=partition, order=order),
        bucket_keys=(0,) if by_key else (),
    )  # fmt: skip
    rows, taken = run(spec, steps, lambda value, place: (value,))
    sums = {}
    for key, time, value, _ in taken:
        of = sums.setdefault((windows_of(WindowKind.TUMBLE, time)[0], key), [])
        of += [] if value is None else [value]
    groups = {}
    for (end, key), values in sums.items():
        total = sum(values) if values else None
        groups.setdefault((end, key) if by_key else end, []).append((total, key))
    # The order of equal results is that of the kernels.
    expected = {at: [row[::2] for row in ranked(group, rank)] for at, group in groups.items()}
    found = {}
    for row in rows:
        end = millis(row["window_end"])
        assert sum(sums[end, row["k"]]) == (row["a0"] or 0)
        found.setdefault((end, row["k"]) if by_key else end, []).append(
            (row["a0"], row[ROW_NUMBER])
        )
    assert found == {at: group for at, group in expected.items() if group}


@pytest.mark.parametrize("buckets", [1, 2])
def test_a_session_gives_all_of_its_rows_in_the_order_of_arrival(buckets):
    spec = spec_of_rows(WindowKind.SESSION, None, buckets=buckets)
    steps = [
        ("row", "a", 1, 5),
        ("row", "b", 3, 7),
        ("batch",),
        ("row", "a", 9, 6),
        ("row", "a", 0, 4),
    ]
    rows, _ = run(spec, steps, lambda value, place: ({"value": value, "place": place},))
    found = sorted((millis(r["window_end"]), r["k"], r["value"], r["place"]) for r in rows)
    assert found == [(13, "b", 7, 1), (19, "a", 4, 3), (19, "a", 5, 0), (19, "a", 6, 2)]


def test_a_result_that_cannot_be_sorted_is_a_dead_letter():
    inverse = Call("/", (Constant("1", BIGINT), TOTAL), BIGINT)
    rank = TopN((), (SortKey(inverse, descending=False, nulls_last=False),), 1, 5)
    spec = window_spec(
        WindowKind.TUMBLE, 10, aggregates=(aggregate(0, AggregateKind.SUM, BIGINT),),
        output=written(KEY, NUMBER), rank=rank, bucket_keys=(), retracts=False,
    )  # fmt: skip
    windows, found = KernelWindows(spec), []
    windows.on_fired = lambda fired: found.append(project(spec, fired, 0))
    for key, value in (("a", 1), ("b", 0), ("c", 2)):
        windows.row((key,), (value,), 1)
    windows.watermark(ENDLESS)
    windows.end_batch()
    (projected,) = found
    assert projected.rows.to_pylist() == [
        {"k": "c", ROW_NUMBER: 1},
        {"k": "a", ROW_NUMBER: 2},
    ]
    assert "zero" in projected.dead.column("reason")[0].as_py()
    assert projected.dead.num_rows == 1


SORTED = {
    TypeName.BOOLEAN: [False, True],
    TypeName.DOUBLE: [-1.5, 2.0],
    TypeName.STRING: ["a", "b"],
}


@pytest.mark.parametrize("name", SORTED)
def test_values_of_a_type_are_sorted(name):
    kind = SqlType(name)
    value = Column(WINDOW, "value", kind)
    row = row_type(Member("value", kind))
    rows = aggregate(0, AggregateKind.ROWS, row, array_type(row))
    rows = replace(rows, first_rows=FirstRows(2, ((0, True, True),), newest_first=False))
    rank = TopN((KEY,), (SortKey(value, descending=True, nulls_last=True),), 1, 2)
    spec = window_spec(
        WindowKind.TUMBLE, 10, aggregates=(rows,), output=written(value), rank=rank, retracts=False
    )
    windows, found = KernelWindows(spec), []
    windows.on_fired = lambda fired: found.append(project(spec, fired, 0))
    low, high = SORTED[name]
    for each in (low, None, high):
        windows.row(("a",), ({"value": each},), 1)
    windows.watermark(ENDLESS)
    windows.end_batch()
    assert found[0].rows.column("value").to_pylist() == [high, low]
