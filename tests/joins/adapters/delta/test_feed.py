"""A Delta table as a source: whatever happens to it, the records say what the table is."""

import json
import os
import shutil
import struct
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from joins.adapters.delta import feed as delta_feed
from joins.adapters.delta.feed import FeedSession
from joins.adapters.delta.source import (
    DeltaFeedState,
    captured_columns,
    check_source_table,
)
from joins.adapters.process.sessions import abandon
from joins.durable.checkpoint import read_document
from joins.durable.dead_rows import RESERVED_BYTES, left_out
from joins.kernels.changelog.envelope import decode
from joins.plan.errors import SnapshotNeededError, SourceError, SourceUnavailableError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName, arrow_type
from tests.support.feeds import BatchTopic, Silent, feed, table_rows
from tests.support.foreign_topics import Told

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("name", SqlType(TypeName.STRING)))
DECIMAL = SqlType(TypeName.DECIMAL, 12, 3)
TINY_DECIMAL = SqlType(TypeName.DECIMAL, 38, 20)
CDF = {"delta.enableChangeDataFeed": "true"}
PLAIN: dict[str, str] = {}
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
MAPPED = (("col-1", pa.int64(), "1"), ("col-2", pa.string(), "2"))


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


def test_a_row_that_no_message_can_hold_is_left_out_by_its_key(tmp_path):
    path, large = tmp_path / "product", "x" * 2_000
    dead = tmp_path / "source.dead.json"
    write_deltalake(path, rows((1, "a"), (2, large)), configuration=CDF)
    source = feed(path, tmp_path, FIELDS)
    source.most_bytes = RESERVED_BYTES + 1_000
    session = source.run()
    assert (source.rows(), [*left_out([dead], 1).rows]) == ([{"id": 1, "name": "a"}], ['{"id":2}'])
    write_deltalake(path, rows((3, large), (4, "d")), mode="append")
    source.run(session)
    DeltaTable(path).update(updates={"name": f"'{large}'"}, predicate="id = 1")
    source.run(session)
    DeltaTable(path).update(updates={"name": "'fits'"}, predicate="id = 2")
    source.run(session)
    assert source.rows() == [{"id": 2, "name": "fits"}, {"id": 4, "name": "d"}]
    assert [*left_out([dead], 1).rows] == ['{"id":3}', '{"id":1}']
    assert left_out([dead], 2).rows == {}, "another copy begins without"


def test_texts_with_other_ends_of_lines_are_followed(path, tmp_path):
    """They stand as they are in the statistics of the log."""
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    write_deltalake(path, rows((20, "a\u2028b"), (21, "c\u2029"), (22, "\x85")), mode="append")
    assert "\u2028" in entry_of(path, DeltaTable(path).version()).read_text()
    source.run(session)
    assert source.rows() == table_rows(path)


def test_an_entry_that_is_not_whole_is_waited_for(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    append(path)
    entry = entry_of(path, DeltaTable(path).version())
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-9])
    with pytest.raises(SourceUnavailableError, match="cannot be read"):
        source.run(session)
    entry.write_bytes(whole)
    source.run(session)
    assert source.rows() == table_rows(path)


def test_an_entry_that_may_not_be_read_is_waited_for(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    append(path)
    entry = entry_of(path, DeltaTable(path).version())
    whole = entry.read_bytes()
    entry.unlink()
    entry.mkdir()
    with pytest.raises(SourceUnavailableError, match=r"commit 3 .* cannot be read"):
        source.run(session)
    entry.rmdir()
    entry.write_bytes(whole)
    source.run(session)
    assert source.rows() == table_rows(path)


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
    assert (
        read_document(source.config.state_file, DeltaFeedState).version
        == DeltaTable(path).version()
    )


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
    abandon(source.config.state_file, DeltaFeedState, caught.value.message)
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
    assert read_document(source.config.state_file, DeltaFeedState).epoch == 1


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
    abandon(source.config.state_file, DeltaFeedState, caught.value.message)
    source.run()
    assert source.rows() == table_rows(path)


# Definitions
# ----------------------------------------------------------------------------------------------


def test_texts_that_no_batch_can_hold_are_a_new_copy_and_never_fewer_rows(path):
    """Arrow splits a column of more than 2 GiB; the memory of these texts is never touched."""
    giant = pa.py_buffer(np.zeros(1 << 30, np.uint8))
    bounds = pa.py_buffer(np.array([0, 1 << 30], np.int32).tobytes())
    text = pa.StringArray.from_buffers(1, bounds, giant)
    table = check_source_table(path, FIELDS, ("id",))
    row = pa.RecordBatch.from_arrays(
        [text if pa.types.is_string(f.type) else pa.nulls(1, f.type) for f in wire_of(table)],
        schema=wire_of(table),
    )
    with pytest.raises(SnapshotNeededError, match="more text than can be compared"):
        delta_feed._joined(table, [row] * 3)


def wire_of(table):
    return delta_feed.empty_rows(table.columns).schema


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
    abandon(source.config.state_file, DeltaFeedState, "the column changed")
    with pytest.raises(SourceError, match="the column changed; now delta table"):
        FeedSession(source.config, Silent())
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


# Types
# ----------------------------------------------------------------------------------------------

TYPED = (
    ("id", pa.int64(), [1, 2], SqlType(TypeName.BIGINT)),
    ("tiny", pa.int8(), [-3, None], SqlType(TypeName.INT)),
    ("small", pa.int16(), [7, 8], SqlType(TypeName.SMALLINT)),
    ("price", pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.01")], DECIMAL),
    ("little", pa.decimal128(38, 20), [Decimal("1E-20"), None], TINY_DECIMAL),
    ("real", pa.float32(), [0.1, 2.5], SqlType(TypeName.FLOAT)),
    ("wide", pa.float64(), [0.1, 1e300], SqlType(TypeName.DOUBLE)),
    ("flag", pa.bool_(), [True, False], SqlType(TypeName.BOOLEAN)),
    ("text", pa.string(), ['é"\\\n', ""], SqlType(TypeName.STRING)),
    ("raw", pa.binary(), [b"\x00\xff", b""], SqlType(TypeName.BYTES)),
    ("day", pa.date32(), [date(1969, 1, 2), date(2026, 2, 28)], SqlType(TypeName.DATE)),
    ("at", pa.timestamp("us", tz="UTC"), [1_500_001, -1], SqlType(TypeName.TIMESTAMP_LTZ, 6)),
    ("local", pa.timestamp("us"), [2_000_000, None], SqlType(TypeName.TIMESTAMP, 6)),
)


def test_every_type_arrives_in_the_changelog_as_it_was(tmp_path):
    path = tmp_path / "typed"
    arrays = [pa.array(values, kind) for _, kind, values, _ in TYPED]
    write_deltalake(path, pa.table(arrays, names=[name for name, *_ in TYPED]))
    fields = tuple(Field(name, declared) for name, _, _, declared in TYPED)
    source = feed(path, tmp_path, fields)
    source.run()
    decoded = decode(source.topic.batch(), captured_columns(fields), topic="topic").batch
    found = pa.table(decoded).filter(pc.equal(decoded.column("_op"), "r")).sort_by("id")
    for (name, _, _, declared), values in zip(TYPED, arrays, strict=True):
        expected = values.cast(arrow_type(declared))
        assert found.column(name).combine_chunks().equals(expected), name
    assert found.column("little").to_pylist()[0] == Decimal("1E-20")


# Features that the library's writer does not have
# ----------------------------------------------------------------------------------------------


def entry_of(path, version):
    return path / "_delta_log" / f"{version:020d}.json"


@pytest.mark.parametrize("values", [None, {}], ids=["absent", "empty"])
def test_a_removed_file_has_its_partition_even_where_the_commit_leaves_it_out(tmp_path, values):
    """The protocol lets a writer leave it out; without it, another key would be deleted."""
    path, key = tmp_path / "product", ("id", "region")
    fields = (*FIELDS, Field("region", SqlType(TypeName.STRING)))
    data = rows((1, "a"), (2, "b"), regions=["north", "south"])
    write_deltalake(path, data, partition_by=["region"])
    source = feed(path, tmp_path, fields, key)
    session = source.run()
    DeltaTable(path).delete("region = 'north'")
    actions = actions_of(path, 1)
    for action in actions:
        if "remove" in action:
            action["remove"]["partitionValues"] = values
    put(path, 1, actions)
    source.run(session)
    assert source.rows() == [{"id": 2, "name": "b", "region": "south"}]


def actions_of(path, version):
    return [json.loads(line) for line in entry_of(path, version).read_text().splitlines()]


def put(path, version, actions):
    entry_of(path, version).write_text("\n".join(json.dumps(action) for action in actions))


def protocol(*features):
    writer = ["appendOnly", "invariants", *features]
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(features),
            "writerFeatures": writer,
        }
    }


def inline_vector(rows):
    """A deletion vector of `rows` as the protocol stores it in the log: one array container."""
    container = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16)
    container += b"".join(struct.pack("<H", row) for row in rows)
    data = struct.pack("<Iqi", 1681511377, 1, 0) + container
    size = len(data)
    data += bytes(-size % 4)
    text = ""
    for (number,) in struct.iter_unpack(">I", data):
        digits = [number // 85**power % 85 for power in (4, 3, 2, 1, 0)]
        text += "".join(Z85[digit] for digit in digits)
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": size,
        "cardinality": len(rows),
    }


def mark_deleted(path, rows):
    """A commit that deletes rows of the table's only file by a deletion vector."""
    version = DeltaTable(path).version()
    adds = [(v, a["add"]) for v in range(version + 1) for a in actions_of(path, v) if "add" in a]
    old = adds[-1][1]
    vector = inline_vector(rows)
    new = {**old, "deletionVector": vector}
    gone = {
        "path": old["path"],
        "deletionTimestamp": 1,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": old["size"],
    }
    if "deletionVector" in old:
        gone["deletionVector"] = old["deletionVector"]
    info = {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": "DELETE"}}
    put(path, version + 1, [info, {"remove": gone}, {"add": new}])


@pytest.fixture
def vectors(tmp_path):
    """A table of one file whose protocol has deletion vectors."""
    path = tmp_path / "vectors"
    write_deltalake(path, rows(*((n, f"n{n}") for n in range(10))))
    actions = actions_of(path, 0)
    put(path, 0, [protocol("deletionVectors") if "protocol" in a else a for a in actions])
    return path


def test_rows_that_a_deletion_vector_deletes_are_followed(vectors, tmp_path):
    source = feed(vectors, tmp_path, FIELDS)
    session = source.run()
    before = len(source.topic.records)
    mark_deleted(vectors, [1, 4])
    source.run(session)
    assert {r["id"] for r in source.rows()} == {0, 2, 3, 5, 6, 7, 8, 9}
    mark_deleted(vectors, [1, 4, 9])
    source.run(session)
    assert source.rows() == table_rows(vectors)
    told = [json.loads(r.value) for r in source.topic.records[before:]]
    assert sorted((v["op"], v["before"]["id"]) for v in told) == [("d", 1), ("d", 4), ("d", 9)]
    assert {v["source"]["ts_ms"] for v in told} == {1_700_000_000_000}


def test_rows_that_a_deletion_vector_deletes_are_not_copied(vectors, tmp_path):
    mark_deleted(vectors, [0, 9])
    source = feed(vectors, tmp_path, FIELDS)
    source.run()
    assert source.rows() == table_rows(vectors)
    assert {r["id"] for r in source.rows()} == set(range(1, 9))
    assert read_document(source.config.state_file, DeltaFeedState).rows_total == 8


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_found_under_their_names(tmp_path, mode):
    path = tmp_path / "mapped"
    ids = [pa.field(n, t, metadata={"PARQUET:field_id": i}) for n, t, i in MAPPED]
    data = pa.table([pa.array([1, 2]), pa.array(["a", "b"])], schema=pa.schema(ids))
    write_deltalake(path, rows((7, "x")))
    (old,) = [a["add"]["path"] for a in actions_of(path, 0) if "add" in a]
    pq.write_table(data, path / old)
    actions = actions_of(path, 0)
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = {
                "delta.columnMapping.mode": mode,
                "delta.columnMapping.maxColumnId": "2",
            }
            action["metaData"]["schemaString"] = json.dumps(mapped_schema())
        if "add" in action:
            action["add"]["size"] = (path / old).stat().st_size
            action["add"].pop("stats")
    put(path, 0, [protocol("columnMapping") if "protocol" in a else a for a in actions])
    source = feed(path, tmp_path, FIELDS)
    source.run()
    assert source.rows() == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    assert read_document(source.config.state_file, DeltaFeedState).rows_total == 2


def mapped_schema():
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": physical,
            },
        }
        for name, kind, number, physical in (
            ("id", "long", 1, "col-1"),
            ("name", "string", 2, "col-2"),
        )
    ]
    return {"type": "struct", "fields": fields}


def test_a_table_feature_that_is_not_read_is_named(tmp_path):
    path = tmp_path / "t"
    write_deltalake(path, rows((1, "a")))
    actions = actions_of(path, 0)
    put(path, 0, [protocol("typeWidening") if "protocol" in a else a for a in actions])
    with pytest.raises(SourceError, match="uses typeWidening, which cannot be read"):
        FeedSession(feed(path, tmp_path, FIELDS).config, Silent())


def proofs(source):
    """The answers that a feed of `source` tells while it does all that there is to do."""
    session = FeedSession(source.config, Told())
    source.run(session)
    return session, [e for e in session._protocol.events if e["event"] == "fresh"]


def test_newest_version_proves_the_time_of_the_question(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session, [first, *_] = proofs(source)
    version = DeltaTable(path).version()
    assert (first["position"], first["kind"]) == ({"version": version}, "position")

    session._asked_at_s = float("-inf")
    source.run(session)
    quiet = session._protocol.events[-1]
    assert quiet["time_ms"] >= first["time_ms"]
    assert quiet["position"] == {"version": version}


def test_version_counts_once_it_is_sent(path, tmp_path):
    source = feed(path, tmp_path, FIELDS)
    session, _ = proofs(source)
    for number in range(3):
        write_deltalake(path, rows((100 + number, "late")), mode="append")
    newest = DeltaTable(path).version()
    session._asked_at_s = float("-inf")
    asked = []
    while session.step(BatchTopic(source.topic)):
        told = [e["position"]["version"] for e in session._protocol.events if e["event"] == "fresh"]
        asked.append((session._state.version, max(told)))

    assert [sent for sent, _ in asked] == [newest - 2, newest - 1, newest]
    assert all(told <= sent for sent, told in asked)
    assert asked[-1][1] == newest


def test_versions_that_wait_are_not_looked_up_again_with_each_question(path, tmp_path, monkeypatch):
    """In a store each look takes as long as a commit: a table far ahead would never be reached."""
    source = feed(path, tmp_path, FIELDS)
    session, _ = proofs(source)
    for number in range(6):
        write_deltalake(path, rows((100 + number, "late")), mode="append")
    looks = []

    def exists(each):
        looks.append(each.name)
        return os.path.exists(each)

    monkeypatch.setattr(delta_feed, "_MOST_AHEAD", 3, raising=False)
    monkeypatch.setattr(type(path), "exists", exists)
    while True:
        session._asked_at_s = float("-inf")
        if not session.step(BatchTopic(source.topic)):
            break
    newest = DeltaTable(path).version()
    assert max(looks.count(f"{version:020d}.json") for version in range(newest + 1)) <= 2
    assert session._protocol.events[-1]["position"] == {"version": newest}
