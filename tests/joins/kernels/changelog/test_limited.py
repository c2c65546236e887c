"""Rows that are too large for a message: left out by key, whatever the changes of one batch are."""

import json

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.envelope import (
    SOURCE_SCHEMA,
    BinlogPosition,
    Envelopes,
    encode_copy,
    encode_limited,
    encode_records,
    encode_snapshot,
    in_parts,
    snapshot_limited,
)
from tests.support.laws import examples

MOST = 3_000
TEXTS = st.none() | st.sampled_from(
    ["", "small", "é" * 700, "x" * 1_100, "x" * 4_000, "\n" * 2_900]
)
ROWS = st.tuples(st.integers(0, 5), TEXTS, st.integers(0, 9))
CHANGES = st.lists(st.tuples(st.sampled_from("cud"), ROWS, ROWS), min_size=1, max_size=8)


def wire(rows):
    columns = zip(*(row or (None, None, None) for row in rows), strict=True)
    types = (pa.int64(), pa.string(), pa.int64())
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["id", "text", "at"])


def envelopes(changes):
    before = [row if op != "c" else None for op, row, _ in changes]
    after = [(old[0], *new[1:]) if op != "d" else None for op, old, new in changes]
    places = [[(0, 1, 4, n, 1, 5)[i] for n in range(len(changes))] for i in range(6)]
    return Envelopes(
        ops=pa.array([op for op, _, _ in changes], pa.string()),
        source=pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(places, SOURCE_SCHEMA, strict=True)],
            schema=SOURCE_SCHEMA,
        ),
        before=wire(before) if any(before) else None,
        after=wire(after) if any(after) else None,
    )


def parsed(records):
    return [json.loads(value) for value in records.column("value").to_pylist()]


@settings(max_examples=examples(300))
@given(CHANGES)
def test_a_change_is_as_ever_or_deletes_the_key_of_a_row_that_is_told(changes):
    every = envelopes(changes)
    usual = encode_records(every, ("id",), partitions=1)
    limited = encode_limited(every, ("id",), partitions=1, most_bytes=MOST)
    records = limited.records
    assert all(len(value) <= MOST for value in records.column("value").to_pylist())
    assert records.column("key") == usual.column("key")
    dead = []
    pairs = zip(parsed(usual), parsed(records), usual.column("key").to_pylist(), strict=True)
    for before, now, key in pairs:
        assert before["source"] == now["source"]
        if now["op"] == "d" and before["op"] != "d":
            dead.append(key)
            assert len(json.dumps(before["after"], ensure_ascii=False)) > MOST - 500
            assert now["before"]["at"] == before["after"]["at"], "times are kept"
        else:
            assert (now["op"], now["after"]) == (before["op"], before["after"])
    assert [key for key, _ in limited.dead] == dead
    assert all(size > MOST for _, size in limited.dead)


WIDE = st.lists(
    st.none() | st.sampled_from(["small", "x" * 900, "\n" * 600]), min_size=7, max_size=7
)


def wide(rows):
    """Rows with `rows[0]` as texts, short ones by themselves, and as an array."""
    columns = [*zip(*rows, strict=True), rows]
    kinds = [*[pa.string()] * len(rows[0]), pa.list_(pa.string())]
    arrays = [pa.array(c, t) for c, t in zip(columns, kinds, strict=True)]
    key = pa.array([0] * len(rows), pa.int64())
    return pa.RecordBatch.from_arrays([key, *arrays], names=["id", *"abcdefg", "list"])


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.sampled_from("cud"), WIDE, WIDE), min_size=1, max_size=8))
def test_many_short_texts_and_arrays_are_no_hindrance_for_a_row_that_fits(changes):
    every = envelopes([(op, (0, None, 0), (0, None, 0)) for op, _, _ in changes])
    before = None if every.before is None else wide([row for _, row, _ in changes])
    after = None if every.after is None else wide([row for _, _, row in changes])
    every = Envelopes(every.ops, every.source, before, after)
    limited = encode_limited(every, ("id",), partitions=1, most_bytes=MOST)
    assert all(len(value) <= MOST for value in limited.records.column("value").to_pylist())
    for (op, _, row), now in zip(changes, parsed(limited.records), strict=True):
        is_small = len(json.dumps(row)) * 2 < MOST - 500
        assert now["op"] == op or not is_small
        assert now["op"] == "d" or [*now["after"].values()] == [0, *row, row]


@settings(max_examples=examples(100))
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_a_copy_has_every_row_or_tells_its_key(rows):
    low = BinlogPosition(0, 1, 4)
    usual = encode_snapshot(wire(rows), ("id",), low, generation=1, partitions=1)
    limited = snapshot_limited(usual, MOST)
    values = limited.records.column("value").to_pylist()
    assert values == [v for v in usual.column("value").to_pylist() if len(v) <= MOST]
    assert len(limited.dead) + len(values) == len(rows)


def test_a_copy_leaves_out_rows_with_a_long_key():
    rows = keyed([("a", "x"), ("b" * (LONG + 1), "x"), ("c" * LONG, "x")])
    low = BinlogPosition(0, 1, 4)
    usual = encode_snapshot(rows, ("id",), low, generation=1, partitions=1)
    kept = [
        json.loads(key)["id"][0] for key in snapshot_limited(usual, MOST).records["key"].to_pylist()
    ]
    copied = encode_copy(rows, ("id",), low, generation=1, partitions=1, most_bytes=MOST)
    assert kept == ["a", "c"]
    assert [json.loads(key)["id"][0] for key in copied.sent()["key"].to_pylist()] == ["a", "c"]
    assert len(copied.dead) == 1


LONG = MOST // 3 - len('{"id":""}')  # a key of so many letters is still sent
KEYS = st.sampled_from(["a", "b" * LONG, "c" * (LONG + 1), "d" * 5_000])
OPS = st.lists(st.tuples(st.sampled_from("rcud"), KEYS, TEXTS), min_size=1, max_size=8)


def keyed(rows):
    columns = zip(*(row or (None, None) for row in rows), strict=True)
    arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=["id", "text"])


@settings(max_examples=examples(200))
@given(OPS)
def test_of_a_key_that_no_deletion_can_hold_no_record_is_sent(changes):
    every = envelopes([("c", (0, None, 0), (0, None, 0))] * len(changes))
    before = [(key, text) if op in "ud" else None for op, key, text in changes]
    after = [(key, text) if op != "d" else None for op, key, text in changes]
    every = Envelopes(
        ops=pa.array([op for op, _, _ in changes], pa.string()),
        source=every.source,
        before=keyed(before) if any(before) else None,
        after=keyed(after) if any(after) else None,
    )
    limited = encode_limited(every, ("id",), partitions=1, most_bytes=MOST)

    sent = limited.sent()
    pairs = zip(*(sent.column(name).to_pylist() for name in ("key", "value")), strict=True)
    assert all(len(key) + len(value) <= MOST for key, value in pairs)
    kept = [key for _, key, _ in changes if len(key) <= LONG]
    assert [json.loads(key)["id"] for key in sent.column("key").to_pylist()] == kept
    left_out = [json.loads(key)["id"] for key, _ in limited.dead]
    assert [k for k in left_out if len(k) > LONG] == [
        key for op, key, _ in changes if len(key) > LONG and op != "d"
    ]
    assert len([*limited.written()]) == len(changes)


@settings(max_examples=examples(200))
@given(CHANGES, st.integers(0, 5_000))
def test_large_rows_are_encoded_in_parts_of_the_same_records(changes, most_bytes):
    every = envelopes(changes)
    parts = [*in_parts(every, most_bytes)]
    records = [encode_records(part, ("id",), partitions=1) for part in parts]
    whole = encode_records(every, ("id",), partitions=1)
    assert [value for part in records for value in unstamped(part)] == unstamped(whole)
    for part in parts:
        size = sum(rows.nbytes for rows in (part.before, part.after) if rows is not None)
        assert len(part.ops) == 1 or size <= most_bytes
    rows = wire([row for _, row, _ in changes])
    copied = [*in_parts(rows, most_bytes)]
    assert pa.Table.from_batches(copied).to_pylist() == rows.to_pylist()
    assert all(part.num_rows == 1 or part.nbytes <= most_bytes for part in copied)


def unstamped(records):
    return [{**value, "ts_ms": 0} for value in parsed(records)]
