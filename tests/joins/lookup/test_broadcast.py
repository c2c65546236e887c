"""The rows that are broadcast: those of the version that is asked for, forwards and back."""

from joins.kernels.index.index import IndexSpec
from joins.lookup.broadcast import DEFAULT_MAX_BYTES, BroadcastRows
from tests.support.changelog import Changelog, record, watermark
from tests.support.probe import USERS

SPEC = IndexSpec(("id",), ("name",), USERS.fields, partitions=1)


def filled(root):
    """Versions 1 to 5: a copy, changes, nothing, a delete, another copy without user 1."""
    changelog = Changelog(root)
    changelog.commit(record("r", 1, 5, 0, row=-1), record("r", 2, 5, 1, row=-1), watermark(2))
    changelog.commit(record("u", 1, 9, 3), record("c", 3, 9, 4, row=1))
    changelog.commit()
    changelog.commit(record("d", 2, 12, 5))
    again = [record("r", 3, 13, 6, row=-1, generation=2), watermark(7, generation=2)]
    changelog.commit(*again)
    return changelog


ROWS = {
    0: {},
    1: {1: "r5", 2: "r5"},
    2: {1: "u9", 2: "r5", 3: "c9"},
    3: {1: "u9", 2: "r5", 3: "c9"},
    4: {1: "u9", 3: "c9"},
    5: {3: "r13"},
}


def rows(broadcast, version):
    return {row["id"]: row["name"] for row in broadcast.rows(version).to_pylist()}


def broadcast_of(changelog):
    return BroadcastRows("users", SPEC, changelog.log, DEFAULT_MAX_BYTES)


def test_each_version_has_its_rows_whatever_was_asked_for_before(tmp_path):
    changelog = filled(tmp_path)
    one = broadcast_of(changelog)
    for version in (0, 1, 2, 3, 4, 5, 5, 2, 4, 1, 5):
        assert rows(one, version) == ROWS[version]
        assert rows(broadcast_of(changelog), version) == ROWS[version]


def test_commits_that_the_log_does_not_have_any_more_are_read_from_the_table(tmp_path):
    changelog = filled(tmp_path)
    broadcast = broadcast_of(changelog)
    assert rows(broadcast, 1) == ROWS[1]
    changelog.log.upkeep.make_checkpoint(4)
    changelog.log.upkeep.remove_log_before(4)
    assert rows(broadcast, 5) == ROWS[5]
