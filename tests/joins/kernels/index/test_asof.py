"""Versioned indexes against the operator that defines the temporal join."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.fold_rows import CompactionTask, compact
from joins.kernels.index.asof import valid_at
from joins.kernels.index.index import DimensionIndex, IndexSpec, advance, build
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.laws import examples
from watermark.reference.temporal import (
    BUILD,
    PROBE,
    Change,
    RowKind,
    TemporalJoinOperator,
    TemporalJoinSpec,
)
from watermark.reference.testing import OperatorHarness

BIGINT, STRING = SqlType(TypeName.BIGINT), SqlType(TypeName.STRING)
FIELDS = (Field("id", BIGINT), Field("at", SqlType(TypeName.TIMESTAMP, 3)), Field("name", STRING))
VERSIONS = IndexSpec(("id",), ("id",), FIELDS, 1, versioned="at")
NEWEST = IndexSpec(("id",), ("id",), FIELDS, 1)
KEYS, TIMES = range(4), range(12)
SCHEMA = pa.schema(
    [
        *VERSIONS.schema,
        ("_op", pa.string()),
        ("_epoch", pa.int32()),
        ("_file", pa.int64()),
        ("_pos", pa.int64()),
        ("_row", pa.int64()),
        ("_source_ts", pa.int64()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_generation", pa.int32()),
    ]
)


def change(op, id_, at_ms, pos, *, generation=1):
    return {
        "id": id_,
        "at": None if at_ms is None else at_ms * 1_000,
        "name": None if op in "dw" else f"{op}{pos}",
        "_op": op,
        "_epoch": 0,
        "_file": generation,
        "_pos": pos,
        "_row": 0,
        "_source_ts": pos,
        "_partition": 0,
        "_offset": pos,
        "_generation": generation,
    }


def mark(pos, generation=1):
    return change("w", None, None, pos, generation=generation)


def batch(rows):
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def seen(index, from_ms=0):
    """(key, time) → name, where a row is valid then."""
    asked = [(key, time) for key in KEYS for time in TIMES if time >= from_ms]
    keys, times = (np.array(column) for column in zip(*asked, strict=True))
    at, rows = index.lookup_at([pa.array(keys)], times)
    assert (np.diff(at) > 0).all()
    names = index.take(rows, ["name"]).column(0).to_pylist()
    return {asked[one]: name for one, name in zip(at.tolist(), names, strict=True)}


KINDS = {"c": RowKind.INSERT, "u": RowKind.UPDATE_AFTER, "d": RowKind.DELETE}


def defined(changes, from_ms=0):
    """The same, as the operator says it."""
    spec = TemporalJoinSpec(lambda probe: probe[0], lambda row: row["id"])
    harness = OperatorHarness(lambda: TemporalJoinOperator(spec), now_ms=1_000)
    for row in changes:
        harness.row(Change(KINDS[row["_op"]], row), row["at"] // 1_000, source=BUILD)
    for key in KEYS:
        for time in TIMES:
            if time >= from_ms:
                harness.row((key, time), time, source=PROBE)
    for source in (BUILD, PROBE):
        harness.watermark(len(TIMES), source=source)
    return {joined.probe: joined.build["name"] for joined in harness.values()}


@pytest.fixture
def place(tmp_path):
    return tmp_path


def built(place, *rows, spec=VERSIONS, version=1):
    build(place, version, spec, [batch(rows)])
    return DimensionIndex.attach(place, version, spec)


def test_a_row_is_valid_from_its_rowtime_on_until_the_next_one(place):
    index = built(place, change("c", 1, 3, 1), change("u", 1, 7, 2))
    assert seen(index) == {
        **{(1, time): "c1" for time in range(3, 7)},
        **{(1, time): "u2" for time in range(7, 12)},
    }


def test_a_deletion_ends_a_row_from_its_own_rowtime_on(place):
    index = built(place, change("c", 1, 3, 1), change("u", 1, 7, 2), change("d", 1, 7, 3))
    assert seen(index) == {(1, time): "c1" for time in range(3, 7)}
    everything, rows = index.lookup([pa.array([1])])
    assert everything.tolist() == [0, 0]
    assert index.take(rows, ["name"]).column(0).to_pylist() == ["c1", None]


AT_ONE_ROWTIME = {
    "deleted_and_inserted": ("dc", "c"),
    "inserted_and_deleted": ("cd", None),
    "updated_and_deleted": ("ud", None),
    "deleted_inserted_and_deleted": ("dcd", None),
    "deleted_and_updated": ("du", "u"),
}


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2)], ids=["at_once", "two_commits", "one_each"])
@pytest.mark.parametrize(("ops", "left"), AT_ONE_ROWTIME.values(), ids=AT_ONE_ROWTIME)
def test_of_the_changes_of_one_rowtime_the_last_one_counts(place, ops, left, cuts):
    """What REPLACE INTO does: a deletion has the rowtime of its row, and the new row may, too."""
    rows = [change("c", 1, 3, 1)] + [change(op, 1, 7, pos) for pos, op in enumerate(ops, 2)]
    build(place, 0, VERSIONS, [batch(rows[:1])])
    bounds = zip([1, *(1 + cut for cut in cuts)], [*(1 + cut for cut in cuts), None], strict=True)
    for version, (begin, end) in enumerate(bounds, 1):
        advance(place, version - 1, version, VERSIONS, [batch(rows[begin:end])])
    expected = {(1, time): "c1" for time in range(3, 7)}
    name = left and f"{left}{ops.rindex(left) + 2}"
    expected |= {(1, time): name for time in range(7, 12) if name}
    assert seen(DimensionIndex.attach(place, version, VERSIONS)) == expected
    task = CompactionTask(("id",), Progress(), -1, True, "at", None)
    compacted = compact(pa.Table.from_batches([batch(rows[::-1])]), task).rows
    build(place / "compacted", 1, VERSIONS, compacted.to_batches())
    assert seen(DimensionIndex.attach(place / "compacted", 1, VERSIONS)) == expected


def test_rows_without_rowtime_are_no_versions(place):
    index = built(place, change("c", 1, None, 1), change("c", 2, 5, 2), change("d", 2, None, 3))
    assert seen(index) == {(2, time): "c2" for time in range(5, 12)}


def test_a_plain_index_of_the_same_changelog_has_the_newest_rows(place):
    rows = [change("c", 1, 9, 1), change("u", 1, 2, 2)]
    index = built(place, *rows, spec=NEWEST)
    _, found = index.lookup([pa.array([1])])
    assert index.take(found, ["name"]).column(0).to_pylist() == ["u2"]
    assert NEWEST.digest != VERSIONS.digest


def test_null_keys_and_times_before_all_versions_match_nothing(place):
    index = built(place, change("c", 1, 3, 1))
    lowest = -(2**63)
    at, _ = index.lookup_at(
        [pa.array([None, 1, 1, 1])], np.array([5, lowest, 2, 2**63 - 1], dtype=np.int64)
    )
    assert at.tolist() == [3]


# The definition
# ----------------------------------------------------------------------------------------------

changes = st.lists(
    st.tuples(st.sampled_from("cuud"), st.sampled_from(KEYS), st.sampled_from(TIMES)), max_size=40
).map(lambda found: [change(*one, pos) for pos, one in enumerate(found)])


@settings(max_examples=examples(60))
@given(history=changes, data=st.data())
def test_an_index_has_the_versions_that_the_operator_has(history, data):
    cuts = data.draw(st.lists(st.integers(0, len(history)), max_size=5).map(sorted))
    merge_factor = data.draw(st.sampled_from([0, 4]))
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr("joins.kernels.index.index._MERGE_FACTOR", merge_factor)
        home, begin, from_ms, spec = Path(root), 0, 0, VERSIONS
        for version, end in enumerate([*cuts, len(history)]):
            rows = [batch(history[begin:end])]
            if data.draw(st.booleans()):  # what is told of the watermark is never taken back
                from_ms = data.draw(st.integers(from_ms, TIMES[-1]))
                spec = IndexSpec(
                    ("id",), ("id",), FIELDS, 1, versioned="at", needed_from_ms=from_ms
                )
            if version == 0:
                build(home, version, spec, rows)
            else:
                advance(home, version - 1, version, spec, rows)
            index = DimensionIndex.attach(home, version, VERSIONS)
            assert seen(index, from_ms) == defined(history[:end], from_ms)
            begin = end
        whole = data.draw(st.permutations(history))
        build(home / "whole", 1, VERSIONS, [batch(whole[:7]), batch(whole[7:])])
        index = DimensionIndex.attach(home / "whole", 1, VERSIONS)
        assert seen(index) == defined(history)


@given(
    versions=st.lists(st.tuples(st.integers(0, 5), st.integers(-5, 5)), unique=True),
    times=st.lists(st.integers(-6, 6), min_size=6, max_size=6),
)
def test_the_newest_version_that_has_begun_is_valid(versions, times):
    versions = sorted(versions, key=lambda one: one[0])
    probes, since = (np.array([one[n] for one in versions], dtype=np.int64) for n in range(2))
    found = [versions[at] for at in valid_at(probes, since, np.array(times))]
    begun = {
        probe: max(
            (since for one, since in versions if one == probe and since <= time), default=None
        )
        for probe, time in enumerate(times)
    }
    assert found == [(probe, since) for probe, since in begun.items() if since is not None]


# What is needed no more
# ----------------------------------------------------------------------------------------------


def needed_from(ms, **more):
    return IndexSpec(("id",), ("id",), FIELDS, 1, versioned="at", needed_from_ms=ms, **more)


def test_versions_that_have_ended_go_and_the_newest_of_them_stays(place):
    rows = [change("c", 1, at, at + 1) for at in (1, 3, 5, 8)]
    rows += [change("c", 2, 2, 20), change("d", 2, 4, 21), change("c", 3, 9, 22)]
    index = built(place, *rows, spec=needed_from(5))
    assert index.num_rows == 2 + 1 + 1
    whole = defined(rows)
    assert seen(index, 5) == {asked: name for asked, name in whole.items() if asked[1] >= 5}


def test_a_merge_drops_what_an_advance_has_ended(place):
    build(place, 1, VERSIONS, [batch([change("c", 1, 1, 1)])])
    advance(place, 1, 2, needed_from(6), [batch([change("u", 1, 4, 2), change("u", 1, 9, 3)])])
    assert DimensionIndex.attach(place, 2, VERSIONS).num_rows == 2


def newest(rows):
    found = {row["id"]: row for row in sorted(rows, key=lambda row: row["_pos"])}
    return {key: row["name"] for key, row in found.items() if row["_op"] != "d"}


def shown(index):
    at, rows = index.lookup([pa.array(KEYS)])
    return dict(zip(at.tolist(), index.take(rows, ["name"]).column(0).to_pylist(), strict=True))


@settings(max_examples=examples(60))
@given(history=changes, later=changes, data=st.data())
def test_compaction_keeps_what_may_be_asked_for_and_the_newest_rows(history, later, data):
    from_ms = data.draw(st.none() | st.integers(0, TIMES[-1]))
    cuts = data.draw(st.lists(st.integers(0, len(history)), max_size=4).map(sorted))
    bounds = zip([0, *cuts], [*cuts, len(history)], strict=True)
    files = [pa.Table.from_batches([batch(history[begin:end])]) for begin, end in bounds]
    while len(files) > 1:
        chosen = data.draw(st.sets(st.sampled_from(range(len(files))), min_size=2))
        rows = pa.concat_tables([files[at] for at in chosen])
        task = CompactionTask(("id",), Progress(), -1, len(chosen) == len(files), "at", from_ms)
        files = [file for at, file in enumerate(files) if at not in chosen]
        files.append(compact(rows, task).rows if rows.num_rows else rows)
    assert files[0].num_rows <= len(history)
    asked = 0 if from_ms is None else from_ms
    for more in ([], [row | {"_pos": 100 + row["_pos"]} for row in later]):
        batches = [*files[0].to_batches(), batch(more)]
        with tempfile.TemporaryDirectory() as root:
            for spec in (VERSIONS, NEWEST):
                build(Path(root), 1, spec, batches)
            assert seen(DimensionIndex.attach(Path(root), 1, VERSIONS), asked) == defined(
                history + more, asked
            )
            assert shown(DimensionIndex.attach(Path(root), 1, NEWEST)) == newest(history + more)


def test_compaction_drops_versions_that_have_ended():
    rows = [change("c", 1, 1, 1), change("u", 1, 3, 2), change("u", 1, 3, 3), change("u", 1, 9, 4)]
    task = CompactionTask(("id",), Progress(), -1, True, "at", 5)
    left = compact(pa.Table.from_batches([batch(rows)]), task).rows
    assert left.column("name").to_pylist() == ["u3", "u4"]


# Copies of the table
# ----------------------------------------------------------------------------------------------

FIRST = [change("r", 1, 2, 1), change("r", 2, 3, 2), mark(3), change("u", 1, 6, 4)]
COPY = [change("r", 1, 6, 10, generation=2), mark(11, generation=2)]


@pytest.mark.parametrize("merge_factor", [0, 4])
def test_a_key_that_a_new_copy_lacks_ends_with_its_newest_version(place, monkeypatch, merge_factor):
    monkeypatch.setattr("joins.kernels.index.index._MERGE_FACTOR", merge_factor)
    kept = {(1, time): "r1" for time in range(2, 6)}
    before = kept | {(1, t): "u4" for t in range(6, 12)} | {(2, t): "r2" for t in range(3, 12)}
    copied = kept | {(1, time): "r10" for time in range(6, 12)}
    index = built(place, *FIRST)
    assert seen(index) == before
    advance(place, 1, 2, VERSIONS, [batch(COPY[:1])])
    assert seen(DimensionIndex.attach(place, 2, VERSIONS)) == before | copied
    advance(place, 2, 3, VERSIONS, [batch(COPY[1:])])
    assert seen(DimensionIndex.attach(place, 3, VERSIONS)) == copied
    again = [change("c", 2, 9, 30, generation=2)]
    advance(place, 3, 4, VERSIONS, [batch(again)])
    returned = {(2, time): "r2" if time < 9 else "c30" for time in range(3, 12)}
    assert seen(DimensionIndex.attach(place, 4, VERSIONS)) == copied | returned
    whole = built(place / "whole", *FIRST, *COPY, *again)
    assert seen(whole) == copied | returned


def test_a_row_of_a_new_copy_is_newer_than_a_deletion_of_an_older_one(place):
    index = built(place, change("r", 1, 5, 1), mark(2), change("d", 1, 5, 3), *COPY)
    assert seen(index) == {(1, time): "r10" for time in range(6, 12)}
    same = change("r", 1, 5, 10, generation=2)
    index = built(place / "same", change("r", 1, 5, 1), mark(2), change("d", 1, 5, 3), same)
    assert seen(index) == {(1, time): "r10" for time in range(5, 12)}


def test_what_shows_that_a_copy_has_found_a_key_stays(place):
    rows = [change("r", 1, 4, 1), mark(2), change("r", 1, 2, 10, generation=2), mark(11, 2)]
    index = built(place, *rows, spec=needed_from(8))
    assert seen(index, 8) == {(1, time): "r1" for time in range(8, 12)}
