"""The history of a key against a dictionary that replays the changelog, and what of it is read."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joins.dimension.changelog_scan import VISIBLE, PageLimit, key_table
from joins.dimension.changes import KeyHistory
from joins.plan.errors import SinkError, UnknownVersionError
from tests.joins.dimension.test_states import compacted, expected, states_of
from tests.support.changelog import Changelog, record, watermark
from tests.support.histories import copied_histories
from tests.support.laws import examples


def name_in(found):
    rows = found.filter(found.column(VISIBLE))
    return rows.column("name").to_pylist()[0] if rows.num_rows else None


def history(states, key, rows=100):
    """(version, before, after) of all pages, `rows` commits a page, and the last page."""
    looked = KeyHistory(states, key_table(states.dimension, [pa.array([key])]))
    below, found = 1_000_000, []
    while True:
        page = looked.page(below, PageLimit(rows))
        assert len(page.versions) <= rows
        found += [(v.version, name_in(v.before), name_in(v.after)) for v in page.versions]
        below = page.next_below
        if below is None:
            return found, page


@settings(max_examples=examples(6), suppress_health_check=list(HealthCheck))
@given(copied_histories, st.integers(1, 4))
def test_a_history_has_each_version_that_changed_the_row_and_no_other(
    tmp_path_factory, commits, rows
):
    changelog = Changelog(tmp_path_factory.mktemp("log") / "changelog")
    versions = [0, *(changelog.commit(*commit) for commit in commits)]
    states = states_of(changelog)
    told = [expected([r for c in commits[:at] for r in c]) for at in range(len(versions))]
    for key in {row["id"] for commit in commits for row in commit if row["id"] is not None}:
        names = [model.get(key) for model in told]
        changed = [
            (version, before, after)
            for version, before, after in zip(versions[1:], names[:-1], names[1:], strict=True)
            if before != after
        ]
        assert history(states, key, rows)[0] == changed[::-1]


@pytest.fixture
def changelog(tmp_path):
    """Versions 1 to 5: three rows, complete, one changed twice, one gone, the first one again."""
    made = Changelog(tmp_path / "changelog")
    made.commit(*(record("r", key, 5, key) for key in (1, 2, 3)))
    made.commit(watermark(4))
    made.commit(record("u", 1, 10, 5), record("u", 1, 11, 6))
    made.commit(record("d", 2, 12, 7))
    made.commit({**record("u", 1, 13, 8), "name": "u11"}, record("c", 9, 14, 9))
    return made


def test_what_a_version_brings_of_a_key_counts_once_and_a_row_as_it_was_is_no_change(changelog):
    states = states_of(changelog, partitions=1)
    found, page = history(states, 1)
    assert found == [(3, "r5", "u11"), (1, None, "r5")]
    (changed, _) = page.versions
    assert (changed.records, changed.after.column("_pos").to_pylist()) == (2, [11])
    assert changed.committed_at_ms > 0
    assert (page.oldest, page.beginning.num_rows) == (0, 0)
    assert history(states, 7)[0] == []


def test_a_copy_that_has_not_brought_a_key_again_ends_its_row_where_it_is_complete(changelog):
    changelog.commit(record("r", 1, 20, 10, generation=2))
    complete = changelog.commit(watermark(11, generation=2))
    found, page = history(states_of(changelog, partitions=1), 3)
    assert found == [(complete, "r5", None), (1, None, "r5")]
    assert page.versions[0].records == 0


def test_a_history_begins_with_the_oldest_version_that_can_be_read(changelog):
    for file in compacted(changelog):
        file.unlink()
    last = changelog.commit(record("u", 1, 30, 12))
    found, page = history(states_of(changelog, partitions=1), 1)
    assert (found, page.oldest) == ([(last, "u11", "u30")], 6)
    assert page.beginning.column("name").to_pylist() == ["u11"]


def test_only_files_that_may_hold_the_key_are_opened(changelog):
    """Those of other keys are damaged, which nobody notices who does not open them."""
    of_keys = {}
    for at, key in enumerate([101, 105, 103, 105]):
        version = changelog.commit(record("u", key, 40 + at, 20 + at))
        of_keys[version] = changelog.log.files.files_added(version, version)
        if key != 105:
            of_keys.pop(version)[0].write_bytes(b"damaged")
    states = states_of(changelog, partitions=1)
    found, _ = history(states, 105)
    assert [version for version, _, _ in found] == sorted(of_keys, reverse=True)
    with pytest.raises(SinkError, match="cannot be read"):
        history(states, 103)


def test_a_page_ends_at_its_bytes_and_the_next_one_goes_on(changelog):
    states = states_of(changelog, partitions=1)
    looked = KeyHistory(states, key_table(states.dimension, [pa.array([1])]))
    page = looked.page(100, PageLimit(100, bytes=1))
    assert (page.versions, page.next_below, page.beginning) == ((), 5, None)
    page = looked.page(page.next_below, PageLimit(100, bytes=1))
    assert [version.version for version in page.versions] == [3]


def test_a_changelog_that_is_not_there_has_no_history(changelog, tmp_path):
    absent = states_of(changelog)
    absent.log = type(changelog.log)(tmp_path / "none", "app")
    with pytest.raises(UnknownVersionError, match="no version yet"):
        history(absent, 1)
