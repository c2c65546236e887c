"""Event time of a changelog: what its rows promise, and what they do not promise yet."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.digest import (
    ChangelogDigest,
    ChangelogEventTime,
    ChangelogState,
    EventDigest,
)
from joins.plan.plan import WatermarkSpec
from joins.plan.types import Call, Case, Column, Constant, SqlType, TypeName
from tests.support.laws import examples

TIME, BIGINT = SqlType(TypeName.TIMESTAMP, 3), SqlType(TypeName.BIGINT)
AT, SIZE = Column("", "at", TIME), Column("", "size", BIGINT)
PLAIN = WatermarkSpec("at", AT)
NOW = 1_000_000
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us")),
        ("size", pa.int64()),
        ("_op", pa.string()),
        *((name, pa.int64()) for name in ("_epoch", "_file", "_pos", "_row", "_source_ts")),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_generation", pa.int32()),
    ]
)


def row(op, at_ms, *, partition=0, generation=1, size=1):
    place = dict.fromkeys(("_epoch", "_file", "_pos", "_row", "_offset", "_source_ts"), 0)
    place["_partition"] = partition
    at = None if at_ms is None else at_ms * 1_000
    return {"at": at, "size": size, "_op": op, "_generation": generation, **place}


def mark(**more):
    return row("w", None, **more)


def after(state, *rows, spec=PLAIN):
    """The state of the changelog behind a commit of `rows`."""
    batch = pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)
    task, driver = ChangelogDigest({}), ChangelogDigest({})
    task.count(batch)
    task.events.take(batch, spec, NOW)
    driver.merge(task.to_json())
    return driver.state_after(state)


EMPTY = ChangelogState()


def test_rows_of_a_copy_count_once_their_partition_is_complete():
    copying = after(EMPTY, row("r", 700), row("c", 900), row("r", 100, partition=1))
    assert copying.events.watermarks == {}
    half = after(copying, mark())
    assert half.events.watermarks == {0: 900}
    done = after(half, row("u", 950), mark(partition=1))
    assert done.events.watermarks == {0: 950, 1: 100}
    assert after(done, row("u", 20)).events.watermarks == {0: 950, 1: 100}


def test_a_new_copy_moves_nothing_before_it_is_complete():
    complete = after(EMPTY, row("r", 500), mark())
    copying = after(complete, row("r", 800, generation=2), row("u", 600))
    assert copying.events.watermarks == {0: 600}
    assert after(copying, mark(generation=1)).events.watermarks == {0: 600}
    assert after(copying, mark(generation=2)).events.watermarks == {0: 800}


def test_rows_without_time_or_far_ahead_of_the_clock_move_nothing_and_are_counted():
    spec = WatermarkSpec("at", AT, max_future_ms=500)
    rows = [row("u", 400), row("u", None), row("d", None), row("u", NOW + 500), mark()]
    events = after(EMPTY, *rows, row("u", NOW + 501), row("u", 10**12), spec=spec).events
    assert events == ChangelogEventTime({0: NOW + 500}, {}, null_rowtimes=2, future_rowtimes=2)


def test_where_the_expression_is_null_or_fails_there_is_no_watermark():
    punctuated = Case(
        ((Call("=", (SIZE, Constant("1", BIGINT)), SqlType(TypeName.BOOLEAN)), AT),), None, TIME
    )
    rows = [mark(), row("u", 300), row("u", 400, size=2)]
    assert after(EMPTY, *rows, spec=WatermarkSpec("at", punctuated)).events.watermarks == {0: 300}
    fails = Call("/", (Constant("1", BIGINT), SIZE), BIGINT)
    failing = Case(((Call("=", (fails, fails), SqlType(TypeName.BOOLEAN)), AT),), None, TIME)
    rows = [mark(), row("u", 300), row("u", 400, size=0)]
    assert after(EMPTY, *rows, spec=WatermarkSpec("at", failing)).events.watermarks == {0: 300}


def test_nothing_but_watermark_records_says_nothing():
    assert after(EMPTY, mark()).events == ChangelogEventTime()
    assert EventDigest().to_json()["greatest"] == []


times = st.integers(-5, 2_000).map(lambda ms: ms * 100_000)  # some are too far ahead
rows = st.builds(
    row,
    st.sampled_from("rcud"),
    times,
    partition=st.integers(0, 2),
    generation=st.integers(1, 2),
)
marks = st.builds(mark, partition=st.integers(0, 2), generation=st.integers(1, 2))


@settings(max_examples=examples(80))
@given(st.lists(st.lists(rows | marks, max_size=6), max_size=6))
def test_the_greatest_value_of_complete_copies_is_the_watermark(commits):
    state, seen = EMPTY, []
    for commit in commits:
        before = state.events
        state = after(state, *commit)
        seen += commit
        complete = {
            p: max(
                (r["_generation"] for r in seen if r["_op"] == "w" and r["_partition"] == p),
                default=0,
            )
            for p in range(3)
        }
        counted = [
            r for r in seen if r["_op"] != "w" and r["at"] <= (NOW + PLAIN.max_future_ms) * 1_000
        ]
        for partition, newest in complete.items():
            mine = [r for r in counted if r["_partition"] == partition]
            told = state.events.watermarks.get(partition)
            whole = [r["at"] // 1_000 for r in mine if r["_generation"] <= newest]
            assert told == max(whole, default=None) or newest < max(r["_generation"] for r in mine)
            assert told is None or told <= max(whole)
            assert partition not in before.watermarks or told >= before.watermarks[partition]
        names = ChangelogEventTime.names(range(3))
        told = state.events.counters()
        assert set(told) <= set(names)
        assert ChangelogEventTime.of_counters(told) == state.events


@pytest.mark.parametrize("limit", [2**62, 2**63 - 1])
def test_no_bound_is_too_large(limit):
    spec = WatermarkSpec("at", AT, max_future_ms=limit)
    assert after(EMPTY, row("u", NOW + 10**9), mark(), spec=spec).events.watermarks == {
        0: NOW + 10**9
    }
