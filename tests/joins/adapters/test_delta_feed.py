"""A Delta table as a source: whatever happens to it, the records say what the table is."""

import json
import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from joins.adapters import delta_feed
from joins.adapters.delta_feed import Session
from joins.adapters.delta_feed_state import read_state
from joins.errors import SnapshotNeededError, SourceError, SourceUnavailableError
from joins.plan import Field
from joins.types import SqlType, TypeName
from tests.support.feeds import Silent, feed, table_rows

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("name", SqlType(TypeName.STRING)))
CDF = {"delta.enableChangeDataFeed": "true"}
PLAIN: dict[str, str] = {}


def rows(*pairs, regions=None):
    table = pa.table(
        {"id": pa.array([p[0] for p in pairs], pa.int64()), "name": [p[1] for p in pairs]}
    )
    return table if regions is None else table.append_column("region", pa.array(regions))


@pytest.fixture(params=[CDF, PLAIN], ids=["change_feed", "no_change_feed"])
def path(request, tmp_path):
    """A table of six rows in three files."""
    path = tmp_path / "product"
    for first in (1, 3, 5):
        data = rows((first, f"n{first}"), (first + 1, f"n{first + 1}"))
        write_deltalake(path, data, mode="append", configuration=request.param)
    return path


def append(path):
    write_deltalake(path, rows((17, "n17"), (18, None)), mode="append")


def update(path):
    DeltaTable(path).update(updates={"name": "'changed'"}, predicate="id < 4")


def delete(path):
    DeltaTable(path).delete("id = 2 OR id = 5")


def change_keys(path):
    DeltaTable(path).update(updates={"id": "id + 1"}, predicate="id > 2")


def overwrite(path):
    write_deltalake(path, rows((2, "new"), (4, "n4"), (9, "n9")), mode="overwrite")


def merge(path):
    source = rows((1, "merged"), (2, "gone"), (10, "n10"))
    (
        DeltaTable(path)
        .merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_delete("s.name = 'gone'")
        .when_matched_update({"name": "s.name"})
        .when_not_matched_insert({"id": "s.id", "name": "s.name"})
        .execute()
    )


def optimize(path):
    DeltaTable(path).optimize.compact()


def restore(path):
    DeltaTable(path).restore(1)


def empty(path):
    DeltaTable(path).delete()


CHANGES = {
    "append": [append],
    "update": [update],
    "delete": [delete],
    "keys_move_to_the_next_row": [change_keys],
    "overwrite": [overwrite],
    "merge": [merge],
    "restore": [restore],
    "all_rows_deleted": [empty],
    "many": [append, update, delete, optimize, merge, change_keys, overwrite, append, restore],
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_each_commit_is_followed(path, tmp_path, changes):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    assert source.rows() == table_rows(path)
    for change in changes:
        change(path)
        source.run(session)
        assert source.rows() == table_rows(path), change.__name__
    assert source.topic.copy().generation == 1


def test_a_table_without_rows_is_complete_at_once(tmp_path):
    write_deltalake(tmp_path / "t", rows((1, "a")).slice(1))
    source = feed(tmp_path / "t", tmp_path, FIELDS)
    source.run()
    assert source.topic.copy().generation == 1
    assert source.rows() == []


def test_a_commit_that_changes_no_row_sends_nothing(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    before = len(source.topic.records)
    optimize(path)
    source.run(session)
    assert len(source.topic.records) == before
    assert read_state(source.config.state_file).version == DeltaTable(path).version()


def test_a_rewritten_row_that_is_the_same_is_no_change(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    before = len(source.topic.records)
    write_deltalake(path, rows((1, "n1"), (2, "other"), (3, "n3")), mode="overwrite")
    source.run(session)
    told = [json.loads(r.value) for r in source.topic.records[before:]]
    assert sorted((v["op"], (v["after"] or v["before"])["id"]) for v in told) == [
        ("d", 4),
        ("d", 5),
        ("d", 6),
        ("u", 2),
    ]
    assert {v["source"]["file"] for v in told} == {DeltaTable(path).version()}


@pytest.mark.parametrize("sent", [2, 7, 10, 14, 18])
def test_a_source_that_was_cut_off_goes_on_without_loss_or_a_new_copy(path, tmp_path, sent):
    """What came twice has the same position as the first time, so that it can be dropped."""
    source = feed(path, tmp_path, FIELDS)
    source.topic.takes = sent
    changes = [update, change_keys, delete, append]
    session = None
    try:
        session = source.run()
        for change in changes.copy():
            changes.remove(change)
            change(path)
            source.run(session)
    except SourceUnavailableError:
        source.topic.takes = None
    for change in changes:
        change(path)
    source.run()
    assert source.rows() == table_rows(path)
    assert source.topic.copy().generation == 1
    assert positions_of_changes(source)


def positions_of_changes(source):
    """One position has one key and one content, however often it came."""
    found = {}
    for record in source.topic.records:
        value = json.loads(record.value)
        if value["op"] in ("c", "u", "d"):
            place = tuple(value["source"][name] for name in ("epoch", "file", "pos", "row"))
            content = (record.key, value["op"], json.dumps(value["after"]))
            assert found.setdefault(place, content) == content
    return found


def test_a_restart_goes_on_behind_the_last_version_that_was_sent(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    source.run()
    update(path)
    source.run()
    sent = len(source.topic.records)
    delete(path)
    source.run()
    ops = [json.loads(r.value)["op"] for r in source.topic.records[sent:]]
    assert sorted(ops) == ["d", "d", "w", "w"]


# What cannot be followed
# ----------------------------------------------------------------------------------------------


def follow_again(source, session):
    """The session ends with the need of a copy; the next one makes it."""
    with pytest.raises(SnapshotNeededError) as caught:
        source.run(session)
    delta_feed._need_copy(source.config, caught.value)
    return source.run()


def test_a_table_that_was_created_anew_is_copied_again(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    shutil.rmtree(path)
    for n in range(6):
        write_deltalake(path, rows((n + 4, "again")), mode="append")
    follow_again(source, session)
    assert source.rows() == table_rows(path)
    assert source.topic.copy().generation == 2
    assert read_state(source.config.state_file).epoch == 1


def test_a_table_that_was_created_anew_while_we_were_away_is_copied_again(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    source.run()
    shutil.rmtree(path)
    write_deltalake(path, rows((4, "again")))
    source.run()
    assert source.rows() == table_rows(path)
    assert source.topic.copy().generation == 2


def test_a_table_that_is_gone_is_waited_for(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    aside = path.rename(tmp_path / "aside")
    with pytest.raises(SourceUnavailableError, match="there is no delta table"):
        source.run(session)
    aside.rename(path)
    update(path)
    source.run()
    assert source.rows() == table_rows(path)
    assert source.topic.copy().generation == 1


def test_commits_whose_files_are_gone_before_they_were_read_are_a_new_copy(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    update(path)
    overwrite(path)
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    follow_again(source, session)
    assert source.rows() == table_rows(path)
    assert source.topic.copy().generation == 2


def test_a_log_that_was_cleaned_up_before_it_was_read_is_a_new_copy(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    for _ in range(3):
        update(path)
        append(path)
    table = DeltaTable(path)
    table.create_checkpoint()
    for version in range(table.version()):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    follow_again(source, session)
    assert {r["id"] for r in source.rows()} == {r["id"] for r in table_rows(path)}
    assert source.topic.copy().generation == 2


def test_a_log_that_was_cleaned_up_behind_us_is_no_matter(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    delete(path)
    table = DeltaTable(path)
    table.create_checkpoint()
    for version in range(table.version()):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    source.run(session)
    assert source.rows() == table_rows(path)
    assert source.topic.copy().generation == 1
    source.run()
    assert source.topic.copy().generation == 1


def test_a_version_whose_files_go_while_it_is_copied_is_copied_anew(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    source.topic.takes = 3
    with pytest.raises(SourceUnavailableError):
        source.run()
    source.topic.takes = None
    overwrite(path)
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    follow_again(source, None)
    assert source.rows() == table_rows(path)
    assert source.topic.copy().generation == 2


def test_a_commit_that_is_too_large_to_compare_is_a_new_copy(path, tmp_path, monkeypatch):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    monkeypatch.setattr(delta_feed, "MAX_COMPARED_ROWS", 3)
    overwrite(path)
    with pytest.raises(SnapshotNeededError, match="more than the 3 that are compared") as caught:
        source.run(session)
    assert "delta.enableChangeDataFeed" in caught.value.hint
    delta_feed._need_copy(source.config, caught.value)
    source.run()
    assert source.rows() == table_rows(path)


# Definitions
# ----------------------------------------------------------------------------------------------


def test_a_column_that_is_added_or_not_declared_is_no_matter(path, tmp_path):
    source = feed(path, tmp_path, FIELDS[:1])
    session = source.run()
    more = rows((7, "n7")).append_column("more", pa.array([1.5]))
    write_deltalake(path, more, mode="append", schema_mode="merge")
    source.run(session)
    assert source.rows() == table_rows(path, "id")


def test_a_redefined_column_is_an_error_until_it_fits_again(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    other = pa.table({"id": ["x"], "name": ["y"]})
    write_deltalake(path, other, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SnapshotNeededError, match='column "id" is string, declared BIGINT'):
        source.run(session)
    delta_feed._need_copy(source.config, SnapshotNeededError("the column changed", hint="Wait."))
    with pytest.raises(SourceError, match="the column changed; now delta table"):
        Session(source.config, Silent())
    write_deltalake(path, rows((1, "back")), mode="overwrite", schema_mode="overwrite")
    source.run()
    assert source.rows() == table_rows(path)


def test_partition_values_come_from_the_log(tmp_path):
    fields = (*FIELDS, Field("region", SqlType(TypeName.STRING)))
    path = tmp_path / "t"
    data = rows((1, "a"), (2, "b"), (3, "c"), regions=["x y", "1/2", None])
    write_deltalake(path, data, partition_by=["region"], configuration=CDF)
    source = feed(path, tmp_path, fields)
    session = source.run()
    assert source.rows() == table_rows(path, "id, name, region")
    DeltaTable(path).delete("id = 2")
    DeltaTable(path).update(updates={"region": "'é%20 z'"}, predicate="id = 1")
    source.run(session)
    expected = [
        {"id": 1, "name": "a", "region": "é%20 z"},
        {"id": 3, "name": "c", "region": None},
    ]
    assert source.rows() == expected
