"""Rows of a dimension at each version, against a dictionary that replays the changelog."""

from dataclasses import replace
from itertools import combinations, count

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joins.adapters.delta.log import Rewrite
from joins.dimension.changelog_scan import DimensionStates, PageLimit, key_table
from joins.dimension.changes import changes_between
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.fold_rows import CompactionTask, compact, watermarks
from joins.plan.errors import UnknownVersionError, VersionExpiredError
from tests.support.changelog import Changelog, record, stage, watermark
from tests.support.histories import PARTITIONS, copied_histories
from tests.support.laws import examples
from tests.support.probe import USERS

_POSITION = ("_epoch", "_file", "_pos", "_row", "_offset")


def expected(rows):
    """id → name, one record after the other."""
    marks = {}
    for row in rows:
        if row["_op"] == "w":
            key = (row["_partition"], row["_generation"])
            marks[key] = min(marks.get(key, row["_offset"]), row["_offset"])
    done = [max((g for p, g in marks if p == at), default=-1) for at in range(PARTITIONS)]
    newest = {}
    for row in rows:
        late = any(
            row["_partition"] == p and row["_generation"] <= g and row["_offset"] > limit
            for (p, g), limit in marks.items()
        )
        if row["_op"] == "w" or (row["_op"] == "r" and late):
            continue
        known = newest.get(row["id"])
        place = tuple(row[name] for name in _POSITION)
        if known is None or place > tuple(known[name] for name in _POSITION):
            newest[row["id"]] = row
    alive = (r for r in newest.values() if r["_op"] != "d" and r["_generation"] >= min(done))
    return {row["id"]: row["name"] for row in sorted(alive, key=lambda row: row["id"])}


def states_of(changelog, partitions=PARTITIONS):
    return DimensionStates(changelog.log, USERS, partitions)


def pages(states, version, rows):
    """All rows of a version, `rows` a page."""
    state, after = states.at(version), None
    for _ in count():
        page = states.page(state, after, PageLimit(rows))
        assert page.rows.num_rows <= rows
        yield from zip(
            page.rows.column("id").to_pylist(), page.rows.column("name").to_pylist(), strict=True
        )
        after = page.next_after
        if after is None:
            return


def changes(states, first, last, rows):
    versions = states.at(first), states.at(last)
    after = None
    while True:
        page = changes_between(states, versions, after, PageLimit(rows))
        assert len(page.changes) <= rows
        yield from page.as_table().select(["_change_type", "id", "name"]).to_pylist()
        after = page.next_after
        if after is None:
            return


def applied(rows, found):
    rows = dict(rows)
    for change in found:
        if change["_change_type"] in ("delete", "update_preimage"):
            assert rows.pop(change["id"]) == change["name"]
        else:
            assert change["id"] not in rows
            rows[change["id"]] = change["name"]
    return dict(sorted(rows.items()))


@settings(max_examples=examples(6), suppress_health_check=list(HealthCheck))
@given(copied_histories, st.integers(1, 4), st.data())
def test_versions_have_their_rows_and_changes_lead_from_one_to_another(
    tmp_path_factory, commits, rows, data
):
    changelog = Changelog(tmp_path_factory.mktemp("log") / "changelog")
    versions = [0, *(changelog.commit(*commit) for commit in commits)]
    states = states_of(changelog)
    first = data.draw(st.integers(0, len(commits)))
    last = data.draw(st.integers(first, len(commits)))
    told = [expected([row for c in commits[:at] for row in c]) for at in (first, last)]
    for version, model in zip((first, last), told, strict=True):
        assert list(pages(states, versions[version], rows)) == list(model.items())
    found = list(changes(states, versions[first], versions[last], rows))
    assert applied(told[0], found) == told[1]
    before, after = (
        {c["id"]: c["name"] for c in found if c["_change_type"] == f"update_{side}"}
        for side in ("preimage", "postimage")
    )
    assert [key for key, name in before.items() if after[key] == name] == []


@pytest.fixture
def changelog(tmp_path):
    """Versions 1 to 3: three rows, complete, then one changed, one gone, one new."""
    made = Changelog(tmp_path / "changelog")
    made.commit(*(record("r", key, 5, key) for key in (1, 2, 3)))
    made.commit(watermark(4))
    made.commit(record("u", 1, 10, 5), record("d", 2, 11, 6), record("c", 4, 12, 7))
    return made


def test_a_copy_is_complete_with_its_watermarks_and_not_while_a_newer_one_runs(changelog):
    states = states_of(changelog, partitions=1)
    assert [states.at(version).complete for version in range(4)] == [False, False, True, True]
    changelog.commit(record("r", 1, 20, 8, generation=2))
    assert not states.at().complete


def test_a_state_since_an_earlier_one_is_the_same_and_continues_its_progress(changelog):
    changelog.commit(record("r", 1, 20, 8, generation=2))
    changelog.commit(watermark(9, generation=2))
    states = states_of(changelog, partitions=1)
    for first, last in combinations(range(6), 2):
        assert states.at(last, since=states.at(first)) == states.at(last)
    read = replace(states.at(2), progress=Progress({(0, 7): 1}))
    assert states.at(3, since=read).generation == 7


def test_rows_that_a_newer_copy_has_not_brought_again_are_changes_too(changelog):
    changelog.commit(record("r", 1, 10, 8, generation=2, epoch=1))
    last = changelog.commit(watermark(9, generation=2))
    found = list(changes(states_of(changelog, partitions=1), 3, last, 10))
    assert [(c["_change_type"], c["id"]) for c in found] == [
        ("update_preimage", 1),
        ("update_postimage", 1),
        ("delete", 3),
        ("delete", 4),
    ]


def test_a_row_written_again_as_it_was_is_no_change(changelog):
    row = record("u", 3, 5, 8)
    last = changelog.commit({**row, "name": "r5", "_pos": 30})
    assert list(changes(states_of(changelog, partitions=1), 3, last, 10)) == []


def test_records_of_keys_tell_the_deleted_from_the_unknown(changelog):
    states = states_of(changelog, partitions=1)
    keys = key_table(USERS, [pa.array([1, 2, 9])])
    found = states.records(states.at(), keys)
    assert found.select(["id", "_visible"]).to_pylist() == [
        {"id": 1, "_visible": True},
        {"id": 2, "_visible": False},
    ]


def test_a_page_ends_at_its_bytes_with_one_row_at_least(changelog):
    states = states_of(changelog, partitions=1)
    page = states.page(states.at(), None, PageLimit(10, bytes=1))
    assert page.rows.column("id").to_pylist() == [1]
    assert [value.as_py() for value in page.next_after] == [1]


def test_more_keys_than_a_chunk_come_in_order(tmp_path):
    made = Changelog(tmp_path / "changelog")
    ids = [(at * 7919) % 5000 for at in range(5000)]
    made.commit(*(record("r", key, 5, at) for at, key in enumerate(ids)))
    states = states_of(made, partitions=1)
    assert [key for key, _ in pages(states, 1, 900)] == list(range(5000))


def compacted(changelog):
    """All files merged into one, as maintenance does it, and the others removed."""
    log = changelog.log
    files = log.files.files_at(log.version())
    rows = pa.concat_tables(log.files.read_files(files))
    task = CompactionTask(("id",), watermarks([rows]), 1, is_whole=True)
    batch = compact(rows, task).rows.combine_chunks().to_batches()[0]
    staged = stage(log.path, batch, number=99)
    log.rewrite(Rewrite((staged,), tuple(file.name for file in files)), 1, {})
    return files


def test_a_version_whose_files_are_gone_says_so_and_the_oldest_left_is_known(changelog):
    states = states_of(changelog, partitions=1)
    assert states.oldest() == 0
    before = list(pages(states, 3, 10))
    for file in compacted(changelog):
        file.unlink()
    assert list(pages(states, 4, 10)) == before
    assert states.oldest() == 4
    with pytest.raises(VersionExpiredError) as told:
        states.at(3)
    assert "oldest version" in told.value.hint


def test_a_version_that_is_not_there_yet_is_refused(changelog, tmp_path):
    with pytest.raises(UnknownVersionError, match="up to 3, not 4"):
        states_of(changelog).at(4)
    absent = DimensionStates(type(changelog.log)(tmp_path / "none", "app"), USERS, 1)
    with pytest.raises(UnknownVersionError, match="no version yet"):
        absent.newest()
