"""Compaction: fewer rows, and index and state made of them are those of all rows."""

import random
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.digest import ChangelogDigest, ChangelogState
from joins.kernels.changelog.fold_rows import CompactionTask, compact, watermarks
from joins.kernels.index.index import DimensionIndex, IndexSpec, advance, build
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.changelog import batch_of, record, watermark
from tests.support.histories import KEYS, PARTITIONS, histories
from tests.support.laws import examples

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("name", SqlType(TypeName.STRING)))
BY_ID = IndexSpec(("id",), ("id",), FIELDS, PARTITIONS)


NONE_DROPPED = Counter()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("indexes")


def table(rows):
    return pa.Table.from_batches([batch_of(rows)])


def compacted(rows, *, all_rows=None, whole=True):
    progress = watermarks([table(all_rows if all_rows is not None else rows)])
    task = CompactionTask(("id",), progress, progress.complete_generation(PARTITIONS), whole)
    return compact(table(rows), task)


def state(rows, dropped=NONE_DROPPED):
    digest = ChangelogDigest({})
    digest.count(batch_of(rows))
    newest = digest.generation
    return digest.state_after(ChangelogState(snapshot_rows=dropped[newest], generation=newest))


def names(scratch: Path, first, *later):
    """id → name in an index built of `first` and advanced by each of `later`."""
    shutil.rmtree(scratch, ignore_errors=True)
    build(scratch, 0, BY_ID, [batch_of(first)])
    for at, rows in enumerate(later):
        advance(scratch, at, at + 1, BY_ID, [batch_of(rows)])
    index = DimensionIndex.attach(scratch, len(later), BY_ID)
    keys = pa.array(range(KEYS))
    found, rows = index.lookup([keys])
    return dict(zip(found.tolist(), index.take(rows, ["name"]).column(0).to_pylist(), strict=True))


@settings(max_examples=examples(200))
@given(commits=histories, data=st.data())
def test_index_and_state_are_the_same_now_and_after_whatever_comes(scratch, commits, data):
    at = data.draw(st.integers(0, len(commits)))
    old = [row for commit in commits[:at] for row in commit]
    new = commits[at:]
    result = compacted(old) if old else None
    left = result.rows.to_pylist() if result else []
    assert len(left) <= len(old)
    assert names(scratch, left, *new) == names(scratch, old, *new)
    everything = [row for commit in new for row in commit]
    assert names(scratch, left + everything) == names(scratch, old + everything)
    dropped = Counter(result.dropped_reads if result else {})
    assert state(left, dropped) == state(old)


@settings(max_examples=examples(200))
@given(commits=histories, seed=st.integers(0, 1 << 16))
def test_parts_may_be_compacted_in_any_order(scratch, commits, seed):
    """Some files are merged, then the result with others: as long as marks of all are known."""
    everything = [row for commit in commits for row in commit]
    choose = random.Random(seed)
    files = [commit for commit in commits if commit]
    dropped = Counter()
    while len(files) > 1:
        chosen = choose.sample(range(len(files)), choose.randint(2, len(files)))
        rows = [row for at in chosen for row in files[at]]
        every = [row for file in files for row in file]
        result = compacted(rows, all_rows=every, whole=len(chosen) == len(files))
        dropped += Counter(result.dropped_reads)
        rest = [file for at, file in enumerate(files) if at not in chosen]
        files = [*rest, result.rows.to_pylist()]
    left = [row for file in files for row in file]
    assert names(scratch, left) == names(scratch, everything)
    assert state(left, dropped) == state(everything)


def test_of_many_changes_of_a_key_the_newest_is_left():
    rows = [record("r", 1, 5, 0, row=-1), watermark(1), watermark(0, partition=1)]
    rows += [record("u", 1, 10 + at, 2 + at) for at in range(50)]
    result = compacted(rows)
    assert result.rows.column("_op").to_pylist() == ["u", "w", "w"]
    assert (result.rows.column("name")[0].as_py(), result.dropped_reads) == ("u59", {1: 1})


def test_a_delete_stays_until_its_binlog_file_is_long_past():
    marks = [watermark(1), watermark(0, partition=1)]
    rows = [record("c", 2, 7, 2), record("d", 2, 8, 3), *marks]
    near = [*rows, record("u", 1, 9, 4, file=2)]
    assert sorted(compacted(near).rows.column("_op").to_pylist()) == ["d", "u", "w", "w"]
    far = [*rows, record("u", 1, 9, 4, file=3)]
    assert sorted(compacted(far).rows.column("_op").to_pylist()) == ["u", "w", "w"]
    assert "d" in compacted(far, whole=False).rows.column("_op").to_pylist()


def test_rows_of_an_abandoned_copy_go():
    new = {"generation": 2, "file": 9}
    rows = [record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1)]
    rows += [record("r", 1, 50, 2, row=-1, **new), watermark(3, generation=2)]
    rows += [watermark(0, partition=1, generation=2)]
    result = compacted(rows)
    assert result.rows.column("id").to_pylist() == [1, None, None]
    assert result.dropped_reads == {1: 2}


def test_a_snapshot_row_behind_the_watermark_is_not_the_newest():
    rows = [record("r", 1, 5, 0, row=-1), watermark(1), watermark(0, partition=1)]
    late = record("r", 1, 5, 2, row=-1)
    assert compacted([*rows, late, record("c", 2, 9, 3)]).dropped_reads == {1: 1}
    alone = compacted([rows[0], late], all_rows=[*rows, late], whole=False)
    assert alone.rows.column("_offset").to_pylist() == [0, 2]  # the row, and how far it is


def test_the_newest_source_time_stays_when_the_clock_of_a_new_server_is_behind():
    rows = [record("u", 1, 12, 0), record("u", 1, 11, 1, file=2), watermark(2)]
    result = compacted(rows)
    assert state(result.rows.to_pylist(), Counter(result.dropped_reads)) == state(rows)
    assert state(rows).source_ts_ms == 1012


def test_watermarks_of_all_tables_count():
    found = watermarks([table([watermark(3)]), table([watermark(1), record("c", 1, 2, 0)])])
    assert found == Progress({(0, 1): 1})
